"""What became of the mutants: killed, or why not."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from framestorm_cli.detect.measuring import Measured
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.detect.subjects import CONTROLS
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress.proportion import Proportion

KILLED, AT_START, SURVIVED, IDLE = OUTCOMES = (
    "killed", "killed: no JVM starts", "survived", "never acted"
)  # fmt: skip


def outcomes(runs: Sequence[Measured]) -> dict[str, str]:
    """Of each mutant that was looked for."""
    of: dict[str, list[Measured]] = {}
    for one in runs:
        if one.bug not in CONTROLS:
            of.setdefault(one.bug, []).append(one)
    return {mutant: _outcome(own) for mutant, own in of.items()}


def _outcome(own: Sequence[Measured]) -> str:
    if any(one.found is not None for one in own):
        return KILLED
    if any(one.problem for one in own):
        return AT_START
    return SURVIVED if any(one.walks or one.triggered for one in own) else IDLE


def markdown(runs: Sequence[Measured], mutants: Mapping[str, Mutant]) -> str:
    """`mutants`: all that were to be looked for."""
    became = outcomes(runs)
    if not became:
        return "No mutant was looked for.\n"
    own = [one for one in runs if one.bug not in CONTROLS]
    hours = sum(one.wall for one in runs) / 3600
    head = (
        f"{len(became)} of {len(mutants)} mutants looked for, in {hours:.1f} hours of one core without "
        f"replays. Killed of all: {_killed(list(became.values()))}."
    )
    rules = _by(became, lambda name: mutants[name].rule)
    files = _by(became, lambda name: Path(mutants[name].file).name)
    titles = ("", *OUTCOMES, "killed of those that acted")
    by_whom = Counter(
        (one.contestant, one.oracle or "none: a fault or a death", ", ".join(one.walkers))
        for one in own
        if one.found is not None
    )
    survivors = [name for name, outcome in sorted(became.items()) if outcome == SURVIVED]
    parts = [
        head,
        table(titles, rules, len(titles) - 1),
        table(titles, files, len(titles) - 1),
        table(
            ("killed by", "oracle", "walkers", "mutants"),
            [(*who, str(count)) for who, count in by_whom.most_common()],
            1,
        ),
    ]
    if survivors:
        parts.append(_survivors(survivors, own, mutants))
    return "\n\n".join(parts) + "\n"


def _killed(outcomes: Sequence[str]) -> str:
    return str(Proportion.of(sum(one in (KILLED, AT_START) for one in outcomes), len(outcomes)))


def _by(became: Mapping[str, str], key: Callable[[str], str]) -> list[tuple[str, ...]]:
    rows = []
    for value in [*sorted({key(name) for name in became}), ""]:
        own = [outcome for name, outcome in became.items() if value in ("", key(name))]
        triggered = [outcome for outcome in own if outcome != IDLE]
        counts = Counter(own)
        cells = [str(counts[outcome]) for outcome in OUTCOMES]
        rows.append((value or "all", *cells, _killed(triggered)))
    return rows


def _survivors(
    names: Sequence[str], runs: Sequence[Measured], mutants: Mapping[str, Mutant]
) -> str:
    rows = []
    for name in names:
        one = mutants[name]
        triggered = sum(run.triggered for run in runs if run.bug == name)
        place = f"{Path(one.file).name}:{one.line}"
        change = f"`{one.was}` becomes `{one.becomes}`".replace("|", "\\|")
        rows.append((name, place, f"`{one.function}`", one.rule, change, f"{triggered:,}"))
    return table(("survivor", "place", "function", "rule", "change", "triggered"), rows, 1)
