"""
Discriminant analysis with uncertain means
==========================================

Discriminant analysis treats the mean of every class as known. With a dozen rows of each class it is
uncertain. The imprecise Gaussian discriminant assumes that each mean lies in a box around the
sample mean, and excludes a class only if another is more probable for all such means.

More in the guide: :doc:`/how_to/discriminant`.
"""

# %%
# A quarter of the irises to train on, 12 or 13 of each species.

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
# Critical size of the boxes
# --------------------------
# The boxes grow with ``c``. ``critical_c`` is, for each class, the smallest ``c`` at which it is
# not excluded: 0 for the class that is best at the sample means, large for an improbable one. It
# measures doubt row by row, without a choice of ``c``.

flowers = X.loc[[1, 133, 77]]
print(model.classes_)
print(model.critical_c(flowers).round(2))

# %%
# By maximality, the sets for ``c=1`` are all classes whose critical ``c`` is at most 1:

for flower in model.predict_set(flowers, "maximality"):
    print(" or ".join(model.classes_[flower]))

# %%
# Set size and coverage
# ---------------------
# The critical values of all rows give the sets for every ``c``.

path = model.c_path(X[~few], y[~few])
for place in (0, 100, 300):
    print(f"c = {path.c[place]:.0f}: {path.mean_set_size[place]:.2f} classes on average,", end=" ")
    print(f"the right one among them in {path.coverage[place]:.1%}")

# %%
# With larger boxes more of the plane is undecided. The utilities u65 and u80 of a set of two that
# contains the true class are 0.65 and 0.8: the best ``c`` is larger for u80. ``c="auto"`` finds the
# best one by cross-validation.

from dubito.plots import DecisionRegionDisplay

figure, axes = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
for ax, c in zip(axes, (1.0, 3.0), strict=False):
    model.set_params(c=c).fit(X[few], y[few])
    DecisionRegionDisplay.from_estimator(model, X[few], y=y[few], ax=ax)
    ax.set_title(f"c = {c:g}")
for score in ("u65", "u80"):
    axes[2].plot(path.c, getattr(path, score), label=score)
axes[2].axhline(path.coverage[0], color="grey", linestyle=":", label="accuracy at c = 0")
axes[2].set(xlabel="c", ylabel="mean utility of the sets", title="the other irises")
axes[2].legend()
plt.show()
