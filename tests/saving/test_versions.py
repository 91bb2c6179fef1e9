"""Files of other versions are read, migrated, or refused with the reason."""

from __future__ import annotations

import warnings

import pytest
from sklearn.exceptions import InconsistentVersionWarning

import dubito
from dubito.calibration import PlattCalibrator
from dubito.saving import ModelFileError, load, read_stamp, save
from dubito.saving import stamp as stamps
from saving.forging import forge, node, nodes_of, put, value

MODEL = PlattCalibrator().fit([-2.0, -1.0, 0.5, 3.0], ["no", "no", "yes", "yes"])


@pytest.fixture
def path(tmp_path):
    save(MODEL, tmp_path / "model.skops", rows=4)
    return tmp_path / "model.skops"


def test_the_stamp_names_what_wrote_the_file(path):
    stamp = read_stamp(path)
    assert stamp.format == stamps.FORMAT
    assert stamp.dubito == dubito.__version__
    assert set(stamp.versions) == {"python", "numpy", "scipy", "scikit-learn", "skops"}
    assert stamp.saved.endswith("+00:00")


def test_a_newer_format_is_refused_and_its_writer_named(path):
    forge(path, stamp=lambda raw: raw.update(format=99, dubito="7.5", classes="in a new manner"))
    for read in (load, read_stamp):
        with pytest.raises(
            ModelFileError, match=r"dubito 7\.5 in format 99.*pip install --upgrade"
        ):
            read(path)


def test_an_older_format_is_brought_up_to_date(path, monkeypatch):
    """As if this dubito wrote format 3, and `rows` had been called `n` in 1 and `n_rows` in 2."""

    def rename(old, new):
        return lambda raw: {new if key == old else key: raw[key] for key in raw}

    forge(path, stamp=lambda raw: raw.update(n=raw.pop("rows")))
    monkeypatch.setattr(stamps, "FORMAT", 3)
    steps = {1: rename("n", "n_rows"), 2: rename("n_rows", "rows")}
    monkeypatch.setattr(stamps, "MIGRATIONS", steps)
    model, stamp = load(path)
    assert (stamp.format, stamp.rows) == (3, 4)
    assert model.predict([3.0]) == ["yes"]


def test_a_format_too_old_is_refused_and_its_writer_named(path):
    forge(path, stamp=lambda raw: raw.update(format=0, dubito="0.0.3"))
    with pytest.raises(ModelFileError, match=r"dubito 0\.0\.3 in format 0.*fit the model again"):
        read_stamp(path)


def test_an_unknown_writer_is_reported(path):
    forge(path, stamp=lambda raw: raw.update(format=0, dubito=["?"]))
    with pytest.raises(ModelFileError, match="an unknown dubito"):
        read_stamp(path)


def test_the_steps_from_older_formats_leave_no_gap():
    readable = sorted(stamps.MIGRATIONS)
    assert readable == list(range(stamps.FORMAT - len(readable), stamps.FORMAT))


def test_another_scikit_learn_is_warned_of_once(path):
    forge(path, stamp=lambda raw: raw["versions"].update({"scikit-learn": "1.2.3"}))
    read_stamp(path)
    with pytest.warns(
        InconsistentVersionWarning, match=r"saved with scikit-learn 1\.2\.3;"
    ) as seen:
        load(path)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert seen[0].message.original_sklearn_version == "1.2.3"


def test_scikit_learn_s_own_warnings_are_not_heard_beside_ours(tmp_path):
    from sklearn.frozen import FrozenEstimator
    from sklearn.naive_bayes import GaussianNB

    from dubito.calibration import CalibratedClassifier

    rows, labels = [[-2.0], [-1.0], [0.5], [3.0]], ["no", "no", "yes", "yes"]
    inner = FrozenEstimator(GaussianNB().fit(rows, labels))
    path = tmp_path / "model.skops"
    save(CalibratedClassifier(inner, PlattCalibrator()).fit(rows, labels), path)

    def age(schema):
        for one in nodes_of(schema, "DictNode"):
            if "_sklearn_version" in one["content"]:
                one["content"]["_sklearn_version"] = value("1.2.3")

    forge(path, schema=age)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)
    forge(path, stamp=lambda raw: raw["versions"].update({"scikit-learn": "1.2.3"}))
    with pytest.warns(InconsistentVersionWarning) as seen:
        load(path)
    assert len(seen) == 1


def test_another_dubito_is_warned_of(path):
    forge(path, stamp=lambda raw: raw.update(dubito="0.0.9"))
    message = (
        rf"saved with dubito 0\.0\.9; this is dubito {dubito.__version__}\. What the model says"
    )
    with pytest.warns(InconsistentVersionWarning, match=message):
        load(path)


def test_parts_that_do_not_fit_are_reported_with_the_saved_version(path):
    def spoil(schema):
        for one in nodes_of(schema, "NdArrayNode"):
            one["file"] = "none.npy"

    forge(path, schema=spoil)
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(path)
    forge(path, stamp=lambda raw: raw.update(dubito="0.0.9"))
    with pytest.raises(ModelFileError, match=r"saved by dubito 0\.0\.9 and cannot.*that version"):
        load(path)


def test_a_missing_package_is_reported(path):
    """The user may trust a type that is not installed."""
    forge(path, schema=put(node("ObjectNode", "no_such_package.models", "Booster")))
    with pytest.raises(ModelFileError, match=r"needs a package that is not installed.*no_such_"):
        load(path, trusted=["no_such_package.models.Booster"])


def test_unknown_fields_of_a_stamp_are_left_alone(path):
    forge(path, stamp=lambda raw: raw.update(mood="good"))
    assert load(path).stamp.rows == 4
