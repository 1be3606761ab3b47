"""Code bytes around a fault: which instruction, what it accessed. x86-64 and AArch64 (capstone)."""

import re
from dataclasses import dataclass

import capstone
from capstone import x86_const

from framestorm_cli.base.numbers import parse_int

# General registers but sp, fp and HotSpot's r15, which is the thread.
_REGISTER = re.compile(r"\b(?:[re]?(?:[abcd]x|[sd]i)|[abcd][lh]|[sd]il|r(?:8|9|1[0-4])[dwb]?)\b")
_VECTOR = re.compile(r"\b[xyz]mm\d+\b")
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")


@dataclass(frozen=True)
class Access:
    """The memory operand of the faulting instruction (x86-64 only)."""

    action: str  # "read", "write", "read or write"
    base: str  # register name, or ""
    address: int | None  # effective; None when a register's value is not known


def _engine(arch: str) -> capstone.Cs:
    if arch in ("aarch64", "arm64"):
        engine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    else:
        engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.detail = True
    return engine


def _bytes(code: str) -> bytes:
    try:
        return bytes.fromhex(code)
    except ValueError:
        return b""


def listing(code: str, start: int, pc_offset: int, arch: str = "x86_64") -> list[str]:
    """Instructions around pc, the faulting one marked. Code before pc may start in the middle of an
    instruction: decoding starts where it arrives at pc exactly."""
    data = _bytes(code)
    if pc_offset >= len(data):
        return []
    engine = _engine(arch)
    lines: list[str] = []
    for skip in range(pc_offset + 1):
        before = list(engine.disasm(data[skip:pc_offset], start + skip))
        if sum(i.size for i in before) == pc_offset - skip:
            lines = [f"   0x{i.address:x}  {i.mnemonic} {i.op_str}".rstrip() for i in before]
            break
    for index, i in enumerate(engine.disasm(data[pc_offset:], start + pc_offset)):
        mark = "=>" if index == 0 else "  "
        lines.append(f"{mark} 0x{i.address:x}  {i.mnemonic} {i.op_str}".rstrip())
    return lines


def access(code: str, start: int, pc_offset: int, registers: dict[str, str]) -> Access | None:
    """What the instruction at pc accessed; None when it has no memory operand or is unknown."""
    data = _bytes(code)
    if pc_offset >= len(data):
        return None
    instruction = next(_engine("x86_64").disasm(data[pc_offset:], start + pc_offset), None)
    if instruction is None or instruction.mnemonic == "lea":
        return None
    for operand in instruction.operands:
        if operand.type != x86_const.X86_OP_MEM:
            continue
        memory = operand.mem
        base = instruction.reg_name(memory.base) if memory.base else ""
        address: int | None = memory.disp
        for register, scale in ((memory.base, 1), (memory.index, memory.scale)):
            if not register:
                continue
            name = instruction.reg_name(register)
            value = parse_int(registers.get(name, ""))
            if name == "rip":
                value = instruction.address + instruction.size
            address = None if value is None or address is None else address + value * scale
        actions = {capstone.CS_AC_READ: "read", capstone.CS_AC_WRITE: "write"}
        return Access(
            actions.get(operand.access, "read or write"),
            base or "",
            None if address is None else address & 0xFFFFFFFFFFFFFFFF,
        )
    return None


def instructions(code: str) -> list[tuple[int, str]]:
    """Offset and text of each; where bytes are data, decoding goes on behind them."""
    engine = _engine("x86_64")
    engine.skipdata = True
    return [
        (i.address, f"{i.mnemonic} {i.op_str}".rstrip()) for i in engine.disasm(_bytes(code), 0)
    ]


def shape(code: str) -> str:
    """The first instruction, whatever its numbers and registers are, but for sp and fp."""
    first = next(_engine("x86_64").disasm_lite(_bytes(code), 0, 1), None)
    if first is None:
        return ""
    operands = _NUMBER.sub("N", _VECTOR.sub("V", _REGISTER.sub("R", first[3])))
    return f"{first[2]} {operands}".rstrip()
