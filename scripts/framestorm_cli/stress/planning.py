"""From options, or a matrix file, to the cells of a run."""

import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import toolchain
from framestorm_cli.native.jvm_modes import DEFAULT
from framestorm_cli.native.walkers import Table, plugin_path, table
from framestorm_cli.stress import distortion, jfr, matrix, plan, profiled, units, workloads
from framestorm_cli.stress.cells import SELF_MODE, UNSAMPLED, Axes, Cell
from framestorm_cli.stress.matrix import Matrix
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.tools import Tools
from framestorm_cli.stress.workloads import Workload

DEFAULT_DURATION = "2m"
DEFAULT_INTERVAL = "100us"
DEFAULT_MODES = ("same-thread", "separate-thread")
PROFILERS_MODES = ("same-thread",)  # as a profiler walks
DEFAULT_THREADS = "running"
START_SECONDS = 1.0  # about what a JVM's start and end cost a cell
LEAST_SECONDS = 2.0  # that a cell samples: less says nothing about a rate


@dataclass(frozen=True)
class Options:
    """The command line's. Empty: not given."""

    workloads: tuple[str, ...] = ()
    walkers: tuple[str, ...] = ()
    profilers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    gcs: tuple[str, ...] = ()
    jits: tuple[str, ...] = ()
    duration: str = ""
    iterations: int | None = None
    threads: str = ""
    seed: int | None = None
    parallel: int = 1
    jvm_args: tuple[str, ...] = ()
    walker_plugin: str | None = None
    renaissance: Path | None = None
    truth: bool | None = None
    truth_classes: str = ""
    truth_share: float | None = None
    matrix: Path | None = None


def make(options: Options, found: Tools) -> tuple[Plan, dict[str, Workload]]:
    """The plan, and every workload that its cells name. Raises FramestormError."""
    asked = matrix.read(options.matrix) if options.matrix else Matrix()
    beside, profilers = profiled.resolve(options.profilers, found.jdk)
    if beside:
        beside.append(UNSAMPLED)
    walkers = (*options.walkers, *beside) or ("+".join(_default_walkers(options, found)),)
    defaults = Axes(
        workloads=options.workloads or ("*",),
        walkers=walkers,
        modes=options.modes or (PROFILERS_MODES if beside else DEFAULT_MODES),
        intervals=tuple(map(units.interval_ns, options.intervals or (DEFAULT_INTERVAL,))),
        gcs=options.gcs or (DEFAULT,),
        jits=options.jits or (DEFAULT,),
    )
    axes = matrix.axes_of(asked, defaults)
    chosen = workloads.resolve(axes.workloads, found.built_in, found.jdk, options.renaissance)
    axes = replace(axes, workloads=tuple(chosen))
    axes.check()
    selves = {*jfr.WALKERS, *profilers, UNSAMPLED}
    plugin = check_walkers(axes.walkers, options.walker_plugin, found, selves)
    seed = options.seed if options.seed is not None else asked.seed
    seed = seed if seed is not None else int(time.time())
    declared = table(toolchain.native_program(), plugin) if plugin else found.walkers
    fitting = (_fitting(cell, declared, selves) for cell in axes.cells(seed))
    cells = tuple(dict.fromkeys(filter(None, fitting)))
    if not cells:
        raise FramestormError(
            f"no walker of {', '.join(axes.walkers)} walks in {', '.join(axes.modes)}"
        )
    some = options.truth_classes or options.truth_share is not None
    # The cost is known of built-in workloads (docs/measurements/truth.md).
    by_itself = (
        not beside
        and all(one.proves for one in chosen.values())
        and any(cell.stands_still for cell in cells)
    )
    truth = bool(some or by_itself) if options.truth is None else options.truth
    if truth and not beside:
        cells = distortion.with_plain(cells)
    seconds, iterations = _extent(options, asked, len(cells))
    if iterations is not None:
        _check_iterations(chosen.values())
    made = Plan(
        cells=cells,
        seconds=seconds,
        iterations=iterations,
        limit=asked.limit
        or plan.default_limit(
            seconds,
            benchmarks=any(workload.renaissance for workload in chosen.values()),
            truth=truth,
        ),
        seed=seed,
        threads=_threads(options.threads or asked.threads or DEFAULT_THREADS),
        parallel=options.parallel,
        jdk_home=str(found.jdk.home),
        jdk_version=found.jdk.version,
        libjvm_build_id=found.build_id,
        jvm_args=(*asked.jvm_args, *options.jvm_args),
        plugin=plugin,
        renaissance=str(options.renaissance or ""),
        truth=truth,
        truth_classes=options.truth_classes,
        truth_share=1.0 if options.truth_share is None else options.truth_share,
        profilers=profilers,
        gc_flags=axes.gc_flags,
        jit_flags=axes.jit_flags,
    )
    return made, {name: chosen[name] for name in {cell.workload for cell in cells}}


def _default_walkers(options: Options, found: Tools) -> list[str]:
    """All the JDK has, in turn, in one cell: a cell for each would leave none of them time."""
    return ["plugin"] if options.walker_plugin else found.walkers.samplers(found.jdk.libjvm)


def check_walkers(
    walkers: Sequence[str], plugin: str | None, found: Tools, selves: Container[str] = jfr.WALKERS
) -> str:
    """Raises FramestormError for one that is unknown or that the JDK has not; the plugin's path.
    `selves`: those that sample by themselves."""
    names = {name for walker in walkers if walker not in selves for name in walker.split("+")}
    sampling = {name: one for name, one in found.walkers.walkers.items() if one.samples}
    for walker in walkers:
        if walker in jfr.WALKERS and (why := jfr.excluded(walker, found.jdk)):
            raise FramestormError(why)
    for name in sorted(names):
        if name in jfr.WALKERS:
            raise FramestormError(f"JFR walks by itself: {name} cannot take turns with others")
        if name not in sampling:
            known = ", ".join([*sampling, *jfr.WALKERS])
            raise FramestormError(f"there is no walker {name!r} that samples. Known: {known}")
        if why := sampling[name].why_missing(found.jdk.libjvm):
            raise FramestormError(f"{found.jdk} has no walker {name}: {why}")
    return plugin_path(names, plugin)


def _fitting(cell: Cell, known: Table, selves: Container[str] = jfr.WALKERS) -> Cell | None:
    """The cell with those of its walkers that walk in its mode; None where none does. What samples by
    itself has one mode, and JFR the intervals that it delivers."""
    if cell.walker == UNSAMPLED:
        return replace(cell, mode=SELF_MODE, interval_ns=0)
    if cell.walker in selves:
        interval = jfr.delivered_interval(cell.walker, cell.interval_ns)
        return replace(cell, mode=SELF_MODE, interval_ns=interval)
    left = [name for name in cell.walker.split("+") if known.walkers[name].walks_in(cell.mode)]
    return replace(cell, walker="+".join(left)) if left else None


def _extent(options: Options, asked: Matrix, cells: int) -> tuple[float | None, int | None]:
    """Seconds or iterations of each cell."""
    if options.duration and options.iterations:
        raise FramestormError("--duration and --iterations exclude each other")
    iterations = options.iterations or (None if options.duration else asked.iterations)
    if iterations is not None:
        return None, iterations
    if asked.seconds is not None and not options.duration:
        return asked.seconds, None
    share = units.seconds(options.duration or DEFAULT_DURATION) * options.parallel / cells
    seconds = round(share - START_SECONDS, 1)
    if seconds < LEAST_SECONDS:
        seconds = LEAST_SECONDS
        whole = (seconds + START_SECONDS) * cells / options.parallel
        steps.say(
            f"{cells} cells, {seconds:g} s of sampling in each: about {units.duration_text(whole)} in all"
        )
    return seconds, None


def _check_iterations(chosen: Iterable[Workload]) -> None:
    for one in chosen:
        if not one.own_clock:
            raise FramestormError(
                f"{one.name} has no iterations, which are of built-in workloads and Renaissance: give "
                "--duration (in a matrix: seconds)"
            )


def _threads(text: str) -> str:
    kind, _, number = text.partition(":")
    if text in ("all", "running") or (kind == "random" and number.isdigit() and int(number) > 0):
        return text
    raise FramestormError(f"--threads {text}: it is all, running or random:N")
