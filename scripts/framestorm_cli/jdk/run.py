"""`framestorm jdk build`, `list`, `path`, `clean`, `identify`, and what `--jdk instrumented` means."""

import json
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import additions, building, choosing, variants
from framestorm_cli.hotspot.building import Request
from framestorm_cli.hotspot.errors import writing
from framestorm_cli.jdks import store
from framestorm_cli.native import toolchain


def build_command(
    *,
    source: str,
    boot_jdk: Path | None,
    variant: str,
    gcs: tuple[str, ...],
    jobs: int | None,
) -> int:
    """Prints the finished JDK's path."""
    home = building.ensure(Request(source, boot_jdk, variant, gcs, jobs))
    click.echo(str(home))
    return 0


def list_command() -> int:
    """One line per finished JDK."""
    found = store.finished()
    if not found:
        click.echo("no instrumented JDK yet; `scripts/framestorm jdk build` makes one", err=True)
        return 0
    table = Table(box=None, pad_edge=False)
    for title in ("variant", "version", "source", "collectors", "built", "MiB", "path"):
        table.add_column(title, overflow="fold", justify="right" if title == "MiB" else "left")
    for home, record in found:
        table.add_row(
            record.variant,
            record.version,
            record.source,
            ", ".join(record.collectors),
            f"{datetime.fromtimestamp(record.built):%Y-%m-%d %H:%M}",
            f"{store.size_of(home) >> 20}",
            str(home),
        )
    console = Console()
    if not console.is_terminal:
        console.width = 240
    console.print(table)
    return 0


def path_command(variant: str) -> int:
    """Prints the home of the JDK of this variant that was last built or used."""
    variants.named(variant)
    found = choosing.with_walkers(variant)
    if not found:
        raise FramestormError(
            f"there is no instrumented JDK `{variant}`: `scripts/framestorm jdk build --variant {variant}` "
            "makes one"
        )
    click.echo(str(found[0][0]))
    return 0


def clean_command(*, everything: bool) -> int:
    """Removes JDKs and build trees; with `everything` the downloads and compiled objects too."""
    cache = store.folder()
    freed = 0
    with writing(cache):
        trees = cache / "trees"
        for tree in _links_first(trees):
            with steps.locked(f"jdk-{tree.name}", "building this JDK"):
                # Behind a link within the folder is what is built under the link's name and lock.
                behind = tree.resolve()
                freed += store.remove(
                    [behind, tree] if behind.parent == trees.resolve() else [tree]
                )
        freed += store.remove([store.homes(), cache / "bases", trees])
        if everything:
            freed += store.remove([cache])
    click.echo(f"freed {freed >> 20} MiB below {cache}")
    return 0


def _links_first(trees: Path) -> list[Path]:
    found = sorted(trees.iterdir()) if trees.is_dir() else []
    return sorted(found, key=lambda tree: not tree.is_symlink())


def identify_command(*, jdks_given: tuple[Path, ...], prepare: bool) -> int:
    """What ci/pytest asks for: prints a JSON list, in the order given."""
    found = []
    for given in jdks_given:
        jdk = choosing.choose(given)
        if prepare:
            steps.say(f"setting up for {jdk}")
            toolchain.prepare(jdk.home)
        found.append(
            {"given": str(given), "home": str(jdk.home), "version": jdk.version, "label": jdk.label}
        )
    click.echo(json.dumps(found))
    return 0


def state() -> list[tuple[str, str]]:
    """For `doctor`: variant, and what there is of it."""
    found = []
    for name in variants.VARIANTS:
        there = choosing.with_walkers(name)
        if there:
            home, record = there[0]
            found.append((name, f"JDK {record.version} from {record.source} ({paths.shown(home)})"))
        else:
            found.append((name, ""))
    return found


def missing_files() -> list[Path]:
    """What harness/hotspot lacks of the files a build reads."""
    needed = [additions.FOLDER / "edits.toml", additions.FOLDER / "additions"]
    needed += [path for v in variants.VARIANTS.values() for path in variants.flag_files(v).values()]
    return [path for path in dict.fromkeys(needed) if not path.exists()]
