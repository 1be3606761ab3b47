"""`framestorm truth-cost`: what a call costs more when its method keeps a shadow stack."""

from collections.abc import Sequence
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.machine import machine
from framestorm_cli.experiments.shared import table
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import java_sources, jvm_modes, toolchain
from framestorm_cli.native.java_sources import Part
from framestorm_cli.stress import truth
from framestorm_cli.stress.agent import LIBRARY

_JAVA = paths.CHECKOUT / "stress" / "shadow" / "java"
# Calls in one round, by how they are compiled.
_MODES = {"int": 300_000, "c1": 10_000_000, "c2": 10_000_000}


def cost_command(*, jdk: Path | None) -> int:
    """Returns the exit code. Raises FramestormError."""
    chosen = choosing.choose(jdk)
    classes = java_sources.compiled(
        chosen,
        name="truth-bench",
        what="the bench of shadow stacks",
        root=_JAVA,
        parts=[Part("bench", 17, ("-source", "17", "-target", "17"))],
    )
    agent = toolchain.product("framestorm_agent", f"stress/agent/{LIBRARY}", chosen)
    rows = []
    for mode, calls in _MODES.items():
        program = ["-cp", str(classes), "framestorm.bench.Calls", str(calls)]
        flags = jvm_modes.JITS[mode]
        plain = _nanoseconds(chosen, [*flags, *program])
        # Sampled so rarely that only the pushes cost.
        options = f"out={classes.parent / 'truth-cost-out'},truth=1,interval=1s"
        agents = [f"-agentpath:{agent}={options}", f"-javaagent:{truth.build(chosen)}"]
        pushed = _nanoseconds(chosen, [*agents, *flags, *program])
        rows.append([mode, f"{plain:.2f}", f"{pushed:.2f}", f"{pushed - plain:.2f}"])
    print(f"JDK {chosen.version}, {machine().cores} cores; ns per call, median of 21 rounds")
    print(table(["compiled by", "plain", "instrumented", "more"], rows, numbers=3))
    return 0


def _nanoseconds(jdk: Jdk, arguments: Sequence[str]) -> float:
    command = [str(jdk.home / "bin" / "java"), *arguments]
    done = steps.captured(command, timeout=300)
    for line in done.stdout.splitlines():
        if line.startswith("ns "):
            return float(line.removeprefix("ns "))
    raise FramestormError(
        f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    )
