"""What became of the mutants: killed, or why not."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from framestorm_cli.detect import equivalents
from framestorm_cli.detect.measuring import Kill, Measured
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress.proportion import Proportion

KILLED, SURVIVED, SAME, EQUIVALENT, OUTSIDE, IDLE = OUTCOMES = (
    "killed", "survived", "same answers", "equivalent", "in no walk", "never acted"
)  # fmt: skip


def outcomes(surveys: Sequence[Measured], mutants: Sequence[Mutant]) -> dict[str, str]:
    equivalent = equivalents.among(mutants)
    return {
        one.id: _outcome(surveys, one.number, equivalent=one.number in equivalent)
        for one in mutants
    }


def _outcome(surveys: Sequence[Measured], number: int, *, equivalent: bool) -> str:
    if any(number in one.kills for one in surveys):
        return KILLED
    if equivalent:
        return EQUIVALENT
    if _tries(surveys, number):
        return SURVIVED if _differed(surveys, number) else SAME
    return OUTSIDE if _acted(surveys, number) else IDLE


def _acted(surveys: Sequence[Measured], number: int) -> int:
    return sum(one.acts.get(number, (0, 0))[1] for one in surveys)


def _tries(surveys: Sequence[Measured], number: int) -> int:
    return sum(one.tried.get(number, 0) for one in surveys)


def _differed(surveys: Sequence[Measured], number: int) -> int:
    return sum(one.differed.get(number, 0) for one in surveys)


def markdown(surveys: Sequence[Measured], mutants: Sequence[Mutant]) -> str:
    """`mutants`: those to be told of."""
    became = outcomes(surveys, mutants)
    by_id = {one.id: one for one in mutants}
    hours = sum(one.wall for one in surveys) / 3600
    head = (
        f"{len(mutants)} mutants, in {hours:.1f} hours of one core. Killed of all: "
        f"{_killed(list(became.values()))}; of those that acted in a walk that found nothing without them, "
        f"and are not known to be equivalent: {_killed(_counted(became.values()))}; of those with which a "
        f"walk answered otherwise: {_killed(_told_apart(became.values()))}."
    )
    equivalent = equivalents.among(mutants)
    if wrong := [
        one.id for one in mutants if one.number in equivalent and became[one.id] == KILLED
    ]:
        head += f" Said to be equivalent and killed: {', '.join(wrong)}."
    titles = ("", *OUTCOMES, "killed of those tried", "of those that answered otherwise")
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
    if survivors := [one for one in mutants if became[one.id] in (SURVIVED, SAME)]:
        parts.append(_survivors(survivors, surveys))
    return "\n\n".join(parts) + "\n"


def _first_kill(surveys: Sequence[Measured], number: int) -> tuple[Measured, Kill]:
    return next((one, one.kills[number]) for one in surveys if number in one.kills)


def _counted(outcomes: Iterable[str]) -> list[str]:
    return [outcome for outcome in outcomes if outcome in (KILLED, SURVIVED, SAME)]


def _told_apart(outcomes: Iterable[str]) -> list[str]:
    return [outcome for outcome in outcomes if outcome in (KILLED, SURVIVED)]


def _killed(outcomes: Sequence[str]) -> str:
    return str(Proportion.of(outcomes.count(KILLED), len(outcomes)))


def _by(became: Mapping[str, str], key: Callable[[str], str]) -> list[tuple[str, ...]]:
    rows = []
    for value in [*sorted({key(name) for name in became}), ""]:
        own = [outcome for name, outcome in became.items() if value in ("", key(name))]
        counts = Counter(own)
        cells = [str(counts[outcome]) for outcome in OUTCOMES]
        rows.append((value or "all", *cells, _killed(_counted(own)), _killed(_told_apart(own))))
    return rows


def _survivors(mutants: Sequence[Mutant], surveys: Sequence[Measured]) -> str:
    rows = []
    for one in mutants:
        differed, tries = _differed(surveys, one.number), _tries(surveys, one.number)
        place = f"{Path(one.file).name}:{one.line}"
        change = f"`{one.was}` becomes `{one.becomes}`".replace("|", "\\|")
        acted = _acted(surveys, one.number)
        rows.append(
            (
                one.id,
                place,
                f"`{one.function}`",
                one.rule,
                change,
                f"{acted:,}",
                f"{tries:,}",
                f"{differed:,}",
            )
        )
    titles = (
        "survivor",
        "place",
        "function",
        "rule",
        "change",
        "acted",
        "tried",
        "answered otherwise",
    )
    return table(titles, rows, 3)
