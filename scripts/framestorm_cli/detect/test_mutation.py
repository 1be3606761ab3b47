"""Mutants of a small program, each compiled and run: what it is said to do is what it does."""

import os
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect import canary, catalogue, mutation
from framestorm_cli.detect.canary import Canary
from framestorm_cli.detect.mutation import (
    DELETED,
    NOTHING,
    OFF_BY_ONE,
    STATEMENT,
    TURNED,
    Mutant,
    Mutator,
)

SOURCE = """\
#include <cstdio>
#include <initializer_list>
#define IS_ODD(x) ((x) % 2 == 1)
namespace {
struct Bounds { int low, high; bool holds(int x) const { return x >= low && x < high; } };
}
struct frame { static int judge(int x); };
int frame::judge(int x) {
  static_assert(sizeof(x) == 4, "of the compiler's business");
  if (x == 7) return 100;
  if (IS_ODD(x)) { x += 10; }
  Bounds bounds{0, 5};
  if (!bounds.holds(x)) {
    return -1;
  }
  return x;
}
int often(int x) { int asked = 0; return ++asked > x || ++asked > x ? asked : -asked; }
int other(int x) { return x < 3 ? 1 : 2; }
int main() {
  for (int x : {-1, 0, 1, 2, 4, 5, 7}) std::printf("%d ", frame::judge(x));
  std::printf("%d %d", other(3), often(2));
}
"""
FUNCTIONS = {"frame::judge", "(anonymous namespace)::Bounds::holds", "often"}
ORIGINAL = "-1 0 -1 2 4 -1 100 2 -2"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Mutant]]:
    return _compiled(tmp_path_factory.mktemp("mutation"), SOURCE, Mutator(FUNCTIONS))


def _compiled(folder: Path, text_of_it: str, mutator: Mutator) -> tuple[Path, list[Mutant]]:
    source = folder / "program.cpp"
    source.write_text(text_of_it)
    text = mutator.mutated(source, "program.cpp", ["-std=c++14"])
    assert text is not None
    mutated = folder / "mutated.cpp"
    mutated.write_text(text)
    canary = catalogue.FOLDER / "canary" / "src" / "hotspot" / "share"
    subprocess.run(
        ["clang++-19", f"-I{canary}", str(mutated), str(canary / "utilities" / "framestorm_canary.cpp"),
         "-o", str(folder / "program")],
        check=True,
    )  # fmt: skip
    return folder / "program", mutator.mutants


def output(program: Path, number: int) -> str:
    environment = {**os.environ, "FRAMESTORM_MUTANT": str(number)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_with_no_mutant_in_force_it_is_the_program_it_was(
    program: tuple[Path, list[Mutant]],
) -> None:
    assert output(program[0], 0) == ORIGINAL


@pytest.mark.parametrize(
    ("line", "rule", "becomes", "wanted"),
    [
        (10, TURNED, "x != 7", "100 100 100 100 100 100 -1 2 -2"),
        (10, DELETED, "false", "-1 0 -1 2 4 -1 -1 2 -2"),
        (13, DELETED, "false", "-1 0 11 2 4 15 100 2 -2"),
        (5, OFF_BY_ONE, "x > low", "-1 -1 -1 2 4 -1 100 2 -2"),
        (5, OFF_BY_ONE, "x <= high", ORIGINAL),
        (5, DELETED, "x < high", "-1 0 -1 2 4 -1 100 2 -2"),
        (5, DELETED, "x >= low", "-1 0 11 2 4 15 100 2 -2"),
        (5, TURNED, "x < low", "-1 -1 -1 -1 -1 -1 100 2 -2"),
    ],
)
def test_a_mutant_does_what_is_said_of_it(
    program: tuple[Path, list[Mutant]], line: int, rule: str, becomes: str, wanted: str
) -> None:
    (one,) = [m for m in program[1] if (m.line, m.rule, m.becomes) == (line, rule, becomes)]
    assert output(program[0], one.number) == wanted


def test_where_none_is_in_force_it_is_said_which_would_have_acted(
    program: tuple[Path, list[Mutant]], tmp_path: Path
) -> None:
    file = tmp_path / "canary"
    canary.prepare(file)
    environment = {**os.environ, "FRAMESTORM_MUTANT": "-1", canary.VARIABLE: str(file)}
    done = subprocess.run([program[0]], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ORIGINAL
    acts = canary.read_mutants(file)
    counted = {(m.line, m.rule, m.becomes): acts.get(m.number, (0, 0)) for m in program[1]}
    assert counted[10, TURNED, "x != 7"] == (7, 7)
    assert counted[10, DELETED, "false"] == (1, 1)
    # 5 becomes 15 before it is compared: no value is at the upper bound, and one is at the lower.
    assert counted[5, OFF_BY_ONE, "x <= high"] == (2, 0)
    assert counted[5, OFF_BY_ONE, "x > low"] == (5, 1)
    assert canary.read(file) == Canary(0, 0, None)


def test_macros_constants_and_other_functions_are_left_alone(
    program: tuple[Path, list[Mutant]],
) -> None:
    assert {one.line for one in program[1]} == {5, 10, 13, 18}
    assert [one.number for one in program[1]] == list(range(1, len(program[1]) + 1))
    assert {one.function for one in program[1]} == FUNCTIONS


STATEMENTS = """\
#include <cstdio>
#include <string>
void note(std::string* to, const char* word) { *to = *to + word; }
int walk(int x) {
  std::string words;
  if (x > 2) note(&words, "many ");
  else x = 8;
  x++;
  if (int twice = x * 2; twice > 8) { x -= 3; }
  [&] { words = words + "end"; }();
  std::printf("%s%d ", words.c_str(), x);
  return x;
}
int main() { for (int x : {1, 4}) walk(x); }
"""


def test_each_statement_is_deleted(tmp_path: Path) -> None:
    program, mutants = _compiled(tmp_path, STATEMENTS, Mutator({"walk"}, statements=True))
    assert output(program, 0) == "end6 many end2 "
    assert {one.rule for one in mutants} == {STATEMENT}
    assert {one.becomes for one in mutants} == {NOTHING}
    assert {one.was.split("(")[0]: output(program, one.number) for one in mutants} == {
        "note": "end6 end2 ",
        "x = 8": "end2 many end2 ",
        "x++": "end5 many end4 ",
        "x -= 3": "end9 many end5 ",
        '[&] { words = words + "end"; }': "6 many 2 ",
        'words = words + "end"': "6 many 2 ",
        "std::printf": "",
    }


def test_a_file_without_such_functions_has_no_text(tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(SOURCE)
    assert Mutator({"frame::sender"}).mutated(source, "program.cpp", ["-std=c++14"]) is None


def test_a_file_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text("int frame() { return missing; }")
    with pytest.raises(FramestormError, match="does not compile"):
        Mutator({"frame"}).mutated(source, "program.cpp", [])


def test_what_make_keeps_of_a_command() -> None:
    line = (
        "CCACHE_DIR=/c /usr/bin/ccache /usr/bin/clang++-19 -MMD -MF /o/frame.d.tmp -fpch-preprocess "
        "-include-pch /o/p.pch -DA='\"b c\"' -frandom-seed=frame.cpp -c -o /o/frame.o /s/frame.cpp"
    )
    assert mutation.arguments_of(line) == ['-DA="b c"', "-frandom-seed=frame.cpp"]
