"""
Three weak detectors, one honest answer
=======================================

Each detector sees one third of an 8 x 8 digit. Its probabilities, discounted by how often it errs,
become belief masses; Dempster's rule fuses them. What comes out is better than any of the three,
and knows when to doubt.

The guide says more: :doc:`/how_to/belief`.
"""

# %%
# The detectors are logistic regressions on a part of the picture. How often each errs is found by
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
# Fuse
# ----
# A detector that errs on a quarter of the digits is believed to three quarters; the rest of its
# mass is set aside for "I do not know". Then Dempster's rule combines the three.

from dubito.belief import MassBatch, conflict, dempster, discount, nonspecificity

sources = [
    discount(MassBatch.from_proba(range(10), proba[name]), error_rate[name]) for name in parts
]
fused = dempster(*sources)
bounds = fused.bounds()

# %%
# Three weak ones make a strong one, and a better one than the average of their probabilities:

average = np.mean(list(proba.values()), axis=0)
accuracy = {name: np.mean(p.argmax(axis=1) == y_test) for name, p in proba.items()}
accuracy["averaged"] = np.mean(average.argmax(axis=1) == y_test)
accuracy["fused"] = np.mean(bounds.upper.argmax(axis=1) == y_test)
for name, share in accuracy.items():
    print(f"{name:<9}{share:.1%} right")

# %%
# Doubt
# -----
# The fused belief may name a set. If a pair that holds the truth is worth 0.8 of the truth alone:

from dubito.decision import reject, set_utility
from dubito.metrics import coverage, error_reject_curve, mean_set_size

sets = set_utility(fused, "u80")
doubtful = sets.sum(axis=1) > 1
wrong = bounds.upper.argmax(axis=1) != y_test
print(f"doubts {doubtful.mean():.1%} of the digits, {mean_set_size(sets):.2f} classes on average")
print(f"its sets hold the truth in {coverage(y_test, sets):.1%}")
print(f"its best guess errs on {wrong[doubtful].mean():.0%} where it doubts,", end=" ")
print(f"and on {wrong[~doubtful].mean():.1%} where it does not")

# %%
# Or it may decline:

for cost in (0.6, 0.4, 0.2):
    declined = reject(bounds, cost)
    print(f"asking a person costs {cost:g}: declines {declined.mean():.1%},", end=" ")
    print(f"errs on {wrong[~declined].mean():.1%} of the rest")

# %%
# Where do they disagree?
# -----------------------
# Conflict is the mass that the detectors give to sets with nothing in common. Here is the doubtful
# digit with most of it, and beside it what declining buys.

kappa = conflict(*sources)
torn = int(np.argmax(np.where(doubtful, kappa, -1)))
print(f"digit {torn} is a {y_test[torn]}: conflict {kappa[torn]:.2f},", end=" ")
print(f"ignorance {nonspecificity(fused)[torn]:.2f} bits")

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
left.set_title("What doubt buys", loc="left")
middle.imshow(X_test[torn].reshape(8, 8), cmap="gray_r")
for edge in (2.5, 4.5):
    middle.axhline(edge, color=RED, lw=0.8, ls=":")
middle.set(xticks=[], yticks=[])
middle.set_title("They disagree", loc="left")
right.barh(
    range(10), bounds.width[torn], left=bounds.lower[torn], color="#e8b4b0", label="ignorance"
)
right.barh(range(10), bounds.lower[torn], color=RED, label="belief")
right.set(xlabel="belief to plausibility", yticks=range(10), xlim=(0, 0.6))
right.invert_yaxis()
right.set_title("What may it be?", loc="left")
right.legend(frameon=False)
plt.show()
