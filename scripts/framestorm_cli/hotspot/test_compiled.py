"""The parts of harness/hotspot that a compiler and a process see, without HotSpot."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base import packages
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.hotspot import additions, building, folder, variants
from framestorm_cli.hotspot.variants import Variant
from framestorm_cli.native import toolchain

WALKER = """
#include <cstdint>
#include "runtime/frame.inline.hpp"
#include "utilities/growableArray.hpp"
extern "C" __attribute__((visibility("default"))) int AsyncGetCallTrace(int x) {
  return frame::sender(x) + GrowableArray::at(x) + 2;
}
extern "C" __attribute__((visibility("default"))) int overflow(int x) { return x + 0x7fffffff; }
"""
HEADER = """
struct {name} {{
  __attribute__((noinline)) static int {function}(int x) {{ return x > 3 ? x : 5; }}
}};
"""


def flags_of(variant: Variant, build: Path) -> list[str]:
    """The walkers' flags, as make reads them."""
    build.mkdir(exist_ok=True)
    variants.write_flags(variant, build)
    (line,) = [
        line
        for line in (build / variants.FLAGS_FILE).read_text().splitlines()
        if line.startswith("FRAMESTORM_WALKER_CXXFLAGS")
    ]
    return line.split(":=")[1].split()


def compile_jvm(folder_: Path, variant: Variant) -> Path:
    """A libjvm of one walker, two headers, and the coverage addition."""
    packages.ensure(building.PACKAGES)
    root = folder_ / "src" / "hotspot" / "share"
    for name, text in (
        ("prims/forte.cpp", WALKER),
        ("runtime/frame.inline.hpp", HEADER.format(name="frame", function="sender")),
        ("utilities/growableArray.hpp", HEADER.format(name="GrowableArray", function="at")),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    common = ["clang++-19", "-c", "-fPIC", "-O1", "-fvisibility=hidden", "-std=c++17", f"-I{root}"]
    flags = flags_of(variant, folder_ / "build")
    include = toolchain.headers(None)
    addition = additions.FOLDER / "additions/src/hotspot/share/prims/framestorm_coverage.cpp"
    for source, more in (
        (root / "prims" / "forte.cpp", flags),
        (addition, [f"-I{include}", f"-I{include}/linux"]),
    ):
        subprocess.run(
            [*common, *more, "-o", f"{folder_}/{source.stem}.o", str(source)], check=True
        )
    library = folder_ / "libjvm.so"
    undefined = [] if variant.sanitized else ["-Wl,-z,defs"]
    objects = [f"{folder_}/forte.o", f"{folder_}/framestorm_coverage.o"]
    link = ["clang++-19", "-shared", "-fuse-ld=lld", *undefined, "-o", str(library), *objects]
    subprocess.run(link, check=True)
    return library


def coverage_of(library: ctypes.CDLL) -> tuple[int, int, int, int]:
    """What framestorm_coverage() hands out, as addresses."""
    ends = [ctypes.c_void_p(1) for _ in range(4)]
    library.framestorm_coverage(*(ctypes.byref(end) for end in ends))
    one, two, three, four = (end.value or 0 for end in ends)
    return one, two, three, four


def test_coverage_of_the_walkers_without_the_helpers_of_headers(tmp_path: Path) -> None:
    path = compile_jvm(tmp_path, variants.VARIANTS["fastdebug"])
    assert not elf.exports(path, "__sanitizer_cov_8bit_counters_init")
    assert not elf.exports(path, "__sanitizer_cov_pcs_init")
    library = ctypes.CDLL(str(path))
    begin, end, pcs_begin, pcs_end = coverage_of(library)
    count = end - begin
    assert count > 0
    assert pcs_end - pcs_begin == count * 16
    pairs = (ctypes.c_uint64 * (2 * count)).from_address(pcs_begin)
    entries = {pairs[2 * i] for i in range(count) if pairs[2 * i + 1] & 1}
    base = ctypes.cast(library.AsyncGetCallTrace, ctypes.c_void_p).value or 0
    offset = base - next(s.start for s in elf.functions(path) if s.name == "AsyncGetCallTrace")
    named = {s.start + offset: s.name for s in elf.functions(path)}
    names = {named[pc] for pc in entries}
    assert {"AsyncGetCallTrace", "overflow"} <= names
    assert any("5frame6sender" in name for name in names)
    assert any("GrowableArray" in name for name in named.values())
    assert not any("GrowableArray" in name or "framestorm" in name for name in names)
    counters = (ctypes.c_uint8 * count).from_address(begin)
    ctypes.memset(begin, 0, count)
    library.AsyncGetCallTrace(1)
    first = bytes(counters)
    assert any(first)
    ctypes.memset(begin, 0, count)
    library.overflow(1)
    assert bytes(counters) != first


def test_all_null_without_coverage(tmp_path: Path) -> None:
    path = compile_jvm(tmp_path, variants.VARIANTS["plain"])
    assert coverage_of(ctypes.CDLL(str(path))) == (0, 0, 0, 0)


def test_the_walkers_of_a_sanitized_one_are_checked_by_ubsan(tmp_path: Path) -> None:
    path = compile_jvm(tmp_path, variants.VARIANTS["sanitized"])
    names = subprocess.run(
        ["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert "__ubsan_handle_add_overflow" in names
    assert "__ubsan_handle_function_type_mismatch" not in names


def test_a_changed_list_changes_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = variants.VARIANTS["sanitized"]
    before, digest = flags_of(variant, tmp_path), variants.flags_digest(variant)
    assert flags_of(variant, tmp_path) == before
    own = Path(shutil.copytree(variants.FLAGS, tmp_path / "flags"))
    with (own / "ubsan-ignorelist.txt").open("a") as text:
        text.write("fun:os::is_first_C_frame\n")
    monkeypatch.setattr(variants, "FLAGS", own)
    assert flags_of(variant, tmp_path) != before
    assert variants.flags_digest(variant) != digest


def test_a_failing_check_is_told_before_hotspot_reports_it(tmp_path: Path) -> None:
    packages.ensure(building.PACKAGES)
    added = additions.load()
    debug = tmp_path / "debug.cpp"
    # As debug.cpp of JDK 17 and 25.
    text = """
#include <stdarg.h>
static void print_error_for_unit_test(const char* message, const char* detail_fmt, va_list detail_args) {
}
extern "C" __attribute__((visibility("default")))
void report_vm_error(const char* file, int line, const char* error_msg, const char* detail_fmt, ...) {
  va_list detail_args;
  va_start(detail_args, detail_fmt);
  print_error_for_unit_test(error_msg, detail_fmt, detail_args);
  print_error_for_unit_test("fatal error", detail_fmt, detail_args);
  print_error_for_unit_test(NULL, detail_fmt, detail_args);
}
"""
    edits = [e for e in added.edits if e.file == "src/hotspot/share/utilities/debug.cpp"]
    for edit in edits:
        text = edit.apply(text)
    debug.write_text(f"#define NULL nullptr\n{text}")
    addition = additions.FOLDER / "additions/src/hotspot/share/prims/framestorm_error.cpp"
    include, library = toolchain.headers(None), tmp_path / "libjvm.so"
    subprocess.run(
        [
            *(
                "clang++-19",
                "-shared",
                "-fPIC",
                "-fvisibility=hidden",
                "-fuse-ld=lld",
                "-Wl,-z,defs",
            ),
            *(f"-I{include}", f"-I{include}/linux", "-o", str(library), str(debug), str(addition)),
        ],
        check=True,
    )
    jvm = ctypes.CDLL(str(library))
    said: list[tuple[bytes, int, bytes, bytes]] = []
    hook = ctypes.CFUNCTYPE(
        None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p
    )(lambda file, line, condition, form, _values: said.append((file, line, condition, form)))
    jvm.report_vm_error(b"frame.cpp", 7, b"assert(x) failed", b"%d", 5)
    assert said == []
    ctypes.c_void_p.in_dll(jvm, "framestorm_error_hook").value = ctypes.cast(
        hook, ctypes.c_void_p
    ).value
    jvm.report_vm_error(b"frame.cpp", 7, b"assert(x) failed", b"%d", 5)
    conditions = (b"assert(x) failed", b"fatal error", b"out of memory")
    assert said == [(b"frame.cpp", 7, condition, b"%d") for condition in conditions]


def test_only_libjvms_precompiled_header_is_made_without_times(tmp_path: Path) -> None:
    packages.ensure(building.PACKAGES)
    own = additions.FOLDER / "additions/make/hotspot/lib/framestorm_walker_files.gmk"
    (tmp_path / "Makefile").write_text(
        f"OUTPUTDIR := .\ninclude {own}\n"
        "BUILD_LIBJVM_PCH_COMMAND := clang -x c++-header\n"
        "BUILD_LIBZ_PCH_COMMAND := clang -x c-header\n"
        "objs/precompiled.hpp.pch:\n\techo $(BUILD_LIBJVM_PCH_COMMAND) ,\n"
        "objs/zlib.h.pch:\n\techo $(BUILD_LIBZ_PCH_COMMAND) ,\n"
    )
    made = subprocess.run(
        ["make", "-n", "objs/precompiled.hpp.pch", "objs/zlib.h.pch"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert made == [
        "echo clang -x c++-header -Xclang -fno-pch-timestamp ,",
        "echo clang -x c-header ,",
    ]


def test_a_precompiled_header_does_not_depend_on_times(tmp_path: Path) -> None:
    packages.ensure(building.PACKAGES)
    header, made = tmp_path / "frame.hpp", []
    header.write_text("struct frame {};\n")
    for seconds in (1e9, 2e9):
        os.utime(header, (seconds, seconds))
        command = ["clang++-19", "-x", "c++-header", "-Xclang", "-fno-pch-timestamp", str(header)]
        subprocess.run([*command, "-o", f"{header}.pch"], check=True)
        made.append(Path(f"{header}.pch").read_bytes())
    assert made[0] == made[1]


def test_every_line_of_the_ignorelist_has_a_reason() -> None:
    explained = False
    for line in (variants.FLAGS / "ubsan-ignorelist.txt").read_text().splitlines():
        if line.startswith("#"):
            explained = len(line) > 2
        elif line.startswith("["):
            explained = False
        elif line:
            assert explained, line
        else:
            explained = False


@pytest.fixture
def launchers(tmp_path: Path) -> Path:
    """A folder with a program that loads libjli.so, a script, and a program that does not."""
    packages.ensure(building.PACKAGES)
    home = tmp_path / "a jdk"
    for name in ("bin", "lib/server"):
        (home / name).mkdir(parents=True)
    link = ["clang-19", "-fuse-ld=lld", "-x", "c", "-"]

    def compile_(source: str, *flags: str) -> None:
        subprocess.run([*link, *flags], input=source, text=True, check=True)

    for name in ("lib/libjli.so", "lib/server/libjvm.so"):
        compile_("int launch(void) { return 0; }", "-shared", "-fPIC", "-o", str(home / name))
    rpath = ("-Wl,-rpath,$ORIGIN/../lib", f"-L{home}/lib", "-ljli")
    program = "int launch(void); int main(void) { return launch(); }"
    compile_(program, "-o", str(home / "bin" / "java"), *rpath)
    compile_("int main(void) { return 0; }", "-o", str(home / "bin" / "other"))
    (home / "bin" / "script").write_text("#!/bin/sh\n")
    return home


def test_programs_start_with_asan_and_its_options_from_anywhere(
    launchers: Path, tmp_path: Path
) -> None:
    untouched = (launchers / "bin" / "java").read_bytes()
    folder.copy_base(launchers, tmp_path / "base", "clang-19")
    assert (launchers / "bin" / "java").read_bytes() == untouched
    folder.link_base(tmp_path / "base", tmp_path / "home")
    moved = (tmp_path / "home").rename(tmp_path / "moved to another place")
    shown = subprocess.run(
        [str(moved / "bin" / "java")],
        env={"ASAN_OPTIONS": "help=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    text = shown.stderr + shown.stdout
    for option, value in (("handle_segv", "0"), ("detect_leaks", "false")):
        after = text.split(f"\t{option}\n", 1)[1].split("Current Value: ", 1)[1]
        assert after.startswith(value), option
    assert elf.needed(moved / "bin" / "other") == elf.needed(launchers / "bin" / "other")


def test_a_compiler_without_the_runtime(tmp_path: Path) -> None:
    compiler = tmp_path / "clang"
    compiler.write_text("#!/bin/sh\necho libclang_rt.asan-x86_64.so\n")
    compiler.chmod(0o755)
    with pytest.raises(FramestormError, match="install the package libclang-rt-19-dev"):
        folder.add_asan(tmp_path, str(compiler))
