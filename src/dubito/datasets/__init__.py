"""Benchmark datasets with checked counts, and simulators of the papers' distributions.

`load` searches scikit-learn, the folder named by ``DUBITO_DATA``, a cache and OpenML, in this
order, and raises an error if the counts of the copy are not those of the catalogue.

>>> from dubito.datasets import load
>>> iris = load("iris")
>>> iris.X.shape, iris.class_names
((150, 4), [0, 1, 2])
"""

from dubito.datasets._load import load
from dubito.datasets.records import DatasetError, list_datasets
from dubito.datasets.simulators import (
    make_gaussian_pair,
    make_gaussian_trio,
    make_many_classes,
    make_waveform,
)

__all__ = [
    "DatasetError",
    "list_datasets",
    "load",
    "make_gaussian_pair",
    "make_gaussian_trio",
    "make_many_classes",
    "make_waveform",
]
