"""A run's findings as they come, while its processes go on."""

from pathlib import Path

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.target_process import Process
from framestorm_cli.triage import collecting


class Following:
    """Each finding once."""

    def __init__(self, symbolizer: Symbolizer) -> None:
        self._symbolizer = symbolizer
        self._taken: dict[Path, int] = {}

    def taken(self, process: Process) -> int:
        """How many of a process's findings were given, the first ones."""
        return self._taken.get(process.folder, 0)

    def new(self, run: Run) -> list[Finding]:
        """Those that came since the last call."""
        found: list[Finding] = []
        for process in run.processes:
            before = self.taken(process)
            own = collecting.of_file(process.file, self._symbolizer, process.target, before)
            self._taken[process.folder] = before + len(own)
            found += own
        return found
