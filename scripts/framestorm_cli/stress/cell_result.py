"""What a cell came to, and the record of it that outlives this process."""

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from framestorm_cli.base import files, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings import records
from framestorm_cli.findings.records import Json
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import processes
from framestorm_cli.renaissance import outcome, suite
from framestorm_cli.stress import agent, rates, stacks, walking
from framestorm_cli.stress.baseline import Baseline
from framestorm_cli.stress.cell_process import TERMINATED, CellProcess
from framestorm_cli.stress.cells import SELF_MODE, UNSAMPLED, Cell
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.proportion import Proportion
from framestorm_cli.stress.verdicts import CLEAN, CRASH, FINDINGS, HANG, HARMED, SHORT, UNJUDGED
from framestorm_cli.stress.workloads import NOT_DONE, proof
from framestorm_cli.triage import hs_err

RECORD = "cell.json"
MOST_UNSEEN = 0.1  # of a cell's walks, that no oracle sees
KEPT_CORES = 2  # of a run: one is the size of a process. Of the others their stacks are kept
# How the agent ends a process whose results it cannot keep: a full disk, for one.
_AGENT_FAILED, _AGENT_SAYS = 2, "framestorm: "
_NO_MEMORY = "out of memory"
_ENDS = ("count", "truncated", "ends_compared", "ends_early")  # of a walker's frames
_SETUP = re.compile(
    r"Unrecognized VM option|Could not create the Java Virtual Machine|Conflicting collector"
    r"|Error occurred during initialization|agent library .* failed|Could not find agent library"
)


@dataclass(frozen=True)
class CellResult:
    """`verdict`: one of verdicts.VERDICTS. `why`: what it could not be judged for, or how it died. `slow`: in
    what the rate falls short of what is promised; empty where it does not."""

    cell: Cell
    number: int
    folder: str  # below the run's
    seed: int
    command: list[str]
    verdict: str
    why: str
    slow: str
    exit: int | None  # negative: the signal; None: was killed because it did not end
    seconds: float  # wall
    started: float  # seconds since 1970
    stats: Json = field(default_factory=dict)
    work: Json = field(default_factory=dict)  # what the workload says it did
    hs_err: str = ""  # in the cell's folder
    core: str = ""
    own_clock: bool = True  # the program ends by itself
    cpu_seconds: float | None = None  # user and system time of the process
    died_in_walk: bool = False
    cut_short: bool = False  # its work was not done at its limit: sampling left it too little time
    environment: dict[str, str] = field(default_factory=dict)  # beside that of framestorm
    format: Literal[1] = 1

    @property
    def command_line(self) -> str:
        """For a shell."""
        return " ".join([*self.settings, shlex.join(self.command)])

    @property
    def settings(self) -> list[str]:
        """The environment, for a shell."""
        return [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]

    @property
    def samples(self) -> int:
        return int(self.stats.get("samples") or 0)

    @property
    def findings(self) -> int:
        return int(self.stats.get("findings") or 0)

    @property
    def died(self) -> bool:
        return self.verdict in (CRASH, HANG)

    @property
    def crashes(self) -> Proportion:
        """Walks that did not return, of all: contained ones, and the one the process died in."""
        lost = int(self.stats.get("contained") or 0) + int(self.died_in_walk)
        return Proportion.of(lost, max(self.samples, lost))

    @property
    def judged(self) -> bool:
        return self.verdict != UNJUDGED

    def death(self, out: Path) -> processes.Death | None:
        """For triage; None for a cell that did not die."""
        if self.verdict != CRASH:
            return None
        folder = out / self.folder
        return processes.died(self.exit, folder, folder / self.hs_err if self.hs_err else None)

    def write(self, out: Path) -> None:
        """Raises OSError."""
        files.write_json(out / self.folder / RECORD, self)


def read(folder: Path) -> CellResult | None:
    """The record in a cell's folder; None where the cell has not finished."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=CellResult)
    except (OSError, msgspec.MsgspecError):
        return None


def conclude(process: CellProcess, plan: Plan, out: Path, alone: Baseline, jdk: Jdk) -> CellResult:
    """The result of a process that has ended. `alone` runs its program without walks where only that
    tells whether a failure has to do with walking."""
    code = None if process.hung else process.popen.returncode
    used = process.used
    cpu = round(used.ru_utime + used.ru_stime, 3) if used is not None else None
    stats, problem = _stats(process, plan, jdk, cpu or 0.0)
    work = _work(process)
    report = _newest(process.folder, "hs_err*.log")
    core = _core(process.folder)
    verdict, why = _verdict(process, code, stats, work, report)
    if verdict == UNJUDGED and problem and not process.hung:
        why = problem
    if verdict == HARMED:
        verdict, why = alone.judge(process, why)
    in_walk = _died_in_walk(process, verdict, report)
    if verdict in (CRASH, HANG) and not in_walk:
        # It may have nothing to do with walking; a walk may also have broken what it fell over later.
        judged, said = alone.judge(process, why)
        verdict, why = (UNJUDGED, said) if judged == UNJUDGED else (verdict, why)
    if core is not None:
        stacks.of_core(core, Path(process.command[0]), process.folder / stacks.CORE_STACKS)
        if len([one for one in process.folder.parent.iterdir() if _core(one)]) > KEPT_CORES:
            core.unlink()
            core = None
    slow = rates.shortfall(process.cell, stats) if verdict in (CLEAN, SHORT, FINDINGS) else ""
    return CellResult(
        cell=process.cell,
        number=process.number,
        folder=str(process.folder.relative_to(out)),
        seed=process.seed,
        command=process.command,
        verdict=verdict,
        why=why,
        slow=slow,
        exit=code,
        seconds=round(process.elapsed, 3),
        started=process.started,
        stats=stats,
        work=work,
        hs_err=report.name if report else "",
        core=core.name if core else "",
        own_clock=process.workload.own_clock or process.seconds is None,
        cpu_seconds=cpu,
        died_in_walk=in_walk,
        cut_short=process.cut_short,
        environment=process.environment,
    )


def _work(process: CellProcess) -> Json:
    log = process.folder / "log.txt"
    if not process.workload.renaissance:
        return proof(log)
    ended = outcome.judge(files.read_text(log), None, process.folder / suite.RESULTS)
    return {"iterations": ended.iterations}


def _stats(process: CellProcess, plan: Plan, jdk: Jdk, cpu: float) -> tuple[Json, str]:
    """The cell's last figures, and why there are none."""
    if process.cell.mode != SELF_MODE:
        return records.read_last_stats(process.agent_folder), ""
    if process.cell.walker == UNSAMPLED:
        return {"samples": 0}, ""
    try:
        recorded = agent.recording(process.cell, plan, process.folder).recorded()
        # What an agent makes of classes as they are loaded is in no file.
        transformed = any(word.startswith("-javaagent:") for word in process.command)
        class_path = [] if transformed else process.workload.class_path
        shadows = process.agent_folder / agent.SHADOWS
        judged = agent.judged_by_truth(process.cell, plan)
        found = recorded.stats(jdk, class_path, cpu, process.elapsed, shadows if judged else None)
    except FramestormError as error:
        return {}, error.message
    return found, ""


def ends_of(stats: Json) -> Counter[str]:
    """`count` traces of all walkers: `truncated`, as the walker says; `ends_compared` with where the stack
    begins, and `ends_early` of those."""
    ends: Counter[str] = Counter()
    for frames in (stats.get("frames") or {}).values():
        ends.update({name: int(frames.get(name) or 0) for name in _ENDS})
    return ends


def _verdict(
    process: CellProcess, code: int | None, stats: Json, work: Json, report: Path | None
) -> tuple[str, str]:
    log = process.folder / "log.txt"
    if process.hung:
        after = "after it was asked to end" if process.asked_to_end else "its time limit"
        why = f"did not end within {process.elapsed:.0f} s ({after})"
        if process.slowed:
            return UNJUDGED, f"{why}, slowed down by its walks: give a longer interval, or a limit"
        return HANG, why
    if report is not None:
        try:
            parsed = hs_err.parse(report)
        except (OSError, ValueError):
            return CRASH, "hs_err file without a head"
        if parsed.error == _NO_MEMORY:
            return UNJUDGED, f"the machine had too little memory for the JVM: see {report.name}"
        return CRASH, parsed.signal or parsed.error
    asked = process.asked_to_end is not None
    if code is not None and code < 0 and not (asked and code in TERMINATED):
        name = processes.signal_name(-code)
        if name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"):
            return UNJUDGED, f"ended by {name} from outside (too little memory?)"
        return CRASH, name
    last = processes.own_words(log).strip().splitlines()
    said = last[-1][:300] if last else "said nothing"
    if code == _AGENT_FAILED and said.startswith(_AGENT_SAYS):
        return UNJUDGED, f"the agent could not go on: {said.removeprefix(_AGENT_SAYS)}"
    if process.workload.renaissance:
        ended = outcome.judge(
            files.read_text(log), None if asked else code, process.folder / suite.RESULTS
        )
        if ended.failure is not None:
            return UNJUDGED, f"the benchmark failed by itself: {ended.failure}"
    if not stats:
        return UNJUDGED, f"nothing was sampled (exit {code}): {_setup_line(log) or said}"
    if code not in (0, None) and not (asked and code in TERMINATED):
        if code == NOT_DONE and process.workload.proves:
            return UNJUDGED, f"the workload did not do what it is named after: {said}"
        return HARMED, f"the program ended with exit {code}: {said}"
    if process.workload.proves and not work and not process.cut_short:
        return UNJUDGED, "the workload ended without saying what it did"
    samples = int(stats.get("samples") or 0)
    if not samples and process.cell.walker != UNSAMPLED:
        return UNJUDGED, "no samples"
    unseen = int((stats.get("lost") or {}).get("unjudged") or 0)
    if unseen > MOST_UNSEEN * samples:
        return UNJUDGED, (
            f"no oracle saw {unseen:,} of {samples:,} walks: the judge did not keep up; give a longer "
            "interval, or fewer threads"
        )
    if int(stats.get("findings") or 0):
        return FINDINGS, ""
    ends = ends_of(stats)
    return SHORT if ends["truncated"] or ends["ends_early"] else CLEAN, ""


def _died_in_walk(process: CellProcess, verdict: str, report: Path | None) -> bool:
    if verdict == HANG:
        return bool(stacks.walker_stack(process.folder))
    if verdict != CRASH:
        return False
    if report is None:
        return bool(walking.context(process.agent_folder))
    try:
        return hs_err.parse(report).in_walk
    except (OSError, ValueError):
        return False


def _setup_line(log: Path) -> str:
    for line in steps.tail(log, 60).splitlines():
        if _SETUP.search(line) or line.startswith("framestorm"):
            return line.strip()[:300]
    return ""


def _core(folder: Path) -> Path | None:
    return _newest(folder, "core*", skip=stacks.CORE_STACKS)


def _newest(folder: Path, pattern: str, skip: str = "") -> Path | None:
    found = [path for path in folder.glob(pattern) if path.is_file() and path.name != skip]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
