import sys
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import running


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
