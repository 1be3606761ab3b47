"""Which JDK a command works with, and what `--jdk instrumented` means."""

import os
import re
from pathlib import Path

from framestorm_cli.base import packages, steps
from framestorm_cli.hotspot import additions, building, debian, variants
from framestorm_cli.hotspot.building import Request
from framestorm_cli.jdks import runtimes, store
from framestorm_cli.jdks.jdk import JVM_FOLDER, Jdk, UnusableJdkError, usable, validate
from framestorm_cli.jdks.store import Record

INSTRUMENTED = Path("instrumented")  # as --jdk: the default variant
_ASKED = re.compile(r"instrumented(?::(.*))?")


def choose(option: Path | None, *, may_install: bool = True) -> Jdk:
    """--jdk, else JAVA_HOME, else the newest installed HotSpot, else one that apt installs.

    `instrumented[:VARIANT]` is an instrumented JDK, which is built when there is none. A number is a
    release: the newest installed one, else one that is fetched or built.
    """
    if option is not None and str(option).isdecimal():
        return _release(int(str(option)))
    if option is not None:
        return validate(instrumented(option) if is_instrumented(option) else option)
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        try:
            return validate(Path(java_home))
        except UnusableJdkError as error:
            raise UnusableJdkError(
                f"JAVA_HOME: {error.message}. Unset JAVA_HOME or give --jdk PATH"
            ) from error
    found = usable()
    if found:
        return found[0]
    if not may_install:
        raise UnusableJdkError(f"no usable HotSpot JDK below {JVM_FOLDER}")
    steps.say(f"no usable HotSpot JDK below {JVM_FOLDER}")
    packages.install([packages.JDK_PACKAGE])
    found = usable()
    if not found:
        raise UnusableJdkError(
            f"{packages.JDK_PACKAGE} is installed but no usable JDK is below {JVM_FOLDER}: "
            "see `scripts/framestorm doctor`"
        )
    return found[0]


def _release(feature: int) -> Jdk:
    """The installed one, else a runtime that is fetched, else one that is built as its source is."""
    package = f"openjdk-{feature}"
    there = feature in runtimes.WHEELS or any(one.feature == feature for one in usable())
    if there or package not in debian.SUITES:
        return runtimes.provide(feature)
    steps.say(f"there is no JDK {feature} to fetch: building one from Debian's {package}")
    return validate(building.ensure(Request(f"{debian.PREFIX}{package}", variant=variants.PLAIN)))


def stock_builds() -> list[Jdk]:
    """The newest JDK in the cache of each release that was built as its source is, because no such release
    could be fetched."""
    newest: dict[int, Jdk] = {}
    for home, record in store.finished(variants.PLAIN):
        if record.source.startswith(debian.PREFIX) and not additions.load().fit(record.feature):
            newest.setdefault(record.feature, validate(home))
    return list(newest.values())


def is_instrumented(option: Path) -> bool:
    """Whether --jdk names an instrumented JDK instead of a path."""
    return _ASKED.fullmatch(str(option)) is not None


def with_walkers(variant: str | None = None) -> list[tuple[Path, Record]]:
    """Finished JDKs that have the added walkers, of one variant or all, the one asked for last first. A
    release that the additions are not for is built without them: it is a stock JDK."""
    added = additions.load()
    return [one for one in store.finished(variant) if added.fit(one[1].feature)]


def instrumented(option: Path) -> Path:
    """The home that `instrumented[:VARIANT]` means; built first when there is none.

    The one of that variant that was last built or used, brought up to date with its source and with
    harness/hotspot; without any, one from the default source.
    """
    asked = _ASKED.fullmatch(str(option))
    name = (asked[1] if asked else None) or variants.DEFAULT
    variants.named(name)
    there = with_walkers(name)
    if not there:
        steps.say(f"there is no instrumented JDK `{name}` yet: building one, which takes a while")
        return building.ensure(Request(variant=name))
    home, record = there[0]
    if not record.source.startswith(debian.PREFIX) and not Path(record.source).exists():
        steps.say(f"{record.source} is gone: using what was built from it, {home}")
        return home
    boot_jdk = Path(record.boot_jdk)
    return building.ensure(
        Request(record.source, boot_jdk if boot_jdk.exists() else None, name, record.collectors)
    )
