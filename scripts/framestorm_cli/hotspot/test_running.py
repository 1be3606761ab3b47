import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from framestorm_cli.errors import FramestormError
from framestorm_cli.hotspot import running
from framestorm_cli.hotspot.running import Compiling


def test_plain_lines_when_not_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "PLAIN_EVERY", 0.0)
    counts = iter([100, 150])
    with Compiling("building", lambda: next(counts), 200) as progress:
        progress()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("framestorm: building: 150 of 200 files (75%)")
    assert "left" in line
    assert "\x1b" not in line


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Compiling("building", lambda: 150, 200)
    text = io.StringIO()
    progress._console = Console(file=text, force_terminal=True, width=100)
    with progress:
        progress()
    assert "150/200" in text.getvalue()


def test_the_estimate_counts_what_was_compiled_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    progress = Compiling("building", lambda: 1000, 1300)
    assert progress.left(1005, now + 60) == ""  # too little to tell from
    assert progress.left(1100, now + 60) == "about 2 min left"
    assert progress.left(1290, now + 60) == "about a minute left"
    assert progress.left(1300, now + 60) == "linking"
    assert progress.left(1310, now + 60) == "linking"


def test_a_build_with_everything_there_counts_what_is_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "PLAIN_EVERY", 0.0)
    with Compiling("building", lambda: 10, 10, lambda: 3) as progress:
        progress()
    assert capsys.readouterr().err == "framestorm: building: 3 files compiled again\n"


def run(tmp_path: Path, program: str) -> None:
    running.run(
        [sys.executable, "-c", program],
        what="compiling",
        log=tmp_path / "logs" / "make.log",
        advice="Look there.",
        cwd=tmp_path,
        env=running.environment(),
    )


def test_a_failure_shows_the_end_of_the_log_and_the_advice(tmp_path: Path) -> None:
    with pytest.raises(FramestormError) as error:
        run(tmp_path, "print('first'); import sys; print('why', file=sys.stderr); sys.exit(3)")
    assert "compiling failed (exit 3)" in error.value.message
    assert str(tmp_path / "logs" / "make.log") in error.value.message
    assert "why" in error.value.message
    assert error.value.message.endswith("Look there.")


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="make-of-nowhere is not there"):
        running.run(
            ["make-of-nowhere"],
            what="compiling",
            log=tmp_path / "make.log",
            advice="Install it.",
            cwd=tmp_path,
            env={},
        )


def test_a_persons_environment_does_not_reach_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xbogus")
    monkeypatch.setenv("FRAMESTORM_KEPT", "1")
    run(
        tmp_path,
        "import os; assert 'JAVA_TOOL_OPTIONS' not in os.environ; os.environ['FRAMESTORM_KEPT']",
    )
