import io
from pathlib import Path

from rich.console import Console

from framestorm_cli.conftest import FakePrograms
from framestorm_cli.fuzz import live
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.target_process import FuzzOptions


def test_plain_lines_when_not_a_terminal(fakes: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    options = FuzzOptions(("fuzz_stack",), 5.0, None, 1, 1, tmp_path / "out")
    run = Fuzzer(fakes.tools, options).fuzz()
    text = io.StringIO()
    progress = live.Progress()
    progress._console = Console(file=text, width=200)
    with progress:
        progress(run)
        progress(run)
    (line,) = text.getvalue().splitlines()
    assert "1,000 walks" in line
    assert "100% succeeded" in line
    assert "left" in line
    assert "\x1b" not in line


def test_a_terminal_shows_every_process(fakes: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    fakes.plan("fuzz_stack", {"end": "hang", "walks": 5000})
    options = FuzzOptions(("fuzz_stack",), 5.0, None, 1, 1, tmp_path / "out")
    fuzzer = Fuzzer(fakes.tools, options)
    text = io.StringIO()
    progress = live.Progress()
    progress._console = Console(file=text, force_terminal=True, width=120)

    def watch(run: Run) -> None:
        progress(run)
        if run.totals() and run.active:
            run.stopped = "seen enough"

    with progress:
        run = fuzzer.fuzz(watch)
    assert run.stopped == "seen enough"
    assert "fuzz_stack: 5,000 walks" in text.getvalue()
