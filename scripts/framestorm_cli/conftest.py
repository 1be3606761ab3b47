"""What tests share: a small HotSpot look-alike, and native programs that do what a test says."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.binaries.symbols import ModuleSymbols, Symbolizer
from framestorm_cli.fakes import plan
from framestorm_cli.jdks import jdk
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import Toolchain

TESTDATA = Path(__file__).parent / "testdata"

_LIBJVM = """
#line 1 "/sources/src/hotspot/share/runtime/frame.cpp"
#define KEEP __attribute__((noinline, used, visibility("hidden")))
struct RegisterMap { int x; };
struct frame {
  KEEP int sender(RegisterMap* map) const;
  KEEP int sender_for_compiled_frame(RegisterMap* map) const;
};
int frame::sender(RegisterMap* map) const { return map->x + 1; }
int frame::sender_for_compiled_frame(RegisterMap* map) const { return map->x + 2; }
struct os { KEEP static int copy(int); KEEP static int copy(long); };
int os::copy(int x) { return x + 3; }
int os::copy(long x) { return (int)x + 4; }
template <typename T> KEEP T fill(T x) { return x + 5; }
int use() { return fill<int>(1); }
extern "C" {
void* gHotSpotVMStructs = 0;
int AsyncGetCallTrace(RegisterMap* map) { frame f; return f.sender(map) + 6; }
}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: Python does not look through it again and again."""
    gc.freeze()


def compile_library(source: str, target: Path, *flags: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["clang++-19", "-shared", "-fPIC", "-O1", "-gline-tables-only", "-Wl,--build-id"]
    command += ["-x", "c++", "-"]
    subprocess.run([*command, "-o", str(target), *flags], input=source, text=True, check=True)


def planted_library(source: str, jdk: Jdk | None, folder: Path, *flags: str) -> Path:
    """What a file of testdata/ compiles to, against the JNI headers."""
    library = folder / "planted.so"
    include = toolchain.headers(jdk)
    compiler = "clang++-19" if source.endswith(".cpp") else "clang-19"
    command = [compiler, "-shared", "-fPIC", "-O0", *flags, "-I", str(include)]
    command += ["-I", str(include / "linux"), "-I", str(paths.CHECKOUT / "harness" / "walkers")]
    subprocess.run([*command, "-o", str(library), str(TESTDATA / source)], check=True)
    return library


@pytest.fixture(scope="session")
def jdk_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a JDK whose libjvm.so has symbols and no code worth running."""
    home = tmp_path_factory.mktemp("jdk")
    compile_library(_LIBJVM, home / "lib" / "server" / "libjvm.so")
    release = 'IMPLEMENTOR="Fake"\nJAVA_VERSION="25.0.3"\nJAVA_RUNTIME_VERSION="25.0.3+9"\n'
    (home / "release").write_text(release)
    return home


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FRAMESTORM_CACHE", str(folder))
    return folder


@pytest.fixture
def fake_jdk(jdk_home: Path, own_cache: Path) -> Jdk:
    return jdk.validate(jdk_home)


class Planned:
    """Stand-ins in a folder, and what their plan.json says; see fakes/."""

    def __init__(self, folder: Path, libjvm: Path, **more: Any) -> None:
        self.folder = folder
        self.symbols: ModuleSymbols = Symbolizer().module(libjvm)
        self._plan: dict[str, Any] = {
            "modules": {"libjvm.so": str(libjvm)},
            "hs_err": str(TESTDATA / "hs_err_jdk25.log"),
            **more,
        }

    def _save(self) -> None:
        (self.folder / "plan.json").write_text(json.dumps(self._plan))

    def place(self, function: str) -> str:
        """A place inside a function of the fake libjvm."""
        start, _ = self.symbols.ranges(function)[0]
        return f"libjvm.so+0x{start + 2:x}"

    def fault(self, key: str, *functions: str, **more: Any) -> dict[str, Any]:
        """A fault with these functions on its stack, and the entry point below them."""
        stack = [self.place(name) for name in (*functions, "AsyncGetCallTrace")]
        fault = {"signal": "SIGSEGV", "si_code": 1, "address": "0x8", "pc": stack[0]}
        return {"key": key, "kind": "fault", "stack": stack, **fault, **more}

    def starts(self, name: str) -> list[list[str]]:
        """The arguments of every start so far of a program, or of a workload with the agent."""
        count = len(list(self.folder.glob(f"{name}.start*")))
        return [json.loads((self.folder / f"{name}.start{n}").read_text()) for n in range(count)]


class FakePrograms(Planned):
    """Native programs in a folder; `plan(name, entry, entry, ...)` says what each start does."""

    def __init__(self, folder: Path, tools: Toolchain) -> None:
        super().__init__(folder, tools.jdk.libjvm, programs={})
        self.tools = tools
        for name in toolchain.PROGRAMS:
            plan.install(folder / name, "fake_native")
        self._save()

    def plan(self, name: str, *entries: dict[str, Any]) -> None:
        self._plan["programs"][name] = list(entries)
        self._save()

    def install_afl(self, *found: str, rate: str = "123.45") -> None:
        """An afl-fuzz that finds these inputs and says that it ran so many a second; put the folder on
        PATH."""
        self._plan |= {"found": list(found), "executions per second": rate}
        self._save()
        plan.install(self.folder / "afl-fuzz", "fake_afl")
        (self.folder / "afl").mkdir(exist_ok=True)
        (self.folder / "afl" / "framestorm_afl_mutator.so").touch()
        for name in paths.TARGETS:
            (self.folder / "afl" / name).unlink(missing_ok=True)
            (self.folder / "afl" / name).symlink_to(self.folder / name)

    def afl_start(self) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of the last afl-fuzz."""
        said = json.loads((self.folder / "afl-fuzz.json").read_text())
        return said["argv"], said["env"]

    def answer(self, command: str, answer: Any) -> None:
        self._plan[command] = answer
        self._save()


@pytest.fixture
def fakes(tmp_path: Path, fake_jdk: Jdk, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    folder = tmp_path / "bin"
    folder.mkdir()
    classes = tmp_path / "classes"
    classes.mkdir()
    monkeypatch.setenv("FRAMESTORM_BIN", str(folder))
    tools = Toolchain(folder, classes, fake_jdk)
    monkeypatch.setattr("framestorm_cli.native.toolchain.victims", lambda _: classes)
    return FakePrograms(folder, tools)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def framestorm(
    fakes: FakePrograms, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs a command of the CLI on the fakes: exit code, stdout, stderr."""
    from framestorm_cli import main

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["framestorm", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.main()
            raise SystemExit(0)
        out, err = capfd.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), out, err

    return run
