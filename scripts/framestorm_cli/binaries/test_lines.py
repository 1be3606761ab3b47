"""Lines and inlined functions of a library that is built for the test."""

import shutil
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.binaries import lines
from framestorm_cli.binaries.symbols import Symbolizer

_SOURCE = """\
static inline __attribute__((always_inline)) int inner(volatile int* at) {
  return *at;
}
int outer(volatile int* at) {
  return inner(at) + 1;
}
"""


@pytest.mark.parametrize("tables", [True, False])
def test_lines_and_what_is_inlined_are_said_where_there_are_tables(
    tmp_path: Path, tables: bool
) -> None:
    compiler = shutil.which("clang-19") or shutil.which("cc")
    assert compiler is not None
    (tmp_path / "walker.c").write_text(_SOURCE)
    library = tmp_path / "walker.so"
    wanted = ["-g"] if tables else ["-g0"]
    subprocess.run(
        [compiler, "-O1", *wanted, "-shared", "-fPIC", "-o", library, tmp_path / "walker.c"],
        check=True,
    )
    modules = {"walker.so": str(library)}
    symbolizer = Symbolizer()
    start, _ = symbolizer.module(library).ranges("outer")[0]
    frames = [symbolizer.frame(f"walker.so+0x{start:x}", modules, is_return=False)]
    frames.append(symbolizer.frame("[heap]", modules, is_return=True))
    found = lines.of_stack(frames, modules, first_is_return=False)
    if not tables:
        assert found == [[], []]
        return
    name = f"{tmp_path.name}/walker.c"
    assert found == [[f"inner at {name}:2, inlined", f"outer at {name}:5"], []]
