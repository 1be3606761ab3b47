"""Findings from whatever shows a crash: framestorm's own findings, dead processes, foreign files."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from framestorm_cli.artifacts.codec import Described
from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import FindingsFile
from framestorm_cli.native import processes
from framestorm_cli.triage import hs_err, sanitizer
from framestorm_cli.triage.signature import TOP_FRAMES, signature_of, significant, symbolise

_MODULE_PLACE = re.compile(r"\((?P<path>\S*?(?P<name>[^/\s]+))\+(?P<offset>0x[0-9a-f]+)\)")
_LARGEST_LOG = 64 << 20  # bytes; larger files are not looked into


def of_process(folder: Path, symbolizer: Symbolizer, target: str = "") -> list[Finding]:
    """Every finding a process recorded in its out folder."""
    return of_file(records.read_findings(folder), symbolizer, target)


def of_file(
    file: FindingsFile, symbolizer: Symbolizer, target: str = "", start: int = 0
) -> list[Finding]:
    """The findings of a file from the `start`-th on."""
    for finding in file.findings[start:]:
        finding.frames = symbolise(finding, symbolizer)
        finding.signature = signature_of(finding)
        count = file.count_of(finding.key)
        finding.count = count.count
        finding.rechecks, finding.rechecks_hit = count.rechecks, count.rechecks_hit
        finding.victims, finding.target = count.victims, target
    return file.findings[start:]


def of_hs_err(path: Path) -> Finding:
    """A crash report as a finding. Raises ValueError when the file is none."""
    report = hs_err.parse(path)
    kind = "fault" if report.signal else "vm_error"
    # Values in a guarantee's message differ from run to run; its condition and place do not.
    clause = "" if report.signal else report.error
    names = significant(report.names)
    detail = "; ".join(
        part
        for part in (
            report.error,
            f"problematic frame {report.problematic_frame}" if report.problematic_frame else "",
            f"thread {report.thread}" if report.thread else "",
            f"JDK {report.jre}" if report.jre else "",
            "" if report.in_walk else "no stack walker on the crashing stack",
        )
        if part
    )
    return Finding(
        key=str(path),
        kind=kind,
        clause=clause,
        detail=detail,
        artifact=path,
        signal=report.signal,
        si_code=report.si_code,
        address=report.address,
        pc=report.frames[0].place if report.frames else report.pc,
        registers=report.registers,
        stack=tuple(frame.place or frame.line for frame in report.frames),
        signature=Signature(kind, clause, tuple(names[:TOP_FRAMES])),
        frames=[Frame(f.place or f.line, f.module, None, f.name, 0) for f in report.frames],
    )


def of_sanitizer(path: Path) -> list[Finding]:
    """Every report of a sanitizer log."""
    found = []
    for index, report in enumerate(sanitizer.parse(path)):
        names = tuple(significant(report.frames)[:TOP_FRAMES])
        # A report without a stack is named by its source file alone.
        places = report.lines or report.frames
        finding = Finding(
            key=f"{path}:{index}",
            kind="sanitizer",
            clause=report.what,
            detail=f"{report.tool}: {report.message}",
            artifact=path,
            stack=report.lines,
            signature=Signature("sanitizer", report.what, names),
            frames=[
                Frame(place, "", None, name, 0)
                for place, name in zip(places, report.frames, strict=True)
            ],
        )
        found.append(finding)
    return found


def _of_last_report(path: Path, symbolizer: Symbolizer) -> Finding | None:
    """The last report of a log of ASan's, which names modules and offsets only."""
    reports = sanitizer.parse(path)
    if not reports:
        return None
    report = reports[-1]
    places = [m for line in report.lines if (m := _MODULE_PLACE.search(line)) is not None]
    finding = Finding(
        key=str(path),
        kind="sanitizer",
        clause=report.what,
        detail=f"{report.tool}: {report.message}",
        stack=tuple(f"{place['name']}+{place['offset']}" for place in places),
        modules={place["name"]: place["path"] for place in places},
    )
    # The places are those of the calls already.
    finding.frames = [
        symbolizer.frame(one, finding.modules, is_return=False) for one in finding.stack
    ]
    finding.signature = signature_of(finding)
    return finding


def of_death(
    death: processes.Death,
    artifact: Path | None,
    symbolizer: Symbolizer,
    described: Described | None = None,
) -> Finding:
    """A process that died while it executed an input: the input is the artifact; hs_err, or else the
    report with which ASan ended it, says the stack."""
    known: Finding | None = None
    how = death.how
    if death.asan_log is not None:
        known = _of_last_report(death.asan_log, symbolizer)
    if known is not None:
        how = known.clause  # however the process ended then, which depends on the engine
    elif death.hs_err is not None:
        with contextlib.suppress(
            ValueError
        ):  # cut off before its head: the log's last lines are all
            known = of_hs_err(death.hs_err)
    known = known or Finding()
    # HotSpot aborts when it has written its report: the signal that counts is the one in there.
    how = known.signal or how
    finding = msgspec.structs.replace(
        known,
        key=f"death-{how}",
        kind="process_death",
        clause=how,
        detail=known.detail or _one_line(death.log_tail),
        artifact=artifact,
        signature=Signature("process_death", how, known.signature.frames),
    )
    if described is not None:
        finding.text, finding.input = described.text, described.input
        finding.state, finding.victim = described.state, described.input.scenario
    return finding


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


@dataclass
class Collected:
    """What `triage DIR` found in a folder."""

    findings: list[Finding]
    files: int
    unreadable: list[str]


def of_folder(folder: Path, symbolizer: Symbolizer) -> Collected:
    """Everything below a folder that can be read: runs, hs_err files, sanitizer logs."""
    collected = Collected([], 0, [])
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        try:
            if path.name == "findings.jsonl":
                found = of_process(path.parent, symbolizer, target=path.parent.name)
            elif path.stat().st_size <= _LARGEST_LOG and path.suffix not in (
                ".bin",
                ".json",
                ".jsonl",
            ):
                text = path.read_text(encoding="utf-8", errors="replace")
                if hs_err.is_hs_err(text):
                    found = [of_hs_err(path)]
                elif sanitizer.has_report(text):
                    found = of_sanitizer(path)
                else:
                    continue
            else:
                continue
        except (OSError, ValueError) as error:
            collected.unreadable.append(f"{path}: {error}")
            continue
        collected.files += 1
        collected.findings += found
    return collected
