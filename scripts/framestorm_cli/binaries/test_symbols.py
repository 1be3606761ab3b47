from pathlib import Path

import pytest

from framestorm_cli.binaries import elf, symbols
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.jdks.jdk import Jdk


def test_places_become_functions(fake_jdk: Jdk) -> None:
    symbolizer = Symbolizer()
    modules = {"libjvm.so": str(fake_jdk.libjvm)}
    start, end = symbolizer.module(fake_jdk.libjvm).ranges("frame::sender")[0]
    inside = symbolizer.frame(f"libjvm.so+0x{start + 1:x}", modules, is_return=False)
    assert inside.function == "frame::sender(RegisterMap*) const"
    assert (inside.name, inside.into) == ("frame::sender", 1)
    # A call can be a function's last instruction: its return address is already the next function.
    after = symbolizer.frame(f"libjvm.so+0x{end:x}", modules, is_return=True)
    assert after.name == "frame::sender"
    at_end = symbolizer.frame(f"libjvm.so+0x{end:x}", modules, is_return=False)
    assert at_end.name != "frame::sender"


def test_unknown_places_keep_their_module(fake_jdk: Jdk) -> None:
    symbolizer = Symbolizer()
    for place in ("libjvm.so+0xfffffff", "libother.so+0x10"):
        frame = symbolizer.frame(place, {"libjvm.so": str(fake_jdk.libjvm)}, is_return=False)
        assert frame.function == ""
        assert frame.name == f"[{place.split('+')[0]}]"
        assert str(frame) == place


def test_overloads_and_templates_are_found_by_name(fake_jdk: Jdk) -> None:
    module = symbols.load(fake_jdk.libjvm)
    assert len(module.ranges("os::copy")) == 2
    assert len(module.ranges("fill")) == 1
    assert module.ranges("os::cop") == []


def test_the_cache_is_keyed_by_build_id_and_survives_damage(fake_jdk: Jdk, own_cache: Path) -> None:
    first = symbols.load(fake_jdk.libjvm)
    cached = own_cache / "symbols" / f"{elf.identify(fake_jdk.libjvm).build_id}.json"
    assert cached.exists()
    cached.write_text("{torn")
    again = symbols.load(fake_jdk.libjvm)
    assert again.ranges("frame::sender") == first.ranges("frame::sender")
    assert cached.read_text().startswith('{"format"')


def test_a_file_that_is_no_library_has_no_symbols(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "x.so"
    path.write_text("no")
    assert symbols.load(path).at(0) is None
    with pytest.raises(elf.NotElfError):
        elf.identify(path)
