"""The framestorm checkout behind the plugin, and calls of its `scripts/framestorm`."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

DISTRIBUTION = "pytest-framestorm"
HOME = "FRAMESTORM_HOME"
NO_EXPECTATION = 5  # exit code of `corpus judge`
_GRACE = 2.0  # seconds between asking a process group to end and ending it


def find() -> Path:
    """FRAMESTORM_HOME, else the checkout that pip installed this plugin from (PEP 610)."""
    named = os.environ.get(HOME)
    if named:
        return _checked(Path(named), f"{HOME}={named}")
    source = _installed_from() or Path(__file__).parents[1]
    checkout = source.parent.parent
    return _checked(checkout, f"{checkout}, which {DISTRIBUTION} was installed from,")


def _installed_from() -> "Path | None":
    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    url = urlparse(json.loads(text)["url"]) if text else None
    return Path(unquote(url.path)) if url is not None and url.scheme == "file" else None


def _checked(checkout: Path, what: str) -> Path:
    if not (checkout / "scripts" / "framestorm").is_file():
        raise pytest.UsageError(
            f"{what} has no scripts/framestorm: set {HOME} to a checkout of framestorm"
        )
    return checkout.resolve()


class CallFailedError(Exception):
    """The command could not do its work; the text says why."""


def call(
    checkout: Path, arguments: Sequence[str], limit: "float | None" = None
) -> "tuple[int, str]":
    """Exit code and output of `scripts/framestorm ARGUMENTS`. After `limit` seconds it is ended with
    every process it started, and CallFailedError raised."""
    command = [str(checkout / "scripts" / "framestorm"), *arguments]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            _end(process)
            raise CallFailedError(
                f"`{' '.join(command)}` did not end in {limit:.0f} s and was killed:\n{_text(output)}"
            ) from None
        except BaseException:
            _end(process)
            raise
        return code, _text(output)


def _text(output: Any) -> str:
    output.seek(0)
    return str(output.read().decode(errors="replace"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Its JVMs die with it: framestorm starts them so."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return


def identify(checkout: Path, jdks: Sequence[str]) -> "list[dict[str, str]]":
    """Home, version and label of each JDK; sets up what replaying on them needs. Raises UsageError."""
    code, output = call(checkout, ["jdk", "identify", "--prepare", "--", *jdks])
    if code == 0:
        found = json.loads(output.splitlines()[-1])
        return [{str(key): str(value) for key, value in entry.items()} for entry in found]
    raise pytest.UsageError(f"--framestorm-jdk {', '.join(jdks)}:\n{output.strip()}")


def judge(
    checkout: Path, artifact: Path, jdk: str, limit: float, jvm_args: Sequence[str]
) -> "dict[str, Any] | None":
    """The verdict of `corpus judge`; None when nothing is expected on this JDK. Raises CallFailedError."""
    with tempfile.TemporaryDirectory(prefix="pytest-framestorm-") as folder:
        verdict = Path(folder) / "verdict.json"
        arguments = [
            "corpus",
            "judge",
            "--jdk",
            jdk,
            "--limit",
            f"{limit:g}",
            "--json",
            str(verdict),
        ]
        arguments += [f"--jvm-arg={argument}" for argument in jvm_args]
        # At most four JVMs, two at once; one that hangs is ended after `limit`.
        code, output = call(checkout, [*arguments, "--", str(artifact)], 4 * limit + 60)
        if code == NO_EXPECTATION:
            return None
        if code not in (0, 1) or not verdict.is_file():
            raise CallFailedError(
                output.strip() or f"scripts/framestorm ended with exit code {code}"
            )
        found = json.loads(verdict.read_text(encoding="utf-8"))
        return dict(found)


def decode(checkout: Path, artifact: Path) -> str:
    """The text form. Raises CallFailedError for what is no artifact."""
    code, output = call(checkout, ["decode", "--", str(artifact)])
    if code != 0:
        raise CallFailedError(output.strip())
    return output
