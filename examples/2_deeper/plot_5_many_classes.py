"""
Hundreds of classes: a tree of binary problems
==============================================

A nested dichotomy splits the classes in two groups, and each group again, until single classes are
left. Every split is a small binary problem, so thousands of classes are feasible. Each probability
is a product along a path, which has to be calibrated as a whole.

More in the guide: :doc:`/how_to/dichotomies`.
"""

# %%
# The tree
# --------
# By default similar classes stay together as long as possible. The tree of ten digits is small
# enough to be drawn:

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

X, y = load_digits(return_X_y=True)
digits = NestedDichotomyClassifier(random_state=0).fit(X[::2], y[::2])
print(f"{digits.score(X[1::2], y[1::2]):.1%} of the digits right")
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
digits.tree_.plot(ax=ax)

# %%
# Two hundred classes
# -------------------
# They come in groups of similar classes. ``predict_topk`` returns the most probable five, best
# first.

from dubito.datasets import make_many_classes
from dubito.metrics import expected_calibration_error

X, y = make_many_classes(8_000, n_classes=200, n_features=64, random_state=0)
train, test = (X[:6_000], y[:6_000]), (X[6_000:], y[6_000:])
model = NestedDichotomyClassifier(random_state=0).fit(*train)
found = model.predict_topk(test[0], 5) == test[1][:, None]
print(f"right: {found[:, 0].mean():.1%}; among the best five: {found.any(axis=1).mean():.1%}")

# %%
# Calibration along the path
# --------------------------
# Small errors of confidence multiply along a path. Cut the tree at some depth and predict the group
# of classes below: the deeper the cut, the worse the calibration, unless the result is calibrated
# again as a whole (``external="vector"``).


def calibration_by_depth(external):
    """Return the calibration error of a random tree that is cut at each depth."""
    model = NestedDichotomyClassifier(structure="random", external=external, random_state=0)
    model.fit(*train)
    place = np.searchsorted(model.classes_, model.tree_.leaves)
    group_of = np.empty(len(place), dtype=int)
    errors = []
    for depth in range(1, model.tree_.depth + 1):
        group_of[place] = model.tree_.cut(depth)
        proba = model.predict_proba_at_depth(test[0], depth)
        truth = group_of[np.searchsorted(model.classes_, test[1])]
        errors.append(expected_calibration_error(truth, proba, classes=range(proba.shape[1])))
    return errors


by_depth = {external: calibration_by_depth(external) for external in (None, "vector")}
for external, errors in by_depth.items():
    print(f"external={external!r}: calibration error {errors[-1]:.3f} over all classes")

# %%
# More trees
# ----------
# Trees differ, and so do their errors. Their probabilities may be averaged, or multiplied and
# normalised (``pooling="geometric"``, the default).


def loss_of_trees(n_trees, pooling):
    """Return the log loss of an ensemble."""
    ensemble = NestedDichotomyEnsemble(n_estimators=n_trees, pooling=pooling, random_state=0)
    return log_loss(test[1], ensemble.fit(*train).predict_proba(test[0]))


TREES = (1, 2, 4, 8)
losses = {
    pooling: [loss_of_trees(n, pooling) for n in TREES] for pooling in ("geometric", "arithmetic")
}
for pooling, loss in losses.items():
    print(f"{pooling}: log loss {loss[0]:.2f} with one tree, {loss[-1]:.2f} with {TREES[-1]}")

# %%
# Calibration by depth, and the loss by the number of trees:

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for external, errors in by_depth.items():
    name = "vector scaling" if external else "none"
    left.plot(range(1, len(errors) + 1), errors, marker="o", markersize=3, label=name)
left.set(xlabel="depth of the cut", ylabel="expected calibration error", title="a random tree")
left.legend(title="external calibration")
for pooling, loss in losses.items():
    right.plot(TREES, loss, marker="o", label=pooling)
right.set(xlabel="trees", ylabel="log loss", yscale="log", title="clustered trees")
right.legend(title="pooling")
plt.show()
