"""What OSS-Fuzz checks of a build (base-runner's test_all.py and bad_build_check), and more: that each
target runs moved away, loads its seeds, covers libjvm, writes nothing where it must not, and dies as it
should of a planted fault."""

import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.oss_fuzz import runner
from framestorm_cli.oss_fuzz.runner import Moved, Run

# bad_build_check's.
_LEAST_EDGES = 100
_LEAST_ASAN_CALLS = 1000
_LEAST_UBSAN_CALLS = 168
_MOST_FOREIGN_UBSAN_CALLS = 200
_RUNNER_ARGUMENTS = ("-rss_limit_mb=2560", "-timeout=25")
_FEW_RUNS = 4

_LIMIT = 300.0  # seconds a run may take on a busy machine
_AFL_SECONDS = 10
_LEAST_DEATHS = 0.5  # of a target's seeds, with a planted fault
_EXIT_FINDING = 77
_NAMES_A_WALKER = re.compile(
    r"#0 0x[0-9a-f]+ in AsyncStackWalker::next\(.*libjvm\.so\+0x", re.ASCII
)
_REPORT = re.compile(r"^.*ERROR: .*?^SUMMARY: .*?$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Build:
    engine: str
    sanitizer: str


class BadBuildError(Exception):
    """What is wrong with a target."""


def check_command(out: Path, targets: Sequence[str], build: Build, runs: int) -> int:
    """Says of each target whether it is good. Exit code 1 when one is not."""
    bad = 0
    with runner.moved(out.resolve()) as place, runner.planted(place) as faulty:
        before = _listing(place.out)
        for target in targets:
            try:
                said = ", ".join(_check(place, faulty, target, build, runs))
                if _listing(place.out) != before:
                    raise BadBuildError("it wrote into $OUT")
                click.echo(f"{target}: good: {said}")
            except BadBuildError as error:
                bad += 1
                click.echo(f"{target}: BAD BUILD: {error}")
    steps.say(f"{len(targets) - bad} of {len(targets)} targets are good")
    return 1 if bad else 0


def _check(place: Moved, faulty: Moved, target: str, build: Build, runs: int) -> Iterator[str]:
    program = place.out / target
    if not program.exists():
        raise BadBuildError("there is no such program")
    if b"LLVMFuzzerTestOneInput" not in program.read_bytes():
        raise BadBuildError("no LLVMFuzzerTestOneInput: OSS-Fuzz would not take it for a target")
    if build.engine != "none":
        check_calls(_disassembly(program), build)
    seeds = place.new_folder(f"{target}-seeds")
    with zipfile.ZipFile(place.out / f"{target}_seed_corpus.zip") as archive:
        archive.extractall(seeds)
    count = len(list(seeds.iterdir()))
    checks: dict[str, Callable[[], Iterator[str]]] = {
        "libfuzzer": lambda: _libfuzzer(place, faulty, target, seeds, runs),
        "afl": lambda: _afl(place, faulty, target, seeds),
        "none": lambda: _files(place, faulty, target, seeds),
    }
    if build.sanitizer == "coverage" and build.engine == "libfuzzer":
        yield from _coverage(place, target, seeds)
    else:
        yield from checks[build.engine]()
    yield f"{count} seeds"


def check_calls(disassembly: str, build: Build) -> None:
    """bad_build_check's look at which sanitizers' functions a program calls."""
    calls = {
        name: len(re.findall(rf"callq?\s+[0-9a-f]+\s+<{name}", disassembly))
        for name in ("__asan", "__ubsan")
    }
    if build.sanitizer == "address":
        if calls["__asan"] < _LEAST_ASAN_CALLS:
            raise BadBuildError(f"not compiled with ASan: {calls['__asan']} calls")
        if calls["__ubsan"] > _MOST_FOREIGN_UBSAN_CALLS:
            raise BadBuildError(f"compiled with UBSan as well: {calls['__ubsan']} calls")
    elif build.sanitizer == "undefined" and build.engine == "libfuzzer":
        if calls["__asan"]:
            raise BadBuildError(f"compiled with ASan as well: {calls['__asan']} calls")
        if calls["__ubsan"] < _LEAST_UBSAN_CALLS:
            raise BadBuildError(f"not compiled with UBSan: {calls['__ubsan']} calls")


def _disassembly(program: Path) -> str:
    return subprocess.run(
        ["objdump", "-dC", "--no-show-raw-insn", str(program)],
        capture_output=True, text=True, errors="replace", check=True,
    ).stdout  # fmt: skip


def _libfuzzer(place: Moved, faulty: Moved, target: str, seeds: Path, runs: int) -> Iterator[str]:
    program = place.out / target

    def fuzz(*arguments: str | Path) -> Run:
        return place.run([program, "--", *_RUNNER_ARGUMENTS, *arguments], _LIMIT)

    few = fuzz("-seed=1337", f"-runs={_FEW_RUNS}")
    _ended_well(few, f"Done {_FEW_RUNS} runs", "it does not start")
    edges = re.search(r"INFO: Loaded \d+ modules.*?counters\): (\d+)", few.text)
    if edges is None or int(edges[1]) < _LEAST_EDGES:
        raise BadBuildError(f"not instrumented for coverage:\n{_tail(few)}")
    yield f"{edges[1]} edges"

    loaded = fuzz("-runs=0", seeds)
    _ended_well(loaded, "Done ", "it dies of its seeds")
    if f"files: {len(list(seeds.iterdir()))} " not in loaded.text:
        raise BadBuildError(f"it does not load its seeds:\n{_tail(loaded)}")
    dictionary = f"-dict={target}.dict"
    many = fuzz("-seed=1", f"-runs={runs}", dictionary, place.new_folder(f"{target}-corpus"))
    _ended_well(many, f"Done {runs} runs", "it dies of what it finds by itself")
    covered = [int(number) for number in re.findall(r"cov: (\d+) ", many.text)]
    if not covered or max(covered) < _LEAST_EDGES:
        raise BadBuildError(f"it covers next to nothing of libjvm:\n{_tail(many)}")
    yield f"cov {max(covered)} after {runs} runs"

    yield _dies_of_the_planted_fault(place, faulty, target)


def _dies_of_the_planted_fault(place: Moved, faulty: Moved, target: str) -> str:
    artifacts = place.new_folder(f"{target}-artifacts")
    command: list[str | Path] = [
        faulty.out / target,
        "-runs=100000",
        f"-artifact_prefix={artifacts}/",
    ]
    died = faulty.run(command, _LIMIT)
    if died.code != _EXIT_FINDING or "ERROR: libFuzzer: deadly signal" not in died.text:
        raise BadBuildError(
            f"it does not die of a planted fault (exit {died.code}):\n{_tail(died)}"
        )
    frame = _NAMES_A_WALKER.search(died.text)
    if frame is None:
        raise BadBuildError(f"its stack does not name the walker's function:\n{_tail(died)}")
    written = list(artifacts.iterdir())
    if len(written) != 1 or f"Test unit written to {written[0]}" not in died.text:
        raise BadBuildError(f"it left no artifact, or more than one: {written}:\n{_tail(died)}")
    again = faulty.run([faulty.out / target, written[0]], _LIMIT)
    if again.code != _EXIT_FINDING:
        raise BadBuildError(f"its artifact shows nothing (exit {again.code}):\n{_tail(again)}")
    # Where nothing is planted the same artifact is an input like any other.
    fine = place.run([place.out / target, written[0]], _LIMIT)
    _ended_well(fine, "Executed ", "an artifact of the planted fault kills it without that fault")
    return "planted fault found, named, replayed"


def _afl(place: Moved, faulty: Moved, target: str, seeds: Path) -> Iterator[str]:
    found = place.new_folder(f"{target}-afl")
    run = place.run_afl(target, seeds, found, _AFL_SECONDS)
    if run.code != 0 or "All set and ready to roll" not in run.text:
        raise BadBuildError(f"afl-fuzz cannot run it (exit {run.code}):\n{_tail(run)}")
    if re.search(r"target binary (crashed|terminated)|results in a crash", run.text):
        raise BadBuildError(f"it dies of its seeds:\n{_tail(run)}")
    stats = dict(
        re.findall(r"^(\w+)\s*: (.*)$", (found / "default" / "fuzzer_stats").read_text(), re.M)
    )
    if int(stats.get("edges_found", 0)) < _LEAST_EDGES:
        raise BadBuildError(f"it covers next to nothing of libjvm: {stats.get('edges_found')}")
    if int(stats["saved_crashes"]) or int(stats["saved_hangs"]):
        raise BadBuildError(
            f"{stats['saved_crashes']} crashes, {stats['saved_hangs']} hangs by itself:\n"
            + "\n".join([*_saved(found / "default"), *_REPORT.findall(run.text)])
        )
    yield f"{stats['edges_found']} edges in {stats['execs_done']} executions"
    died = faulty.run_afl(target, seeds, place.new_folder(f"{target}-afl-planted"), _AFL_SECONDS)
    # Seeds of threads without Java frames take no step.
    deaths = died.text.count("results in a crash")
    if deaths < _LEAST_DEATHS * len(list(seeds.iterdir())):
        raise BadBuildError(
            f"AFL++ sees it die of a planted fault with {deaths} seeds only:\n{_tail(died)}"
        )
    if _NAMES_A_WALKER.search(died.text) is None:
        raise BadBuildError(f"its stack does not name the walker's function:\n{_tail(died)}")
    yield f"planted fault seen with {deaths} seeds, and named"


def _saved(instance: Path) -> Iterator[str]:
    """AFL++'s artifacts; they go with the folder, so they are part of the answer."""
    for kind in ("crashes", "hangs"):
        for path in sorted((instance / kind).glob("id*")):
            yield f"{path.name}: {path.read_bytes().hex()}"


def _files(place: Moved, faulty: Moved, target: str, seeds: Path) -> Iterator[str]:
    run = place.run([place.out / target, seeds], _LIMIT)
    walked = run.text.count("Executed: ")
    if run.code != 0 or walked != len(list(seeds.iterdir())):
        raise BadBuildError(f"{walked} seeds were walked (exit {run.code}):\n{_tail(run)}")
    died = faulty.run([faulty.out / target, seeds], _LIMIT)
    if died.code != _EXIT_FINDING or _NAMES_A_WALKER.search(died.text) is None:
        raise BadBuildError(
            f"it does not die of a planted fault (exit {died.code}):\n{_tail(died)}"
        )
    if place.run([place.out / target], _LIMIT).code != 2:
        raise BadBuildError("without a file it does nothing, and does not say so")
    yield "planted fault found and named"


def _coverage(place: Moved, target: str, seeds: Path) -> Iterator[str]:
    """As base-runner's `coverage` does it."""
    profiles, dummy = place.new_folder(f"{target}-profiles"), place.new_folder(f"{target}-dummy")
    profile = {"LLVM_PROFILE_FILE": f"{profiles}/{target}.%1m.profraw"}
    program = place.out / target
    run = place.run([program, "-merge=1", "-timeout=100", dummy, seeds], _LIMIT, profile)
    if "MERGE-OUTER: successful in 1 attempt" not in run.text:
        raise BadBuildError(f"it cannot merge its seeds:\n{_tail(run)}")
    raw = list(profiles.iterdir())
    if run.code != 0 or not raw:
        raise BadBuildError(f"no profile was written (exit {run.code}):\n{_tail(run)}")
    merged = profiles / "merged.profdata"
    _tool("llvm-profdata-19", "merge", "-sparse", *map(str, raw), "-o", str(merged))
    table = _tool("llvm-cov-19", "report", f"-instr-profile={merged}", f"-object={program}")
    lines = re.search(r"harness/executor/executor\.cpp .*?(\d+\.\d+)%\s*$", table, re.M)
    if lines is None or float(lines[1]) == 0.0:
        raise BadBuildError(f"the engine's code is not covered:\n{table[-2000:]}")
    yield "profile written"


def _tool(*command: str) -> str:
    try:
        done = steps.captured(command)
    except FileNotFoundError as error:
        raise FramestormError(f"{command[0]} is missing: `apt-get install llvm-19`") from error
    if done.returncode != 0:
        raise BadBuildError(f"{command[0]}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def _ended_well(run: Run, words: str, otherwise: str) -> None:
    if run.code != 0 or words not in run.text:
        raise BadBuildError(f"{otherwise} (exit {run.code}):\n{_tail(run)}")


def _tail(run: Run) -> str:
    return "\n".join(run.text.splitlines()[-30:])


def _listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))
