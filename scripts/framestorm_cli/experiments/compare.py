"""`framestorm compare`."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from framestorm_cli.base import files, paths, run_folder
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.experiments import compare_runs, compare_table, shared
from framestorm_cli.experiments.compare_runs import Done
from framestorm_cli.experiments.series import Measured, Planned, paired
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz import afl, results
from framestorm_cli.fuzz.fuzzing import Fuzzer
from framestorm_cli.fuzz.live import Progress
from framestorm_cli.fuzz.run import check_corpus
from framestorm_cli.fuzz.target_process import ENGINES, FuzzOptions
from framestorm_cli.hotspot import choosing
from framestorm_cli.native import toolchain
from framestorm_cli.native.names import check_names, known
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.triage.buckets import Bucket

DATA = "compare.json"
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
    folder = run_folder.prepare(out, "compare")
    tools = toolchain.prepare(jdk or choosing.INSTRUMENTED)
    engines = tuple(dict.fromkeys(engines)) or ENGINES
    if "afl" in engines:
        afl.ensure(tools)
    check_names(tools, "", scenarios, modes)
    planned = list(
        compare_runs.plan(
            tuple(dict.fromkeys(targets)) or DEFAULT_TARGETS,
            engines,
            repetitions,
            seed if seed is not None else int(time.time()),
        )
    )
    data: Json = {
        **shared.header(),
        "seconds": seconds,
        "repetitions": repetitions,
        "corpus": [str(entry) for entry in corpus],
        "scenarios": list(scenarios),
        "modes": list(modes),
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

    def run(one: Planned) -> str:
        stopped = _run(one, common, tools, symbolizer, done, data)
        if not stopped:
            _write(folder, data, done, [])  # whatever happens to the others
        return stopped

    stopped = shared.take_turns(planned, run, lambda one: f"{one.name}, seed {one.seed}")
    if not done:
        raise FramestormError(f"nothing to compare: {stopped}")
    buckets = compare_runs.into_common_buckets(done)
    _write(folder, data, done, buckets)
    code = _conclude([one.measured for one in done], data, folder)
    if stopped:
        FramestormError(f"{len(done)} of {len(planned)} runs only: {stopped}").show()
        return 2
    return code


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
    taken = compare_runs.take_in(one, run, tools, symbolizer, folder / "corpus" / one.target)
    if not taken.measured.edges:
        raise FramestormError(
            f"{tools.jdk} has no coverage counters, so no engine can be guided by them: "
            "give --jdk instrumented"
        )
    data.setdefault("jdk", {**results.jvm_of(run), "label": tools.jdk.label})
    done.append(taken)
    return ""


def _write(folder: Path, data: Json, done: Sequence[Done], buckets: Sequence[Bucket]) -> None:
    found = [{"id": one.id, "signature": one.signature} for one in buckets]
    runs = [one.measured for one in done]
    whole = msgspec.json.encode({**data, "runs": runs, "buckets": found})
    files.write_bytes(folder / DATA, whole + b"\n")


def _conclude(runs: Sequence[Measured], data: Json, folder: Path) -> int:
    """Table and picture; the exit code."""
    from framestorm_cli.experiments import compare_plot  # noqa: PLC0415 (matplotlib takes long to load)

    pairs = paired(runs)
    if not pairs:
        raise FramestormError("there is no guided run with an unguided one beside it")
    seconds = float(data["seconds"])
    text = f"{compare_table.over_time(runs, seconds)}\n\n{compare_table.how_much(runs)}\n"
    (folder / "compare.md").write_text(text, encoding="utf-8")
    title = f"Walkers of JDK {data['jdk']['version']}, {data['jdk']['label']}"
    compare_plot.draw(runs, seconds, folder / "compare.png", title)
    click.echo(text)
    for name in (DATA, "compare.md", "compare.png"):
        click.echo(paths.shown(folder / name))
    code = 0
    for pair in pairs:
        if pair.ahead("edges", seconds) <= pair.pairs / 2:
            click.echo(
                f"guided is not ahead: {pair.target} with {compare_table.ENGINE_NAMES[pair.engine]}"
            )
            code = 1
    return code


def _again(file: Path, out: Path | None) -> int:
    data, runs = shared.read(file, DATA, Measured)
    folder = (out or file.parent).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if folder != file.parent.resolve():
        (folder / DATA).write_bytes(file.read_bytes())
    return _conclude(runs, data, folder)
