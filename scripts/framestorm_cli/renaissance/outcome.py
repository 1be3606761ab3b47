"""How a benchmark of Renaissance ended, and whether that has anything to do with walking."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_COMPLETED = re.compile(
    r"^====== \S+ \([^)]*\) \[[^]]*\], iteration \d+ completed \(", re.MULTILINE
)
_EXCLUDED = re.compile(r"^Benchmark '\S+' excluded: (requires JVM version .*)$", re.MULTILINE)
_VALIDATION = re.compile(r"^Benchmark '\S+' failed result validation:\n(.*)$", re.MULTILINE)
_EXCEPTION = re.compile(r"^Benchmark '\S+' failed with exception:\n(.*)$", re.MULTILINE)
_LOAD = re.compile(r"^Failed to load benchmark '\S+': (.*)$", re.MULTILINE)
_ABSENT = re.compile(r"^Benchmark \(or group\) '\S+' does not exist\.$", re.MULTILINE)
_OUT_OF_MEMORY = re.compile(
    r"^.*(?:java\.lang\.OutOfMemoryError|insufficient memory for the Java Runtime).*$", re.MULTILINE
)
# Its exit code is 1 where core dumps are off.
_CRASHED = "A fatal error has been detected by the Java Runtime Environment"
# The JVM's own complaints: these may well be what a walker has broken.
_BY_THE_JVM = re.compile(
    r"java\.lang\.(InternalError|VerifyError|ClassFormatError|UnknownError|"
    r"IllegalMonitorStateException|VirtualMachineError|ClassCircularityError)"
)


class Kind(StrEnum):
    UNSUPPORTED_JVM = "unsupported-jvm"
    VALIDATION = "validation"
    OUT_OF_MEMORY = "out-of-memory"
    LOAD = "load"
    EXCEPTION = "exception"
    ABSENT = "absent"
    NOTHING_DONE = "nothing-done"


@dataclass(frozen=True)
class Failure:
    """Of the benchmark, not of walking: it says nothing for or against a walker."""

    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Outcome:
    """`failure` None and not `finished`: the process died or was ended, which is for others to judge."""

    iterations: int
    failure: Failure | None
    finished: bool


def judge(output: str, code: int | None, results: Path | None = None) -> Outcome:
    """From what the benchmark wrote to stdout and stderr, its exit code (negative: the signal, None: it
    was ended from outside), and the file of its --json option."""
    iterations = max(len(_COMPLETED.findall(output)), _measured(results))
    if code is None or code < 0 or code > 1:
        return Outcome(iterations, None, False)
    failure = _failure(output)
    if failure is None and code == 0 and iterations == 0:
        failure = Failure(Kind.NOTHING_DONE, "it ended without an error and without an iteration")
    by_the_jvm = _CRASHED in output or (failure and _BY_THE_JVM.search(failure.message))
    if by_the_jvm or (failure is None and code != 0):
        return Outcome(iterations, None, False)
    return Outcome(iterations, failure, failure is None)


def _failure(output: str) -> Failure | None:
    for kind, pattern in (
        (Kind.UNSUPPORTED_JVM, _EXCLUDED),
        (Kind.ABSENT, _ABSENT),
        (Kind.OUT_OF_MEMORY, _OUT_OF_MEMORY),
        (Kind.LOAD, _LOAD),
        (Kind.VALIDATION, _VALIDATION),
        (Kind.EXCEPTION, _EXCEPTION),
    ):
        if found := pattern.search(output):
            return Failure(kind, found[found.re.groups].strip())
    return None


def _measured(results: Path | None) -> int:
    """Iterations by the results file; 0 when there is none, or a process was killed while it wrote it."""
    if results is None:
        return 0
    try:
        data = json.loads(results.read_text(encoding="utf-8"))["data"]
        return sum(len(benchmark["results"]) for benchmark in data.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
