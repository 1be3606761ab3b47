"""What samples came to that were held against shadow stacks (stress/shadow), by walker."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from framestorm_cli.binaries.symbols import demangled
from framestorm_cli.findings.records import Json
from framestorm_cli.reports.schema import said
from framestorm_cli.stress.proportion import Proportion

WRONG = ("short", "too-deep", "invented", "wrong-method", "wrong-bci", "other-inlining")
HEADS = (
    "walker", "judged", "wrong", "wrong, top free", *WRONG, "refused", "in transition", "not judged",
    "at safepoints", "sandwich",
)  # fmt: skip


_POSITIONS = 20  # of wrong traces, and as many of refusals


class Position(msgspec.Struct, forbid_unknown_fields=True, order=True):
    """Where samples were wrong, or refused."""

    count: Annotated[int, said("Samples.", ge=1)]
    verdict: str
    error: Annotated[str, said("Of a refusal; else empty.")]
    at: Annotated[
        str, said("What the thread ran: compiled code by its tier, all else by its name.")
    ]


class WalkerTruth(msgspec.Struct, forbid_unknown_fields=True):
    """Sums of cells."""

    walker: str
    judged: Annotated[int, said("Samples, those with an error among them.", ge=0)]
    wrong: Annotated[
        Proportion, said("Of those with a trace: traces that are not the thread's own.")
    ]
    wrong_top_free: Annotated[
        Proportion,
        said("Of the same: those without all of the thread's frames, whatever stands above these."),
    ]
    verdicts: dict[str, int]
    not_judged: Annotated[dict[str, int], said("By the reason.")]
    by_code: Annotated[
        dict[str, Proportion], said("Wrong of judged samples, by what the thread ran.")
    ]
    positions: Annotated[
        list[Position], said("The most frequent of wrong traces, then of refusals.")
    ]
    safepoint: Annotated[
        Proportion,
        said("Walks from native methods that differ from GetStackTrace in the same call."),
    ]
    sandwich: Annotated[
        Proportion,
        said("Samples of which frames that had not returned differ from a later GetStackTrace."),
    ]


class Truth(msgspec.Struct, forbid_unknown_fields=True):
    reference: Annotated[
        Proportion, said("Answers of GetStackTrace that differ from the shadow stack.")
    ]
    walkers: list[WalkerTruth]


@dataclass
class _Sum:
    verdicts: Counter[str] = field(default_factory=Counter)
    more_on_top: int = 0
    not_judged: Counter[str] = field(default_factory=Counter)
    by_code: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    positions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    layers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def of(stats: Iterable[Json]) -> Truth | None:
    """All of them together; None where no samples were held against a shadow stack."""
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    reference: Counter[str] = Counter()
    for truth in filter(None, (one.get("truth") for one in stats)):
        reference.update(truth["reference"])
        for name, one in truth["walkers"].items():
            own = sums[name]
            own.verdicts.update(one["verdicts"])
            own.more_on_top += one["more_on_top"]
            own.not_judged.update(one["not_judged"])
            for kind, counts in one["by_code"].items():
                own.by_code[kind].update(counts)
            for place in one["positions"]:
                key = (place["verdict"], place["error"], place["at"])
                own.positions[key] += place["count"]
            for layer in ("safepoint", "sandwich"):
                own.layers[layer].update(one[layer])
    if not sums:
        return None
    return Truth(_layer(reference), [_walker(name, own) for name, own in sorted(sums.items())])


def _walker(name: str, own: _Sum) -> WalkerTruth:
    judged = own.verdicts.total()
    traces = judged - own.verdicts["refused"]
    wrong = sum(own.verdicts[one] for one in WRONG)
    return WalkerTruth(
        walker=name,
        judged=judged,
        wrong=Proportion.of(wrong, traces),
        wrong_top_free=Proportion.of(wrong - own.more_on_top, traces),
        verdicts=dict(own.verdicts),
        not_judged=dict(own.not_judged),
        by_code={
            kind: Proportion.of(counts["wrong"], counts["judged"])
            for kind, counts in sorted(own.by_code.items())
        },
        positions=_positions(own.positions),
        safepoint=_layer(own.layers["safepoint"]),
        sandwich=_layer(own.layers["sandwich"]),
    )


def _positions(counts: Counter[tuple[str, str, str]]) -> list[Position]:
    every = sorted((Position(count, *key) for key, count in counts.items()), reverse=True)
    kept = []
    for refused in (False, True):
        kept += [one for one in every if (one.verdict == "refused") is refused][:_POSITIONS]
    # "native or VM _ZN7JavaThread..." and the like: the last word is what a linker calls it.
    words = [one.at.rpartition(" ") for one in kept]
    names = demangled([name for *_, name in words])
    return [
        msgspec.structs.replace(one, at=kind + space + name.partition("(")[0])
        for one, (kind, space, _), name in zip(kept, words, names, strict=True)
    ]


def _layer(counts: Counter[str]) -> Proportion:
    return Proportion.of(counts["broken"], counts["made"])


def cells(one: WalkerTruth) -> list[str]:
    """A line of the table that HEADS is the head of."""
    shown = [one.walker, f"{one.judged:,}", str(one.wrong), str(one.wrong_top_free)]
    shown += [
        f"{one.verdicts.get(verdict, 0):,}" for verdict in (*WRONG, "refused", "in-transition")
    ]
    seen = one.judged + sum(one.not_judged.values())
    shown.append(f"{(seen - one.judged) / seen:.1%}" if seen else "-")
    return [
        *shown,
        *(f"{layer.hits:,} of {layer.trials:,}" for layer in (one.safepoint, one.sandwich)),
    ]


def lines(truth: Truth) -> list[str]:
    """For the summary that a person reads."""
    said_of = [f"truth, GetStackTrace: differs from the shadow stack in {truth.reference}"]
    return said_of + [
        f"truth, {one.walker}: {one.judged:,} judged, wrong {one.wrong}; refused "
        f"{one.verdicts.get('refused', 0):,}; unlike GetStackTrace at safepoints "
        f"{one.safepoint.hits:,} of {one.safepoint.trials:,}, in frames that did not return "
        f"{one.sandwich.hits:,} of {one.sandwich.trials:,}"
        for one in truth.walkers
    ]
