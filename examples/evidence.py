"""Two tumours, about as probable: one says little, the other contradicts itself.

Draws the picture of docs/evidence.md: ``python examples/evidence.py --picture evidence.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.evidence import EvidentialClassifier
from dubito.plots import DecisionRegionDisplay, EvidenceDisplay

FEATURES = ["mean radius", "mean texture", "mean concavity"]
QUIET, TORN = 199, 68


def main() -> None:
    """Fit, tell, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="where to draw to")
    picture = parser.parse_args().picture
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[FEATURES], data.target_names[data.target]
    ev = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    told = ev.explain(X.loc[[QUIET, TORN]])
    for row in range(len(told)):
        print(told.text(row))
    if picture is not None:
        draw(ev, X, y, picture)


def draw(ev: EvidentialClassifier, X: Any, y: Any, picture: Path) -> None:
    """Draw the evidence of both tumours, and where such tumours lie."""
    mpl.use("agg")
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
    EvidenceDisplay.from_estimator(ev, X.loc[[QUIET]], ax=left)
    EvidenceDisplay.from_estimator(ev, X.loc[[TORN]], ax=middle)
    DecisionRegionDisplay.from_estimator(ev, X, y=y, features=(FEATURES[0], FEATURES[2]), ax=right)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
