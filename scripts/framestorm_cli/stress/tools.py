"""Set-up of a stress run: the JDK, the agent, the built-in workloads."""

import os
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli import elf, packages, paths, toolchain
from framestorm_cli import jdk as jdks
from framestorm_cli.errors import FramestormError
from framestorm_cli.jdk import Jdk
from framestorm_cli.stress.agent import LIBRARY, Java
from framestorm_cli.stress.workloads import BuiltIn, Workload, built_in
from framestorm_cli.walkers import WALKERS

TARGETS = ("framestorm_agent",)


@dataclass(frozen=True)
class Tools:
    """All that is there before the first cell."""

    jdk: Jdk
    java: Java
    built_in: list[Workload]

    @property
    def build_id(self) -> str:
        return elf.identify(self.jdk.libjvm).build_id


def prepare(jdk_option: Path | None) -> Tools:
    """Builds what is out of date. Raises FramestormError."""
    jdk = jdks.choose(jdk_option)
    java = jdk.home / "bin" / "java"
    if not java.exists():
        raise FramestormError(f"{jdk} has no bin/java: give the home of a whole JDK")
    agent = _agent(jdk)
    return Tools(jdk, Java(java, agent), built_in(java, workloads(jdk)))


def _agent(jdk: Jdk) -> Path:
    own = os.environ.get("FRAMESTORM_BIN")
    if not own:
        packages.ensure()
        toolchain.build(TARGETS, jdk)
    # FRAMESTORM_BIN is the folder bin/ of a build.
    build = Path(own).resolve().parent if own else paths.build()
    agent = build / "stress" / "agent" / LIBRARY
    if not agent.exists():
        raise FramestormError(
            f"the agent {agent} is missing: build {TARGETS[0]}"
            + (f", or unset FRAMESTORM_BIN ({own})" if own else "")
        )
    return agent


def workloads(jdk: Jdk) -> BuiltIn:
    """The jar of the built-in workloads and their native library, built when they are out of date."""
    from framestorm_cli.stress import compiling

    built = compiling.build(jdk)
    return BuiltIn(built.jar, built.natives)


def walkers(jdk: Jdk) -> list[str]:
    """Those that the JDK has and that can sample; but plugins, which are not the JDK's."""
    return [
        name
        for name, walker in WALKERS.items()
        if name not in ("gst", "plugin") and not walker.why_missing(jdk.libjvm)
    ]
