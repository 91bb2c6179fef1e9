"""Measurement of a speed claim: ratio of the CPU times of a named rival and ours in one run."""

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
        Task of both.
    rival : str
        Name of the other method.
    ours, theirs : callable
        Called without arguments.
    target : float
        Ratio of times to reach.
    repeats : int, default=7
        Rounds; in each, ours and theirs run in turn. The best times are compared.
    """

    task: str
    rival: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    target: float
    repeats: int = 7

    def ratio(self) -> float:
        """Return the rival's best CPU time over ours."""
        self.ours()  # load and compile outside the measurement
        ours, theirs = [], []
        for _ in range(self.repeats):
            ours.append(_cpu_seconds(self.ours))
            theirs.append(_cpu_seconds(self.theirs))
        return min(theirs) / min(ours)


def _cpu_seconds(run: Callable[[], object]) -> float:
    """Return the CPU seconds of one call, averaged over enough calls for the clock's resolution."""
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
