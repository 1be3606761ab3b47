"""Buckets of a run, told apart: known, new, or the same on the base. By replay, never by chance: that
fuzzing found something on one side and not on the other says nothing."""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli import paths, replaying
from framestorm_cli.errors import FramestormError
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import KNOWN, NEW, NOT_REPRODUCED, UNCHANGED, Entry, Step
from framestorm_cli.records import Json
from framestorm_cli.replaying import Recorded, Request
from framestorm_cli.reports.known import Known
from framestorm_cli.symbols import Symbolizer
from framestorm_cli.triage import report
from framestorm_cli.triage.buckets import Bucket, Case, alike
from framestorm_cli.triage.report import Verification, Written
from framestorm_cli.verifying import Verifier

TRIES = 5  # fresh JVMs that show whether an artifact comes back
_MOST_TRIES = 12
_TRY_LIMIT = 40.0  # seconds


@dataclass
class Crossing:
    """Sorts the buckets of `here`, with `there` (the other side) asked by replay."""

    here: Subject
    there: Subject | None
    known: Known
    symbolizer: Symbolizer
    out: Path  # artifacts and reports go there
    jobs: int
    jvm_args: tuple[str, ...]
    jvm: Json

    def sort(
        self, found: Sequence[Bucket], seconds: float, startup: float, step: Step
    ) -> list[Entry]:
        """One entry per bucket. What there was no time for is a problem of the step."""
        deadline = time.monotonic() + seconds
        unknown = [bucket for bucket in found if bucket not in self.known]
        entries = [self._entry(b, b.best, KNOWN, "") for b in found if b in self.known]
        half = seconds / 2 if self.there is not None else seconds
        verified = Verifier(
            self.here.tools,
            self.symbolizer,
            self.out / "work" / "verify",
            TRIES,
            self.jobs,
            self.jvm_args,
            self.here.plugin,
            startup,
            soft_limit=half * 0.7,
        ).verify(list(unknown))
        for bucket in unknown:
            case, verification = verified[bucket.id]
            entries.append(self._judge(bucket, case, verification, deadline, step))
        return entries

    def _judge(
        self, bucket: Bucket, case: Case, verification: Verification, deadline: float, step: Step
    ) -> Entry:
        if verification.tries == 0:
            step.problems.append(
                f"{bucket.id} ({bucket.signature}) was not verified: {verification.skipped}"
            )
            return self._entry(bucket, case, NOT_REPRODUCED, str(verification))
        if verification.reproduced == 0:
            return self._entry(bucket, case, NOT_REPRODUCED, str(verification))
        how = f"{verification.reproduced} of {verification.tries} fresh JVMs"
        if self.there is None:
            return self._entry(bucket, case, NEW, how)
        # So many that all miss by chance once in fifty times, if it were as frequent there.
        tries = min(_MOST_TRIES, math.ceil(4 * verification.tries / verification.reproduced))
        hits, made = self._hits(self.there, bucket, case, tries, deadline)
        how += f"; {self.there.what}: {hits} of {made}"
        if not hits and made < tries:
            step.problems.append(
                f"{bucket.id} ({bucket.signature}) could be replayed {made} times on the "
                f"{self.there.what} in "
                f"the time there was, {tries} are needed"
            )
            return self._entry(bucket, case, NOT_REPRODUCED, how)
        return self._entry(bucket, case, UNCHANGED if hits else NEW, how)

    def _hits(
        self, side: Subject, bucket: Bucket, case: Case, tries: int, deadline: float
    ) -> tuple[int, int]:
        """How often an artifact shows there what it shows here, or nearly (inlining may differ)."""
        assert case.finding.artifact is not None
        folder = self.out / "work" / f"cross-{bucket.id}"
        request = Request(
            case.finding.artifact, case.signature, self.jvm_args, side.plugin, limit=_TRY_LIMIT
        )
        hits = made = 0
        try:
            while made < tries and not hits and time.monotonic() < deadline:
                done = replaying.run_tries(
                    side.tools, self.symbolizer, request, min(self.jobs, tries - made),
                    folder / str(made), deadline=deadline,
                )  # fmt: skip
                if not done:
                    break
                made += len(done)
                hits += sum(
                    1 for one in done if one.matched or any(alike(case, c) for c in one.cases)
                )
        except FramestormError as error:
            raise FramestormError(f"cannot replay on the {side.what}: {error.message}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return hits, made

    def _entry(self, bucket: Bucket, case: Case, kind: str, how: str) -> Entry:
        written = Written(bucket, case)
        entry = Entry(
            kind, "fuzz", bucket.id, bucket.signature, written.explanation, how, bucket.count,
            tuple(str(frame) for frame in case.frames),
        )  # fmt: skip
        source = case.finding.artifact
        if kind == KNOWN or source is None or not source.exists():
            return entry
        folder = self.out / "artifacts"
        folder.mkdir(exist_ok=True)
        entry.artifact = folder / f"{self.here.what}-{bucket.id}.bin"
        shutil.copyfile(source, entry.artifact)
        entry.artifact.with_suffix(".txt").write_text(case.finding.text, encoding="utf-8")
        recorded = Recorded(None, self.jvm_args, self.here.plugin)
        replaying.write_sidecar(entry.artifact, case.signature, self.jvm, recorded)
        arguments = replaying.common_arguments(self.here.tools, ())
        entry.command = " ".join(
            ["scripts/framestorm replay", paths.shown(entry.artifact), *arguments]
        )
        written.artifact, written.replay_command = entry.artifact, entry.command
        entry.report = folder / f"{self.here.what}-{bucket.id}.md"
        entry.report.write_text(report.markdown(written, self.jvm), encoding="utf-8")
        return entry
