"""`framestorm test` itself: what fails a run of the tests."""

import sys

import pytest

from framestorm_cli import testing
from framestorm_cli.testing import Outcome

PRINT = "import sys; print(sys.argv[1]); sys.exit(int(sys.argv[2]))"


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        ("== 12 passed, 1 skipped in 3.40s ==", 0, Outcome(0, "12 passed, 1 skipped in 3.40s")),
        ("\x1b[32m== 2 passed\x1b[0m in 1.00s ==", 0, Outcome(0, "2 passed in 1.00s")),
        ("= 1 failed, 3 passed in 3.40s =", 1, Outcome(1, "1 failed, 3 passed in 3.40s")),
        ("no tests ran in 0.01s", 5, Outcome(5, "ran no test")),
        ("3 skipped in 0.01s", 0, Outcome(1, "ran no test")),
        ("", 0, Outcome(1, "ran no test")),
    ],
)
def test_pytest_has_to_have_run_something(line: str, code: int, expected: Outcome) -> None:
    command = [sys.executable, "-c", PRINT, line, str(code)]
    assert testing._call_counted(command, testing._PYTEST_CLOSING) == expected


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        ("100% tests passed, 0 tests failed out of 183", 0, 0),
        ("99% tests passed, 1 tests failed out of 183", 8, 8),
        ("100% tests passed, 0 tests failed out of 0", 0, 1),
        ("No tests were found!!!", 0, 1),
    ],
)
def test_ctest_has_to_have_run_something(line: str, code: int, expected: int) -> None:
    command = [sys.executable, "-c", PRINT, line, str(code)]
    assert testing._call_counted(command, testing._CTEST_CLOSING).code == expected
