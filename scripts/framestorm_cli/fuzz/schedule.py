"""Who fuzzes when: the targets' shares of the time, cut into the runs of each lane.

A lane is one process at a time; there are --jobs lanes. McNaughton's wrap-around rule: all shares are
laid end to end and cut every `seconds`, so every lane is busy for exactly that long and every target
gets its share: the same one, unless weights say otherwise. A target that is cut continues in the next
lane, as a process with another seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHORTEST = 1.0  # seconds; a shorter rest is not worth the start of a JVM


@dataclass(frozen=True)
class Slice:
    """One stretch of fuzzing. Exactly one of seconds and runs ends it, or the first of both."""

    target: str
    seconds: float | None
    runs: int | None = None
    resumed: bool = False  # what another process left of it


def lanes(
    targets: Sequence[str], jobs: int, seconds: float, weights: Mapping[str, float] | None = None
) -> list[list[Slice]]:
    """Slices per lane for a run of `seconds` wall time. Each target has at least one slice. `weights`:
    shares relative to each other; 1 where nothing is said."""
    weighed = {target: (weights or {}).get(target, 1.0) for target in targets}
    one = seconds * jobs / sum(weighed.values())
    result: list[list[Slice]] = [[] for _ in range(jobs)]
    at = 0.0
    for target in targets:
        end = at + one * weighed[target]
        pieces: list[tuple[int, float]] = []
        while at < end - 1e-9:
            lane = min(int(at / seconds + 1e-9), jobs - 1)
            upto = min(end, (lane + 1) * seconds) if lane < jobs - 1 else end
            pieces.append((lane, upto - at))
            at = upto
        long_enough = [piece for piece in pieces if piece[1] >= SHORTEST]
        for lane, length in long_enough or [max(pieces, key=lambda piece: piece[1])]:
            result[lane].append(Slice(target, length))
    return [lane for lane in result if lane]


def lanes_by_runs(
    targets: Sequence[str], jobs: int, runs: int, seconds: float | None
) -> list[list[Slice]]:
    """Slices for `runs` walks in all, whole targets dealt to lanes in turn."""
    result: list[list[Slice]] = [[] for _ in range(min(jobs, len(targets)))]
    for index, target in enumerate(targets):
        share = runs // len(targets) + (1 if index < runs % len(targets) else 0)
        per_target = None if seconds is None else seconds * len(result) / len(targets)
        if share:
            result[index % len(result)].append(Slice(target, per_target, share))
    return [lane for lane in result if lane]
