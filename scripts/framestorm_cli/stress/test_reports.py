"""What the reports of a stress run say, on a fake java whose figures are known (fake_java.py)."""

import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from framestorm_cli.conftest import Run
from framestorm_cli.stress.conftest import FakeJava, read_summary


class Tables(HTMLParser):
    """The text of each cell of each table, and the attributes of those of the heat map."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.heat: list[dict[str, str]] = []
        self._within = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._within = True
            given = {name: value or "" for name, value in attrs}
            if "data-shown" in given:
                self.heat.append(given)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._within = False

    def handle_data(self, data: str) -> None:
        if self._within:
            self.tables[-1][-1][-1] += data

    def headed(self, head: str) -> list[list[str]]:
        """The rows of the one table whose first column is called so, by their texts."""
        (found,) = [table for table in self.tables if table[0][0] == head]
        return found


@pytest.fixture
def out(stress: Run, java: FakeJava, tmp_path: Path) -> Path:
    """A finding in alpha; beta could not be judged; nothing in gamma."""
    java.lists("alpha", "beta", "gamma")
    java.plan("alpha", {"findings": [java.fault("a", "frame::sender")]})
    java.plan("beta", {"end": "not-done"})
    lost = {"throttled": 5_000, "unjudged": 1_500, "late-handler": 700}
    java.plan("gamma", {"stats": {"ticks": 25_000, "lost": lost}})
    arguments = ("--mode", "same-thread", "--duration", "9s")
    assert stress(*arguments, "--out", tmp_path / "out")[0] == 2
    return tmp_path / "out"


def test_junit_has_a_case_for_each_cell(out: Path) -> None:
    (suite,) = ElementTree.parse(out / "junit.xml").getroot()
    counts = {name: suite.attrib[name] for name in ("tests", "errors", "failures", "skipped")}
    assert counts == {"tests": "4", "errors": "2", "failures": "1", "skipped": "0"}
    cases = {case.attrib["classname"]: case for case in suite.iter("testcase")}
    settings = "asgct same-thread 100us"
    assert {key: case.attrib["name"] for key, case in cases.items()} == {
        "framestorm.stress.alpha": f"alpha {settings}",
        "framestorm.stress.beta": f"beta {settings}",
        "framestorm.stress.gamma": f"gamma {settings}",
        "framestorm.stress": "run",
    }
    (bucket,) = read_summary(out)["buckets"]
    failure = cases["framestorm.stress.alpha"].find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "finding", "message": "b01 real fault in frame::sender"}
    assert bucket["explanation"] in (failure.text or "")
    assert "repro.sh" in (failure.text or "")
    error = cases["framestorm.stress.beta"].find("error")
    assert error is not None
    assert error.attrib["type"] == "could not judge"
    assert "did not do what it is named after" in error.attrib["message"]
    problem = cases["framestorm.stress"].find("error")
    assert problem is not None
    assert problem.attrib["message"].startswith(f"could not judge beta {settings}: ")
    gamma = cases["framestorm.stress.gamma"]
    assert [child.tag for child in gamma] == ["system-out"]
    seed = next(c["seed"] for c in read_summary(out)["cells"] if c["workload"] == "gamma")
    said = (gamma.findtext("system-out") or "").splitlines()
    assert said[:3] == [f"seed: {seed}", "samples: 20000", "verdict: clean"]
    assert said[3].startswith("command: LD_PRELOAD=")


def test_the_tables_of_the_page(out: Path) -> None:
    page = Tables((out / "report.html").read_text())
    heat = page.headed("workload")
    assert heat[1:] == [["alpha", "findings"], ["beta", "could not judge"], ["gamma", "clean"]]
    alpha, _, gamma = (json.loads(one["data-shown"]) for one in page.heat)
    assert gamma == {
        "verdict": "clean", "findings": "0", "rate": "100%", "traces": "70%", "p99": "12 us",
        "crashes": "0",
    }  # fmt: skip
    assert (alpha["findings"], alpha["crashes"]) == ("1", "5e-05")
    colours = json.loads(page.heat[2]["data-heat"])
    assert (colours["findings"], colours["rate"]) == (0, 0)
    assert colours["traces"] == pytest.approx(0.3)

    rates = page.headed("cell")
    assert rates[0][6:10] == ["p50", "p99", "p99.9", "max"]
    assert [row[0].split()[0] for row in rates[1:]] == [
        "alphasame-thread",
        "betasame-thread",
        "gammasame-thread",
    ]
    for row in rates[1:]:
        assert row[1:3] == ["20,000", "10,000"]
        assert row[4:10] == ["12", "asgct", "900 ns", "12 us", "80 us", "1.5 ms"]

    codes = page.headed("thread state")
    assert codes == [
        ["thread state", "walks", "ok", "-4 not_walkable_not_Java", "-5 unknown_Java"],
        ["in_Java", "48,000", "42,000", "", "6,000"],
        ["in_vm", "12,000", "", "12,000", ""],
    ]
    lost = page.headed("cause")
    # Of 2 * 20,005 + 25,000 that were due: what came late was lost before, what nobody judged was walked.
    assert [row[:3] for row in lost[1:]] == [
        ["throttled", "5,000", "7.69 %"],
        ["unjudged", "1,500", "2.31 %"],
        ["late-handler", "704", "1.08 %"],
        ["timer-overrun", "10", "0.0154 %"],
    ]
    assert page.headed("check")[1:] == [["contract", "60,000", "1"]]
