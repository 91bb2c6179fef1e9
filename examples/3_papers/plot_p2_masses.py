"""
P2: the evidence of a network
=============================

Figures 10 and 12 of T. Denœux, *Logistic regression, neural networks and Dempster-Shafer theory: a
new perspective*, Knowledge-Based Systems 176, 2019, redrawn small: the last layer of a trained
network defines a mass function, with masses of single classes, pairs and the set of all three.

The paper's tables beside ours: :doc:`/results/p2`.
"""

# %%
# Three overlapping Gaussian classes, and a network with two hidden layers. (The paper's is trained
# with dropout; this is scikit-learn's perceptron, with weight decay.)

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPClassifier

from dubito.datasets import make_gaussian_trio
from dubito.evidence import EvidentialClassifier

X, y = make_gaussian_trio(random_state=0)
labels = np.array(["θ1", "θ2", "θ3"])[y]
network = MLPClassifier((20, 10), alpha=0.5, batch_size=100, max_iter=500, random_state=0)
classifier = EvidentialClassifier(network).fit(X, labels)

# %%
# Masses
# ------
# The mass of each set of classes over the plane, and in black where the most plausible class
# changes. Most of it goes to single classes; along the borders some goes to pairs, and where the
# three classes meet some stays with all of them.

from dubito.plots import DecisionRegionDisplay, MassDisplay

figure, places = plt.subplots(2, 4, figsize=(14, 7), layout="constrained")
places[1, 3].remove()
MassDisplay.from_estimator(classifier, X, boundary=True, grid_resolution=60, ax=places.ravel()[:-1])

# %%
# Decisions
# ---------
# By interval dominance, all classes that no other class dominates: one in most of the plane,
# several along the borders.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
DecisionRegionDisplay.from_estimator(classifier, X, ax=ax)

# %%
# On new rows, the error is largest among the undecided ones:

X_new, y_new = make_gaussian_trio(15_000, random_state=1)
sets = classifier.predict_set(X_new)
decided = sets.sum(axis=1) == 1
wrong = classifier.predict(X_new) != np.array(["θ1", "θ2", "θ3"])[y_new]
print(f"{wrong.mean():.1%} wrong in all; the smallest error possible is 24.6%")
print(f"{decided.mean():.1%} decided, {wrong[decided].mean():.1%} of them wrong;", end=" ")
print(f"of the undecided {wrong[~decided].mean():.1%}")
plt.show()
