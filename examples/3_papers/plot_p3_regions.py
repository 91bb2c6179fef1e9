"""
P3: decision regions with uncertain means
=========================================

Figure 2 of Y. C. Carranza Alarcón and S. Destercke, *Imprecise Gaussian discriminant
classification*, ISIPTA 2019, in its manner: the decided sets of classes over the plane, by
linear (ILDA) and quadratic (IQDA) discriminants, as the box of each mean grows.

The paper's tables beside ours: :doc:`/results/p3`.
"""

# %%
# Fifteen rows of each of three classes, with different means and covariances; the data are ours.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
centres = {"a": (0.0, 0.0), "b": (2.5, 0.5), "c": (1.0, 2.5)}
spreads = {"a": [[1.0, 0.6], [0.6, 1.0]], "b": [[0.6, -0.2], [-0.2, 0.8]]}
spreads["c"] = [[1.2, -0.5], [-0.5, 0.6]]
X = np.vstack([rng.multivariate_normal(centres[k], spreads[k], size=15) for k in "abc"])
y = np.repeat(list("abc"), 15)

# %%
# Models in rows, ``c`` growing to the right. The box around each mean reaches as far as ``c``
# divided by the number of rows of the class.

from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.plots import DecisionRegionDisplay

figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
undecided = {}
for line, (kind, name) in zip(axes, {"tied": "ILDA", "full": "IQDA"}.items(), strict=True):
    for ax, c in zip(line, (2.0, 5.0), strict=True):
        model = ImpreciseGaussianDiscriminant(covariance_type=kind, c=c, box="raw", shrinkage=None)
        rule = "maximality"  # as in the paper
        DecisionRegionDisplay.from_estimator(
            model.fit(X, y), X, y=y, rule=rule, grid_resolution=80, ax=ax
        )
        ax.set_title(f"{name}, c = {c:g}")
        undecided[name, c] = np.mean(model.predict_set(X, rule).sum(axis=1) > 1)

# %%
# How many of the rows themselves get more than one class:

for (name, c), fraction in undecided.items():
    print(f"{name}, c = {c:g}: {fraction:.0%} undecided")
plt.show()
