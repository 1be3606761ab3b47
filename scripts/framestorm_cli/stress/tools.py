"""Set-up of a stress run: the JDK, the agent, the built-in workloads."""

from dataclasses import dataclass, replace
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.native.walkers import Table
from framestorm_cli.stress import compiling, truth
from framestorm_cli.stress.agent import LIBRARY, OBSERVER, Java
from framestorm_cli.stress.workloads import Workload, built_in


@dataclass(frozen=True)
class Tools:
    """All that is there before the first cell."""

    jdk: Jdk
    java: Java
    built_in: list[Workload]
    walkers: Table

    @property
    def build_id(self) -> str:
        return elf.identify(self.jdk.libjvm).build_id


def prepare(jdk_option: Path | None) -> Tools:
    """Builds what is out of date. Raises FramestormError."""
    jdk = choosing.choose(jdk_option)
    java = jdk.home / "bin" / "java"
    if not java.exists():
        raise FramestormError(f"{jdk} has no bin/java: give the home of a whole JDK")
    asan = _asan_runtime(jdk)
    agent = toolchain.product("framestorm_agent", f"stress/agent/{LIBRARY}", jdk)
    programs = toolchain.native_programs(programs=(toolchain.NATIVE, toolchain.STEP))
    table = walkers.table(programs / toolchain.NATIVE)
    return Tools(jdk, Java(java, agent, asan), built_in(java, compiling.build(jdk)), table)


def with_truth(found: Tools) -> Tools:
    """With what keeps shadow stacks, and notes those of profilers' samples. Raises FramestormError."""
    observer = toolchain.product("framestorm_observer", f"stress/agent/{OBSERVER}", found.jdk)
    kept = replace(found.java, truth=truth.build(found.jdk), observer=observer)
    return replace(found, java=kept)


def _asan_runtime(jdk: Jdk) -> Path | None:
    """The runtime that the JDK's programs start with; None for one without ASan."""
    name = next((one for one in elf.needed(jdk.libjvm) if "clang_rt.asan" in one), None)
    if name is None:
        return None
    found = jdk.home / "lib" / name
    if not found.exists():
        raise FramestormError(f"{jdk} was built with ASan, and its lib/ has no {name}")
    return found
