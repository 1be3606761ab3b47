"""Replays of a run's findings in fresh JVMs: once while fuzzing goes on, the rest when it has ended."""

import time

import psutil

from framestorm_cli.base import steps
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding, state_rank
from framestorm_cli.fuzz.following import Following
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.live import VerificationProgress
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.replay import replaying
from framestorm_cli.replay.verifying import Verifier
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import expectations
from framestorm_cli.triage.buckets import Bucket, Verification
from framestorm_cli.triage.explain import explain

_EVERY = 1.0  # seconds between looks at what was found


class Replays:
    """`tries`: fresh JVMs for an artifact; 0: none. Call it while fuzzing goes on, then conclude()."""

    def __init__(self, toolchain: Toolchain, options: FuzzOptions, tries: int) -> None:
        self.symbolizer = Symbolizer()
        self._causes = expectations.causes_on(
            toolchain.jdk.label, profiler=options.outside.profiler
        )
        self._tries = 0 if options.strict else tries
        self._strict = options.strict
        self._why = "--strict" if options.strict else "--verify 0"
        self._toolchain = toolchain
        self._following = Following(self.symbolizer)
        self._findings: list[Finding] = []
        self._next = 0.0
        self._verifier = Verifier(
            toolchain,
            self.symbolizer,
            options.out / "work" / "verify",
            self._tries,
            options.jobs,
            options.jvm_args,
            options.outside,
            confirm=lambda bucket: bool(bucket.write_ups),
        )

    def _into_buckets(self, findings: list[Finding]) -> list[Bucket]:
        found = triage_buckets.into_buckets(findings)
        for bucket in found:
            expectations.name(bucket, self._causes)
        return found

    @property
    def first_seconds(self) -> float | None:
        """Seconds from the command's start, what it had to set up included, until a finding came back."""
        if self._verifier.first_hit is None:
            return None
        ago = time.monotonic() - self._verifier.first_hit
        return time.time() - ago - psutil.Process().create_time()

    def __call__(self, run: Run) -> None:
        now = time.monotonic()
        if not self._tries or now < self._next:
            return
        self._next = now + _EVERY
        self._findings += self._following.new(run)
        self._verifier.slowest_start = float(run.totals().get("startup", 2.0))
        first = self._verifier.first_hit is None
        for bucket, finding in self._verifier.look(self._into_buckets(self._findings)):
            self._tell(bucket, finding, first)
            first = False

    def _tell(self, bucket: Bucket, finding: Finding, first: bool) -> None:
        said = "  ".join(part for part in (finding.state, str(bucket.signature)) if part)
        steps.say(
            f"came back in a fresh JVM: {said}" + (f"; {bucket.known}" if bucket.known else "")
        )
        if first:
            assert finding.artifact is not None
            steps.say(f"the first to do so, {self.first_seconds:.0f} s after the command's start:")
            steps.say(f"  {explain(finding)}")
            steps.say(f"  {replaying.command_line(self._toolchain, finding.artifact)}")

    def conclude(self, findings: list[Finding], run: Run) -> list[Bucket]:
        """The buckets with what is known of each; replays what was not replayed enough. In the order in
        which they are shown: by how near the state of what came back is to a real one, known causes
        behind others."""
        found = self._into_buckets(findings)
        why = self._why
        if run.stopped and not self._strict:
            why, self._tries = (
                run.stopped,
                0,
            )  # interrupted, or the disk is full: no JVMs after that
        if self._tries:
            self._verifier.slowest_start = float(run.totals().get("startup", 0.0))
            with VerificationProgress(len(found)) as progress:
                known = self._verifier.verify(found, progress)
            if self._verifier.interrupted:
                run.stopped = "interrupted"
            for bucket in found:
                bucket.shown, bucket.verification = known[bucket.id]
        else:
            self._verifier.close()
            for bucket in found:
                bucket.verification = Verification(skipped=why)
        return sorted(found, key=lambda one: (state_rank(one.state), bool(one.write_ups)))
