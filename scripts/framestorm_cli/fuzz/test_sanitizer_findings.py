"""What sanitizers say of a walker comes out of `fuzz` as findings, with both engines.

The walker is that of a stand-in for a sanitized JDK: a libjvm compiled with ASan and UBSan, which has
a defect of each kind, in front of a stock one (testdata/defective_libjvm.cpp).
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.conftest import TESTDATA
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz.target_process import ENGINES
from framestorm_cli.hotspot import choosing

pytestmark = pytest.mark.long

# What finds each defect: the sanitizer's check, where, and the register that leads a walk there.
DEFECTS = (
    ("heap-buffer-overflow", "read_past_a_block", "sp = real-sp + 2"),
    ("heap-use-after-free", "read_a_freed_block", "fp = misaligned + 1"),
    ("signed-integer-overflow", "add_to_the_largest", "sp = real-sp + 4"),
)
REAL = "libjvm.so.real"  # harness/jvm looks for libjvm's thread-local storage by this name
RECOVER = "-fsanitize-recover=address"
OUTLINED = ("-mllvm", "-asan-instrumentation-with-call-threshold=0")
UBSAN = paths.CHECKOUT / "harness/hotspot/additions/src/hotspot/share/prims/framestorm_ubsan.cpp"


def defective_jdk(home: Path, *flags: str) -> Path:
    """The home of a stand-in. With RECOVER its code goes on after a failed check of ASan's, as that of
    the sanitized JDK's walkers does; else the process is to end, as in the rest of that JDK. With
    OUTLINED it is ASan's functions that check, as in that JDK's largest functions."""
    stock = choosing.choose(None)
    assert stock.include is not None
    server = home / "lib" / "server"
    server.mkdir(parents=True)
    for entry in stock.home.iterdir():
        if entry.name != "lib":
            (home / entry.name).symlink_to(entry)
    for entry in (stock.home / "lib").iterdir():
        if entry.name != "server":
            (home / "lib" / entry.name).symlink_to(entry)
    # Linked against a library of the name by which the stock one is to be found at run time.
    stub = home / REAL
    command = ["clang++-19", "-shared", "-fPIC", "-x", "c++", "/dev/null"]
    subprocess.run([*command, f"-Wl,-soname,{REAL}", "-o", str(stub)], check=True)
    (server / REAL).symlink_to(stock.libjvm)
    command = ["clang++-19", "-shared", "-fPIC", "-O1", "-gline-tables-only", "-std=c++20"]
    command += ["-fno-omit-frame-pointer", "-fvisibility=hidden", "-Wl,--build-id"]
    command += [f"-I{stock.include}", f"-I{stock.include / 'linux'}"]
    command += ["-fsanitize=address,signed-integer-overflow", "-shared-libasan"]
    command += [*flags, str(TESTDATA / "defective_libjvm.cpp"), str(UBSAN)]
    command += ["-Wl,--no-as-needed", str(stub), "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*command, "-o", str(server / "libjvm.so")], check=True)
    return home


def corpus(folder: Path, *registers: str) -> Path:
    """Inputs that set one register each, and one that sets none."""
    folder.mkdir()
    for number, register in enumerate(("", *registers)):
        line = f"register {register}\n" if register else ""
        (folder / f"{number}.txt").write_text(f"framestorm-input 1\nscenario c1\n{line}")
    return folder


def fuzz(home: Path, engine: str, inputs: Path, out: Path, *limit: str) -> Json:
    """summary.json of a short run of one target."""
    command = [str(paths.SCRIPTS / "framestorm"), "fuzz", "--jdk", str(home), "--engine", engine]
    command += ["--target", "fuzz_ucontext", "--scenario", "c1", "--corpus", str(inputs)]
    command += ["--jobs", "1", "--seed", "1", "--verify", "0", "--out", str(out), *limit]
    environment = {name: value for name, value in os.environ.items() if name != "FRAMESTORM_BIN"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=900, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    summary: Json = json.loads((out / "summary.json").read_text())
    return summary


def of_kind(summary: Json, kind: str) -> dict[tuple[str, str], Json]:
    """Buckets by clause and innermost function."""
    signatures = ((bucket["signature"], bucket) for bucket in summary["buckets"])
    return {
        (signature["clause"], signature["frames"][0]): bucket
        for signature, bucket in signatures
        if signature["kind"] == kind and signature["frames"]
    }


def input_of(bucket: Json, out: Path) -> str:
    assert (out / bucket["artifact"]).stat().st_size > 0
    text: str = (out / bucket["text"]).read_text()
    return text


@pytest.mark.parametrize("engine", ENGINES)
def test_each_kind_of_defect_is_reported_by_its_sanitizer(engine: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    inputs = corpus(tmp_path / "inputs", *(register for _, _, register in DEFECTS))
    home = defective_jdk(tmp_path / "jdk", RECOVER)
    summary = fuzz(home, engine, inputs, out, "--runs", "3000")
    found = of_kind(summary, "sanitizer")
    for check, function, register in DEFECTS:
        bucket = found[check, function]
        assert bucket["signature"]["frames"] == [function]
        assert check in bucket["explanation"]
        assert f"register {register[:2]} = " in input_of(bucket, out)
    assert summary["totals"]["deaths"] == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_report_that_ends_the_walk_is_a_finding(engine: str, tmp_path: Path) -> None:
    """Of code that is not to go on. The process does, since ASan had no part in it."""
    out = tmp_path / "out"
    check, function, register = DEFECTS[0]
    inputs = corpus(tmp_path / "inputs", register)
    summary = fuzz(defective_jdk(tmp_path / "jdk"), engine, inputs, out, "--runs", "3000")
    bucket = of_kind(summary, "sanitizer")[check, function]
    assert "0 bytes after 16-byte region" in bucket["explanation"]
    assert "register sp = " in input_of(bucket, out)
    assert summary["totals"]["deaths"] == 0
    assert summary["totals"]["processes"] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_report_with_which_asan_ends_the_process_is_a_finding(
    engine: str, tmp_path: Path
) -> None:
    """ASan's own functions check, and hold its locks: the run goes on in other processes."""
    out = tmp_path / "out"
    check, function, register = DEFECTS[0]
    inputs = corpus(tmp_path / "inputs", register)
    home = defective_jdk(tmp_path / "jdk", *OUTLINED)
    # Enough that some are left when the process ends.
    summary = fuzz(home, engine, inputs, out, "--runs", "60")
    bucket = of_kind(summary, "sanitizer")[check, function]
    assert "0 bytes after 16-byte region" in bucket["explanation"]
    assert "register sp = " in input_of(bucket, out)
    assert summary["totals"]["deaths"] == 0
    assert summary["totals"]["processes"] > 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_report_that_ends_the_process_elsewhere_is_a_finding(engine: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    check, function, _ = DEFECTS[0]
    home = defective_jdk(tmp_path / "jdk", "-DELSEWHERE")
    # The thread only gets to it between two halts, a second after the first walks: a number of walks
    # may be over before. On a busy machine it may not get to run in a few dozen halts.
    inputs = corpus(tmp_path / "inputs")
    summary = fuzz(home, engine, inputs, out, "--seconds", "12")
    if summary["totals"]["deaths"] == 0:
        out = tmp_path / "longer"
        summary = fuzz(home, engine, inputs, out, "--seconds", "90")
    bucket = of_kind(summary, "process_death")[check, function]
    assert f"{check} in {function}" in bucket["explanation"]
    assert "read of 1 bytes" in (out / bucket["report"]).read_text()
    assert input_of(bucket, out).startswith("framestorm-input")
    assert summary["totals"]["deaths"] > 0
