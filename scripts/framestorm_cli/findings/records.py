"""What native programs write, as typed Python. See stats.jsonl, findings.jsonl, jvm.json.

A process can die in the middle of a line, so a torn last line is normal and is left out.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One recorded finding of one process. Paths are absolute, addresses are as written ("0x..")."""

    key: str
    kind: str
    t: float = 0.0  # seconds since its process's first walk
    clause: str = ""
    detail: str = ""
    artifact: Path | None = None
    text: str = ""
    signal: str = ""
    si_code: int = 0
    address: str = ""
    access: str = ""  # "read", "write"; empty when it was not written down
    pc: str = ""
    registers: dict[str, str] = field(default_factory=dict)
    stack: tuple[str, ...] = ()
    code: str = ""
    code_start: str = ""
    code_pc_offset: int = 0
    function: str = ""
    locks_held: int = 0
    context: dict[str, str] = field(default_factory=dict)
    trace: tuple[Json, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)

    def address_value(self) -> int | None:
        return parse_int(self.address)


def parse_int(text: str) -> int | None:
    """A number as native programs write them; None when it is none."""
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return None


def finding_from_json(data: Json, folder: Path, modules: dict[str, str]) -> Finding:
    """A finding object; relative artifact paths are below `folder`."""
    artifact = data.get("artifact")
    return Finding(
        key=str(data.get("key", "")),
        kind=str(data.get("kind", "")),
        t=float(data.get("t") or 0.0),
        clause=str(data.get("clause") or ""),
        detail=str(data.get("detail") or ""),
        artifact=(folder / artifact).resolve() if artifact else None,
        text=str(data.get("text") or ""),
        signal=str(data.get("signal") or ""),
        si_code=int(data.get("si_code") or 0),
        address=str(data.get("address") or ""),
        access=str(data.get("access") or ""),
        pc=str(data.get("pc") or ""),
        registers={str(k): str(v) for k, v in (data.get("registers") or {}).items()},
        stack=tuple(str(entry) for entry in data.get("stack") or ()),
        code=str(data.get("code") or ""),
        code_start=str(data.get("code_start") or ""),
        code_pc_offset=int(data.get("code_pc_offset") or 0),
        function=str(data.get("function") or ""),
        locks_held=int(data.get("locks_held") or 0),
        context={str(k): str(v) for k, v in (data.get("context") or {}).items()},
        trace=tuple(data.get("trace") or ()),
        modules=modules,
    )


@dataclass(frozen=True)
class Count:
    count: int
    rechecks: int
    rechecks_hit: int


class FindingsFile:
    """Follows one growing findings.jsonl: poll() reads what was added since the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "findings.jsonl"
        self._offset = 0
        self._modules: dict[str, str] | None = None
        self.findings: list[Finding] = []
        self.counts: dict[str, Count] = {}
        self.unreadable_lines = 0

    def poll(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, AttributeError):
                self.unreadable_lines += 1

    def _take(self, record: Json) -> None:
        if record.get("type") == "count":
            self.counts[str(record["key"])] = Count(
                int(record.get("count", 0)),
                int(record.get("rechecks", 0)),
                int(record.get("rechecks_hit", 0)),
            )
        elif record.get("type") == "finding":
            self.findings.append(finding_from_json(record, self._folder, self._read_modules()))

    def _read_modules(self) -> dict[str, str]:
        # A module can be loaded late (a plugin), so the file is read again until it is there.
        if not self._modules:
            self._modules = read_json(self._folder / "modules.json")
        return self._modules

    def count_of(self, key: str) -> Count:
        """How often a key was seen: as counted, or as recorded by a process that died too early."""
        recorded = sum(1 for finding in self.findings if finding.key == key)
        known = self.counts.get(key)
        if known is None:
            return Count(recorded, 0, 0)
        return Count(max(known.count, recorded), known.rechecks, known.rechecks_hit)


def read_findings(folder: Path) -> FindingsFile:
    """All findings of a process that has ended."""
    file = FindingsFile(folder)
    file.poll()
    return file


def read_json(path: Path) -> Json:
    """A JSON object; empty when the file is missing or torn."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def read_last_stats(folder: Path) -> Json:
    """The newest whole line of stats.jsonl; empty before the first walk."""
    try:
        with (folder / "stats.jsonl").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 256 * 1024))
            lines = file.read().split(b"\n")
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            return record
    return {}


def read_reached(folder: Path) -> list[tuple[float, list[int]]]:
    """edges.jsonl: seconds since the process's first walk, and the edges (by index) that it had reached
    by then and not before the last entry."""
    try:
        lines = (folder / "edges.jsonl").read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # torn: the process died
        found.append((float(record["t"]), [int(edge) for edge in record["new"]]))
    return found


def read_exit(folder: Path) -> int | None:
    """How a process that AFL++ ran ended, negative for a signal; None: it runs, or ended on request."""
    try:
        return int((folder / "exit").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def read_fuzzer_stats(path: Path) -> dict[str, str]:
    """AFL++'s `name : value` lines; empty when there is no such file yet."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


_EDGES = re.compile(rb"^#\d+.*\bcov: (\d+)", re.MULTILINE)


def read_edges(folder: Path) -> int | None:
    """Edges of libjvm that a process has covered, as libFuzzer's last `cov:` in its log says; None:
    unknown."""
    try:
        with (folder / "log.txt").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 16 * 1024))
            found = _EDGES.findall(file.read())
    except OSError:
        return None
    return int(found[-1]) if found else None


def merge_stats(into: Json, stats: Json) -> None:
    """Adds one process's last stats: numbers are summed (of memory, start and edges the largest counts),
    objects merged."""
    for name, value in stats.items():
        if isinstance(value, dict):
            merge_stats(into.setdefault(name, {}), value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            into[name] = value
        elif name in ("rss_kb", "startup", "edges"):
            into[name] = max(into.get(name, 0), value)
        else:
            into[name] = into.get(name, 0) + value


def read_current_input(folder: Path) -> bytes | None:
    """The input a process died on, from current.bin; None when it was not executing one."""
    try:
        data = (folder / "current.bin").read_bytes()
    except OSError:
        return None
    size = int.from_bytes(data[:8], "little")
    if size == 0 or size > len(data) - 8:
        return None
    return data[8 : 8 + size]
