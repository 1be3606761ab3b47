"""How sure a rate is."""

import math
from statistics import NormalDist

import msgspec

from framestorm_cli.reports.schema import Number, Share

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


class Proportion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`hits` of `trials`, with Wilson's score interval at 95 %: it is never empty, so that no crash in
    few walks does not read as certainty, and holds for rates near 0, where these are. Everything where
    nothing was tried."""

    hits: Number
    trials: Number
    rate: float | None
    low: Share
    high: Share

    @staticmethod
    def of(hits: int, trials: int) -> "Proportion":
        if not trials:
            return Proportion(hits, trials, None, 0.0, 1.0)
        n, p = trials, hits / trials
        square = _Z * _Z
        middle = (p + square / (2 * n)) / (1 + square / n)
        half = _Z / (1 + square / n) * math.sqrt(p * (1 - p) / n + square / (4 * n * n))
        low = 0.0 if hits == 0 else max(0.0, middle - half)
        high = 1.0 if hits == trials else min(1.0, middle + half)
        return Proportion(hits, trials, p, low, high)

    @property
    def share(self) -> str:
        """Without what it is of: "1.2 %"."""
        return "-" if self.rate is None else _percent(self.rate)

    def __str__(self) -> str:
        if not self.trials:
            return "-"
        low, high = _percent(self.low), _percent(self.high)
        return f"{self.hits:,} of {self.trials:,} ({low} to {high})"


def chance(hits: int, tries: int, others: int) -> float:
    """How likely `hits` of `tries` on one side and none of `others` on the other are when both sides do
    the same (Fisher's exact test, one-sided)."""
    return math.comb(tries, hits) / math.comb(tries + others, hits)


def _percent(share: float) -> str:
    """Two digits that count, without an exponent: 0.00035 %."""
    value = share * 100
    if value == 0:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{digits}f} %"
