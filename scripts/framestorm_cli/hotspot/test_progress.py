import io
from pathlib import Path

import pytest
from rich.console import Console

from framestorm_cli.hotspot.progress import Compiling


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of a make that has compiled three files."""
    path = tmp_path / "make.log"
    path.write_text("Compiling a.cpp (for libjvm.so)\n" * 3 + "Linking libjvm.so\n")
    return path


@pytest.mark.parametrize(
    ("files", "said"),
    [(200, "3 of about 200 files"), (0, "3 files"), (2, "3 files")],
)
def test_plain_lines_when_not_a_terminal(
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: int,
    said: str,
) -> None:
    monkeypatch.setattr(Compiling, "plain_every", 0.0)
    with Compiling("building", log, files) as compiling:
        compiling()
    assert capsys.readouterr().err == f"framestorm: building: {said} compiled\n"


def test_a_terminal_gets_a_line_that_renews_itself(log: Path) -> None:
    compiling = Compiling("building", log, 200)
    text = io.StringIO()
    compiling._console = Console(file=text, force_terminal=True, width=100)
    with compiling:
        compiling()
    assert "building: 3 of about 200 files compiled" in text.getvalue()
