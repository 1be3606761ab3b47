"""Lists in words."""

from collections.abc import Sequence


def shortened(items: Sequence[str], most: int, between: str = ", ", last: str = " and ") -> str:
    """Those that are shown, and how many others there are: "a, b and 3 more"."""
    more = f"{last}{len(items) - most} more" if len(items) > most else ""
    return between.join(items[:most]) + more
