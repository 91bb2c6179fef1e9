"""
Unfamiliar rows: bounds that widen where the data end
=====================================================

A model is as confident far away from its training rows as among them, and often more so.
Calibration does not help: it uses rows of the same distribution. ``NoveltyAwareClassifier`` tests
whether a row resembles the training rows, and widens the bounds where it does not.

More in the guide: :doc:`/how_to/novelty`.
"""

# %%
# Two classes of points, and a calibrated logistic regression, without and with novelty detection.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from dubito.calibration import CalibratedClassifier, EvidentialLogisticCalibrator
from dubito.conformal import NoveltyAwareClassifier

rng = np.random.default_rng(0)
y = np.tile([0, 1], 150)
X = rng.normal(np.where(y[:, None], [1.0, 0.5], [-1.0, -0.5]), 0.8)

plain = CalibratedClassifier(LogisticRegression(), EvidentialLogisticCalibrator()).fit(X, y)
aware = NoveltyAwareClassifier(plain).fit(X, y)

# %%
# Familiarity is a p-value
# ------------------------
# 0.5 means that half of the ordinary rows are at least as novel as this one. The smallest p-value
# with 300 rows is 1/301. Below ``rate``, 0.02 by default, the bounds of a row are widened: this
# happens to about one ordinary row in fifty.

points = np.array([[1.0, 0.5], [2.8, 1.6], [6.0, -4.0]])
for point, familiarity in zip(points, aware.familiarity(points), strict=True):
    print(point, f"familiarity {familiarity:.3f}")

ordinary = rng.normal(np.where(y[:, None], [1.0, 0.5], [-1.0, -0.5]), 0.8)
touched = (aware.familiarity(ordinary) < aware.rate).mean()
print(f"new ordinary rows with widened bounds: {touched:.1%}")

# %%
# The bounds of the three points, without ("alone") and with novelty detection ("aware"). The
# probability is the same.

for point in points:
    for name, model in (("alone", plain), ("aware", aware)):
        bounds = model.predict_bounds([point])
        print(f"{point} {name}: [{bounds.lower[0, 1]:.2f}, {bounds.upper[0, 1]:.2f}]")

# %%
# Where the data end
# ------------------
# The width of the bounds in the plane. Alone, the model has its narrowest bounds in the far
# corners, without any training rows; with novelty detection only near the training rows.

side = np.linspace(-7, 7, 121)
plane = np.array(np.meshgrid(side, side)).reshape(2, -1).T
figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, (("alone", plain), ("aware", aware)), strict=False):
    width = model.predict_bounds(plane).width[:, 1].reshape(121, 121)
    image = ax.pcolormesh(side, side, width, vmin=0, vmax=1, cmap="Blues", rasterized=True)
    for label, color in ((0, "tab:orange"), (1, "tab:green")):
        ax.scatter(*X[y == label].T, s=5, color=color)
    ax.set(title=f"{name}: width of the bounds", aspect="equal")
figure.colorbar(image, ax=axes[:2])

# Along the line on which the confidence of the model grows.
line = np.linspace(-7, 7, 300)
for name, model, color in (("aware", aware, "lightblue"), ("alone", plain, "black")):
    lower, upper = model.predict_bounds(np.column_stack([line, 0.5 * line]))
    axes[2].fill_between(line, lower[:, 1], upper[:, 1], color=color, alpha=0.5, label=name)
axes[2].set(title="bounds along the diagonal", xlabel="first feature", ylabel="probability of 1")
axes[2].legend()
plt.show()

# %%
# Declined rows
# -------------
# A row is declined where the probability between its bounds is below 1 - cost. The new rows are
# shifted in the second feature, and their labels are random: the model cannot predict them.

from dubito.decision import reject

moved = ordinary + np.array([0.0, 5.0])
labels = np.where(rng.random(300) < 0.5, y, 1 - y)
for name, model in (("alone", plain), ("aware", aware)):
    declined = reject(model.predict_bounds(moved), cost=0.1)
    wrong = (model.predict(moved) != labels) & ~declined
    print(f"{name}: {declined.mean():.0%} declined, {wrong.mean():.0%} wrong")
