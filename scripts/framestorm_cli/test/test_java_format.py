"""The step java-format fails on what it is there for."""

import subprocess
from pathlib import Path

import pytest

from framestorm_cli.hotspot import choosing
from framestorm_cli.test import java_format
from framestorm_cli.test import run as testing


def test_another_layout_is_named(tmp_path: Path) -> None:
    good, bad, by_hand = (tmp_path / name for name in ("Good.java", "Bad.java", "ByHand.java"))
    good.write_text("class Good {\n  int one;\n}\n")
    bad.write_text("class Bad {\n    int one;\n}\n")
    by_hand.write_text("// Laid out by hand: a table\nclass ByHand {\n    int one;\n}\n")
    command = java_format.check(choosing.choose(None), map(str, (good, bad, by_hand)))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.split() == [str(bad)]
    assert bad.read_text() == "class Bad {\n    int one;\n}\n"


def test_who_has_another_layout_is_told_how_to_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "Bad.java"
    bad.write_text("class Bad {\n    int one;\n}\n")
    monkeypatch.setattr(testing, "_sources", lambda endings: [str(bad)])
    assert testing._java_format() == 1
    last = capfd.readouterr().out.splitlines()[-1]
    command = last.partition(": ")[2].split()
    assert command[-1] == "FILE..."
    subprocess.run([*command[:-1], str(bad)], check=True)
    assert bad.read_text() == "class Bad {\n  int one;\n}\n"
    assert testing._java_format() == 0
