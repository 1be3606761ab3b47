from typing import Any

import pytest

from framestorm_cli.binaries import disassembly
from framestorm_cli.binaries.symbols import Frame
from framestorm_cli.findings.finding import Code, Finding, Input, Mutation, Value
from framestorm_cli.triage.explain import explain, value_in_words


def code(kind: str, name: str, anchor: str = "entry", delta: int = 0, tier: int = 0) -> Value:
    return Value("", "code", delta, code=Code(kind, name, tier, anchor))


def value(kind: str, delta: int = 0, **more: Any) -> Value:
    return Value("", kind, delta, **more)


INPUT = Input(
    "c2-inlined",
    mutations=[
        Mutation("register", "pc", code("stub", "vtable stub", delta=7)),
        Mutation("register", "sp", value("real-sp", -64)),
    ],
)
FRAMES = [Frame("libjvm.so+0x1", "libjvm.so", 1, "frame::sender(RegisterMap*) const", 3)]
# mov rax, qword ptr [rdi + 8]
CODE = "488b4708"


def fault(**fields: object) -> Finding:
    base: dict[str, object] = {
        "key": "k", "kind": "fault", "signal": "SIGSEGV", "si_code": 1, "address": "0x8", "code": CODE,
        "code_start": "0x1000", "registers": {"rdi": "0x0", "rsp": "0x7f0000001000"}, "input": INPUT,
        "context": {"thread_state": "_thread_in_Java"}, "frames": FRAMES,
    }  # fmt: skip
    return Finding(**{**base, **fields})  # type: ignore[arg-type]


def test_the_whole_line() -> None:
    assert explain(fault()) == (
        "read of 0x8: null + 8 (through rdi) in frame::sender; pc in a vtable stub, 0x7 past its entry, "
        "sp 64 below the real one, thread in Java, victim c2-inlined (same-thread asgct)"
    )


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        (value("real-sp", -64), "sp", "64 below the real one"),
        (value("real-sp", 8), "fp", "8 above the real sp"),
        (value("real", 5), "pc", "5 above the real one"),
        (value("real"), "pc", "the real one"),
        (value("stack-base", -8), "sp", "8 below the stack's base"),
        (value("guard-page"), "sp", "an unreadable page"),
        (value("slot", index=3), "pc", "the stack word 3 words above sp"),
        (value("raw", raw=0xDEADBEEF), "fp", "0xdeadbeef"),
        (value("misaligned"), "sp", "misaligned"),
        (code("nmethod", "framestorm/C1.spin", delta=0x35, tier=1), "pc",
         "in compiled method framestorm/C1.spin (tier 1), 0x35 past its entry"),
        (code("codelet", "invokevirtual"), "pc", "at the entry of interpreter codelet invokevirtual"),
        (code("function", "_ZN5frame6senderEv"), "pc",
         "at the entry of libjvm's function _ZN5frame6senderEv"),
        (code("stub", "call_stub", "end", -4), "pc", "in stub call_stub, 0x4 before its end"),
    ],
)  # fmt: skip
def test_values_in_words(value: Value, place: str, words: str) -> None:
    assert value_in_words(value, place) == words


def test_what_the_kernel_said_counts_more_than_the_code() -> None:
    # The code reads [rdi + 8]; what the fault record says is what happened.
    assert explain(fault(access="write")).startswith("write of 0x8")
    # For a non-canonical address the kernel says nothing, and `read` is only its default.
    unknown = fault(access="write", si_code=0x80, registers={"rdi": "0x1234567812345678"})
    assert explain(unknown).startswith("read of 0x1234567812345680: not a canonical")


def test_write_and_jump_come_from_the_page_fault_error() -> None:
    registers = {"rdi": "0x0", "err": "0x6"}
    assert explain(fault(registers=registers)).startswith("write of 0x8")
    registers["err"] = "0x14"
    assert explain(fault(registers=registers)).startswith("jump to 0x8")


def test_non_canonical_addresses_are_computed_from_the_instruction() -> None:
    registers = {"rdi": "0xdead000000000000"}
    words = explain(fault(si_code=0x80, address="0x0", registers=registers))
    assert words.startswith("read of 0xdead000000000008: not a canonical address (through rdi)")


def test_distance_to_the_walkers_stack() -> None:
    assert "8 bytes below the walker's own sp" in explain(fault(address="0x7f0000000ff8"))


def test_distance_to_the_victims_stack() -> None:
    context = {
        "real_sp": "0x7f1000000800",
        "stack_base": "0x7f1000100000",
        "stack_end": "0x7f1000000000",
    }
    for address, words in (
        ("0x7f1000000808", "8 bytes above the victim's real sp"),
        ("0x7f1000100000", "the base of the victim's stack"),
        ("0x7f0ffffffff0", "16 bytes below the end of the victim's stack"),
    ):
        assert words in explain(fault(address=address, context=context))
    heap = fault(address="0x700000010", context=context, fault_place=value("java-heap", 16))
    assert "16 above the Java heap's start" in explain(heap)


def test_other_kinds() -> None:
    unsafe = fault(kind="unsafe_call", clause="malloc", function="malloc", locks_held=1)
    assert explain(unsafe).startswith("the walk called malloc in frame::sender, 1 lock(s) held")
    assert "stuck in frame::sender" in explain(fault(kind="hang"))
    contract = fault(kind="contract", clause="bci-out-of-range", detail="bci 70000 in frame 2")
    assert explain(contract).startswith("contract bci-out-of-range broken: bci 70000 in frame 2")
    death = fault(kind="process_death", clause="SIGKILL")
    assert explain(death).startswith("the process died: read of 0x8")
    killed = fault(kind="process_death", clause="SIGKILL", signal="")
    assert explain(killed).startswith("the process died: SIGKILL")
    killed.frames = [Frame("x", "x", 1, "framestorm::Executor::apply(int)", 0)]
    assert "in framestorm::Executor::apply, framestorm's own code" in explain(killed)


def test_thread_stack_and_call_mutations() -> None:
    mutations = [
        Mutation("stack", "sp + 3", value("libc-text", 16)),
        Mutation("thread", "state", value("raw", raw=8, thread_state="_thread_in_Java")),
        Mutation("thread", "last-java-pc", code("stub", "call_stub", "end")),
    ]
    given = Input("parked", call={"depth": "zero", "env": "null"}, mutations=mutations)
    words = explain(fault(input=given, context={}))
    assert "the stack word at sp + 3 (in words) set to 16 above libc's text" in words
    assert "thread field state set to in Java" in words
    assert "thread field last-java-pc set to the end of stub call_stub" in words
    assert "depth zero, env null" in words


def test_nothing_mutated_is_said() -> None:
    assert "nothing mutated" in explain(fault(input=Input("c1")))


def test_listing_marks_pc_and_starts_on_an_instruction() -> None:
    # Starts in the middle of an instruction; then nop; nop; mov at pc.
    lines = disassembly.listing("ff" + "90" * 2 + CODE, 0x1000, 3)
    assert [line for line in lines if line.startswith("=>")] == [
        "=> 0x1003  mov rax, qword ptr [rdi + 8]"
    ]
    assert lines[0].split() == ["0x1001", "nop"]


def test_listing_of_nothing() -> None:
    assert disassembly.listing("", 0, 0) == []
    assert disassembly.listing("zz", 0, 0) == []
    assert disassembly.access("90", 0, 0, {}) is None


def test_a_process_that_got_stuck_did_not_die() -> None:
    stuck = Finding(key="k", kind="process_death", clause="did not end", input=INPUT)
    assert explain(stuck).startswith("the process got stuck, outside of a walk's limits")
