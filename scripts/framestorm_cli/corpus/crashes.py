"""corpus/crashes as files: adding one, and the JDKs that they are replayed on. What they expect:
triage/expectations.py."""

import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import click

from framestorm_cli.artifacts import codec
from framestorm_cli.base import files, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.records import Json
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import runtimes
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request


def one_per_feature(found: list[Jdk]) -> list[Jdk]:
    """The newest of each feature release; `found` is newest first."""
    newest: dict[int, Jdk] = {}
    for jdk in found:
        newest.setdefault(jdk.feature, jdk)
    return list(newest.values())


def instrumented() -> list[Jdk]:
    """The instrumented JDK of each variant in the cache that was last built or used."""
    newest: dict[str, Path] = {}
    for home, record in choosing.with_walkers():
        newest.setdefault(record.variant, home)
    return [jdks.validate(home) for _, home in sorted(newest.items())]


def add_command(
    *, artifact: Path, name: str, jdk_paths: tuple[Path, ...], tries: int, profiler: str | None
) -> int:
    """Creates corpus/crashes/<name>. Exit code 1 when the artifact shows nothing on any JDK."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise FramestormError(f"--id {name}: use lower-case letters, digits and hyphens")
    folder = paths.CRASHES / name
    if folder.exists():
        raise FramestormError(f"{folder} exists already: give another --id or remove it")
    chosen = [choosing.choose(path) for path in jdk_paths] or one_per_feature(runtimes.usable())
    if not chosen:
        raise FramestormError("no usable JDK is installed: give --jdk PATH")
    described = None
    walked = outside.NONE
    per_jdk: dict[str, Json] = {}
    for jdk in chosen:
        tools = toolchain.prepare(jdk.home)
        described = codec.describe(tools.program(NATIVE), artifact)
        walked = outside.again(
            replaying.read_recorded(artifact, jdk.label).outside, None, profiler, jdk
        )
        per_jdk[jdk.label] = _assess(tools, artifact, tries, walked)
        steps.say(f"JDK {jdk.label}, {jdk.version}: {per_jdk[jdk.label]['status']}")
    if described is None or all(entry["status"] != "open" for entry in per_jdk.values()):
        click.echo(f"{artifact} shows nothing on {', '.join(j.version for j in chosen)}: not added")
        return 1
    folder.mkdir(parents=True)
    shutil.copyfile(artifact, folder / "input.bin")
    (folder / "input.txt").write_text(described.text, encoding="utf-8")
    recorded = replaying.read_recorded(artifact, chosen[0].label)
    expected: Json = {
        "walker": described.input.walker,
        "state": described.state,
        "per_jdk": per_jdk,
    }
    if recorded.jvm_args:
        expected["jvm_args"] = list(recorded.jvm_args)
    files.write_json(folder / "expected.json", expected | walked.recorded())
    click.echo(f"{paths.shown(folder)}: describe it in corpus/crashes/README.md")
    return 0


def _assess(tools: toolchain.Toolchain, artifact: Path, tries: int, walked: OutsideWalker) -> Json:
    """What an artifact does on one JDK: its recorded signature if that comes back, else whatever it
    shows most often."""
    symbolizer = Symbolizer()
    recorded = replaying.read_recorded(artifact, tools.jdk.label)
    for signature in dict.fromkeys((recorded.signature, None)):
        request = Request(artifact.resolve(), signature, recorded.jvm_args, walked)
        with tempfile.TemporaryDirectory(prefix="framestorm-") as scratch:
            done = replaying.run_tries(tools, symbolizer, request, tries, Path(scratch))
        shown = Counter(
            (one.matched or one.findings[0]).signature
            for one in done
            if one.matched is not None or (signature is None and one.findings)
        )
        if shown:
            best, hits = shown.most_common(1)[0]
            return {
                "status": "open",
                "signature": best,
                "reproduced": f"{hits} of {len(done)}",
                "version": tools.jdk.version,
            }
    return {"status": "unaffected", "version": tools.jdk.version}
