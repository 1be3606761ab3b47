"""`framestorm doctor`."""

import click

from framestorm_cli.base.options import exit_with


@click.command()
def doctor() -> None:
    """Say what this machine has, what is missing, what will not work, and why.

    Exit code 2 when something is missing that framestorm cannot install by itself.

    \b
    Example: scripts/framestorm doctor
    """
    from framestorm_cli.doctor.run import doctor_command

    exit_with(doctor_command())


COMMANDS = (doctor,)
