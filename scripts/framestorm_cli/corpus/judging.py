"""Whether an artifact does on a JDK what is expected of it: `corpus judge`, test_crashes.py, the gate.

What is expected stands beside the artifact: in its sidecar (`<artifact>.json`: `per_jdk` as in expected.json,
or one signature and the JDK it was seen on) or in expected.json (triage/expectations.py). Of an artifact with
neither, nothing is known: then nothing at all may be found.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request, Try
from framestorm_cli.triage import expectations
from framestorm_cli.triage.explain import explain

# Fresh JVMs. An artifact counts as reproducible at 9 of 10: one that misses is 1 in 10, and only then is
# another asked, and two more when both missed.
ROUNDS = (1, 1, 2)
# What has to stay away may come back in the second only.
TRIES = 2
NOTHING_KNOWN = "unknown"


@dataclass(frozen=True)
class Expectation:
    """`status`: one of expectations.STATUSES with the signature in question, or NOTHING_KNOWN."""

    status: str
    signature: Signature | None = None

    @property
    def must_come_back(self) -> bool:
        return self.status == "open"


@dataclass
class Judgement:
    """What the tries came to. `problem`: why the expectation does not hold, empty when it does."""

    expectation: Expectation
    tries: list[Try] = field(default_factory=list)
    problem: str = ""

    @property
    def reproduced(self) -> int:
        return sum(1 for one in self.tries if one.matched is not None)

    @property
    def hung(self) -> int:
        """Tries whose JVM did not end and was killed."""
        return sum(1 for one in self.tries if one.hung)

    @property
    def shown(self) -> Finding | None:
        return replaying.shown(self.tries)


def expectation_of(artifact: Path, jdk: Jdk) -> Expectation | None:
    """None when there are expectations, but none for this JDK. Raises FramestormError for those that
    cannot be understood."""
    path, data = replaying.beside(artifact)
    if not data:
        return Expectation(NOTHING_KNOWN)
    if "per_jdk" not in data:
        return _recorded(path, data, jdk)
    known = expectations.read_expectations(path).get(jdk.label)
    if known is None or not expectations.is_of(artifact, jdk.label):
        return None
    return Expectation(*known)


def _recorded(path: Path, data: Json, jdk: Jdk) -> Expectation | None:
    """Of a sidecar as `fuzz` writes it: the signature, seen on one JDK."""
    status = str(data.get("status", "open"))
    try:
        signature = Signature.from_json(data["signature"])
        if status not in expectations.STATUSES:
            raise ValueError(f"status {status!r} is none of {', '.join(expectations.STATUSES)}")
    except (ValueError, KeyError) as error:
        raise FramestormError(f"{path}: {error}") from error
    seen_on = data.get("jdk") or {}
    feature = seen_on.get("feature") if isinstance(seen_on, dict) else None
    return Expectation(status, signature) if feature in (None, jdk.feature) else None


def judge(
    tools: Toolchain,
    symbolizer: Symbolizer,
    artifact: Path,
    expectation: Expectation,
    folder: Path,
    *,
    jvm_args: tuple[str, ...] = (),
    profiler: str | None = None,
    limit: float = replaying.TRY_LIMIT,
    on_done: Callable[[Try], None] = lambda _: None,
) -> Judgement:
    """Replays the artifact until its expectation holds or is known not to. `limit`: seconds for a JVM.

    Raises FramestormError on a set-up error: no such scenario or walker on this JDK, say.
    """
    recorded = replaying.read_recorded(artifact, tools.jdk.label)
    request = Request(
        artifact.resolve(),
        expectation.signature,
        jvm_args or recorded.jvm_args,
        outside.again(recorded.outside, None, profiler, tools.jdk),
        limit=limit,
    )
    result = Judgement(expectation)
    for number, tries in enumerate(ROUNDS if expectation.must_come_back else (TRIES,)):
        result.tries += replaying.run_tries(
            tools, symbolizer, request, tries, folder / str(number), on_done
        )
        if result.reproduced:
            break
    result.problem = _problem(result, tools.jdk)
    return result


def _problem(result: Judgement, jdk: Jdk) -> str:
    expected, count = result.expectation, len(result.tries)
    seen = ", ".join(
        dict.fromkeys(str(finding.signature) for one in result.tries for finding in one.findings)
    )
    hung = f"; {result.hung} of them hung and were killed" if result.hung else ""
    on = f"on JDK {jdk.label} ({jdk.version})"
    if expected.must_come_back:
        if result.reproduced:
            return ""
        return (
            f"open {on}, but {expected.signature} did not come back in {count} fresh JVMs{hung} "
            f"(seen instead: {seen or 'nothing'}); if it is fixed there, say so in its expectations"
        )
    if expected.status == NOTHING_KNOWN:
        return f"nothing is expected {on}, but there was: {seen}{hung}" if seen else ""
    if result.reproduced:
        return f"{expected.status} {on}, but it came back: {expected.signature}"
    died = [one.death.how for one in result.tries if one.death is not None]
    if died:
        return f"{expected.status} {on}, but a JVM died of it ({', '.join(died)}): {seen}{hung}"
    return "" if any(one.walked for one in result.tries) else f"no JVM came to walk it {on}"


def to_json(result: Judgement, artifact: Path, jdk: Jdk, text: str) -> Json:
    """For `corpus judge --json`; `case` is what a report of a failure shows."""
    expectation, shown = result.expectation, result.shown
    data: Json = {
        "artifact": str(artifact),
        "jdk": {"label": jdk.label, "version": jdk.version, "home": str(jdk.home)},
        "status": expectation.status,
        "signature": str(expectation.signature) if expectation.signature else None,
        "holds": not result.problem,
        "problem": result.problem,
        "tries": len(result.tries),
        "reproduced": result.reproduced,
        "hung": result.hung,
        "input": text,
        "case": None,
    }
    if shown is not None:
        data["case"] = {
            "signature": str(shown.signature),
            "explanation": explain(shown),
            "detail": shown.detail,
            "fault": (
                f"{shown.signal}, si_code {shown.si_code}, address {shown.address}, pc {shown.pc}"
                if shown.signal
                else ""
            ),
            "stack": [str(frame) for frame in shown.frames],
        }
    return data
