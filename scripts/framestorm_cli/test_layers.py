"""Imports run downwards: packages stand in layers, and within a package there is no circle.

Read from the sources, so that an import inside a function counts as well. Tests and what only they use
(conftest, fakes) may import anything.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import framestorm_cli

ROOT = Path(framestorm_cli.__file__).parent
# From the ground up: a package imports from those above it in this list.
LAYERS = (
    "base",  # errors, paths, set-up steps, the terminal
    "binaries",  # ELF files, symbols, machine code
    "findings",  # what native programs write, and what is attached to it
    "jdks",
    "hotspot",  # builds of instrumented JDKs
    "native",  # native programs and their processes
    "profilers",
    "artifacts",
    "triage",
    "reports",
    "replay",
    "renaissance",
    "fuzz",
    "stress",
    "step",
    "coverage",
    "corpus",
    "experiments",
    "detect",
    "bench",
    "gate",
    "oss_fuzz",
    "jdk",
    "scenarios",
    "doctor",
    "test",
    "main",
)


def _modules() -> dict[str, Path]:
    found = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).with_suffix("").parts
        if not (file.name.startswith("test_") or "conftest" in parts or parts[0] == "fakes"):
            found[".".join(part for part in parts if part != "__init__")] = file
    return found


MODULES = _modules()


def _imports(file: Path) -> set[str]:
    """Modules of this package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        for name in whole:
            package, _, rest = name.partition(".")
            if package == framestorm_cli.__name__ and rest:
                found.add(rest if rest in MODULES else rest.rpartition(".")[0])
    return found


IMPORTS = {name: _imports(file) for name, file in MODULES.items()}


def test_what_is_imported_is_there() -> None:
    """Else the other tests would look past it."""
    assert len(MODULES) > 100
    assert set().union(*IMPORTS.values()) <= set(MODULES)


def test_every_package_has_a_layer() -> None:
    assert {name.partition(".")[0] for name in MODULES if name} == set(LAYERS)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_run_downwards(name: str) -> None:
    def layer(of: str) -> int:
        return LAYERS.index(of.partition(".")[0])

    assert [other for other in IMPORTS[name] if layer(other) > layer(name)] == []


def test_no_circle() -> None:
    try:
        TopologicalSorter(IMPORTS).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(error.args[1])}")
