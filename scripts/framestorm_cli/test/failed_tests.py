"""Tests that failed or were skipped, from the JUnit XML that ctest and pytest write."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import junitparser

SHOWN_TESTS = 8
SHOWN_LINES = 30  # of each, its last


@dataclass(frozen=True)
class FailedTest:
    name: str
    words: str  # what it printed, or the traceback; may be empty

    def __str__(self) -> str:
        lines = self.words.splitlines()
        kept = lines[-SHOWN_LINES:]
        left_out = [f"... {len(lines) - len(kept)} lines more"] if len(kept) < len(lines) else []
        return "\n".join([f"FAILED {self.name}", *(f"  {line}" for line in [*left_out, *kept])])


def read(path: Path) -> list[FailedTest]:
    """The failed tests in a file, in its order. None where there is no such file or it is not whole:
    what wrote it has then failed as a step."""
    return [test for case in _cases(path) if (test := _failed(case)) is not None]


def skipped(path: Path) -> int:
    """How many tests in a file were skipped, 0 as above."""
    return sum(case.is_skipped and _failed(case) is None for case in _cases(path))


def _cases(path: Path) -> list[junitparser.TestCase]:
    try:
        document = junitparser.JUnitXml.fromfile(str(path))
    except (OSError, ElementTree.ParseError, junitparser.JUnitXmlError):
        return []
    suites = [document] if isinstance(document, junitparser.TestSuite) else list(document)
    return [case for suite in suites for case in suite]


def _failed(case: junitparser.TestCase) -> FailedTest | None:
    name = case.name if case.name == case.classname else f"{case.classname}::{case.name}"
    for result in case.result:
        if isinstance(result, junitparser.Failure | junitparser.Error):
            return FailedTest(
                name, (result.text or case.system_out or result.message or "").strip()
            )
        # ctest: a test whose program is not there was not run, and the run has failed.
        if isinstance(result, junitparser.Skipped) and "Unable to find" in (result.message or ""):
            return FailedTest(name, (case.system_out or result.message).strip())
    return None


def told(tests: list[FailedTest]) -> str:
    """The first few, whole; of the others their names."""
    others = [f"FAILED {test.name}" for test in tests[SHOWN_TESTS:]]
    return "\n".join([*map(str, tests[:SHOWN_TESTS]), *others])
