"""--matrix FILE: the axes of a run as TOML.

workloads = ["deoptimise-storm", "renaissance:*"]
walkers = ["asgct", "asgst"]
modes = ["same-thread", "separate-thread"]
intervals = ["100us", "10us"]
gcs = ["g1", "z"]
jits = ["default", "c1", "no-inlining"]
seconds = 60          # of each cell; or iterations = 5
limit = "5m"          # wall time after which a cell hangs
repetitions = 3
seed = 1
threads = "running"
jvm_args = ["-Xmx512m"]

[jit]
no-inlining = ["-XX:-Inline"]
"""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import jvm_modes
from framestorm_cli.stress import cells, units
from framestorm_cli.stress.cells import Axes

_LISTS = ("workloads", "walkers", "modes", "intervals", "gcs", "jits", "jvm_args")
_FLAGS = ("gc", "jit")
_KEYS = (*_LISTS, *_FLAGS, "seconds", "iterations", "limit", "repetitions", "seed", "threads")


@dataclass(frozen=True)
class Matrix:
    """What the file says; an axis that it leaves out is None, and the command line's."""

    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float | None = None
    iterations: int | None = None
    limit: float | None = None
    repetitions: int = 1
    seed: int | None = None
    threads: str | None = None
    jvm_args: tuple[str, ...] = ()
    gc_flags: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(jvm_modes.GCS))
    jit_flags: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(jvm_modes.JITS))


def read(path: Path) -> Matrix:
    """Raises FramestormError that names the file and the key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FramestormError(f"cannot read the matrix {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FramestormError(f"{path} is no TOML: {error}") from error
    try:
        return _matrix(data)
    except FramestormError as error:
        raise FramestormError(f"{path}: {error.message}") from error


def _matrix(data: dict[str, Any]) -> Matrix:
    cells.named("key", list(data), _KEYS)
    lists = {name: _strings(name, data[name]) for name in _LISTS if name in data}
    jvm_args = lists.pop("jvm_args", ())
    if "seconds" in data and "iterations" in data:
        raise FramestormError("seconds and iterations exclude each other")
    return Matrix(
        axes=lists,
        seconds=_seconds(data, "seconds"),
        iterations=_positive(data, "iterations"),
        limit=_seconds(data, "limit"),
        repetitions=_positive(data, "repetitions") or 1,
        seed=_integer(data, "seed"),
        threads=_string(data, "threads"),
        jvm_args=jvm_args,
        gc_flags=dict(jvm_modes.GCS) | _flags(data, "gc"),
        jit_flags=dict(jvm_modes.JITS) | _flags(data, "jit"),
    )


def _strings(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise FramestormError(f'{name} is a list of strings, such as {name} = ["..."]')
    return tuple(dict.fromkeys(value))


def _flags(data: dict[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise FramestormError(f"[{name}] is a table of JVM flags by name")
    return {key: _strings(f"{name}.{key}", value) for key, value in table.items()}


def _seconds(data: dict[str, Any], name: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FramestormError(f'{name} is a number of seconds, or a string such as "5m"')
    return units.seconds(str(value))


def _integer(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise FramestormError(f"{name} is a whole number")
    return value


def _positive(data: dict[str, Any], name: str) -> int | None:
    value = _integer(data, name)
    if value is not None and value < 1:
        raise FramestormError(f"{name} is 1 or more")
    return value


def _string(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise FramestormError(f"{name} is a string")
    return value


def axes_of(matrix: Matrix, defaults: Axes) -> Axes:
    """The file's axes, and `defaults` for those that it leaves out."""
    given: dict[str, Any] = dict(matrix.axes)
    if "intervals" in given:
        given["intervals"] = tuple(map(units.interval_ns, given["intervals"]))
    return replace(
        defaults,
        **given,
        repetitions=matrix.repetitions,
        gc_flags=matrix.gc_flags,
        jit_flags=matrix.jit_flags,
    )
