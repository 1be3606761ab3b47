"""The added walkers' own tests as a contestant: those that ctest runs on an instrumented JDK, one at a time.

Mutants are tried by the tests of their sources, too, which need no JVM: compiled of the sources with mutants.
Each test runs with none in force, which are counted that act in it. Then each mutant that is not killed yet
is in force in the tests that it acts in, one after the other: first in those that are most about it, and what
takes long comes last.
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect import canary, libraries
from framestorm_cli.detect.canary import Tried
from framestorm_cli.detect.looking import Looked, Task, Timed
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native import processes, toolchain
from framestorm_cli.native import walkers as walker_table
from framestorm_cli.native.toolchain import NATIVE, Toolchain

_LABEL = "walkers"
_APART = "mutated"  # the build of the tests of sources
_APART_LABEL = _APART_TARGET = "additions"
_SKIPPED = "[  SKIPPED ]"
_LEAST = 20.0  # seconds that a test gets at least
_SLOWER = 5  # than without a mutant it may be


class Test(msgspec.Struct):
    """As `ctest --show-only=json-v1` has it."""

    name: str
    command: list[str]

    @property
    def program(self) -> str:
        return Path(self.command[0]).name


class _Listed(msgspec.Struct):
    tests: list[Test]


@dataclass(frozen=True)
class _Ran:
    """`acts`: mutants that would have acted, by number, and how often."""

    test: Test
    seconds: float
    acts: Mapping[int, int]


def programs(tools: Toolchain, walkers: Sequence[str]) -> tuple[str, ...]:
    """Those of the tests that try mutants, built. None but for the walkers of profile.h and profile2.h: once
    is enough."""
    table = walker_table.table(tools.program(NATIVE)).walkers
    if not any(table[name].origin == "added" and table[name].comparable for name in walkers):
        return ()
    toolchain.build(())
    sources = libraries.mutated_additions(tools.jdk.home)
    toolchain.build_apart(_APART, (_APART_TARGET,), [f"-DFRAMESTORM_ADDITIONS={sources}"])
    return tuple(dict.fromkeys(test.program for test in _tests((), of_mutants=True)))


def look(task: Task) -> Looked:
    if task.mutants is None:
        toolchain.build(())
    tests = _tests(task.parts, of_mutants=task.mutants is not None)
    random.Random(task.seed).shuffle(tests)
    environment = toolchain.test_environment(task.tools.jdk)
    looked = Looked()
    if task.mutants is None:
        _look_for_a_bug(task, tests, environment, looked)
    else:
        _look_for_mutants(task, tests, environment, looked)
    if not looked.walks and not looked.problem:
        looked.problem = f"none of {len(tests)} tests ran on {task.tools.jdk.home}"
    return looked


def _tests(of: Sequence[str], *, of_mutants: bool) -> list[Test]:
    """Of these programs; of all where none is named."""
    every = _listed(paths.build(), _LABEL)
    if of_mutants:
        every += _listed(paths.build() / _APART, _APART_LABEL)
    return [test for test in every if not of or test.program in of]


def _listed(build: Path, label: str) -> list[Test]:
    command = ["ctest", "--test-dir", str(build), "-L", label, "--show-only=json-v1"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise FramestormError(f"`{' '.join(command)}` failed: {done.stderr.decode().strip()}")
    return msgspec.json.decode(done.stdout, type=_Listed).tests


def _look_for_a_bug(
    task: Task, tests: Sequence[Test], environment: Mapping[str, str], looked: Looked
) -> None:
    began = time.monotonic()
    for test in tests:
        left = began + task.seconds - time.monotonic()
        if left <= 0:
            return
        passed = _passes(task, test, environment, left)
        if time.monotonic() - began > task.seconds:
            return  # what was cut short says nothing
        looked.walks += passed is not None
        if passed is False:
            finding = Finding(kind="failed_test", signature=_signature(test))
            looked.found.append(Timed(time.monotonic() - began, finding))
            if task.wanted(finding):
                return


def _look_for_mutants(
    task: Task, tests: Sequence[Test], environment: Mapping[str, str], looked: Looked
) -> None:
    assert task.mutants is not None
    ran = _count(task, tests, environment)
    looked.walks = len(ran)
    killed = canary.read_killed(task.mutants)
    tried: dict[int, Tried] = {}
    began = time.monotonic()
    for number, one in _in_order(_most_about(ran)):
        so_far = tried.get(number, Tried(0, 0, killed=number in killed))
        if so_far.killed:
            continue
        if time.monotonic() - began > task.seconds:
            break
        kills = _fails_with(task, one, number, environment)
        tried[number] = Tried(so_far.tries + 1, int(kills), killed=kills)
        if kills:
            finding = Finding(
                kind="failed_test", signature=_signature(one.test), oracle="test", mutant=number
            )
            looked.found.append(Timed(time.monotonic() - began, finding))
    canary.write_tried(task.mutants, tried)


def _in_order(tests: Mapping[int, Sequence[_Ran]]) -> Iterator[tuple[int, _Ran]]:
    """The shortest first, as if a mutant's second test took twice its time, its third one three times, ..."""
    tries = [
        (turn * one.seconds, number, one)
        for number, every in tests.items()
        for turn, one in enumerate(every, 1)
    ]
    yield from ((number, one) for _, number, one in sorted(tries, key=lambda each: each[0]))


def _count(task: Task, tests: Sequence[Test], environment: Mapping[str, str]) -> list[_Ran]:
    """Those that pass while mutants are counted and none is in force."""
    assert task.mutants is not None
    ran = []
    before = canary.read_mutants(task.mutants)
    for test in tests:
        began = time.monotonic()
        passed = _passes(task, test, environment, 10 * _LEAST)
        now = canary.read_mutants(task.mutants)
        acts = {number: acted - before.get(number, (0, 0))[1] for number, (_, acted) in now.items()}
        before = now
        if passed:
            some = {number: often for number, often in acts.items() if often}
            ran.append(_Ran(test, time.monotonic() - began, some))
        elif passed is False:
            steps.say(f"{test.name} fails without a mutant: it tries none")
    return ran


def _most_about(ran: Sequence[_Ran]) -> dict[int, list[_Ran]]:
    """For each mutant the tests that it acts in. First those of which it is the largest part, for the time
    that they take, and first the mutants that act in few."""
    by_number: dict[int, list[_Ran]] = {}
    for one in ran:
        for number in one.acts:
            by_number.setdefault(number, []).append(one)

    def worth(one: _Ran, number: int) -> float:
        return one.acts[number] / sum(one.acts.values()) / one.seconds

    return {
        number: sorted(every, key=lambda one: -worth(one, number))
        for number, every in sorted(by_number.items(), key=lambda item: (len(item[1]), item[0]))
    }


def _fails_with(task: Task, one: _Ran, number: int, environment: Mapping[str, str]) -> bool:
    """Twice, and not without it right after: what fails by chance is no kill."""
    limit = max(_LEAST, _SLOWER * one.seconds)
    with_it = {**environment, "FRAMESTORM_MUTANT": str(number), canary.VARIABLE: ""}
    if any(_passes(task, one.test, with_it, limit) is not False for _ in range(2)):
        return False
    without = {**with_it, "FRAMESTORM_MUTANT": "0"}
    return _passes(task, one.test, without, limit) is True


def _passes(task: Task, test: Test, environment: Mapping[str, str], limit: float) -> bool | None:
    """None: it was skipped. What does not end within `limit` seconds has failed."""
    folder = task.out / "test"
    log = folder / "log.txt"
    log.unlink(missing_ok=True)
    process = processes.start(test.command, folder, environment)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return False
    finally:
        processes.end(process, grace=0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # JVMs that it started
    return None if _SKIPPED in log.read_text(errors="replace") else code == 0


def _signature(test: Test) -> Signature:
    return Signature("failed_test", test.name, ())
