"""What a gate leaves: gate.json, summary.md for a pull request's comment, junit.xml, report.sarif."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec

from framestorm_cli.base import paths
from framestorm_cli.base.words import shortened
from framestorm_cli.findings.finding import Signature, state_rank
from framestorm_cli.gate.changes import Changes
from framestorm_cli.gate.shares import Reach
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import (
    FIXED,
    KINDS,
    KNOWN,
    NEW,
    NOT_REPRODUCED,
    TOO_RARE,
    UNCHANGED,
    Entry,
    Step,
    Verdict,
)
from framestorm_cli.reports import junit, sarif, schema
from framestorm_cli.reports.model import ERROR, FAILED, PASSED, Check, Issue, Report
from framestorm_cli.reports.schema import FORMAT, Number, record, said

_MARKS = {0: "✅", 1: "❌", 2: "⚠️"}
_HEADS = {
    NEW: "New",
    FIXED: "Fixed",
    UNCHANGED: "Unchanged: the base does the same",
    TOO_RARE: "Comes back too rarely to say that the base does not do the same",
    NOT_REPRODUCED: "Seen, but did not come back in fresh JVMs",
    KNOWN: "Known",
}
_OPEN = (NEW, FIXED)  # shown at once, the others folded
_STACK = 12
_NAMED = 8  # functions that a change touches


@dataclass
class Outcome:
    """What a gate has come to so far: run.py fills it. `None` is what it did not get to."""

    verdict: Verdict = field(default_factory=Verdict)
    change: Subject | None = None
    base: Subject | None = None
    baseline: Path | None = None
    reach: Reach | None = None


def touched_lines(touched: Changes, reach: Reach) -> list[str]:
    """What the change touches, and who reaches it."""
    if not touched.known:
        return ["what the change touches is not known (no git tree, no --changed): equal shares"]
    if not touched.lines:
        return [f"no file of HotSpot differs ({touched.against}): equal shares"]
    files = ", ".join(sorted(touched.lines))
    if not reach.touched:
        return [f"changed: {files}: no walker code (no edge is counted there): equal shares"]
    by_target = ", ".join(
        f"{t} {count} (x{reach.weights[t]:.1f})" for t, count in reach.reached.items()
    )
    return [
        f"changed: {files}",
        f"touches {shortened(reach.touched, _NAMED)}",
        f"edges of these that seeds reach, and shares: {by_target}",
    ]


def write(outcome: Outcome, out: Path, seconds: float, argv: list[str]) -> None:
    """Writes all files and prints the summary. Raises OSError."""
    verdict = outcome.verdict
    schema.write(out / "gate.json", of(outcome, out, seconds, argv))
    text = markdown(outcome, seconds)
    (out / "summary.md").write_text(text, encoding="utf-8")
    report = to_report(outcome, out, seconds, argv)
    junit.write(report, out / "junit.xml")
    sarif.write(report, out / "report.sarif")
    click.echo(text)
    click.echo(f"{verdict.word} (exit {verdict.exit}): {paths.shown(out)}")


class EntryRecord(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["new", "fixed", "unchanged", "known", "not reproduced", "too rare to compare"]
    step: Literal["corpus", "fuzz", "step", "stress"]
    id: str
    state: Annotated[
        Literal["real", "torn", "corrupt"] | None,
        said("How far the artifact's state is from one that a thread can have; null: not known."),
    ]
    write_ups: Annotated[list[str], said("Where the known causes that it is are written up.")]
    signature: Signature
    explanation: str
    how: Annotated[str, said("How often it came back where.")]
    count: Number
    stack: list[str]
    artifact: Annotated[str | None, said("Below the run's folder, like report, if it is there.")]
    report: str | None
    command: Annotated[str | None, said("Shows it again.")]


class GateRecord(msgspec.Struct, forbid_unknown_fields=True):
    """gate.json of `framestorm gate`."""

    format: Annotated[Literal[1], FORMAT]
    run: Annotated[str, said("Name of the run's folder.")]
    command: list[str]
    exit: Annotated[Literal[0, 1, 2], said("0: nothing new, 1: something new, 2: could not judge.")]
    verdict: Annotated[str, said("The exit code in words.")]
    seconds: float
    change: Annotated[str | None, said("What was judged; null: the gate did not get that far.")]
    base: Annotated[str | None, said("What it was compared with.")]
    baseline: Annotated[str | None, said("The list of known buckets.")]
    problems: list[str]
    steps: list[Step]
    shares: Annotated[dict[str, float], said("Weights of the targets.")]
    counts: Annotated[dict[str, int], said("Entries by kind.")]
    entries: list[EntryRecord]


def of(outcome: Outcome, out: Path, seconds: float, argv: list[str]) -> GateRecord:
    """The run as gate.json holds it."""
    verdict = outcome.verdict
    return record(
        GateRecord,
        verdict,
        format=1,
        run=out.name,
        command=argv,
        verdict=verdict.word,
        seconds=round(seconds, 1),
        change=str(outcome.change) if outcome.change else None,
        base=str(outcome.base) if outcome.base else None,
        baseline=str(outcome.baseline) if outcome.baseline else None,
        steps=[msgspec.structs.replace(s, seconds=round(s.seconds, 1)) for s in verdict.steps],
        shares=outcome.reach.weights if outcome.reach else {},
        counts={kind: len(verdict.of(kind)) for kind in KINDS},
        entries=[_entry(entry, out) for entry in verdict.entries],
    )


def _entry(entry: Entry, out: Path) -> EntryRecord:
    return record(
        EntryRecord,
        entry,
        state=entry.state or None,
        artifact=paths.relative(entry.artifact, out),
        report=paths.relative(entry.report, out),
        command=entry.command or None,
    )


def to_report(outcome: Outcome, out: Path, seconds: float, argv: list[str]) -> Report:
    """A test case per step; a new entry fails its step. SARIF has what came back."""
    verdict = outcome.verdict
    shown = [e for e in verdict.entries if e.kind in (NEW, KNOWN, UNCHANGED, TOO_RARE)]
    return Report(
        command="gate",
        run=out.name,
        exit=verdict.exit,
        started=(datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        seconds=seconds,
        argv=argv,
        checks=[_check(step, verdict.of(NEW)) for step in verdict.steps],
        issues=[
            record(
                Issue,
                e,
                known=e.kind != NEW,
                detail=e.how,
                report=paths.relative(e.report, out),
                artifact=paths.relative(e.artifact, out),
            )
            for e in shown
        ],
        problems=verdict.problems,
        properties={"change": str(outcome.change), "base": str(outcome.base)},
    )


def _check(step: Step, new: list[Entry]) -> Check:
    own = [entry for entry in new if entry.step == step.name]
    outcome, message = PASSED, "; ".join(step.lines)
    if own:
        outcome, message = FAILED, "; ".join(f"{e.id} {e.signature}" for e in own)
    elif step.problems:
        outcome, message = ERROR, "; ".join(step.problems)
    details = "\n".join(f"{e.id}: {e.explanation}\n{e.how}\n{e.command}" for e in own)
    return Check("steps", step.name, step.seconds, outcome, message, details)


def markdown(outcome: Outcome, seconds: float) -> str:
    """For a pull request's comment, and the terminal."""
    verdict = outcome.verdict
    counts = ", ".join(f"{len(verdict.of(kind))} {kind}" for kind in KINDS if verdict.of(kind))
    lines = [f"## {_MARKS[verdict.exit]} framestorm gate: {verdict.word}", ""]
    lines += [f"{counts or 'nothing found'}; {seconds / 60:.1f} minutes", ""]
    if verdict.problems:
        lines += [
            "**Could not judge:**",
            "",
            *(f"- {p}" for p in map(_one_line, verdict.problems)),
            "",
        ]
    for kind in (NEW, FIXED, UNCHANGED, TOO_RARE, NOT_REPRODUCED, KNOWN):
        found = sorted(verdict.of(kind), key=lambda entry: state_rank(entry.state))
        if not found:
            continue
        head = f"{_HEADS[kind]}: {len(found)}"
        if kind in _OPEN:
            lines += [f"### {head}", ""]
            for entry in found:
                lines += _shown(entry)
        else:
            lines += [f"<details><summary>{head}</summary>", ""]
            lines += [f"- {_line(entry)}" for entry in found]
            lines += ["", "</details>", ""]
    lines += ["| step | s | |", "|---|---:|---|"]
    lines += [
        f"| {s.name} | {s.seconds:.0f} | {_cell('; '.join(s.lines))} |" for s in verdict.steps
    ]
    if outcome.baseline is not None:
        lines += ["", f"Known buckets: {paths.shown(outcome.baseline)}"]
    return "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    said = "; ".join(part for part in (entry.how, entry.known) if part)
    state = f"{entry.state} " if entry.state else ""
    return f"{entry.id} {state}`{entry.signature}`" + (f" ({said})" if said else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _shown(entry: Entry) -> list[str]:
    state = f"{entry.state} " if entry.state else ""
    lines = [
        f"**{entry.id}** {state}`{entry.signature}` ({entry.step}; {entry.how})",
        "",
        entry.explanation,
        "",
        *([entry.known, ""] if entry.known else []),
    ]
    if entry.command:
        lines += ["```sh", entry.command, "```", ""]
    if entry.stack:
        shown = [f"#{index:<2} {frame}" for index, frame in enumerate(entry.stack[:_STACK])]
        lines += [
            "<details><summary>walker stack</summary>",
            "",
            "```",
            *shown,
            "```",
            "",
            "</details>",
            "",
        ]
    return lines
