import io
from pathlib import Path

import pytest
from rich.console import Console

from framestorm_cli.hotspot import progress
from framestorm_cli.hotspot.progress import HEADERS, Compiling, Objects, Work


def works(*counts: int) -> list[Work]:
    """Of files that weigh the same."""
    return [Work(count, count * 1000) for count in counts]


def test_plain_lines_when_not_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    start, now, expected = works(100, 150, 200)
    counts = iter([start, now])
    with Compiling("building", lambda: next(counts), expected) as compiling:
        compiling()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "framestorm: building: 150 of 200 files (75%), estimating"
    assert "\x1b" not in line


def test_a_terminal_gets_a_bar() -> None:
    there, expected = works(150, 200)
    compiling = Compiling("building", lambda: there, expected)
    text = io.StringIO()
    compiling._console = Console(file=text, force_terminal=True, width=100)
    with compiling:
        compiling()
    assert "150/200" in text.getvalue()


def test_the_estimate_counts_what_was_compiled_now() -> None:
    start, few, some, more, most, all_, beyond, expected = works(
        1000, 1005, 1040, 1100, 1290, 1300, 1310, 1300
    )
    compiling = Compiling("building", lambda: start, expected)
    now = 1000.0
    assert compiling.left(start, now) == "estimating"
    # What comes before the first object does not count, nor what was there.
    assert compiling.left(few, now + 300) == "estimating"
    assert compiling.left(some, now + 335) == "about 4 min left"
    assert compiling.left(more, now + 395) == "about 3 min left"
    assert compiling.left(most, now + 585) == "about a minute left"
    assert compiling.left(all_, now + 600) == "linking"
    assert compiling.left(beyond, now + 600) == "linking"


def test_a_large_file_counts_for_its_size() -> None:
    compiling = Compiling("building", lambda: Work(0, 0), Work(100, 10_000))
    compiling.left(Work(1, 10), 0.0)
    # Two files, but half of the work.
    assert compiling.left(Work(2, 5_010), 500.0) == "about 8 min left"


def test_a_build_with_everything_there_counts_what_is_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    (there,) = works(10)
    with Compiling("building", lambda: there, there, lambda: 3) as compiling:
        compiling()
    assert capsys.readouterr().err == "framestorm: building: 3 files compiled again\n"


def test_objects_weigh_what_their_sources_do(tmp_path: Path) -> None:
    for name, size in (("frame.cpp", 300), ("forte.cpp", 200), ("gensrc/ad_x86.cpp", 5_000)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x" * size)
    sources = [tmp_path / "frame.cpp", tmp_path / "forte.cpp"]
    objects = Objects(tmp_path / "objs", sources, tmp_path / "gensrc", None)
    assert objects() == Work(0, 0)
    assert objects.expected.files > 2  # and those that will be generated
    (tmp_path / "objs").mkdir()
    for name in ("frame.o", "ad_x86.o", "ad_x86.d"):
        (tmp_path / "objs" / name).touch()
    assert objects() == Work(2, 300 + 5_000 + 2 * HEADERS)
    # As many as the last time weigh accordingly.
    half = Objects(tmp_path / "objs", sources, tmp_path / "gensrc", objects.expected.files // 2)
    assert half.expected == Work(objects.expected.files // 2, objects.expected.weight // 2)
