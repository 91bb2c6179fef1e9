"""EvidenceDisplay where inputs are missing."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dubito.evidence import EvidentialClassifier
from dubito.plots import EvidenceDisplay


@pytest.mark.parametrize("kind", ["weight", "mass"])
def test_rows_whose_input_is_missing_are_not_drawn(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    X[::7, 0] = np.nan
    model = make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression())
    ev = EvidentialClassifier(model, groups="input").fit(X, y)
    axes = Figure().subplots()
    display = EvidenceDisplay.from_estimator(ev, X, kind=kind, piece="x0", ax=axes)
    assert np.isfinite(display.ax_.get_xlim()).all()
