"""
Cautious by construction: means that are not quite known
========================================================

Discriminant analysis takes the mean of every class for known. With a dozen rows to a class it is
not. The imprecise Gaussian discriminant lets each mean lie anywhere in a box around the sample mean
and keeps every class that no other beats for all of these means.

The guide says more: :doc:`/how_to/discriminant`.
"""

# %%
# A quarter of the irises to learn from, 12 or 13 of each species.

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from dubito.discriminant import ImpreciseGaussianDiscriminant

data = load_iris(as_frame=True)
X = data.data[["sepal length (cm)", "petal width (cm)"]]
y = data.target_names[data.target]
few = X.index % 4 == 0
model = ImpreciseGaussianDiscriminant(covariance_type="full", c=1.0)
model.fit(X[few], y[few])

# %%
# How large a box does it take?
# -----------------------------
# The boxes grow with ``c``. ``critical_c`` says for each class how large ``c`` must be until it can
# no longer be ruled out: 0 for the class that is best at the sample means, large for one that is
# out of the question. So it grades doubt row by row, without choosing ``c`` first.

flowers = X.loc[[1, 133, 77]]
print(model.classes_)
print(model.critical_c(flowers).round(2))

# %%
# By maximality, the sets for ``c=1`` are all classes whose critical ``c`` is at most 1:

for flower in model.predict_set(flowers, "maximality"):
    print(" or ".join(model.classes_[flower]))

# %%
# What is caution worth?
# ----------------------
# From the critical values of all rows follow the sets for every ``c`` at once.

path = model.c_path(X[~few], y[~few])
for place in (0, 100, 300):
    print(f"c = {path.c[place]:.0f}: {path.mean_set_size[place]:.2f} classes on average,", end=" ")
    print(f"the right one among them in {path.coverage[place]:.1%}")

# %%
# Larger boxes make more of the plane undecided. Utilities reward a set of two with 0.65 or with 0.8
# if it holds the truth: who values caution takes the larger ``c``. ``c="auto"`` finds the best one
# by cross-validation.

from dubito.plots import DecisionRegionDisplay

figure, axes = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
for ax, c in zip(axes, (1.0, 3.0), strict=False):
    model.set_params(c=c).fit(X[few], y[few])
    DecisionRegionDisplay.from_estimator(model, X[few], y=y[few], ax=ax)
    ax.set_title(f"c = {c:g}")
for score in ("u65", "u80"):
    axes[2].plot(path.c, getattr(path, score), label=score)
axes[2].axhline(path.coverage[0], color="grey", linestyle=":", label="accuracy at c = 0")
axes[2].set(xlabel="c", ylabel="worth of the sets", title="the other irises")
axes[2].legend()
plt.show()
