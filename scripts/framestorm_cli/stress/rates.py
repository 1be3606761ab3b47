"""What rate a same-thread cell promises, and whether it was delivered.

A thread is sampled only while it runs, so the rate is per second of CPU time of the sampled threads
(`running_seconds`): other load on the machine does not change it.
"""

from framestorm_cli.findings.records import Json
from framestorm_cli.stress import units
from framestorm_cli.stress.cells import Cell

SHARE = 0.95  # of the rate asked for
MOST = 40_000.0  # samples per second of a running thread; what is asked for beyond it is a gift
LEAST_SECONDS = 0.25  # of running, before a rate says anything
_MUCH = 0.5  # of a running thread's time, that sampling takes
_OFTEN = 0.1  # of its samples, after which a thread had to be left alone


def promised(cell: Cell, stats: Json) -> float | None:
    """Samples per second of a running thread; None where nothing is promised: threads are halted from
    outside, or idle ones are sampled, too."""
    if cell.mode != "same-thread" or not str(stats.get("threads_asked", "")).startswith("running"):
        return None
    return min(SHARE * 1e9 / cell.interval_ns, MOST)


def achieved(stats: Json) -> float | None:
    """Samples per second of a running thread, without those of waiting ones, as the agent counts them;
    None when too little ran to tell."""
    if float(stats.get("running_seconds") or 0.0) < LEAST_SECONDS:
        return None
    return float(stats.get("rate_hz") or 0.0)


def slows_down(stats: Json) -> bool:
    """Whether sampling took so much of the running threads' time that a program cannot be blamed for
    taking long: where that is close to all of it, the agent leaves them a tenth ("throttled")."""
    samples = int(stats.get("samples") or 0)
    throttled = int((stats.get("lost") or {}).get("throttled") or 0)
    walks = (stats.get("latency_ns") or {}).values()
    walk_ns = max((float(walk["p50"]) for walk in walks), default=0.0)
    sample_ns = float(stats.get("delivery_ns") or 0.0) + walk_ns
    took = float(stats.get("rate_hz") or 0.0) * sample_ns / 1e9
    return took > _MUCH or throttled > _OFTEN * samples


def shortfall(cell: Cell, stats: Json) -> str:
    """What to say about a rate that is below what is promised; empty when it is not."""
    least, had = promised(cell, stats), achieved(stats)
    if least is None or had is None or had >= least:
        return ""
    said = (
        f"{had:,.0f} samples/s per running thread of {1e9 / cell.interval_ns:,.0f} asked for; "
        f"{least:,.0f} are promised"
    )
    walk_ns = _mean_walk_ns(stats)
    if had * walk_ns / 1e9 <= _MUCH:
        return said
    return f"{said}; the walker's own time is the reason: {units.nanoseconds_text(walk_ns)} a walk"


def _mean_walk_ns(stats: Json) -> float:
    """Of walkers that took turns, each counts as often as it walked."""
    walkers = (stats.get("latency_ns") or {}).values()
    walks = sum(float(one["count"]) for one in walkers)
    return sum(float(one["count"]) * float(one["p50"]) for one in walkers) / walks if walks else 0.0
