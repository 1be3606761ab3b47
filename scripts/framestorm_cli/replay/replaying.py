"""Replaying artifacts in fresh JVMs: one process per try."""

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import files, paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes
from framestorm_cli.native.toolchain import NATIVE, Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.triage import collecting
from framestorm_cli.triage.signature import native_filter, signatures_of

TRY_LIMIT = 120.0  # seconds; a try that takes longer is ended and counts as a death
HALTS = 64
PARALLEL = min(os.cpu_count() or 1, 8)


class _StoppedError(Exception):
    """A try was ended before its time."""


@dataclass(frozen=True)
class Recorded:
    """What was written beside an artifact when it was found (`<artifact>.json`)."""

    signature: Signature | None = None
    jvm_args: tuple[str, ...] = ()
    outside: OutsideWalker = outside.NONE  # as recorded: outside.again() finds it


def sidecar(artifact: Path) -> Path:
    return artifact.with_name(artifact.name + ".json")


def beside(artifact: Path) -> tuple[Path, Json]:
    """What is written down of an artifact, and where: its sidecar, or expected.json. Nothing there: empty.
    Raises FramestormError when there is one that cannot be understood."""
    path = sidecar(artifact)
    if not path.exists():
        path = artifact.with_name("expected.json")
    data = records.read_json(path)
    if not data and path.exists():
        raise FramestormError(f"{path} is not a JSON object: repair or remove it")
    return path, data


def read_recorded(artifact: Path, label: str) -> Recorded:
    """The sidecar, or expected.json of a folder in corpus/crashes (`label`: Jdk.label). Nothing there:
    empty.

    Raises FramestormError when there is one that cannot be understood.
    """
    path, data = beside(artifact)
    per_jdk = data.get("per_jdk")
    if isinstance(per_jdk, dict):
        known = per_jdk.get(label, {})
        others = [entry for entry in per_jdk.values() if entry.get("signature")]
        signature = known.get("signature") or (others[0]["signature"] if others else None)
    else:
        signature = data.get("signature")
    try:
        return Recorded(
            Signature.from_json(signature) if signature else None,
            tuple(data.get("jvm_args") or ()),
            outside.from_recorded(data),
        )
    except ValueError as error:
        raise FramestormError(f"{path}: {error}") from error


def write_sidecar(artifact: Path, signature: Signature, jvm: Json, recorded: Recorded) -> None:
    data: Json = {"signature": signature, "jdk": jvm}
    if recorded.jvm_args:
        data["jvm_args"] = list(recorded.jvm_args)
    files.write_json(sidecar(artifact), data | recorded.outside.recorded())


@dataclass
class Try:
    """One fresh JVM: what it found and whether the signature was among it."""

    folder: Path
    findings: list[Finding] = field(default_factory=list)
    replay: Json = field(default_factory=dict)
    death: processes.Death | None = None
    matched: Finding | None = None
    seconds: float = 0.0

    @property
    def hung(self) -> bool:
        """Whether its JVM did not end and was killed."""
        return self.death is not None and self.death.how == processes.DID_NOT_END

    @property
    def walked(self) -> bool:
        """Whether the artifact was walked at all."""
        return bool(self.replay.get("walks"))


def shown(tries: Sequence[Try]) -> Finding | None:
    """The finding to show of several: the one in question, else whatever came up."""
    matched = [one.matched for one in tries if one.matched is not None]
    return next(iter(matched + [finding for one in tries for finding in one.findings]), None)


@dataclass(frozen=True)
class Request:
    artifact: Path
    signature: Signature | None
    jvm_args: tuple[str, ...] = ()
    outside: OutsideWalker = outside.NONE
    halts: int = HALTS
    limit: float = TRY_LIMIT


def run_try(
    toolchain: Toolchain,
    symbolizer: Symbolizer,
    request: Request,
    folder: Path,
    stop: Callable[[], bool] = lambda: False,
) -> Try | None:
    """One try in one JVM; None when `stop` ended it. Raises FramestormError on a set-up error."""
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    try:
        code = _run(toolchain, request, "replay", folder, symbolizer, stop)
    except _StoppedError:
        return None
    result = Try(folder, collecting.of_process(folder, symbolizer))
    result.seconds = time.monotonic() - begun
    result.replay = records.read_json(folder / "replay.json")
    result.death = processes.death_of(code, folder)
    if result.death is not None:
        finding = collecting.of_death(result.death, request.artifact, symbolizer)
        result.findings.append(finding)
    if request.signature is not None:
        result.matched = next(
            (c for c in result.findings if request.signature in signatures_of(c)), None
        )
    return result


def _run(
    toolchain: Toolchain,
    request: Request,
    action: str,
    folder: Path,
    symbolizer: Symbolizer,
    stop: Callable[[], bool] = lambda: False,
) -> int | None:
    """Runs `framestorm-native replay|minimize`; None when it did not end by itself."""
    command: list[str | Path] = [toolchain.program(NATIVE), action]
    command += processes.jvm_arguments(toolchain, folder, request.jvm_args)
    command += ["--artifact", request.artifact.resolve(), "--halts", str(request.halts)]
    command += request.outside.arguments(folder)
    if request.signature is not None:
        libraries = [*request.outside.libraries, toolchain.jdk.libjvm]
        wanted = native_filter(request.signature, symbolizer, libraries)
        if wanted is not None:
            path = folder / "signature.json"
            path.write_text(json.dumps(wanted), encoding="utf-8")
            command += ["--signature", path.resolve()]
    process = processes.start(command, folder.resolve())
    deadline = time.monotonic() + request.limit
    try:
        while process.poll() is None:
            if stop():
                raise _StoppedError
            if time.monotonic() > deadline:
                processes.end(process)
                return None
            time.sleep(0.02)
    except BaseException:
        processes.end(process, grace=0)
        raise
    if process.returncode == processes.EXIT_SETUP:
        text = processes.own_words(folder / "log.txt")
        raise FramestormError(text or f"{NATIVE} {action}: set-up error without a message")
    return process.returncode


def run_tries(
    toolchain: Toolchain,
    symbolizer: Symbolizer,
    request: Request,
    tries: int,
    folder: Path,
    on_done: Callable[[Try], None] = lambda _: None,
    deadline: float | None = None,
) -> list[Try]:
    """Several tries, PARALLEL at once. A deadline (time.monotonic) ends those that run; they do not
    count."""
    interrupted = threading.Event()

    def stop() -> bool:
        late = deadline is not None and time.monotonic() > deadline
        return late or interrupted.is_set()

    def one(number: int) -> Try | None:
        if stop():
            return None
        return run_try(toolchain, symbolizer, request, folder / f"try{number:02d}", stop)

    done: list[Try] = []
    with ThreadPoolExecutor(PARALLEL) as pool:
        try:
            for result in pool.map(one, range(1, tries + 1)):
                if result is not None:
                    on_done(result)
                    done.append(result)
        except BaseException:
            interrupted.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return done


def minimize(
    toolchain: Toolchain, symbolizer: Symbolizer, request: Request, folder: Path
) -> bytes | None:
    """The shrunk artifact; None when the signature did not come back, so nothing was shrunk. Raises
    FramestormError when it came back and its process cannot walk on: a profiler's lock is held, say."""
    folder.mkdir(parents=True, exist_ok=True)
    code = _run(toolchain, request, "minimize", folder, symbolizer)
    try:
        return (folder / "minimized.bin").read_bytes()
    except OSError:
        pass
    found = collecting.of_process(folder, symbolizer)
    if code == processes.EXIT_NOT_REUSABLE and any(
        request.signature in signatures_of(one) for one in found
    ):
        raise FramestormError(
            f"{request.artifact}: after {request.signature} its process cannot walk on, so it cannot be "
            "shrunk within one; edit its text form by hand (`scripts/framestorm decode`, `encode`)"
        )
    return None


def command_line(toolchain: Toolchain, artifact: Path) -> str:
    """What replays an artifact again."""
    return f"scripts/framestorm replay {paths.shown(artifact)} --jdk {toolchain.jdk.home}"
