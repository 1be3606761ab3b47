"""From finished cells to buckets, each with what it takes to act on it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.records import Finding, Json
from framestorm_cli.native import processes
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.reports.known import Known
from framestorm_cli.stress import agent, repro, stacks, walking
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.verdicts import HANG, HARMED
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import cases as triage_cases
from framestorm_cli.triage import report, sanitizer
from framestorm_cli.triage.buckets import Bucket, Case
from framestorm_cli.triage.explain import explain, thread_state
from framestorm_cli.triage.report import Verification, Written
from framestorm_cli.triage.signature import (
    ENTRY_POINT,
    TOP_FRAMES,
    VICTIM,
    Signature,
    signature_of,
    significant,
)

KEPT = 3  # samples copied per bucket; the others stay in the cells' folders
_EVIDENCE = (stacks.NATIVE_STACKS, stacks.JAVA_STACKS, stacks.PROC_STACKS, stacks.CORE_STACKS)
_NOT_REPLAYED = "stress does not replay; repro.sh runs the cell again"


@dataclass
class Sampled(Written):
    """A bucket of samples: nothing was set to anything, so the explanation leaves their inputs out."""

    @property
    def explanation(self) -> str:
        return explain(replace(self.best.finding, text=""), self.best.frames)


@dataclass
class StressBucket:
    """A bucket, the cells it was seen in (the first is the one that repro.sh runs), and its folder."""

    written: Written
    cells: list[CellResult]
    known: bool
    folder: Path
    repro: Path
    files: list[Path] = field(default_factory=list)

    @property
    def bucket(self) -> Bucket:
        return self.written.bucket


@dataclass
class Found:
    buckets: list[StressBucket]
    unreadable_lines: int = 0
    reports_elsewhere: int = 0  # of sanitizers, outside walks

    @property
    def new(self) -> list[StressBucket]:
        return [one for one in self.buckets if not one.known]


def conclude(
    results: Sequence[CellResult], plan: Plan, out: Path, known: Known, symbolizer: Symbolizer
) -> Found:
    """Triage of all cells; a folder below out/buckets per bucket. Raises OSError."""
    found = Found([])
    cell_of: dict[int, CellResult] = {}
    every: list[Case] = []
    for result in results:
        for case in _cases(result, out, symbolizer, found):
            case.target, case.seed = str(result.cell), result.seed
            cell_of[id(case)] = result
            every.append(case)
    shutil.rmtree(out / "buckets", ignore_errors=True)
    for bucket in triage_buckets.into_buckets(every):
        cells = list(
            {cell_of[id(case)].number: cell_of[id(case)] for case in bucket.cases}.values()
        )
        home = cell_of[id(bucket.best)]
        cells.sort(key=lambda one: (one is not home, one.number))
        found.buckets.append(_write(bucket, cells, plan, out, bucket in known))
    return found


def _cases(result: CellResult, out: Path, symbolizer: Symbolizer, found: Found) -> list[Case]:
    folder = out / result.folder
    agent_folder = folder / agent.OUT
    cases = triage_cases.of_process(agent_folder, symbolizer)
    for case in cases:
        case.signature = _of_sample(case)
    found.unreadable_lines += records.read_findings(agent_folder).unreadable_lines
    in_walks, elsewhere = _sanitizer_cases(folder / "log.txt")
    cases += in_walks
    found.reports_elsewhere += elsewhere
    if (death := result.death(out)) is not None:
        evidence = death.hs_err or folder / "log.txt"
        case = triage_cases.of_death(death, evidence, "", symbolizer)
        case = _with_native_stack(case, folder / stacks.CORE_STACKS)
        case.finding = replace(case.finding, context=walking.context(agent_folder))
        cases.append(case)
    elif result.verdict == HANG:
        cases.append(_hang(result, folder))
    elif result.verdict == HARMED:
        cases.append(_harmed(result, folder))
    return cases


def _of_sample(case: Case) -> Signature:
    """Its signature by the thread's state where the fuzzers' is by the victim: which one a sample is most
    like is chance, and would be another bucket every time."""
    signature = case.signature
    state = case.finding.context.get("thread_state")
    if not state or not any(frame.startswith(VICTIM) for frame in signature.frames):
        return signature
    return replace(signature, frames=(f"a thread {thread_state(state)}",))


def _sanitizer_cases(log: Path) -> tuple[list[Case], int]:
    """Reports of walks, and the number of others: those are HotSpot's habits, not a walker's."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return [], 0
    if not sanitizer.has_report(text):
        return [], 0
    cases = triage_cases.of_sanitizer(log)
    own = [
        case for case in cases if any(ENTRY_POINT.fullmatch(frame.name) for frame in case.frames)
    ]
    return own, len(cases) - len(own)


def _frames(names: Sequence[str]) -> list[Frame]:
    return [Frame(name, "", None, name, 0) for name in names]


def _with_native_stack(case: Case, core_stacks: Path) -> Case:
    """A death without an hs_err file has its core's stack, where there is one."""
    if not case.frames and (names := stacks.crashed_stack(core_stacks)):
        case.frames = _frames(names)
        top = tuple(significant(names)[:TOP_FRAMES])
        case.signature = Signature(case.signature.kind, case.signature.clause, top)
    return case


def _hang(result: CellResult, folder: Path) -> Case:
    names = stacks.walker_stack(folder)
    where = "" if names else "; no thread was in a walk"
    evidence = folder / stacks.NATIVE_STACKS
    finding = Finding(
        key="hang",
        kind="process_death",
        clause=processes.DID_NOT_END,
        detail=f"{result.cell}: {result.why}{where}",
        artifact=evidence if evidence.exists() else folder / stacks.PROC_STACKS,
        stack=tuple(names),
        context=walking.context(folder / agent.OUT),
    )
    top = tuple(significant(names)[:TOP_FRAMES]) if names else (f"victim {result.cell.workload}",)
    return Case(finding, Signature("process_death", processes.DID_NOT_END, top), _frames(names))


def _harmed(result: CellResult, folder: Path) -> Case:
    finding = Finding(
        key="harmed",
        kind="program_harmed",
        clause=f"exit {result.exit}",
        detail=f"{result.cell}: {result.why}",
        artifact=folder / "log.txt",
    )
    top = (f"victim {result.cell.workload}",)
    return Case(finding, Signature("program_harmed", finding.clause, top), [])


def _write(
    bucket: Bucket, cells: list[CellResult], plan: Plan, out: Path, known: bool
) -> StressBucket:
    folder = out / "buckets" / bucket.id
    folder.mkdir(parents=True)
    home = cells[0]
    best = bucket.best
    written = Sampled(bucket, best, Verification(skipped=_NOT_REPLAYED))
    samples = _copy_samples(bucket, folder)
    files = [*samples, *_copy_evidence(home, out, folder)]
    written.artifact = next((file for file in files if file.suffix == ".bin"), None) or next(
        iter(files), None
    )
    script = folder / "repro.sh"
    repro.write(script, home, plan, bucket)
    written.replay_command = f"sh {paths.shown(script)}"
    jvm = records.read_json(out / home.folder / agent.OUT / "jvm.json")
    for file in files:
        if file.suffix == ".bin":
            recorded = Recorded(None, plan.vm_flags(home.cell), plan.plugin)
            # As an input it is one of the fuzzers'.
            signature = signature_of(samples[file].finding, samples[file].frames)
            replaying.write_sidecar(file, signature, jvm, recorded)
    written.report = folder / "report.md"
    text = report.markdown(written, jvm or _jdk(plan))
    written.report.write_text(text + _cell_section(home, cells, folder, files), encoding="utf-8")
    return StressBucket(written, cells, known, folder, script, files)


def _jdk(plan: Plan) -> Json:
    return {"version": plan.jdk_version, "libjvm_build_id": plan.libjvm_build_id}


def _copy_samples(bucket: Bucket, folder: Path) -> dict[Path, Case]:
    """The samples that show it, whole, and as inputs where they can be said as such."""
    copied: dict[Path, Case] = {}
    number = 0
    for case in [bucket.best, *(one for one in bucket.best_first() if one is not bucket.best)]:
        source = case.finding.artifact
        if source is None or source.suffix != ".sample" or not source.exists():
            continue
        number += 1
        if number > KEPT:
            break
        for one in (source, source.with_suffix(".bin")):
            if one.exists():
                target = folder / f"sample-{number}{one.suffix}"
                shutil.copyfile(one, target)
                copied[target] = case
    return copied


def _copy_evidence(home: CellResult, out: Path, folder: Path) -> list[Path]:
    copied = []
    names = [home.hs_err, "log.txt", *_EVIDENCE] if home.died else []
    names += ["log.txt"] if home.verdict == HARMED else []
    for name in filter(None, names):
        source = out / home.folder / name
        if source.exists():
            target = folder / name
            shutil.copyfile(source, target)
            copied.append(target)
    return copied


def home_of(result: CellResult) -> str:
    """The JDK's home, by the command line that a cell was started with."""
    return str(Path(result.command[0]).parents[1])


def _cell_section(
    home: CellResult, cells: Sequence[CellResult], folder: Path, files: Sequence[Path]
) -> str:
    lines = [
        "",
        "## Cell",
        "",
        f"{home.cell}, seed {home.seed}; folder `{home.folder}`",
        "",
        "```sh",
        home.command_line,
        "```",
        "",
    ]
    if home.core:
        lines += [f"Core: `{home.folder}/{home.core}`; its stacks are in {stacks.CORE_STACKS}.", ""]
    if len(cells) > 1:
        lines += ["Seen in", "", *(f"- {one.cell}, seed {one.seed}" for one in cells), ""]
    if samples := [file for file in files if file.suffix == ".sample"]:
        lines += ["A sample, its registers and its stack with what they are:", "", "```sh"]
        lines += [f"scripts/framestorm replay {paths.shown(samples[0])}", "```", ""]
    if inputs := [file for file in files if file.suffix == ".bin"]:
        lines += ["A sample as an input, in a fresh JVM of its own:", "", "```sh"]
        lines += [
            f"scripts/framestorm replay {paths.shown(inputs[0])} --jdk {home_of(home)}",
            "```",
            "",
        ]
    if files:
        lines += ["Here", "", *(f"- {file.relative_to(folder)}" for file in files), ""]
    return "\n".join(lines)
