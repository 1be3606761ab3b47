"""What native programs write, as typed Python. See stats.jsonl, findings.jsonl, jvm.json.

A process can die in the middle of a line, so a torn last line is normal and is left out.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from framestorm_cli.base import files, steps
from framestorm_cli.findings.finding import Count, Finding, read_line

Json = dict[str, Any]


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
                found = read_line(line, self._folder)
            except msgspec.MsgspecError:
                self.unreadable_lines += 1
                continue
            if isinstance(found, Count):
                self.counts[found.key] = found
            else:
                found.modules = self._read_modules()
                self.findings.append(found)

    def _read_modules(self) -> dict[str, str]:
        # A module can be loaded late (a plugin), so the file is read again until it is there.
        if not self._modules:
            self._modules = read_json(self._folder / "modules.json")
        return self._modules

    def count_of(self, key: str) -> Count:
        """How often a key was seen: as counted, or as recorded by a process that died too early."""
        recorded = sum(1 for finding in self.findings if finding.key == key)
        known = self.counts.get(key, Count(key))
        return msgspec.structs.replace(known, count=max(known.count, recorded))


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
    pairs = (line.partition(":") for line in files.read_text(path).splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


_EDGES = re.compile(r"^#\d+.*\bcov: (\d+)", re.MULTILINE)


def read_edges(folder: Path) -> int | None:
    """Edges of libjvm that a process has covered, as libFuzzer's last `cov:` in its log says; None:
    unknown."""
    found = _EDGES.findall(steps.tail(folder / "log.txt", sys.maxsize))
    return int(found[-1]) if found else None


def merge_stats(into: Json, stats: Json) -> None:
    """Adds one process's last stats: numbers are summed (of memory, start and edges the largest counts; a
    signal's number is its name), objects merged."""
    for name, value in stats.items():
        if isinstance(value, dict):
            merge_stats(into.setdefault(name, {}), value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            into[name] = value
        elif name in ("rss_kb", "startup", "edges", "signal"):
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
