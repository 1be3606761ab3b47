"""A target under AFL++: one afl-fuzz, and the processes with a JVM that it runs one after the other.

out/<run>/work/<n>-<target>/
    log.txt  seeds/  afl/default/   afl-fuzz's output, inputs, and own folder (queue, fuzzer_stats)
    worker-000/ ...                 what each of its processes wrote, as a target does everywhere;
                                    `exit`: how it ended, when that was not on request

Each worker is a Process of the run, so that statistics and findings add up as they do for libFuzzer.
"""

import math
import os
import select
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings import records
from framestorm_cli.findings.records import FindingsFile, Json
from framestorm_cli.fuzz import afl, found_inputs, target_process
from framestorm_cli.fuzz.schedule import Slice
from framestorm_cli.fuzz.target_process import FuzzOptions, Process
from framestorm_cli.native import processes as native
from framestorm_cli.native.toolchain import NATIVE, Toolchain
from framestorm_cli.reports.schema import Number, said

USELESS_WORKERS = 3  # in a row without a walk: the target cannot run
LAST_WORDS = 25.0  # seconds workers have to write their last statistics


class Worker(Process):
    """One of AFL++'s processes. Its popen is afl-fuzz's."""

    def poll(self) -> None:
        super().poll()
        code = records.read_exit(self.folder)
        if code is None or self.ended:
            return
        self.ended = True
        self.exit = code
        self._conclude(code)


class AflFigures(msgspec.Struct, forbid_unknown_fields=True):
    target: str
    folder: Annotated[str, said("Below work/.")]
    executions: Number
    executions_per_second: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        said("null where afl-fuzz ended within its first second: it divides by whole seconds."),
    ]
    stability_percent: Annotated[
        float, said("Edges and cells that an input reaches every time, of all reached.")
    ]
    corpus: Annotated[int, said("Inputs in its queue.", ge=0)]
    hangs: Annotated[int, said("Inputs that did not end in 90 s.", ge=0)]


@dataclass
class AflInstance(Process):
    """afl-fuzz as the process of a slice. `processes` is the run's list, which its workers join."""

    processes: list[Process] = field(default_factory=list)
    end_of_all: int = -1  # reads its end when afl-fuzz and all of its workers are gone
    workers: list[Worker] = field(default_factory=list)
    asked_to_stop: bool = False
    core: int = 0

    def poll(self) -> None:
        known = len(self.workers)
        for folder in sorted(self.folder.glob("worker-*"))[known:]:
            worker = Worker(
                self.target, folder, self.seed, self.slice, self.popen, time.monotonic(),
                FindingsFile(folder),
            )  # fmt: skip
            self.workers.append(worker)
            self.processes.append(worker)
        before = self.walks
        merged: Json = {}
        for worker in self.workers:
            if not worker.ended:
                worker.poll()
            records.merge_stats(merged, worker.stats)
        self.stats = merged
        now = time.monotonic()
        if self.walks > before:
            self.last_walk = now
            self.first_walk = self.first_walk or now
        if not self.asked_to_stop and (self._has_had_its_time() or self._is_useless()):
            self.asked_to_stop = True
            self.popen.terminate()

    def _has_had_its_time(self) -> bool:
        seconds, runs = self.slice.seconds, self.slice.runs
        return (seconds is not None and self.fuzzed >= seconds) or (
            runs is not None and self.walks >= runs
        )

    def _workers_setup_error(self) -> str:
        """Of the latest that had one: the last of all may have been ended before it said so."""
        return next((one.setup_error for one in reversed(self.workers) if one.setup_error), "")

    def _is_useless(self) -> bool:
        last = self.workers[-USELESS_WORKERS:]
        if self._workers_setup_error() and not self.walks:
            return True
        return len(last) == USELESS_WORKERS and all(one.ended and not one.walks for one in last)

    def overdue(self) -> bool:
        # A new worker first starts a JVM.
        if self.workers and self.workers[-1].first_walk is None:
            return time.monotonic() - self.workers[-1].started > target_process.START_LIMIT
        return super().overdue()

    def stop(self, grace: float = 3.0) -> None:
        native.end(self.popen, grace)
        self._finish_workers()
        self.ended = True
        self.exit = self.popen.returncode

    def finish(self, *, did_not_end: bool = False) -> None:
        self._finish_workers()
        self.ended = True
        useless = self._is_useless()
        if useless:
            self.setup_error = self._workers_setup_error() or (
                f"{USELESS_WORKERS} processes in a row ended before their first walk; see "
                f"{self.workers[-1].folder / 'log.txt'}"
            )
        self.exit = native.EXIT_SETUP if useless else self.popen.returncode
        if any(worker.exit == native.EXIT_STRICT for worker in self.workers):
            self.exit = native.EXIT_STRICT
        if did_not_end and self.workers:
            self.workers[-1].death = native.death_of(None, self.workers[-1].folder)
        elif not self.workers:
            words = native.own_words(self.folder / "log.txt")
            self.setup_error = f"afl-fuzz ended (exit {self.exit}): {words}"

    def _finish_workers(self) -> None:
        """Their last words: they outlive afl-fuzz by a moment."""
        if self.end_of_all >= 0:
            select.select([self.end_of_all], [], [], LAST_WORDS)
            os.close(self.end_of_all)
            self.end_of_all = -1
        self.asked_to_stop = True
        self.poll()
        for worker in self.workers:
            if not worker.ended:
                worker.ended, worker.exit = True, native.EXIT_DONE

    def found(self) -> Iterable[Path]:
        # Those it was given begin with id:000012,time:0,orig:
        queue = self.folder / "afl" / "default" / "queue"
        return (file for file in queue.glob("id:*") if ",orig:" not in file.name)

    def figures(self) -> AflFigures:
        """What AFL++ itself says, for summary.json."""
        told = records.read_fuzzer_stats(self.folder / "afl" / "default" / "fuzzer_stats")
        rate = float(told.get("execs_per_sec", 0))
        return AflFigures(
            target=self.target,
            folder=self.folder.name,
            executions=int(told.get("execs_done", 0)),
            executions_per_second=rate if math.isfinite(rate) else None,
            stability_percent=float(told.get("stability", "0").rstrip("%")),
            corpus=int(told.get("corpus_count", 0)),
            hangs=int(told.get("saved_hangs", 0)),
        )


def core_for(running: Iterable[AflInstance]) -> int:
    """The core with the fewest of these instances. afl-fuzz, its child and the process of the JVM hand
    each execution on to each other: on one core that takes a third less time than waking another."""
    used = Counter(instance.core for instance in running if not instance.ended)
    return min(sorted(os.sched_getaffinity(0)), key=lambda core: used[core])


def start(
    toolchain: Toolchain,
    options: FuzzOptions,
    piece: Slice,
    seed: int,
    folder: Path,
    corpus: list[Path],
    processes: list[Process],
    core: int,
) -> AflInstance:
    """Starts a target under afl-fuzz in `folder`, all on one core. Raises FramestormError."""
    out = folder.resolve()
    encoder = toolchain.program(NATIVE)
    seeds = out / "seeds"

    def encode(file: Path) -> bytes:
        try:
            return native.filter_text(encoder, "encode", file.read_bytes())
        except FramestormError as error:
            raise FramestormError(f"{file}: {error.message}") from error

    if not found_inputs.write_seeds(corpus, seeds, encode):
        raise FramestormError(
            f"AFL++ needs an input to start from, and {piece.target} has no seeds"
        )
    target = target_process.command_of(
        afl.program(toolchain, piece.target), toolchain, options, out
    )
    # Unguided, a target has to know its seeds; and what is recorded must come from these alone.
    own = options.unguided or options.record_edges
    target += ["--corpus", str(seeds)] if own else afl.priming(piece.target)
    command = ["taskset", "--cpu-list", str(core)]
    command += afl.fuzz_command(target, seeds=seeds, out=out / "afl", seed=seed, runs=piece.runs)
    environment = afl.environment(toolchain) | afl.mutator_environment(
        toolchain,
        piece.target,
        out,
        walker=options.walker,
        scenarios=options.scenarios,
        modes=options.modes,
    )
    read_end, write_end = os.pipe()
    try:
        popen = native.start(command, out, environment, keep_open=[write_end])
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return AflInstance(
        piece.target, folder, seed, piece, popen, time.monotonic(), FindingsFile(folder),
        processes=processes, end_of_all=read_end, core=core,
    )  # fmt: skip
