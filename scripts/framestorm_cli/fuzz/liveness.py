"""Liveness: a run that did nothing must not pass. What a run has to have done to be believed."""

from framestorm_cli.fuzz.fuzzing import Run

# Share of unmutated walks of Java scenarios that have to succeed. A healthy harness has 0.99 and more;
# less than this means that victims are not what they claim or the walker is not really called.
MINIMUM_SUCCESS = 0.95
# Fewer unmutated walks than this say nothing about the share.
ENOUGH_WALKS = 50


def success_share(totals: dict[str, int]) -> float | None:
    """Succeeded share of unmutated Java walks; None when there were none."""
    walks = totals.get("unmutated_java", 0)
    return totals.get("unmutated_java_succeeded", 0) / walks if walks else None


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
        )
    counted = totals.get("profiler", {})
    if counted.get("handler_calls") and not counted.get("stored"):
        found.append(
            f"{run.options.outside} stored no sample in {counted['handler_calls']:,} calls of its handler: "
            "it may not have walked at all"
        )
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
