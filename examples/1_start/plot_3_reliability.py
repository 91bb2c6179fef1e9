"""
How to read a reliability diagram
=================================

A weather forecaster is reliable if it rains on seven of ten days that she called 70 per cent. The
same can be asked of a classifier: of the rows it was 70 per cent sure of, how many were right? A
reliability diagram answers for every degree of sureness at once.

The guide says more: :doc:`/how_to/metrics`.
"""

# %%
# Two classifiers learn to tell three kinds of wave apart. Naive Bayes takes neighbouring points of
# a wave for independent witnesses; a forest lets a hundred trees vote.

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from dubito.datasets import make_waveform

X, y = make_waveform(3_500, random_state=0)
train, test = (X[:500], y[:500]), (X[500:], y[500:])
models = {
    "naive Bayes": GaussianNB().fit(*train),
    "forest": RandomForestClassifier(random_state=0).fit(*train),
}
for name, model in models.items():
    sure = model.predict_proba(test[0]).max(axis=1).mean()
    print(f"{name}: {model.score(*test):.0%} right, and {sure:.0%} sure on average")

# %%
# The diagram
# -----------
# Rows are sorted by how sure the classifier is, and cut into groups. A point is a group: to the
# right, how sure it was; upwards, how often it was right; the band is what chance alone may do with
# so many rows. On the diagonal the two are the same.
#
# Naive Bayes lies below it: too sure, it promises more than it keeps. The forest lies above it: its
# trees disagree even where most of them are right.

from dubito.plots import ReliabilityDisplay

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, *test, n_bins=10, name=name, ax=ax)

# %%
# Calibrated
# ----------
# Both learn, by cross-validation on the same 500 rows, what their sureness is worth.

from dubito.calibration import CalibratedClassifier, VectorCalibrator

calibrated = {
    name: CalibratedClassifier(model, VectorCalibrator(), cv=5).fit(*train)
    for name, model in models.items()
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, calibrated.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, *test, n_bins=10, name=f"{name}, calibrated", ax=ax)

# %%
# In numbers
# ----------
# The expected calibration error is the mean distance from the diagonal. It says nothing of how much
# is known: who always answers "one in three" is reliable too. The log loss punishes both.

from sklearn.metrics import log_loss

from dubito.metrics import expected_calibration_error

errors = {}
for name, raw in models.items():
    for state, model in {"as it came": raw, "calibrated": calibrated[name]}.items():
        proba = model.predict_proba(test[0])
        errors[name, state] = expected_calibration_error(test[1], proba)
        loss = log_loss(test[1], proba)
        print(f"{name}, {state}: calibration error {errors[name, state]:.3f}, log loss {loss:.2f}")

plt.show()
