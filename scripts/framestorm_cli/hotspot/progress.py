"""How far a compilation of libjvm is."""

from collections.abc import Callable

from framestorm_cli.base import steps
from framestorm_cli.base.live import LiveLines


class Compiling(LiveLines):
    """How many objects there are of those expected. Use as a context manager and call it now and then.

    When all were there at the start, some of them are made again; make does not say how many, so only
    `again`, how many were by now, is shown.
    """

    plain_every = 30.0  # seconds

    def __init__(
        self, what: str, objects: Callable[[], int], expected: int, again: Callable[[], int]
    ) -> None:
        super().__init__()
        self._what = what
        self._objects = objects
        self._expected = expected
        self._again = again if objects() >= expected else None

    def __call__(self) -> None:
        self.show(self._line)

    def _line(self) -> str:
        if self._again is not None:
            return f"{self._what}: {self._again()} files compiled again"
        made = self._objects()
        return f"{self._what}: {made} of {max(made, self._expected)} files"

    def say(self, line: str) -> None:
        steps.say(line)
