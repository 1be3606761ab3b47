"""Options of `framestorm test`."""

import click

from framestorm_cli.base.options import exit_with


@click.command()
@click.option(
    "--ci",
    is_flag=True,
    help="For CI: every step except clang-tidy and detection, on all JDKs, without colours.",
)
@click.option("--tidy", is_flag=True, help="Run clang-tidy, too (minutes).")
@click.option("--only", multiple=True, help="Only this step; repeatable.")
@click.argument("pytest_args", nargs=-1)
def test(ci: bool, tidy: bool, only: tuple[str, ...], pytest_args: tuple[str, ...]) -> None:
    """Run the tests and checks that come before each commit. They take minutes.

    The steps are ruff, mypy, clang-format, java-format, ctest (C++ tests on the newest JDK) and pytest
    (Python tests that do not take long). --ci also runs instrumented, oss-fuzz, walkers (tests of the added
    walkers) and long (the other Python tests), and ctest on all JDKs. Two steps run only when they are asked
    for: clang-tidy, and detection, which looks for six planted bugs. --only STEP runs that step in full, as
    --ci does.

    \b
    Example: scripts/framestorm test
    Example: scripts/framestorm test --only pytest -- -k triage
    """
    from framestorm_cli.test.run import test_command

    exit_with(test_command(ci=ci, tidy=tidy, only=only, pytest_args=pytest_args))


COMMANDS = (test,)
