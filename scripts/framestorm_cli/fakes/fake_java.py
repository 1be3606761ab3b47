"""A stand-in for `java` with the agent, for tests: leaves what the agent leaves, does what plan.json says.

Installed as bin/java of a fake JDK, plan.json beside it:
    {"modules": {...}, "hs_err": path, "workloads": [--list lines], "cells": {"name": [entry, entry, ...]}}
Each start of a workload with the agent takes the next entry (the last one again when they run out):
    {"samples": 20000, "running": 2.0, "findings": [...], "stats": {...}, "flames": "a;b 3", "takes": 0.3,
     "fill": 0, "says": "...", "says_last": "...", "code": 1,
     "recorded": {...}, "end": "ok|die|abort|hang|deaf|fail|not-done|setup|silent|killed"}
"alone" in an entry is its exit code without the agent, or "hang". "asked", "asked_alone": with the agent
and without it runs until it is asked to end (SIGTERM), which it does with this exit code.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from framestorm_cli.fakes import plan


def agent_options() -> dict[str, str] | None:
    """Of what samples; not of the agent that notes what a profiler samples."""
    for word in sys.argv[1:]:
        if word.startswith("-agentpath:") and "observer" not in word.partition("=")[0]:
            pairs = word.partition("=")[2].split(",")
            return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return None


def workload() -> str:
    words = sys.argv[1:]
    if "-jar" in words:
        return Path(words[words.index("-jar") + 1]).stem
    return words[words.index("framestorm.workloads.Main") + 1]


def stats_of(options: dict[str, str], entry: dict[str, Any]) -> dict[str, Any]:
    samples = entry.get("samples", 20000)
    running = entry.get("running", 2.0)
    walkers = options["walker"].split("+")
    share = samples // len(walkers)
    stats: dict[str, Any] = {
        "seconds": entry.get("seconds", 3.0),
        "ended": "vm-death",
        "walker": walkers,
        "mode": options["mode"],
        "interval_ns": 100000,
        "threads_asked": options["threads"],
        "seed": int(options["seed"]),
        "ticks": samples + 5,
        "samples": samples,
        "running_seconds": running,
        "rate_hz": samples / running if running else 0.0,
        "rate_asked_hz": 10000,
        "rate_share": 1.0,
        "lost": {"timer-overrun": 5, "late-handler": 2},
        "codes": [
            {"walker": walker, "state": state, "code": code, "count": int(share * part)}
            for walker in walkers
            for state, code, part in (
                ("in_Java", "ok", 0.7),
                ("in_Java", "-5 unknown_Java", 0.1),
                ("in_vm", "-4 not_walkable_not_Java", 0.2),
            )
        ],
        "latency_ns": {
            walker: {"count": share, "p50": 900, "p99": 12000, "p99.9": 80000, "max": 1500000}
            for walker in walkers
            if share
        },
        "frames": {
            walker: {"count": share, "sum": share * 12, "max": 128, "at_depth_limit": 0}
            for walker in walkers
        },
        "checks": {"contract": {"made": samples, "broken": len(entry.get("findings", []))}},
        "findings": len(entry.get("findings", [])),
        "contained": sum(1 for one in entry.get("findings", []) if one["kind"] == "fault"),
        "threads": {"seen": 12, "live": 9, "peak": 10},
    }
    return {**stats, **entry.get("stats", {})}


def write_recording(options: dict[str, str], entry: dict[str, Any]) -> None:
    """A profiler's: what the tests read in its place, as it is planned."""
    if recorded := entry.get("recorded", {}):
        Path(options["file"]).write_text(json.dumps(recorded))


def write_agent(asked: dict[str, Any], options: dict[str, str], entry: dict[str, Any]) -> None:
    out = Path(options["out"])
    (out / "samples").mkdir(parents=True, exist_ok=True)
    (out / "jvm.json").write_text(json.dumps({"version": "25.0.3+9", "vendor": "Fake"}))
    (out / "modules.json").write_text(json.dumps(asked["modules"]))
    findings = entry.get("findings", [])
    plan.write_findings(out, findings, {}, "samples/{index}.sample")
    for index in range(len(findings)):
        (out / f"samples/{index}.bin").write_bytes(b"an input")
    if fill := entry.get("fill", 0):
        (out / "fill").write_bytes(b"\0" * fill)
    with (out / "stats.jsonl").open("w") as file:
        file.write(json.dumps(stats_of(options, entry)) + "\n")


def until_asked(code: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(code))
    time.sleep(600)


def main() -> int:
    asked = plan.read()
    if "--list" in sys.argv:
        print("\n".join(json.dumps(line) for line in asked["workloads"]))
        return 0
    name, options = workload(), agent_options()
    with (plan.HERE / f"{name}.preloaded").open("a") as file:
        file.write(os.environ.get("LD_PRELOAD", "") + "\n")
    if options is None:
        entries = asked["cells"].get(name) or [{}]
        if "asked_alone" in entries[0]:
            until_asked(entries[0]["asked_alone"])
        if entries[0].get("alone") == "hang":
            time.sleep(600)
        work = {"name": name, "iterations": 3, "seconds": 2.0, "work": {"things": 42}}
        print(f"framestorm-workload {json.dumps(work)}")
        return int(entries[0].get("alone", 0))
    entry = plan.next_entry(asked["cells"].get(name), name)
    end = entry.get("end", "ok")
    if end == "setup":
        print("Unrecognized VM option 'UseNoSuchGC'", file=sys.stderr)
        return 1
    if end == "deaf" or entry.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    is_agent = "walker" in options  # else a profiler
    if is_agent:
        write_agent(asked, options, entry)
    else:
        write_recording(options, entry)
    if end in ("hang", "deaf"):
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (plan.HERE / f"{name}.child").write_text(str(child.pid))
        time.sleep(600)
    if end == "slowed" and not is_agent:
        while True:
            with Path(options["file"]).open("a") as file:
                file.write(" ")
            time.sleep(0.1)
    if end == "slowed":
        stats = stats_of(options, entry)
        for samples in range(stats["samples"], 10**6):
            line = json.dumps({**stats, "samples": samples, "lost": {"throttled": samples}})
            with (Path(options["out"]) / "stats.jsonl").open("a") as file:
                file.write(line + "\n")
            time.sleep(0.1)
    if "asked" in entry:
        until_asked(entry["asked"])
    time.sleep(entry.get("takes", 0.0))
    if end == "die":
        Path("hs_err_pid1.log").write_bytes(Path(asked["hs_err"]).read_bytes())
        os.kill(os.getpid(), signal.SIGABRT)
    if entry.get("core"):
        Path("core").write_bytes(b"no core that gdb knows")
    if end == "abort":
        os.kill(os.getpid(), signal.SIGSEGV)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if "flames" in entry:
        (Path(options["out"]) / "flames.folded").write_text(entry["flames"])
    if "says" in entry:
        print(entry["says"])
    if end == "fail":
        print(entry.get("says_last", "Exception in thread main: it broke"), file=sys.stderr)
        return int(entry.get("code", 1))
    work = {
        "name": name,
        "iterations": 3,
        "seconds": 2.0,
        "work": entry.get("work", {"things": 42}),
    }
    if end != "silent":
        print(f"framestorm-workload {json.dumps(work)}")
    if end == "not-done":
        print(f"framestorm-workload: {name}: did not do what it is named after", file=sys.stderr)
        return 3
    return 0
