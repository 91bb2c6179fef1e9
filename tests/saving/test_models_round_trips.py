"""A loaded model has the outputs of the saved one, bit for bit."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import ClassifierMixin

import dubito
from dubito.saving import load, read_stamp, save
from saving import zoo

IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from dubito.saving import load
from saving import zoo

for file in sorted(Path(sys.argv[1]).glob("*.skops")):
    table = file.with_suffix(".parquet")
    rows = pd.read_parquet(table) if table.exists() else np.load(file.with_suffix(".npy"))
    np.savez(file.with_suffix(".npz"), **zoo.answers(load(file).model, rows))
"""

FEW = [
    "EvidentialMultinomialCalibrator-4-words",
    "IsotonicCalibrator-2-numbers",
    "calibrated-forest",
    "fusion-joint",
    "evidential-table",
    "discriminant-auto",
    "nested-both",
    "ensemble",
    "pipeline",
]


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for question, answer in ours.items():
        assert answer.dtype == theirs[question].dtype, question
        np.testing.assert_array_equal(answer, theirs[question], err_msg=question)


@pytest.mark.filterwarnings("ignore::dubito.discriminant.WideBoxWarning")
@pytest.mark.filterwarnings("ignore::dubito.evidence.OneVsRestWarning")
@pytest.mark.parametrize("name", zoo.MODELS)
def test_answers_are_the_same(name, tmp_path):
    model, rows = zoo.fitted(name)
    stamp = save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops", trusted=zoo.TRUSTED.get(name, ()))
    assert type(loaded.model) is type(model)
    assert loaded.stamp == stamp == read_stamp(tmp_path / "model.skops")
    assert loaded.stamp.classes == model.classes_.tolist()
    assert_same(zoo.answers(model, rows), zoo.answers(loaded.model, rows))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dubito.discriminant.WideBoxWarning")
def test_answers_are_the_same_in_another_process(tmp_path):
    for name in FEW:
        model, rows = zoo.fitted(name)
        save(model, tmp_path / f"{name}.skops")
        if hasattr(rows, "to_parquet"):
            rows.to_parquet(tmp_path / f"{name}.parquet")
        else:
            np.save(tmp_path / f"{name}.npy", rows)
    tests = str(Path(zoo.__file__).parents[1])
    subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path)],
        check=True,
        env={**os.environ, "PYTHONPATH": tests},
    )
    for name in FEW:
        theirs = np.load(tmp_path / f"{name}.npz", allow_pickle=False)
        assert_same(zoo.answers(*zoo.fitted(name)), theirs)


def test_every_public_estimator_is_in_the_zoo():
    packages = [
        getattr(dubito, name)
        for name in ("calibration", "conformal", "dichotomies", "discriminant")
    ]
    packages += [dubito.evidence, sys.modules["dubito.pipeline"]]
    public = {
        thing
        for package in packages
        for thing in (getattr(package, name) for name in package.__all__)
        if inspect.isclass(thing) and issubclass(thing, ClassifierMixin)
    }
    assert len(public) > 15
    source = inspect.getsource(zoo)
    missing = {kind.__name__ for kind in public if kind.__name__ not in source}
    assert missing <= set(zoo.CALIBRATORS)


def test_a_loaded_model_can_be_saved_and_cloned_again(tmp_path):
    model, rows = zoo.fitted("nested-both")
    save(model, tmp_path / "one.skops")
    save(load(tmp_path / "one.skops").model, tmp_path / "two.skops")
    assert_same(zoo.answers(model, rows), zoo.answers(load(tmp_path / "two.skops").model, rows))


def test_skops_itself_can_read_our_files(tmp_path):
    import skops.io

    model, rows = zoo.fitted("calibrated")
    path = tmp_path / "model.skops"
    save(model, path)
    names = skops.io.get_untrusted_types(file=path)
    assert_same(zoo.answers(model, rows), zoo.answers(skops.io.load(path, trusted=names), rows))
