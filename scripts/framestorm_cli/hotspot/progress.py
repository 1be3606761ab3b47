"""How far a compilation of libjvm is."""

from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.live import LiveLines

_COMPILED = b"(for libjvm.so)\n"  # ends make's line about each file


class Compiling(LiveLines):
    """How many files make has compiled, by its log. Use as a context manager and call it now and then.

    `files`: about how many there are; 0 when some were compiled before, since make does not say how many
    of these it compiles again."""

    plain_every = 30.0  # seconds

    def __init__(self, what: str, log: Path, files: int) -> None:
        super().__init__()
        self._what = what
        self._log = log
        self._files = files

    def __call__(self) -> None:
        self.show(self._line)

    def _line(self) -> str:
        made = self._log.read_bytes().count(_COMPILED) if self._log.exists() else 0
        total = f" of about {self._files}" if self._files >= made and self._files else ""
        return f"{self._what}: {made}{total} files compiled"

    def say(self, line: str) -> None:
        steps.say(line)
