"""The launcher, with a package of its own in place of the CLI."""

import ast
import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base import paths


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A scripts folder whose CLI prints its arguments, and which pins nothing."""
    folder = tmp_path / "scripts"
    (folder / "framestorm_cli").mkdir(parents=True)
    for name in ("framestorm", "launch.py"):
        shutil.copy(paths.SCRIPTS / name, folder / name)
    (folder / "requirements.txt").write_text("# nothing\n")
    (folder / "requirements-plots.txt").write_text("# nothing more\n")
    (folder / "requirements-test.txt").write_text("# and nothing more\n")
    (folder / "framestorm_cli" / "__init__.py").write_text("")
    cli = "import os, sys\n\ndef main():\n    print(sys.prefix, sys.argv[1:])\n    sys.exit(7)\n"
    (folder / "framestorm_cli" / "main.py").write_text(cli)
    return folder


def start(scripts: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(scripts / "framestorm"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FRAMESTORM_CACHE": str(scripts.parent / "cache"), **environment},
    )


def test_first_start_second_start_and_changed_pins(scripts: Path, tmp_path: Path) -> None:
    # Two at once: one creates the environment, the other waits for it.
    both = [start(scripts, "a", "b c"), start(scripts, "a", "b c")]
    results = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [7, 7]
    assert all("['a', 'b c']" in out for out, _ in results)
    assert all(str(tmp_path / "cache" / "venv-") in out for out, _ in results)
    said = "".join(err for _, err in results)
    assert said.count("creating the Python environment") == 1

    again = start(scripts)
    assert again.communicate(timeout=60)[1] == ""

    (scripts / "requirements.txt").write_text("# other pins\n")
    changed = start(scripts)
    assert "creating the Python environment" in changed.communicate(timeout=300)[1]
    assert len(list((tmp_path / "cache").glob("venv-*/ready"))) == 2


def test_what_plots_and_tests_need_is_installed_for_them(scripts: Path) -> None:
    """And what they have is used by every command from then on."""
    used = []
    for command in ("fuzz", "detect", "fuzz", "test", "detect"):
        out, _ = start(scripts, command).communicate(timeout=300)
        used.append(out.split()[0])
    assert len(set(used)) == 3
    assert (used[1], used[3]) == (used[2], used[4])


def test_commands_that_plot_are_known() -> None:
    """Those of packages with a module that imports what only plots need."""
    pins = (paths.SCRIPTS / "requirements-plots.txt").read_text().splitlines()
    plots = {pin.split("==")[0] for pin in pins if "==" in pin}
    packages = {
        module.parent.name
        for module in (paths.SCRIPTS / "framestorm_cli").glob("*/*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
        if name.split(".")[0] in plots
    }
    commands = {
        command.name
        for package in packages
        for command in importlib.import_module(f"framestorm_cli.{package}.commands").COMMANDS
    }
    (known,) = re.findall(r"^PLOTTING = (.*)$", (paths.SCRIPTS / "launch.py").read_text(), re.M)
    tables_only = {"truth", "truth-cost"}
    assert commands - tables_only == set(ast.literal_eval(known))


def test_pins_that_cannot_be_had(scripts: Path) -> None:
    (scripts / "requirements.txt").write_text("no-such-package-of-framestorm==1\n")
    failed = start(scripts, PIP_NO_INDEX="1")
    _, err = failed.communicate(timeout=300)
    assert failed.returncode == 2
    assert "could not create the Python environment" in err
    assert "venv.log" in err


def test_a_cache_that_cannot_be_written(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed = start(scripts, FRAMESTORM_CACHE=str(tmp_path / "file" / "cache"))
    _, err = failed.communicate(timeout=60)
    assert failed.returncode == 2
    assert "cannot write the cache folder" in err


def test_a_full_disk_below_the_cache(scripts: Path) -> None:
    launcher = scripts / "launch.py"
    launcher.write_text(launcher.read_text().replace("ROOM = 450 << 20", "ROOM = 1 << 60"))
    failed = start(scripts)
    _, err = failed.communicate(timeout=60)
    assert failed.returncode == 2
    assert "MiB of free disk" in err
    assert "FRAMESTORM_CACHE" in err
