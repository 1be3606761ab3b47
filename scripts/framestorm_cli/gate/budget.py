"""How the time is spent. It counts from when everything is built."""

import time

_STRESS = 0.15  # of the whole
_STEP = 0.03  # of one side
_SORT = 0.25  # for replays of what was found
_BASE = 0.25  # of the fuzzing and sorting, when there is a base
_STARTS = 20.0  # seconds that JVMs of fuzzing take to start, beside its time


class Budget:
    """Seconds for each step; what the first ones took is gone."""

    LEAST_PER_TARGET = 3.0  # seconds of fuzzing of one process

    def __init__(self, seconds: float, base: bool) -> None:
        self._whole = seconds
        self._end = time.monotonic() + seconds
        self._base = _BASE if base else 0.0
        self._for_fuzz: float | None = None
        self._sorting = self._end

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def _fuzzing(self) -> float:
        """Of the change and the base. Fixed when fuzzing begins."""
        if self._for_fuzz is None:
            sides = 2 if self._base else 1
            others = (_STRESS + _SORT + _STEP * sides) * self._whole
            self._for_fuzz = max(0.0, self.left - others - _STARTS * sides)
        return self._for_fuzz

    def fuzz(self) -> float:
        return self._fuzzing() * (1 - self._base)

    def fuzz_base(self) -> float:
        return self._fuzzing() * self._base

    def sort(self) -> float:
        """Of what the change does: all of it, since what it leaves is enough to say what is fixed."""
        self._sorting = time.monotonic()
        return _SORT * self._whole

    def sort_base(self) -> float:
        spent = time.monotonic() - self._sorting
        return max(0.0, _SORT * self._whole - spent)

    def step(self) -> float:
        """Of one side, once."""
        return max(5.0, _STEP * self._whole)

    def stress(self) -> float:
        return max(20.0, _STRESS * self._whole)
