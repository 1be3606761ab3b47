"""The real agent, workloads and JDK, briefly. A machine with other work on it delivers no rate: that, and
nothing else, these runs may say they are not to be believed for."""

import json
import os
import resource
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.conftest import compile_library, planted_library
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.renaissance.test_renaissance import MANIFEST, metadata
from framestorm_cli.stress import flames, jfr
from framestorm_cli.stress.conftest import read_summary

pytestmark = pytest.mark.long

_RATE = "rate too low"
_RENAISSANCE = paths.SCRIPTS / "framestorm_cli" / "renaissance" / "FakeRenaissance.java"


@pytest.fixture(scope="module")
def jdk() -> Jdk:
    return choosing.choose(None, may_install=False)


def run(
    jdk: Jdk, out: Path, *arguments: str | Path, truth: bool = False
) -> tuple[int, dict[str, Any], str]:
    command = [str(paths.SCRIPTS / "framestorm"), "stress", "--jdk", str(jdk.home), "--seed", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "FRAMESTORM_BIN"}
    done = subprocess.run(
        [*command, *([] if truth else ["--no-truth"]), "--out", str(out), *map(str, arguments)],
        capture_output=True, text=True, env=environment, timeout=900, check=False,
    )  # fmt: skip
    assert (out / "summary.json").exists(), done.stderr
    data = read_summary(out)
    other = [problem for problem in data["problems"] if not problem.startswith(_RATE)]
    assert not other, done.stderr
    new = any(not one["known"] for one in data["buckets"])
    wanted = 1 if new else 2 if data["problems"] else 0
    assert (done.returncode, data["exit"]) == (wanted, wanted)
    return done.returncode, data, done.stdout


def test_ground_truth_beside_the_plain_program(jdk: Jdk, tmp_path: Path) -> None:
    chosen = ("--workload", "method-handles", "--mode", "same-thread")
    # C2 comes to the workload's own methods after some 300 iterations. How many fit into a time
    # depends on what else runs.
    _, data, printed = run(jdk, tmp_path / "out", *chosen, "--iterations", "2000", truth=True)
    judged = {cell["plain"]: cell["figures"]["truth"] for cell in data["cells"]}
    assert judged[True] is None
    (walker,) = judged[False]["walkers"]
    assert walker["judged"] > 100
    assert "truth, asgct:" in printed
    (distortion,) = data["distortion"]
    assert distortion["compiled"]["trials"] > 0
    assert distortion["inlined"]["trials"] > 0
    assert distortion["work"] > 0


def test_queued_samples_are_of_what_the_timer_interrupted(jdk: Jdk, tmp_path: Path) -> None:
    chosen = ("--workload", "javac", "--mode", "queued", "--interval", "1ms", "--walker", "asgct")
    _, data, _ = run(jdk, tmp_path / "out", *chosen, "--duration", "10s", truth=True)
    (truth,) = (cell["figures"]["truth"] for cell in data["cells"] if not cell["plain"])
    (walker,) = truth["walkers"]
    # Of threads that were halted in the timer's handler a quarter had lost their innermost frames.
    assert walker["wrong"]["trials"] > 100
    assert walker["wrong"]["rate"] < 0.05


def test_both_modes(jdk: Jdk, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _, data, printed = run(jdk, out, "--workload", "exceptions", "--duration", "5s")
    assert {cell["mode"] for cell in data["cells"]} == {"same-thread", "separate-thread"}
    for cell in data["cells"]:
        assert cell["verdict"] in ("clean", "short traces", "findings")
        assert cell["samples"] > 100
        assert cell["work"]["name"] == "exceptions"
        for check in ("contract", "signal-safety"):
            assert cell["figures"]["checks"][check]["made"] == cell["samples"]
        assert cell["latency_ns"]["asgct"]["count"] > 0
        folded = out / cell["folder"] / "agent" / flames.FOLDED
        assert "framestorm.workloads.Exceptions" in folded.read_text()
    assert "framestorm.workloads.Exceptions" in (out / "report.html").read_text()
    assert f"{data['totals']['samples']:,} walks in 2 of 2 cells" in printed


def test_a_sanitized_jdk(tmp_path: Path) -> None:
    there = choosing.with_walkers("sanitized")
    if not there:
        pytest.skip("the cache has no sanitized JDK")
    home, _ = there[0]
    arguments = ("--workload", "exceptions", "--walker", "asgst", "--duration", "8s")
    _, data, _ = run(jdks.validate(home), tmp_path / "out", *arguments)
    assert {cell["mode"] for cell in data["cells"]} == {"same-thread", "separate-thread"}
    for cell in data["cells"]:
        assert cell["samples"] > 0
        for check in ("sanitizer", "signal-safety"):
            assert cell["figures"]["checks"][check]["made"] == cell["samples"]


def test_a_running_thread(jdk: Jdk, tmp_path: Path) -> None:
    """AsyncGetCallTrace writes to the stack that it walks (corpus/crashes,
    entry-frame-walk-writes-call-wrapper): a program that runs on may die of it, which is a finding."""
    arguments = ("--workload", "exceptions", "--mode", "unstopped", "--duration", "6s")
    _, data, _ = run(jdk, tmp_path / "out", *arguments)
    (cell,) = data["cells"]
    assert cell["verdict"] in ("clean", "short traces", "findings", "crash")
    if cell["verdict"] != "crash":
        assert cell["samples"] > 100
        assert cell["figures"]["checks"]["fault"]["made"] == cell["samples"]


def test_longer_versions_of_methods_are_no_finding(jdk: Jdk, tmp_path: Path) -> None:
    arguments = ("--workload", "class-redefinition", "--mode", "same-thread", "--duration", "16s")
    _, data, _ = run(jdk, tmp_path / "out", *arguments)
    (cell,) = data["cells"]
    assert cell["work"]["work"]["redefinitions"] > 100
    for bucket in data["buckets"]:
        clauses = {one["clause"] for one in (bucket["signature"], *bucket["merged_signatures"])}
        assert "bci-out-of-range" not in clauses


def test_ids_that_are_none_are_found(jdk: Jdk, tmp_path: Path) -> None:
    """docs/reference/stress-findings.md: InstanceKlass::jmethod_id_or_null reads past its array."""
    if not jdk.version.startswith("25.0.3"):
        pytest.skip(f"of {jdk.label} it is not known whether it gives such IDs")
    arguments = ("--workload", "class-redefinition", "--walker", "asgct", "--duration", "10s")
    _, data, _ = run(jdk, tmp_path / "out", *arguments)
    found = [one for one in data["buckets"] if one["signature"]["clause"] == "method-unresolved"]
    assert sum(bucket["count"] for bucket in found) > 1


@pytest.mark.parametrize(
    ("planted", "kind", "frame"),
    [
        (1, "fault", "planted_fault"),
        (2, "hang", "planted_hang"),
        (3, "contract", ""),
        (4, "unsafe_call", "planted_lock"),
    ],
    ids=["crash", "hang", "wrong frame", "lock"],
)
def test_what_is_planted_is_found_and_harms_nobody(
    jdk: Jdk, tmp_path: Path, planted: int, kind: str, frame: str
) -> None:
    plugin = planted_library(
        "planted_walker.c", jdk, tmp_path, f"-DPLANTED={planted}", "-DEVERY=400"
    )
    out = tmp_path / "out"
    arguments = ("--workload", "exceptions", "--mode", "same-thread", "--duration", "3s")
    _, data, _ = run(jdk, out, *arguments, "--walker-plugin", plugin)
    (cell,) = data["cells"]
    assert cell["verdict"] == "findings"
    assert cell["walker"] == "plugin"
    assert cell["work"]["iterations"] > 0  # the program went on to its end
    kinds = {bucket["signature"]["kind"] for bucket in data["buckets"]}
    # The planted lock is kept, too.
    assert kinds == ({kind, "contract"} if frame == "planted_lock" else {kind})
    if kind == "contract":
        clauses = {bucket["signature"]["clause"] for bucket in data["buckets"]}
        assert "disagrees-with-asgct" in clauses
    if frame:
        assert {bucket["signature"]["frames"][0] for bucket in data["buckets"]} == {frame}
        counts = [bucket["count"] for bucket in data["buckets"]]
        assert kind == "unsafe_call" or counts == [data["totals"]["contained"]]
    for bucket in data["buckets"]:
        assert any(name.endswith(".sample") for name in bucket["files"])
        done = subprocess.run(
            ["sh", str(out / bucket["repro"])], cwd=tmp_path, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        again = (tmp_path / "framestorm-repro-out" / "agent" / "findings.jsonl").read_text()
        kinds = {json.loads(line).get("kind") for line in again.splitlines()}
        assert bucket["signature"]["kind"] in kinds


@pytest.fixture(scope="module")
def ends_badly(jdk: Jdk, tmp_path_factory: pytest.TempPathFactory) -> str:
    """`class:` and what follows, up to how it ends."""
    folder = tmp_path_factory.mktemp("classes")
    source = paths.SCRIPTS / "framestorm_cli" / "stress" / "EndsBadly.java"
    assert jdk.javac is not None
    subprocess.run([str(jdk.javac), "-nowarn", "-d", str(folder), str(source)], check=True)
    return f"class:-cp {folder} EndsBadly"


def files_of(data: dict[str, Any], out: Path) -> dict[str, str]:
    """What the one bucket has, by name."""
    (bucket,) = data["buckets"]
    files = [out / name for name in bucket["files"]]
    return {file.name: file.read_text(errors="replace") for file in files}


def test_a_jvm_that_dies_leaves_hs_err_and_the_stacks_of_its_core(
    jdk: Jdk, tmp_path: Path, ends_badly: str
) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern not in ("core", "core.%p"):
        pytest.skip(f"cores go elsewhere here: {pattern}")
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    if limits[1] == 0:
        pytest.skip("cores are forbidden here")
    out = tmp_path / "out"
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    try:
        arguments = ("--workload", f"{ends_badly} crash", "--mode", "same-thread")
        code, data, _ = run(jdk, out, *arguments, "--duration", "60s")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    assert code == 1
    assert data["cells"][0]["verdict"] == "crash"
    assert data["totals"]["walk_crashes"]["hits"] == 0, "it was in no walk"
    files = files_of(data, out)
    (hs_err,) = (text for name, text in files.items() if name.startswith("hs_err"))
    assert "EndsBadly.main" in hs_err
    assert "JavaMain" in files["core-stacks.txt"]
    report = (out / "buckets" / "b01" / "report.md").read_text()
    assert "EndsBadly.main" in report
    assert "core-stacks.txt" in report


def test_a_jvm_that_does_not_end_leaves_its_stacks(
    jdk: Jdk, tmp_path: Path, ends_badly: str
) -> None:
    matrix = tmp_path / "m.toml"
    # At an interval that slows no program down.
    matrix.write_text(
        f'workloads = ["{ends_badly} hang"]\nmodes = ["same-thread"]\nintervals = ["1ms"]\n'
        'seconds = 1\nlimit = "5s"\n'
    )
    out = tmp_path / "out"
    code, data, _ = run(jdk, out, "--matrix", matrix)
    assert code == 1
    assert data["cells"][0]["verdict"] == "hang"
    files = files_of(data, out)
    java = files["java-stacks.txt"]
    assert "EndsBadly.keep" in java
    assert "waits-for-holder" in java
    assert "JavaMain" in files["stacks.txt"]
    assert "state R" in files["stuck.txt"]


def test_jfr_is_a_walker(jdk: Jdk, tmp_path: Path) -> None:
    names = [name for name in jfr.WALKERS if jfr.excluded(name, jdk) is None]
    assert names
    walkers = [part for name in names for part in ("--walker", name)]
    _, data, _ = run(jdk, tmp_path / "out", "--workload", "javac", "--duration", "4s", *walkers)
    assert {(cell["walker"], cell["mode"]) for cell in data["cells"]} == {
        (name, "self") for name in names
    }
    for cell in data["cells"]:
        assert cell["samples"] > 0


def test_samplers_side_by_side(jdk: Jdk, tmp_path: Path) -> None:
    arguments = ("--workload", "javac", "--duration", "5s", "--profiler", "jfr,asgct")
    _, data, _ = run(jdk, tmp_path / "out", *arguments)
    lines = {line["sampler"]: line for line in data["side_by_side"]}
    own = jfr.EXECUTION if jfr.excluded(jfr.CPU_TIME, jdk) else jfr.CPU_TIME
    assert set(lines) == {own, "asgct", "unsampled"}
    assert lines[own]["wrong"] == 0
    assert lines[own]["whole"] + lines[own]["cut"] > 0.9  # javac's stacks are deeper than JFR's 64
    assert lines["asgct"]["samples"] > lines[own]["samples"] > 0
    assert (tmp_path / "out" / "profilers.md").exists()


_JAVA_PROFILER = """
#include <jni.h>
#include <cstdio>
#include <cstdlib>
extern "C" JNIEXPORT jint JNI_OnLoad(JavaVM*, void*) { return JNI_VERSION_1_6; }
extern "C" JNIEXPORT jboolean Java_com_datadoghq_profiler_JavaProfiler_init0(JNIEnv*, jclass) {
  return std::getenv("REFUSES") == nullptr;
}
extern "C" JNIEXPORT jstring Java_com_datadoghq_profiler_JavaProfiler_execute0(
    JNIEnv* env, jobject, jstring command) {
  const char* text = env->GetStringUTFChars(command, nullptr);
  std::puts(text);
  return command;
}
"""


def test_java_profiler_is_started_in_a_running_jvm_and_stopped(jdk: Jdk, tmp_path: Path) -> None:
    library = tmp_path / "libJavaProfiler.so"
    compile_library(_JAVA_PROFILER, library, f"-I{jdk.home}/include", f"-I{jdk.home}/include/linux")
    starter = toolchain.product("framestorm_start", "stress/agent/libframestorm_start.so")
    java = [str(jdk.home / "bin" / "java"), f"-agentpath:{starter}={library}=start,x=1", "-version"]
    done = subprocess.run(java, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["start,x=1", "stop"]
    environment = {**os.environ, "REFUSES": "yes"}
    done = subprocess.run(java, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert "framestorm: " in done.stderr
    assert "could not be initialised as java-profiler is" in done.stderr


def test_renaissance_by_its_command_line(jdk: Jdk, tmp_path: Path) -> None:
    """A small jar with Renaissance's command line."""
    classes = tmp_path / "classes"
    assert jdk.javac is not None
    subprocess.run([str(jdk.javac), "-d", str(classes), str(_RENAISSANCE)], check=True)
    jar = tmp_path / "renaissance-gpl-0.16.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST.format(version="0.16.0"))
        archive.writestr("benchmarks.properties", metadata("GPL"))
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    out = tmp_path / "out"
    command = [str(paths.SCRIPTS / "framestorm"), "stress", "--jdk", str(jdk.home)]
    arguments = ["--workload", "renaissance:scala-doku", "--workload", "renaissance:wrong"]
    arguments += ["--iterations", "3", "--mode", "same-thread", "--renaissance", str(jar)]
    done = subprocess.run(
        [*command, *arguments, "--out", str(out)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    cells = {cell["workload"]: cell for cell in read_summary(out)["cells"]}
    wrong = cells["renaissance:wrong"]
    assert wrong["verdict"] == "could not judge"
    assert "the benchmark failed by itself: validation" in wrong["why"]
    assert cells["renaissance:scala-doku"]["verdict"] in (
        "clean",
        "short traces",
        "could not judge",
    )
    assert "-r" in (out / cells["renaissance:scala-doku"]["folder"] / "cell.json").read_text()
