"""`framestorm compare`."""

import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from framestorm_cli.base import files, machine, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.experiments.comparing import running, table
from framestorm_cli.experiments.comparing.running import Done, Planned
from framestorm_cli.experiments.comparing.series import Measured, paired
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz import afl, results
from framestorm_cli.fuzz.fuzzing import Fuzzer
from framestorm_cli.fuzz.live import Progress
from framestorm_cli.fuzz.run import check_corpus
from framestorm_cli.fuzz.target_process import ENGINES, FuzzOptions
from framestorm_cli.native import toolchain
from framestorm_cli.native.names import check_names, known
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.triage.buckets import Bucket

FORMAT = 1
_INSTRUMENTED = Path("instrumented")
DEFAULT_TARGETS = ("fuzz_ucontext", "fuzz_stack")


def compare_command(
    *,
    targets: tuple[str, ...],
    engines: tuple[str, ...],
    seconds: float,
    repetitions: int,
    seed: int | None,
    scenarios: tuple[str, ...],
    modes: tuple[str, ...],
    corpus: tuple[Path, ...],
    out: Path | None,
    again: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    """Returns 0 when guided is ahead in edges everywhere, 1 when it is not, 2 when it was interrupted."""
    if again is not None:
        return _again(again, out)
    known("target", targets, list(paths.TARGETS))
    check_corpus(corpus)
    folder = run_folder.new_folder(out, "compare")
    run_folder.check_room(folder)
    tools = toolchain.prepare(jdk or _INSTRUMENTED)
    engines = tuple(dict.fromkeys(engines)) or ENGINES
    if "afl" in engines:
        afl.ensure(tools)
    check_names(tools, "", scenarios, modes)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupt)
    planned = list(
        running.plan(
            tuple(dict.fromkeys(targets)) or DEFAULT_TARGETS,
            engines,
            repetitions,
            seed if seed is not None else int(time.time()),
        )
    )
    data: Json = {
        "format": FORMAT,
        "command": sys.argv[1:],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": seconds,
        "repetitions": repetitions,
        "corpus": [str(entry) for entry in corpus],
        "scenarios": list(scenarios),
        "modes": list(modes),
        "machine": machine.machine(),
    }
    common = FuzzOptions(
        targets=(),
        seconds=seconds,
        runs=None,
        seed=0,
        jobs=1,
        out=folder,
        scenarios=scenarios,
        modes=modes,
        jvm_args=jvm_args,
        corpus=tuple(entry.resolve() for entry in corpus),
        record_edges=True,
    )
    symbolizer = Symbolizer()
    done: list[Done] = []
    stopped = ""
    for number, one in enumerate(planned, start=1):
        steps.say(f"run {number} of {len(planned)}: {one.name}, seed {one.seed}")
        stopped = _run(one, common, tools, symbolizer, done, data)
        if stopped:
            break
        _write_json(folder, data, done, [])  # whatever happens to the others
    if not done:
        raise FramestormError(f"nothing to compare: {stopped}")
    buckets = running.into_common_buckets(done)
    _write_json(folder, data, done, buckets)
    code = _conclude([one.measured for one in done], data, folder)
    if stopped:
        FramestormError(f"{len(done)} of {len(planned)} runs only: {stopped}").show()
        return 2
    return code


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(
    one: Planned,
    common: FuzzOptions,
    tools: Toolchain,
    symbolizer: Symbolizer,
    done: list[Done],
    data: Json,
) -> str:
    """Makes a run and adds it to `done`. Why nothing more can be run, else an empty text.

    Raises FramestormError when the target cannot run or the JVM has no counters."""
    folder = common.out / one.name
    folder.mkdir()
    options = replace(
        common,
        targets=(one.target,),
        seed=one.seed,
        out=folder,
        engine=one.engine,
        unguided=not one.guided,
    )
    with Progress() as progress:
        run = Fuzzer(tools, options).fuzz(progress)
    if run.unable:
        raise FramestormError(f"{one.target} could not run: {run.unable[one.target]}")
    if run.stopped:
        return run.stopped
    taken = running.take_in(one, run, tools, symbolizer, folder / "corpus" / one.target)
    if not taken.measured.edges:
        raise FramestormError(
            f"{tools.jdk} has no coverage counters, so no engine can be guided by them: "
            "give --jdk instrumented"
        )
    data.setdefault("jdk", {**results.jvm_of(run), "label": tools.jdk.label})
    done.append(taken)
    return ""


def _write_json(folder: Path, data: Json, done: Sequence[Done], buckets: Sequence[Bucket]) -> None:
    whole = {
        **data,
        "runs": [one.measured.to_json() for one in done],
        "buckets": [{"id": b.id, "signature": b.signature.to_json()} for b in buckets],
    }
    files.write_text(folder / "compare.json", json.dumps(whole) + "\n")


def _conclude(runs: Sequence[Measured], data: Json, folder: Path) -> int:
    """Table and picture; the exit code."""
    from framestorm_cli.experiments.comparing import plot

    pairs = paired(runs)
    if not pairs:
        raise FramestormError("there is no guided run with an unguided one beside it")
    seconds = float(data["seconds"])
    text = f"{table.over_time(runs, seconds)}\n\n{table.how_much(runs)}\n"
    (folder / "compare.md").write_text(text, encoding="utf-8")
    title = f"Walkers of JDK {data['jdk']['version']}, {data['jdk']['label']}"
    plot.draw(runs, seconds, folder / "compare.png", title)
    click.echo(text)
    for name in ("compare.json", "compare.md", "compare.png"):
        click.echo(paths.shown(folder / name))
    code = 0
    for pair in pairs:
        if pair.ahead("edges", seconds) <= pair.pairs / 2:
            click.echo(f"guided is not ahead: {pair.target} with {table.ENGINE_NAMES[pair.engine]}")
            code = 1
    return code


def _again(file: Path, out: Path | None) -> int:
    try:
        data = json.loads(file.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
        runs = [Measured.from_json(run) for run in data["runs"]]
        float(data["seconds"])
        str(data["jdk"]["version"] + data["jdk"]["label"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FramestormError(f"{file} is no compare.json: {error}") from error
    folder = (out or file.parent).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if folder != file.parent.resolve():
        (folder / "compare.json").write_bytes(file.read_bytes())
    return _conclude(runs, data, folder)
