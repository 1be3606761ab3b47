import io

import pytest
from rich.console import Console

from framestorm_cli.hotspot.progress import Compiling


def test_plain_lines_when_not_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Compiling, "plain_every", 0.0)
    counts = iter([100, 150, 250])
    with Compiling("building", lambda: next(counts), 200, lambda: 0) as compiling:
        compiling()
        compiling()
    assert capsys.readouterr().err.splitlines() == [
        "framestorm: building: 150 of 200 files",
        "framestorm: building: 250 of 250 files",
    ]


def test_a_terminal_gets_a_line_that_renews_itself() -> None:
    compiling = Compiling("building", lambda: 150, 200, lambda: 0)
    text = io.StringIO()
    compiling._console = Console(file=text, force_terminal=True, width=100)
    with compiling:
        compiling()
    assert "building: 150 of 200 files" in text.getvalue()


def test_a_build_with_everything_there_counts_what_is_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Compiling, "plain_every", 0.0)
    with Compiling("building", lambda: 10, 10, lambda: 3) as compiling:
        compiling()
    assert capsys.readouterr().err == "framestorm: building: 3 files compiled again\n"
