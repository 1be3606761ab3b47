"""Lines on a terminal that renew themselves; plain lines elsewhere."""

import time
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

PLAIN_EVERY = 5.0  # seconds


def results_console() -> Console:
    """For stdout; wide enough for a table where there is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 140)
    return console


def results_table(titles: Iterable[str], words: Collection[str], **more: Any) -> Table:
    """Columns of `words` stand to the left, those of numbers to the right. `more`: of rich's Table."""
    table = Table(**more)
    for title in titles:
        table.add_column(title, justify="left" if title in words else "right")
    return table


def duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes}:{rest:02d}"


class LiveLines:
    """What renews itself: use as a context manager, and show() as often as there is news."""

    plain_every = PLAIN_EVERY

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._last_line = 0.0

    @property
    def on_terminal(self) -> bool:
        return self._console.is_terminal

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, line: Callable[[], str], more: Callable[[], Iterable[str]] = tuple) -> None:
        """`line` is all that a log gets, `more` what a terminal has below it."""
        if self._live is not None:
            table = Table.grid(padding=(0, 2))
            for row in (line(), *more()):
                table.add_row(row)
            self._live.update(table, refresh=True)
        elif time.monotonic() - self._last_line >= self.plain_every:
            self._last_line = time.monotonic()
            self.say(line())

    def say(self, line: str) -> None:
        """A line where there is no terminal."""
        self._console.print(line, highlight=False, soft_wrap=True)
