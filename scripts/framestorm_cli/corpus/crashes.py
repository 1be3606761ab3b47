"""corpus/crashes: one folder per known crash, replayed by test_crashes.py.

    <id>/input.bin  input.txt  expected.json
    expected.json: {"per_jdk": {"25": {"status": "open", "signature": {...}}, "17": {"status": "fixed"}}}

The keys are feature releases, and "25-sanitized" and the like for instrumented JDKs. `open`: the
signature must still come back. `fixed` (once open), `unaffected` (never seen): it must not.
"""

import json
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
from framestorm_cli.findings.finding import Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import store
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request

STATUSES = ("open", "fixed", "unaffected")


def one_per_feature(found: list[Jdk]) -> list[Jdk]:
    """The newest of each feature release; `found` is newest first."""
    newest: dict[int, Jdk] = {}
    for jdk in found:
        newest.setdefault(jdk.feature, jdk)
    return list(newest.values())


def instrumented() -> list[Jdk]:
    """The instrumented JDK of each variant in the cache that was last built or used."""
    newest: dict[str, Path] = {}
    for home, record in store.finished():
        newest.setdefault(record.variant, home)
    return [jdks.validate(home) for _, home in sorted(newest.items())]


def folders(base: Path = paths.CRASHES) -> list[Path]:
    """The crash folders, by name."""
    return sorted(p for p in base.iterdir() if p.is_dir()) if base.is_dir() else []


def read_expected(folder: Path) -> dict[str, tuple[str, Signature | None]]:
    """Status and signature per Jdk.label. Raises FramestormError when they make no sense."""
    return read_expectations(folder / "expected.json")


def read_expectations(path: Path) -> dict[str, tuple[str, Signature | None]]:
    """The same of any file in the form of expected.json."""
    try:
        per_jdk = json.loads(path.read_text(encoding="utf-8"))["per_jdk"]
        expected: dict[str, tuple[str, Signature | None]] = {}
        for label, entry in per_jdk.items():
            if not re.fullmatch(r"\d+(-[a-z]+)?", label):
                raise ValueError(f"{label!r} is no release like 25 or 25-sanitized")
            status, data = entry["status"], entry.get("signature")
            if status not in STATUSES:
                raise ValueError(f"status {status!r} is none of {', '.join(STATUSES)}")
            expected[label] = (status, Signature.from_json(data) if data else None)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FramestormError(f"{path}: {error}") from error
    opened = [signature for status, signature in expected.values() if status == "open"]
    if any(signature is None for signature in opened):
        raise FramestormError(f"{path}: an open crash needs its signature")
    known = next((signature for _, signature in expected.values() if signature), None)
    if known is None:
        raise FramestormError(f"{path}: no entry has a signature")
    # Where it is fixed, what must not come back is the signature of where it is open.
    return {label: (status, signature or known) for label, (status, signature) in expected.items()}


def add_command(*, artifact: Path, name: str, jdk_paths: tuple[Path, ...], tries: int) -> int:
    """Creates corpus/crashes/<name>. Exit code 1 when the artifact shows nothing on any JDK."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise FramestormError(f"--id {name}: use lower-case letters, digits and hyphens")
    folder = paths.CRASHES / name
    if folder.exists():
        raise FramestormError(f"{folder} exists already: give another --id or remove it")
    chosen = [choosing.choose(path) for path in jdk_paths] or one_per_feature(jdks.usable())
    if not chosen:
        raise FramestormError("no usable JDK is installed: give --jdk PATH")
    text = ""
    per_jdk: dict[str, Json] = {}
    for jdk in chosen:
        tools = toolchain.prepare(jdk.home)
        text = codec.decode(tools.program(NATIVE), artifact)
        per_jdk[jdk.label] = _assess(tools, artifact, tries)
        steps.say(f"JDK {jdk.label}, {jdk.version}: {per_jdk[jdk.label]['status']}")
    if not any(entry["status"] == "open" for entry in per_jdk.values()):
        click.echo(f"{artifact} shows nothing on {', '.join(j.version for j in chosen)}: not added")
        return 1
    folder.mkdir(parents=True)
    shutil.copyfile(artifact, folder / "input.bin")
    (folder / "input.txt").write_text(text, encoding="utf-8")
    recorded = replaying.read_recorded(artifact, chosen[0].label)
    expected: Json = {"per_jdk": per_jdk}
    if recorded.jvm_args:
        expected["jvm_args"] = list(recorded.jvm_args)
    files.write_json(folder / "expected.json", expected)
    click.echo(f"{paths.shown(folder)}: describe it in corpus/crashes/README.md")
    return 0


def _assess(tools: toolchain.Toolchain, artifact: Path, tries: int) -> Json:
    """What an artifact does on one JDK: its recorded signature if that comes back, else whatever it
    shows most often."""
    symbolizer = Symbolizer()
    recorded = replaying.read_recorded(artifact, tools.jdk.label)
    for signature in dict.fromkeys((recorded.signature, None)):
        request = Request(artifact.resolve(), signature, recorded.jvm_args, recorded.walker_plugin)
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
                "signature": best.to_json(),
                "reproduced": f"{hits} of {len(done)}",
                "version": tools.jdk.version,
            }
    return {"status": "unaffected", "version": tools.jdk.version}
