"""The paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.pictures import blank, save_figures
from experiments.p2 import canvas, heart_figures, networks, perceptron, trio_figures

from dubito.evidence import conflict_from_weights, mass_from_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from dubito.evidence import EvidentialClassifier

#: Largest weight of evidence on the axes; the smallest is 0.
MOST_WEIGHT = 3.0


def draw_all(results: Mapping[str, list[Mapping[str, Any]]], folder: Path) -> int:
    """Write the figures of the parts that were run; raises ImportError without matplotlib."""
    return save_figures(_figures(results), folder, canvas.DPI)


def _figures(results: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[tuple[str, Figure]]:
    yield "figure_2", figure_2()
    if "heart" in results:
        yield from heart_figures.figures()
    networks_ = [one for one in results.get("networks", []) if one["variant"] == networks.MAIN]
    if networks_ or "perceptron" in results:
        yield "figure_9", trio_figures.figure_9()
    if networks_:
        yield from trio_figures.figures(_network(networks_[0]), "")
    if "perceptron" in results:
        alpha = perceptron.ALPHAS[perceptron.MAIN]
        classifier = perceptron.fitted(trio_figures.training_rows(), alpha, seed=0)
        yield from trio_figures.figures(classifier, "_perceptron")


def _network(result: Mapping[str, Any]) -> EvidentialClassifier:
    """Return the network of round 0 after the number of epochs that the tables show."""
    layers = result["after"][str(networks.MAIN_EPOCHS)]["layers"]
    return networks.as_classifier(layers, trio_figures.training_rows())


def figure_2() -> Figure:
    """Draw the masses and the conflict of two classes over the weights for and against."""
    lines = np.linspace(0, MOST_WEIGHT, canvas.RESOLUTION)
    plus, minus = np.meshgrid(lines, lines)
    # Two classes: evidence against the first class is evidence for the second.
    w_plus = np.column_stack([plus.ravel(), minus.ravel()])
    mass = mass_from_weights(w_plus, np.zeros_like(w_plus)).mass
    panels = {
        "m({θ1})": mass[:, 0],
        "m(Θ)": mass[:, 2],
        "conflict": conflict_from_weights(w_plus, np.zeros_like(w_plus)),
    }
    figure = blank(12, 4)
    for axes, (title, values) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        curves = axes.contour(lines, lines, values.reshape(plus.shape), np.arange(0.1, 1, 0.1))
        axes.clabel(curves, fmt="%.1f")
        axes.set(title=title, xlabel="w+", ylabel="w-", aspect="equal")
    return figure
