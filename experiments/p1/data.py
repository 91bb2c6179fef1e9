"""Rows of the binary experiments, in random order, and small classifiers trained on some."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
from experiments.common.svm import LIBSVM_DEFAULT, Kernel, scaled, train

from dubito.datasets import load, make_gaussian_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

SIMULATED = "simulated"
REAL = ("australian", "diabetes", "heart", "ionosphere")
DATASETS = (SIMULATED, *REAL)
KERNELS = {"rbf": LIBSVM_DEFAULT, "linear": Kernel(None, 1.0)}


class Cell(NamedTuple):
    """One unit of work."""

    dataset: str
    kernel: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.kernel}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.dataset}, {self.kernel} kernel, round {self.round + 1}"


def cells(rounds: int, *, quick: bool) -> list[Cell]:
    """List the work by rounds: a run that is stopped early has covered every dataset."""
    kernels = ("rbf",) if quick else tuple(KERNELS)
    return [Cell(d, k, r) for r in range(rounds) for d in DATASETS for k in kernels]


def draw(dataset: str, seed: Sequence[int], *, n_simulated: int) -> tuple[Floats, Ints]:
    """Return features and classes 0 and 1, rows in random order; simulated data are drawn anew."""
    rng = np.random.default_rng([*seed, crc32(dataset.encode())])
    if dataset == SIMULATED:
        return make_gaussian_pair(n_simulated, random_state=rng)
    bunch = load(dataset)
    y = np.unique(bunch.y, return_inverse=True)[1]
    rows = rng.permutation(len(y))
    return bunch.X[rows], y[rows]


def blocks(sizes: Sequence[int]) -> list[Ints]:
    """Return consecutive blocks of row numbers of those sizes."""
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def joint_scores(X: Floats, y: Ints, training: Sequence[Ints], kernel: Kernel) -> Floats:
    """Train a classifier on each block and return the scores (n, J) of all rows.

    Features are scaled to [-1, 1] over all blocks, as LIBSVM's svm-scale does.
    """
    unit = 2 * scaled(X, np.concatenate(training)) - 1
    machines = [train(unit[rows], y[rows, None] == 1, kernel) for rows in training]
    return np.column_stack([machine.decide(unit) for machine in machines])
