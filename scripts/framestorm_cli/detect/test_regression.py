"""What was found once is found: six bugs of the benchmark, each as its libjvm has it."""

from pathlib import Path

import pytest

from framestorm_cli.detect import catalogue, measuring, subjects
from framestorm_cli.detect.measuring import Planned

pytestmark = pytest.mark.detection

BUGS = (
    "asgst-frame-behind-the-last",
    "asgst-method-unchecked",
    "asgst-null-context-dereferenced",
    "asgst-stack-word-read-plainly",
    "asgst-walk-allocates",
    "walk-in-the-resource-area",
)
SECONDS = 30.0


def test_they_are_of_several_classes() -> None:
    assert len({bug.kind for bug in catalogue.chosen(BUGS)}) >= 3


@pytest.mark.parametrize("bug", BUGS)
def test_it_is_found(bug: str, tmp_path: Path) -> None:
    """Its libjvm, and the JDK that it is put into, are built where the cache has none: nothing is skipped."""
    subject = subjects.of_bug(catalogue.chosen((bug,))[0])
    made = measuring.run(Planned(subject, "libfuzzer", 1, 1, SECONDS, 3, tmp_path))
    assert not made.problem, made.problem
    assert made.triggered, f"no walk did what is wrong; {made.walks} walks"
    assert made.found is not None, f"reported was {[str(one) for one in made.signatures]}"
