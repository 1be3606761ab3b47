"""Numbers as programs write them."""


def parse_int(text: str) -> int | None:
    """A number as native programs write them; None when it is none."""
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return None
