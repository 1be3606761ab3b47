"""The same program without walks: whether its failure has anything to do with walking."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from framestorm_cli.native import processes
from framestorm_cli.native.processes import Popen
from framestorm_cli.stress.cell_process import TERMINATED, CellProcess
from framestorm_cli.stress.cells import Cell
from framestorm_cli.stress.verdicts import HARMED, UNJUDGED

# The program with nothing that samples it.
Program = Callable[[CellProcess], list[str]]


@dataclass
class Baseline:
    """Runs a program once without the agent, in the settings of the cell that failed."""

    program: Program
    _popen: Popen | None = None
    _known: dict[tuple[str, str, str, bool], str] = field(default_factory=dict)

    def judge(self, process: CellProcess, why: str) -> tuple[str, str]:
        """Verdict and reason for a cell whose program failed."""
        cell = process.cell
        key = (cell.workload, cell.gc, cell.jit, process.asked_to_end is not None)
        if key not in self._known:
            self._known[key] = self._run(process, cell)
        failure = self._known[key]
        if failure:
            return UNJUDGED, f"{why}. It {failure} without walks, too"
        return HARMED, f"{why}. Without walks it does not"

    def _run(self, process: CellProcess, cell: Cell) -> str:
        """How the program fails by itself; empty when it does not."""
        folder = process.folder / "without-walks"
        self._popen = popen = processes.start(self.program(process), folder)
        seconds = None if process.workload.own_clock else process.seconds
        asked = ""
        try:
            popen.wait(seconds or process.limit)
        except subprocess.TimeoutExpired:
            processes.end(popen, process.grace)
            if seconds is None:
                return "does not end"
            if process.asked_to_end is None:
                return ""  # it failed earlier with walks
            asked = " when it is asked to end"
        finally:
            for core in folder.glob("core*"):
                core.unlink()
        code = popen.returncode
        return "" if code == 0 or (asked and code in TERMINATED) else f"fails (exit {code}){asked}"

    def end(self) -> None:
        """Of a run that is interrupted: what waits for it learns nothing then."""
        if self._popen is not None:
            processes.end(self._popen)
