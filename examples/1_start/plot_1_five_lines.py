"""
Five lines: bounds for any classifier
=====================================

Put your classifier into ``CalibratedClassifier`` and fit. The result has calibrated probabilities,
bounds that show how uncertain these are, and predictions of several classes, or of none, where a
single class would be a guess.

More in the guide: :doc:`/how_to/calibration`.
"""

# %%
# There are fifty irises to train on. A linear support vector machine separates the species, but has
# no probabilities.

import numpy as np
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from dubito.calibration import CalibratedClassifier

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]
clf = CalibratedClassifier(LinearSVC()).fit(X[::3], y[::3])

# %%
# Three flowers that are not among the training rows: how probable is each species?

flowers = X[[1, 98, 77]]
print(clf.classes_)
print(clf.predict_proba(flowers).round(2))

# %%
# Fifty rows do not determine a probability exactly. The lower bound (belief) is what the rows
# support, the upper bound (plausibility) is what they do not rule out.

bounds = clf.predict_bounds(flowers)
print("from", bounds.lower.round(2), "to", bounds.upper.round(2), sep="\n")

# %%
# The same as a picture: a bar from the lower to the upper bound, a dot at the probability.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(9, 2.2), sharey=True, layout="constrained")
for ax, row in zip(axes, range(3), strict=True):
    ax.barh(clf.classes_, bounds.width[row], left=bounds.lower[row], height=0.4, color="#E69F00")
    ax.plot(clf.predict_proba(flowers)[row], clf.classes_, "o", color="#0072B2")
    ax.set(xlim=(-0.03, 1.03), xlabel="probability", title=f"flower {row + 1}")

# %%
# A prediction may be a set of species. Here a set of two has utility 0.8 if it contains the right
# one, and 0 otherwise; the right species alone has 1. So two are predicted where one is uncertain:

for flower in clf.predict_set(flowers, rule="set_utility", utility="u80"):
    print(" or ".join(clf.classes_[flower]))

# %%
# Or a row may be declined and left to a person, if that costs a fifth of an error:

from dubito.decision import reject

unseen = np.arange(len(y)) % 3 > 0
declined = reject(clf.predict_bounds(X[unseen]), cost=0.2)
right = clf.predict(X[unseen]) == y[unseen]
print(f"{right.mean():.0%} right without declining")
print(f"{declined.mean():.0%} declined, and {right[~declined].mean():.0%} of the others right")

# %%
# The next example does the same without a model, from a file of its scores:
# :doc:`plot_2_scores_file`.

plt.show()
