"""Seed corpora and dictionaries."""

import re
import zipfile
from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.oss_fuzz import inputs


def encode(text: bytes) -> bytes:
    """As harness/input/binary.h has it, of what the tests need: four bytes, then mutations."""
    assert b"queue" not in text or b"walker" in text, "refused"
    mutations = [line for line in text.splitlines() if line.startswith((b"register", b"stack"))]
    body = b"".join(b"\x02" + line.split()[-1] for line in mutations)
    more = b"\x07" if b"depth" in text else b""
    return bytes([1, 1, 0, len(mutations) << 2 | len(more)]) + more + body


TEXTS = {
    "a": "framestorm-input 1\nscenario c1\n# why\nregister fp = unmapped\ndepth 3\n",
    "b": "framestorm-input 1\nscenario c2\nregister fp = unmapped\nstack sp + 1 = guard\n",
    "c": "framestorm-input 1\nscenario c1\nwalker w\nqueue register 2\nstack sp + 1 = guard\n",
}


def test_a_seed_corpus_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    assert inputs.write_seed_corpus(TEXTS, tmp_path / "a.zip", encode) == 3
    inputs.write_seed_corpus(TEXTS, tmp_path / "b.zip", encode)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: encode(text.encode()) for name, text in TEXTS.items()
        }


def test_tokens_are_single_mutations() -> None:
    tokens = inputs.tokens_of(TEXTS, encode)
    assert tokens == {
        b"\x02unmapped": "register fp = unmapped",
        b"\x02guard": "stack sp + 1 = guard",
    }


def test_a_dictionary_is_what_engines_read(tmp_path: Path) -> None:
    inputs.write_dictionary({b'\x02\xff"': "register fp = x", b"a": "y"}, tmp_path / "x.dict")
    lines = (tmp_path / "x.dict").read_text().splitlines()
    entries = [line for line in lines if not line.startswith("#")]
    assert entries == [r'mutation_0="\x02\xff\x22"', r'mutation_1="\x61"']
    assert all(re.fullmatch(r'\w+="(\\x[0-9a-f]{2})+"', entry) for entry in entries)


def test_every_target_has_seeds() -> None:
    for target in paths.TARGETS:
        assert inputs.texts_of(target)


def test_a_target_without_seeds_is_an_error() -> None:
    with pytest.raises(FramestormError, match="no seeds"):
        inputs.texts_of("fuzz_nothing")
