"""The step java-format fails on what it is there for."""

import subprocess
from pathlib import Path

from framestorm_cli.hotspot import choosing
from framestorm_cli.test import java_format


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
