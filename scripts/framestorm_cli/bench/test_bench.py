"""`bench` on a fake native program."""

import json
from pathlib import Path

from framestorm_cli.conftest import FakePrograms, Run

BENCH = {
    "jvm": "25.0.3+9",
    "edges": 34205,
    "modes": {
        "same-thread": {
            "walks": 12345, "walks_per_second": 301000.0, "bare_per_second": 602000.0, "ratio": 0.5,
        },
        "separate-thread": {
            "walks": 67890, "walks_per_second": 290000.0, "bare_per_second": 880000.0, "ratio": 0.33,
        },
    },
    "depths": [
        {"walker": "asgct", "depth": 1000, "frames": 500, "bare_ns": 50000.0, "executor_ns": 75000.0},
        {"walker": "asgst", "depth": 1000, "frames": 500, "bare_ns": 60000.0, "executor_ns": 80000.0},
    ],
}  # fmt: skip


def test_bench(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.answer("bench", BENCH)
    code, out, _ = framestorm("bench", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "bench")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["same-thread", "301,000", "602,000", "0.50", "12,345"] in rows
    assert ["separate-thread", "290,000", "880,000", "0.33", "67,890"] in rows
    assert ["asgct", "1,000", "500", "50.0", "1.00", "100", "75.0"] in rows
    assert ["asgst", "1,000", "500", "60.0", "1.20", "120", "80.0"] in rows
    data = json.loads((tmp_path / "bench" / "bench.json").read_text())
    (measured,) = data["measured"]
    assert measured["figures"] == BENCH
    assert measured["jdk"]["label"] == "25"
    assert "guided by 34,205 edge counters" in out
    assert data["machine"]["cores"] > 0
    assert data["date"] in out


def test_bench_of_several_jdks(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.answer("bench", {**BENCH, "edges": 0})
    home = fakes.tools.jdk.home
    folder = tmp_path / "bench"
    code, out, _ = framestorm("bench", "--jdk", home, "--jdk", home, "--out", folder)
    assert code == 0
    assert out.count("no edge counters") == 2
    assert len(json.loads((folder / "bench.json").read_text())["measured"]) == 2


def test_bench_of_other_programs_is_2_with_its_answer_kept(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.answer("bench", {"edges": 0, "modes": {}})
    code, _, err = framestorm("bench", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "bench")
    assert code == 2
    assert "'depths'" in err
    assert (tmp_path / "bench" / "bench.json").exists()
