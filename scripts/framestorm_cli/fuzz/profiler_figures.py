"""What came of a profiler's walks, for summary.json and for a person."""

from collections import Counter
from typing import Annotated

import msgspec

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.reports.schema import Number, record, said

_SHOWN_FUNCTIONS = 5
_SYMBOLIZER = Symbolizer()  # one for all: it keeps what it has read


class ProfilerRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The profiler under test."""

    name: str
    version: Annotated[str, said("Empty: not known, or that of the JDK.")]
    file: Annotated[str, said("Its library; `jvm`: the JVM's own options start it.")]
    options: Annotated[str, said("%o stands for the folder of each process.")]
    sha256: Annotated[str, said("Of the library.")]
    jvm_args: list[str]


class ProfilerFigures(msgspec.Struct, forbid_unknown_fields=True):
    """What came of the profiler's walks."""

    signal: Annotated[str, said("The one whose handler was called; empty: none was found.")]
    own_siginfo: Annotated[
        bool, said("Whether the handler was given what came with a signal of the profiler's own.")
    ]
    handler_calls: Number
    passed_over: Annotated[
        int,
        said("Walks that a profiler which walks from its own thread did not make.", ge=0),
    ]
    stored: Annotated[
        int | None, said("Samples that the profiler itself counted; null: its count is not known.")
    ]
    counted_calls: Annotated[
        int,
        said(
            "Calls that this number of samples is of: not the last ones of a process that died, nor "
            "those whose result was taken back from the thread."
        ),
    ]
    recorded: Annotated[
        dict[str, int],
        said(
            "Traces that it stored of unmutated walks, held to the scenarios' frames: right, short, wrong "
            "(findings), missing. Empty: a short run, or none can be read."
        ),
    ]
    contained: Annotated[int, said("Faults that it survived by itself; no findings.", ge=0)]
    contained_in: Annotated[
        dict[str, int], said("How often, by function; the most frequent first.")
    ]


def of(walked: OutsideWalker, totals: Json) -> ProfilerFigures | None:
    if walked.walker != outside.PROFILER:
        return None
    counted = totals.get("by_walker", {}).get(walked.walker, {})
    told = totals.get("profiler", {})
    return ProfilerFigures(
        signal=processes.signal_name(told["signal"]) if told.get("signal") else "",
        own_siginfo=told.get("own_siginfo", False),
        handler_calls=counted.get("walks", 0) - counted.get("not_called", 0),
        passed_over=counted.get("not_called", 0),
        stored=counted.get("succeeded", 0) if told.get("counts_samples") else None,
        counted_calls=counted.get("counted", 0),
        recorded=counted.get("recorded", {}),
        contained=counted.get("contained_faults", 0),
        contained_in=_by_function(walked, told.get("contained_places", {})),
    )


def _by_function(walked: OutsideWalker, places: dict[str, int]) -> dict[str, int]:
    """Counts of places, by the functions that the profiler's library has there."""
    modules = {library.name: str(library) for library in walked.libraries}
    counts: Counter[str] = Counter()
    for place, count in places.items():
        frame = _SYMBOLIZER.frame(place, modules, is_return=False)
        counts[frame.name if frame.function else place] += count
    return dict(counts.most_common())


def named(walked: OutsideWalker) -> ProfilerRecord | None:
    if walked.walker != outside.PROFILER:
        return None
    return record(ProfilerRecord, walked, jvm_args=[*walked.jvm_args])


def lines(own: ProfilerFigures) -> list[str]:
    """For the printed summary."""
    stored = "an unknown number of" if own.stored is None else f"{own.stored:,}"
    found = [
        f"{own.handler_calls:,} calls of its handler ({own.signal or 'no signal'}), {stored} samples "
        f"stored of {own.counted_calls:,} of them, {own.contained:,} faults that it survived"
    ]
    if own.recorded:
        judged = ", ".join(f"{count:,} {verdict}" for verdict, count in own.recorded.items())
        found.append(f"traces that it stored of unmutated walks: {judged}")
    if own.passed_over:
        found.append(f"{own.passed_over:,} walks that its own thread passed over")
    if own.contained_in:
        functions = list(own.contained_in.items())[:_SHOWN_FUNCTIONS]
        found.append("survived in " + ", ".join(f"{name} {count:,}" for name, count in functions))
    return found
