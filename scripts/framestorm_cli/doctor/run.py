"""`framestorm doctor`: what the machine has, what is missing, what will not work and why."""

import os
import platform
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from framestorm_cli.base import files, packages, paths, run_folder, steps
from framestorm_cli.fuzz import afl
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdk import run as command
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import runtimes
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain

OK, NOTE, MISSING, BAD = "ok", "note", "missing", "BAD"
_ARCHITECTURES = ("x86_64",)
_LEAST_MEMORY_MB = 2048


@dataclass(frozen=True)
class Check:
    """`missing`: a command installs it. `BAD`: something will not work until a person acts."""

    state: str
    what: str
    detail: str


def _first_line(command: list[str]) -> str:
    try:
        done = steps.captured(command)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0].strip()


def check_machine() -> list[Check]:
    memory = psutil.virtual_memory().total >> 20
    arch = platform.machine()
    system = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    checks = [
        Check(
            OK if arch in _ARCHITECTURES else BAD,
            "architecture",
            arch
            if arch in _ARCHITECTURES
            else f"{arch}: only {', '.join(_ARCHITECTURES)} is supported",
        ),
        Check(OK, "system", f"{system.get('PRETTY_NAME', 'unknown')}, Linux {platform.release()}"),
        Check(OK, "cores", f"{os.cpu_count()}: `fuzz` runs that many processes at once (--jobs)"),
        Check(
            OK if memory >= _LEAST_MEMORY_MB else NOTE,
            "memory",
            f"{memory} MiB"
            + ("" if memory >= _LEAST_MEMORY_MB else ": little for a build with several jobs"),
        ),
    ]
    for name, folder, needed in (
        ("disk (cache)", paths.cache(), toolchain.BUILD_ROOM),
        ("disk (out)", paths.CHECKOUT, run_folder.NEEDED_FREE),
    ):
        free = shutil.disk_usage(folder).free
        state = OK if free >= needed else BAD
        checks.append(
            Check(state, name, f"{free >> 20} MiB free in {folder}, {needed >> 20} MiB needed")
        )
    if not os.access(paths.CHECKOUT, os.W_OK):
        checks.append(
            Check(NOTE, "checkout", f"{paths.CHECKOUT} is read-only: give `fuzz --out DIR`")
        )
    return checks


def check_packages() -> list[Check]:
    absent = packages.missing()
    if not absent:
        checks = [Check(OK, "packages", "all there")]
    else:
        may = os.geteuid() == 0 or shutil.which("sudo") is not None
        can = may and shutil.which("apt-get") is not None
        how = (
            "installed by the next command" if can else "neither root nor sudo (or no apt-get) here"
        )
        checks = [Check(MISSING if can else BAD, "packages", f"missing: {' '.join(absent)}: {how}")]
    clang = _first_line(["clang++-19", "--version"])
    if clang:
        checks.append(Check(OK, "clang", clang))
        runtime = _first_line(
            ["clang++-19", "-print-file-name=libclang_rt.fuzzer_no_main-x86_64.a"]
        )
        found = bool(runtime) and Path(runtime).exists()
        resource_dir = _first_line(["clang++-19", "-print-resource-dir"])
        libraries = (
            list(Path(resource_dir).glob("lib/**/libclang_rt.fuzzer_no_main*"))
            if resource_dir
            else []
        )
        state = OK if found or libraries else MISSING
        detail = "libFuzzer and sanitizers there" if state == OK else "missing: libclang-rt-19-dev"
        checks.append(Check(state, "sanitizer runtimes", detail))
    return checks


def check_jdks() -> list[Check]:
    checks = []
    for path, found in jdks.installed():
        if isinstance(found, Jdk):
            tools = "with javac" if found.javac else "no javac: another JDK's compiles the victims"
            checks.append(Check(OK, "JDK", f"{found}, {tools}"))
        else:
            checks.append(Check(NOTE, "JDK", f"not usable: {found.message} [{path}]"))
    for feature, wheel in runtimes.WHEELS.items():
        home = runtimes.home_of(wheel)
        detail = f"{home}, no javac" if home.exists() else f"fetched by `fuzz --jdk {feature}`"
        checks.append(Check(OK if home.exists() else NOTE, f"JDK {feature}", detail))
    if not any(check.state == OK and check.what == "JDK" for check in checks):
        can = os.geteuid() == 0 or shutil.which("sudo") is not None
        checks.append(
            Check(
                MISSING if can else BAD,
                "JDK",
                f"no usable HotSpot below {jdks.JVM_FOLDER}: "
                + ("one is installed by `fuzz`" if can else f"install {packages.JDK_PACKAGE}"),
            )
        )
    try:
        checks.append(Check(OK, "JDK under test", str(choosing.choose(None, may_install=False))))
    except jdks.UnusableJdkError as error:
        state = BAD if os.environ.get("JAVA_HOME") else MISSING
        checks.append(Check(state, "JDK under test", error.message))
    return checks


def check_afl() -> list[Check]:
    absent = packages.missing(afl.PACKAGES)
    detail = f"missing: {' '.join(absent)}: `fuzz --engine afl` installs it" if absent else "there"
    return [Check(MISSING if absent else OK, "AFL++", detail)]


def check_instrumented() -> list[Check]:
    """What there is for `--jdk instrumented`, which sets up the rest by itself."""
    absent = command.missing_files()
    if absent:
        return [Check(BAD, "instrumented JDK", f"missing in the checkout: {absent[0]}")]
    return [
        Check(
            OK if there else MISSING,
            "instrumented JDK",
            f"{name}: {there}"
            if there
            else f"{name}: built by `jdk build --variant {name}` or `fuzz --jdk instrumented:{name}`",
        )
        for name, there in command.state()
    ]


def check_limits() -> list[Check]:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    core, _ = resource.getrlimit(resource.RLIMIT_CORE)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    pattern = files.read_text(Path("/proc/sys/kernel/core_pattern")).strip()
    paranoid = files.read_text(Path("/proc/sys/kernel/perf_event_paranoid")).strip()
    checks = [
        Check(
            OK if descriptors >= 256 else BAD,
            "open files",
            f"{descriptors} (ulimit -n), 256 needed",
        ),
        Check(
            OK if space == resource.RLIM_INFINITY else NOTE,
            "address space",
            "unlimited"
            if space == resource.RLIM_INFINITY
            else f"{space >> 20} MiB: a JVM may not start",
        ),
        Check(
            OK if core == 0 else NOTE,
            "core dumps",
            "off (ulimit -c)"
            if core == 0
            else f"on, pattern `{pattern}`: every process that dies writes one; `ulimit -c 0` avoids it",
        ),
        Check(
            OK,
            "perf_event_paranoid",
            f"{paranoid or 'unknown'}: not needed, halting uses plain signals",
        ),
    ]
    if Path("/proc/sys/kernel/yama/ptrace_scope").exists():
        checks.append(Check(OK, "ptrace_scope", "not needed, nothing is traced"))
    return checks


def doctor_command() -> int:
    """Prints every check. Exit code 2 when a person has to act."""
    checks = [
        *check_machine(),
        *check_packages(),
        *check_jdks(),
        *check_instrumented(),
        *check_afl(),
        *check_limits(),
    ]
    built = (paths.build() / "bin").is_dir()
    checks.append(
        Check(
            OK if built else MISSING,
            "native build",
            f"{paths.build()}" + ("" if built else ": built by the next command"),
        )
    )
    for check in checks:
        click.echo(f"{check.state:<8} {check.what:<20} {check.detail}")
    bad = [check.what for check in checks if check.state == BAD]
    if bad:
        click.echo(f"\nwill not work until somebody acts: {', '.join(bad)}", err=True)
        return 2
    later = [check.what for check in checks if check.state == MISSING]
    click.echo(
        f"\nmissing, and set up by the next command that needs it: {', '.join(later)}"
        if later
        else "\neverything is in place"
    )
    return 0
