"""walking.bin: the walks that a process was making when it died (stress/agent/walking_file.h)."""

import json
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import processes, toolchain

FILE = "walking.bin"
_KEPT = ("thread_state", "real_pc", "real_sp", "real_fp", "stack_base", "stack_end",
         "last_java_sp", "last_java_pc", "last_java_fp")  # fmt: skip


def context(folder: Path) -> dict[str, str]:
    """The sampled context of the walk that was being made, as findings have it; of several the oldest
    sample's, with the number of the others. Empty when none was."""
    file = folder / FILE
    if not file.exists() or not any(file.read_bytes()):
        return {}
    try:
        program = toolchain.native_program(toolchain.STEP)
        walks = json.loads(processes.query([program, "walking", file]))
    except FramestormError as error:
        steps.say(f"{file} cannot be read: {error.message}")
        return {}
    if not walks:
        return {}
    oldest = walks[0]
    found = {
        "walk": f"{oldest['walker']} {oldest['mode']} depth {oldest['depth']}, sample {oldest['number']}, "
        f"walked {oldest['rewalks']} times before, thread {oldest['tid']}",
        **{name: str(oldest[name]) for name in _KEPT},
    }
    if len(walks) > 1:
        found["other_walks"] = str(len(walks) - 1)
    return found
