"""walking.bin: the walks that a process was making when it died (stress/agent/walking_file.h)."""

import struct
from pathlib import Path

FILE = "walking.bin"
_RECORD = struct.Struct("=QIIIiII6Q23Q")
_SIZE = 512
_WALKERS = (
    "asgct", "gst", "plugin", "asgst", "asgst-env", "asgst-thread", "asgct2", "asgst-iterator",
    "asgst-frame",
)  # fmt: skip
_MODES = ("same-thread", "separate-thread", "unstopped")
_RBP, _RSP, _RIP = 10, 15, 16  # in a ucontext_t's registers


def context(folder: Path) -> dict[str, str]:
    """The sampled context of the walk that was being made, as findings have it; of several the oldest
    sample's, with the number of the others. Empty when none was."""
    try:
        data = (folder / FILE).read_bytes()
    except OSError:
        return {}
    records = [_RECORD.unpack_from(data, at) for at in range(0, len(data) - _SIZE + 1, _SIZE)]
    walks = sorted(record for record in records if record[0])
    if not walks:
        return {}
    (
        number,
        tid,
        walker,
        mode,
        depth,
        rewalks,
        state,
        base,
        end,
        java_sp,
        java_pc,
        java_fp,
        *rest,
    ) = walks[0]
    registers = rest[1:]  # after the JavaThread*
    found = {
        "walk": f"{_name(_WALKERS, walker)} {_name(_MODES, mode)} depth {depth}, sample {number}, "
        f"walked {rewalks} times before, thread {tid}",
        "thread_state": str(state),
        "real_pc": hex(registers[_RIP]),
        "real_sp": hex(registers[_RSP]),
        "real_fp": hex(registers[_RBP]),
        "stack_base": hex(base),
        "stack_end": hex(end),
        "last_java_sp": hex(java_sp),
        "last_java_pc": hex(java_pc),
        "last_java_fp": hex(java_fp),
    }
    if len(walks) > 1:
        found["other_walks"] = str(len(walks) - 1)
    return found


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)
