"""Cases from whatever shows a crash: framestorm's own findings, dead processes, foreign files."""

import re
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.records import Finding
from framestorm_cli.native import processes
from framestorm_cli.triage import hs_err, sanitizer
from framestorm_cli.triage.buckets import Case
from framestorm_cli.triage.signature import (
    TOP_FRAMES,
    Signature,
    signature_of,
    significant,
    symbolise,
)

_MODULE_PLACE = re.compile(r"\((?P<path>\S*?(?P<name>[^/\s]+))\+(?P<offset>0x[0-9a-f]+)\)")
_LARGEST_LOG = 64 << 20  # bytes; larger files are not looked into


def of_process(folder: Path, symbolizer: Symbolizer, target: str = "") -> list[Case]:
    """Every finding a process recorded in its out folder."""
    file = records.read_findings(folder)
    cases = []
    for finding in file.findings:
        frames = symbolise(finding, symbolizer)
        count = file.count_of(finding.key)
        signature = signature_of(finding, frames)
        cases.append(
            Case(
                finding,
                signature,
                frames,
                count.count,
                count.rechecks,
                count.rechecks_hit,
                target=target,
            )
        )
    return cases


def frame_of(frame: hs_err.NativeFrame) -> Frame:
    return Frame(frame.place or frame.line, frame.module, None, frame.name, 0)


def of_hs_err(path: Path) -> Case:
    """A crash report as a case. Raises ValueError when the file is none."""
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
    finding = Finding(
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
    )
    signature = Signature(kind, clause, tuple(names[:TOP_FRAMES]))
    return Case(finding, signature, [frame_of(frame) for frame in report.frames])


def of_sanitizer(path: Path) -> list[Case]:
    """Every report of a sanitizer log."""
    cases = []
    for index, report in enumerate(sanitizer.parse(path)):
        finding = Finding(
            key=f"{path}:{index}",
            kind="sanitizer",
            clause=report.what,
            detail=f"{report.tool}: {report.message}",
            artifact=path,
            stack=report.lines,
        )
        names = tuple(significant(report.frames)[:TOP_FRAMES])
        # A report without a stack is named by its source file alone.
        places = report.lines or report.frames
        frames = [
            Frame(place, "", None, name, 0)
            for place, name in zip(places, report.frames, strict=True)
        ]
        cases.append(Case(finding, Signature("sanitizer", report.what, names), frames))
    return cases


def _of_last_report(path: Path, symbolizer: Symbolizer) -> Case | None:
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
    frames = [symbolizer.frame(one, finding.modules, is_return=False) for one in finding.stack]
    return Case(finding, signature_of(finding, frames), frames)


def of_death(
    death: processes.Death, artifact: Path | None, text: str, symbolizer: Symbolizer
) -> Case:
    """A process that died while it executed an input: the input is the artifact; hs_err, or else the
    report with which ASan ended it, says the stack."""
    frames: list[Frame] = []
    base: Case | None = None
    how = death.how
    if death.asan_log is not None:
        base = _of_last_report(death.asan_log, symbolizer)
    if base is not None:
        frames = base.frames
        how = base.finding.clause  # however the process ended then, which depends on the engine
    elif death.hs_err is not None:
        try:
            base = of_hs_err(death.hs_err)
            frames = base.frames
        except ValueError:
            pass  # cut off before its head: the log's last lines are all there is
    known = base.finding if base is not None else None
    # HotSpot aborts when it has written its report: the signal that counts is the one in there.
    how = known.signal if known is not None and known.signal else how
    finding = Finding(
        key=f"death-{how}",
        kind="process_death",
        clause=how,
        detail=(known.detail if known else "") or _one_line(death.log_tail),
        artifact=artifact,
        text=text,
        signal=known.signal if known else "",
        si_code=known.si_code if known else 0,
        address=known.address if known else "",
        pc=known.pc if known else "",
        registers=known.registers if known else {},
        stack=known.stack if known else (),
        modules=known.modules if known else {},
    )
    names = base.signature.frames if base is not None else ()
    return Case(finding, Signature("process_death", how, names), frames)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


@dataclass
class Collected:
    """What `triage DIR` found in a folder."""

    cases: list[Case]
    files: int
    unreadable: list[str]


def of_folder(folder: Path, symbolizer: Symbolizer) -> Collected:
    """Everything below a folder that can be read: runs, hs_err files, sanitizer logs."""
    collected = Collected([], 0, [])
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        try:
            if path.name == "findings.jsonl":
                cases = of_process(path.parent, symbolizer, target=path.parent.name)
            elif path.stat().st_size <= _LARGEST_LOG and path.suffix not in (
                ".bin",
                ".json",
                ".jsonl",
            ):
                text = path.read_text(encoding="utf-8", errors="replace")
                if hs_err.is_hs_err(text):
                    cases = [of_hs_err(path)]
                elif sanitizer.has_report(text):
                    cases = of_sanitizer(path)
                else:
                    continue
            else:
                continue
        except (OSError, ValueError) as error:
            collected.unreadable.append(f"{path}: {error}")
            continue
        collected.files += 1
        collected.cases += cases
    return collected
