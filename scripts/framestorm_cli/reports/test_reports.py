"""JUnit XML and SARIF as other programs read them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest

from framestorm_cli.conftest import TESTDATA
from framestorm_cli.findings.finding import Finding, Input, Signature
from framestorm_cli.reports import junit, sarif
from framestorm_cli.reports.known import Known
from framestorm_cli.reports.model import ERROR, FAILED, PASSED, Check, Issue, Report
from framestorm_cli.triage.buckets import Bucket

FAULT = Signature("fault", "", ("frame::sender", "fill"))
WRONG = Signature("contract", "agreement", ())


@pytest.fixture
def report() -> Report:
    return Report(
        command="stress",
        run="20260101-000000-stress",
        exit=1,
        started="2026-01-01T00:00:00+00:00",
        seconds=12.5,
        argv=("stress", "--seed", "1"),
        checks=(
            Check("alpha", "alpha asgct", 3.0, PASSED, "", "", {"seed": "2"}),
            Check("alpha", "alpha <asgst>", 3.5, FAILED, "b01 \x00 & fault", "read of 0x8 ]]>"),
            Check("beta", "beta asgct", 1.0, ERROR, "no samples"),
        ),
        issues=(
            Issue("b01", FAULT, "read of 0x8", 3, report="buckets/b01/report.md", artifact="x.bin"),
            Issue("b02", WRONG, "walkers disagree", 1, known=True),
        ),
        problems=("could not judge beta",),
        properties={"jdk": "25"},
    )


def test_junit(report: Report, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    junit.write(report, file)
    document = junitparser.JUnitXml.fromfile(str(file))
    (suite,) = list(document)
    assert (suite.tests, suite.failures, suite.errors) == (4, 1, 2)
    cases = {case.name: case for case in suite}
    assert cases["alpha asgct"].is_passed
    assert "seed: 2" in str(cases["alpha asgct"].system_out)
    (failure,) = cases["alpha <asgst>"].result
    assert failure.message == "b01 ? & fault"
    assert "]]>" in str(failure.text)
    assert cases["beta asgct"].is_error
    assert cases["run"].is_error


def _schema() -> dict[str, Any]:
    data = json.loads((TESTDATA / "sarif_used.schema.json").read_text())
    assert isinstance(data, dict)
    return data


def test_sarif_is_what_the_standard_asks_for(report: Report, tmp_path: Path) -> None:
    file = tmp_path / "report.sarif"
    sarif.write(report, file)
    document = json.loads(file.read_text())
    jsonschema.validate(document, _schema())
    (run,) = document["runs"]
    assert [result["ruleId"] for result in run["results"]] == [
        "framestorm/fault", "framestorm/contract",
    ]  # fmt: skip
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "note"]


def test_the_schema_can_fail(report: Report) -> None:
    document = sarif.document(report)
    del document["runs"][0]["results"][0]["message"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, _schema())


def test_a_fingerprint_is_of_the_cause_alone() -> None:
    one = Issue("b01", FAULT, "read of 0x8", 3)
    assert one.fingerprint == Issue("b07", FAULT, "read of 0x10", 9).fingerprint
    assert one.fingerprint != Issue("b01", WRONG, "read of 0x8", 3).fingerprint


def contract(victim: str, state: str) -> Finding:
    signature = Signature("contract", "x", (), "d", "asgct")
    given = Input(victim)
    return Finding("k", "contract", clause="x", input=given, state=state, signature=signature)


@pytest.mark.parametrize(
    ("findings", "known"),
    [
        ([contract("c1", "corrupt")], True),
        ([contract("osr", "corrupt")], False),
        # The victim is where it was tried, unless nothing was mutated.
        ([contract("osr", "corrupt"), contract("c1", "torn")], True),
        ([contract("osr", "real"), contract("c1", "torn")], False),
        ([contract("c1", "real")], True),
    ],
)
def test_older_lists_name_contracts_by_victim(findings: list[Finding], known: bool) -> None:
    listed = Known({Signature("contract", "x", ("victim c1",)): ""})
    bucket = Bucket(findings[0].signature, findings)
    assert (bucket in listed) is known
    assert bucket in listed.with_buckets([bucket])


def test_state_and_known_causes_are_in_the_message(report: Report) -> None:
    issue = Issue("b01", FAULT, "read of 0x8", 3, state="torn", write_ups=("corpus#x",))
    (result,) = sarif.document(replace(report, issues=(issue,)))["runs"][0]["results"]
    assert result["message"]["text"].startswith("[torn] fault")
    assert result["message"]["text"].endswith("(known: corpus#x)")
    assert result["properties"]["state"] == "torn"


def test_known_is_every_signature_of_a_bucket() -> None:
    bucket = Bucket(FAULT)
    known = Known({}).with_buckets([bucket])
    assert bucket in known
    assert Bucket(WRONG) not in known
    assert [one["note"] for one in known.to_json()["known"]] == [""]
