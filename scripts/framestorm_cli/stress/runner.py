"""Runs the cells of a plan, some at once, and keeps what each came to.

plan ──> CellProcess ──> out/<run>/cells/<number>-<name>/  log.txt agent/ hs_err*.log
              │ ended, hung, or interrupted
              └──> CellResult ──> cell.json: the cell has finished, and stays finished
"""

import errno
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import processes
from framestorm_cli.stress import agent, cell_process, cell_result, cells
from framestorm_cli.stress.baseline import Baseline
from framestorm_cli.stress.cell_process import CellProcess
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.tools import Tools
from framestorm_cli.stress.verdicts import UNJUDGED
from framestorm_cli.stress.workloads import Workload

POLL = 0.2
CELLS = "cells"
LOWEST_FREE = 100 << 20  # bytes below the out folder, before each cell
INTERRUPTED = "interrupted"


@dataclass
class StressRun:
    """A run as it stands: finished cells in the order they finished, those that are running, why it
    ended early if it did."""

    plan: Plan
    out: Path
    finished: list[CellResult] = field(default_factory=list)
    active: list[CellProcess] = field(default_factory=list)
    resumed: int = 0  # of the finished: by an earlier run
    stopped: str = ""
    began: float = field(default_factory=time.monotonic)
    wall: float = 0.0

    @property
    def samples(self) -> int:
        running = sum(int(one.stats.get("samples") or 0) for one in self.active)
        return running + sum(result.samples for result in self.finished)

    @property
    def findings(self) -> int:
        running = sum(int(one.stats.get("findings") or 0) for one in self.active)
        return running + sum(result.findings + int(result.died) for result in self.finished)

    @property
    def unfinished(self) -> int:
        return len(self.plan.cells) - len(self.finished)


class Runner:
    """`workloads` has every workload that the plan's cells name."""

    def __init__(
        self, plan: Plan, out: Path, found: Tools, workloads: Mapping[str, Workload]
    ) -> None:
        self._plan = plan
        self._java = found.java
        self._jdk = found.jdk
        self._workloads = workloads
        self._baseline = Baseline(self._alone)
        self._concluding: dict[int, Future[CellResult]] = {}  # by the cell's number
        self._one_by_one = threading.Lock()
        self.run = StressRun(plan, out)
        self._waiting = self._take_over()

    def _take_over(self) -> list[int]:
        """Numbers of the cells to run; what earlier runs finished is kept, what they began is not."""
        waiting = []
        for number, cell in enumerate(self._plan.cells, start=1):
            folder = self._folder(number)
            result = cell_result.read(folder)
            if result is not None and result.cell == cell:
                self.run.finished.append(result)
                continue
            if folder.exists():
                shutil.rmtree(folder)
            waiting.append(number)
        self.run.resumed = len(self.run.finished)
        return waiting

    def _folder(self, number: int) -> Path:
        return self.run.out / CELLS / cells.folder_name(number, self._plan.cells[number - 1])

    def run_all(self, watch: Callable[[StressRun], None] = lambda _: None) -> StressRun:
        """Runs what is left. Ctrl-C and a full disk end the cells that run; what they were doing does
        not count as finished."""
        run = self.run
        try:
            while True:
                self._finish_ended()
                self._start_more()
                watch(run)
                if not run.active or run.stopped:
                    break
                if self._concluding:
                    futures.wait(self._concluding.values(), POLL, futures.FIRST_COMPLETED)
                else:
                    time.sleep(POLL)
        except KeyboardInterrupt:
            run.stopped = INTERRUPTED
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            run.stopped = self._disk_full(error.strerror or "")
        finally:
            self._end_all()
            run.wall = time.monotonic() - run.began
        watch(run)
        return run

    def _start_more(self) -> None:
        run = self.run
        while self._waiting and len(run.active) < self._plan.parallel and not run.stopped:
            if shutil.disk_usage(run.out).free < LOWEST_FREE:
                run.stopped = self._disk_full(f"less than {LOWEST_FREE >> 20} MiB free")
                return
            run.active.append(self._start(self._waiting.pop(0)))

    def _start(self, number: int) -> CellProcess:
        plan = self._plan
        cell = plan.cells[number - 1]
        workload = self._workloads[cell.workload]
        folder = self._folder(number)
        folder.mkdir(parents=True)
        command = agent.command(self._java, cell, workload, plan, number, folder)
        seed = plan.cell_seed(number)
        environment = agent.environment(self._java, cell)
        return cell_process.start(
            cell, number, folder, workload, seed, command, environment, plan.seconds, plan.limit
        )

    def _alone(self, process: CellProcess) -> list[str]:
        return agent.program(
            self._java, process.cell, process.workload, self._plan, process.seed, []
        )

    def _finish_ended(self) -> None:
        run = self.run
        for process in list(run.active):
            if process.number not in self._concluding and not process.poll():
                self._concluding[process.number] = self._conclude(process)
        ended = [
            one for one in run.active if (its := self._concluding.get(one.number)) and its.done()
        ]
        for process in ended:
            result = self._concluding.pop(process.number).result()
            if result.verdict == UNJUDGED and shutil.disk_usage(run.out).free < LOWEST_FREE // 2:
                # Why it could not be judged is plain; with room again it can be.
                run.active.remove(process)
                run.stopped = self._disk_full(f"a cell ended for want of room: {result.why}")
                return
            result.write(run.out)
            run.active.remove(process)
            run.finished.append(result)

    def _conclude(self, process: CellProcess) -> "Future[CellResult]":
        """A run without walks, gdb and reading a recording take minutes, in which other cells are to be
        asked to end. On a daemon thread: a run that is interrupted does not wait for it."""
        future: Future[CellResult] = Future()

        def work() -> None:
            try:
                with self._one_by_one:
                    result = cell_result.conclude(
                        process, self._plan, self.run.out, self._baseline, self._jdk
                    )
                future.set_result(result)
            except Exception as error:  # noqa: BLE001 - for who asks for the result
                future.set_exception(error)

        threading.Thread(target=work, name="conclude", daemon=True).start()
        return future

    def _disk_full(self, why: str) -> str:
        return (
            f"disk full: {why} below {self.run.out}. The {len(self.run.finished)} finished cells are "
            f"kept: make room, then `scripts/framestorm stress --resume {self.run.out}`"
        )

    def _end_all(self) -> None:
        running = [one for one in self.run.active if one.number not in self._concluding]
        for process in running:
            process.interrupt()
        for process in running:
            processes.end(process.popen)
            process.kill()
        self._baseline.end()
        self.run.active.clear()


def check_resumable(plan: Plan, jdk_version: str, build_id: str) -> None:
    """Raises FramestormError when the JDK is another one now: its cells would not compare."""
    if (plan.jdk_version, plan.libjvm_build_id) != (jdk_version, build_id):
        raise FramestormError(
            f"the run was begun with JDK {plan.jdk_version} (libjvm {plan.libjvm_build_id[:12]}), "
            f"{plan.jdk_home} is {jdk_version} (libjvm {build_id[:12]}) now: start a new run"
        )
