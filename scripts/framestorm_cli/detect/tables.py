"""What the runs come to: per contestant, and per bug."""

import statistics
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from framestorm_cli.base.machine import Machine
from framestorm_cli.detect import catalogue, survival
from framestorm_cli.detect.measuring import Measured
from framestorm_cli.detect.subjects import CONTROLS
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress.proportion import Proportion


def counted(runs: Sequence[Measured]) -> list[Measured]:
    """Runs on a bug that looked."""
    return [one for one in runs if one.bug not in CONTROLS and not one.problem]


def missed(runs: Sequence[Measured]) -> list[str]:
    """Bugs whose canary was triggered and that nobody found."""
    own = counted(runs)
    found = {one.bug for one in own if one.found is not None}
    return sorted({one.bug for one in own if one.triggered} - found)


def contestants(runs: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(one.contestant for one in runs))


def median_time(runs: Sequence[Measured]) -> float | None:
    """The median over runs of seconds until found; None: half of them or more did not find it."""
    times = [one.found if one.found is not None else float("inf") for one in runs]
    middle = statistics.median_low(times) if times else float("inf")
    return None if middle == float("inf") else middle


CONTESTANT_TITLES = (
    "contestant", "found of planted", "found of all listed", "of those triggered", "runs that found",
    "median s", "replays", "names the function", "reports without a bug, per CPU hour",
)  # fmt: skip


def head(runs: Sequence[Measured], machine: Machine) -> str:
    own = counted(runs)
    budgets = ", ".join(f"{one:.0f} s" for one in sorted({one.budget for one in own}))
    planted, listed = catalogue.bugs(), catalogue.listed().values()
    looked_for = {one.bug for one in own}
    bugs = len(looked_for & set(planted))
    what = (
        f"{bugs} of {len(planted)} planted bugs looked for. The catalogue lists {len(listed)} fixes; "
        f"{sum(map(bool, listed))} are planted, the others count as not found. "
        if bugs
        else f"{len(looked_for)} mutants. "
    )
    share = sum(one.cpu for one in own) / max(1.0, sum(one.wall for one in own))
    return (
        f"{what}{len(own)} runs of {budgets} on one core each ({machine.cores} cores, {machine.arch}), of "
        f"which they used {share:.0%}: the rest was waiting, or other work on the machine."
    )


def markdown(runs: Sequence[Measured], machine: Machine) -> str:
    own = counted(runs)
    if not own:
        return "No run on a planted bug counts.\n"
    parts = [head(runs, machine), table(CONTESTANT_TITLES, contestant_rows(runs), 8)]
    if rows := compared_rows(runs):
        parts.append(
            table(("one", "other", "p of times (log-rank)", "p of shares (Fisher)"), rows, 2)
        )
    if rows := oracle_rows(own):
        parts.append(table(ORACLE_TITLES, rows, 3))
    titles, rows = bug_rows(own)
    parts.append(table(titles, rows, len(titles) - 2))
    return "\n\n".join(parts) + "\n"


ORACLE_TITLES = ("oracle", "runs that it found first in", "found without it", "median s without it")


def oracle_rows(own: Sequence[Measured]) -> list[tuple[str, ...]]:
    """What each oracle is worth, by runs that went on to their end."""
    hits = [one for one in own if one.whole and one.found is not None]
    rows: list[tuple[str, ...]] = []
    for oracle in sorted({one.oracle for one in hits}):
        first = [one for one in hits if one.oracle == oracle]
        others = [one.without_it for one in first if one.without_it is not None]
        found = Proportion.of(len(others), len(first))
        middle = _seconds(statistics.median_low(others) if others else None)
        rows.append((oracle or "none: the process died", str(len(first)), str(found), middle))
    return rows


def compared_rows(runs: Sequence[Measured]) -> list[tuple[str, ...]]:
    return [
        (
            f"{one.one}, {one.runs} runs", f"{one.other}, {one.others} runs", f"{one.times:.2g}",
            f"{one.share:.2g}",
        )
        for one in survival.compared(counted(runs))
    ]  # fmt: skip


def contestant_rows(runs: Sequence[Measured]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in contestants(runs):
        own = [one for one in counted(runs) if one.contestant == name]
        if not own:
            continue
        bugs = {one.bug for one in own}
        triggered = {one.bug for one in own if one.triggered}
        found = {one.bug for one in own if one.found is not None}
        hits = [one for one in own if one.found is not None]
        named = [one for one in hits if one.names_it is not None]
        rows.append(
            (
                name,
                str(Proportion.of(len(found), len(bugs))),
                _of_all_listed(found, bugs),
                str(Proportion.of(len(found & triggered), len(triggered))),
                str(Proportion.of(len(hits), len(own))),
                _seconds(median_time(own)),
                _replays(hits),
                str(Proportion.of(sum(bool(one.names_it) for one in named), len(named))),
                _false_alarms(runs, name),
            )
        )
    return rows


def _of_all_listed(found: AbstractSet[str], bugs: AbstractSet[str]) -> str:
    """Fixes all of whose bugs were found, of the whole catalogue; `-` where not every planted bug was looked
    for."""
    if not bugs >= catalogue.bugs().keys():
        return "-"
    listed = catalogue.listed().values()
    hits = sum(1 for planted in listed if planted and planted <= found)
    return f"{hits} of {len(listed)} ({hits / len(listed):.0%})"


def _replays(hits: Sequence[Measured]) -> str:
    return str(Proportion.of(sum(one.replayed for one in hits), sum(one.replays for one in hits)))


def _false_alarms(runs: Sequence[Measured], name: str) -> str:
    """Signatures that the JDK without a bug showed. AsyncGetCallTrace's own bugs are among them."""
    own = [
        one for one in runs if one.bug in CONTROLS and one.contestant == name and not one.problem
    ]
    hours = sum(one.cpu for one in own) / 3600
    return f"{sum(len(one.signatures) for one in own) / hours:.0f}" if hours else "-"


def bug_rows(own: Sequence[Measured]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles and rows."""
    known = catalogue.bugs()
    names = contestants(own)
    rows: list[tuple[str, ...]] = []
    for bug in dict.fromkeys(one.bug for one in own):
        of_bug = [one for one in own if one.bug == bug]
        triggered = sum(1 for one in of_bug if one.triggered)
        cells = []
        for name in names:
            runs = [one for one in of_bug if one.contestant == name]
            hits = sum(1 for one in runs if one.found is not None)
            middle = _seconds(median_time(runs)) if any(one.asked for one in runs) else "not asked"
            cells.append(f"{hits} of {len(runs)}, {middle}" if runs else "")
        entry = known.get(bug)
        rows.append((bug, entry.kind if entry else "", f"{triggered} of {len(of_bug)}", *cells))
    return ("bug", "class", "triggered in runs", *names), rows


def first_reports(runs: Sequence[Measured]) -> list[Measured]:
    """Of each bug and contestant, the run that found it soonest."""
    soonest: dict[tuple[str, str], Measured] = {}
    for one in counted(runs):
        key = (one.bug, one.contestant)
        if one.found is not None and (
            key not in soonest or one.found < (soonest[key].found or 0.0)
        ):
            soonest[key] = one
    return [soonest[key] for key in sorted(soonest)]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
