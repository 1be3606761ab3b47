"""What became of the mutants: killed, or why not."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from framestorm_cli.detect.measuring import Kill, Measured
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress.proportion import Proportion

KILLED, SURVIVED, IDLE = OUTCOMES = ("killed", "survived", "never acted")


def outcomes(surveys: Sequence[Measured], mutants: Sequence[Mutant]) -> dict[str, str]:
    return {one.id: _outcome(surveys, one.number) for one in mutants}


def _outcome(surveys: Sequence[Measured], number: int) -> str:
    if any(number in one.kills for one in surveys):
        return KILLED
    return SURVIVED if _acted(surveys, number) else IDLE


def _acted(surveys: Sequence[Measured], number: int) -> int:
    return sum(one.acts.get(number, (0, 0))[1] for one in surveys)


def markdown(surveys: Sequence[Measured], mutants: Sequence[Mutant]) -> str:
    """`mutants`: those to be told of."""
    became = outcomes(surveys, mutants)
    by_id = {one.id: one for one in mutants}
    hours = sum(one.wall for one in surveys) / 3600
    acted = [outcome for outcome in became.values() if outcome != IDLE]
    head = (
        f"{len(mutants)} mutants, in {hours:.1f} hours of one core. Killed of all: "
        f"{_killed(list(became.values()))}; of those that acted: {_killed(acted)}."
    )
    titles = ("", *OUTCOMES, "killed of those that acted")
    rules = _by(became, lambda name: by_id[name].rule)
    files = _by(became, lambda name: Path(by_id[name].file).name)
    kills = [_first_kill(surveys, one.number) for one in mutants if became[one.id] == KILLED]
    by_whom = Counter(
        (one.contestant, kill.oracle or "none: a fault or a death", ", ".join(one.walkers))
        for one, kill in kills
    )
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
    if survivors := [one for one in mutants if became[one.id] == SURVIVED]:
        parts.append(_survivors(survivors, surveys))
    return "\n\n".join(parts) + "\n"


def _first_kill(surveys: Sequence[Measured], number: int) -> tuple[Measured, Kill]:
    return next((one, one.kills[number]) for one in surveys if number in one.kills)


def _killed(outcomes: Sequence[str]) -> str:
    return str(Proportion.of(outcomes.count(KILLED), len(outcomes)))


def _by(became: Mapping[str, str], key: Callable[[str], str]) -> list[tuple[str, ...]]:
    rows = []
    for value in [*sorted({key(name) for name in became}), ""]:
        own = [outcome for name, outcome in became.items() if value in ("", key(name))]
        acted = [outcome for outcome in own if outcome != IDLE]
        counts = Counter(own)
        cells = [str(counts[outcome]) for outcome in OUTCOMES]
        rows.append((value or "all", *cells, _killed(acted)))
    return rows


def _survivors(mutants: Sequence[Mutant], surveys: Sequence[Measured]) -> str:
    rows = []
    for one in mutants:
        tries = sum(survey.tried.get(one.number, 0) for survey in surveys)
        place = f"{Path(one.file).name}:{one.line}"
        change = f"`{one.was}` becomes `{one.becomes}`".replace("|", "\\|")
        acted = _acted(surveys, one.number)
        rows.append(
            (one.id, place, f"`{one.function}`", one.rule, change, f"{acted:,}", f"{tries:,}")
        )
    titles = ("survivor", "place", "function", "rule", "change", "acted", "tried")
    return table(titles, rows, 2)
