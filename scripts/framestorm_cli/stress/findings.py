"""From finished cells to buckets, each with what it takes to act on it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import files, paths
from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes
from framestorm_cli.profilers import outside
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.reports.known import Known
from framestorm_cli.stress import agent, repro, stacks, walking
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.verdicts import HANG, HARMED
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import collecting, expectations, report, sanitizer
from framestorm_cli.triage.buckets import Bucket, Verification
from framestorm_cli.triage.expectations import Cause
from framestorm_cli.triage.signature import (
    ENTRY_POINT,
    TOP_FRAMES,
    signature_of,
    significant,
)

KEPT = 3  # samples copied per bucket; the others stay in the cells' folders
_EVIDENCE = (stacks.NATIVE_STACKS, stacks.JAVA_STACKS, stacks.PROC_STACKS, stacks.CORE_STACKS)
# Of traces that bytecode contradicts (recordings.py), by their verdict.
_CLAUSES = {"wrong": "impossible-call", "misplaced": "wrong-bci"}
_BY_TRUTH = "wrong-trace"  # what shadow stacks contradict
_NOT_REPLAYED = "stress does not replay; repro.sh runs the cell again"


@dataclass
class StressBucket:
    """A bucket, the cells it was seen in (the first is the one that repro.sh runs), and its folder."""

    bucket: Bucket
    cells: list[CellResult]
    known: bool
    folder: Path
    repro: Path
    files: list[Path] = field(default_factory=list)


@dataclass
class Found:
    buckets: list[StressBucket]
    unreadable_lines: int = 0
    reports_elsewhere: int = 0  # of sanitizers, outside walks

    @property
    def new(self) -> list[StressBucket]:
        return [one for one in self.buckets if not one.known]


def conclude(
    results: Sequence[CellResult],
    plan: Plan,
    out: Path,
    known: Known,
    symbolizer: Symbolizer,
    causes: Sequence[Cause] = (),
) -> Found:
    """Triage of all cells; a folder below out/buckets per bucket. Raises OSError."""
    found = Found([])
    cell_of: dict[int, CellResult] = {}
    every: list[Finding] = []
    for result in results:
        for finding in _findings(result, out, symbolizer, found):
            finding.target, finding.seed = str(result.cell), result.seed
            cell_of[id(finding)] = result
            every.append(finding)
    shutil.rmtree(out / "buckets", ignore_errors=True)
    for bucket in triage_buckets.into_buckets(every):
        expectations.name(bucket, causes)
        cells = list(
            {
                cell_of[id(finding)].number: cell_of[id(finding)] for finding in bucket.findings
            }.values()
        )
        home = cell_of[id(bucket.best)]
        cells.sort(key=lambda one: (one is not home, one.number))
        found.buckets.append(_write(bucket, cells, plan, out, bucket in known))
    return found


def _findings(result: CellResult, out: Path, symbolizer: Symbolizer, found: Found) -> list[Finding]:
    folder = out / result.folder
    agent_folder = folder / agent.OUT
    recorded = collecting.of_process(agent_folder, symbolizer)
    found.unreadable_lines += records.read_findings(agent_folder).unreadable_lines
    in_walks, elsewhere = _of_sanitizer(folder / "log.txt")
    recorded += in_walks
    found.reports_elsewhere += elsewhere
    if (death := result.death(out)) is not None:
        evidence = death.hs_err or folder / "log.txt"
        finding = collecting.of_death(death, evidence, symbolizer)
        finding = _with_native_stack(finding, folder / stacks.CORE_STACKS)
        finding.context = walking.context(agent_folder)
        recorded.append(finding)
    elif result.verdict == HANG:
        recorded.append(_hang(result, folder))
    elif result.verdict == HARMED:
        recorded.append(_harmed(result, folder))
    recorded += _wrong_traces(result, folder)
    # Nothing is set to anything in a sample, but a thread that runs on may have torn what is read.
    for finding in recorded:
        finding.state = finding.state or ("torn" if result.cell.mode == "unstopped" else "real")
    return recorded


def _of_sanitizer(log: Path) -> tuple[list[Finding], int]:
    """Reports of walks, and the number of others: those are HotSpot's habits, not a walker's."""
    if not sanitizer.has_report(files.read_text(log)):
        return [], 0
    recorded = collecting.of_sanitizer(log)
    own = [
        finding
        for finding in recorded
        if any(ENTRY_POINT.fullmatch(frame.name) for frame in finding.frames)
    ]
    return own, len(recorded) - len(own)


def _frames(names: Sequence[str]) -> list[Frame]:
    return [Frame(name, "", None, name, 0) for name in names]


def _with_native_stack(finding: Finding, core_stacks: Path) -> Finding:
    """A death without an hs_err file has its core's stack, where there is one."""
    if not finding.frames and (names := stacks.crashed_stack(core_stacks)):
        finding.frames = _frames(names)
        top = tuple(significant(names)[:TOP_FRAMES])
        finding.signature = Signature(finding.signature.kind, finding.signature.clause, top)
    return finding


def _hang(result: CellResult, folder: Path) -> Finding:
    names = stacks.walker_stack(folder)
    where = "" if names else "; no thread was in a walk"
    evidence = folder / stacks.NATIVE_STACKS
    top = tuple(significant(names)[:TOP_FRAMES]) if names else (f"victim {result.cell.workload}",)
    return Finding(
        key="hang",
        kind="process_death",
        clause=processes.DID_NOT_END,
        detail=f"{result.cell}: {result.why}{where}",
        artifact=evidence if evidence.exists() else folder / stacks.PROC_STACKS,
        stack=tuple(names),
        context=walking.context(folder / agent.OUT),
        signature=Signature("process_death", processes.DID_NOT_END, top),
        frames=_frames(names),
    )


def _harmed(result: CellResult, folder: Path) -> Finding:
    clause = f"exit {result.exit}"
    return Finding(
        key="harmed",
        kind="program_harmed",
        clause=clause,
        detail=f"{result.cell}: {result.why}",
        artifact=folder / "log.txt",
        signature=Signature("program_harmed", clause, (f"victim {result.cell.workload}",)),
    )


def _wrong_traces(result: CellResult, folder: Path) -> list[Finding]:
    """Of a profiler's recording: calls that the program's bytecode has not, or not there."""
    found = []
    for example in result.stats.get("examples") or ():
        clause = _CLAUSES.get(example["verdict"])
        if clause is None:
            continue
        if result.stats.get("truth"):
            clause = _BY_TRUTH
        why, trace = str(example["why"]), tuple(example["frames"])
        found.append(
            Finding(
                key=why,
                kind="contract",
                clause=clause,
                detail=f"{result.cell}: {why}",
                count=int(example["count"]),
                artifact=folder / "log.txt",
                stack=trace,
                victim=result.cell.workload,
                signature=Signature("contract", clause, (), example["did"], result.cell.walkers),
                frames=_frames(trace),
            )
        )
    return found


def _write(
    bucket: Bucket, cells: list[CellResult], plan: Plan, out: Path, known: bool
) -> StressBucket:
    folder = out / "buckets" / bucket.id
    folder.mkdir(parents=True)
    home = cells[0]
    bucket.sampled = True
    bucket.verification = Verification(skipped=_NOT_REPLAYED)
    samples = _copy_samples(bucket, folder)
    files = [*samples, *_copy_evidence(home, out, folder)]
    bucket.artifact = next((file for file in files if file.suffix == ".bin"), None) or next(
        iter(files), None
    )
    script = folder / "repro.sh"
    repro.write(script, home, plan, bucket)
    bucket.replay_command = f"sh {paths.shown(script)}"
    jvm = records.read_json(out / home.folder / agent.OUT / "jvm.json")
    for file in files:
        if file.suffix == ".bin":
            recorded = Recorded(None, plan.vm_flags(home.cell), outside.plugin(plan.plugin))
            # As an input it is one of the fuzzers'.
            signature = signature_of(samples[file])
            replaying.write_sidecar(file, signature, jvm, recorded)
    bucket.report = folder / "report.md"
    text = report.markdown(bucket, jvm or _jdk(plan))
    bucket.report.write_text(text + _cell_section(home, cells, folder, files), encoding="utf-8")
    return StressBucket(bucket, cells, known, folder, script, files)


def _jdk(plan: Plan) -> Json:
    return {"version": plan.jdk_version, "libjvm_build_id": plan.libjvm_build_id}


def _copy_samples(bucket: Bucket, folder: Path) -> dict[Path, Finding]:
    """The samples that show it, whole, and as inputs where they can be said as such."""
    copied: dict[Path, Finding] = {}
    number = 0
    for finding in [bucket.best, *(one for one in bucket.best_first() if one is not bucket.best)]:
        source = finding.artifact
        if source is None or source.suffix != ".sample" or not source.exists():
            continue
        number += 1
        if number > KEPT:
            break
        for one in (source, source.with_suffix(".bin")):
            if one.exists():
                target = folder / f"sample-{number}{one.suffix}"
                shutil.copyfile(one, target)
                copied[target] = finding
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
