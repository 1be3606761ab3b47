"""The command line: assembles the commands of the packages beside this file.

A package with a module `commands` has commands: its COMMANDS. They import their work when they run, so
that `framestorm --help` loads nothing else.
"""

import importlib
import importlib.util
import pkgutil
import signal
import sys
import traceback

import click

import framestorm_cli
from framestorm_cli.base.errors import FramestormError

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_SETTINGS)
def framestorm() -> None:
    """Finds crashes, hangs, unsafe calls and wrong answers in JVM stack walkers.

    \b
    Example: scripts/framestorm fuzz --seconds 60
    """


def _assemble() -> None:
    for package in pkgutil.iter_modules(framestorm_cli.__path__, f"{framestorm_cli.__name__}."):
        if package.ispkg and importlib.util.find_spec(f"{package.name}.commands"):
            for command in importlib.import_module(f"{package.name}.commands").COMMANDS:
                framestorm.add_command(command)


_assemble()


def main() -> None:
    """Runs the command. A bug in framestorm itself is exit 2: 1 means findings."""
    # A script's shell starts what it runs in the background with SIGINT ignored, and Python keeps that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # Not standalone: an Exit's code is returned.
        sys.exit(framestorm.main(prog_name="framestorm", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        FramestormError("interrupted").show()
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(2)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        FramestormError("this is a defect of framestorm itself").show()
        sys.exit(2)
