"""Options of `framestorm test`."""

import click

from framestorm_cli.base.options import exit_with


@click.command()
@click.option(
    "--ci",
    is_flag=True,
    help="For CI: every step but clang-tidy and detection, all JDKs, no terminal effects.",
)
@click.option("--tidy", is_flag=True, help="clang-tidy as well (minutes).")
@click.option("--only", multiple=True, help="Only this step; repeatable.")
@click.argument("pytest_args", nargs=-1)
def test(ci: bool, tidy: bool, only: tuple[str, ...], pytest_args: tuple[str, ...]) -> None:
    """Run what a change needs before each commit, in minutes: ruff, mypy, clang-format, C++ tests on the
    newest JDK, Python tests that do not take long.

    --ci runs everything. --only runs a step whole: ctest on all JDKs, `long` for the long Python tests,
    walkers, instrumented, oss-fuzz, clang-tidy, detection: six planted bugs that have to be found.

    \b
    Example: scripts/framestorm test
    Example: scripts/framestorm test --only pytest -- -k triage
    """
    from framestorm_cli.test.run import test_command

    exit_with(test_command(ci=ci, tidy=tidy, only=only, pytest_args=pytest_args))


COMMANDS = (test,)
