"""
Conformal sets: guaranteed coverage
===================================

Sets of non-dominated classes shrink to the most probable class as the number of rows grows, right
or wrong. ``ConformalClassifier`` guarantees how often its sets contain the true class, with few
rows and with many, however good the model is.

More in the guide: :doc:`/how_to/conformal`.
"""

# %%
# Three classes of points that overlap, and new points to test on.

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
# Coverage of 90 per cent
# -----------------------
# The same classifier twice, on a growing number of rows: sets by its bounds, and conformal sets.

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
axes[0].set(title="sets that contain the true class", xlabel="rows", xscale="log", ylim=(0.6, 1))
axes[1].set(title="classes in a set", xlabel="rows", xscale="log")
axes[0].legend()
plt.show()

# %%
# P-values
# --------
# The sets are based on a p-value for each class: the fraction of calibration rows that conform to
# their own label no better. They give sets of any coverage, bounds and masses.

model = models["conformal"]
print(model.classes_)
print(model.predict_contour([[0.0, 1.5], [0.0, 0.0], [0.0, -0.6]]).round(2))

# %%
# Coverage by size
# ----------------
# The guarantee is for all rows on average. Small sets are wrong more often than large ones.

for row in zip(*coverage_by_size(y_new, model.predict_set(X_new)), strict=True):
    print("sets of {}: {:.2f} contain the true class ({:.0%} of rows)".format(*row))
