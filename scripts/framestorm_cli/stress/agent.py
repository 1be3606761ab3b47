"""The agent's options, the command line of a cell, and its environment."""

import os
import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.stress import jfr, profiled
from framestorm_cli.stress.cells import SELF_MODE, UNSAMPLED, Cell
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.workloads import Workload

LIBRARY = "libframestorm.so"
OBSERVER = "libframestorm_observer.so"  # notes the shadow stacks of a profiler's samples
SHADOWS = "shadows.tsv"  # that it writes
OUT = "agent"  # the agent's folder inside a cell's


@dataclass(frozen=True)
class Java:
    """What every cell of a run is started with."""

    java: Path
    agent: Path
    asan: Path | None = None  # ASan's runtime, of a JDK that was built with it
    truth: Path | None = None  # the Java agent that keeps shadow stacks
    observer: Path | None = None


def quoted(plugin: str) -> str:
    """FILE[=OPTIONS] as the agent's option `plugin` has it."""
    return urllib.parse.quote(plugin)


def options(cell: Cell, plan: Plan, seed: int, out: Path) -> str:
    """The text after `-agentpath:...=`. Raises FramestormError where a value cannot be said in it."""
    given: dict[str, str | int] = {
        "walker": cell.walker,
        "mode": cell.mode,
        "interval": cell.interval,
        "threads": plan.threads,
        "seed": seed,
        "out": str(out),
    }
    if "plugin" in cell.walker.split("+"):
        given["plugin"] = quoted(plan.plugin)
    if judged_by_truth(cell, plan):
        given["truth"] = 1
    if plan.truth:
        given["compiled"] = 1
    for key, value in given.items():
        if "," in str(value):
            raise FramestormError(
                f"{key} {value} has a comma, which the agent's options are separated by"
            )
    return ",".join(f"{key}={value}" for key, value in given.items())


def command(
    java: Java, cell: Cell, workload: Workload, plan: Plan, number: int, folder: Path
) -> list[str]:
    """The cell as a command line; for JFR its settings are written into the cell's folder."""
    seed = plan.cell_seed(number)
    agent = []
    if cell.mode != SELF_MODE:
        agent = [f"-agentpath:{java.agent}={options(cell, plan, seed, folder / OUT)}"]
    elif cell.walker != UNSAMPLED:
        agent = recording(cell, plan, folder).start()
    if judged_by_truth(cell, plan) and java.truth is not None:
        if cell.mode == SELF_MODE:
            # Behind the profiler, whose handlers it looks for.
            agent.append(f"-agentpath:{java.observer}={folder / OUT}")
        agent.append(f"-javaagent:{java.truth}={plan.truth_classes};{plan.truth_share:g}")
    return program(java, cell, workload, plan, seed, agent)


def judged_by_truth(cell: Cell, plan: Plan) -> bool:
    """Whether a cell's samples are held against shadow stacks. The program by itself keeps them, too, as what
    profilers are compared with."""
    of_a_moment = cell.stands_still or cell.mode == SELF_MODE
    return plan.truth and not cell.plain and of_a_moment


def environment(java: Java, cell: Cell) -> dict[str, str]:
    """What a cell's java has beside this process's: the agent ahead of libc, without which it does not see
    what walks call, and of ASan's runtime, without which it does not load. Raises FramestormError."""
    if cell.mode == SELF_MODE:
        return {}
    libraries = [str(java.agent), *([str(java.asan)] if java.asan else [])]
    for one in libraries:
        if re.search(r"[\s:]", one):
            raise FramestormError(
                f"{one}: LD_PRELOAD takes no path with a blank or a colon: move the cache folder "
                "(FRAMESTORM_CACHE) or the JDK"
            )
    if before := os.environ.get("LD_PRELOAD"):
        libraries.append(before)
    return {"LD_PRELOAD": ":".join(libraries)}


def recording(cell: Cell, plan: Plan, folder: Path) -> jfr.Recording | profiled.Recording:
    """What a cell that samples itself leaves in its folder."""
    if cell.walker in plan.profilers:
        profiler = plan.profilers[cell.walker]
        return profiled.Recording(cell.walker, profiler, folder / OUT, cell.interval_ns)
    return jfr.Recording(cell.walker, folder / OUT, cell.interval_ns)


def program(
    java: Java, cell: Cell, workload: Workload, plan: Plan, seed: int, sampling: Sequence[str]
) -> list[str]:
    """The cell's program, with `sampling` as what samples it: nothing, to see it run by itself."""
    return [
        str(java.java),
        *sampling,
        *workload.jvm_args,
        *plan.vm_flags(cell),
        *workload.arguments(plan.seconds, plan.iterations, seed),
    ]
