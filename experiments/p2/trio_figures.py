"""Figures 9 to 12 of Denoeux 2019: Gaussian data, a network's masses and decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.pictures import blank
from experiments.p2 import canvas, trio

from dubito.plots import DecisionRegionDisplay, EvidenceDisplay, MassDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dubito.evidence import EvidentialClassifier

LABELS = np.array(["θ1", "θ2", "θ3"])
AXES = {"xlabel": "x1", "ylabel": "x2"}


def training_rows() -> tuple[trio.Floats, Any]:
    """Return the rows that trained the classifiers of the figures, round 0, and their labels."""
    X, y = trio.draw(0, 0)[0]
    return X, LABELS[y]


def figures(classifier: EvidentialClassifier, suffix: str) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a trained classifier with their names."""
    yield f"figure_10{suffix}", figure_10(classifier)
    yield f"figure_11{suffix}", figure_11(classifier)
    yield f"figure_12{suffix}", figure_12(classifier)


def figure_9() -> Figure:
    """Draw the data and the Bayes decision boundary."""
    figure = blank(7, 6)
    axes = figure.subplots()
    X, y = training_rows()
    for label, mark in zip(LABELS, "o^s", strict=True):
        axes.scatter(*X[y == label].T, marker=mark, s=14, label=label)
    _bayes(axes, X)
    axes.set(**AXES)
    axes.legend()
    return figure


def figure_10(classifier: EvidentialClassifier) -> Figure:
    """Draw level curves of the masses of all sets, with the MP boundary."""
    figure = blank(14, 7)
    places = figure.subplots(2, 4).ravel()
    places[-1].remove()
    X, _ = training_rows()
    fine = {"grid_resolution": canvas.RESOLUTION}
    MassDisplay.from_estimator(classifier, X, boundary=True, ax=places[:-1], **fine)
    for axes in places[:-1]:
        axes.set(**AXES)
    return figure


def figure_11(classifier: EvidentialClassifier) -> Figure:
    """Draw the masses of the hidden unit with the largest weights of evidence, over its output."""
    figure = blank(8, 5)
    X, _ = training_rows()
    piece = int(np.abs(classifier.weights(X)).sum(axis=(0, 2)).argmax())
    EvidenceDisplay.from_estimator(classifier, X, kind="mass", piece=piece, ax=figure.subplots())
    return figure


def figure_12(classifier: EvidentialClassifier) -> Figure:
    """Draw the regions of the ID rule, the MP boundary and the Bayes boundary."""
    figure = blank(9, 6)
    axes = figure.subplots()
    X, _ = training_rows()
    fine = {"grid_resolution": canvas.RESOLUTION}
    DecisionRegionDisplay.from_estimator(classifier, X, ax=axes, **fine)
    _bayes(axes, X, linestyles="dotted")
    axes.set(title="solid: MP boundary; dotted: Bayes boundary", **AXES)
    return figure


def _bayes(axes: Axes, X: trio.Floats, **style: str) -> None:
    """Draw the border of each class's Bayes region."""
    lines, points = canvas.grid_over(X)
    density = trio.densities(points)
    for k in range(density.shape[1]):
        ahead = density[:, k] - np.delete(density, k, axis=1).max(axis=1)
        heights = ahead.reshape(len(lines[1]), len(lines[0]))
        axes.contour(*lines, heights, [0.0], colors="black", **style)
