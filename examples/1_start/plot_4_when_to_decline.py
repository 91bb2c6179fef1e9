"""
When to decline, and what it costs
==================================

A wrong prediction costs 1. Asking a person costs less, say 0.2. Then a row should be declined when
every class has an expected cost above that. With bounds, the expected cost is an interval, and
there is more than one strategy.

More in the guide: :doc:`/how_to/decision`.
"""

# %%
# A naive Bayes classifier is trained and calibrated on sixty tumours with ten features. The other
# 509 are new.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dubito.calibration import CalibratedClassifier

data = load_breast_cancer()
X, y = data.data[:, :10], data.target_names[data.target]


def train(seed):
    """Return a classifier trained on sixty tumours, and the other tumours."""
    X_train, X_new, y_train, y_new = train_test_split(
        X, y, train_size=60, random_state=seed, stratify=y
    )
    return CalibratedClassifier(GaussianNB(), cv=5).fit(X_train, y_train), X_new, y_new


clf, X_new, y_new = train(seed=2)
print(f"{clf.score(X_new, y_new):.1%} right without declining")

# %%
# Three strategies
# ----------------
# "optimistic" declines where even the upper bound of the best class is below 1 - cost,
# "pessimistic" where the lower bound is. Rows between the two are those that sixty rows cannot
# decide. The default, "pignistic", uses a probability between the bounds.

from dubito.decision import reject

COST = 0.2


def judge(clf, X_new, y_new):
    """Return the fraction declined, the error and the cost of each strategy."""
    wrong = clf.predict(X_new) != y_new
    found = {"always answers": {"declined": 0.0, "wrong": wrong.mean(), "cost": wrong.mean()}}
    for strategy in ("optimistic", "pignistic", "pessimistic"):
        declined = reject(clf.predict_bounds(X_new), cost=COST, strategy=strategy)
        cost = (wrong & ~declined).mean() + COST * declined.mean()
        found[strategy] = {
            "declined": declined.mean(),
            "wrong": wrong[~declined].mean(),
            "cost": cost,
        }
    return pd.DataFrame(found).T


print(judge(clf, X_new, y_new).round(3))

# %%
# All costs
# ---------
# Left: the error of the remaining rows as more rows are declined. All strategies decline in nearly
# the same order but differ in how many rows they decline; the marks are for a cost of 0.2. Right:
# the mean cost of a row, errors and declined rows together.

from dubito.plots import ErrorRejectDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
display = ErrorRejectDisplay.from_estimator(clf, X_new, y_new, cost=COST, ax=left)
display.plot(kind="mean_cost", cost=COST, ax=right)
right.set(xlim=(0, 0.5), ylim=(0, 0.12))

# %%
# Twenty splits
# -------------
# Averages of twenty random splits, and the largest error in any of them.

tables = pd.concat([judge(*train(seed)) for seed in range(20)])
average = tables.groupby(level=0).mean()
print(average.round(3))
print("most wrong in any split:")
print(tables["wrong"].groupby(level=0).max().round(3))

# %%
# All strategies cost less than never declining. "pessimistic" declines twice as often as
# "optimistic" and has half its error on the other rows; the additional declined rows cost slightly
# more than the errors they avoid, but the worst splits are better. With more rows to calibrate on,
# the bounds become narrow and the strategies agree.

plt.show()
