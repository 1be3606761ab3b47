"""What build.sh's environment asks for."""

from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.oss_fuzz import settings

OSS_FUZZ = {
    "CC": "clang",
    "CXX": "clang++",
    "CFLAGS": "-O1 -fsanitize=address",
    "CXXFLAGS": "-O1 -fsanitize=address -stdlib=libc++",
    "FUZZING_ENGINE": "libfuzzer",
    "LIB_FUZZING_ENGINE": "-fsanitize=fuzzer",
    "SANITIZER": "address",
    "ARCHITECTURE": "x86_64",
    "OUT": "/out",
    "WORK": "/work",
}


def test_oss_fuzz_environment() -> None:
    asked = settings.read(OSS_FUZZ)
    assert (asked.cc, asked.cxx, asked.link) == ("clang", "clang++", "-fsanitize=fuzzer")
    assert asked.cxxflags == OSS_FUZZ["CXXFLAGS"]
    assert (asked.out, asked.work) == (Path("/out"), Path("/work"))
    assert asked.variant == "sanitized"
    assert asked.walkers is None


@pytest.mark.parametrize(
    ("sanitizer", "variant"),
    [("undefined", "undefined"), ("coverage", "coverage"), ("none", "coverage")],
)
def test_each_sanitizer_has_its_jdk(sanitizer: str, variant: str) -> None:
    assert settings.read({**OSS_FUZZ, "SANITIZER": sanitizer}).variant == variant


def test_walkers() -> None:
    assert settings.read({**OSS_FUZZ, "FRAMESTORM_WALKERS": "all"}).walkers == ()
    two = settings.read({**OSS_FUZZ, "FRAMESTORM_WALKERS": "asgct, asgct2"}).walkers
    assert two == ("asgct", "asgct2")


def test_without_an_engine_nothing_is_linked() -> None:
    asked = settings.read({**OSS_FUZZ, "FUZZING_ENGINE": "none"})
    assert asked.link == ""  # OSS-Fuzz names a library that is not there


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"FUZZING_ENGINE": "honggfuzz"}, "FUZZING_ENGINE=honggfuzz"),
        ({"SANITIZER": "memory"}, "SANITIZER=memory"),
        ({"ARCHITECTURE": "i386"}, "ARCHITECTURE=i386"),
        ({"CXXFLAGS": "-O1"}, "-fsanitize=address"),
        ({"LIB_FUZZING_ENGINE": ""}, "LIB_FUZZING_ENGINE"),
        ({"OUT": ""}, "OUT is not set"),
        ({"WORK": ""}, "WORK is not set"),
        ({"CXX": ""}, "CXX is not set"),
    ],
)
def test_what_cannot_be_built_is_said(change: dict[str, str], words: str) -> None:
    with pytest.raises(FramestormError, match=words):
        settings.read({**OSS_FUZZ, **change})


def test_other_flags_have_another_build_folder() -> None:
    one = settings.read(OSS_FUZZ).build_folder
    other = settings.read({**OSS_FUZZ, "CXXFLAGS": "-O2 -fsanitize=address"}).build_folder
    assert one != other
    assert one == settings.read(dict(OSS_FUZZ)).build_folder
