"""Known causes: what is named as one, and what must not be."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings.finding import Finding, Input, Signature
from framestorm_cli.triage import expectations
from framestorm_cli.triage.buckets import Bucket
from framestorm_cli.triage.expectations import Cause
from framestorm_cli.triage.signature import signature_of

FAULT = Signature("fault", "", ("frame::sender", "fill"))
OTHER = Signature("fault", "", ("frame::sender", "else"))


def write(base: Path, name: str = "sender", **changes: Any) -> None:
    per_jdk = {
        "25": {
            "status": "open",
            "signature": msgspec.to_builtins(FAULT),
            "also": [msgspec.to_builtins(OTHER)],
        },
        "17": {"status": "fixed"},
    }
    folder = base / name
    folder.mkdir(parents=True)
    data = {"walker": "asgct", "state": "torn", "per_jdk": per_jdk, **changes}
    (folder / "expected.json").write_text(json.dumps(data))


def case(signature: Signature = FAULT, walker: str = "asgct", state: str = "torn") -> Finding:
    given = Input("c1", walker=walker) if walker else None
    return Finding("k", "fault", input=given, state=state, signature=signature)


def named(base: Path, *findings: Finding) -> Bucket:
    bucket = Bucket(FAULT, list(findings))
    expectations.name(bucket, expectations.causes_on("25", base))
    return bucket


def known(base: Path, *findings: Finding) -> list[str]:
    return [one.partition("#")[2] for one in named(base, *findings).write_ups]


def test_a_cause_is_named_by_its_signatures(tmp_path: Path) -> None:
    write(tmp_path)
    assert known(tmp_path, case()) == ["sender"]
    assert known(tmp_path, case(), case(OTHER)) == ["sender"]
    assert known(tmp_path, case(state="corrupt")) == ["sender"]
    assert named(tmp_path, case()).known == "known: sender (corpus/crashes/README.md#sender)"


@pytest.mark.parametrize(
    "other",
    [
        case(Signature("fault", "", ("frame::sender",))),
        case(Signature("hang", "", FAULT.frames)),
        case(walker="asgst"),
        case(walker=""),
        case(state="real"),
        case(state=""),
    ],
    ids=["frames", "kind", "walker", "no walker", "a state that threads have", "no state"],
)
def test_a_cause_does_not_hide_another(tmp_path: Path, other: Finding) -> None:
    write(tmp_path)
    assert known(tmp_path, other) == []
    assert known(tmp_path, case(), other) == [], "one case that it does not explain is enough"


def test_a_bucket_in_a_state_nearer_to_a_real_one_is_like_the_cause_only(tmp_path: Path) -> None:
    write(tmp_path)
    bucket = named(tmp_path, case(), case(state="real"))
    assert bucket.write_ups == ()
    assert bucket.known.startswith(
        "like sender (corpus/crashes/README.md#sender), which is written up"
    )
    assert bucket.about == [bucket.known]
    assert named(tmp_path, case(OTHER, walker="asgst")).known == ""


def test_a_cause_counts_only_where_it_is_open(tmp_path: Path) -> None:
    write(tmp_path)
    for label in ("17", "17-sanitized", "21"):
        assert expectations.causes_on(label, tmp_path) == []


def test_an_instrumented_jdk_has_the_causes_of_its_release_that_do_not_mention_it(
    tmp_path: Path,
) -> None:
    of_25 = {"status": "open", "signature": msgspec.to_builtins(FAULT)}
    write(tmp_path, per_jdk={"25": of_25, "25-sanitized": {"status": "unaffected"}})
    named = {
        label: expectations.causes_on(label, tmp_path) for label in ("25-plain", "25-sanitized")
    }
    assert [cause.name for cause in named["25-plain"]] == ["sender"]
    assert named["25-sanitized"] == []


def test_a_cause_of_a_profiler_is_of_no_other(tmp_path: Path) -> None:
    write(tmp_path, profiler={"name": "quick", "version": "1.5"})
    for profiler in ("", "slow"):
        assert expectations.causes_on("25", tmp_path, profiler=profiler) == []
    (cause,) = expectations.causes_on("25", tmp_path, profiler="quick")
    assert cause.explains(case())


def test_two_causes_of_one_signature_are_both_named(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "twin")
    assert known(tmp_path, case()) == ["sender", "twin"]


def test_a_contract_is_named_by_the_victim_it_was_written_up_with(tmp_path: Path) -> None:
    old = Signature("contract", "wrong-frames", ("victim osr",))
    write(
        tmp_path,
        per_jdk={"25": {"status": "open", "signature": msgspec.to_builtins(old)}},
        state="real",
    )
    causes = expectations.causes_on("25", tmp_path)

    def explained(*victims: str) -> bool:
        findings = [
            Finding(
                key=victim, kind="contract", clause="wrong-frames", detail_class="frame * is *",
                input=Input(victim), state="real", victim=victim,
            )
            for victim in victims
        ]  # fmt: skip
        for one in findings:
            one.signature = signature_of(one)
        return bool(expectations.explaining(Bucket(findings[0].signature, findings), causes))

    assert explained("osr")
    assert not explained("c1")
    assert not explained("osr", "c1")


@pytest.mark.parametrize("field", ["walker", "state"])
def test_a_cause_without_its_input_is_refused(tmp_path: Path, field: str) -> None:
    write(tmp_path)
    path = tmp_path / "sender" / "expected.json"
    data = json.loads(path.read_text())
    del data[field]
    path.write_text(json.dumps(data))
    with pytest.raises(FramestormError, match=field):
        expectations.causes_on("25", tmp_path)


def test_every_cause_of_the_corpus_has_a_write_up() -> None:
    page = (paths.CRASHES / "README.md").read_text()
    every: list[Cause] = [
        cause
        for label in ("17", "25", "25-sanitized", "25-fastdebug")
        for profiler in ("", "java-profiler", "jfr")
        for cause in expectations.causes_on(label, profiler=profiler)
    ]
    assert len({cause.name for cause in every}) > 10
    assert [cause.name for cause in every if f"\n## {cause.name}\n" not in page] == []
