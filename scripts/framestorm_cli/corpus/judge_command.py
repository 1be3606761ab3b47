"""`framestorm corpus judge`: what ci/pytest asks for."""

import tempfile
from pathlib import Path

import click

from framestorm_cli.artifacts import codec
from framestorm_cli.base import files
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.corpus import judging
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.replay.run import show_finding

EXIT_NO_EXPECTATION = 5


def judge_command(
    *,
    artifact: Path,
    json_path: Path | None,
    limit: float,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    profiler: str | None,
) -> int:
    """Exit code 0 when the expectation holds, 1 when not, 5 when there is none for this JDK."""
    tools = toolchain.prepare(jdk)
    expectation = judging.expectation_of(artifact, tools.jdk)
    if expectation is None:
        click.echo(f"{artifact}: nothing is expected of it on JDK {tools.jdk.label}")
        return EXIT_NO_EXPECTATION
    text = codec.decode(tools.program(NATIVE), artifact)
    with tempfile.TemporaryDirectory(prefix="framestorm-") as folder:
        result = judging.judge(
            tools, Symbolizer(), artifact, expectation, Path(folder),
            jvm_args=jvm_args, profiler=profiler, limit=limit,
        )  # fmt: skip
        if json_path is not None:
            data = judging.to_json(result, artifact, tools.jdk, text)
            files.write_json(json_path, data)
    click.echo(f"JDK: {tools.jdk}")
    click.echo(f"input {artifact}:\n{text.rstrip()}\n")
    if result.shown is not None:
        show_finding(result.shown)
        click.echo()
    done = f"came back in {result.reproduced} of {len(result.tries)} fresh JVMs"
    click.echo(f"expected: {expectation.status}; {done if expectation.signature else 'replayed'}")
    if result.problem:
        click.echo(f"NOT AS EXPECTED: {result.problem}")
    return 1 if result.problem else 0
