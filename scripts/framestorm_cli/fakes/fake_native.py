"""A stand-in for the native programs, for tests: speaks their protocol, does what plan.json says.

Installed under each program's name next to a plan.json:
    {"modules": {...}, "hs_err": path, "programs": {"fuzz_stack": [start, start, ...], "replay": [...]}}
Each start of a program takes the next entry (the last one again when they run out):
    {"walks": 10, "success": 1.0, "findings": [...], "after": 0.5, "corpus": ["..."], "edges": 7,
     "reached": [[seconds, [edge, ...]], ...], "profiler": {"succeeded": 0},
     "end": "ok|setup|broken|die|hang|not-reusable|strict",
     "step": what `framestorm-step run` writes}
`after`: the share of the time it was given that it uses before it ends.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from framestorm_cli.fakes import plan
from framestorm_cli.native.toolchain import NATIVE, STEP

TEXT = "framestorm-input 1\nscenario c2-inlined\nmode same-thread\nregister sp = real-sp - 64\n"
_SP = {"text": "real-sp - 64", "kind": "real-sp", "delta": -64}
INPUT = {
    "scenario": "c2-inlined",
    "mode": "same-thread",
    "walker": "asgct",
    "call": {},
    "mutations": [{"kind": "register", "place": "sp", "value": _SP}],
    "iterator_calls": [],
}
DESCRIBED = {"text": TEXT, "input": INPUT, "state": "torn"}


# What the real one answers; a test holds it against that.
NAMES = Path(__file__).resolve().parent.parent / "testdata" / "names.json"


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def write_findings(out: Path, findings: list[Any]) -> None:
    plan.write_findings(out, findings, DESCRIBED, "artifacts/{key}-{index}.bin")
    with (out / "findings.jsonl").open("a") as file:
        for key in {finding["key"] for finding in findings}:
            count = {"type": "count", "key": key, "count": 7, "rechecks": 10, "rechecks_hit": 9}
            file.write(json.dumps(count) + "\n")


def fuzz(asked: dict[str, Any], name: str) -> int:
    if "--bench" in sys.argv:
        if "--profiler" in sys.argv:
            print("Profiling started")
        print(json.dumps(asked["bench"]))
        return 0
    entry = plan.next_entry(asked["programs"].get(name), name)
    out = Path(option("--out"))
    end = entry.get("end", "ok")
    if end == "setup":
        print("libjvm.so cannot be loaded: fake", file=sys.stderr)
        return 2
    (out / "jvm.json").write_text(
        json.dumps({"version": "25.0.3+9", "vendor": "Fake", "feature": 25})
    )
    (out / "modules.json").write_text(json.dumps(asked["modules"]))
    used = entry.get("after", 1.0)
    walks = entry.get("walks", int(float(option("--runs", "1000")) * used))
    success, findings = entry.get("success", 1.0), entry.get("findings", [])
    stats = {
        "t": float(option("--seconds", "1")) * used,
        "startup": 0.5,
        "walks": walks,
        "succeeded": int(walks * success),
        "unmutated": walks,
        "unmutated_java": walks,
        "unmutated_java_succeeded": int(walks * success),
        "findings": len(findings) * 7,
        "executions": walks + 10,
        "contained": 0,
        "halts": 3,
        "rss_kb": 1000,
        "by_scenario": {
            name: {
                "walks": walks,
                "succeeded": walks,
                "unmutated_errors": {"-5": walks - int(walks * success)},
            }
            for name in entry.get("scenarios", ["c1"])
        },
        "by_mode": {},
        "error_codes": {"-5": 1},
        "unavailable": {"ffi-upcall": "needs JDK 22 or later"},
    }
    if "--profiler" in sys.argv:
        counted = {"walks": walks, "succeeded": walks, "counted": walks, "contained_faults": 2}
        stats["by_walker"] = {"profiler": counted | entry.get("profiler", {})}
        stats["profiler"] = {"signal": signal.SIGPROF, "counts_samples": True}
    # As the real one: what figures count has been written before them.
    write_findings(out, findings)
    if walks:
        (out / "stats.jsonl").write_text(json.dumps(stats) + "\n" + '{"t": 99, "walks"')
    for number, text in enumerate(entry.get("corpus", [])):
        (out / "corpus").mkdir(exist_ok=True)
        (out / "corpus" / f"{number}").write_text(text)
    for seconds, edges in entry.get("reached", []):
        with (out / "edges.jsonl").open("a") as file:
            file.write(json.dumps({"t": seconds, "new": edges}) + "\n")
    if "edges" in entry and Path(sys.argv[0]).parent.name == "afl":
        with (out / "stats.jsonl").open("a") as file:
            file.write("\n" + json.dumps({**stats, "edges": entry["edges"]}) + "\n")
    elif "edges" in entry:
        print(f"#8 NEW cov: 1\n#9\tREDUCE cov: {entry['edges']} ft: 7", flush=True)
    if end == "hang":
        time.sleep(600)
    if end == "die":
        data = b"FAKEdeath"
        (out / "current.bin").write_bytes(len(data).to_bytes(8, "little") + data + b"\0" * 64)
        (out / "hs_err_pid1.log").write_bytes(Path(asked["hs_err"]).read_bytes())
        os.kill(os.getpid(), signal.SIGKILL)
    if "last" in entry:
        data = entry["last"].encode()
        (out / "current.bin").write_bytes(len(data).to_bytes(8, "little") + data)
    if end == "broken":
        print("INFO: seed corpus: files: 1\nfuzz_fake: a thread did not halt", file=sys.stderr)
    return {"broken": 2, "not-reusable": 3, "strict": 77}.get(end, 0)


def coverage(asked: dict[str, Any]) -> int:
    """Each file reaches the edges its plan names ({"edges": {stem: [index, ...]}}), in c1; one named
    in "not_reusable" ends the process."""
    start = plan.next_entry(asked["programs"].get("coverage"), "coverage")
    out = Path(option("--out"))
    reached: set[int] = set()
    inputs = []
    not_reusable = False
    for name in Path(option("--list")).read_text().split():
        edges = start["edges"].get(Path(name).stem)
        walked = edges is not None and not not_reusable
        added = len(set(edges or ()) - reached) if walked else 0
        reached |= set(edges or ()) if walked else set()
        not_reusable = not_reusable or (walked and Path(name).stem in start.get("not_reusable", ()))
        inputs.append(
            {
                "file": name,
                "scenario": "c1",
                "walked": walked,
                "edges": len(edges or ()) if walked else 0,
                "added": added,
                "added_in_scenario": added,
                "compared": 100 if walked else 0,
                "identical": 99 if walked else 0,
            }
        )
    answer = {
        "edges": [{"pc": pc, "entry": True} for pc in start["pcs"]],
        "scenarios": {"c1": sorted(reached)},
        "inputs": inputs,
        "not_reusable": not_reusable,
    }
    (out / "coverage.json").write_text(json.dumps(answer))
    return 3 if not_reusable else 0


def native(asked: dict[str, Any]) -> int:
    command = "step" if sys.argv[1] == "run" else sys.argv[1]
    if command == "decode":
        data = sys.stdin.buffer.read()
        if not data.startswith(b"FAKE") and "--force" not in sys.argv:
            print(
                "not an artifact of framestorm: first byte is not 1 (--force decodes it anyway)",
                file=sys.stderr,
            )
            return 2
        print(json.dumps(DESCRIBED) if "--json" in sys.argv else TEXT, end="")
    elif command == "encode":
        if "framestorm-input 1" not in sys.stdin.read().splitlines():
            print("line 1: expected `framestorm-input 1`", file=sys.stderr)
            return 2
        sys.stdout.buffer.write(b"FAKEencoded")
    elif command == "show-sample":
        if b"framestorm-sample" not in Path(sys.argv[2]).read_bytes():
            print(f"{sys.argv[2]} is no sample", file=sys.stderr)
            return 2
        print("registers\n  rip  nmethod entry + 0x35")
    elif command == "names":
        print(NAMES.read_text())
    elif command == "scenarios":
        print(json.dumps(asked[command]))
    elif command == "coverage":
        return coverage(asked)
    else:
        entry = plan.next_entry(asked["programs"].get(command), command)
        out = Path(option("--out"))
        (out / "modules.json").write_text(json.dumps(asked["modules"]))
        findings = entry.get("findings", [])
        write_findings(out, findings)
        walk: dict[str, Any] = {
            "end": "fault" if findings else "returned",
            "num_frames": 3,
            "trace": [],
        }
        (out / "replay.json").write_text(
            json.dumps({"halts": 2, "walks": entry.get("walks", 1), "unresolved": 1, "walk": walk})
        )
        if "step" in entry:
            (out / "step.json").write_text(json.dumps(entry["step"]))
        if entry.get("end") == "setup":
            print(f"{Path(sys.argv[0]).name}: libjvm.so cannot be loaded: fake", file=sys.stderr)
            return 2
        if entry.get("end") == "not-reusable":
            return 3
        if command == "minimize" and findings:
            (out / "minimized.bin").write_bytes(b"FAKEmin")
        if entry.get("end") == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if entry.get("end") == "hang":
            time.sleep(600)
    return 0


def main() -> int:
    asked = plan.read()
    name = Path(sys.argv[0]).name
    return native(asked) if name in (NATIVE, STEP) else fuzz(asked, name)
