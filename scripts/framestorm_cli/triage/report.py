"""One Markdown report per bucket: everything a HotSpot engineer needs to start."""

from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.binaries import disassembly
from framestorm_cli.findings.records import Json, parse_int
from framestorm_cli.triage.buckets import Bucket, Case
from framestorm_cli.triage.explain import explain

_REGISTERS_A_LINE = 4


# An artifact reproduces when it did so in at least this share of its tries.
LEAST_SHARE = 0.9


@dataclass(frozen=True)
class Tried:
    """One artifact in fresh JVMs."""

    artifact: str  # its path when it was tried, below the run's work folder
    tries: int
    reproduced: int


@dataclass(frozen=True)
class Verification:
    """How often the bucket's artifact showed its signature again in fresh JVMs, and what else was
    tried: one entry per artifact, the reported one's among them."""

    tries: int = 0
    reproduced: int = 0
    tried: tuple[Tried, ...] = ()
    skipped: str = ""  # why nothing was tried

    @property
    def status(self) -> str:
        if self.tries == 0:
            return "not verified"
        if self.reproduced == 0:
            return "not reproduced"
        often = self.reproduced >= LEAST_SHARE * self.tries
        return "reproduced" if often else "sometimes reproduced"

    @property
    def reproduces(self) -> bool:
        return self.status == "reproduced"

    def __str__(self) -> str:
        if self.tries == 0:
            return f"{self.status} ({self.skipped})" if self.skipped else self.status
        if self.reproduced == 0:
            tries = sum(one.tries for one in self.tried)
            return f"{self.status} in {tries} fresh JVMs with {_artifacts(len(self.tried))}"
        others = len(self.tried) - 1
        more = "" if self.reproduces or others < 1 else f"; {_artifacts(others)} more did no better"
        return f"{self.status}, {self.reproduced} of {self.tries} fresh JVMs{more}"


def _artifacts(number: int) -> str:
    return f"{number} artifact{'s' if number != 1 else ''}"


@dataclass
class Written:
    """A bucket with what the run wrote for it."""

    bucket: Bucket
    best: Case
    verification: Verification = field(default_factory=Verification)
    artifact: Path | None = None
    text: Path | None = None
    report: Path | None = None
    replay_command: str = ""

    @property
    def explanation(self) -> str:
        return explain(self.best.finding, self.best.frames)


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


def markdown(written: Written, jvm: Json) -> str:
    """The report's text."""
    bucket, case = written.bucket, written.best
    finding = case.finding
    lines = [
        f"# {bucket.id}: {bucket.signature}",
        "",
        written.explanation,
        "",
        f"- JDK: {jdk_identity(jvm)}",
        f"- seen: {bucket.count} times, {len(bucket.cases)} recorded"
        + (f", by {', '.join(sorted({c.target for c in bucket.cases if c.target}))}"),
        f"- reproduction: {written.verification}",
    ]
    if len(written.verification.tried) > 1:
        lines += [
            f"  - {Path(one.artifact).name}: {one.reproduced} of {one.tries}"
            for one in written.verification.tried
        ]
    if case.rechecks:
        lines.append(f"- at other halt points: {case.rechecks_hit} of {case.rechecks}")
    if finding.detail:
        lines.append(f"- detail: {finding.detail}")
    if finding.locks_held:
        lines.append(f"- locks the walk still held: {finding.locks_held}")
    lines.append("")
    if written.replay_command:
        lines += _block([written.replay_command], "sh")
    if finding.text:
        lines += ["## Input", "", *_block(finding.text.rstrip().splitlines())]
    if finding.context:
        lines += ["## Context as walked", ""]
        lines += _block([f"{name}: {value}" for name, value in finding.context.items()])
    lines += ["## Walker stack", ""]
    shown = [f"#{index:<2} {frame}" for index, frame in enumerate(case.frames)]
    lines += _block(shown or ["(none recorded)"])
    lines += _fault(case, str(jvm.get("arch") or "x86_64"))
    if finding.trace:
        lines += ["## Trace the walker gave", ""]
        lines += _block(
            [f"{entry.get('method')} bci {entry.get('bci')}" for entry in finding.trace]
        )
    if bucket.merged:
        lines += ["## Near-duplicates in this bucket", ""]
        lines += [f"- {signature}" for signature in bucket.merged] + [""]
    return "\n".join(lines)


def _fault(case: Case, arch: str) -> list[str]:
    finding = case.finding
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
