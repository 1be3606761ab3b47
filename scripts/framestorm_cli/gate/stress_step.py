"""The gate's stress: `framestorm stress` in both modes. Without it there is no green. A profiler samples by
itself there, and its base beside it."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from framestorm_cli.base import paths, steps
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.gate.fuzz_step import of_base
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import KNOWN, NEW, NOT_REPRODUCED, TOO_RARE, UNCHANGED, Entry, Step
from framestorm_cli.native import processes, toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.table import OUT
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request
from framestorm_cli.reports import known as known_buckets
from framestorm_cli.reports.known import Known
from framestorm_cli.stress.cells import SELF_MODE
from framestorm_cli.stress.proportion import chance

MODES = ("same-thread", "separate-thread")
# Different in what is on their stacks; each is short to start.
WORKLOADS = ("deoptimise-storm", "exceptions", "jni-sandwich", "method-handles")
# A gate asks for walks in running programs, not for a rate: a shared machine reaches this one.
INTERVAL = "500us"
TRIES = 5  # fresh JVMs
_CHANCE = 0.05  # see proportion.chance: four of TRIES against none are no chance
_TRY_LIMIT = 40.0  # seconds
_LATE = 240.0  # seconds a run may take beside its sampling: starts, reports, a cell that hangs


def command(
    subject: Subject, seconds: float, seed: int, known_file: Path, out: Path, jvm_args: Sequence[str],
    workloads: Sequence[str],
) -> list[str]:  # fmt: skip
    assert subject.stressed is not None
    arguments = [str(paths.SCRIPTS / "framestorm"), "stress"]
    arguments += ["--jdk", str(subject.stressed.home), "--duration", f"{seconds:.0f}s"]
    # How much of a trace is wrong depends on what C2 makes of a program in that run: no ground for new.
    arguments += ["--interval", INTERVAL, "--no-truth"]
    for workload in workloads:
        arguments += ["--workload", workload]
    if subject.outside.profiler:
        arguments += ["--profiler", subject.outside.sampling]
    else:
        for mode in MODES:
            arguments += ["--mode", mode]
        if subject.walker:
            arguments += ["--walker", "+".join(walkers.names(subject.walker))]
        arguments += subject.outside.arguments(out)
    arguments += [f"--jvm-arg={argument}" for argument in jvm_args]
    return [*arguments, "--seed", str(seed), "--known", str(known_file), "--out", str(out)]


def run(
    here: Subject, there: Subject | None, known: Known, seconds: float, seed: int, out: Path,
    jvm_args: Sequence[str], workloads: Sequence[str], step: Step,
) -> list[Entry]:  # fmt: skip
    """Stresses the change; the base too when that found something, to say whether it is new, and always
    when it is a profiler, to say what is fixed."""
    began = time.monotonic()
    if here.outside.profiler and not here.outside.sampling:
        step.lines.append(
            f"left out: {here.outside} does not sample by itself into a JFR file below {OUT}"
        )
        return []
    if here.stressed is None:
        step.problems.append(
            f"{here.tools.jdk} has sanitizers, and there is no JDK without from the same source to stress: "
            "`scripts/framestorm jdk build --variant plain`"
        )
        return []
    step.lines.append(f"on {here.stressed}")
    known_file = out / "known.json"
    known_buckets.write(known_file, known)
    folder = out / "stress"

    def stressed(side: Subject, into: Path) -> Json:
        arguments = command(side, seconds, seed, known_file, into, jvm_args, workloads)
        return _one(arguments, into, seconds, side, step)

    if here.outside.profiler:
        seconds /= 2 if there is not None else 1
    summary = stressed(here, folder)
    entries = _entries(summary, here, folder, known)
    if here.outside.profiler and there is not None and there.stressed is not None:
        other = out / "stress-base"
        said = stressed(there, other)
        theirs = _entries(said, there, other, known)
        _compare(entries, summary, theirs, said, "base")
        _compare(theirs, said, entries, summary, "change")
        entries += of_base([entry for entry in theirs if entry.kind == NEW])
        step.seconds = time.monotonic() - began
        return entries
    for entry in entries:
        if entry.kind == NEW and _replayable(entry):
            _replay(entry, here, there, out)
    # What has no input to replay (a death, a hang): whether it is in the base's run, too.
    unclear = [entry for entry in entries if entry.kind == NEW and not _replayable(entry)]
    if unclear and there is not None and there.stressed:
        other = out / "stress-base"
        said = stressed(there, other)
        same = {entry.signature for entry in _entries(said, there, other, known)}
        for entry in unclear:
            if entry.signature in same:
                entry.kind = UNCHANGED
    step.seconds = time.monotonic() - began
    return entries


def _entries(summary: Json, side: Subject, folder: Path, known: Known) -> list[Entry]:
    """A profiler's library is elsewhere on each side, and its signatures say neither."""
    entries = [_entry(bucket, folder) for bucket in summary.get("buckets", [])]
    for entry in entries:
        if side.outside.profiler and entry.signature.walker:
            entry.signature = msgspec.structs.replace(entry.signature, walker=outside.PROFILER)
            entry.kind = KNOWN if entry.signature in known.notes else entry.kind
    return entries


def _compare(
    own: Sequence[Entry], summary: Json, others: Sequence[Entry], of_other: Json, what: str
) -> None:
    """Of what is new in one side's samples, says what the other side (`what`) does, too, and which wrong
    traces were too few to be more than chance: each workload by itself, as one may hide behind another.
    A death is no chance."""
    same = {entry.signature: entry for entry in others}
    for entry in own:
        if entry.kind != NEW:
            continue
        twin = same.get(entry.signature)
        if entry.signature.kind != "contract":
            entry.how += f"; {what}: {'none' if twin is None else twin.how}"
            entry.kind = NEW if twin is None else UNCHANGED
            continue
        theirs = twin.victims if twin is not None else {}
        entry.how += f", {entry.count:,} of {_samples(summary):,} samples; {what}: "
        entry.how += f"{'none' if twin is None else f'{twin.count:,}'} of {_samples(of_other):,}"
        unlike = [
            workload
            for workload in entry.victims.keys() - theirs.keys()
            if _chance(entry.victims[workload], summary, of_other, workload) <= _CHANCE
        ]
        if not unlike:
            entry.kind = TOO_RARE if twin is None else UNCHANGED
        elif twin is not None:
            entry.how += f", none in {', '.join(sorted(unlike))}"


def _chance(count: int, summary: Json, of_other: Json, workload: str) -> float:
    """That so many of one side's samples of a workload and none of the other's say nothing."""
    samples = _samples(summary, workload)
    return chance(min(count, samples), samples, _samples(of_other, workload))


def _samples(summary: Json, workload: str = "") -> int:
    """Of one workload, or of all."""
    cells = summary.get("cells", [])
    return sum(int(c.get("samples", 0)) for c in cells if workload in ("", c.get("workload")))


def _replayable(entry: Entry) -> bool:
    return entry.artifact is not None and entry.artifact.suffix == ".bin"


def _replay(entry: Entry, here: Subject, there: Subject | None, out: Path) -> None:
    """As for what fuzzing finds: new is what comes back in fresh JVMs, and does not on the base."""
    assert entry.artifact is not None
    said = []
    came = (0, 0)
    for side in (here, there):
        if side is None or side.stressed is None:
            continue
        request = Request(
            entry.artifact.resolve(), entry.signature, (), side.outside, limit=_TRY_LIMIT
        )
        done = replaying.run_tries(
            toolchain.prepare(side.stressed.home), Symbolizer(), request, TRIES,
            out / "work" / f"{side.what}-{entry.id}",
        )  # fmt: skip
        hits = sum(1 for one in done if one.matched is not None)
        said.append(f"{side.what}: {hits} of {len(done)} fresh JVMs")
        if side is here and not hits:
            entry.kind = NOT_REPRODUCED
            break
        if side is here:
            came = hits, len(done)
        elif hits:
            entry.kind = UNCHANGED
        elif chance(*came, len(done)) > _CHANCE:
            entry.kind = TOO_RARE
    entry.how += f"; {', '.join(said)}"


def _one(arguments: list[str], folder: Path, seconds: float, side: Subject, step: Step) -> Json:
    """One `framestorm stress`; its summary. What it could not judge, nor the gate can."""
    log = folder.with_name(f"{folder.name}.log")
    steps.say(f"stress of the {side.what} for {seconds:.0f} s (log: {paths.shown(log)})")
    with log.open("wb") as output:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(seconds + _LATE)
        except subprocess.TimeoutExpired:
            processes.end(process, grace=10)
            code = None
        except BaseException:
            processes.end(process, grace=10)
            raise
    summary = records.read_json(folder / "summary.json")
    if code is None:
        step.problems.append(f"{side.what}: stress did not end, see {paths.shown(log)}")
    elif code not in (0, 1, 2) or not summary:
        said = steps.tail(log, 6) or f"exit {code}"
        step.problems.append(f"{side.what}: stress could not be run: {said}")
    elif code == 2:
        why = summary.get("problems") or [f"see {paths.shown(log)}"]
        step.problems += [f"{side.what}: {problem}" for problem in why]
    if summary:
        # A base may die of what the change has fixed.
        if side.what == "change" or not summary.get("buckets"):
            modes = modes_of(side)
            step.problems += [f"{side.what}: {line}" for line in unstressed(summary, modes)]
        step.lines.append(
            f"{side.what}: {_samples(summary):,} walks of running programs in "
            f"{len(summary.get('cells', []))} cells"
        )
    return summary


def modes_of(side: Subject) -> list[str]:
    """A plugin has those that it declares, a profiler its own."""
    if side.outside.profiler:
        return [SELF_MODE]
    if side.outside.walker != outside.PLUGIN:
        return list(MODES)
    declared = walkers.table(side.tools.program(NATIVE), side.outside.spec).walkers[side.walker]
    return [mode for mode in MODES if declared.walks_in(mode)]


def unstressed(summary: Json, modes: Sequence[str] = MODES) -> list[str]:
    """Modes in which no walk was made."""
    found = []
    for mode in modes:
        cells = [cell for cell in summary.get("cells", []) if cell.get("mode") == mode]
        if not any(cell.get("samples") for cell in cells):
            found.append(f"no walk was made in {mode} mode")
    return found


def _entry(bucket: Json, folder: Path) -> Entry:
    repro, report = bucket.get("repro"), bucket.get("report")
    files = [folder / name for name in bucket.get("files") or ()]
    return Entry(
        KNOWN if bucket.get("known") else NEW,
        "stress",
        f"s-{bucket['id']}",
        Signature.from_json(bucket["signature"]),
        str(bucket.get("explanation", "")),
        f"in {len(bucket.get('cells', []))} cells",
        int(bucket.get("count", 1)),
        artifact=next(
            (file for kind in (".bin", ".sample") for file in files if file.suffix == kind), None
        ),
        report=folder / report if report else None,
        command=f"sh {paths.shown(folder / repro)}" if repro else "",
        victims=bucket.get("victims") or {},
    )
