"""
When to decline, and what it costs
==================================

A wrong answer costs 1. Asking a person costs less, say 0.2, because she is usually right but her
time is not free. Then a row should be declined when every answer is expected to cost more than
that. With bounds there is more than one way to expect.

The guide says more: :doc:`/how_to/decision`.
"""

# %%
# Sixty tumours, measured in ten ways, are all that a naive Bayes classifier and its calibration
# have seen. The other 509 are new.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dubito.calibration import CalibratedClassifier

data = load_breast_cancer()
X, y = data.data[:, :10], data.target_names[data.target]


def train(seed):
    """Return a classifier that has seen sixty tumours, and the others."""
    X_train, X_new, y_train, y_new = train_test_split(
        X, y, train_size=60, random_state=seed, stratify=y
    )
    return CalibratedClassifier(GaussianNB(), cv=5).fit(X_train, y_train), X_new, y_new


clf, X_new, y_new = train(seed=2)
print(f"{clf.score(X_new, y_new):.1%} right if it must always answer")

# %%
# Two temperaments, and the default between them
# ----------------------------------------------
# The optimist declines where even the upper bound of the best class leaves too much risk; the
# pessimist already where the lower bound does. Between them lies what sixty rows cannot settle. By
# default the pignistic probability decides, which lies between the bounds.

from dubito.decision import reject

COST = 0.2


def judge(clf, X_new, y_new):
    """Return what each strategy declines, gets wrong and costs."""
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
# Every cost at once
# ------------------
# To the left, the error that remains as more and more rows are declined. Both temperaments, and
# the probability between the bounds, decline in nearly the same order; they differ in how far they
# go, and the marks show where each stops if asking costs 0.2. To the right, what a row costs on
# average, errors and questions together.

from dubito.plots import ErrorRejectDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
display = ErrorRejectDisplay.from_estimator(clf, X_new, y_new, cost=COST, ax=left)
display.plot(kind="mean_cost", cost=COST, ax=right)
right.set(xlim=(0, 0.5), ylim=(0, 0.12))

# %%
# Does caution pay?
# -----------------
# One split proves little. Here are the averages of twenty, and the worst of them.

tables = pd.concat([judge(*train(seed)) for seed in range(20)])
average = tables.groupby(level=0).mean()
print(average.round(3))
print("most wrong in any split:")
print(tables["wrong"].groupby(level=0).max().round(3))

# %%
# Declining pays, for all. The pessimist asks twice as often as the optimist and errs half as often
# when he answers; his questions cost a little more than the errors that they save. What he buys
# is an insurance against splits in which sixty rows mislead. With more rows to calibrate on the
# bounds close, and all three become one.

plt.show()
