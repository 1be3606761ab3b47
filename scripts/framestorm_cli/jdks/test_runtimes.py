"""A release that is fetched: which one --jdk N means, and what a fetched one is good for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk, runtimes


def test_an_installed_jdk_of_the_release_is_taken(
    jdk_home: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("a", "21.0.1"), ("b", "21.0.9"), ("c", "25.0.3")):
        home = Path(shutil.copytree(jdk_home, tmp_path / "jvm" / name))
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    monkeypatch.setattr(jdk, "JVM_FOLDER", tmp_path / "jvm")
    assert choosing.choose(Path("21")).version == "21.0.9"
    with pytest.raises(FramestormError, match=r"no JDK 23 is below .* only JDK 21 is fetched"):
        choosing.choose(Path("23"))


def test_a_fetched_one_is_for_tests_and_for_who_asks_for_it(
    jdk_home: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Path(shutil.copytree(jdk_home, tmp_path / "jvm" / "a"))
    (installed / "release").write_text('JAVA_VERSION="17.0.9"\n')
    fetched = Path(shutil.copytree(jdk_home, runtimes.home_of(runtimes.WHEELS[21])))
    (fetched / "release").write_text('JAVA_VERSION="21.0.8"\n')
    monkeypatch.setattr(jdk, "JVM_FOLDER", tmp_path / "jvm")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [found.feature for found in runtimes.usable()] == [17, 21]
    assert choosing.choose(Path("21")).home == fetched
    assert choosing.choose(None).feature == 17


@pytest.mark.long
@pytest.mark.parametrize("feature", runtimes.WHEELS)
def test_its_programs_run(feature: int) -> None:
    found = runtimes.provide(feature)
    assert found.feature == feature
    done = subprocess.run(
        [found.home / "bin" / "java", "-version"], check=True, capture_output=True
    )
    assert found.version.encode() in done.stderr
    assert os.access(found.home / "lib" / "jspawnhelper", os.X_OK)
    assert (found.libjvm.parent / "classes.jsa").exists()
