"""Irises from a dozen rows to a class: where discriminant analysis had better name two.

Draws the picture of docs/discriminant.md: ``python examples/discriminant.py --picture sets.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from dubito.discriminant import CPath, ImpreciseGaussianDiscriminant
from dubito.plots import DecisionRegionDisplay

FEATURES = ["sepal length (cm)", "petal width (cm)"]


def main() -> None:
    """Fit, tell, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="where to draw to")
    picture = parser.parse_args().picture
    data = load_iris(as_frame=True)
    X, y = data.data[FEATURES], data.target_names[data.target]
    few = X.index % 4 == 0
    model = ImpreciseGaussianDiscriminant(covariance_type="full", box="scaled", c=1.0)
    model.fit(X[few], y[few])
    path = model.c_path(X[~few], y[~few])
    for c in (0, 100, 300):
        print(
            f"c = {path.c[c]:.0f}: {path.mean_set_size[c]:.2f} classes on average, the right one "
            f"among them in {path.coverage[c]:.1%} of {(~few).sum()} irises"
        )
    if picture is not None:
        draw(model, X[few], y[few], path, picture)


def draw(model: ImpreciseGaussianDiscriminant, X: Any, y: Any, path: CPath, picture: Path) -> None:
    """Draw the sets of two imprecisions, and what sets are worth along all."""
    mpl.use("agg")
    figure, axes = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
    for ax, c in zip(axes, (1.0, 3.0), strict=False):
        model.set_params(c=c).fit(X, y)
        DecisionRegionDisplay.from_estimator(model, X, y=y, ax=ax)
        ax.set_title(f"c = {c:g}")
    for score in ("u65", "u80"):
        axes[2].plot(path.c, getattr(path, score), label=score)
    axes[2].axhline(path.coverage[0], color="grey", linestyle=":", label="accuracy at c = 0")
    axes[2].set(xlabel="c", ylabel="worth of the sets", title="the other irises")
    axes[2].legend()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
