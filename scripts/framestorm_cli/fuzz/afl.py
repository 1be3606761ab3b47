"""AFL++: what its tools need to run a fuzz target.

The targets for AFL++ are other programs (bin/afl, bin/asan/afl) over the same code; fuzz/README.md says
how they work and how to run the tools by hand.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from framestorm_cli.base import packages, paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import Toolchain

PACKAGES = ("afl++",)
MUTATOR = "framestorm_afl_mutator"
# Milliseconds an execution may take: the first one of a process starts its JVM. A walk has its own
# limit, so that this one is for what cannot go on at all.
TIMEOUT_MS = 90_000


def ensure(tools: Toolchain) -> None:
    """Installs AFL++ and builds the targets for it. Raises FramestormError."""
    packages.ensure(PACKAGES)
    if not os.environ.get("FRAMESTORM_BIN"):
        variant = "-asan" if tools.jdk.has_asan else ""
        toolchain.build((MUTATOR, *(f"{name}-afl{variant}" for name in paths.TARGETS)), tools.jdk)
    for target in paths.TARGETS:
        program(tools, target)
    mutator(tools)


def program(tools: Toolchain, target: str) -> Path:
    """The program of a target for AFL++. Raises FramestormError when it was not built."""
    path = tools.bin / "afl" / target
    if not path.exists():
        raise FramestormError(
            f"{path} is missing: `ninja afl` builds it, afl++ has to be installed"
        )
    return path


def mutator(tools: Toolchain) -> Path:
    """The custom mutator. afl-fuzz loads it, which has no sanitizers, so there is only one."""
    base = tools.bin.parent if tools.bin.name == "asan" else tools.bin
    path = base / "afl" / f"{MUTATOR}.so"
    if not path.exists():
        raise FramestormError(f"{path} is missing: `ninja afl` builds it")
    return path


def environment(tools: Toolchain) -> dict[str, str]:
    """What every tool of AFL++ needs in its environment, for any target."""
    sanitizers = {
        # AFL++ insists on the first two; the guard takes reports, and the process goes on.
        "ASAN_OPTIONS": "abort_on_error=1:symbolize=0:halt_on_error=0:detect_leaks=0",
        # Unset, AFL++ makes UBSan abort, which HotSpot's own start does not survive.
        "UBSAN_OPTIONS": "abort_on_error=0:halt_on_error=0",
    }
    return {
        "AFL_NO_UI": "1",
        "AFL_NO_COLOR": "1",
        "AFL_NO_AFFINITY": "1",
        "AFL_SKIP_CPUFREQ": "1",
        "AFL_ALLOW_TMP": "1",  # afl-cmin: inputs may be below /tmp
        # Crashes do not come as core files: the guard contains and the survey keeps them.
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
        "AFL_FORKSRV_INIT_TMOUT": str(TIMEOUT_MS),
        **(sanitizers if tools.jdk.has_asan else {}),
    }


def mutator_environment(
    tools: Toolchain,
    target: str,
    out: Path,
    *,
    walker: str = "",
    scenarios: Sequence[str] = (),
    modes: Sequence[str] = (),
) -> dict[str, str]:
    """What afl-fuzz needs beside it: the structure-aware mutator, for what the target may mutate.

    `out` is the target's output folder, where it leaves the names of code the mutator picks from."""
    return {
        "AFL_CUSTOM_MUTATOR_LIBRARY": str(mutator(tools)),
        "AFL_CUSTOM_MUTATOR_ONLY": "1",  # its own havoc knows nothing of the encoding
        "AFL_DISABLE_TRIM": "1",  # symbolic inputs are short and lose their meaning by lost bytes
        "FRAMESTORM_TARGET": target,
        "FRAMESTORM_OUT": str(out),
        "FRAMESTORM_SCENARIOS": ",".join(scenarios),
        "FRAMESTORM_MODES": ",".join(modes),
        "FRAMESTORM_WALKER": walker,
    }


def priming(target: str) -> list[str]:
    """Arguments by which a target walks its own seeds before the first input: what HotSpot does only
    once would else look like noise. Never other inputs: one that ends the process would end each."""
    seeds = paths.SEEDS / target
    return ["--corpus", str(seeds)] if seeds.is_dir() else []


def fuzz_command(
    target: Sequence[str], *, seeds: Path, out: Path, seed: int, runs: int | None
) -> list[str]:
    """afl-fuzz over a target's command line. It ends by SIGTERM, or after `runs` executions."""
    command = ["afl-fuzz", "-i", str(seeds), "-o", str(out), "-t", str(TIMEOUT_MS)]
    command += ["-s", str(seed & 0x7FFFFFFF)]
    if runs is not None:
        command += ["-E", str(runs)]
    return [*command, "--", *target]
