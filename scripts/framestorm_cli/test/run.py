"""`framestorm test`: every test and check of the checkout, one closing line.

Checks run side by side, each with its output in a log of its own, which is shown when the step has ended.
Steps that start JVMs have the machine to themselves: they use all cores by themselves.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import click

from framestorm_cli.base import packages, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import runtimes
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.test import failed_tests, java_format
from framestorm_cli.test.failed_tests import FailedTest

# Variants of the instrumented JDK that steps of the test command build.
BUILT = ("sanitized", "plain")
_CODE_FOLDERS = ("harness", "fuzz", "scripts", "stress", "corpus")
_PYTHON = (".", "../ci/gate", "../ci/pytest")  # from scripts/
_CODE_ENDINGS = (".cpp", ".h", ".hpp", ".c")


# Closing lines with how many tests ran.
_CTEST_CLOSING = re.compile(r"^\d+% tests passed, \d+ tests failed out of (\d+)")
_PYTEST_CLOSING = re.compile(r"\b(\d+) (?:passed|failed).* in [\d.]+s")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    code: int
    words: str = ""  # its closing line
    failures: tuple[FailedTest, ...] = ()  # the step itself where its tests are not known


@dataclass(frozen=True)
class Step:
    name: str
    run: Callable[[], int | Outcome]
    after: tuple[str, ...] = ()  # steps whose results it needs
    alone: bool = False  # it keeps all cores busy, and its tests count what a thread got done


_AT_ONCE = 2  # steps
_log = threading.local()  # of the step that a thread runs


def _cores() -> int:
    return os.cpu_count() or 1


def _output() -> IO[str]:
    return getattr(_log, "file", sys.stdout)


def _call_together(commands: list[list[str]]) -> list[int]:
    """_call() for several that leave cores idle, at once, each with its output in one piece."""
    with contextlib.ExitStack() as stack:
        started = []
        for command in commands:
            log = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            process = subprocess.Popen(
                command, cwd=paths.CHECKOUT, stdout=log, stderr=subprocess.STDOUT
            )
            started.append((command, log, stack.enter_context(process)))
        codes = []
        for command, log, process in started:
            codes.append(process.wait())
            _say(command)
            log.seek(0)
            _output().write(log.read())
    return codes


def _call(
    command: list[str], *, in_scripts: bool = False, environment: dict[str, str] | None = None
) -> int:
    _say(command)
    folder = paths.SCRIPTS if in_scripts else paths.CHECKOUT
    whole = {**os.environ, **(environment or {})}
    out = _output()
    return subprocess.run(
        command, cwd=folder, check=False, env=whole, stdout=out, stderr=subprocess.STDOUT
    ).returncode


def _say(command: list[str]) -> None:
    print("+ " + " ".join(command[:6]) + (" ..." if len(command) > 6 else ""), file=_output())
    _output().flush()


def _run_tests(
    runner: list[str],
    junit_option: str,
    arguments: list[str],
    closing: "re.Pattern[str]",
    environment: dict[str, str] | None = None,
) -> Outcome:
    """_call() for what runs tests: its closing line, which says how many were skipped, and its failures are
    kept, and a run of none has failed."""
    with tempfile.TemporaryDirectory(prefix="framestorm-test-") as folder:
        junit = Path(folder) / "junit.xml"
        command = [*runner, junit_option, str(junit), *arguments]
        outcome = _call_counted(command, closing, environment)
        skipped = failed_tests.skipped(junit)
        if skipped and "skipped" not in outcome.words:  # ctest counts them as passed
            outcome = replace(outcome, words=f"{outcome.words}, {skipped} skipped")
        if outcome.code == 0:
            return outcome
        return replace(outcome, failures=tuple(failed_tests.read(junit)))


def _call_counted(
    command: list[str], closing: "re.Pattern[str]", environment: dict[str, str] | None = None
) -> Outcome:
    """_call(), with the closing line; a run that counted no test has failed."""
    _say(command)
    words, count = "", 0
    with subprocess.Popen(
        command,
        cwd=paths.SCRIPTS,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            _output().write(line)
            _output().flush()
            plain = _COLOUR.sub("", line).strip(" =\n")
            if matched := closing.search(plain):
                words, count = plain, int(matched[1])
    if count == 0:
        return Outcome(process.returncode or 1, words or "ran no test")
    return Outcome(process.returncode, words)


def _sources(endings: tuple[str, ...]) -> list[str]:
    found = [
        str(path)
        for folder in _CODE_FOLDERS
        for path in sorted((paths.CHECKOUT / folder).rglob("*"))
        if path.suffix in endings and path.is_file()
    ]
    if not found:
        raise FramestormError(
            f"no {' or '.join(endings)} file below {paths.CHECKOUT}: is the checkout complete?"
        )
    return found


def _python(module: str, *arguments: str) -> int:
    return _call([sys.executable, "-m", module, *arguments], in_scripts=True)


def _ruff() -> int:
    cache = str(paths.cache() / "ruff")
    checked = _python("ruff", "check", "--cache-dir", cache, *_PYTHON)
    return _python("ruff", "format", "--check", "--cache-dir", cache, *_PYTHON) or checked


def _java_format() -> int:
    jdk, sources = choosing.choose(None), _sources((".java",))
    code = _call(java_format.check(jdk, sources))
    if code != 0:
        command = " ".join([*java_format.command(jdk), "--replace", "FILE..."])
        print(f"These files are laid out otherwise. To lay them out: {command}", file=_output())
    return code


def _clang_tidy() -> int:
    database = ["-p", str(paths.build()), "-quiet"]
    command = ["run-clang-tidy-19", "-j", str(_cores()), *database]
    tests: list[str] = []
    others: list[str] = []
    for source in _sources((".cpp",)):
        (tests if source.endswith("_test.cpp") else others).append(source)
    # It does not know that nothing comes behind an ASSERT_TRUE that fails.
    of_tests = [*command, "-checks=-bugprone-unchecked-optional-access", *tests]
    of_others = _call([*command, *others])
    return _call(of_tests) or of_others


def _ctest(ci: bool, whole: bool) -> Outcome:
    """All C++ tests with the newest JDK, and if `whole` those on a live JVM with every other one too, with
    the releases that are fetched, and with those that the cache has built. The walkers' own need a JDK
    that has them: _walkers()."""
    newest = choosing.choose(None)
    others = [other for other in runtimes.usable() if whole and other.home != newest.home]
    there = {other.feature for other in [newest, *others]}
    built = [one for one in choosing.stock_builds() if whole and one.feature not in there]
    code, words, failures = 0, [], list[FailedTest]()
    for index, under_test in enumerate([newest, *others, *built]):
        steps.say(f"C++ tests on {under_test}")
        only = ["-LE", "walkers"] if index == 0 else ["-L", "jvm"]
        environment = toolchain.test_environment(under_test)
        outcome = _run_ctest([*_ctest_options(ci), *only], environment)
        code = outcome.code or code
        words.append(f"JDK {under_test.version}: {outcome.words}")
        failures += outcome.failures
    return Outcome(code, "; ".join(words), tuple(failures))


def _run_ctest(options: list[str], environment: dict[str, str]) -> Outcome:
    return _run_tests(["ctest"], "--output-junit", options, _CTEST_CLOSING, environment)


def _ctest_options(ci: bool) -> list[str]:
    options = ["--test-dir", str(paths.build()), "--output-on-failure", "--no-tests=error"]
    # A JVM test waits for a third of its time.
    options += ["-j", str(_cores() + 1)]
    return options + (["--no-label-summary"] if ci else [])


def _walkers(ci: bool) -> Outcome:
    """The interfaces of the added walkers, on the variant `plain`, which is built unless the cache
    has it."""
    plain = choosing.choose(Path("instrumented:plain"))
    steps.say(f"tests of the walkers on {plain}")
    return _run_ctest([*_ctest_options(ci), "-L", "walkers"], toolchain.test_environment(plain))


def _pytest(ci: bool, arguments: tuple[str, ...], marked: str = "", beside: int = 1) -> Outcome:
    """`marked`: which tests, by pytest's -m. `beside`: how many more at once than there are cores."""
    options = ["--color=yes" if sys.stdout.isatty() and not ci else "--color=no"]
    options += ["--durations=10"] if ci else []
    # By files: what a file sets up for its tests is set up once.
    options += ["-n", str(_cores() + beside), "--dist", "loadfile", "--no-loadscope-reorder"]
    options += ["-m", marked] if marked else []
    pytest = [sys.executable, "-m", "pytest"]
    return _run_tests(pytest, "--junitxml", [*options, *arguments], _PYTEST_CLOSING)


def _instrumented() -> Outcome:
    """The sanitized JDK as a user meets it: built unless the cache has it, as is the plain one, then walked,
    and fuzzed by both engines. Findings are expected: AsyncGetCallTrace has some. The project's own walkers
    have none that is known: they go through the gate, which also holds the seeds to their coverage."""
    jdk_option = ["--jdk", "instrumented"]
    own = ["--walker", ",".join(walkers.table(toolchain.native_program()).added())]
    with tempfile.TemporaryDirectory(prefix="framestorm-instrumented-") as folder:

        def out(name: str) -> list[str]:
            return ["--out", str(Path(folder) / name)]

        fuzz = ["fuzz", *jdk_option, "--seed", "1", "--verify", "1"]
        check = ["corpus", "check", *jdk_option, "--halts", "6", *out("check")]
        # Those of a list at once: each leaves cores idle, builds while they configure and link, the fuzzers
        # while they replay. The gate steps and stresses the plain JDK.
        stages = [
            [["jdk", "build"], ["jdk", "build", "--variant", "plain"]],
            [
                [*fuzz, "--seconds", "15", *out("libfuzzer")],
                [*fuzz, "--engine", "afl", "--seconds", "20", *out("afl")],
                ["scenarios", *jdk_option],
                check,
            ],
            [["gate", *jdk_option, *own, "--minutes", "4", "--seed", "1", *out("gate")]],
        ]
        for commands in stages:
            for arguments in commands:
                steps.say(f"framestorm {' '.join(arguments[:2])}")
            codes = _call_together([[str(paths.SCRIPTS / "framestorm"), *one] for one in commands])
            for arguments, code in zip(commands, codes, strict=True):
                if code not in ({0, 1} if arguments[0] == "fuzz" else {0}):
                    words = f"framestorm {' '.join(arguments)} exited with {code}"
                    return Outcome(code or 1, words)
    return Outcome(0, f"{sum(map(len, stages))} commands as expected")


# OSS-Fuzz's variables for its default build, libFuzzer with ASan.
_OSS_FUZZ_FLAGS = (
    "-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION "
    "-fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link"
)
_OSS_FUZZ = {
    "CC": "clang-19",
    "CXX": "clang++-19",
    "CFLAGS": _OSS_FUZZ_FLAGS,
    "CXXFLAGS": _OSS_FUZZ_FLAGS,
    "SANITIZER": "address",
    "FUZZING_ENGINE": "libfuzzer",
    "LIB_FUZZING_ENGINE": "-fsanitize=fuzzer",
}


def _oss_fuzz() -> Outcome:
    """ci/oss-fuzz as OSS-Fuzz runs it, and the check of two of its targets: the others differ in a
    name. Builds the sanitized JDK unless the cache has it."""
    with tempfile.TemporaryDirectory(prefix="framestorm-oss-fuzz-") as out:
        folders = {"OUT": out, "WORK": str(paths.build() / "oss-fuzz")}
        code = _call(
            [str(paths.CHECKOUT / "ci" / "oss-fuzz" / "build.sh")],
            environment={**_OSS_FUZZ, **folders, **toolchain.compiler_launchers()},
        )
        if code != 0:
            return Outcome(code, "build.sh failed")
        check = [str(paths.SCRIPTS / "framestorm"), "oss-fuzz", "check", out]
        code = _call([*check, "--target", "fuzz_stack", "--target", "fuzz_iterator"])
    return Outcome(code, "2 targets as OSS-Fuzz wants them" if code == 0 else "a bad build")


def _every_step(ci: bool, whole: bool, pytest_args: tuple[str, ...]) -> list[Step]:
    """In the order in which they begin: what takes longest, or what others wait for, first."""
    return [
        Step("instrumented", _instrumented, alone=True),
        Step("ruff", _ruff),
        Step("mypy", lambda: _python("mypy", "--cache-dir", str(paths.cache() / "mypy"))),
        Step(
            "clang-format",
            lambda: _call(["clang-format-19", "--dry-run", "-Werror", *_sources(_CODE_ENDINGS)]),
        ),
        Step("java-format", _java_format),
        Step("oss-fuzz", _oss_fuzz, ("instrumented",)),
        Step("ctest", lambda: _ctest(ci, whole), alone=True),
        # Most of these wait for what they started.
        Step(
            "pytest",
            lambda: _pytest(
                ci, pytest_args, "not long and not detection" if not pytest_args else "", _cores()
            ),
        ),
        Step("walkers", lambda: _walkers(ci), alone=True),
        # Replays crashes on what these two build.
        Step(
            "long",
            lambda: _pytest(ci, pytest_args, "long", _cores()),
            ("instrumented", "walkers"),
            alone=True,
        ),
        Step("clang-tidy", _clang_tidy),
        Step("detection", lambda: _pytest(ci, pytest_args, "detection"), alone=True),
    ]


# What a contributor runs before each commit: minutes.
_QUICK = ("ruff", "mypy", "clang-format", "java-format", "ctest", "pytest")
_OF_PYTEST = {"pytest", "long", "detection"}
# Begun by name only: what they build, or look at, takes longer than a change is worth.
_ASKED_FOR = ("clang-tidy", "detection")


def test_command(
    *, ci: bool, tidy: bool, only: tuple[str, ...], pytest_args: tuple[str, ...]
) -> int:
    """Runs all steps that were asked for, whatever fails before. Exit code 1 when one failed or ran
    nothing."""
    began = time.monotonic()
    every = _every_step(ci, ci or bool(only), pytest_args)
    names = [step.name for step in every]
    if unknown := set(only) - set(names):
        raise FramestormError(
            f"there is no step {', '.join(sorted(unknown))}; steps: {', '.join(names)}"
        )
    if pytest_args and only and not _OF_PYTEST & set(only):
        raise FramestormError(
            "what stands behind -- is for pytest: --only pytest, long or detection. For some C++ tests: "
            f"ctest --test-dir {paths.build()} -R NAME"
        )
    wanted = set(only) or set(names if ci else _QUICK) - set(_ASKED_FOR) | (
        {"clang-tidy"} if tidy else set()
    )
    chosen = [step for step in every if step.name in wanted]
    packages.ensure()
    if ci or {"ctest", "long"} & set(only):
        for feature in runtimes.WHEELS:
            runtimes.provide(feature)
    if {"ctest", "walkers", "clang-tidy"} & wanted:
        toolchain.build(())
    outcomes = _run_side_by_side(chosen)
    failed = [name for name, (outcome, _) in outcomes.items() if outcome.code != 0]
    failures = [one for outcome, _ in outcomes.values() for one in outcome.failures]
    passed = len(chosen) - len(failed)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "all passed"
    # At the end, where a service that keeps only a log's end still shows them.
    if failures:
        click.echo("\n" + failed_tests.told(failures))
    click.echo("\n" + "\n".join(_closing(name, *outcomes[name]) for name in outcomes))
    took = f"{time.monotonic() - began:.0f} s"
    click.echo(f"framestorm test: {passed} of {len(chosen)} steps passed in {took}; {verdict}")
    # In the words that services which count tests look for.
    click.echo(f"steps: {passed} passed, {len(failed)} failed")
    return 1 if failed else 0


def _run_side_by_side(chosen: list[Step]) -> dict[str, tuple[Outcome, float]]:
    """Outcome and seconds of each, in the order in which they ended."""
    names = {step.name for step in chosen}
    waiting = list(chosen)
    running: dict[Future[tuple[Outcome, float, str]], Step] = {}
    ended: dict[str, tuple[Outcome, float]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while waiting or running:
            ready = [one for one in waiting if not names & set(one.after) - set(ended)]
            for step in ready:
                beside = [*running.values(), step]
                crowded = len(beside) > 1 and any(one.alone for one in beside)
                if crowded or len(beside) > _AT_ONCE:
                    continue
                waiting.remove(step)
                steps.say(f"{step.name}: begins")
                running[pool.submit(_run_step, step)] = step
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future).name
                outcome, seconds, output = future.result()
                ended[name] = (outcome, seconds)
                click.echo(output, nl=False)
                steps.say(_closing(name, outcome, seconds))
    return ended


def _run_step(step: Step) -> tuple[Outcome, float, str]:
    start = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        _log.file = log
        try:
            result = step.run()
        except FileNotFoundError as error:
            result = Outcome(1, f"{error.filename} is not there")
        except FramestormError as error:
            result = Outcome(1, error.message)
        finally:
            del _log.file
        outcome = result if isinstance(result, Outcome) else Outcome(result)
        log.seek(0)
        output = log.read()
        if outcome.code != 0 and not outcome.failures:
            outcome = replace(outcome, failures=(FailedTest(step.name, output),))
        return outcome, time.monotonic() - start, output


def _closing(name: str, outcome: Outcome, seconds: float) -> str:
    how = "passed" if outcome.code == 0 else f"FAILED (exit {outcome.code})"
    line = f"{name}: {how} in {seconds:.0f} s"
    return f"{line}; {outcome.words}" if outcome.words else line
