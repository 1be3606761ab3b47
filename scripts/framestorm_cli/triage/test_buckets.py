from pathlib import Path
from typing import Any

import msgspec
import pytest

from framestorm_cli.binaries.symbols import Frame
from framestorm_cli.findings.finding import Finding, Input, Mutation, Signature, Value
from framestorm_cli.triage.buckets import Bucket, into_buckets
from framestorm_cli.triage.signature import is_ignored, signature_of, signatures_of, significant


def case(
    *names: str, kind: str = "fault", clause: str = "", count: int = 1, key: str = "k"
) -> Finding:
    frames = [Frame(f"libjvm.so+0x{i}", "libjvm.so", i, name, 0) for i, name in enumerate(names)]
    finding = Finding(key, kind, clause=clause, artifact=Path(f"/{key}/{key}.bin"))
    finding.frames, finding.count = frames, count
    finding.signature = signature_of(finding)
    return finding


def test_signature_is_the_top_three_significant_frames() -> None:
    found = case(
        "memcpy", "__restore_rt", "a::b(int)", "c<int>::d()", "e", "f", "AsyncGetCallTrace", "g"
    )
    assert found.signature == Signature("fault", "", ("a::b", "c::d", "e"))


def test_what_called_the_walker_does_not_count() -> None:
    one = case("frame::sender", "AsyncGetCallTrace", "profiler_a")
    other = case("frame::sender", "AsyncGetCallTrace", "profiler_b")
    assert one.signature == other.signature == Signature("fault", "", ("frame::sender",))


def test_a_fault_in_the_entry_point_itself_is_named_by_it() -> None:
    assert case("AsyncGetCallTrace", "main").signature.frames == ("AsyncGetCallTrace",)
    assert case("memcpy", "AsyncGetCallTrace").signature.frames == ("AsyncGetCallTrace",)
    assert significant(["memcpy", "main"]) == ["memcpy"]
    assert significant([]) == []


@pytest.mark.parametrize(
    "name",
    ["memcpy", "__memmove_avx_unaligned_erms", "framestorm::Guard::call", "__restore_rt", "[libc.so.6]",
     "pthread_mutex_lock", "__asan_report_load8", "LLVMFuzzerTestOneInput", "malloc", "[fuzz_stack]",
     "framestorm_on_error", "DebuggingContext::DebuggingContext", "[0x7f3c0093d6c0]"],
)  # fmt: skip
def test_ignored(name: str) -> None:
    assert is_ignored(name)


@pytest.mark.parametrize(
    "name", ["frame::sender", "CodeCache::find_blob", "[libjvm.so]", "memory::x", "mainly"]
)
def test_not_ignored(name: str) -> None:
    assert not is_ignored(name)


def test_kind_and_clause_tell_buckets_apart() -> None:
    found = into_buckets([case("a"), case("a", kind="hang"), case("a", kind="contract", clause="x"),
                          case("a", kind="contract", clause="y")])  # fmt: skip
    assert len(found) == 4


def test_near_duplicates_merge_into_the_more_frequent() -> None:
    often = case("top", "b", "c", "d", count=100, key="often")
    seldom = case("top", "inlined", "b", "c", "d", count=2, key="seldom")
    found = into_buckets([seldom, often])
    assert len(found) == 1
    assert found[0].signature == often.signature
    assert found[0].merged == [seldom.signature]
    assert found[0].count == 102


def test_another_top_frame_or_another_path_is_another_cause() -> None:
    assert len(into_buckets([case("top", "b", "c", "d"), case("other", "b", "c", "d")])) == 2
    assert len(into_buckets([case("top", "b", "c", "d"), case("top", "x", "y", "z")])) == 2


def broken(scenario: str, detail: str, mutated: bool = True) -> Finding:
    change = Mutation("register", "fp", Value("real-sp", "real-sp"))
    given = Input(scenario, mutations=[change] if mutated else [])
    finding = Finding(scenario, "contract", clause="x", detail=detail, input=given)
    finding.signature = signature_of(finding)
    return finding


def test_a_broken_contract_is_one_cause_in_every_victim() -> None:
    differs = "the stack differs at byte"
    found = into_buckets([broken("c1", f"{differs} 936"), broken("osr", f"{differs} 88")])
    assert [len(bucket.findings) for bucket in found] == [2]
    other = broken("c1", "a mutated word was written")
    assert len(into_buckets([broken("osr", f"{differs} 88"), other])) == 2
    assert len(into_buckets([broken("c1", differs, False), broken("osr", differs, False)])) == 1


def test_findings_of_one_key_share_its_count() -> None:
    assert Bucket(case("a").signature, [case("a", count=50), case("a", count=50)]).count == 50


def test_findings_of_one_key_in_two_buckets_divide_its_count() -> None:
    """A process tells findings apart by their top three functions, significant or not."""
    one = ("memcpy", "memmove", "free", "a::b", "c::d", "e::f")
    other = ("memcpy", "memmove", "free", "x::y", "z::z", "e::f")
    found = into_buckets([case(*one, count=90), case(*one, count=90), case(*other, count=90)])
    assert [bucket.count for bucket in found] == [60, 30]


def test_what_differs_within_a_broken_contract_is_said() -> None:
    """A loud defect must not hide a quiet one of the same clause."""
    findings = []
    for number, detail in enumerate(
        ("result -11 is not documented", "result -77 is not documented",
         "result -11 is not documented")
    ):  # fmt: skip
        finding = case(kind="contract", clause="undocumented-error", count=500)
        finding.detail, finding.detail_class = detail, "result * is not documented"
        finding.artifact = Path(f"/k/{number}.bin")
        finding.signature = signature_of(finding)
        findings.append(finding)
    (bucket,) = into_buckets(findings)
    assert bucket.about == ["also: result -77 is not documented"]


def test_buckets_are_numbered_by_frequency() -> None:
    found = into_buckets([case("a", count=1, key="a"), case("b", count=9, key="b")])
    assert [(b.id, b.signature.frames) for b in found] == [("b01", ("b",)), ("b02", ("a",))]


def test_the_most_robust_artifact_is_tried_first() -> None:
    weak, strong = case("a", key="weak"), case("a", key="strong")
    weak.rechecks, weak.rechecks_hit = 10, 1
    strong.rechecks, strong.rechecks_hit = 10, 9
    assert Bucket(weak.signature, [weak, strong]).best is strong


def recorded(
    key: str, mutations: int = 0, rechecks: int = 0, hits: int = 0, scenario: str = "c1"
) -> Finding:
    change = Mutation("register", "pc", Value("raw 0x1", "raw", raw=1))
    return Finding(
        key, "fault", artifact=Path(f"/{key}.bin"), input=Input(scenario, mutations=[change] * mutations),
        signature=Signature("fault", "", ("a",)), rechecks=rechecks, rechecks_hit=hits,
    )  # fmt: skip


def test_simple_artifacts_are_tried_before_intricate_ones() -> None:
    intricate, simple = recorded("intricate", 2), recorded("simple", 1)
    assert Bucket(simple.signature, [intricate, simple]).best_first() == [simple, intricate]


def test_an_artifact_never_rechecked_stands_between_good_and_bad_ones() -> None:
    bad, unknown, good = recorded("b", 0, 9, 1), recorded("u"), recorded("g", 0, 9, 9)
    assert Bucket(bad.signature, [bad, unknown, good]).best_first() == [good, unknown, bad]


def test_every_scenario_has_a_candidate_before_any_has_two() -> None:
    findings = [recorded(f"c1-{n}", 0, 9, 9 - n) for n in range(3)]
    other = recorded("osr", 0, 9, 1, "osr")
    ordered = Bucket(other.signature, [*findings, other]).candidates()
    assert ordered == [findings[0], other, findings[1], findings[2]]


@pytest.mark.parametrize(
    "data", [{}, {"kind": "fault"}, {"kind": 1, "frames": []}, {"kind": "x", "frames": "a"}]
)
def test_a_damaged_signature_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="signature"):
        Signature.from_json(data)


def test_signature_json_is_the_identity() -> None:
    signature = Signature("contract", "count-exceeds-depth", ("a", "b"))
    assert Signature.from_json(msgspec.to_builtins(signature)) == signature


def test_without_a_stack_a_contract_is_told_apart_by_what_the_walker_did() -> None:
    finding = Finding(
        "k", "contract", clause="wrong-frames", detail_class="frame * is *", input=Input("osr")
    )
    signature = Signature("contract", "wrong-frames", (), "frame * is *", "asgct")
    assert signature_of(finding) == signature
    assert Signature.from_json(msgspec.to_builtins(signature)) == signature
    assert str(signature) == "contract wrong-frames by asgct: frame * is *"
    finding.kind = "hang"
    assert signature_of(finding).frames == ("victim osr",)
    finding.frames = case("a").frames
    assert signature_of(finding).frames == ("a",)


def contract(victim: str, **more: Any) -> Finding:
    finding = Finding(
        victim, "contract", clause="x", detail_class="it wrote", input=Input(victim), victim=victim,
        artifact=Path(f"/{victim}/a.bin"), **more,
    )  # fmt: skip
    finding.signature = signature_of(finding)
    return finding


def test_signatures_of_before_are_still_a_findings_own() -> None:
    found = signatures_of(contract("osr"))
    assert Signature("contract", "x", ("victim osr",)) in found
    assert Signature("contract", "x", ("victim c1",)) not in found
    sampled = contract("osr", context={"thread_state": "_thread_blocked"})
    assert Signature("contract", "x", ("a thread blocked",)) in signatures_of(sampled)
    placed = contract("osr")
    placed.detail_class = "native code: it wrote"
    placed.signature = signature_of(placed)
    assert placed.signature not in found
    assert contract("osr").signature in signatures_of(placed)
    assert signatures_of(case("a")) == (case("a").signature,)


def test_victims_are_a_list_inside_the_bucket() -> None:
    often = contract("osr", count=9, victims={"osr": 7, "c1": 2})
    (bucket,) = into_buckets([often, contract("c2")])
    assert bucket.victims == {"osr": 7, "c1": 2, "c2": 1}
    assert bucket.count == 10
    assert bucket.about == ["victims: osr 7, c1 2, c2 1"]
    many = contract("osr", count=21, victims={f"v{i}": i for i in range(6, 0, -1)})
    assert into_buckets([many])[0].about == ["victims: v6 6, v5 5, v4 4, v3 3, 2 more"]


def in_state(found: Finding, state: str) -> Finding:
    found.state = state
    return found


def test_the_state_nearest_to_a_real_one_comes_first() -> None:
    corrupt = in_state(case("a", count=99, key="a"), "corrupt")
    torn = in_state(case("b", count=5, key="b"), "torn")
    real = in_state(case("c", count=1, key="c"), "real")
    unknown = case("d", count=999, key="d")
    found = into_buckets([unknown, corrupt, torn, real])
    assert [(one.id, one.state) for one in found] == [
        ("b01", "real"), ("b02", "torn"), ("b03", "corrupt"), ("b04", ""),
    ]  # fmt: skip
    assert found[1].title == "b02 torn fault in b"
    other = in_state(case("a", key="e"), "real")
    assert Bucket(corrupt.signature, [corrupt, other]).best is other
