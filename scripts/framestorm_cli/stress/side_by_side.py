"""Profilers and walkers side by side: a line for each, workload and interval, and the page of them."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from rich.table import Table

from framestorm_cli.base.live import results_table
from framestorm_cli.base.machine import machine
from framestorm_cli.reports import templates
from framestorm_cli.reports.schema import Number, Share, said
from framestorm_cli.stress import figures, recordings, truth_figures
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.cells import SELF_MODE, UNSAMPLED
from framestorm_cli.stress.plan import Plan

PAGE = "profilers.md"
_OF_TRUTH = {
    "whole": ("right", "in-transition"),
    "cut": (),
    "short": ("short",),
    "wrong": ("invented", "wrong-method", "too-deep", "other-inlining"),
    "misplaced": ("wrong-bci",),
    "none": ("refused",),
}  # verdicts of shadow stacks
_MOST_REASONS = 8  # that a page has of a profiler's traces


class Reason(msgspec.Struct, forbid_unknown_fields=True):
    """Why traces are short, wrong or without a frame of Java; one of them, its innermost frame first."""

    verdict: str
    why: str
    did: Annotated[str, said("The same in words of no program, of wrong ones.")]
    count: Number
    frames: list[str]


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One sampler on one workload at one interval: sums of its repetitions."""

    workload: str
    sampler: str
    interval: Annotated[str, said("That was asked for; empty for the program by itself.")]
    cpu_seconds: Annotated[float, said("User and system time of the processes.")]
    samples: Annotated[int, said("Of threads that run Java.", ge=0)]
    delivered_hz: Annotated[float | None, said("Samples per second of CPU time.")]
    asked_hz: float
    lost: Annotated[
        Share | None, said("Of its own samples, as it says, of those and the delivered.")
    ]
    cost: Annotated[
        float | None,
        said("CPU time for the same work, over that of the program by itself, minus 1."),
    ]
    unfinished: Annotated[
        bool,
        said("The work was not done at the cell's limit: the cost is at least that."),
    ]
    whole: Annotated[
        Share | None, said("Traces down to where their thread begins, of the samples.")
    ]
    cut: Annotated[Share | None, said("Traces as deep as the sampler goes.")]
    short: Annotated[Share | None, said("Traces that end before.")]
    wrong: Annotated[
        Share | None,
        said("Traces with a call that the bytecode has not; of a walker, its findings."),
    ]
    misplaced: Annotated[
        Share | None, said("Traces with a caller at a bytecode index where it makes no such call.")
    ]
    none: Annotated[Share | None, said("Samples without a frame of Java.")]
    judged_by: Annotated[
        str,
        said(
            "`bytecode`; for a walker of the agent `GetStackTrace`; with --truth `shadow stacks`."
        ),
    ]
    verdicts: Annotated[list[str], said("Of its cells.")]
    reasons: list[Reason]


def lines(results: Sequence[CellResult]) -> list[Line]:
    """Empty for a run without profilers."""
    alone = figures.by([one for one in results if one.cell.walker == UNSAMPLED], "workload")
    if not alone:
        return []
    groups = figures.by(results, "workload", "interval_ns", "walker")
    by_itself = {workload: _cpu_per_iteration(group) for (workload,), group in alone.items()}
    return [
        _line(group, by_itself.get(workload))
        for (workload, _, _), group in sorted(groups.items(), key=lambda item: item[0])
    ]


def _cpu_per_iteration(group: Sequence[CellResult], *, unfinished: bool = False) -> float | None:
    """At least that, where the last iteration was `unfinished`, which counts as done."""
    done = sum(int(one.work.get("iterations") or 0) for one in group) + int(unfinished)
    return sum(one.cpu_seconds or 0.0 for one in group) / done if done else None


def _line(group: Sequence[CellResult], by_itself: float | None) -> Line:
    cell = group[0].cell
    cpu = sum(one.cpu_seconds or 0.0 for one in group)
    samples = sum(one.samples for one in group)
    unfinished = any(one.cut_short for one in group)
    own = _cpu_per_iteration(group, unfinished=unfinished)
    sampled = cell.walker != UNSAMPLED
    judge, judged_by = _by_agent, "GetStackTrace"
    if truth_figures.of(one.stats for one in group) is not None:
        judge, judged_by = _by_truth, "shadow stacks"
    elif cell.mode == SELF_MODE:
        judge, judged_by = _by_bytecode, "bytecode"
    return Line(
        workload=cell.workload,
        sampler=cell.walkers,
        interval=cell.interval,
        cpu_seconds=round(cpu, 3),
        samples=samples,
        delivered_hz=round(samples / cpu, 1) if sampled and cpu else None,
        asked_hz=cell.rate_asked,
        lost=_lost(group) if cell.mode == SELF_MODE and samples else None,
        cost=round(own / by_itself - 1, 4) if sampled and own and by_itself else None,
        unfinished=unfinished,
        **(judge(group) if sampled and samples else dict.fromkeys(recordings.VERDICTS)),
        judged_by=judged_by,
        verdicts=sorted({one.verdict for one in group}),
        reasons=_reasons(group),
    )


def _lost(group: Sequence[CellResult]) -> float:
    lost = sum(sum((one.stats.get("lost") or {}).values()) for one in group)
    return round(lost / (lost + sum(one.samples for one in group)), 6)


def _by_bytecode(group: Sequence[CellResult]) -> dict[str, float | None]:
    counts: Counter[str] = Counter()
    for one in group:
        counts.update(one.stats.get("verdicts") or {})
    return {name: round(counts[name] / counts.total(), 6) for name in recordings.VERDICTS}


def _by_truth(group: Sequence[CellResult]) -> dict[str, float | None]:
    """Of the samples that were judged. A trace that is deeper than its thread's stack is wrong."""
    truth = truth_figures.of(one.stats for one in group)
    counts: Counter[str] = Counter()
    for walker in truth.walkers if truth is not None else ():
        counts.update(walker.verdicts)
    judged = counts.total()
    return {
        name: round(sum(counts[one] for one in of) / judged, 6) if judged else None
        for name, of in _OF_TRUTH.items()
    }


def _by_agent(group: Sequence[CellResult]) -> dict[str, float | None]:
    """Of one trace in so many the end is compared: the share of those stands for all."""
    total = figures.of(group)
    traces = total.ok_share or 0.0
    deep = sum(
        int(frames.get("at_depth_limit") or 0)
        for one in group
        for frames in (one.stats.get("frames") or {}).values()
    )
    cut = traces * deep / total.traces if total.traces else 0.0
    wrong = min(traces, total.findings / total.samples)
    short = traces * total.ends_early / total.ends_compared if total.ends_compared else None
    whole = None if short is None else max(0.0, traces - cut - wrong - short)
    shares = {
        "whole": whole,
        "cut": cut,
        "short": short,
        "wrong": wrong,
        "misplaced": 0.0,
        "none": 1 - traces,
    }
    return {name: None if value is None else round(value, 6) for name, value in shares.items()}


def _reasons(group: Sequence[CellResult]) -> list[Reason]:
    found: dict[tuple[str, str], Reason] = {}
    for one in group:
        for example in one.stats.get("examples") or ():
            reason = msgspec.convert(example, Reason)
            known = found.setdefault((reason.verdict, reason.why), reason)
            if known is not reason:
                known.count += reason.count
    return sorted(found.values(), key=lambda one: -one.count)[: _MOST_REASONS * 3]


HEADS = (
    "workload", "sampler", "interval", "samples/CPU s", "of asked", "lost", "cost", "whole", "cut", "short",
    "wrong", "wrong bci", "no Java", "process",
)  # fmt: skip
_WORDS = ("workload", "sampler", "interval", "process")


def table(of: Sequence[Line]) -> Table:
    """For a terminal."""
    made = results_table(HEADS, _WORDS, box=None, pad_edge=False)
    for line in of:
        made.add_row(*cells(line))
    return made


def cells(line: Line) -> list[str]:
    """What a person reads of a line, column by column."""
    delivered = line.delivered_hz
    return [
        line.workload,
        line.sampler,
        line.interval,
        "-" if delivered is None else f"{delivered:,.0f}",
        "-" if delivered is None else f"{delivered / line.asked_hz:.1%}",
        _percent(line.lost),
        "-" if line.cost is None else f"{'> ' * line.unfinished}{line.cost:+.0%}",
        *(_percent(getattr(line, name)) for name in recordings.VERDICTS),
        ", ".join(line.verdicts),
    ]


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return "0" if share == 0 else f"{share:.2%}"


def page(plan: Plan, of: Sequence[Line], command: str) -> str:
    """The run's table, and why traces are not whole, as Markdown."""
    environment = templates.environment("framestorm_cli.stress", html=False)
    return environment.get_template(PAGE).render(
        command=command,
        plan=plan,
        machine=machine(),
        profilers=list(plan.profilers.values()),
        heads=HEADS,
        rules=["---" if name in _WORDS else "---:" for name in HEADS],
        rows=[cells(line) for line in of],
        reasons=_by_sampler(of),
    )


def _by_sampler(of: Sequence[Line]) -> dict[str, list[Any]]:
    """The commonest reasons of each sampler, with the share of that line's samples that they are."""
    found: dict[str, list[Any]] = {}
    for line in of:
        known = found.setdefault(line.sampler, []) if line.reasons else []
        known += [(reason.count / line.samples, line, reason) for reason in line.reasons]
    for sampler, reasons in found.items():
        seen: dict[tuple[str, str], Any] = {}
        for share, line, reason in sorted(reasons, key=lambda one: -one[0]):
            seen.setdefault((reason.verdict, reason.why), (share, line, reason))
        found[sampler] = list(seen.values())[:_MOST_REASONS]
    return found
