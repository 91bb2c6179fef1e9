"""Figures 5 to 8 of Denoeux 2019: age and LDL cholesterol as evidence of an infarction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from experiments.common.pictures import blank
from experiments.p2 import canvas, heart

from dubito.plots import DecisionRegionDisplay, EvidenceDisplay, MassDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dubito.evidence import EvidentialClassifier

LABELS = np.array(["absent", "present"])
AXES = {"xlabel": "age", "ylabel": "LDL"}


def figures() -> Iterator[tuple[str, Figure]]:
    """Yield the figures with their names."""
    X, y = heart.patients()
    classifier = heart.fitted(X, LABELS[y])
    for name, draw in {
        "figure_5": figure_5,
        "figure_6": figure_6,
        "figure_7": figure_7,
        "figure_8": figure_8,
    }.items():
        yield name, draw(classifier, X, LABELS[y])


def figure_5(classifier: EvidentialClassifier, X: heart.Floats, y: heart.Ints) -> Figure:
    """Draw the patients, the decision boundary and lines of equal probability."""
    figure = blank(7, 5)
    axes = figure.subplots()
    _patients(axes, X, y)
    lines, points = canvas.grid_over(X)
    proba = classifier.predict_proba(points)[:, 1].reshape(len(lines[1]), len(lines[0]))
    levels = np.arange(1, 10) / 10
    widths = np.where(np.isclose(levels, 0.5), 2.5, 0.8)
    curves = axes.contour(*lines, proba, levels, colors="black", linewidths=widths)
    axes.clabel(curves, fmt="%.1f")
    axes.set(title="probability of presence", **AXES)
    return figure


def _patients(axes: Axes, X: heart.Floats, y: heart.Ints) -> None:
    for label, mark, colour in zip(LABELS, "o^", ("tab:blue", "tab:red"), strict=True):
        rows = X[y == label]
        axes.scatter(*rows.T, marker=mark, s=16, facecolors="none", edgecolors=colour, label=label)
    axes.legend(loc="upper left")


def figure_6(classifier: EvidentialClassifier, X: heart.Floats, y: heart.Ints) -> Figure:
    """Draw the weight of evidence of each feature over its values."""
    return _by_feature(classifier, X, "weight", y)


def figure_7(classifier: EvidentialClassifier, X: heart.Floats, _: heart.Ints) -> Figure:
    """Draw the masses of each feature over its values."""
    return _by_feature(classifier, X, "mass", None)


def _by_feature(
    classifier: EvidentialClassifier, X: heart.Floats, kind: str, y: heart.Ints | None
) -> Figure:
    figure = blank(12, 4)
    for j, axes in enumerate(figure.subplots(1, 2)):
        EvidenceDisplay.from_estimator(classifier, X, kind=kind, piece=j, y=y, ax=axes)
        axes.set_xlabel(tuple(AXES.values())[j])
    return figure


def figure_8(classifier: EvidentialClassifier, X: heart.Floats, y: heart.Ints) -> Figure:
    """Draw belief, plausibility, ignorance with conflict, and the decision regions."""
    figure = blank(12, 9)
    (a, b), (c, d) = figure.subplots(2, 2)
    present = [["present"]]
    fine = {"grid_resolution": canvas.RESOLUTION}
    for quantity, axes in (("belief", a), ("plausibility", b)):
        MassDisplay.from_estimator(classifier, X, focal=present, quantity=quantity, ax=axes, **fine)
    both = [LABELS.tolist()]
    MassDisplay.from_estimator(classifier, X, focal=both, conflict=True, ax=c, **fine)
    DecisionRegionDisplay.from_estimator(classifier, X, y=y, ax=d, **fine)
    for axes in (a, b, c, d):
        axes.set(**AXES)
    return figure
