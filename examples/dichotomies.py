"""Two hundred classes: a tree, its calibration by depth, and what more trees are worth.

Draws the picture of docs/dichotomies.md: ``python examples/dichotomies.py --picture tree.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from dubito.datasets import make_many_classes
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.metrics import expected_calibration_error

TREES = (1, 2, 3, 5, 8)


def main() -> None:
    """Fit, tell, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="where to draw to")
    picture = parser.parse_args().picture
    X, y = make_many_classes(8_000, n_classes=200, n_features=64, random_state=0)
    train, test = (X[:6_000], y[:6_000]), (X[6_000:], y[6_000:])
    errors = {external: by_depth(external, train, test) for external in (None, "vector")}
    for external, error in errors.items():
        print(f"external={external!r}: calibration error {error[-1]:.3f} over all classes")
    losses = {pooling: by_trees(pooling, train, test) for pooling in ("geometric", "arithmetic")}
    for pooling, loss in losses.items():
        print(f"{pooling}: log loss {loss[0]:.2f} with one tree, {loss[-1]:.2f} with {TREES[-1]}")
    if picture is not None:
        draw(errors, losses, picture)


def by_depth(external: str | None, train: Any, test: Any) -> list[float]:
    """Calibration error of the groups of classes at each depth of one random tree."""
    model = NestedDichotomyClassifier(structure="random", external=external, random_state=0)
    model.fit(*train)
    rows, truth = test
    group_of = np.empty(len(model.classes_), dtype=int)
    errors = []
    for depth in range(1, model.tree_.depth + 1):
        groups = model.tree_.cut(depth)
        group_of[np.searchsorted(model.classes_, model.tree_.leaves)] = groups
        proba = model.predict_proba_at_depth(rows, depth)
        labels = group_of[np.searchsorted(model.classes_, truth)]
        errors.append(expected_calibration_error(labels, proba, classes=range(proba.shape[1])))
    return errors


def by_trees(pooling: str, train: Any, test: Any) -> list[float]:
    """Log loss of ensembles of clustered trees, by their number."""
    rows, truth = test
    losses = []
    for n_trees in TREES:
        model = NestedDichotomyEnsemble(n_estimators=n_trees, pooling=pooling, random_state=0)
        losses.append(log_loss(truth, model.fit(*train).predict_proba(rows)))
    return losses


def draw(errors: dict[Any, list[float]], losses: dict[str, list[float]], picture: Path) -> None:
    """Draw a tree of digits, calibration by depth, and losses by number of trees."""
    mpl.use("agg")
    figure, axes = plt.subplots(1, 3, figsize=(16, 4.6), layout="constrained")
    digits = NestedDichotomyClassifier(random_state=0).fit(*load_digits(return_X_y=True))
    digits.tree_.plot(ax=axes[0])
    axes[0].set_title("a clustered tree of digits")
    for external, error in errors.items():
        name = "vector scaling" if external else "none"
        axes[1].plot(range(1, len(error) + 1), error, marker="o", markersize=3, label=name)
    axes[1].set(xlabel="depth of the cut", ylabel="expected calibration error")
    axes[1].set_title("200 classes, a random tree")
    axes[1].legend(title="external calibration")
    for pooling, loss in losses.items():
        axes[2].plot(TREES, loss, marker="o", label=pooling)
    axes[2].set(
        xlabel="trees", ylabel="log loss", yscale="log", title="200 classes, clustered trees"
    )
    axes[2].legend(title="pooling", loc="center right")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
