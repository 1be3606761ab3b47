"""`framestorm truth`: the table of several finished or unfinished runs of `stress --truth`."""

from collections.abc import Sequence
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.machine import machine
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress import cell_result, figures, truth_figures
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.proportion import Proportion
from framestorm_cli.stress.runner import CELLS


def truth_command(*, runs: tuple[Path, ...]) -> int:
    """Returns the exit code. Raises FramestormError."""
    print(page({run: _finished(run) for run in runs}), end="")
    return 0


def _finished(run: Path) -> tuple[Plan, list[CellResult]]:
    plan = Plan.read(run)
    read = (cell_result.read(folder) for folder in sorted((run / CELLS).iterdir()))
    found = [one for one in read if one is not None and one.stats.get("truth")]
    if not found:
        raise FramestormError(f"{run} has no finished cell of `framestorm stress --truth`")
    return plan, found


_Wrong = tuple[str, str, str, Proportion]  # JDK, of what, walker


def _side_by_side(what: str, wrong: Sequence[_Wrong]) -> str:
    """A column for each walker: its share of wrong traces, of how many."""
    walkers = list(dict.fromkeys(walker for _, _, walker, _ in wrong))
    rows: dict[tuple[str, str], dict[str, Proportion]] = {}
    for version, of, walker, one in wrong:
        rows.setdefault((version, of), {})[walker] = one
    none = Proportion.of(0, 0)
    cells = [
        [*row, *(_of(by_walker.get(walker, none)) for walker in walkers)]
        for row, by_walker in rows.items()
    ]
    return table(["JDK", what, *walkers], cells)


def _of(wrong: Proportion) -> str:
    return f"{wrong.share} of {wrong.trials:,}" if wrong.trials else "-"


def page(runs: dict[Path, tuple[Plan, list[CellResult]]]) -> str:
    """Markdown: by JDK and walker, then by what the thread ran, roughly and by name, then by
    workload."""
    by_jdk: dict[str, list[CellResult]] = {}
    for plan, cells in runs.values():
        by_jdk.setdefault(f"{plan.jdk_version}, {Path(plan.jdk_home).name}", []).extend(cells)
    by_walker, by_position, references = [], [], []
    by_code, by_workload = list[_Wrong](), list[_Wrong]()
    for version, cells in by_jdk.items():
        total = truth_figures.of(cell.stats for cell in cells)
        assert total is not None
        references.append([version, str(total.reference)])
        by_walker += [[version, *truth_figures.cells(one)] for one in total.walkers]
        by_code += [
            (version, kind, one.walker, wrong)
            for one in total.walkers
            for kind, wrong in one.by_code.items()
        ]
        by_position += [
            [version, one.walker, at.verdict, at.error, f"`{at.at}`", f"{at.count:,}"]
            for one in total.walkers
            for at in one.positions
        ]
        by_workload += [
            (version, workload, one.walker, one.wrong)
            for workload, one in figures.truth_by_workload(cells)
        ]
    return "\n".join(
        [
            "# Wrong traces by ground truth",
            "",
            "Made by `framestorm truth` from runs of `framestorm stress --truth`. "
            f"{machine().cores} cores.",
            "",
            "## By walker",
            "",
            table(["JDK", *truth_figures.HEADS], by_walker),
            "",
            "## GetStackTrace against the shadow stack",
            "",
            table(["JDK", "differs"], references),
            "",
            "## By what the thread ran",
            "",
            _side_by_side("code", by_code),
            "",
            "## By code position",
            "",
            table(
                ["JDK", "walker", "verdict", "error", "what the thread ran", "samples"], by_position
            ),
            "",
            "## By workload",
            "",
            _side_by_side("workload", by_workload),
            "",
        ]
    )
