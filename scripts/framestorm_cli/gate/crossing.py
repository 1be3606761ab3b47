"""Buckets of a run, told apart: known, new, or the same on the base. By replay, never by chance: that
fuzzing found something on one side and not on the other says nothing."""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding
from framestorm_cli.findings.records import Json
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import KNOWN, NEW, NOT_REPRODUCED, TOO_RARE, UNCHANGED, Entry, Step
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded, Request
from framestorm_cli.replay.verifying import Verifier
from framestorm_cli.reports.known import Known
from framestorm_cli.stress.proportion import chance
from framestorm_cli.triage import expectations, report
from framestorm_cli.triage.buckets import Bucket, Verification, alike
from framestorm_cli.triage.expectations import Cause

TRIES = 5  # fresh JVMs that show whether an artifact comes back
_MOST_TRIES = 12
_TRY_LIMIT = 40.0  # seconds
_GLANCE = 2  # fresh JVMs of the base that show most of what is there
_MOSTLY = 0.6  # of TRIES
_CHANCE = 0.02  # that sides which do the same look as different as this
_MOST_OF_RARE = 24  # fresh JVMs of a side for what comes back less often than mostly
_PLACES = 6  # of one known bucket


def _rare(verification: Verification) -> bool:
    return 0 < verification.reproduced < _MOSTLY * verification.tries


def one_per_key(bucket: Bucket) -> list[Finding]:
    """The best finding of each place (as the native side tells them apart) that a bucket was seen at."""
    seen: dict[str, Finding] = {}
    for finding in bucket.best_first():
        seen.setdefault(finding.key, finding)
    return list(seen.values())


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
    touched: frozenset[str] = frozenset()  # functions
    causes: Sequence[Cause] = ()  # known ones
    step: str = "fuzz"

    def sort(
        self, found: Sequence[Bucket], seconds: float, startup: float, step: Step
    ) -> list[Entry]:
        """One entry per bucket. What there was no time for is a problem of the step."""
        deadline = time.monotonic() + seconds
        unknown = [bucket for bucket in found if bucket not in self.known]
        entries = [self._entry(b, b.best, KNOWN, "") for b in found if b in self.known]
        own = seconds / 2 if self.there is not None else seconds
        verified = Verifier(
            self.here.tools,
            self.symbolizer,
            self.out / "work" / "verify",
            TRIES,
            self.jobs,
            self.jvm_args,
            self.here.outside,
            startup,
            soft_limit=own * 0.7,
        ).verify(list(unknown))
        firm = [bucket for bucket in unknown if not _rare(verified[bucket.id][1])]
        entries += [self._judge(bucket, *verified[bucket.id], deadline, step) for bucket in firm]
        # The other half is for what known signatures hide.
        now = time.monotonic()
        half = now + (deadline - now) / 2
        entries += [
            self._judge_rare(bucket, *verified[bucket.id], half)
            for bucket in unknown
            if bucket not in firm
        ]
        if self.there is not None and self.here.what == "change":
            entries += self._look_behind(
                [bucket for bucket in found if bucket in self.known], deadline, step
            )
        return entries

    def _look_behind(self, known: Sequence[Bucket], deadline: float, step: Step) -> list[Entry]:
        """The known buckets, those with a function that the change touches first, while there is time."""

        def touched(bucket: Bucket) -> bool:
            return any(frame in self.touched for frame in bucket.signature.frames)

        found = []
        looked = 0
        for bucket in sorted(known, key=lambda one: not touched(one)):
            if time.monotonic() > deadline:
                break
            looked += 1
            if (entry := self._other_cause(bucket, deadline)) is not None:
                found.append(entry)
        step.lines.append(f"{looked} of {len(known)} known buckets compared with base by replay")
        return found

    def _judge(
        self,
        bucket: Bucket,
        finding: Finding,
        verification: Verification,
        deadline: float,
        step: Step,
    ) -> Entry:
        if verification.tries == 0:
            step.problems.append(
                f"{bucket.id} ({bucket.signature}) was not verified: {verification.skipped}"
            )
            return self._entry(bucket, finding, NOT_REPRODUCED, str(verification))
        if verification.reproduced == 0:
            return self._entry(bucket, finding, NOT_REPRODUCED, str(verification))
        how = f"{verification.reproduced} of {verification.tries} fresh JVMs"
        if self.there is None:
            return self._entry(bucket, finding, NEW, how)
        # So many that all miss by chance once in fifty times, if it were as frequent there.
        tries = min(_MOST_TRIES, math.ceil(4 * verification.tries / verification.reproduced))
        hits, made = self._hits(self.there, bucket, finding, tries, deadline)
        how += f"; {self.there.what}: {hits} of {made}"
        if not hits and made < tries:
            step.problems.append(
                f"{bucket.id} ({bucket.signature}) could be replayed {made} times on the "
                f"{self.there.what} in "
                f"the time there was, {tries} are needed"
            )
            return self._entry(bucket, finding, NOT_REPRODUCED, how)
        return self._entry(bucket, finding, UNCHANGED if hits else NEW, how)

    def _judge_rare(
        self, bucket: Bucket, finding: Finding, verification: Verification, deadline: float
    ) -> Entry:
        """What comes back now and then, as deaths of a process long after a wild call do: a few misses
        of the base say nothing. Both sides in turn, until there is a difference, or it is seen that
        there is none to be shown."""
        hits, tries = verification.reproduced, verification.tries
        if self.there is None:
            return self._entry(bucket, finding, NEW, f"{hits} of {tries} fresh JVMs")
        others = 0
        kind = TOO_RARE
        while time.monotonic() < deadline and min(tries, others) < _MOST_OF_RARE:
            hit, made = self._hits(self.there, bucket, finding, self.jobs, deadline)
            others += made
            if hit:
                kind = UNCHANGED
                break
            if chance(hits, tries, others) < _CHANCE:
                kind = NEW
                break
            hit, made = self._hits(self.here, bucket, finding, self.jobs, deadline, all_of=True)
            hits, tries = hits + hit, tries + made
        came = f"{int(kind == UNCHANGED)} of {others}"
        how = f"{hits} of {tries} fresh JVMs; {self.there.what}: {came}"
        return self._entry(bucket, finding, kind, how)

    def _other_cause(self, bucket: Bucket, deadline: float) -> Entry | None:
        """A known signature may hide what the change broke, in a function that was broken before: one
        input per place of a known bucket that the base does not break on."""
        assert self.there is not None
        for finding in one_per_key(bucket)[:_PLACES]:
            hits, made = self._hits(self.there, bucket, finding, _GLANCE, deadline)
            if made < _GLANCE and not hits:
                return None  # no time
            if hits:
                continue
            here, tries = self._hits(self.here, bucket, finding, TRIES, deadline, all_of=True)
            if here < _MOSTLY * TRIES:
                continue
            hits, more = self._hits(self.there, bucket, finding, TRIES - _GLANCE, deadline)
            if hits or more < TRIES - _GLANCE:
                continue
            how = (
                f"{here} of {tries} fresh JVMs; {self.there.what}: 0 of {made + more}, though other inputs "
                "show this signature there"
            )
            return self._entry(bucket, finding, NEW, how)
        return None

    def _hits(
        self, side: Subject, bucket: Bucket, finding: Finding, tries: int, deadline: float,
        all_of: bool = False,
    ) -> tuple[int, int]:  # fmt: skip
        """How often an artifact shows there what it shows here, or nearly (inlining may differ); and in
        how many JVMs. Ends at the first time, unless `all_of`."""
        assert finding.artifact is not None
        folder = self.out / "work" / f"cross-{bucket.id}"
        request = Request(
            finding.artifact, finding.signature, self.jvm_args, side.outside, limit=_TRY_LIMIT
        )
        hits = made = 0
        try:
            while made < tries and (all_of or not hits) and time.monotonic() < deadline:
                done = replaying.run_tries(
                    side.tools, self.symbolizer, request, min(self.jobs, tries - made),
                    folder / str(made), deadline=deadline,
                )  # fmt: skip
                if not done:
                    break
                made += len(done)
                hits += sum(
                    1 for one in done if one.matched or any(alike(finding, c) for c in one.findings)
                )
        except FramestormError as error:
            raise FramestormError(f"cannot replay on the {side.what}: {error.message}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return hits, made

    def _entry(self, bucket: Bucket, finding: Finding, kind: str, how: str) -> Entry:
        bucket.shown = finding
        expectations.name(bucket, self.causes)
        entry = Entry(
            kind, self.step, bucket.id, bucket.signature, bucket.explanation, how, bucket.count,
            tuple(str(frame) for frame in finding.frames), state=bucket.state,
            known="; ".join(bucket.about), write_ups=bucket.write_ups,
        )  # fmt: skip
        source = finding.artifact
        if kind == KNOWN or source is None or not source.exists():
            return entry
        folder = self.out / "artifacts"
        folder.mkdir(exist_ok=True)
        entry.artifact = folder / f"{self.here.what}-{bucket.id}.bin"
        shutil.copyfile(source, entry.artifact)
        entry.artifact.with_suffix(".txt").write_text(finding.text, encoding="utf-8")
        recorded = Recorded(None, self.jvm_args, self.here.outside)
        replaying.write_sidecar(entry.artifact, finding.signature, self.jvm, recorded)
        entry.command = replaying.command_line(self.here.tools, entry.artifact)
        bucket.artifact, bucket.replay_command = entry.artifact, entry.command
        entry.report = folder / f"{self.here.what}-{bucket.id}.md"
        entry.report.write_text(report.markdown(bucket, self.jvm), encoding="utf-8")
        return entry
