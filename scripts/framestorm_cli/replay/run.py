"""`framestorm replay` and `framestorm minimize`."""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from framestorm_cli.artifacts import codec
from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native import processes, toolchain
from framestorm_cli.native.toolchain import NATIVE, STEP, Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded, Request, Try
from framestorm_cli.triage.explain import explain

SAMPLE = ".sample"  # of what the stress agent keeps whole


def read_signature(path: Path) -> Signature:
    """A signature from a JSON file: the signature itself, or an object with it in `signature`."""
    data = records.read_json(path)
    try:
        return Signature.from_json(data.get("signature", data))
    except (ValueError, AttributeError) as error:
        raise FramestormError(f"{path} holds no signature: {error}") from error


def show_finding(finding: Finding) -> None:
    """Fault, explanation and symbolised walker stack of a finding."""
    click.echo(f"signature: {finding.signature}")
    click.echo(f"explanation: {explain(finding)}")
    if finding.signal:
        click.echo(
            f"fault: {finding.signal}, si_code {finding.si_code}, address {finding.address}, "
            f"pc {finding.pc}"
        )
    if finding.detail:
        click.echo(f"detail: {finding.detail}")
    for name, value in finding.context.items():
        click.echo(f"context {name}: {value}")
    click.echo("walker stack:")
    for index, frame in enumerate(finding.frames):
        click.echo(f"  #{index:<2} {frame}")


def _report_try(number: int, tries: int, one: Try) -> None:
    if one.matched is not None:
        what = "reproduced"
    elif one.findings:
        what = f"something else: {one.findings[0].signature}"
    else:
        walk = one.replay.get("walk", {})
        what = f"no finding (walk {walk.get('end', '?')}, {walk.get('num_frames', '?')} frames)"
    halts = one.replay.get("halts")
    after = f", {halts} halt point(s)" if halts is not None else ""
    # A count, or the names themselves.
    unresolved = one.replay.get("unresolved")
    names = (
        ", ".join(map(str, unresolved)) if isinstance(unresolved, list) else f"{unresolved} name(s)"
    )
    missing = f"; not in this JVM: {names}" if unresolved else ""
    steps.say(f"try {number} of {tries}: {what}{after}, {one.seconds:.1f} s{missing}")


def _show_sample(sample: Path) -> int:
    shown = processes.query([toolchain.native_program(STEP), "show-sample", sample.resolve()])
    click.echo(shown.decode(errors="replace").rstrip() + "\n")
    same = sample.with_suffix(".bin")
    if same.exists():
        click.echo(f"the same place as an input: scripts/framestorm replay {paths.shown(same)}")
    else:
        click.echo("a sample is not replayed, and there is no input (.bin) of it beside it")
    return 0


def replay_command(
    *,
    artifact: Path,
    tries: int,
    halts: int,
    signature: Path | None,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    walker_plugin: str | None,
    profiler: str | None,
) -> int:
    """Exit code 0 when the recorded signature came back, 1 when it did not. A sample of `stress`
    or `step` is shown: 0."""
    if artifact.suffix == SAMPLE:
        return _show_sample(artifact)
    outside.check(walker_plugin, profiler)
    tools = toolchain.prepare(jdk)
    text = codec.decode(tools.program(NATIVE), artifact)
    recorded = replaying.read_recorded(artifact, tools.jdk.label)
    if signature is not None:
        recorded = replace(recorded, signature=read_signature(signature))
    walked = outside.again(recorded.outside, walker_plugin, profiler, tools.jdk)
    click.echo(f"JDK: {tools.jdk}")
    if walked:
        click.echo(f"{walked.walker}: {walked}")
    click.echo(f"input {artifact}:\n{text.rstrip()}\n")
    if recorded.signature is not None:
        click.echo(f"recorded signature: {recorded.signature}\n")
    symbolizer = Symbolizer()
    with tempfile.TemporaryDirectory(prefix="framestorm-") as scratch:
        folder = out.resolve() if out is not None else Path(scratch)
        numbers = itertools.count(1)

        def on_done(one: Try) -> None:
            _report_try(next(numbers), tries, one)

        args = jvm_args or recorded.jvm_args
        request = Request(artifact.resolve(), recorded.signature, args, walked, halts)
        done = replaying.run_tries(tools, symbolizer, request, tries, folder, on_done)
    return _verdict(done, recorded.signature)


def _verdict(done: list[Try], wanted: Signature | None) -> int:
    hits = sum(1 for one in done if one.matched is not None)
    if (shown := replaying.shown(done)) is not None:
        show_finding(shown)
        click.echo()
    if wanted is None:
        seen = sum(1 for one in done if one.findings)
        click.echo(f"something was found in {seen} of {len(done)} fresh JVMs")
        click.echo(
            "no signature is recorded for this artifact, so there is nothing to compare with: keep one "
            "beside it (ARTIFACT.json, see `scripts/framestorm corpus add --help`) or give --signature"
        )
        return 1
    click.echo(f"reproduced in {hits} of {len(done)} fresh JVMs")
    if not hits:
        click.echo("the recorded signature did not come back: not reproducible here")
        return 1
    return 0


def minimize_command(
    *,
    artifact: Path,
    tries: int,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    walker_plugin: str | None,
    profiler: str | None,
) -> int:
    """Exit code 0 with a shrunk artifact, 1 when the signature did not come back."""
    outside.check(walker_plugin, profiler)
    tools = toolchain.prepare(jdk)
    before = codec.decode(tools.program(NATIVE), artifact)
    recorded = replaying.read_recorded(artifact, tools.jdk.label)
    walked = outside.again(recorded.outside, walker_plugin, profiler, tools.jdk)
    symbolizer = Symbolizer()
    with tempfile.TemporaryDirectory(prefix="framestorm-") as scratch:
        folder = Path(scratch)
        args = jvm_args or recorded.jvm_args
        request = Request(artifact.resolve(), recorded.signature, args, walked)
        if recorded.signature is None:
            request = _learn(tools, symbolizer, request, folder / "learn")
        assert request.signature is not None
        if request.signature.kind == "process_death":
            raise FramestormError(
                f"{artifact}: the input kills the whole process, outside of the walk's containment; "
                "it cannot be shrunk within one"
            )
        data = None
        for number in range(tries):
            data = replaying.minimize(tools, symbolizer, request, folder / f"minimize{number}")
            if data is not None:
                break
        if data is None:
            click.echo(
                f"{request.signature} did not come back in {tries} fresh JVMs: nothing was shrunk"
            )
            return 1
        smaller = folder / "minimized.bin"
        smaller.write_bytes(data)
        checked = replaying.run_tries(
            tools, symbolizer, replace(request, artifact=smaller), tries, folder / "check"
        )
    hits = sum(1 for one in checked if one.matched is not None)
    target = out or artifact.with_name(f"{artifact.stem}.min.bin")
    target.write_bytes(data)
    after = codec.decode(tools.program(NATIVE), target)
    target.with_suffix(".txt").write_text(after, encoding="utf-8")
    jvm = records.read_json(replaying.sidecar(artifact)).get("jdk", {})
    replaying.write_sidecar(
        target, request.signature, jvm, Recorded(None, request.jvm_args, request.outside)
    )
    click.echo(after.rstrip())
    lines = [len(text.splitlines()) for text in (before, after)]
    click.echo(
        f"\n{lines[0]} lines became {lines[1]}: {target}\n"
        f"{request.signature}\nreproduced in {hits} of {len(checked)} fresh JVMs"
    )
    return 0 if hits else 1


def _learn(tools: Toolchain, symbolizer: Symbolizer, request: Request, folder: Path) -> Request:
    """The request with the signature of the first thing the artifact does."""
    one = replaying.run_try(tools, symbolizer, request, folder)
    if one is None or not one.findings:
        raise FramestormError(
            f"{request.artifact} has no recorded signature and nothing was found when it was replayed: "
            "there is nothing to hold while shrinking"
        )
    steps.say(f"no recorded signature, holding what the replay found: {one.findings[0].signature}")
    return replace(request, signature=one.findings[0].signature)
