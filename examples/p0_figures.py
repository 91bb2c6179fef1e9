"""Figures 1 to 3 of P0: what a calibration set says of the slope, and what that means for a row.

    python examples/p0_figures.py figures/

One-vs-all support vector machines on the satimage data (on scikit-learn's digits where satimage is
not at hand) are trained once, on a few rows; their scores are calibrated on more and more rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from dubito.calibration import EvidentialMultinomialCalibrator
from dubito.datasets import DatasetError, load
from dubito.plots import ContourDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

N_TRAIN = 150
SIZES = (25, 100, 400)
LEVEL = 0.2
Z = 0.6


class Scores(NamedTuple):
    """Scores of rows the classifier has not seen, their classes, and the data's name."""

    scores: NDArray[np.float64]
    y: NDArray[np.intp]
    name: str


def make_scores(seed: int = 0) -> Scores:
    """Train on some rows and score the others."""
    try:
        bunch = load("satimage")
        X, y, name = bunch.X, np.unique(bunch.y, return_inverse=True)[1], "satimage"
    except DatasetError:
        X, y = load_digits(return_X_y=True)
        name = "digits"
    rows = np.random.default_rng(seed).permutation(len(y))
    train, rest = rows[:N_TRAIN], rows[N_TRAIN:]
    machine = make_pipeline(MinMaxScaler(), OneVsRestClassifier(SVC(C=10)))
    return Scores(machine.fit(X[train], y[train]).decision_function(X[rest]), y[rest], name)


def calibrated(data: Scores, n: int) -> EvidentialMultinomialCalibrator:
    """Calibrate on the first n rows."""
    return EvidentialMultinomialCalibrator().fit(data.scores[:n], data.y[:n])


def draw_sample_sizes(data: Scores, ax: Axes) -> None:
    """Figure 1: the more rows, the narrower the likelihood."""
    for n in SIZES:
        ContourDisplay.from_estimator(calibrated(data, n), name=f"n = {n}", ax=ax)
    ax.set_xlim(right=1.4 * ax.get_xlim()[1])
    ax.legend(loc="upper right")


def draw_level_set(data: Scores, ax: Axes) -> None:
    """Figure 2: the slopes at least as plausible as a level."""
    ContourDisplay.from_estimator(calibrated(data, SIZES[0]), level=LEVEL, ax=ax)


def draw_regions(data: Scores, ax: Axes) -> None:
    """Figure 3: the classes that a row may have, for one z and the slopes of a level set."""
    calibrator = calibrated(data, SIZES[0])
    theta = np.linspace(0, 2 * calibrator.level_set(LEVEL)[1], 401)
    display = ContourDisplay(theta=theta, contour=calibrator.contour(theta))
    row = most_classes_met(data.scores[SIZES[-1] :], np.linspace(*calibrator.level_set(LEVEL)))
    display.plot_regions(row, ax, level=LEVEL, z=Z)
    names = ", ".join(f"R{j + 1}" for j in np.flatnonzero(display.overlapped_))
    ax.set_title(f"inside the band z meets {names}", fontsize="medium")


def most_classes_met(rows: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the row where z falls in the regions of most classes as the slope varies."""
    sums = np.cumsum(np.exp(slopes[:, None, None] * rows), axis=2)
    column = np.sum(sums / sums[..., -1:] <= Z, axis=2)
    return rows[np.argmax(np.ptp(column, axis=0))]


FIGURES = {"figure1": draw_sample_sizes, "figure2": draw_level_set, "figure3": draw_regions}


def main() -> None:
    """Draw each figure by itself, and all three side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    data = make_scores()
    together = Figure(figsize=(13, 3.6), layout="constrained")
    axes = together.subplots(1, len(FIGURES))
    for (name, draw), ax in zip(FIGURES.items(), axes, strict=True):
        alone = Figure(figsize=(5, 3.6), layout="constrained")
        draw(data, alone.subplots())
        alone.savefig(folder / f"{name}.png", dpi=120)
        draw(data, ax)
    together.savefig(folder / "p0_figures.png", dpi=90)
    print(f"{data.name}: figures 1 to 3 and p0_figures.png are in {folder}")


if __name__ == "__main__":
    main()
