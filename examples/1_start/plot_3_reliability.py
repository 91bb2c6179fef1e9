"""
How to read a reliability diagram
=================================

A weather forecast is reliable if it rains on seven of ten days with a forecast of 70 per cent. The
same holds for a classifier: of the rows with a confidence of 70 per cent, how many are right? A
reliability diagram shows this for all confidences at once.

More in the guide: :doc:`/how_to/metrics`.
"""

# %%
# Two classifiers of three kinds of wave. Naive Bayes treats neighbouring points of a wave as
# independent; a forest averages a hundred trees.

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
    print(f"{name}: accuracy {model.score(*test):.0%}, mean confidence {sure:.0%}")

# %%
# The diagram
# -----------
# Rows are sorted by confidence and divided into groups. Each point is a group: its mean confidence
# on the horizontal axis, its accuracy on the vertical one; the band is the range of chance for a
# reliable classifier. On the diagonal confidence equals accuracy.
#
# Naive Bayes lies below the diagonal: it is too confident. The forest lies above it: its trees
# disagree even where most of them are right.

from dubito.plots import ReliabilityDisplay

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, *test, n_bins=10, name=name, ax=ax)

# %%
# Calibrated
# ----------
# Both are calibrated by cross-validation on the same 500 rows.

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
# The expected calibration error is the mean distance from the diagonal. It does not measure how
# informative the probabilities are: a constant "one in three" is reliable too. The log loss
# measures both.

from sklearn.metrics import log_loss

from dubito.metrics import expected_calibration_error

errors = {}
for name, raw in models.items():
    for state, model in {"not calibrated": raw, "calibrated": calibrated[name]}.items():
        proba = model.predict_proba(test[0])
        errors[name, state] = expected_calibration_error(test[1], proba)
        loss = log_loss(test[1], proba)
        print(f"{name}, {state}: calibration error {errors[name, state]:.3f}, log loss {loss:.2f}")

plt.show()
