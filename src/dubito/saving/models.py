"""Save and load models."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dubito
from dubito._files import refuse_overwriting, write_whole
from dubito._validation import check_choice
from dubito.saving.archive import (
    STAMP,
    ModelFileError,
    checksum,
    pack_members,
    read_type_references,
    read_zip,
    refuse_zip_bombs,
    unpack,
)
from dubito.saving.indices import trees_are_valid
from dubito.saving.parts import limit_jobs, objects_in, refuse_odd_parts
from dubito.saving.stamp import (
    FORMAT,
    KINDS,
    Stamp,
    check_rows,
    check_text,
    checksummed_bytes,
    describe_columns,
    from_raw,
    is_described_by,
    parse,
    plain_classes,
    plain_options,
    to_json,
)
from dubito.saving.trust import CHECKED, allowed_names, full_names, refusal

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from dubito.saving.archive import TypeReference

    AnyPath = str | os.PathLike[str]


#: Modules of scikit-learn that import other array libraries. They define no estimators.
_ARRAY_LIBRARIES = tuple(
    f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")
)


class Saved(NamedTuple):
    """A loaded model and the stamp of its file."""

    model: Any
    stamp: Stamp


class _ModelFile(NamedTuple):
    """A model file with a valid checksum: its bytes, its members and its stamp."""

    content: bytes
    members: dict[str, bytes]
    stamp: Stamp


def save(  # noqa: PLR0913
    model: Any,
    path: AnyPath,
    *,
    columns: Iterable[str] | Mapping[str, str] | None = None,
    kind: str = "features",
    label: str | None = None,
    method: str | None = None,
    rows: int | None = None,
    options: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Stamp:
    """Write a fitted model to a file and return its stamp.

    The file is a skops file (a zip of arrays and a schema, no pickle) with the stamp as one more
    member, so that `skops.io.load` can read it too. An interrupted write leaves no partial file.

    Parameters
    ----------
    model : estimator
        A fitted classifier or calibrator: it needs ``classes_`` of text, numbers or booleans.
    path : path
        Where to write, as in ``"model.skops"``.
    columns : list of str, or dict of str to {"number", "text"}, optional
        The columns the model takes, in its order; of a list all hold numbers. Default: the names
        the model was fitted with (``feature_names_in_``), if any.
    kind : {"features", "scores"}, default "features"
        "features": a classifier fitted on a table. "scores": a calibrator fitted on score columns,
        one per class; or a single one, where higher means the second class.
    label : str, optional
        Name of the column that held the labels.
    method : str, optional
        What the model is called, as in "evidential-multinomial".
    rows : int, optional
        How many rows it was fitted on.
    options : dict, optional
        Anything else worth keeping, as plain JSON values.
    force : bool, default False
        Whether to replace a file that is there already.

    Returns
    -------
    Stamp
        What was written about the model.

    Raises
    ------
    FileExistsError
        If there is such a file, and `force` is False.
    ModelFileError
        If the model is not fitted, or holds what skops cannot save.
    OSError
        If the file cannot be written; nothing is left of it then, and an old one stays as it was.

    See Also
    --------
    load : Bring the model back.
    read_stamp : Read the stamp alone.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> from dubito.saving import load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseGaussianDiscriminant().fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     stamp = save(model, Path(folder) / "iris.skops", method="imprecise", rows=len(y))
    ...     again, _ = load(Path(folder) / "iris.skops")
    >>> stamp.classes, stamp.rows
    ([0, 1, 2], 150)
    >>> bool((again.predict_set(X) == model.predict_set(X)).all())
    True
    """
    from dubito.saving.versions import current_versions  # noqa: PLC0415 - imports scikit-learn

    io = _skops_io()
    path = Path(path)
    refuse_overwriting(path, force=force)
    names, types = describe_columns(model, columns)
    stamp = Stamp(
        format=FORMAT,
        dubito=dubito.__version__,
        versions=current_versions(),
        saved=datetime.now(UTC).isoformat(timespec="seconds"),
        kind=check_choice(kind, "kind", KINDS),
        columns=names,
        column_types=types,
        label=check_text(label, "label"),
        classes=plain_classes(model),
        method=check_text(method, "method"),
        rows=check_rows(rows),
        options=plain_options(options),
        sha256="",
    )
    members = unpack(_dumped(io, model), str(path))
    stamp = replace(stamp, sha256=checksum(members, checksummed_bytes(loads(to_json(stamp)))))
    write_whole(path, pack_members({**members, STAMP: to_json(stamp)}), force=force)
    return stamp


def load(path: AnyPath, *, trusted: Iterable[str | type] = ()) -> Saved:
    """Return a model that `save` wrote, if the file contains trusted types only, and its stamp.

    No object is created before every type named in the file has been checked, and none is returned
    before its attributes have been. Trusted are arrays, plain values, common estimators of
    scikit-learn, the classes of dubito's models, and what is named in `trusted`; no functions.

    Parameters
    ----------
    path : path
        The file.
    trusted : list of str or type, default ()
        Further types and functions to trust, by their full names, as in
        ``["xgboost.sklearn.XGBClassifier"]``. Name only those of files whose makers you know.

    Returns
    -------
    Saved
        ``model`` and ``stamp``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, was not written by `save`, comes from a newer dubito, or names types
        that are not trusted; the message says which, and what to do.

    Warns
    -----
    sklearn.exceptions.InconsistentVersionWarning
        If the file was saved with another version of scikit-learn or dubito.

    See Also
    --------
    save : Write such a file.

    Examples
    --------
    See `save`.
    """
    io = _skops_io()
    names = full_names(trusted)
    file = _read_model_file(path)
    references = read_type_references(file.members, str(path))
    _refuse_repetition(file, references, str(path))
    model = _constructed(io, file, references, names, str(path))
    _warn_of_other_versions(file.stamp, str(path))
    return Saved(model, file.stamp)


def read_stamp(path: AnyPath) -> Stamp:
    """Return the stamp of a model file, without loading the model.

    Parameters
    ----------
    path : path
        A file written by `save`.

    Returns
    -------
    Stamp

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, was not written by `save`, or comes from a newer dubito.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from dubito.calibration import PlattCalibrator
    >>> from dubito.saving import read_stamp, save
    >>> model = PlattCalibrator().fit([-2.0, -1.0, 0.5, 3.0], ["no", "no", "yes", "yes"])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "platt.skops"
    ...     _ = save(model, path, kind="scores", columns=["score"], label="repaid")
    ...     stamp = read_stamp(path)
    >>> stamp.kind, stamp.columns, stamp.label, stamp.classes
    ('scores', ('score',), 'repaid', ['no', 'yes'])
    """
    return _read_model_file(path).stamp


def _read_model_file(path: AnyPath) -> _ModelFile:
    content = read_zip(Path(path))
    members = unpack(content, str(path))
    if STAMP not in members:
        raise ModelFileError(
            f"{path} is a skops file, but dubito did not write it: it has no stamp. If you know "
            "who made it, load it with skops.io.load and save the model with dubito.saving.save."
        )
    raw = parse(members.pop(STAMP), str(path))
    if checksum(members, checksummed_bytes(raw)) != raw.get("sha256"):
        raise ModelFileError(
            f"{path} is damaged: its checksum is not that of its content. Get or make it again."
        )
    return _ModelFile(content, members, from_raw(raw, str(path)))


def _dumped(io: ModuleType, model: Any) -> bytes:
    """Return the bytes that skops writes for a model; raise an error if it could not read them."""
    name = type(model).__name__
    _refuse_frames(model, name)
    try:
        content = io.dumps(model)
        untrusted = io.get_untrusted_types(data=content)
    except Exception as error:
        raise ModelFileError(f"{name} cannot be saved: {error}") from error
    nameless = [
        named for named in untrusted if "<" in named
    ]  # lambdas, and local classes and functions
    if nameless:
        raise ModelFileError(
            f"{name} cannot be saved: it holds {nameless[0]}, which no other process can find by "
            "its name. Define it in a module."
        )
    return content


def _refuse_frames(model: Any, name: str) -> None:
    """Raise an error for a model that holds a data frame: it could not be loaded."""
    for part in objects_in(model):
        if type(part).__name__ in {"DataFrame", "LazyFrame", "Series"}:
            parameter = next((key for key, value in vars(model).items() if value is part), "a part")
            raise ModelFileError(
                f"{name} cannot be saved: {parameter} is a {type(part).__name__}, which a model "
                "file cannot hold. Pass an array, as in frame.to_numpy(), with rows and columns in "
                "the order of classes_, and fit again."
            )


def _constructed(
    io: ModuleType,
    file: _ModelFile,
    references: Sequence[TypeReference],
    trusted: Sequence[str],
    path: str,
) -> Any:
    """Return the model, after checking that all types named in the file are trusted."""
    from sklearn.exceptions import InconsistentVersionWarning  # noqa: PLC0415

    trees = {
        reference.number
        for reference in references
        if reference.name in CHECKED and reference.name not in trusted
    }
    try:
        untrusted = io.get_untrusted_types(data=file.content)
        allowed = allowed_names(untrusted, references, trusted, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # `version_warning` follows
            model = io.loads(file.content, trusted=allowed)
            refuse_odd_parts(model, trusted, path)
            valid_trees = not trees or trees_are_valid(objects_in(model), len(trees))
            described = is_described_by(model, file.stamp)
            limit_jobs(model)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(_load_failure(error, file.stamp, path)) from error
    if not valid_trees:
        raise ModelFileError(
            refusal(sorted({reference.name for reference in references} & CHECKED.keys()), path)
        )
    if not described:
        raise ModelFileError(
            f"{path} was not loaded: its stamp lists other classes or columns than its model "
            "has. Somebody changed it; get or make it again."
        )
    return model


def _refuse_repetition(file: _ModelFile, references: Sequence[TypeReference], path: str) -> None:
    """Raise an error for a file that reads its members so often that they would fill the memory."""
    reads = {
        reference.number: len(file.members.get(reference.file, ""))
        for reference in references
        if reference.file
    }
    refuse_zip_bombs(sum(reads.values()), len(file.content), path)


def _load_failure(error: Exception, stamp: Stamp, path: str) -> str:
    """Return the message for a file of trusted types that cannot be loaded."""
    reason = "".join(letter if letter.isprintable() else " " for letter in str(error))[:300]
    what = f"({type(error).__name__}: {reason})"
    if isinstance(error, ImportError):
        return f"{path} cannot be loaded: it needs a package that is not installed {what}."
    if stamp.dubito != dubito.__version__:
        return (
            f"{path} was saved by dubito {stamp.dubito} and cannot be loaded by dubito "
            f"{dubito.__version__} {what}. Load it with that version, or fit the model again."
        )
    return f"{path} cannot be loaded: its parts do not fit together {what}. Fit the model again."


def _warn_of_other_versions(stamp: Stamp, path: str) -> None:
    from dubito.saving.versions import version_warning  # noqa: PLC0415 - imports scikit-learn

    warning = version_warning(stamp, path)
    if warning is not None:
        warnings.warn(warning, stacklevel=3)


def _skops_io() -> ModuleType:
    """Return the module ``skops.io``, or raise an error that says how to install it."""
    try:
        with _without_array_libraries():
            import skops.io  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ImportError(
            'model files need skops: pip install ".[cli]" in a checkout of dubito'
        ) from error
    return skops.io


@contextmanager
def _without_array_libraries() -> Iterator[None]:
    """Keep skops from importing torch and dask, which takes seconds, where they are installed.

    skops finds scikit-learn's estimators by importing all its modules, and skips those that cannot
    be imported.
    """
    hidden = [name for name in _ARRAY_LIBRARIES if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
