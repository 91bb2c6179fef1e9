"""What doubt of unfamiliar rows saves: two tables of `benchmarks/quality_novelty.py`, in small."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "quality_novelty.py"


@pytest.mark.data
@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the benchmark script")
def test_discounting_unfamiliar_rows_avoids_errors_and_costs_little(monkeypatch):
    bench = runpy.run_path(str(SCRIPT))
    inside = bench["measure"].__globals__
    monkeypatch.setitem(inside, "SEEDS", range(1))
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    monkeypatch.setitem(inside, "models", lambda: {"logistic": linear})
    measured = [bench["measure"](name) for name in ("australian", "vehicle")]
    for part, most in (("unfamiliar", 0.9), ("familiar", 1.03)):
        alone, aware = np.mean([found[part] for found in measured], axis=0)[:, :2, 0]
        assert (aware <= most * alone).all(), part  # at costs 0.05 and 0.1
