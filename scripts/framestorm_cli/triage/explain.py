"""A finding in words: what the input did, what then happened. Facts only; nothing about exploits."""

from framestorm_cli.base.numbers import parse_int
from framestorm_cli.binaries import disassembly
from framestorm_cli.findings.finding import Code, Finding, Input, Mutation, Value, thread_state
from framestorm_cli.native.processes import DID_NOT_END
from framestorm_cli.triage.signature import significant

_PAGE = 4096
_NEAR = 64 << 10  # bytes; farther apart, two addresses have nothing to do with each other
_CANONICAL_TOP = 1 << 47
_MOST_CHANGES = 4  # of words and fields that are named: an input made of a sample has dozens
_SI_KERNEL = 0x80


def _apart(delta: int, what: str) -> str:
    """`8 below the real one`; without a delta just `what`."""
    if delta == 0:
        return what
    return f"{abs(delta)} {'above' if delta > 0 else 'below'} {what}"


def value_in_words(value: Value, place: str = "") -> str:
    """A symbolic value in words. `place` is what is being set ("sp"): the real value of the same
    register is called `the real one`."""
    if value.code is not None:
        return _code_in_words(value.code, value.delta)
    if value.kind == "raw":
        return hex(value.raw)
    if value.kind in ("real", f"real-{place}"):
        return _apart(value.delta, "the real one")
    names = {
        "real-sp": "the real sp",
        "real-fp": "the real fp",
        "real-pc": "the real pc",
        "stack-base": "the stack's base",
        "stack-end": "the stack's end",
        "guard-page": "an unreadable page",
        "other-sp": "another victim's sp",
        "other-pc": "another victim's pc",
        "slot": f"the stack word {value.index} words above sp"
        if value.index
        else "the stack word at sp",
        "libc-text": "libc's text",
        "libjvm-text": "libjvm's text",
        "java-heap": "the Java heap's start",
        "unmapped": "an unmapped address",
    }
    known = names.get(value.kind)
    return _apart(value.delta, known) if known else value.kind


def _as_object(value: Value) -> str:
    """Words that fit after `set to`."""
    words = value_in_words(value)
    if words.startswith("at "):
        return words.removeprefix("at ")
    return f"a place {words}" if words.startswith("in ") else words


def _code_in_words(code: Code, delta: int) -> str:
    kinds = {"nmethod": "compiled method", "stub": "stub", "codelet": "interpreter codelet",
             "function": "libjvm's function"}  # fmt: skip
    if code.kind == "stub" and code.name.partition(" ")[0] in ("vtable", "itable"):
        where = f"a{'n' if code.name.startswith('i') else ''} {code.name.partition(' ')[0]} stub"
    else:
        where = f"{kinds[code.kind]} {code.name}"
    if code.tier:
        where += f" (tier {code.tier})"
    anchor = code.anchor.replace("-", " ")
    if delta == 0:
        return f"at the {anchor} of {where}"
    return f"in {where}, {hex(abs(delta))} {'past' if delta > 0 else 'before'} its {anchor}"


def input_in_words(given: Input, state: str) -> str:
    """What the input is: scenario, how the context differs from the real one, call arguments. `state`:
    the thread's, empty when it is not known."""
    registers = [
        f"{one.place} {value_in_words(one.value, one.place)}"
        for one in given.mutations
        if one.kind == "register"
    ]
    changes = [_change_in_words(one) for one in given.mutations if one.kind != "register"]
    call = [
        f"{given.call[name]} context" if name == "context" else f"{name} {given.call[name]}"
        for name in ("depth", "context", "env", "options")
        if name in given.call
    ]
    parts = registers + changes[:_MOST_CHANGES] + call
    if len(changes) > _MOST_CHANGES:
        parts.append(f"{len(changes) - _MOST_CHANGES} more words and fields set")
    if not parts:
        parts.append("nothing mutated")
    if state:
        parts.append(f"thread {thread_state(state)}")
    return ", ".join([*parts, f"victim {given.scenario} ({given.mode} {given.walker})"])


def _change_in_words(change: Mutation) -> str:
    if change.kind == "stack":
        return f"the stack word at {change.place} (in words) set to {_as_object(change.value)}"
    name = change.value.thread_state
    if name == "invalid":
        shown = f"the invalid value {hex(change.value.raw)}"
    else:
        shown = thread_state(name) if name else _as_object(change.value)
    return f"thread field {change.place} set to {shown}"


def address_in_words(
    address: int,
    registers: dict[str, str],
    context: dict[str, str],
    fault_place: Value | None = None,
) -> str:
    """An address with what it is near to: null, the victim's stack, the walker's own stack."""
    shown = f"0x{address:x}"
    if address < _PAGE:
        return f"{shown}: null + {address}" if address else f"{shown}: null"
    if address >= 2**64 - _PAGE:
        return f"{shown}: null - {2**64 - address}"
    if _CANONICAL_TOP <= address < 2**64 - _CANONICAL_TOP:
        return f"{shown}: not a canonical address"
    places = {
        "the victim's real sp": parse_int(context.get("real_sp", "")),
        "the base of the victim's stack": parse_int(context.get("stack_base", "")),
        "the end of the victim's stack": parse_int(context.get("stack_end", "")),
        "the walker's own sp": parse_int(registers.get("rsp", registers.get("sp", ""))),
    }
    known = {name: place for name, place in places.items() if place is not None}
    if known:
        name = min(known, key=lambda n: abs(address - known[n]))
        distance = address - known[name]
        if abs(distance) <= _NEAR:
            side = "above" if distance > 0 else "below"
            return f"{shown}: " + (f"{abs(distance)} bytes {side} {name}" if distance else name)
    if fault_place is not None:
        return f"{shown}: {value_in_words(fault_place)}"
    return shown


def fault_in_words(finding: Finding) -> str:
    """What happened in the walk."""
    names = significant(frame.name for frame in finding.frames)
    where = names[0] if names else ""
    inside = f" in {where}" if where else ""
    if finding.kind == "fault":
        return f"{_signal_in_words(finding)}{inside}"
    if finding.kind == "hang":
        return f"the walk did not end within its limit; it was stuck{inside}"
    if finding.kind in ("unsafe_call", "terminal_call"):
        function = finding.function or finding.clause
        what = "ended in" if finding.kind == "terminal_call" else "called"
        held = f", {finding.locks_held} lock(s) held" if finding.locks_held else ""
        return f"the walk {what} {function or 'an unsafe function'}{inside}{held}"
    if finding.kind == "process_death":
        if finding.clause == DID_NOT_END:
            return "the process got stuck, outside of a walk's limits, and was ended"
        how = _signal_in_words(finding) if finding.signal else finding.clause
        own = ", framestorm's own code" if where.startswith("framestorm::") else ""
        return f"the process died: {how}{inside}{own}"
    if finding.kind == "contract":
        return f"contract {finding.clause} broken" + (
            f": {finding.detail}" if finding.detail else ""
        )
    return (finding.detail or f"{finding.kind} {finding.clause}".strip()) + inside


def _signal_in_words(finding: Finding) -> str:
    if finding.signal not in ("SIGSEGV", "SIGBUS"):
        names = {"SIGFPE": "arithmetic fault (SIGFPE)", "SIGILL": "illegal instruction (SIGILL)"}
        return names.get(finding.signal, finding.signal or "fault")
    start = parse_int(finding.code_start) or 0
    access = disassembly.access(finding.code, start, finding.code_pc_offset, finding.registers)
    address = parse_int(finding.address)
    if finding.si_code == _SI_KERNEL and access is not None and access.address is not None:
        address = access.address  # the kernel does not say it for non-canonical addresses
    error = parse_int(finding.registers.get("err", ""))
    action = access.action if access is not None else "access"
    if finding.address and finding.registers.get("rip") == finding.address:
        action = "jump"
    elif finding.access and finding.si_code != _SI_KERNEL:
        action = finding.access
    elif error is not None and finding.si_code != _SI_KERNEL:
        action = "jump" if error & 0x10 else ("write" if error & 2 else "read")
    shown = (
        "an unknown address"
        if address is None
        else address_in_words(address, finding.registers, finding.context, finding.fault_place)
    )
    base = ""
    if access is not None and access.base and access.base != "rip":
        base = f" (through {access.base})"
    bus = " (SIGBUS)" if finding.signal == "SIGBUS" else ""
    of = "to" if action == "jump" else "of"
    return f"{action} {of} {shown}{base}{bus}"


def explain(finding: Finding, *, with_input: bool = True) -> str:
    """One line: `read of 0x8: null + 8 in frame::sender; pc in a vtable stub, sp 64 below the real one,
    thread in Java, victim c2-inlined (same-thread asgct)`."""
    happened = fault_in_words(finding)
    state = finding.context.get("thread_state", "")
    if with_input and finding.input is not None:
        return f"{happened}; {input_in_words(finding.input, state)}"
    return f"{happened}; thread {thread_state(state)}" if state else happened
