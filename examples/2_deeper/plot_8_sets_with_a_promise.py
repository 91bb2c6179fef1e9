"""
Sets with a promise: coverage that stays where it was asked for
===============================================================

Sets of the classes that no other beats shrink as rows come in, to the one class that is most
probable, right or wrong. ``ConformalClassifier`` promises how often its sets hold the true class,
with few rows and with many, whatever the model is worth.

The guide says more: :doc:`/how_to/conformal`.
"""

# %%
# Three kinds of points that overlap, and new ones to judge by.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from dubito.calibration import CalibratedClassifier, EvidentialMultinomialCalibrator
from dubito.conformal import ConformalClassifier
from dubito.metrics import coverage, coverage_by_size, mean_set_size

rng = np.random.default_rng(0)
CENTRES = np.array([[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]])


def draw(n):
    labels = rng.integers(3, size=n)
    return rng.normal(CENTRES[labels]), labels


X_new, y_new = draw(5000)

# %%
# Asked for nine in ten
# ---------------------
# The same classifier twice, on more and more rows: the sets of its bounds, and conformal ones.

models = {
    "by bounds": CalibratedClassifier(LogisticRegression(), EvidentialMultinomialCalibrator()),
    "conformal": ConformalClassifier(LogisticRegression()),
}
sizes = [30, 100, 300, 1000, 3000]
held = {name: [] for name in models}
size = {name: [] for name in models}
for n in sizes:
    X, y = draw(n)
    for name, model in models.items():
        sets = model.fit(X, y).predict_set(X_new)
        held[name].append(coverage(y_new, sets))
        size[name].append(mean_set_size(sets))

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name in models:
    axes[0].plot(sizes, held[name], "o-", label=name)
    axes[1].plot(sizes, size[name], "o-", label=name)
axes[0].axhline(0.9, color="grey", linestyle=":")
axes[0].set(title="sets that hold the true class", xlabel="rows", xscale="log", ylim=(0.6, 1))
axes[1].set(title="classes in a set", xlabel="rows", xscale="log")
axes[0].legend()
plt.show()

# %%
# P-values
# --------
# Behind the sets is a p-value for each class: how many of the rows with known labels fit their own
# label no better. Sets of any coverage follow from it, and so do bounds and masses.

model = models["conformal"]
print(model.classes_)
print(model.predict_contour([[0.0, 1.5], [0.0, 0.0], [0.0, -0.6]]).round(2))

# %%
# On average, not everywhere
# --------------------------
# The promise is for all rows together. Small sets are wrong more often than large ones.

for row in zip(*coverage_by_size(y_new, model.predict_set(X_new)), strict=True):
    print("sets of {}: {:.2f} hold the truth ({:.0%} of rows)".format(*row))
