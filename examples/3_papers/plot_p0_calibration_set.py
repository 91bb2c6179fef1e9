"""
P0: the uncertainty of a calibration set
========================================

Figures 1 to 3 of Ph. Xu, F. Davoine and T. Denœux, *Evidential multinomial logistic regression for
multiclass classifier calibration*, Fusion 2015, redrawn: the more calibration rows, the more
precise is the slope of a softmax, and its uncertainty is propagated to the classes.

The paper's tables beside ours: :doc:`/results/p0`.
"""

# %%
# One-vs-all support vector machines are trained once, on 150 digits from 0 to 5; the other rows are
# only scored.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=150, random_state=0)
machine = make_pipeline(MinMaxScaler(), OneVsRestClassifier(SVC(C=10))).fit(X_train, y_train)
scores = machine.decision_function(X_rest)

# %%
# The scores are calibrated on a growing number of rows. The contour is the likelihood of a slope
# relative to the best one. A level set contains the slopes whose contour is at least the level.

from dubito.calibration import EvidentialMultinomialCalibrator

SIZES, LEVEL = (25, 100, 400), 0.2
calibrators = {
    n: EvidentialMultinomialCalibrator(targets="smoothed").fit(scores[:n], y_rest[:n])
    for n in SIZES
}
for n, calibrator in calibrators.items():
    low, high = calibrator.level_set(LEVEL)
    print(f"{n} rows: slope {calibrator.slope_:.2f}, at level {LEVEL} from {low:.2f} to {high:.2f}")

# %%
# Masses of a row
# ---------------
# The softmax of a row's scores divides the interval from 0 to 1 among the classes, differently for
# each slope. A random number z selects a class; if the slope is only known to lie in the grey band,
# z selects a set of classes. The probability of a set is its mass. The row drawn is the one where
# z = 0.6 selects most classes.

Z = 0.6
few = calibrators[SIZES[0]]
slopes = np.linspace(*few.level_set(LEVEL))
rows = scores[SIZES[-1] :]
cumulative = np.cumsum(np.exp(slopes[:, None, None] * rows), axis=2)
picked = np.sum(cumulative / cumulative[..., -1:] <= Z, axis=2)
row = rows[np.argmax(np.ptp(picked, axis=0))]

# %%
# The three figures side by side:

from dubito.plots import ContourDisplay

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
for n, calibrator in calibrators.items():
    ContourDisplay.from_estimator(calibrator, name=f"n = {n}", ax=left)
left.set_xlim(right=1.4 * left.get_xlim()[1])
left.legend(loc="upper right")
ContourDisplay.from_estimator(few, level=LEVEL, ax=middle)
theta = np.linspace(0, 2 * few.level_set(LEVEL)[1], 401)
display = ContourDisplay(theta=theta, contour=few.slope_contour(theta))
display.plot_regions(row, right, level=LEVEL, z=Z)
met = ", ".join(f"R{k + 1}" for k in np.flatnonzero(display.overlapped_))
right.set_title(f"inside the band z selects {met}", fontsize="medium")

# %%
# With few rows the paper's smoothed targets also shrink the slope towards zero, so the curves move
# as well as narrow. The last figure shows why the order of the classes matters with the paper's way
# of picking (``coupling="inverse_cdf"``): as the slope varies, z passes through the classes that
# happen to come next. dubito's default, ``coupling="gumbel"``, does not depend on the order.

plt.show()
