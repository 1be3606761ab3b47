"""A finding in words: what the input did, what then happened. Facts only; nothing about exploits."""

import re

from framestorm_cli.binaries import disassembly
from framestorm_cli.binaries.symbols import Frame
from framestorm_cli.findings.records import Finding, parse_int
from framestorm_cli.native.processes import DID_NOT_END
from framestorm_cli.triage.signature import significant

_PAGE = 4096
_NEAR = 64 << 10  # bytes; farther apart, two addresses have nothing to do with each other
_CANONICAL_TOP = 1 << 47
_MOST_CHANGES = 4  # of words and fields that are named: an input made of a sample has dozens
_SI_KERNEL = 0x80
_THREAD_STATES = {
    0: "uninitialized", 2: "new", 3: "new (transition)", 4: "in native", 5: "in native (transition)",
    6: "in VM", 7: "in VM (transition)", 8: "in Java", 9: "in Java (transition)", 10: "blocked",
    11: "blocked (transition)",
}  # fmt: skip
_VALUE = re.compile(r"^(?P<kind>[a-z][a-z-]*)(?P<rest>.*?)(?:\s*(?P<sign>[+-])\s*(?P<delta>\w+))?$")
_CODE = re.compile(
    r'^(?P<kind>nmethod|stub|codelet|function) "(?P<name>[^"]*)"(?: tier (?P<tier>\d))?'
    r"(?: (?P<anchor>entry|verified-entry|deopt-handler|end))?"
    r"(?:\s*(?P<sign>[+-])\s*(?P<delta>\w+))?"
)


def _apart(sign: str | None, delta: str | None, what: str) -> str:
    """`8 below the real one`; without a delta just `what`."""
    if not sign or not delta or parse_int(delta) == 0:
        return what
    return f"{delta} {'above' if sign == '+' else 'below'} {what}"


def value_in_words(value: str, place: str = "") -> str:
    """A symbolic value of the text form in words. `place` is what is being set ("sp"): the real value
    of the same register is called `the real one`."""
    value = value.strip()
    code = _CODE.match(value)
    if code is not None:
        return _code_in_words(code)
    if value.startswith("raw"):
        return value.removeprefix("raw").strip() or "0"
    matched = _VALUE.match(value)
    if matched is None:
        return value
    kind, sign, delta = matched["kind"], matched["sign"], matched["delta"]
    rest = matched["rest"].strip()
    if kind in ("real", f"real-{place}"):
        return _apart(sign, delta, "the real one")
    if kind == "misaligned":
        return "misaligned"
    names = {
        "real-sp": "the real sp",
        "real-fp": "the real fp",
        "real-pc": "the real pc",
        "stack-base": "the stack's base",
        "stack-end": "the stack's end",
        "guard-page": "an unreadable page",
        "other-sp": "another victim's sp",
        "other-pc": "another victim's pc",
        "slot": f"the stack word {rest} words above sp"
        if rest not in ("", "0")
        else "the stack word at sp",
        "libc-text": "libc's text",
        "libjvm-text": "libjvm's text",
        "java-heap": "the Java heap's start",
        "unmapped": "an unmapped address",
    }
    return _apart(sign, delta, names[kind]) if kind in names else value


def _as_object(value: str) -> str:
    """Words that fit after `set to`."""
    words = value_in_words(value)
    if words.startswith("at "):
        return words.removeprefix("at ")
    return f"a place {words}" if words.startswith("in ") else words


def _code_in_words(code: "re.Match[str]") -> str:
    name = code["name"]
    kinds = {"nmethod": "compiled method", "stub": "stub", "codelet": "interpreter codelet",
             "function": "libjvm's function"}  # fmt: skip
    if code["kind"] == "stub" and re.search(r"[vi]table", name):
        where = f"a{'n' if name.startswith('i') else ''} {name.split(' ')[0]} stub"
    else:
        where = f"{kinds[code['kind']]} {name}"
    if code["tier"] and code["tier"] != "0":
        where += f" (tier {code['tier']})"
    anchor = (code["anchor"] or "entry").replace("-", " ")
    delta = code["delta"]
    if not delta or parse_int(delta) == 0:
        return f"at the {anchor} of {where}"
    direction = "past" if code["sign"] == "+" else "before"
    return f"in {where}, {delta} {direction} its {anchor}"


def thread_state(text: str) -> str:
    """`_thread_in_Java` is `in Java`; a raw number is named where HotSpot has a name for it."""
    number = parse_int(text.removeprefix("raw").strip())
    if number is not None:
        return _THREAD_STATES.get(number, f"the invalid value {text.removeprefix('raw').strip()}")
    return text.removeprefix("_thread_").replace("_trans", " (transition)").replace("_", " ")


def input_in_words(text: str, context: dict[str, str]) -> str:
    """What the input is: scenario, how the context differs from the real one, call arguments."""
    fields: dict[str, str] = {}
    changes: list[str] = []
    call: list[str] = []
    registers: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split("#", 1)[0].strip()
        name, _, rest = words.partition(" ")
        if name == "register":
            register, _, value = rest.partition(" = ")
            registers[register.strip()] = value
        elif name == "stack":
            place, _, value = rest.partition(" = ")
            changes.append(
                f"the stack word at {place.strip()} (in words) set to {_as_object(value)}"
            )
        elif name == "thread":
            place, _, value = rest.partition(" = ")
            shown = thread_state(value) if place.strip() == "state" else _as_object(value)
            changes.append(f"thread field {place.strip()} set to {shown}")
        elif name in ("depth", "env", "options"):
            call.append(f"{name} {rest}")
        elif name == "context":
            call.append(f"{rest} context")
        elif rest:
            fields[name] = rest
    parts: list[str] = []
    for register, value in registers.items():
        shown = context.get(register, value) if register == "pc" else value
        parts.append(f"{register} {value_in_words(shown, register)}")
    parts += changes[:_MOST_CHANGES] + call
    if len(changes) > _MOST_CHANGES:
        parts.append(f"{len(changes) - _MOST_CHANGES} more words and fields set")
    if context.get("thread_state"):
        parts.append(f"thread {thread_state(context['thread_state'])}")
    scenario = fields.get("scenario")
    if scenario:
        # The text form leaves out what has its default value.
        mode, walker = fields.get("mode", "same-thread"), fields.get("walker", "asgct")
        parts.append(f"victim {scenario} ({mode} {walker})")
    if scenario and not registers and not changes and not call:
        parts.insert(0, "nothing mutated")
    return ", ".join(parts)


def address_in_words(address: int, registers: dict[str, str], context: dict[str, str]) -> str:
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
    symbolic = context.get("fault_address", "")
    if symbolic and parse_int(symbolic) is None:
        return f"{shown}: {value_in_words(symbolic)}"
    return shown


def fault_in_words(finding: Finding, frames: list[Frame]) -> str:
    """What happened in the walk."""
    names = significant(frame.name for frame in frames)
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
    address = finding.address_value()
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
        else address_in_words(address, finding.registers, finding.context)
    )
    base = ""
    if access is not None and access.base and access.base != "rip":
        base = f" (through {access.base})"
    bus = " (SIGBUS)" if finding.signal == "SIGBUS" else ""
    of = "to" if action == "jump" else "of"
    return f"{action} {of} {shown}{base}{bus}"


def explain(finding: Finding, frames: list[Frame]) -> str:
    """One line: `read of 0x8: null + 8 in frame::sender; pc in a vtable stub, sp 64 below the real one,
    thread in Java, victim c2-inlined (same-thread asgct)`."""
    said = input_in_words(finding.text, finding.context)
    happened = fault_in_words(finding, frames)
    return f"{happened}; {said}" if said else happened
