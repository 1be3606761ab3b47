"""From the processes of a run to its buckets: triage, verification, artifacts and reports."""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli import native, paths, records, replaying, steps
from framestorm_cli.errors import FramestormError
from framestorm_cli.fuzzing import Process, Run
from framestorm_cli.records import Json
from framestorm_cli.replaying import PARALLEL, Recorded, Request, Try
from framestorm_cli.symbols import Symbolizer
from framestorm_cli.toolchain import NATIVE, Toolchain
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import cases as triage_cases
from framestorm_cli.triage import report
from framestorm_cli.triage.buckets import Bucket, Case
from framestorm_cli.triage.report import Verification, Written

CANDIDATES = 5  # artifacts of a bucket that are tried until one reproduces every time
KEPT = 5  # artifacts copied per bucket; the others stay below work/
VERIFY_LIMIT = 120.0  # seconds for all buckets; the most frequent ones come first


@dataclass
class Results:
    """What a run comes to."""

    run: Run
    jvm: Json
    written: list[Written] = field(default_factory=list)
    verify_seconds: float = 0.0
    unreadable_lines: int = 0


def gather(run: Run, toolchain: Toolchain, symbolizer: Symbolizer) -> list[Case]:
    """Every finding of every process, and every process that died."""
    cases: list[Case] = []
    for process in run.processes:
        found = triage_cases.of_process(process.folder, symbolizer, process.target)
        if process.death is not None:
            found.append(_death(process, process.death, toolchain))
        for case in found:
            case.target, case.seed = process.target, process.seed
        cases += found
    return cases


def _death(process: Process, death: native.Death, toolchain: Toolchain) -> Case:
    data = records.read_current_input(process.folder)
    if data is None:
        return triage_cases.of_death(death, None, "")
    artifact = process.folder / "artifacts" / "death.bin"
    artifact.parent.mkdir(exist_ok=True)
    artifact.write_bytes(data)
    try:
        text = replaying.decode(toolchain.program(NATIVE), artifact, force=True)
    except FramestormError as error:
        text = ""
        steps.say(f"the input of a process that died has no text form: {error.message}")
    return triage_cases.of_death(death, artifact.resolve(), text)


def jvm_of(run: Run) -> Json:
    """jvm.json of the first process that came as far as a JVM."""
    return next(
        (jvm for p in run.processes if (jvm := records.read_json(p.folder / "jvm.json"))), {}
    )


def conclude(
    run: Run, toolchain: Toolchain, *, verify: int, verify_limit: float = VERIFY_LIMIT
) -> Results:
    """Triage, verification by replay (`verify` tries each, 0: none), artifacts and reports."""
    symbolizer = Symbolizer()
    results = Results(run, jvm_of(run))
    results.unreadable_lines = sum(process.file.unreadable_lines for process in run.processes)
    found = triage_buckets.into_buckets(gather(run, toolchain, symbolizer))
    began = time.monotonic()
    deadline = began + verify_limit
    if found and verify:
        steps.say(
            f"verifying {len(found)} bucket(s), {verify} fresh JVMs each, at most {verify_limit:.0f} s"
        )
    known = _verify_all(found, run, toolchain, symbolizer, verify, deadline)
    results.written = [Written(bucket, *known[bucket.id]) for bucket in found]
    results.verify_seconds = time.monotonic() - began
    for written in results.written:
        _write(written, run, toolchain, results.jvm)
    return results


def _verify_all(
    found: list[Bucket],
    run: Run,
    toolchain: Toolchain,
    symbolizer: Symbolizer,
    tries: int,
    deadline: float,
) -> dict[str, tuple[Case, Verification]]:
    """Per bucket the artifact that came back most often, and how often it did.

    In rounds: every bucket's first candidate, then the second of those that did not come back every
    time, and so on. The time left is shared evenly, so that no bucket takes the others' time.
    """
    known = {bucket.id: (bucket.best, Verification()) for bucket in found}
    if tries == 0:
        return {b: (case, Verification(skipped="--verify 0")) for b, (case, _) in known.items()}
    for number in range(CANDIDATES):
        pending = [
            (bucket, bucket.best_first()[number])
            for bucket in found
            if len(bucket.best_first()) > number and known[bucket.id][1].reproduced < tries
        ]
        for index, (bucket, case) in enumerate(pending):
            now = time.monotonic()
            if now >= deadline or run.stopped == "interrupted":
                break
            until = now + (deadline - now) / (len(pending) - index)
            try:
                tried = _verify(case, bucket, run, toolchain, symbolizer, tries, until)
            except KeyboardInterrupt:
                run.stopped = "interrupted"
                break
            before = known[bucket.id][1]
            if tried.tries and (before.tries == 0 or tried.reproduced > before.reproduced):
                known[bucket.id] = (case, tried)
            elif tried.skipped and before.tries == 0:
                known[bucket.id] = (known[bucket.id][0], tried)
    for bucket in found:
        case, verification = known[bucket.id]
        if verification.tries == 0 and not verification.skipped:
            why = "too little time" if bucket.best_first() else "no artifact was recorded"
            known[bucket.id] = (case, Verification(skipped=why))
    return known


def _verify(
    case: Case,
    bucket: Bucket,
    run: Run,
    toolchain: Toolchain,
    symbolizer: Symbolizer,
    tries: int,
    until: float,
) -> Verification:
    assert case.finding.artifact is not None
    options = run.options
    request = Request(
        case.finding.artifact, case.signature, options.jvm_args, options.walker_plugin
    )
    scratch = options.out / "work" / f"verify-{bucket.id}"
    done: list[Try] = []
    try:
        # Tries that miss take longest: when the first all do, the time is better spent elsewhere.
        for number in (min(tries, PARALLEL), tries):
            more = number - len(done)
            if more and (not done or any(one.matched for one in done)):
                done += replaying.run_tries(
                    toolchain, symbolizer, request, more, scratch / str(number), deadline=until
                )
    except FramestormError as error:
        return Verification(skipped=f"replay failed: {error.message}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Verification(len(done), sum(1 for one in done if one.matched is not None))


def _write(written: Written, run: Run, toolchain: Toolchain, jvm: Json) -> None:
    """Copies a bucket's artifacts with text and sidecar, and writes its report."""
    out, bucket = run.options.out, written.bucket
    folder = out / "artifacts"
    folder.mkdir(exist_ok=True)
    recorded = Recorded(None, run.options.jvm_args, run.options.walker_plugin)
    rest = [case for case in bucket.best_first() if case is not written.best]
    for number, case in enumerate([written.best, *rest][:KEPT]):
        source = case.finding.artifact
        if source is None or not source.exists():
            continue
        name = bucket.id if number == 0 else f"{bucket.id}-{number + 1}"
        artifact = folder / f"{name}.bin"
        shutil.copyfile(source, artifact)
        text = artifact.with_suffix(".txt")
        text.write_text(case.finding.text, encoding="utf-8")
        replaying.write_sidecar(artifact, case.signature, jvm, recorded)
        if number == 0:
            written.artifact, written.text = artifact, text
            arguments = replaying.common_arguments(toolchain, ())
            written.replay_command = " ".join(
                ["scripts/framestorm replay", paths.shown(artifact), *arguments]
            )
    reports = out / "reports"
    reports.mkdir(exist_ok=True)
    written.report = reports / f"{bucket.id}.md"
    written.report.write_text(report.markdown(written, jvm), encoding="utf-8")


def relative(path: Path | None, out: Path) -> str | None:
    """A path below the run's folder as summary.json holds it."""
    return None if path is None else str(path.relative_to(out))
