"""Names on the command line, held against those that the native programs know."""

import difflib
from collections.abc import Collection, Iterable

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE, Toolchain


def known(what: str, given: Iterable[str], names: Collection[str], more: str = "") -> None:
    """Raises FramestormError for a name that is not among `names`, with the nearest that is. `more`: what
    else can be given."""
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise FramestormError(
                f"there is no {what} {name}.{hint} Known: {', '.join(names)}{more}"
            )


def check_names(
    tools: Toolchain, walker: str, scenarios: tuple[str, ...], modes: tuple[str, ...]
) -> None:
    """Raises FramestormError when a name is unknown to the native programs."""
    if not (walker or scenarios or modes):
        return
    names = walkers.table(tools.program(NATIVE)).names
    known("scenario", scenarios, names["scenarios"])
    known("mode", modes, names["modes"])
    known("walker", walkers.names(walker), names["walkers"])
