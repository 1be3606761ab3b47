"""JUnit XML: a check is a test case, what could not be judged an error."""

import io
import re
from pathlib import Path

import junitparser

from framestorm_cli.base import files
from framestorm_cli.reports.model import ERROR, FAILED, Check, Report

# Characters that XML 1.0 cannot hold, escaped or not.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
RUN = "run"  # the test case that stands for the run as a whole


def _clean(text: str) -> str:
    return _UNSPEAKABLE.sub("?", text)


def write(report: Report, path: Path) -> None:
    """Raises OSError."""
    suite = junitparser.TestSuite(f"framestorm {report.command}")
    suite.timestamp = report.started
    suite.hostname = "localhost"
    for name, value in report.properties.items():
        suite.add_property(_clean(name), _clean(value))
    cases = [_case(report, check) for check in report.checks]
    for problem in report.problems:
        case = junitparser.TestCase(RUN, f"framestorm.{report.command}", 0.0)
        case.result = [junitparser.Error(_clean(problem), "not to be believed")]
        cases.append(case)
    suite.add_testcases(cases)
    document = junitparser.JUnitXml(f"framestorm {report.command}")
    document.add_testsuite(suite)
    written = io.BytesIO()
    document.write(written, pretty=True)
    files.write_bytes(path, written.getvalue())


def _case(report: Report, check: Check) -> junitparser.TestCase:
    case = junitparser.TestCase(
        _clean(check.name),
        _clean(f"framestorm.{report.command}.{check.group}"),
        round(check.seconds, 3),
    )
    said = [f"{name}: {value}" for name, value in check.properties.items()]
    if check.outcome == FAILED:
        failure = junitparser.Failure(_clean(check.message), "finding")
        failure.text = _clean(check.details)
        case.result = [failure]
    elif check.outcome == ERROR:
        error = junitparser.Error(_clean(check.message), "could not judge")
        error.text = _clean(check.details)
        case.result = [error]
    elif check.message:
        said.insert(0, check.message)
    if said:
        case.system_out = _clean("\n".join(said))
    return case
