"""
Three weak detectors combined
=============================

Each detector uses one third of an 8 x 8 digit. Its probabilities, discounted by its error rate,
become belief masses, which Dempster's rule combines. The result is more accurate than each of the
three, and shows which digits are doubtful.

More in the guide: :doc:`/how_to/belief`.
"""

# %%
# The detectors are logistic regressions on a part of the picture. Error rates are estimated by
# cross-validation.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
parts = {"top": slice(0, 24), "middle": slice(24, 40), "bottom": slice(40, 64)}
proba, error_rate = {}, {}
for name, part in parts.items():
    detector = LogisticRegression(max_iter=1000)
    guess = cross_val_predict(detector, X_train[:, part], y_train, cv=5)
    error_rate[name] = np.mean(guess != y_train)
    proba[name] = detector.fit(X_train[:, part], y_train).predict_proba(X_test[:, part])

# %%
# Combination
# -----------
# The masses of a detector that errs on a quarter of the digits are multiplied by three quarters;
# the rest goes to the set of all digits (ignorance). Then Dempster's rule combines the three.

from dubito.belief import MassBatch, conflict, dempster, discount, nonspecificity

sources = [
    discount(MassBatch.from_proba(range(10), proba[name]), error_rate[name]) for name in parts
]
fused = dempster(*sources)
bounds = fused.bounds()

# %%
# The combination is more accurate than each detector and than the average of probabilities:

average = np.mean(list(proba.values()), axis=0)
accuracy = {name: np.mean(p.argmax(axis=1) == y_test) for name, p in proba.items()}
accuracy["averaged"] = np.mean(average.argmax(axis=1) == y_test)
accuracy["fused"] = np.mean(bounds.upper.argmax(axis=1) == y_test)
for name, fraction in accuracy.items():
    print(f"{name:<9}{fraction:.1%} right")

# %%
# Doubtful digits
# ---------------
# Sets of digits may be predicted, here with utility 0.8 for a pair that contains the true one:

from dubito.decision import reject, set_utility
from dubito.metrics import coverage, error_reject_curve, mean_set_size

sets = set_utility(fused, "u80")
doubtful = sets.sum(axis=1) > 1
wrong = bounds.upper.argmax(axis=1) != y_test
print(f"sets of several digits: {doubtful.mean():.1%}; mean size {mean_set_size(sets):.2f}")
print(f"sets that contain the true digit: {coverage(y_test, sets):.1%}")
print(f"error of the most plausible digit: {wrong[doubtful].mean():.0%} of these rows,", end=" ")
print(f"{wrong[~doubtful].mean():.1%} of the others")

# %%
# Or digits may be declined:

for cost in (0.6, 0.4, 0.2):
    declined = reject(bounds, cost)
    print(f"cost {cost:g}: {declined.mean():.1%} declined,", end=" ")
    print(f"{wrong[~declined].mean():.1%} of the others wrong")

# %%
# Conflict
# --------
# Conflict is the mass that the detectors give to disjoint sets. The figure shows the doubtful digit
# with the largest conflict, and the error as a function of the fraction declined.

kappa = conflict(*sources)
disputed = int(np.argmax(np.where(doubtful, kappa, -1)))
print(f"digit {disputed} is a {y_test[disputed]}: conflict {kappa[disputed]:.2f},", end=" ")
print(f"ignorance {nonspecificity(fused)[disputed]:.2f} bits")

RED = "#b3261e"
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(11, 3.6), width_ratios=[2.2, 0.9, 1.6], layout="constrained"
)
shown = {name: (p, p.max(axis=1), {"color": "0.75"}) for name, p in proba.items()}
shown["averaged"] = (average, average.max(axis=1), {"color": "0.4", "ls": "--"})
shown["fused"] = (bounds.upper, bounds.lower.max(axis=1), {"color": RED, "lw": 2.5})
for name, (score, confidence, style) in shown.items():
    curve = error_reject_curve(y_test, score.argmax(axis=1), confidence)
    left.plot(curve.rejection, curve.error, label=name, **style)
left.legend(frameon=False)
left.set(xlabel="fraction declined", ylabel="error on the rest", xlim=(0, 0.6), ylim=(0, None))
left.set_title("Error and declined rows", loc="left")
middle.imshow(X_test[disputed].reshape(8, 8), cmap="gray_r")
for edge in (2.5, 4.5):
    middle.axhline(edge, color=RED, lw=0.8, ls=":")
middle.set(xticks=[], yticks=[])
middle.set_title("Largest conflict", loc="left")
right.barh(
    range(10),
    bounds.width[disputed],
    left=bounds.lower[disputed],
    color="#e8b4b0",
    label="ignorance",
)
right.barh(range(10), bounds.lower[disputed], color=RED, label="belief")
right.set(xlabel="belief to plausibility", yticks=range(10), xlim=(0, 0.6))
right.invert_yaxis()
right.set_title("Belief and plausibility", loc="left")
right.legend(frameon=False)
plt.show()
