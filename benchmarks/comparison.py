"""How a speed claim is measured: against a named rival, in one run, by CPU time, as a ratio."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ours against a rival on the same task.

    Parameters
    ----------
    task : str
        What both do.
    rival : str
        Who does it the other way.
    ours, theirs : callable
        Called without arguments.
    target : float
        How many times faster ours is meant to be.
    repeats : int, default=7
        Rounds; in each, ours and theirs run in turn, and the best of each counts.
    """

    task: str
    rival: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    target: float
    repeats: int = 7

    def ratio(self) -> float:
        """Return the rival's best CPU time over ours."""
        self.ours()  # once to load and compile what is loaded and compiled once
        ours, theirs = [], []
        for _ in range(self.repeats):
            ours.append(_cpu_seconds(self.ours))
            theirs.append(_cpu_seconds(self.theirs))
        return min(theirs) / min(ours)


def _cpu_seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one call, averaged over enough calls to exceed the clock's grain."""
    gc.collect()
    calls = 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            run()
        spent = time.process_time() - start
        if spent > 0.02:
            return spent / calls
        calls *= 4
