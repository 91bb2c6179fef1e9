"""
From a file of scores only
==========================

Another program computed the scores, and only a table of them is available: one column for each
class, and for some rows the true class. This is what ``dubito calibrate`` and ``dubito predict`` do
in a terminal, done in Python.

More in the guide: :doc:`/how_to/calibration`.
"""

# %%
# Here the other program is a naive Bayes classifier of three kinds of wave. It writes its
# log-probabilities into two files; the first has the true class in a column ``wave``.

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB

from dubito.datasets import make_waveform

X, y = make_waveform(2_500, random_state=0)
wave = np.array(["calm", "ripple", "swell"])[y]
model = GaussianNB().fit(X[:200], wave[:200])
scores = pd.DataFrame(model.predict_joint_log_proba(X), columns=model.classes_).round(3)

folder = TemporaryDirectory()
known, new = Path(folder.name, "scores.csv"), Path(folder.name, "new.csv")
scores.assign(wave=wave)[200:500].to_csv(known, index=False)
scores[500:].to_csv(new, index=False)

# %%
# Calibrate
# ---------
# From here on only the files are used. In a terminal:
#
# .. code-block:: console
#
#    $ dubito calibrate scores.csv --label wave -o waves.skops
#
# In Python, ``input`` is the kind of the columns, here logarithms of probabilities:

from dubito.calibration import AutoCalibrator

table = pd.read_csv(known)
columns = ["calm", "ripple", "swell"]
calibrator = AutoCalibrator(input="logits").fit(table[columns], table["wave"])
print(table.head(3))
print(calibrator.summary_)

# %%
# Decide
# ------
# .. code-block:: console
#
#    $ dubito predict waves.skops new.csv -o decisions.csv --reject-cost 0.2

from dubito.decision import reject

rows = pd.read_csv(new)[columns]
bounds = calibrator.predict_bounds(rows)
decisions = pd.DataFrame({"decision": calibrator.predict(rows)})
decisions["probability"] = calibrator.predict_proba(rows).max(axis=1)
decisions["lower"], decisions["upper"] = bounds.lower.max(axis=1), bounds.upper.max(axis=1)
decisions["rejected"] = reject(bounds, cost=0.2)
print(decisions.head().round(2))

# %%
# Comparison with the true classes
# --------------------------------
# The waves are simulated, so the true classes of the new rows are known too. Naive Bayes is far too
# confident; after calibration its confidence is about its accuracy, and doubtful rows are declined.

import matplotlib.pyplot as plt
from scipy.special import softmax
from sklearn.metrics import log_loss

from dubito.plots import ReliabilityDisplay

truth = wave[500:]
forecasts = {
    "not calibrated": softmax(rows, axis=1),
    "calibrated": calibrator.predict_proba(rows),
}
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for name, proba in forecasts.items():
    print(f"{name}: log loss {log_loss(truth, proba):.2f}")
    ReliabilityDisplay.from_predictions(truth, proba, classes=columns, name=name, n_bins=10, ax=ax)

wrong = decisions["decision"] != truth
rejected = decisions["rejected"]
print(f"all decided: {wrong.mean():.1%} wrong")
print(f"{rejected.mean():.0%} left to a person: {wrong[~rejected].mean():.1%} of the others wrong")

# %%
# Save
# ----
# A saved model can be loaded in Python and on the command line. A model file contains no code that
# would run on loading; :doc:`/reference/model_files` lists what is checked.

from dubito import saving

path = Path(folder.name, "waves.skops")
saving.save(calibrator, path, kind="scores", columns=columns, label="wave", rows=len(table))
stamp = saving.read_stamp(path)
print(f"{stamp.kind} of {', '.join(stamp.columns)}, fitted on {stamp.rows} rows")
folder.cleanup()
plt.show()
