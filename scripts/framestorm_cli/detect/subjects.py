"""What is looked for: a planted bug, a mutant, or nothing, which is the control of either."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.detect import catalogue, libraries
from framestorm_cli.detect.catalogue import Bug
from framestorm_cli.detect.mutation import STATEMENT, Mutant
from framestorm_cli.native.walkers import Table

CONTROL = "control"  # the JDK without a bug
UNMUTATED = "unmutated"  # the JDK of the mutants with none in force
WHOLE = "whole"  # the same of deleted statements
CONTROLS = (CONTROL, UNMUTATED, WHOLE)


@dataclass(frozen=True)
class Subject:
    """`control`: the name of what it is compared with, itself for a control. `functions`: as Bug has it."""

    id: str
    control: str
    walkers: tuple[str, ...]
    functions: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def home(self, variant: str) -> Path:
        """The JDK to look on, built when it is not there. Raises FramestormError."""
        if self.control in (UNMUTATED, WHOLE):
            return libraries.mutated(variant, statements=self.control == WHOLE)
        if self.id == CONTROL:
            return libraries.control(variant)
        return libraries.planted(catalogue.chosen((self.id,))[0], variant)

    def against(self) -> "Subject":
        """Its control."""
        return Subject(self.control, self.control, self.walkers)


def of_bug(bug: Bug) -> Subject:
    return Subject(bug.id, CONTROL, bug.walkers, bug.functions)


def of_mutant(mutant: Mutant, table: Table) -> Subject:
    """Looked for with the walkers whose code it is in: those that are added, JFR's, or the JDK's own."""
    name = Path(mutant.file).name
    jfr = "jfr" in name.lower()
    walkers = tuple(
        walker.name
        for walker in table.walkers.values()
        if walker.origin == ("added" if jfr or name.startswith("async") else "jdk")
        and walker.comparable != jfr
    )
    control = WHOLE if mutant.rule == STATEMENT else UNMUTATED
    return Subject(mutant.id, control, walkers, (mutant.function,))


def controls(subjects: Sequence[Subject]) -> list[Subject]:
    """One for each set of walkers that is no part of another."""
    every = list({(one.control, one.walkers): one.against() for one in subjects}.values())
    return [
        one
        for one in every
        if not any(
            one.control == other.control and set(one.walkers) < set(other.walkers)
            for other in every
        )
    ]


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """With these in this process's environment, and in that of what it starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
