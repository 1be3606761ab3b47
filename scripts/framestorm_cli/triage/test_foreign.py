"""hs_err files and sanitizer logs. The samples in testdata/ are real, shortened."""

from pathlib import Path

import pytest

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import Run
from framestorm_cli.findings.finding import Signature
from framestorm_cli.triage import buckets, collecting, hs_err, sanitizer

TESTDATA = Path(__file__).parents[1] / "testdata"


@pytest.mark.parametrize(
    ("name", "version", "pc_module"), [("hs_err_jdk17.log", "17.0.15+6", "libjvm.so+0xc31445"),
                                       ("hs_err_jdk25.log", "25.0.3+9", "libjvm.so+0xe7c015")]
)  # fmt: skip
def test_hs_err(name: str, version: str, pc_module: str) -> None:
    report = hs_err.parse(TESTDATA / name)
    assert (report.signal, report.si_code, report.address) == ("SIGSEGV", 1, "0x00000000000000b0")
    assert version in report.jre
    assert report.problematic_frame.startswith("V  [libjvm.so+")
    assert report.frames[0].place == pc_module
    assert [frame.name for frame in report.frames[:2]] == [
        "os::fetch_frame_from_context",
        "AsyncGetCallTrace",
    ]
    assert report.in_walk
    assert "main" in report.thread
    assert {"rax", "r8", "r15", "rsp", "rip", "rdi"} <= set(report.registers)


def test_hs_err_case_is_about_the_walker_only() -> None:
    case = collecting.of_hs_err(TESTDATA / "hs_err_jdk17.log")
    assert case.signature == Signature("fault", "", ("os::fetch_frame_from_context",))


def test_the_same_crash_on_two_jdks_is_one_bucket() -> None:
    found = [collecting.of_hs_err(TESTDATA / f"hs_err_jdk{feature}.log") for feature in (17, 25)]
    assert len(buckets.into_buckets(found)) == 1


@pytest.mark.parametrize("keep", [300, 900, 1400, 3000])
def test_hs_err_cut_off_anywhere_gives_what_is_there(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "hs_err_pid1.log"
    path.write_text((TESTDATA / "hs_err_jdk25.log").read_text()[:keep])
    assert hs_err.parse(path).signal == "SIGSEGV"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "V  [libjvm.so+0x10]  frame::sender(RegisterMap*) const+0x5  (frame.cpp:12)",
            "frame::sender",
        ),
        ("C  [libc.so.6+0x85f14]", "[libc.so.6]"),
        ("C  0x00007f2301f897d5", "[unknown code]"),
        ("v  ~StubRoutines::call_stub 0x00007f3c0b938fa6", "~StubRoutines::call_stub"),
        ("J 31 c2 a.B$$Lambda+0x000000003b013b80.f(I)V (9 bytes) @ 0x00007f", "a.B$$Lambda.f"),
        ("j  java.lang.Thread.run()V+11 java.base@17.0.15", "java.lang.Thread.run"),
    ],
)
def test_names_of_frames_hold_no_addresses(line: str, name: str) -> None:
    frame = hs_err.parse_frame(line)
    assert frame is not None
    assert frame.name == name


def test_java_frames_below_native_ones_are_the_victims(tmp_path: Path) -> None:
    head = (TESTDATA / "hs_err_jdk25.log").read_text().split("Native frames:")[0]
    signatures = set()
    for number, method in enumerate(("a.B.c", "d.E.f")):
        path = tmp_path / f"hs_err_pid{number}.log"
        path.write_text(f"{head}Native frames: (x)\nC  0x0000{number}f23\nj  {method}()V+1\n\n")
        signatures.add(collecting.of_hs_err(path).signature)
    assert signatures == {Signature("fault", "", ("[unknown code]",))}


def test_internal_errors(tmp_path: Path) -> None:
    path = tmp_path / "hs_err_pid1.log"
    path.write_text(
        "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
        "#  Internal Error (debug.cpp:362), pid=7, tid=8\n#  guarantee(how < 3) failed: test guarantee\n#\n"
        "\nNative frames: (J=compiled Java code)\n"
        "V  [libjvm.so+0x10]  VMError::report_and_die(int)+0x1\n"
        "V  [libjvm.so+0x20]  frame::describe(int)+0x2\n\n"
    )
    case = collecting.of_hs_err(path)
    assert case.signature.kind == "vm_error"
    assert case.signature.clause == "guarantee(how < 3) failed: test guarantee (debug.cpp:362)"
    assert case.signature.frames == ("frame::describe",)


def test_a_file_that_is_no_hs_err(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("hello")
    with pytest.raises(ValueError, match="not an hs_err"):
        hs_err.parse(tmp_path / "x.log")


def test_asan_and_ubsan_in_one_log() -> None:
    undefined, address = sanitizer.parse(TESTDATA / "sanitizer_asan_ubsan.log")
    assert (undefined.tool, undefined.what) == ("UndefinedBehaviorSanitizer", "shift")
    assert undefined.frames[0] == "walker::walk"
    assert (address.tool, address.what) == ("AddressSanitizer", "heap-buffer-overflow")
    assert address.frames[:3] == ("walker::read_slot", "walker::sender", "walker::walk")
    assert "read of 8 bytes" in address.message


def test_ubsan_without_a_stack_is_named_by_its_file() -> None:
    (report,) = sanitizer.parse(TESTDATA / "sanitizer_ubsan_plain.log")
    assert report.frames == ("san.cpp",)


def test_sanitizer_signature() -> None:
    _, case = collecting.of_sanitizer(TESTDATA / "sanitizer_asan_ubsan.log")
    frames = ("walker::read_slot", "walker::sender", "walker::walk")
    assert case.signature == Signature("sanitizer", "heap-buffer-overflow", frames)


def test_a_folder_of_everything(tmp_path: Path, own_cache: Path) -> None:
    collected = collecting.of_folder(TESTDATA, Symbolizer())
    assert collected.files == 4
    assert len(collected.findings) == 5
    assert len(buckets.into_buckets(collected.findings)) == 4


def test_triage_of_foreign_files(framestorm: Run, tmp_path: Path) -> None:
    code, out, _ = framestorm("triage", TESTDATA, "--out", tmp_path / "reports")
    assert code == 1
    assert "fault in os::fetch_frame_from_context" in out
    assert "sanitizer heap-buffer-overflow in walker::read_slot" in out
    assert len(list((tmp_path / "reports").glob("b*.md"))) == 4


def test_triage_of_nothing_is_2(framestorm: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = framestorm("triage", tmp_path / "empty")
    assert code == 2
    assert "nothing below" in err
