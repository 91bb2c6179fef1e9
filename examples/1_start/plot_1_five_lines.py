"""
Five lines: any classifier, honest bounds
=========================================

Take the classifier you have, put it into ``CalibratedClassifier``, and fit. What comes out gives
probabilities that mean what they say, bounds that say how sure those are, and the choice to name
two classes or none where one would be a guess.

The guide says more: :doc:`/how_to/calibration`.
"""

# %%
# Fifty irises are all there is to learn from. A linear support vector machine tells them apart, but
# knows no probabilities.

import numpy as np
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from dubito.calibration import CalibratedClassifier

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]
clf = CalibratedClassifier(LinearSVC()).fit(X[::3], y[::3])

# %%
# Three flowers that it has not seen: how probable is each species?

flowers = X[[1, 98, 77]]
print(clf.classes_)
print(clf.predict_proba(flowers).round(2))

# %%
# Fifty rows do not pin a probability down. The lower bound is what the rows support for sure
# (belief), the upper one what they leave possible (plausibility).

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
# The answer may be a set of species. Here naming two is worth 0.8 of naming the right one alone
# (and nothing if it is not among them), so two are named where one would be a guess:

for flower in clf.predict_set(flowers, rule="set_utility", utility="u80"):
    print(" or ".join(clf.classes_[flower]))

# %%
# Or the answer may be "please look yourself", if that costs a fifth of an error:

from dubito.decision import reject

unseen = np.arange(len(y)) % 3 > 0
declined = reject(clf.predict_bounds(X[unseen]), cost=0.2)
right = clf.predict(X[unseen]) == y[unseen]
print(f"{right.mean():.0%} right if it must always answer")
print(f"{declined.mean():.0%} declined, and {right[~declined].mean():.0%} of the others right")

# %%
# That is all. The next example does the same for those who have no model at hand, only a file of
# its scores: :doc:`plot_2_scores_file`.

plt.show()
