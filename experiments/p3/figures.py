"""Figures in the manner of the poster's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.pictures import blank, save_figures
from experiments.p3 import measures
from experiments.p3.data import TABLE_1
from experiments.p3.protocol import DIVISOR, PUBLISHED, RULE, TABLE

from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.plots import DecisionRegionDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from experiments.p3.measures import Results
    from experiments.p3.protocol import Floats
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points along each axis at which classifiers predict.
RESOLUTION = 150
DPI = 120
#: Rows of each class in Figures 1 and 2: few, so that their means are uncertain.
N_PER_CLASS = 15
CENTRES = {"a": (0.0, 0.0), "b": (2.5, 0.5), "c": (1.0, 2.5)}
SPREADS = {"a": (1.0, 0.6, 1.0), "b": (0.6, -0.2, 0.8), "c": (1.2, -0.5, 0.6)}
#: Values of c, the size of the boxes, in Figures 1 and 2.
CS = (2.0, 5.0)
MODELS = {"tied": "ILDA", "full": "IQDA"}
COLOURS = {"u80": "tab:blue", "u65": "tab:orange"}


def draw_all(results: Mapping[str, Results], folder: Path) -> int:
    """Write the figures of the parts that were run; raises ImportError without matplotlib."""
    return save_figures(_figures(results), folder, DPI)


def _figures(results: Mapping[str, Results]) -> Iterator[tuple[str, Figure]]:
    yield "figure_1", regions("ab")
    yield "figure_2", regions("abc")
    if "table" not in results:
        return
    yield "figure_3ab", abstention(results["table"])
    for dataset in measures.by_dataset(results["table"]):
        suffix = "c" if dataset == "vowel" else f"c_{dataset}"
        yield f"figure_3{suffix}", utilities(results["table"], dataset)


def training_rows(classes: str) -> tuple[Floats, Any]:
    """Return a few rows of each class, each with its own mean and covariance."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for k in classes:
        first, both, second = SPREADS[k]
        covariance = np.array([[first, both], [both, second]])
        X.append(rng.multivariate_normal(CENTRES[k], covariance, size=N_PER_CLASS))
        y += [k] * N_PER_CLASS
    return np.vstack(X), np.array(y)


def regions(classes: str) -> Figure:
    """Draw the decided sets over the plane: models in rows, c growing to the right."""
    figure = blank(13, 10)
    X, y = training_rows(classes)
    for axes, (kind, name) in zip(figure.subplots(2, len(CS)), MODELS.items(), strict=True):
        for place, c in zip(axes, CS, strict=True):
            model = ImpreciseGaussianDiscriminant(
                covariance_type=kind, c=c, **PUBLISHED, divisor=DIVISOR, n_jobs=1
            ).fit(X, y)
            DecisionRegionDisplay.from_estimator(
                model, X, y=y, rule=RULE, grid_resolution=RESOLUTION, ax=place
            )
            place.set_title(f"{name}, c = {c:g}")
    return figure


def abstention(results: Results) -> Figure:
    """Draw how often sets of several classes are right, and the precise model on these rows."""
    figure = blank(12, 5)
    datasets = list(measures.by_dataset(results))
    for axes, model in zip(figure.subplots(1, 2), TABLE, strict=True):
        pooled = [measures.pooled(results, dataset, model) for dataset in datasets]
        points = np.array([[one["precise"], one["covered"]] for one in pooled])
        axes.plot([0, 100], [0, 100], color="0.7", linewidth=1)
        axes.scatter(*points.T, color="tab:blue", zorder=2)
        for dataset, point in zip(datasets, points, strict=True):
            if np.isfinite(point).all():
                letter = TABLE_1[dataset].letter
                axes.annotate(letter, point, xytext=(4, 4), textcoords="offset points")
        name = model.upper()
        axes.set(
            title=f"rows that I{name} leaves undecided (c by u80)",
            xlabel=f"accuracy of {name} (%)",
            ylabel=f"correctness of I{name} (%)",
            xlim=(0, 106),
            ylim=(0, 106),
        )
    return figure


def utilities(results: Results, dataset: str) -> Figure:
    """Draw utilities over c, mean of repetitions with their range."""
    figure = blank(12, 4.5)
    for axes, model in zip(figure.subplots(1, 2), TABLE, strict=True):
        _curves(axes, measures.curve(results, dataset, model))
        axes.set(title=f"I{model.upper()} on {dataset}", xlabel="c", ylabel="utility (%)")
        axes.legend()
    return figure


def _curves(axes: Axes, path: Mapping[str, Floats]) -> None:
    for score, colour in COLOURS.items():
        values = path[score]
        axes.plot(path["c"], values.mean(axis=0), color=colour, label=score)
        ends = values.min(axis=0), values.max(axis=0)
        axes.fill_between(path["c"], *ends, color=colour, alpha=0.2, linewidth=0)
    precise = path["u80"][:, 0].mean()
    axes.axhline(precise, color="0.4", linestyle=":", label="accuracy of the precise model")
