"""Builds of a source tree whose configure and make are small: everything but HotSpot is real."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm_cli.base import packages, paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import compile_library
from framestorm_cli.hotspot import additions, building, choosing, folder, variants
from framestorm_cli.hotspot.building import Request
from framestorm_cli.hotspot.test_sources import make_tree
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import store

LIBRARY = """
extern "C" {
void* gHotSpotVMStructs = 0;
int AsyncGetCallTrace() { return 6; }
void AsyncGetStackTrace() {}
void framestorm_coverage() {}
}
"""
# What make does: `make.sh` of the source tree, in the build folder.
CONFIGURE = """#!/bin/sh
source=$(cd "$(dirname "$0")" && pwd)
echo "$@" >> configured
printf '.PHONY: hotspot jdk-image\\nhotspot jdk-image:\\n\\tsh %s/make.sh $@\\n' "$source" > Makefile
"""
MAKE = """set -e
echo "$1" >> made
objects=hotspot/variant-server/libjvm/objs
mkdir -p $objects support/modules_libs/java.base/server
touch $objects/forte.o $objects/frame.o
cp "$FAKE_LIBJVM" support/modules_libs/java.base/server/libjvm.so
if [ "$1" = jdk-image ]; then mkdir -p images; cp -r "$FAKE_IMAGE" images/jdk; fi
"""
JAVA = '#!/bin/sh\necho "java $@" >> "$(dirname "$0")/../started"\n'


def what_matches(anchor: str) -> str:
    """The place of HotSpot's own file that an anchor of edits.toml is for."""
    lines = re.sub(r"\((\w+)\|\w+\)", r"\1", anchor).split(r"\n")
    plain = [re.sub(r"\\(.)", r"\1", re.sub(r"^\^|\$$", "", line)) for line in lines]
    return "\n".join(plain) + "\n"


@pytest.fixture(scope="session")
def libjvm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("built") / "libjvm.so"
    compile_library(LIBRARY, library)
    return library


@pytest.fixture
def boot(jdk_home: Path, tmp_path: Path) -> Path:
    """A boot JDK of the source's version."""
    home = Path(shutil.copytree(jdk_home, tmp_path / "boot"))
    (home / "bin").mkdir()
    for name in ("java", "javac"):
        (home / "bin" / name).write_text(JAVA)
        (home / "bin" / name).chmod(0o755)
    (home / "lib" / "modules").write_text("classes")
    (home / "lib" / "server" / "classes.jsa").write_text("stale")
    return home


@pytest.fixture
def user(
    tmp_path: Path, own_cache: Path, boot: Path, libjvm: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A user's source tree that can be built."""
    tree = make_tree(tmp_path / "jdk")
    (tree / "configure").write_text(CONFIGURE)
    (tree / "make.sh").write_text(MAKE)
    for edit in additions.load().edits:
        (tree / edit.file).parent.mkdir(parents=True, exist_ok=True)
        with (tree / edit.file).open("a", encoding="utf-8") as file:
            file.write(what_matches(edit.anchor))
    monkeypatch.setenv("FAKE_LIBJVM", str(libjvm))
    monkeypatch.setenv("FAKE_IMAGE", str(boot))
    monkeypatch.setattr(packages, "ensure", lambda *_: None)
    return tree


@pytest.fixture
def request_of(user: Path, boot: Path) -> Request:
    return Request(str(user), boot, "plain")


def folder_of(request: Request) -> Path:
    """The build folder of a request's variant."""
    configured = variants.named(request.variant).configured
    (found,) = (store.folder() / "trees").glob(f"*-{configured}/build")
    return found


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_complete_folder_with_the_built_libjvm(request_of: Request, libjvm: Path) -> None:
    home = building.ensure(request_of)
    assert (home / "lib" / "server" / "libjvm.so").read_bytes() == libjvm.read_bytes()
    assert (home / "lib" / "modules").read_text() == "classes"
    assert "AsyncGetStackTrace" in (home / "include" / "profile.h").read_text()
    assert not (home / "lib" / "server" / "classes.jsa").exists()
    *dumps, last = lines(home / "started")
    assert set(dumps) == {"java -Xshare:dump", "java -XX:-UseCompressedOops -Xshare:dump"}
    assert last == "java -Xshare:auto -version"
    assert jdks.validate(home).feature == 25
    record = store.read(home)
    assert record is not None
    assert (record.variant, record.version, record.source) == ("plain", "25.0.3", request_of.source)
    assert record.collectors == ("serial", "parallel", "g1", "z", "shenandoah")
    assert lines(folder_of(request_of) / "made") == ["hotspot"]


def test_the_users_tree_and_the_boot_jdk_are_only_read(
    request_of: Request, user: Path, boot: Path
) -> None:
    def everything() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for root in (user, boot)
            for path in root.rglob("*")
        }

    before = everything()
    building.ensure(request_of)
    assert everything() == before


def test_nothing_is_done_when_nothing_changed(request_of: Request) -> None:
    home = building.ensure(request_of)
    assert building.ensure(request_of) == home
    assert lines(folder_of(request_of) / "made") == ["hotspot"]


def test_a_change_of_the_source_makes_a_new_one_in_the_same_tree(
    request_of: Request, user: Path
) -> None:
    first = building.ensure(request_of)
    (user / "src" / "hotspot" / "share" / "prims" / "forte.cpp").write_text("fixed\n")
    second = building.ensure(request_of)
    assert second != first
    build = folder_of(request_of)
    assert lines(build / "made") == ["hotspot", "hotspot"]
    assert len(lines(build / "configured")) == 1
    copied = build.parent / "source" / "src" / "hotspot" / "share" / "prims" / "forte.cpp"
    assert copied.read_text() == "fixed\n"


def test_a_changed_addition_makes_a_new_one_in_the_same_tree(
    request_of: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = building.ensure(request_of)
    own = Path(shutil.copytree(additions.FOLDER, tmp_path / "hotspot"))
    (own / "additions" / "src" / "hotspot" / "share" / "prims" / "new.cpp").write_text("new\n")
    load = additions.load
    monkeypatch.setattr(additions, "load", lambda: load(own))
    assert building.ensure(request_of) != first
    build = folder_of(request_of)
    assert len(lines(build / "configured")) == 1
    assert (build.parent / "source" / "src/hotspot/share/prims/new.cpp").read_text() == "new\n"


def test_what_is_configured_differently_has_a_build_folder_of_its_own(
    request_of: Request, boot: Path
) -> None:
    homes = {
        building.ensure(request)
        for request in (
            request_of,
            Request(request_of.source, boot, "fastdebug"),
            Request(request_of.source, boot, "plain", ("g1", "serial")),
        )
    }
    assert len(homes) == 3
    trees = store.folder() / "trees"
    assert {tree.name.split("-", 1)[1] for tree in trees.iterdir()} == {
        "release",
        "fastdebug",
        "release-serial-g1",
    }
    (limited,) = trees.glob("*-release-serial-g1/build/configured")
    assert "--with-jvm-features=-parallelgc,-zgc,-shenandoahgc" in limited.read_text()


def test_variants_that_only_the_walkers_flags_tell_apart_share_a_build_folder(
    request_of: Request, user: Path, boot: Path
) -> None:
    (user / "make.sh").write_text(
        f"{MAKE}grep -c 8bit-counters framestorm_flags.gmk >> counted || true\n"
    )
    coverage = Request(request_of.source, boot, "coverage")
    plain = building.ensure(request_of)
    covered = building.ensure(coverage)
    assert plain != covered
    assert plain.exists()
    build = folder_of(coverage)
    assert build == folder_of(request_of)
    assert lines(build / "counted") == ["0", "1"]
    assert len(lines(build / "configured")) == 1
    assert building.ensure(request_of) == plain
    assert len(lines(build / "made")) == 2


def test_the_tree_of_a_variant_keeps_its_name() -> None:
    named = {name: variant.configured for name, variant in variants.VARIANTS.items()}
    assert named == {
        "sanitized": "sanitized",
        "fastdebug": "fastdebug",
        "coverage": "release",
        "undefined": "release",
        "plain": "release",
    }
    for variant in variants.VARIANTS.values():
        twins = [v for v in variants.VARIANTS.values() if v.configured == variant.configured]
        assert len({tuple(variants.configure_arguments(v, ())) for v in twins}) == 1


def test_the_image_of_a_shared_tree_is_built_in_it(request_of: Request, boot: Path) -> None:
    (boot / "release").write_text('JAVA_VERSION="24.0.1"\nJAVA_RUNTIME_VERSION="24.0.1+3"\n')
    building.ensure(Request(request_of.source, boot, "coverage"))
    assert lines(folder_of(request_of) / "made") == ["jdk-image", "hotspot"]


def test_old_ones_are_removed_unless_a_process_runs_on_them(
    request_of: Request, user: Path
) -> None:
    homes = []
    user_of_first: subprocess.Popen[bytes] | None = None
    for number in range(5):
        (user / "make" / "jvm.gmk").write_text("x" * number)
        homes.append(building.ensure(request_of))
        os.utime(homes[-1] / store.RECORD, (number, number))
        if user_of_first is None:
            user_of_first = subprocess.Popen(["sh", "-c", "read line", "--jdk", str(homes[0])],
                                             stdin=subprocess.PIPE)  # fmt: skip
    assert user_of_first is not None
    assert [home.exists() for home in homes] == [True, False, True, True, True]
    user_of_first.communicate()
    (user / "make" / "jvm.gmk").write_text("last")
    building.ensure(request_of)
    assert not homes[0].exists()


def test_another_release_is_built_plain_without_the_walkers(
    request_of: Request, user: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = user / "make" / "conf" / "version-numbers.conf"
    numbers.write_text(numbers.read_text().replace("FEATURE=25", "FEATURE=26"))
    with pytest.raises(FramestormError, match=r"JDK 26.*--variant plain builds it without"):
        building.ensure(replace(request_of, variant="sanitized"))
    home = building.ensure(request_of)
    record = store.read(home)
    assert record is not None
    assert record.feature == 26
    assert not (home / "include" / "profile.h").exists()
    # It is not what the name of the variant means.
    monkeypatch.setattr(building, "ensure", lambda request: Path(request.source))
    assert choosing.instrumented(Path("instrumented:plain")) == Path("debian:openjdk-25")


def test_another_version_than_the_boot_jdks_builds_the_image(
    request_of: Request, boot: Path
) -> None:
    (boot / "release").write_text('JAVA_VERSION="24.0.1"\nJAVA_RUNTIME_VERSION="24.0.1+3"\n')
    home = building.ensure(request_of)
    assert lines(folder_of(request_of) / "made") == ["jdk-image", "hotspot"]
    configured = (folder_of(request_of) / "configured").read_text()
    assert "--with-version-string=25.0.3-framestorm " in configured
    assert (home / "lib" / "modules").exists()


def test_the_image_comes_from_the_plain_tree(request_of: Request, user: Path, boot: Path) -> None:
    (boot / "release").write_text('JAVA_VERSION="24.0.1"\nJAVA_RUNTIME_VERSION="24.0.1+3"\n')
    request = Request(request_of.source, boot, "fastdebug")
    assert (building.ensure(request) / "lib" / "modules").exists()
    assert lines(folder_of(request) / "made") == ["hotspot"]
    assert lines(folder_of(request_of) / "made") == ["jdk-image"]


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ('JAVA_VERSION="21.0.1"\n', "is JDK 21: the source is JDK 25.0.3 and needs JDK 24 or 25"),
        ('JAVA_VERSION="26"\n', "is JDK 26"),
    ],
)
def test_a_boot_jdk_of_the_wrong_release(
    request_of: Request, boot: Path, release: str, words: str
) -> None:
    (boot / "release").write_text(release)
    with pytest.raises(FramestormError, match=words) as error:
        building.ensure(request_of)
    assert error.value.exit_code == 2


def test_a_boot_jdk_without_javac(request_of: Request, boot: Path) -> None:
    (boot / "bin" / "javac").unlink()
    with pytest.raises(FramestormError, match="has no bin/javac"):
        building.ensure(request_of)


def test_a_boot_jdk_that_is_none(request_of: Request, user: Path, tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="is no JDK home"):
        building.ensure(Request(str(user), tmp_path, "plain"))


def test_no_boot_jdk_on_the_machine(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jdks, "JVM_FOLDER", tmp_path / "none")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "graal"))  # for something else
    with pytest.raises(FramestormError, match="needs a boot JDK 25 or 24 with javac"):
        building.ensure(Request(str(user), None, "plain"))


def test_the_boot_jdk_may_be_that_of_java_home(
    user: Path, boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jdks, "JVM_FOLDER", tmp_path / "none")
    monkeypatch.setenv("JAVA_HOME", str(boot))
    building.ensure(Request(str(user), None, "plain"))


def test_a_missing_compiler(request_of: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "CXX", "clang++-of-nowhere")
    with pytest.raises(FramestormError, match=r"compiler clang\+\+-of-nowhere is missing"):
        building.ensure(request_of)


def test_a_failing_make_shows_its_last_lines_and_what_to_do(
    request_of: Request, user: Path
) -> None:
    (user / "make.sh").write_text("echo 'forte.cpp:1: error: no such walk'; exit 1\n")
    with pytest.raises(FramestormError) as error:
        building.ensure(request_of)
    assert "forte.cpp:1: error: no such walk" in error.value.message
    assert "release-hotspot.log" in error.value.message  # the log
    assert "goes on from there" in error.value.message
    assert store.finished() == []


def test_a_disk_that_fills_up_while_compiling(request_of: Request, user: Path) -> None:
    (user / "make.sh").write_text("echo 'ld.lld: No space left on device'; exit 1\n")
    with pytest.raises(FramestormError, match="is full: make room there"):
        building.ensure(request_of)


def test_a_disk_that_fills_up_while_the_folder_is_put_together(
    request_of: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(folder, "put_libjvm", full)
        with pytest.raises(FramestormError, match="is full"):
            building.ensure(request_of)
    assert list(store.homes().iterdir()) == []
    assert building.ensure(request_of).exists()


def test_a_disk_without_room(request_of: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(paths.CHECKOUT)._replace(free=100 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        FramestormError, match="has 100 MiB of free disk, this build needs 5120 MiB"
    ):
        building.ensure(request_of)


def test_a_cache_that_cannot_be_written(
    request_of: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "jdk")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(FramestormError, match="cannot create the cache folder"):
        building.ensure(request_of)
    monkeypatch.setattr(paths, "cache", lambda: Path("/proc"))
    with pytest.raises(FramestormError, match="cannot write the cache folder /proc/jdk: Read-only"):
        building.ensure(request_of)


def test_a_libjvm_without_the_added_functions(
    request_of: Request, jdk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LIBJVM", str(jdk_home / "lib" / "server" / "libjvm.so"))
    with pytest.raises(FramestormError, match=r"does not export .*framestorm_coverage"):
        building.ensure(request_of)
    assert store.finished() == []


def test_a_jvm_that_does_not_start_is_not_finished(request_of: Request, boot: Path) -> None:
    (boot / "bin" / "java").write_text("#!/bin/sh\necho 'Error: no room for a heap'; exit 1\n")
    with pytest.raises(FramestormError, match="no room for a heap"):
        building.ensure(request_of)
    assert store.finished() == []
    assert list(store.homes().iterdir()) == []


_WAITING = """set -e
sleep 600 & echo $! > child
touch begun
wait
"""
# Its child does not end when it is asked to.
_STUBBORN = """set -e
sh -c 'trap "" TERM; touch deaf; while :; do sleep 1; done' & echo $! > child
while [ ! -e deaf ]; do sleep 0.02; done
touch begun
wait
"""


def start(request: Request) -> "subprocess.Popen[str]":
    # A test run in the background of a shell has Ctrl-C ignored.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys; from pathlib import Path; from framestorm_cli.base import packages;"
        "packages.ensure = lambda *_: None;"
        "from framestorm_cli.hotspot import building, running; running.GRACE = 2.0;"
        "from framestorm_cli.hotspot.building import Request;"
        f"print(building.ensure(Request({request.source!r}, Path({str(request.boot_jdk)!r}), 'plain')))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=paths.SCRIPTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("number", "script"),
    [(signal.SIGINT, _WAITING), (signal.SIGTERM, _WAITING), (signal.SIGTERM, _STUBBORN)],
)
def test_an_interrupt_ends_make_and_what_it_started_and_leaves_nothing_half_made(
    request_of: Request, user: Path, number: int, script: str
) -> None:
    (user / "make.sh").write_text(script)
    process = start(request_of)
    trees = store.folder() / "trees"
    while not (begun := list(trees.glob("*/build/begun"))):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    child = int((begun[0].parent / "child").read_text())
    assert running(child)
    process.send_signal(number)
    _, err = process.communicate()
    assert "KeyboardInterrupt" in err
    assert not running(child)
    assert not store.homes().exists() or list(store.homes().iterdir()) == []
    (user / "make.sh").write_text(MAKE)
    assert building.ensure(request_of).exists()
    assert len(lines(folder_of(request_of) / "configured")) == 1  # it went on from there


def test_two_at_once_wait_and_say_so(request_of: Request, user: Path, tmp_path: Path) -> None:
    (user / "make.sh").write_text(
        f"touch begun\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n{MAKE}"
    )
    first = start(request_of)
    trees = store.folder() / "trees"
    while not list(trees.glob("*/build/begun")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    second = start(request_of)
    said: list[str] = []
    assert second.stderr is not None
    for line in second.stderr:
        said.append(line)
        if "waiting for another framestorm" in line:
            (tmp_path / "go").write_text("")
            break
    assert (tmp_path / "go").exists(), said
    assert first.stdout is not None
    draining = threading.Thread(target=first.communicate)
    draining.start()
    out, _ = second.communicate()
    draining.join()
    assert first.returncode == second.returncode == 0
    assert Path(out.strip()).exists()
    assert lines(folder_of(request_of) / "made") == ["hotspot"]


def test_what_a_killed_build_left_is_removed(request_of: Request, user: Path) -> None:
    home = building.ensure(request_of)
    record = store.read(home)
    assert record is not None
    left = store.homes() / f".new-{record.tree}-1"
    left.mkdir()
    (left / store.RECORD).write_text((home / store.RECORD).read_text())
    assert [found for found, _ in store.finished()] == [home]
    (user / "make" / "jvm.gmk").write_text("other\n")
    building.ensure(request_of)
    assert not left.exists()


def test_the_make_of_a_killed_build_keeps_the_tree_locked(
    request_of: Request, user: Path, tmp_path: Path
) -> None:
    (user / "make.sh").write_text(
        f"touch begun\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n{MAKE}"
    )
    first = start(request_of)
    while not list((store.folder() / "trees").glob("*/build/begun")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.kill()
    first.wait()
    second = start(request_of)
    assert second.stderr is not None
    assert "waiting for another framestorm" in second.stderr.readline()
    (tmp_path / "go").write_text("")
    second.communicate()
    assert second.returncode == 0
    assert lines(folder_of(request_of) / "made") == ["hotspot", "hotspot"]
    for stream in (first.stdout, first.stderr):
        assert stream is not None
        stream.close()


def test_flags_are_never_none(tmp_path: Path) -> None:
    """`plain` and `coverage` share a tree: make would leave objects as they are."""
    for variant in variants.VARIANTS.values():
        variants.write_flags(variant, tmp_path)
        (flags,) = (
            line.partition(":=")[2]
            for line in (tmp_path / variants.FLAGS_FILE).read_text().splitlines()
            if line.startswith("FRAMESTORM_WALKER_CXXFLAGS")
        )
        assert flags.strip()
