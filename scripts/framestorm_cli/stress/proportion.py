"""How sure a rate is."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import msgspec

from framestorm_cli.reports.schema import Number, Share

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


class ProportionRecord(msgspec.Struct, forbid_unknown_fields=True):
    """With Wilson's score interval at 95 %."""

    hits: Number
    trials: Number
    rate: float | None
    low: Share
    high: Share


@dataclass(frozen=True)
class Proportion:
    """`hits` of `trials`, with Wilson's score interval: it is never empty, so that no crash in few walks
    does not read as certainty, and holds for rates near 0, where these are."""

    hits: int
    trials: int

    @property
    def rate(self) -> float | None:
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end at CONFIDENCE; everything where nothing was tried."""
        if not self.trials:
            return 0.0, 1.0
        n, p = self.trials, self.hits / self.trials
        square = _Z * _Z
        middle = (p + square / (2 * n)) / (1 + square / n)
        half = _Z / (1 + square / n) * math.sqrt(p * (1 - p) / n + square / (4 * n * n))
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        high = 1.0 if self.hits == self.trials else min(1.0, middle + half)
        return low, high

    @property
    def record(self) -> "ProportionRecord":
        return ProportionRecord(self.hits, self.trials, self.rate, *self.interval)

    def __str__(self) -> str:
        if not self.trials:
            return "-"
        low, high = self.interval
        return f"{self.hits:,} of {self.trials:,} ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    """Two digits that count, without an exponent: 0.00035 %."""
    value = share * 100
    if value == 0:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{digits}f} %"
