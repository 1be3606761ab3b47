"""A built $OUT as OSS-Fuzz's machines meet it: moved to another folder, read-only, another user's, with
the runner's environment and no Java."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf

# infra/base-images/base-runner/Dockerfile of OSS-Fuzz, and what run_fuzzer adds for AFL++.
_RUNNER = {
    "ASAN_OPTIONS": "alloc_dealloc_mismatch=0:allocator_may_return_null=1:"
    "allocator_release_to_os_interval_ms=500:check_malloc_usable_size=0:detect_container_overflow=1:"
    "detect_odr_violation=0:detect_leaks=1:detect_stack_use_after_return=1:fast_unwind_on_fatal=0:"
    "handle_abort=1:handle_segv=1:handle_sigill=1:max_uar_stack_size_log=16:print_scariness=1:"
    "quarantine_size_mb=10:strict_memcmp=1:strip_path_prefix=/workspace/:symbolize=1:"
    "use_sigaltstack=1:dedup_token_length=3",
    "UBSAN_OPTIONS": "print_stacktrace=1:print_summary=1:silence_unsigned_overflow=1:"
    "strip_path_prefix=/workspace/:symbolize=1:dedup_token_length=3",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}
_RUNNER_AFL = {
    "ASAN_OPTIONS": f"{_RUNNER['ASAN_OPTIONS']}:abort_on_error=1:symbolize=0:detect_odr_violation=0:",
    "UBSAN_OPTIONS": f"{_RUNNER['UBSAN_OPTIONS']}:symbolize=0",
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
    "AFL_SKIP_CPUFREQ": "1",
    "AFL_TRY_AFFINITY": "1",
    "AFL_FAST_CAL": "1",
    "AFL_CMPLOG_ONLY_NEW": "1",
    "AFL_FORKSRV_INIT_TMOUT": "30000",
    "AFL_IGNORE_PROBLEMS": "1",
    "AFL_IGNORE_UNKNOWN_ENVS": "1",
    "AFL_NO_UI": "1",
    # Not OSS-Fuzz's: the check shares its machine with others, and reads what a target says.
    "AFL_NO_AFFINITY": "1",
    "AFL_DEBUG_CHILD": "1",
}
_OTHER_USER = "nobody"
# Of libjvm's additions: every walker of theirs steps by it.
_STEP = "_ZN16AsyncStackWalker4nextEPNS_5FrameE"
_ILLEGAL_INSTRUCTION = b"\x0f\x0b"


@dataclass(frozen=True)
class Run:
    code: int
    text: str


@dataclass(frozen=True)
class Moved:
    """`out`: the moved $OUT. `scratch`: the only folder its targets may write to."""

    out: Path
    scratch: Path

    def run(
        self, command: Sequence[str | Path], limit: float, more: Mapping[str, str] | None = None
    ) -> Run:
        """Runs something as OSS-Fuzz would; with a limit in seconds. Code 124: it did not end."""
        environment = {**_RUNNER, "TMPDIR": str(self.scratch), **(more or {})}
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [str(word) for word in command],
                cwd=self.out,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=_OTHER_USER if os.geteuid() == 0 else None,
                group=_group() if os.geteuid() == 0 else None,
                extra_groups=[] if os.geteuid() == 0 else None,
                start_new_session=True,
            )
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                code = 124
            output.seek(0)
            return Run(code, output.read().decode(errors="replace"))

    def run_afl(self, target: str, seeds: Path, into: Path, seconds: int) -> Run:
        """afl-fuzz as run_fuzzer starts it, for so many seconds of fuzzing."""
        fuzz = shutil.which("afl-fuzz")
        if fuzz is None:
            raise FramestormError("afl-fuzz is missing: `apt-get install afl++`")
        command: list[str | Path] = [fuzz, "-m", "none", "-t", "5000+", "-V", str(seconds)]
        command += ["-i", seeds, "-o", into, "-x", f"{target}.dict", "--", self.out / target]
        return self.run(command, 120 + seconds, _RUNNER_AFL)

    def new_folder(self, name: str) -> Path:
        folder = self.scratch / name
        folder.mkdir()
        folder.chmod(0o777)
        return folder


def _group() -> int:
    return pwd.getpwnam(_OTHER_USER).pw_gid


@contextmanager
def moved(out: Path) -> Iterator[Moved]:
    """A copy of $OUT, and its end."""
    with tempfile.TemporaryDirectory(prefix="framestorm-moved-") as name:
        base = Path(name)
        base.chmod(0o755)
        place = Moved(base / "somewhere", base / "scratch")
        shutil.copytree(out, place.out)
        place.scratch.mkdir()
        place.scratch.chmod(0o777)
        for path in (place.out, *place.out.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
        try:
            yield place
        finally:
            for path in (place.out, *place.out.rglob("*")):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)


@contextmanager
def planted(place: Moved) -> Iterator[Moved]:
    """The same with a fault planted into the walkers: an illegal instruction where they take a step."""
    faulty = place.out.with_name("planted")
    own = Path("framestorm") / "jdk" / "lib" / "server" / "libjvm.so"
    (faulty / own).parent.mkdir(parents=True)
    for folder in (own.parent, *own.parent.parents):
        for entry in (place.out / folder).iterdir():
            if not (faulty / folder / entry.name).exists() and entry.name != own.name:
                (faulty / folder / entry.name).symlink_to(entry)
    for program in place.out.glob("fuzz_*"):
        if program.stat().st_mode & 0o100:
            (faulty / program.name).unlink()
            shutil.copy2(program, faulty / program.name)  # /proc/self/exe is the file itself
    shutil.copy2(place.out / own, faulty / own)
    (faulty / own).chmod(0o755)
    step = next((one for one in elf.functions(faulty / own) if one.name == _STEP), None)
    if step is None:
        raise FramestormError(f"{own} has no {_STEP}: the check's planted fault has to follow it")
    with (faulty / own).open("r+b") as library:
        library.seek(elf.file_offset(faulty / own, step.start))
        library.write(_ILLEGAL_INSTRUCTION)
    try:
        yield Moved(faulty, place.scratch)
    finally:
        shutil.rmtree(faulty)
