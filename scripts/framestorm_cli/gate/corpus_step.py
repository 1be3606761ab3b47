"""The gate's replay of corpus/crashes: those whose expectation for this JDK is known."""

import tempfile
import time
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.corpus import judging
from framestorm_cli.corpus.judging import Expectation, Judgement
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import FIXED, KNOWN, NEW, UNCHANGED, Entry, Step
from framestorm_cli.profilers import table
from framestorm_cli.replay import replaying
from framestorm_cli.triage import expectations

_LIMIT = 40.0  # seconds for a JVM


def run(here: Subject, there: Subject | None, jvm_args: tuple[str, ...], step: Step) -> list[Entry]:
    """One entry per crash that is open or came back. What cannot be replayed is a problem."""
    began = time.monotonic()
    label = here.tools.jdk.label
    symbolizer = Symbolizer()
    entries: list[Entry] = []
    count = 0
    for folder in expectations.folders():
        if not _is_judged(folder, here):
            continue
        artifact = expectations.artifact_of(folder, label)
        expectation = judging.expectation_of(artifact, here.tools.jdk)
        if expectation is None:
            continue
        count += 1
        try:
            result = _judge(here, artifact, expectation, jvm_args, symbolizer)
            other = (
                _judge(there, artifact, expectation, jvm_args, symbolizer)
                if result.problem and there is not None
                else None
            )
        except FramestormError as error:
            step.problems.append(f"{folder.name} could not be replayed: {error.message}")
            continue
        if not any(one.walked or one.findings for one in result.tries):
            step.problems.append(f"{folder.name} was never walked: {result.problem}")
        elif (entry := _entry(folder, result, other, label)) is not None:
            entry.command = replaying.command_line(here.tools, artifact)
            entries.append(entry)
    step.lines.append(
        f"{count} of {len(expectations.folders())} crashes have an expectation for JDK {label}"
    )
    step.seconds = time.monotonic() - began
    return entries


def _is_judged(folder: Path, here: Subject) -> bool:
    """Not what a library does that is not under test. JFR is part of every JDK."""
    profiler = expectations.profiler_of(folder)
    known = table.BY_NAME.get(profiler)
    of_jdk = not profiler or (known is not None and known.released is None)
    return here.outside.profiler == profiler if here.outside.profiler else of_jdk


def _judge(
    side: Subject,
    artifact: Path,
    expectation: Expectation,
    jvm_args: tuple[str, ...],
    symbolizer: Symbolizer,
) -> Judgement:
    with tempfile.TemporaryDirectory(prefix="framestorm-") as folder:
        return judging.judge(
            side.tools,
            symbolizer,
            artifact,
            expectation,
            Path(folder),
            jvm_args=jvm_args,
            limit=_LIMIT,
        )


def _entry(folder: Path, result: Judgement, other: Judgement | None, label: str) -> Entry | None:
    expectation, shown = result.expectation, result.shown
    if expectation.signature is None:
        return None
    status = expectation.status
    if not result.problem:
        if status != "open":
            return None
        kind, said = KNOWN, f"open on JDK {label}"
    elif status == "open" and not result.hung:
        kind, said = FIXED, result.problem
    else:
        kind, said = NEW, result.problem
    if other is not None and other.problem:
        kind = UNCHANGED
    entry = Entry(kind, "corpus", folder.name, expectation.signature, said)
    entry.how = f"{result.reproduced} of {len(result.tries)} fresh JVMs"
    if other is not None:
        entry.how += f"; base: {other.reproduced} of {len(other.tries)}"
    entry.stack = tuple(str(frame) for frame in shown.frames) if shown is not None else ()
    entry.artifact = expectations.artifact_of(folder, label)
    return entry
