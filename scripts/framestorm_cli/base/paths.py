"""Where things are: the checkout and the cache folder. Nothing is built inside the checkout."""

import hashlib
import os
from pathlib import Path

from framestorm_cli.base.errors import FramestormError

CHECKOUT = Path(__file__).resolve().parents[3]
SCRIPTS = CHECKOUT / "scripts"
SEEDS = CHECKOUT / "corpus" / "seeds"
CRASHES = CHECKOUT / "corpus" / "crashes"
TARGETS = tuple(sorted(file.stem for file in (CHECKOUT / "fuzz").glob("fuzz_*.cpp")))


def cache() -> Path:
    """The cache folder; created. launch.py resolves XDG_CACHE_HOME and passes it on."""
    own = os.environ.get("FRAMESTORM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(own) if own else Path(base) / "framestorm"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FramestormError(
            f"cannot create the cache folder {folder}: {error.strerror} "
            "(FRAMESTORM_CACHE names another)"
        ) from error
    return folder


def build() -> Path:
    """Build folder of this checkout: two checkouts do not share one."""
    key = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:12]
    return cache() / f"build-{key}"


def shown(path: Path) -> str:
    """The path as a person would type it: relative when below the current folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def relative(path: Path | None, out: Path) -> str | None:
    """A path below the run's folder as summary.json holds it; one that is elsewhere stays as it is."""
    if path is None:
        return None
    return str(path.relative_to(out) if path.is_relative_to(out) else path)
