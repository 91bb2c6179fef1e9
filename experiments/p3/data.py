"""The nine datasets of Table 1 of Carranza Alarcón and Destercke 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.datasets import load

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]


class Published(NamedTuple):
    """A line of Table 1."""

    letter: str
    rows: int
    features: int
    labels: int


#: By their names in `dubito.datasets`, in the paper's order.
TABLE_1 = {
    "iris": Published("a", 150, 4, 3),
    "wine": Published("b", 178, 13, 3),
    "forest": Published("c", 198, 27, 4),
    "seeds": Published("d", 210, 7, 3),
    "dermatology": Published("e", 385, 34, 6),
    "vehicle": Published("f", 846, 18, 4),
    "vowel": Published("g", 990, 10, 11),
    "winequality_red": Published("h", 1599, 11, 6),
    "wallrobot": Published("i", 5456, 24, 4),
}
DATASETS = tuple(TABLE_1)
QUICK_DATASETS = ("iris", "seeds", "vowel")
#: Datasets with classes of hardly more rows than features.
FEW_ROWS = ("forest", "dermatology")
#: Datasets with so many rows in each class that boxes are small for all c up to 5.5.
MANY_ROWS = ("vehicle", "wallrobot")


def rows_of(name: str) -> tuple[Floats, Ints]:
    """Return the complete rows of a dataset and their classes, numbered from 0.

    Of forest the official training part, which has the paper's number of rows. Of dermatology 8
    rows without an age are left out.
    """
    bunch = load(name)
    X, y = bunch.X, np.unique(bunch.y, return_inverse=True)[1]
    if name == "forest":
        X, y = X[bunch.split["train"]], y[bunch.split["train"]]
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]
