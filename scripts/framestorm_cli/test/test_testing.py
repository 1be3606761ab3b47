"""`framestorm test` itself: what fails a run of the tests."""

import sys
import threading
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.test import failed_tests
from framestorm_cli.test import run as testing
from framestorm_cli.test.failed_tests import FailedTest
from framestorm_cli.test.run import Outcome, Step

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


def test_commands_at_once_have_their_output_and_code_each(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Each waits for the other's file.
    meet = (
        "import pathlib, sys, time\n"
        "own, other, code = sys.argv[1:]\n"
        "pathlib.Path(own).touch()\n"
        "while not pathlib.Path(other).exists(): time.sleep(0.01)\n"
        "print('met', other); sys.exit(int(code))"
    )
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    python = [sys.executable, "-c", meet]
    assert testing._call_together([[*python, one, two, "0"], [*python, two, one, "3"]]) == [0, 3]
    said = capfd.readouterr().out
    assert said.index(f"met {two}") < said.index(f"met {one}")


def test_steps_run_side_by_side_and_those_that_need_others_after_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    both_run = threading.Barrier(2, timeout=60)
    order: list[str] = []

    def meet(name: str) -> int:
        both_run.wait()  # would end the test if one of the two waited for the other
        order.append(name)
        return testing._call([sys.executable, "-c", PRINT, f"said by {name}", "0"])

    def late() -> Outcome:
        order.append("late")
        return Outcome(3, "no good")

    def missing() -> int:
        return testing._call(["/nonexistent/program"])

    outcomes = testing._run_side_by_side(
        [
            Step("late", late, ("one", "two", "not chosen")),
            Step("one", lambda: meet("one")),
            Step("two", lambda: meet("two")),
            Step("missing", missing),
        ]
    )
    assert order[-1] == "late"
    codes = {name: outcome.code for name, (outcome, _) in outcomes.items()}
    assert codes == {"one": 0, "two": 0, "late": 3, "missing": 1}
    out, err = capfd.readouterr()
    for name in ("one", "two"):
        assert out.count(f"said by {name}") == 2, "the command and what it printed"
    assert "late: FAILED (exit 3)" in err


def test_a_step_whose_tests_are_not_known_is_told_by_what_it_printed() -> None:
    def prints_and_fails() -> Outcome:
        testing._call([sys.executable, "-c", "print('the cause')"])
        return Outcome(1, "exited with 1")

    outcomes = testing._run_side_by_side([Step("one", prints_and_fails), Step("two", lambda: 0)])
    (failure,) = outcomes["one"][0].failures
    assert failure.name == "one"
    assert failure.words.endswith("the cause\n")
    assert outcomes["two"][0].failures == ()


def test_arguments_that_no_step_takes_are_no_success() -> None:
    with pytest.raises(FramestormError, match="ctest --test-dir"):
        testing.test_command(ci=False, tidy=False, only=("ctest",), pytest_args=("-R", "Agent"))


def test_no_step_of_ci_is_left_out() -> None:
    names = [step.name for step in testing._every_step(True, True, ())]
    assert set(testing._QUICK) < set(names)
    assert set(names) - set(testing._QUICK) == {
        "instrumented", "walkers", "long", "oss-fuzz", *testing._ASKED_FOR,
    }  # fmt: skip


def test_what_failed_under_ctest_is_named_with_what_it_printed(tmp_path: Path) -> None:
    (tmp_path / "CTestTestfile.cmake").write_text(
        'add_test(well sh -c "echo fine")\n'
        'add_test(Guard.Holds sh -c "echo guard_test.cpp:12: Failure; exit 1")\n'
        "add_test(gone /nonexistent)\n"
        'add_test(NotHere sh -c "exit 77")\n'
        "set_tests_properties(NotHere PROPERTIES SKIP_RETURN_CODE 77)\n"
    )
    outcome = testing._run_ctest(["--test-dir", str(tmp_path), "--output-on-failure"], {})
    assert outcome.code == 8
    assert outcome.words == "50% tests passed, 2 tests failed out of 4, 1 skipped"
    first, second = outcome.failures
    assert first == FailedTest("Guard.Holds", "guard_test.cpp:12: Failure")
    assert second.name == "gone"
    assert "/nonexistent" in str(second)


def test_what_failed_under_pytest_is_named_with_its_traceback(tmp_path: Path) -> None:
    tests = tmp_path / "test_it.py"
    tests.write_text(
        "import pytest\n\n"
        "def test_well(): pass\n"
        "def test_sum(): assert 1 + 1 == 3\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError('no room')\n"
        "def test_room(broken): pass\n"
        "def test_skipped(): pytest.skip('not here')\n"
    )
    outcome = testing._pytest(True, ("-p", "no:cacheprovider", str(tests), f"--rootdir={tmp_path}"))
    assert outcome.code == 1
    assert [test.name for test in outcome.failures] == ["test_it::test_sum", "test_it::test_room"]
    assert "assert (1 + 1) == 3" in outcome.failures[0].words
    assert "no room" in outcome.failures[1].words


def test_a_failure_is_told_by_its_end_and_many_by_their_names() -> None:
    long = FailedTest("a", "\n".join(f"line {n}" for n in range(failed_tests.SHOWN_LINES + 5)))
    many = [long, *(FailedTest(f"t{n}", "words") for n in range(failed_tests.SHOWN_TESTS))]
    lines = failed_tests.told(many).splitlines()
    assert lines[:3] == ["FAILED a", "  ... 5 lines more", "  line 5"]
    assert lines[-3:] == [
        f"FAILED t{failed_tests.SHOWN_TESTS - 2}",
        "  words",
        f"FAILED t{failed_tests.SHOWN_TESTS - 1}",
    ]


def test_a_file_that_is_not_whole_has_no_failures(tmp_path: Path) -> None:
    torn = tmp_path / "junit.xml"
    torn.write_text("<testsuite><testcase name='a'")
    assert failed_tests.read(torn) == []
    assert failed_tests.read(tmp_path / "none.xml") == []
