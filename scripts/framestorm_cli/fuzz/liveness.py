"""Liveness: a run that did nothing must not pass. What a run has to have done to be believed."""

from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker

# Share of unmutated walks of Java scenarios that have to succeed. A healthy harness has 0.99 and more;
# less than this means that victims are not what they claim or the walker is not really called.
MINIMUM_SUCCESS = 0.95
# Fewer unmutated walks than this say nothing about the share.
ENOUGH_WALKS = 50
_SHOWN = 8  # errors


def success_share(totals: dict[str, int]) -> float | None:
    """Succeeded share of unmutated Java walks; None when there were none."""
    walks = totals.get("unmutated_java", 0)
    return min(totals.get("unmutated_java_succeeded", 0) / walks, 1.0) if walks else None


def _refusals(totals: Json) -> str:
    """The most frequent errors of unmutated walks, by scenario."""
    counted = [
        (count, scenario, code)
        for scenario, walked in totals.get("by_scenario", {}).items()
        for code, count in walked.get("unmutated_errors", {}).items()
    ]
    shown = [
        f"{scenario} {code} ({count:,} times)"
        for count, scenario, code in sorted(counted, reverse=True)[:_SHOWN]
    ]
    return f"; most often they gave {', '.join(shown)}" if shown else ""


def problems(run: Run) -> list[str]:
    """Why the run's result cannot be believed; empty when it can."""
    found = [f"{target} could not run: {why}" for target, why in run.unable.items()]
    for target in run.options.targets:
        if target in run.unable:
            continue
        started = [process for process in run.processes if process.target == target]
        if not started:
            if not run.stopped:
                found.append(f"{target} was never started")
        elif not any(process.walks for process in started) and not run.stopped:
            found.append(f"{target} made no walks; see {started[0].folder / 'log.txt'}")
    totals = run.totals()
    walks = totals.get("unmutated_java", 0)
    share = success_share(totals)
    if share is not None and walks >= ENOUGH_WALKS and share < MINIMUM_SUCCESS:
        found.append(
            f"only {share:.1%} of {walks} unmutated walks of Java scenarios succeeded, at least "
            f"{MINIMUM_SUCCESS:.0%} must: `scripts/framestorm scenarios` shows which do not"
            f"{_refusals(totals)}"
        )
    if run.options.outside.walker == outside.PROFILER:
        found += _of_profiler(run.options.outside, totals)
    if (
        share is None
        and totals.get("walks", 0) > 0
        and not run.options.scenarios
        and not run.stopped
    ):
        found.append(
            "no unmutated walk of a Java scenario was made, so it is unknown whether walks work at all"
        )
    return found


def _of_profiler(walked: OutsideWalker, totals: Json) -> list[str]:
    """A profiler gives no trace: only its own count of samples shows that it walked."""
    counted = totals.get("by_walker", {}).get(walked.walker, {})
    calls = counted.get("walks", 0)
    if not calls or counted.get("succeeded"):
        return []
    if totals.get("profiler", {}).get("counts_samples"):
        return [
            f"{walked} stored no sample in {calls:,} calls of its handler: does it walk at all?"
        ]
    return [
        f"{walked}: framestorm cannot read how many samples it stores, so nothing shows its walks"
    ]
