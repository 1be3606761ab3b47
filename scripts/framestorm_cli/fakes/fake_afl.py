"""A stand-in for afl-fuzz, for tests: starts its target again and again, as the fork server does.

Each process gets a folder of its own below the target's --out, and leaves there how it ended. What it was
started with goes to afl-fuzz.json beside this file. A target with `"found": ["..."]` in its plan finds
these inputs; `"executions per second"` is what it says of its speed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from types import FrameType

from framestorm_cli.fakes import plan

stopped = Event()


def on_stop(_signal: int, _frame: FrameType | None) -> None:
    stopped.set()


def option(name: str) -> Path:
    return Path(sys.argv[sys.argv.index(name) + 1])


def run_worker(target: list[str], out: Path, number: int) -> None:
    folder = out / f"worker-{number:03d}"
    folder.mkdir()
    command = list(target)
    command[command.index("--out") + 1] = str(folder)
    with (folder / "log.txt").open("wb") as log:
        worker = subprocess.Popen(command, stdout=log, stderr=log)
        while worker.poll() is None:
            time.sleep(0.01)
            if stopped.is_set():
                worker.kill()
                worker.wait()
                return
    (folder / "exit").write_text(f"{worker.returncode}\n")


def main() -> int:
    signal.signal(signal.SIGTERM, on_stop)
    environment = {k: v for k, v in os.environ.items() if k.startswith(("AFL_", "FRAMESTORM_"))}
    (plan.HERE / "afl-fuzz.json").write_text(json.dumps({"argv": sys.argv, "env": environment}))
    own = option("-o") / "default"
    (own / "queue").mkdir(parents=True)
    for number, seed in enumerate(sorted(option("-i").iterdir())):
        name = f"id:{number:06d},time:0,execs:0,orig:{seed.name}"
        (own / "queue" / name).write_bytes(seed.read_bytes())
    for number, found in enumerate(plan.read().get("found", [])):
        (own / "queue" / f"id:{number:06d},src:000000,op:havoc").write_text(found)
    rate = plan.read()["executions per second"]
    stats = f"execs_done : 321\nexecs_per_sec : {rate}\nstability : 99.50%\ncorpus_count : 7\n"
    (own / "fuzzer_stats").write_text(stats + "saved_hangs : 1\n")
    target = sys.argv[sys.argv.index("--") + 1 :]
    number = 0
    while not stopped.is_set():
        run_worker(target, option("--out"), number)
        number += 1
        time.sleep(0.1)
    return 0
