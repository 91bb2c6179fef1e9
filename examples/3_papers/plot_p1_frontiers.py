"""
P1: rejection with few and many rows
====================================

Figure 1 of P. Minary, F. Pichon, D. Mercier, E. Lefevre and B. Droit, *Evidential joint calibration
of binary SVM classifiers using logistic regression*, SUM 2017, redrawn small: three classifiers are
calibrated jointly, on many rows or on few, and rows are rejected where the risk is too large.

The paper's tables beside ours: :doc:`/results/p1`.
"""

# %%
# Three support vector machines are trained on thirty rows each, drawn from two Gaussian classes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from dubito.datasets import make_gaussian_pair

X, y = make_gaussian_pair(290, random_state=3)
machines = [SVC().fit(X[start : start + 30], y[start : start + 30]) for start in (0, 30, 60)]


def scores(points):
    """Return the score of each machine."""
    return np.column_stack([machine.decision_function(points) for machine in machines])


# %%
# Joint calibration puts the scores of all three into one logistic model, on 200 rows or on 15.
# Rejecting costs 0.2, so a class is decided for where it is supported by more than 0.8: by its
# upper bound, its probability or its lower bound.

from dubito.calibration import EvidentialJointCalibrator

COST = 0.2
lines = np.linspace(-4, 4, 41)
square = np.stack(np.meshgrid(lines, lines), axis=-1).reshape(-1, 2)
margins = {}
for size in (200, 15):
    calibrator = EvidentialJointCalibrator(targets="smoothed")
    calibrator.fit(scores(X[90 : 90 + size]), y[90 : 90 + size])
    bounds = calibrator.predict_bounds(scores(square))
    support = {
        "optimistic": bounds.upper,
        "probabilistic": calibrator.predict_proba(scores(square)),
        "pessimistic": bounds.lower,
    }
    margins[size] = {name: s.max(axis=1) - (1 - COST) for name, s in support.items()}

# %%
# A frontier separates decided from rejected points. With 200 rows the three frontiers are close,
# and the pessimistic strategy rejects points far from the rows. With 15 rows the pessimistic
# strategy rejects nearly all points, and the optimistic one hardly any.

colours = {"optimistic": "tab:green", "probabilistic": "black", "pessimistic": "tab:red"}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
for ax, (size, margin) in zip(axes, margins.items(), strict=True):
    for k, mark in enumerate("ox"):
        ax.scatter(*X[:90][y[:90] == k].T, marker=mark, color="0.6", s=15)
    for name, heights in margin.items():
        rejected = np.mean(heights < 0)
        if 0 < rejected < 1:
            ax.contour(lines, lines, heights.reshape(41, 41), levels=[0.0], colors=colours[name])
        ax.plot([], [], color=colours[name], label=f"{name}: {rejected:.0%} rejected")
    ax.legend(loc="upper left")
    ax.set(title=f"calibrated on {size} rows", aspect="equal")
plt.show()
