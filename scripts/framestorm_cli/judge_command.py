"""`framestorm corpus judge` and `framestorm jdk identify`: what ci/pytest asks for."""

import json
import tempfile
from pathlib import Path

import click

from framestorm_cli import jdk as jdks
from framestorm_cli import judging, replaying, steps, toolchain
from framestorm_cli.replay_command import show_case
from framestorm_cli.symbols import Symbolizer
from framestorm_cli.toolchain import NATIVE

EXIT_NO_EXPECTATION = 5


def judge_command(
    *,
    artifact: Path,
    json_path: Path | None,
    limit: float,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    """Exit code 0 when the expectation holds, 1 when not, 5 when there is none for this JDK."""
    tools = toolchain.prepare(jdk)
    expectation = judging.expectation_of(artifact, tools.jdk)
    if expectation is None:
        click.echo(f"{artifact}: nothing is expected of it on JDK {tools.jdk.label}")
        return EXIT_NO_EXPECTATION
    text = replaying.decode(tools.program(NATIVE), artifact)
    with tempfile.TemporaryDirectory(prefix="framestorm-") as folder:
        result = judging.judge(
            tools, Symbolizer(), artifact, expectation, Path(folder),
            jvm_args=jvm_args, limit=limit,
        )  # fmt: skip
        if json_path is not None:
            data = judging.to_json(result, artifact, tools.jdk, text)
            json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    click.echo(f"JDK: {tools.jdk}")
    click.echo(f"input {artifact}:\n{text.rstrip()}\n")
    if result.shown is not None:
        show_case(result.shown)
        click.echo()
    done = f"came back in {result.reproduced} of {len(result.tries)} fresh JVMs"
    click.echo(f"expected: {expectation.status}; {done if expectation.signature else 'replayed'}")
    if result.problem:
        click.echo(f"NOT AS EXPECTED: {result.problem}")
    return 1 if result.problem else 0


def identify_command(*, jdks_given: tuple[Path, ...], prepare: bool) -> int:
    """Prints a JSON list, in the order given."""
    found = []
    for given in jdks_given:
        jdk = jdks.choose(given)
        if prepare:
            steps.say(f"setting up for {jdk}")
            toolchain.prepare(jdk.home)
        found.append(
            {"given": str(given), "home": str(jdk.home), "version": jdk.version, "label": jdk.label}
        )
    click.echo(json.dumps(found))
    return 0
