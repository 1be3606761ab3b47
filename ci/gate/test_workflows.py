"""The example workflows: legal by GitHub's and GitLab's schemas, and calling commands that exist."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from framestorm_cli import main

FOLDER = Path(__file__).parent
GITHUB = sorted(FOLDER.glob("github-*.yml"))
GITLAB = sorted(FOLDER.glob("gitlab-*.yml"))


def test_there_are_workflows() -> None:
    assert (len(GITHUB), len(GITLAB)) == (2, 1)


@pytest.mark.parametrize("file", [*GITHUB, *GITLAB], ids=lambda file: str(file.name))
def test_legal_by_its_schema(file: Path) -> None:
    schema = ["vendor.github-workflows"] if file in GITHUB else ["vendor.gitlab-ci"]
    more = [] if file in GITHUB else ["--data-transform", "gitlab-ci"]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, *more]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [*GITHUB, *GITLAB], ids=lambda file: str(file.name))
def test_its_commands_are_some(file: Path) -> None:
    text = re.sub(r"\s*\\?\n\s+", " ", file.read_text(encoding="utf-8"))
    found = re.findall(r"scripts/framestorm (\w+)((?: --[\w-]+ \S+)*)", text)
    assert found
    for name, options in found:
        command = main.framestorm.commands[name]
        assert isinstance(command, click.Command)
        known = {option for one in command.params for option in one.opts}
        assert set(re.findall(r"--[\w-]+", options)) <= known
        assert "--out" in options
