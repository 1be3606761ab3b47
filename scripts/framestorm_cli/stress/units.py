"""Intervals and durations as people write them."""

import re

from framestorm_cli.base.errors import FramestormError

_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def interval_ns(text: str) -> int:
    """Nanoseconds of "100us". Raises FramestormError."""
    matched = _PART.fullmatch(text.strip().replace("µ", "u"))
    if matched is None or matched[2] not in _NANOSECONDS:
        raise FramestormError(f"{text!r} is no interval: write 100us, 10us, 1ms")
    value = round(float(matched[1]) * _NANOSECONDS[matched[2]])
    if value < 1:
        raise FramestormError(f"an interval of {text} is too short: 1ns is the least")
    return value


def interval_text(value: int) -> str:
    """The shortest exact form: "100us"."""
    for unit in ("s", "ms", "us"):
        if value % _NANOSECONDS[unit] == 0:
            return f"{value // _NANOSECONDS[unit]}{unit}"
    return f"{value}ns"


def seconds(text: str) -> float:
    """Seconds of "90", "2m", "1h30m". Raises FramestormError."""
    plain = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        total = float(plain)
    else:
        parts = _PART.findall(plain)
        if _PART.sub("", plain).strip() or not parts or any(u not in _SECONDS for _, u in parts):
            raise FramestormError(f"{text!r} is no duration: write 90s, 2m, 1h30m")
        total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if total <= 0:
        raise FramestormError(f"a duration of {text} is no time at all")
    return total


def duration_text(value: float) -> str:
    """For people: "3.8 s", "2 min", "1 h 30 min"."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def nanoseconds_text(value: float) -> str:
    """A latency for people: "480 ns", "12.3 us", "1.2 ms"."""
    for unit in ("s", "ms", "us"):
        size = _NANOSECONDS[unit]
        if value >= size:
            number = value / size
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{value:.0f} ns"
