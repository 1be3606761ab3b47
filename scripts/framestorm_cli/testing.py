"""`framestorm test`: every test and check of the checkout, one closing line."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from framestorm_cli import jdk, packages, paths, steps, toolchain
from framestorm_cli.errors import FramestormError

_CODE_FOLDERS = ("harness", "fuzz", "scripts", "stress", "corpus")
_CODE_ENDINGS = (".cpp", ".h", ".hpp", ".c")


@dataclass(frozen=True)
class Step:
    name: str
    run: Callable[[], int]


def _call(
    command: list[str], *, in_scripts: bool = False, environment: dict[str, str] | None = None
) -> int:
    steps.say(" ".join(command[:6]) + (" ..." if len(command) > 6 else ""))
    sys.stdout.flush()
    folder = paths.SCRIPTS if in_scripts else paths.CHECKOUT
    whole = {**os.environ, **(environment or {})}
    return subprocess.run(command, cwd=folder, check=False, env=whole).returncode


def _sources(endings: tuple[str, ...]) -> list[str]:
    found = [
        str(path)
        for folder in _CODE_FOLDERS
        for path in sorted((paths.CHECKOUT / folder).rglob("*"))
        if path.suffix in endings and path.is_file()
    ]
    if not found:
        raise FramestormError(f"no C++ source below {paths.CHECKOUT}: is the checkout complete?")
    return found


def _python(module: str, *arguments: str) -> int:
    return _call([sys.executable, "-m", module, *arguments], in_scripts=True)


def _ruff() -> int:
    cache = str(paths.cache() / "ruff")
    checked = _python("ruff", "check", "--cache-dir", cache, ".")
    return _python("ruff", "format", "--check", "--cache-dir", cache, ".") or checked


def _clang_tidy() -> int:
    database = ["-p", str(paths.build()), "-quiet"]
    jobs = ["-j", str(os.cpu_count() or 1)]
    return _call(["run-clang-tidy-19", *jobs, *database, *_sources((".cpp",))])


def _ctest(ci: bool) -> int:
    """All C++ tests with the newest JDK, those on a live JVM with every other one too."""
    command = ["ctest", "--test-dir", str(paths.build()), "--output-on-failure", "--no-tests=error"]
    command += ["-j", str(os.cpu_count() or 1)]
    command += ["--no-label-summary"] if ci else []
    newest = jdk.choose(None)
    others = [other for other in jdk.usable() if other.home != newest.home]
    code = 0
    for index, under_test in enumerate([newest, *others]):
        classes = str(toolchain.victims(under_test))
        steps.say(f"C++ tests on {under_test}")
        environment = {
            "FRAMESTORM_TEST_JDK": str(under_test.home),
            "FRAMESTORM_TEST_CLASSES": classes,
        }
        only = [] if index == 0 else ["-L", "jvm"]
        code = _call([*command, *only], environment=environment) or code
    return code


def _pytest(ci: bool, arguments: tuple[str, ...]) -> int:
    return _python("pytest", *(["--color=no", "--durations=10"] if ci else []), *arguments)


def test_command(
    *, ci: bool, tidy: bool, only: tuple[str, ...], pytest_args: tuple[str, ...]
) -> int:
    """Runs all steps, whatever fails before. Exit code 1 when one failed or ran nothing."""
    began = time.monotonic()
    every = [
        Step("ruff", _ruff),
        Step("mypy", lambda: _python("mypy", "--cache-dir", str(paths.cache() / "mypy"))),
        Step(
            "clang-format",
            lambda: _call(["clang-format-19", "--dry-run", "-Werror", *_sources(_CODE_ENDINGS)]),
        ),
        *([Step("clang-tidy", _clang_tidy)] if tidy or "clang-tidy" in only else []),
        Step("ctest", lambda: _ctest(ci)),
        Step("pytest", lambda: _pytest(ci, pytest_args)),
    ]
    unknown = set(only) - {step.name for step in every}
    if unknown:
        raise FramestormError(
            f"there is no step {', '.join(sorted(unknown))}; steps: {', '.join(s.name for s in every)}"
        )
    chosen = [step for step in every if not only or step.name in only]
    packages.ensure()
    if {"ctest", "clang-tidy"} & {step.name for step in chosen}:
        toolchain.build(())
    failed = []
    for step in chosen:
        start = time.monotonic()
        try:
            code = step.run()
        except FileNotFoundError as error:
            raise FramestormError(f"{step.name}: {error.filename} is not there") from error
        steps.say(f"{step.name}: {'passed' if code == 0 else f'FAILED (exit {code})'} in "
                  f"{time.monotonic() - start:.0f} s")  # fmt: skip
        if code != 0:
            failed.append(step.name)
    took = f"{time.monotonic() - began:.0f} s"
    passed = len(chosen) - len(failed)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all passed"
    click.echo(f"framestorm test: {passed} of {len(chosen)} steps passed in {took}; {verdict}")
    return 1 if failed else 0
