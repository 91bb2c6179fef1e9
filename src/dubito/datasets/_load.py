"""`load`: find a copy of a dataset by its name, and check its counts."""

from __future__ import annotations

import csv
from hashlib import sha256
from math import isclose
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.utils import Bunch

from dubito.datasets._sources import LabelledData, fetch_from_openml, parse_csv, write_csv
from dubito.datasets.records import DatasetError, find_dataset, local_files

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import numpy.typing as npt

    from dubito._typing import AnyArray
    from dubito.datasets.records import Dataset

_BUNDLED = {"iris": load_iris, "wine": load_wine}


class _DatasetCopy(NamedTuple):
    """One copy of a dataset, its source and, if it was downloaded, the file to cache it in."""

    data: LabelledData
    source: str
    verified: bool
    groups: npt.NDArray[np.str_] | None = None
    cache_file: Path | None = None


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Return a benchmark dataset by name, from the first of four sources that has it.

    1. scikit-learn, for iris and wine;
    2. the folder named by the environment variable ``DUBITO_DATA`` (files ``<name>.csv.gz``);
    3. the cache: `data_home`, else the folder named by ``DUBITO_CACHE``, else ``dubito`` in the
       user's cache folder (``XDG_CACHE_HOME``, ``LOCALAPPDATA`` or ``~/.cache``);
    4. OpenML, by a fixed dataset number; the copy is then written to the cache.

    The numbers of rows, features, rows per class (also in the official training part) and missing
    values, and the overall mean, must be those of the catalogue.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    data_home : path or None, default=None
        The cache folder; see above for the default.

    Returns
    -------
    Bunch
        With the attributes

        X : float64 array of shape (n, d), C-contiguous
            The features; missing values are nan.
        y : array of shape (n,)
            The labels as in the source: integers when all are, else strings.
        feature_names : list of str
            Column names of this copy.
        class_names : list
            The distinct labels, sorted.
        split : dict or None
            Row numbers of the official ``train`` and ``test`` parts, None when there are none.
        groups : array of shape (n,) or None
            The speaker of each row of vowel, when ``vowel_groups.csv`` is in the folder of its
            file.
        verified : bool
            Whether this is exactly the copy that the published reproductions use: the file has
            the catalogue's SHA-256 checksum, or is scikit-learn's own. A copy with the right
            counts and another checksum is returned too, with False here.
        name, description, licence, origin, source : str
            The name; title and notes; the licence as far as it is known; where the data come
            from; where this copy was found.

    Raises
    ------
    ValueError
        If the name is unknown.
    DatasetError
        If no source has the dataset, the file cannot be read, or a count is wrong.

    See Also
    --------
    list_datasets : The names.
    make_waveform : More of the waveform data.

    Examples
    --------
    >>> from dubito.datasets import load
    >>> wine = load("wine")
    >>> wine.X.shape, wine.class_names, wine.split, wine.verified
    ((178, 13), [0, 1, 2], None, True)
    >>> print(load("iris").description)
    Iris flowers. Labels 0, 1, 2 are setosa, versicolor, virginica. Rows 35 and 38 hold the ...
    """
    dataset = find_dataset(name)
    copy = _bundled(dataset) if dataset.bundled else _find_or_download(dataset, data_home)
    data = copy.data
    _check_counts(data, dataset, copy.source)
    if copy.cache_file is not None:
        _write_to_cache(data, copy.cache_file)
    return Bunch(
        X=data.X,
        y=data.y,
        feature_names=data.feature_names,
        class_names=np.unique(data.y).tolist(),
        split=_official_split(dataset),
        groups=copy.groups,
        verified=copy.verified,
        name=dataset.name,
        description=f"{dataset.title}. {dataset.notes}".strip(),
        licence=dataset.licence,
        origin=dataset.origin,
        source=copy.source,
    )


def _bundled(dataset: Dataset) -> _DatasetCopy:
    raw = _BUNDLED[dataset.name]()
    X = np.ascontiguousarray(raw.data, dtype=np.float64)
    data = LabelledData(list(raw.feature_names), X, raw.target.astype(np.int64))
    return _DatasetCopy(data, "scikit-learn", verified=True)


def _find_or_download(dataset: Dataset, data_home: str | os.PathLike[str] | None) -> _DatasetCopy:
    files = local_files(dataset, data_home)
    for file in files:
        if file.is_file():
            return _from_file(file, dataset)
    searched = [] if len(files) > 1 else ["DUBITO_DATA: not set"]
    searched += [
        f"{file}: no such file" if file.parent.is_dir() else f"{file.parent}: no such folder"
        for file in files
    ]
    return _from_openml(dataset, files[-1], searched)


def _from_file(file: Path, dataset: Dataset) -> _DatasetCopy:
    content = file.read_bytes()
    data = parse_csv(content, dataset.text_values, str(file))
    verified = sha256(content).hexdigest() == dataset.sha256
    return _DatasetCopy(data, str(file), verified, _read_groups(file.parent, dataset))


def _read_groups(folder: Path, dataset: Dataset) -> npt.NDArray[np.str_] | None:
    if dataset.groups_file is None or not (folder / dataset.groups_file).is_file():
        return None
    file = folder / dataset.groups_file
    with file.open(encoding="utf-8", newline="") as lines:
        speakers = [row.get("speaker") for row in csv.DictReader(lines)]
    if len(speakers) != dataset.rows or None in speakers:
        raise DatasetError(
            f"{file} must have a column 'speaker' and {dataset.rows} rows, one for each row of "
            f"{dataset.file_name}; it has {len(speakers)} rows."
        )
    return np.array(speakers, dtype=np.str_)


def _from_openml(dataset: Dataset, cache_file: Path, searched: list[str]) -> _DatasetCopy:
    if dataset.openml is None:
        searched.append("OpenML: no copy there is known to be the same data")
        raise _not_found(dataset, searched)
    try:
        data = fetch_from_openml(dataset.openml)
    except DatasetError as error:
        searched.append(str(error))
        raise _not_found(dataset, searched) from error
    source = f"OpenML dataset {dataset.openml.data_id}"
    return _DatasetCopy(data, source, verified=False, cache_file=cache_file)


def _write_to_cache(data: LabelledData, path: Path) -> None:
    try:
        write_csv(path, data)
    except OSError as error:
        raise DatasetError(
            f"the dataset was fetched but {path} could not be written ({error}). "
            "Name a folder that can be written with data_home or DUBITO_CACHE."
        ) from error


def _not_found(dataset: Dataset, searched: list[str]) -> DatasetError:
    sources = "".join(f"\n  - {source}" for source in searched)
    return DatasetError(
        f"dataset {dataset.name!r} was not found. Looked in:{sources}\n"
        f"Put {dataset.file_name} (header row, features first, last column 'target') in a folder "
        f"and set DUBITO_DATA to it. The data come from {dataset.origin}; "
        f"the checked copy is from {dataset.mirror}."
    )


def _check_counts(data: LabelledData, dataset: Dataset, source: str) -> None:
    """Raise a `DatasetError` naming every count of a copy that differs from the catalogue's."""
    n, d = data.X.shape
    counts: dict[str, object] = {
        "rows": n,
        "features": d,
        "rows per class": _rows_per_class(data.y),
        "missing values": int(np.count_nonzero(~np.isfinite(data.X))),
    }
    expected: dict[str, object] = {
        "rows": dataset.rows,
        "features": dataset.features,
        "rows per class": dict(dataset.classes),
        "missing values": dataset.missing,
    }
    if dataset.train_classes:
        counts["training rows per class"] = _rows_per_class(data.y[: dataset.train_rows])
        expected["training rows per class"] = dict(
            zip(dataset.classes, dataset.train_classes, strict=True)
        )
    wrong = [
        f"{what}: expected {expected[what]}, found {counts[what]}"
        for what in expected
        if counts[what] != expected[what]
    ]
    if not wrong:
        mean = np.nanmean(data.X)
        # The tolerance accepts copies rounded to three decimals, and no rescaled ones.
        if not isclose(mean, dataset.mean, rel_tol=1e-3, abs_tol=1e-3):
            wrong = [f"mean of all values: expected {dataset.mean:.6g}, found {mean:.6g}"]
    if wrong:
        raise DatasetError(
            f"{source} is not the dataset {dataset.name!r}. " + "; ".join(wrong) + ". "
            f"The data come from {dataset.origin}."
        )


def _rows_per_class(y: np.ndarray) -> dict[int | str, int]:
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _official_split(dataset: Dataset) -> dict[str, AnyArray] | None:
    if not dataset.train_classes:
        return None
    rows = np.arange(dataset.rows)
    return {"train": rows[: dataset.train_rows], "test": rows[dataset.train_rows :]}
