"""
A report from Python
====================

``dubito report`` makes a page of a saved model and a table. From Python it takes any fitted
classifiers side by side, and returns the numbers of the page.

More in the guide: :doc:`/how_to/report`.
"""

# %%
# A third of the wines of three growers to train on, and only the first four measurements. Two
# classifiers are calibrated and compared; the report is about the first.

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from dubito.calibration import CalibratedClassifier

data = load_wine(as_frame=True)
X, y = data.data.iloc[:, :4], np.array(["Ada", "Berta", "Carla"])[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=60, random_state=0, stratify=y)
models = {
    "naive Bayes": CalibratedClassifier(GaussianNB(), cv=5).fit(X_train, y_train),
    "neighbours": CalibratedClassifier(KNeighborsClassifier(), cv=5).fit(X_train, y_train),
}

# %%
# The page
# --------
# ``write_report`` evaluates the models and writes one HTML file, which needs no network.
# The picture below is its beginning, for the tumours of ``make demo``.
#
# .. image:: /images/report.png
#    :alt: The report: accuracy, declined rows, and error by fraction of declined rows
#    :width: 80%

from dubito.report import write_report

with TemporaryDirectory() as folder:
    report = Path(folder, "report.html")
    collected = write_report(models, X_test, y_test, report, title="Whose wine is it?", cost=0.2)
    print(f"{report.name}: {report.stat().st_size / 1e6:.1f} MB")

# %%
# The numbers
# -----------
# Everything on the page is in the collected dict. Three sentences are its summary:

for line in collected["summary"]["lines"]:
    print(line)

# %%
# The models side by side, each metric with its 95 % interval:

shown = {}
for metric in collected["metrics"]:
    cells = [f"{c['value']:.3f} ({c['low']:.3f} to {c['high']:.3f})" for c in metric["cells"] if c]
    shown[metric["label"]] = dict(zip(collected["models"], cells, strict=False))
print(pd.DataFrame(shown).T.to_string())

# %%
# The most doubtful rows, and whether their bounds are wide or other classes are probable too:

doubtful = pd.DataFrame(collected["doubt"]["rows"])
print(doubtful[["name", "predicted", "truth", "probability", "width", "others", "cause"]].head())

# sphinx_gallery_thumbnail_path = 'images/report.png'  # noqa: ERA001
