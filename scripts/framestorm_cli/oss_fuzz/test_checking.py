"""The check of a built $OUT, on targets that are good or bad in one way each."""

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import Run as Cli
from framestorm_cli.conftest import compile_library
from framestorm_cli.oss_fuzz import checking, runner
from framestorm_cli.oss_fuzz.checking import BadBuildError, Build

_LIBFUZZER = Build("libfuzzer", "address")
_WALKER = """
struct AsyncStackWalker { struct Frame { int x; }; bool next(Frame*); };
__attribute__((used, noinline)) bool AsyncStackWalker::next(Frame* frame) { return frame->x == 7; }
"""
# A target that does what the check looks for, and with BAD one thing otherwise.
_TARGET = r"""#!/bin/sh
# LLVMFuzzerTestOneInput
here=$(dirname "$0")
runs=0 prefix= files=0 input=
for argument in "$@"; do
  case $argument in
    -runs=*) runs=${argument#-runs=};;
    -artifact_prefix=*) prefix=${argument#-artifact_prefix=};;
    -*) ;;
    *) if [ -d "$argument" ]; then files=$(ls "$argument" | wc -l); else input=$argument; fi;;
  esac
done
planted() { [ "$(basename "$here")" = planted ]; }
[ "$BAD" = environment ] || case $ASAN_OPTIONS in *use_sigaltstack=1*) ;; *) exit 9;; esac
[ "$BAD" != start ] || exit 1
[ "$BAD" != writes ] || echo x >> "$here/framestorm/arguments"
if planted && [ "$BAD" != survives ]; then
  echo "==1== ERROR: libFuzzer: deadly signal"
  [ "$BAD" = nameless ] || name='AsyncStackWalker::next(AsyncStackWalker::Frame*)'
  echo "    #0 0x7f00 in ${name:-??} ($here/framestorm/jdk/lib/server/libjvm.so+0x12)"
  if [ -n "$prefix" ]; then
    echo x > "${prefix}crash-1"
    [ "$BAD" != litters ] || echo x > "${prefix}crash-2"
    echo "Test unit written to ${prefix}crash-1"
  elif [ "$BAD" = forgets ]; then exit 0
  fi
  exit 77
fi
if [ -n "$input" ]; then
  echo "Executed $input in 1 ms"
  [ "$BAD" != always ] || exit 77
  exit 0
fi
[ "$BAD" = counters ] || echo "INFO: Loaded 1 modules   (37732 inline 8-bit counters): 37732 [0x1, 0x2),"
[ "$BAD" = seeds ] || echo "INFO: seed corpus: files: $files min: 1b"
covered=815; [ "$BAD" != covers ] || covered=3
echo "#$runs DONE   cov: $covered ft: 2504 corp: 122/2954b"
echo "Done $runs runs in 0 second(s)"
"""


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good $OUT with one target."""
    out = tmp_path / "out"
    server = out / "framestorm" / "jdk" / "lib" / "server"
    compile_library(_WALKER, server / "libjvm.so")
    (server / "classes.jsa").write_text("archive")
    (out / "framestorm" / "arguments").write_text("--walker\nasgst\n")
    (out / "fuzz_stack").write_text(_TARGET)
    (out / "fuzz_stack").chmod(0o755)
    (out / "fuzz_stack.dict").write_text("")
    with zipfile.ZipFile(out / "fuzz_stack_seed_corpus.zip", "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("b", b"2")
    calls = "call 10 <__asan_report_load8@plt>\n" * 1000
    monkeypatch.setattr(checking, "_disassembly", lambda _: calls)
    return out


def check(out: Path, capsys: pytest.CaptureFixture[str], bad: str = "") -> tuple[int, str]:
    program = out / "fuzz_stack"
    program.write_text(program.read_text().replace("here=$(", f"BAD={bad}\nhere=$(", 1))
    capsys.readouterr()
    code = checking.check_command(out, ["fuzz_stack"], _LIBFUZZER, 1000)
    return code, capsys.readouterr().out


def test_a_good_build(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (bundle / "framestorm" / "jdk" / "lib" / "server" / "libjvm.so").read_bytes()
    code, said = check(bundle, capsys)
    assert code == 0, said
    assert "fuzz_stack: good: 37732 edges, cov 815 after 1000 runs" in said
    assert "planted fault found, named, replayed, 2 seeds" in said
    assert (bundle / "framestorm/jdk/lib/server/libjvm.so").read_bytes() == before


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("start", "does not start"),
        ("counters", "not instrumented for coverage"),
        ("seeds", "does not load its seeds"),
        ("covers", "covers next to nothing"),
        ("survives", "does not die of a planted fault"),
        ("nameless", "does not name the walker's function"),
        ("litters", "no artifact, or more than one"),
        ("forgets", "its artifact shows nothing"),
        ("always", "kills it without that fault"),
    ],
)
def test_a_bad_build(
    bundle: Path, capsys: pytest.CaptureFixture[str], bad: str, words: str
) -> None:
    code, said = check(bundle, capsys, bad)
    assert code == 1
    assert re.search(rf"fuzz_stack: BAD BUILD: .*{words}", said), said


def test_a_target_cannot_write_into_out(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bundle / "framestorm" / "arguments").chmod(0o666)
    code, said = check(bundle, capsys, "writes")
    assert code == 0, said  # it tried
    assert (bundle / "framestorm" / "arguments").read_text() == "--walker\nasgst\n"


def test_a_missing_target(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert checking.check_command(bundle, ["fuzz_call"], _LIBFUZZER, 4) == 1
    assert "fuzz_call: BAD BUILD: there is no such program" in capsys.readouterr().out


def test_a_libjvm_without_the_step_cannot_be_judged(bundle: Path) -> None:
    compile_library("int x() { return 1; }", bundle / "framestorm/jdk/lib/server/libjvm.so")
    with (
        pytest.raises(FramestormError, match="planted fault has to follow"),
        runner.moved(bundle) as place,
        runner.planted(place),
    ):
        pass


def test_moved_is_read_only_for_another_user(bundle: Path) -> None:
    with runner.moved(bundle) as place:
        script = "id -un; touch here 2>/dev/null; echo $?; touch $TMPDIR/there; echo $?"
        run = place.run(["sh", "-c", script], 60)
        user, here, there = run.text.split()
        assert (here, there) == ("1", "0")
        assert user == ("nobody" if os.geteuid() == 0 else user)
        out = place.out
    assert not out.exists()


def test_a_run_that_does_not_end_is_ended(bundle: Path) -> None:
    with runner.moved(bundle) as place:
        assert place.run(["sleep", "1000"], 0.2).code == 124


def test_calls_of_sanitizers() -> None:
    asan, ubsan = "call 1 <__asan_x>\n", "callq 1 <__ubsan_x>\n"
    checking.check_calls(asan * 1000 + ubsan * 200, Build("libfuzzer", "address"))
    checking.check_calls(ubsan * 168, Build("libfuzzer", "undefined"))
    for build, text in (
        (Build("libfuzzer", "address"), asan * 999),
        (Build("afl", "address"), asan * 999),
        (Build("libfuzzer", "address"), asan * 1000 + ubsan * 201),
        (Build("libfuzzer", "undefined"), ubsan * 167),
        (Build("libfuzzer", "undefined"), ubsan * 168 + asan),
    ):
        with pytest.raises(BadBuildError):
            checking.check_calls(text, build)


def test_the_planted_instruction_is_executed(tmp_path: Path) -> None:
    """Where it is planted is where the function is."""
    out = tmp_path / "out"
    library = out / "framestorm" / "jdk" / "lib" / "server" / "libjvm.so"
    compile_library(_WALKER, library, "-Wl,-soname,libjvm.so")
    caller = tmp_path / "caller.cpp"
    caller.write_text(
        "struct AsyncStackWalker { struct Frame { int x; }; bool next(Frame*); };\n"
        "int main() { AsyncStackWalker::Frame f{7}; return AsyncStackWalker{}.next(&f) ? 0 : 1; }\n"
    )
    program = tmp_path / "caller"
    subprocess.run(
        ["clang++-19", str(caller), str(library), "-Wl,-rpath,$ORIGIN", "-o", str(program)],
        check=True,
    )
    with runner.moved(out) as place, runner.planted(place) as faulty:
        for moved, code in ((place, 0), (faulty, -4)):
            folder = place.new_folder(f"caller{code}")
            shutil.copy2(program, folder)
            shutil.copy2(moved.out / library.relative_to(out), folder)
            assert subprocess.run([str(folder / "caller")], check=False).returncode == code


def test_what_is_checked_is_what_was_built(
    framestorm: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Build] = []

    def check(out: Path, targets: object, build: Build, runs: int) -> int:
        asked.append(build)
        return 0

    monkeypatch.setattr(checking, "check_command", check)
    for name in ("FUZZING_ENGINE", "SANITIZER"):
        monkeypatch.delenv(name, raising=False)
    framestorm("oss-fuzz", "check", tmp_path)
    monkeypatch.setenv("FUZZING_ENGINE", "afl")
    monkeypatch.setenv("SANITIZER", "undefined")
    framestorm("oss-fuzz", "check", tmp_path)
    framestorm("oss-fuzz", "check", tmp_path, "--engine", "none")
    assert asked == [_LIBFUZZER, Build("afl", "undefined"), Build("none", "undefined")]
