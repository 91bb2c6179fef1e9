"""The 23 files themselves, against the numbers noted when they were gathered.

The table below is copied from the README that came with the files, not from the catalogue.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from dubito.datasets import list_datasets, load
from dubito.datasets.records import CATALOGUE

pytestmark = pytest.mark.data

# name: rows, features, rows of each class in sorted order, last training row or None
README = {
    "dna": (3186, 180, [767, 765, 1654], 2000),
    "waveform": (5000, 21, [1692, 1653, 1655], None),
    "satimage": (6435, 36, [1533, 703, 1358, 626, 707, 1508], 4435),
    "segment": (2310, 19, [330] * 7, None),
    "pendigits": (
        10992,
        16,
        [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055],
        7494,
    ),
    "usps": (9298, 256, [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821], 7291),
    "australian": (690, 14, [383, 307], None),
    "diabetes": (768, 8, [500, 268], None),
    "heart": (270, 13, [150, 120], None),
    "ionosphere": (351, 34, [126, 225], None),
    "saheart": (462, 9, [302, 160], None),
    "iris": (150, 4, [50, 50, 50], None),
    "wine": (178, 13, [59, 71, 48], None),
    "forest": (523, 27, [159, 86, 83, 195], 198),
    "seeds": (210, 7, [70, 70, 70], None),
    "dermatology": (366, 34, [112, 61, 72, 49, 52, 20], None),
    "vehicle": (846, 18, [218, 212, 217, 199], None),
    "vowel": (990, 10, [90] * 11, 528),
    "winequality_red": (1599, 11, [10, 53, 681, 638, 199, 18], None),
    "wallrobot": (5456, 24, [2205, 2097, 328, 826], None),
    "optdigits": (5620, 64, [554, 571, 557, 572, 568, 558, 558, 566, 554, 562], 3823),
    "micromass": (571, 1300, (20, 11, 60), None),
    "letter": (20000, 16, (26, 734, 813), 16000),
}

LABELS = {
    "dna": ["ei", "ie", "n"],
    "satimage": [1, 2, 3, 4, 5, 7],
    "heart": ["absent", "present"],
    "ionosphere": ["b", "g"],
    "forest": ["d", "h", "o", "s"],
    "vehicle": ["bus", "opel", "saab", "van"],
    "winequality_red": [3, 4, 5, 6, 7, 8],
    "dermatology": [1, 2, 3, 4, 5, 6],
    "usps": list(range(10)),
}


def file_of(name):
    return Path(os.environ["DUBITO_DATA"]) / f"{name}.csv.gz"


def test_the_readme_covers_the_list():
    assert sorted(README) == list_datasets()


@pytest.mark.parametrize("name", list_datasets())
def test_dataset_is_as_noted(name):
    rows, features, counts, last_training_row = README[name]
    data = load(name)
    assert data.X.shape == (rows, features)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.shape == (rows,)
    assert len(data.feature_names) == features
    assert data.verified is True
    labels, found = np.unique(data.y, return_counts=True)
    assert data.class_names == labels.tolist() == LABELS.get(name, labels.tolist())
    if isinstance(counts, tuple):
        assert (len(found), found.min(), found.max()) == counts
    else:
        assert found.tolist() == counts
    if last_training_row is None:
        assert data.split is None
    else:
        np.testing.assert_array_equal(data.split["train"], np.arange(last_training_row))
        np.testing.assert_array_equal(data.split["test"], np.arange(last_training_row, rows))


@pytest.mark.parametrize("name", list_datasets())
def test_checksum_is_the_folders(name):
    # iris and wine come from scikit-learn, so `load` itself never reads their files.
    assert sha256(file_of(name).read_bytes()).hexdigest() == CATALOGUE[name].sha256


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_scikit_learn_ships_the_checksummed_values(name):
    table = np.loadtxt(file_of(name), delimiter=",", skiprows=1)
    data = load(name)
    np.testing.assert_array_equal(data.X, table[:, :-1])
    np.testing.assert_array_equal(data.y, table[:, -1])


def test_dermatology_misses_eight_ages():
    data = load("dermatology")
    rows, columns = np.nonzero(np.isnan(data.X))
    assert len(rows) == len(set(rows)) == 8
    assert {data.feature_names[column].lower() for column in columns} == {"age"}


def test_saheart_family_history_is_binary():
    data = load("saheart")
    famhist = data.X[:, data.feature_names.index("famhist")]
    # The first patient of the source has a family history.
    assert famhist[0] == 1.0
    assert np.unique(famhist).tolist() == [0.0, 1.0]


def test_vowel_speakers_do_not_straddle_the_split():
    data = load("vowel")
    train, test = (set(data.groups[rows]) for rows in (data.split["train"], data.split["test"]))
    assert len(train) == 8
    assert len(test) == 7
    assert not train & test


@pytest.mark.parametrize(
    ("name", "column"), [("segment", "region_pixel_count"), ("ionosphere", "a02")]
)
def test_constant_columns_are_those_of_the_readme(name, column):
    data = load(name)
    assert np.ptp(data.X[:, data.feature_names.index(column)]) == 0


def test_usps_lies_between_minus_one_and_one():
    X = load("usps").X
    assert (X.min(), X.max()) == (-1.0, 1.0)


def test_waveform_file_has_the_simulators_class_numbers():
    """Class means of the file against the theory of `make_waveform`, in standard errors."""
    data = load("waveform")
    place = np.arange(1, 22)
    for label, peaks in enumerate([(7, 15), (7, 11), (11, 15)]):
        a, b = (np.maximum(6 - np.abs(place - peak), 0) for peak in peaks)
        rows = data.X[data.y == label]
        error = np.sqrt(((a - b) ** 2 / 12 + 1) / len(rows))
        assert (np.abs(rows.mean(axis=0) - (a + b) / 2) < 5 * error).all()
