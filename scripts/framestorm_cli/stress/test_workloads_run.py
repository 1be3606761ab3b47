"""Every built-in workload on every installed JDK: it runs, proves its work, and fails where it cannot."""

import functools
import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress import compiling

pytestmark = pytest.mark.long

MAIN = "framestorm.workloads.Main"
OUTCOME = "framestorm-workload {"
JDKS = list({jdk.feature: jdk for jdk in jdks.usable()}.values())
NAMES = [
    "deoptimise-storm",
    "class-unloading",
    "exceptions",
    "stack-overflow",
    "monitor-contention",
    "jni-sandwich",
    "method-handles",
    "intrinsics",
    "thread-churn",
    "thread-crowd",
    "gc-pressure",
    "code-cache-flushing",
    "class-redefinition",
    "javac",
    "virtual-thread-churn",
    "virtual-thread-busy",
    "foreign-calls",
]


@dataclass(frozen=True)
class Ended:
    code: int
    outcome: dict[str, Any]
    stderr: str


def java(jdk: Jdk, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(jdk.home / "bin" / "java"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@functools.cache
def listed(jdk: Jdk) -> dict[str, Any]:
    built = compiling.build(jdk)
    lines = java(jdk, "-cp", str(built.jar), MAIN, "--list").stdout.splitlines()
    entries = [json.loads(line) for line in lines]
    return {entry["name"]: entry for entry in entries}


def run(
    jdk: Jdk,
    name: str,
    *options: str,
    more: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Ended:
    """`more` goes behind the workload's own JVM arguments, those that start with `without` left out."""
    built = compiling.build(jdk)
    own = [
        argument.replace("{jar}", str(built.jar)).replace("{natives}", str(built.natives))
        for argument in listed(jdk)[name]["jvm_args"]
        if not argument.startswith(without)
    ]
    done = java(jdk, *own, *more, "-cp", str(built.jar), MAIN, name, *options)
    found = [line for line in done.stdout.splitlines() if line.startswith(OUTCOME)]
    outcome = json.loads(found[-1].removeprefix(OUTCOME[:-1])) if found else {}
    return Ended(done.returncode, outcome, done.stderr)


@pytest.fixture(scope="module", params=JDKS, ids=lambda jdk: str(jdk.feature))
def jdk(request: pytest.FixtureRequest) -> Jdk:
    assert isinstance(request.param, Jdk)
    return request.param


def test_the_list_is_whole(jdk: Jdk) -> None:
    entries = listed(jdk)
    assert sorted(entries) == sorted(NAMES)
    for entry in entries.values():
        assert entry["summary"]
        assert entry["missing"] in (
            "",
            "JDK 21 or later",
            "JDK 22 or later",
            "the module jdk.compiler",
        )
        assert entry["threads"]


def test_a_run_whose_time_is_up_before_its_threads_have_started_does_something(jdk: Jdk) -> None:
    ended = run(jdk, "method-handles", "--seconds", "0.000001")
    assert ended.code == 0, ended.stderr
    assert ended.outcome["iterations"] >= 1


@pytest.mark.parametrize("name", NAMES)
def test_it_does_what_it_is_named_after(jdk: Jdk, name: str) -> None:
    missing = listed(jdk)[name]["missing"]
    if missing:
        ended = run(jdk, name, "--seconds", "1")
        assert ended.code == 2
        assert f"needs {missing}" in ended.stderr
        pytest.skip(f"{name} needs {missing}, which {jdk} does not have")
    ended = run(jdk, name, "--seconds", "0.5", "--seed", "7")
    assert ended.code == 0, ended.stderr
    assert ended.outcome["name"] == name
    assert ended.outcome["iterations"] >= 1
    assert ended.outcome["seconds"] >= 0.5
    assert ended.outcome["work"]


@pytest.mark.parametrize(
    ("name", "options", "more", "without"),
    [
        ("deoptimise-storm", ("--iterations", "5"), ("-Xint",), ()),
        ("class-unloading", ("--iterations", "3"), ("-Xnoclassgc",), ()),
        ("exceptions", ("--iterations", "3"), ("-XX:-StackTraceInThrowable",), ()),
        ("intrinsics", ("--iterations", "1"), ("-Xint",), ()),
        ("gc-pressure", ("--iterations", "2"), ("-Xmx1g", "-Xms1g", "-Xmn900m"), ()),
        ("code-cache-flushing", ("--iterations", "20"), (), ("-XX:ReservedCodeCacheSize",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_that_does_not_do_it_fails(
    jdk: Jdk,
    name: str,
    options: tuple[str, ...],
    more: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    ended = run(jdk, name, *options, more=more, without=without or ("no such argument",))
    assert ended.code == 3, ended.stderr
    assert "did not do what it is named after" in ended.stderr
    assert ended.outcome["iterations"] >= 1


@pytest.mark.parametrize(
    ("name", "without", "says"),
    [
        ("jni-sandwich", "-Dframestorm", "needs its native library"),
        ("class-redefinition", "-javaagent", "needs this jar as its agent"),
    ],
)
def test_what_it_needs_is_not_there(jdk: Jdk, name: str, without: str, says: str) -> None:
    ended = run(jdk, name, "--seconds", "1", without=(without,))
    assert ended.code == 2
    assert says in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("no-such-workload",), "there is no workload no-such-workload"),
        (("exceptions", "--seconds"), "--seconds needs a value"),
        (("exceptions", "--seconds", "soon"), "--seconds is a number"),
        (("exceptions", "--threads", "0"), "--threads is more than 0"),
        (("exceptions", "--speed", "3"), "there is no option --speed"),
        (("monitor-contention", "--threads", "1"), "takes two threads"),
        ((), "usage:"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], says: str) -> None:
    built = compiling.build(JDKS[0])
    done = java(JDKS[0], "-cp", str(built.jar), MAIN, *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_iterations_end_a_run() -> None:
    ended = run(JDKS[0], "exceptions", "--iterations", "5", "--threads", "3")
    assert ended.code == 0
    assert ended.outcome["iterations"] == 5


def test_there_are_jdks_to_test_with() -> None:
    assert JDKS
