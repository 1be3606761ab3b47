"""The JDK of a bundle."""

import shutil
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.oss_fuzz import jdk_image, settings
from framestorm_cli.oss_fuzz.test_settings import OSS_FUZZ


@pytest.fixture
def home(jdk_home: Path, own_cache: Path, tmp_path: Path) -> Path:
    """A home with more than the victims use."""
    home = tmp_path / "jdk"
    shutil.copytree(jdk_home, home)
    for name in ("bin/java", "lib/src.zip", "lib/libawt.so", "lib/modules", "lib/libjava.so"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(name)
    (home / "lib" / "security").mkdir()
    (home / "lib" / "security" / "default.policy").write_text("grant")
    return home


def test_what_no_victim_uses_stays_behind(home: Path) -> None:
    image = jdk_image.trimmed(jdks.validate(home))
    found = {str(path.relative_to(image)) for path in image.rglob("*") if path.is_file()}
    assert found == {
        "release",
        "lib/modules",
        "lib/libjava.so",
        "lib/security/default.policy",
        "lib/server/libjvm.so",
    }
    # The archives of shared classes know the time of the file they were made from.
    assert (image / "lib/modules").stat().st_mtime == (home / "lib/modules").stat().st_mtime


def test_it_is_copied_once(home: Path) -> None:
    image = jdk_image.trimmed(jdks.validate(home))
    (image / "lib/modules").write_text("kept")
    assert jdk_image.trimmed(jdks.validate(home)) == image
    assert (image / "lib/modules").read_text() == "kept"


def test_an_incomplete_jdk_is_an_error(home: Path) -> None:
    (home / "lib" / "modules").unlink()
    with pytest.raises(FramestormError, match="no lib/modules"):
        jdk_image.trimmed(jdks.validate(home))


def test_a_jdk_has_to_fit_the_sanitizer(home: Path) -> None:
    asked = settings.read({**OSS_FUZZ, "FRAMESTORM_JDK": str(home)})
    with pytest.raises(FramestormError, match=r"does not have ASan.*variant sanitized"):
        jdk_image.choose(asked)
    fits = settings.read({**OSS_FUZZ, "SANITIZER": "coverage", "FRAMESTORM_JDK": str(home)})
    assert jdk_image.choose(fits).home == home
