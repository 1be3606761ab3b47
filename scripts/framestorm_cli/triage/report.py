"""One Markdown report per bucket: everything a HotSpot engineer needs to start."""

from pathlib import Path

from framestorm_cli.base.numbers import parse_int
from framestorm_cli.binaries import disassembly
from framestorm_cli.binaries import lines as source_lines
from framestorm_cli.findings.finding import Finding
from framestorm_cli.findings.records import Json
from framestorm_cli.triage.buckets import Bucket
from framestorm_cli.triage.signature import starts_at_a_return

_REGISTERS_A_LINE = 4


# The states of findings/finding.py for a person who reads a report.
_STATES = {
    "real": "real: nothing was mutated, a profiler can meet it",
    "torn": "torn: real values of this thread at a wrong moment or place",
    "corrupt": "corrupt: values from elsewhere",
}


def jdk_identity(jvm: Json, *, arguments: bool = True) -> str:
    """`25.0.3+9-LTS Eclipse Adoptium, libjvm build id 0123...` from jvm.json."""
    parts = [f"{jvm.get('version', 'unknown version')} {jvm.get('vendor', '')}".strip()]
    if jvm.get("libjvm_build_id"):
        parts.append(f"libjvm build id {jvm['libjvm_build_id']}")
    if jvm.get("arch"):
        parts.append(str(jvm["arch"]))
    if arguments and jvm.get("args"):
        parts.append(f"JVM arguments {' '.join(map(str, jvm['args']))}")
    return ", ".join(parts)


def _block(lines: list[str], language: str = "") -> list[str]:
    return [f"```{language}", *lines, "```", ""]


def markdown(bucket: Bucket, jvm: Json, walked: str = "") -> str:
    """The report's text. `walked`: the profiler or plugin that walked."""
    finding = bucket.best
    lines = [
        f"# {bucket.id}: {bucket.signature}",
        "",
        bucket.explanation,
        "",
        f"- state: {_STATES.get(bucket.state, 'not known')}",
        *(f"- {line}" for line in bucket.about),
        f"- JDK: {jdk_identity(jvm)}",
        *([f"- walked by: {walked}"] if walked else []),
        f"- seen: {bucket.count} times, {len(bucket.findings)} recorded"
        + (f", by {', '.join(sorted({one.target for one in bucket.findings if one.target}))}"),
        f"- reproduction: {bucket.verification}",
    ]
    if len(bucket.verification.tried) > 1:
        lines += [
            f"  - {Path(one.artifact).name}: {one.reproduced} of {one.tries}"
            for one in bucket.verification.tried
        ]
    if finding.rechecks:
        lines.append(f"- at other halt points: {finding.rechecks_hit} of {finding.rechecks}")
    if finding.detail:
        lines.append(f"- detail: {finding.detail}")
    if finding.locks_held:
        lines.append(f"- locks the walk still held: {finding.locks_held}")
    lines.append("")
    if bucket.replay_command:
        lines += _block([bucket.replay_command], "sh")
    if finding.text:
        lines += ["## Input", "", *_block(finding.text.rstrip().splitlines())]
    if finding.context:
        lines += ["## Context as walked", ""]
        lines += _block([f"{name}: {value}" for name, value in finding.context.items()])
    lines += ["## Walker stack", ""]
    lines += _block(_stack(finding) or ["(none recorded)"])
    lines += _fault(finding, str(jvm.get("arch") or "x86_64"))
    if finding.trace:
        lines += ["## Trace the walker gave", ""]
        lines += _block(
            [f"{entry.get('method')} bci {entry.get('bci')}" for entry in finding.trace]
        )
    if bucket.merged:
        lines += ["## Near-duplicates in this bucket", ""]
        lines += [f"- {signature}" for signature in bucket.merged] + [""]
    return "\n".join(lines)


def _stack(finding: Finding) -> list[str]:
    """With lines and what is inlined, where there are line tables."""
    placed = source_lines.of_stack(
        finding.frames, finding.modules, first_is_return=starts_at_a_return(finding)
    )
    shown = []
    for index, (frame, said) in enumerate(zip(finding.frames, placed, strict=True)):
        shown += [f"#{index:<2} {frame}", *(f"      {line}" for line in said)]
    return shown


def _fault(finding: Finding, arch: str) -> list[str]:
    lines: list[str] = []
    if finding.signal:
        lines += [
            "## Fault",
            "",
            f"{finding.signal}, si_code {finding.si_code}, address {finding.address or 'unknown'}, "
            f"pc {finding.pc or 'unknown'}",
            "",
        ]
    if any(
        parse_int(value) for value in finding.registers.values()
    ):  # a walk that returned has none
        named = [f"{name:>6} = {value:<18}" for name, value in finding.registers.items()]
        rows = [
            " ".join(named[at : at + _REGISTERS_A_LINE]).rstrip()
            for at in range(0, len(named), _REGISTERS_A_LINE)
        ]
        lines += ["## Registers", "", *_block(rows)]
    listing = disassembly.listing(
        finding.code, parse_int(finding.code_start) or 0, finding.code_pc_offset, arch
    )
    if listing:
        lines += ["## Code", "", *_block(listing)]
    return lines
