import shutil
from pathlib import Path

import pytest

from framestorm_cli.conftest import compile_library
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk
from framestorm_cli.jdks.jdk import UnusableJdkError


def refused(path: Path) -> str:
    with pytest.raises(UnusableJdkError) as error:
        jdk.validate(path)
    assert error.value.exit_code == 2
    return error.value.message


def test_a_good_one(jdk_home: Path) -> None:
    found = jdk.validate(jdk_home)
    assert (found.feature, found.version, found.vendor) == (25, "25.0.3+9", "Fake")
    assert found.javac is None


def test_path_does_not_exist(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "nowhere")


def test_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "java").write_text("")
    assert "not a folder" in refused(tmp_path / "java")


def test_folder_is_no_jdk(tmp_path: Path) -> None:
    assert "no lib/server/libjvm.so" in refused(tmp_path)


def test_openj9_by_its_library(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "j9"))
    (home / "lib" / "default").mkdir()
    (home / "lib" / "default" / "libj9vm29.so").write_bytes(b"")
    assert "OpenJ9" in refused(home)


def test_openj9_by_its_release_file(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "j9"))
    with (home / "release").open("a") as release:
        release.write('JVM_VARIANT="Openj9"\n')
    assert "OpenJ9" in refused(home)


@pytest.mark.parametrize("missing", ["AsyncGetCallTrace", "gHotSpotVMStructs"])
@pytest.mark.parametrize("hash_style", ["gnu", "sysv"])
def test_libjvm_without_a_symbol(
    jdk_home: Path, tmp_path: Path, missing: str, hash_style: str
) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "stripped"))
    other = {"AsyncGetCallTrace", "gHotSpotVMStructs"} - {missing}
    source = f'extern "C" int {other.pop()} = 1; extern "C" int {missing}x = 1;'
    compile_library(source, home / "lib" / "server" / "libjvm.so", f"-Wl,--hash-style={hash_style}")
    message = refused(home)
    assert missing in message
    assert "does not export" in message


def test_libjvm_that_is_cut_off(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "torn"))
    library = home / "lib" / "server" / "libjvm.so"
    library.write_bytes(library.read_bytes()[:5000])
    assert "is damaged" in refused(home)


def test_libjvm_that_only_imports_the_symbol(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "imports"))
    source = (
        'extern "C" int AsyncGetCallTrace(); extern "C" int gHotSpotVMStructs; extern "C" int f()'
    )
    source += "{ return AsyncGetCallTrace() + gHotSpotVMStructs; }"
    compile_library(source, home / "lib" / "server" / "libjvm.so")
    assert "AsyncGetCallTrace" in refused(home)


def test_wrong_architecture(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "arm"))
    library = home / "lib" / "server" / "libjvm.so"
    data = bytearray(library.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    library.write_bytes(data)
    assert "aarch64" in refused(home)


def test_libjvm_that_is_no_library(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "text"))
    (home / "lib" / "server" / "libjvm.so").write_text("#!/bin/sh\n")
    assert "cannot be read as a library" in refused(home)


def test_too_old(jdk_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(jdk_home, tmp_path / "old"))
    (home / "release").write_text('JAVA_VERSION="11.0.20"\n')
    assert "17 or later" in refused(home)


@pytest.mark.parametrize(
    ("version", "feature"), [("25.0.3", 25), ("1.8.0_392", 8), ("17", 17), ("26-ea", 26), ("", 0)]
)
def test_feature(version: str, feature: int) -> None:
    assert jdk.feature_of(version) == feature


def test_newest_usable_is_chosen(
    jdk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("a", "17.0.9"), ("b", "25.0.3"), ("c", "25.0.10"), ("d", "9.0.1")):
        home = Path(shutil.copytree(jdk_home, tmp_path / name))
        (home / "release").write_text(
            f'JAVA_VERSION="{version}"\nJAVA_RUNTIME_VERSION="{version}"\n'
        )
    (tmp_path / "link").symlink_to(tmp_path / "c")
    monkeypatch.setattr(jdk, "JVM_FOLDER", tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [found.version for found in jdk.usable()] == ["25.0.10", "25.0.3", "17.0.9"]
    assert choosing.choose(None, may_install=False).version == "25.0.10"


def test_java_home_wins_over_the_newest_and_its_errors_name_it(
    jdk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk_home))
    assert choosing.choose(None).home == jdk_home.resolve()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnusableJdkError, match="JAVA_HOME"):
        choosing.choose(None)


def test_no_jdk_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk, "JVM_FOLDER", tmp_path / "none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UnusableJdkError, match="no usable HotSpot"):
        choosing.choose(None, may_install=False)
