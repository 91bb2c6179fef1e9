"""Save and load models."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import UTC, datetime
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dubito
from dubito._checks import check_choice
from dubito.saving._archive import (
    STAMP,
    checksum,
    pack,
    read_zip,
    refuse_bombs,
    unpack,
)
from dubito.saving._errors import ModelFileError
from dubito.saving._facts import (
    check_rows,
    check_text,
    current_versions,
    describe_columns,
    is_described_by,
    plain_classes,
    plain_options,
)
from dubito.saving._parts import limit_jobs, parts_of, refuse_odd_parts
from dubito.saving._schema import read_uses
from dubito.saving._skops import skops_io
from dubito.saving._stamp import FORMAT, KINDS, Stamp, covered, from_raw, parse, to_json
from dubito.saving._trees import CHECKED, trees_are_in_order
from dubito.saving._trust import allowed_names, full_names, refusal
from dubito.saving._writing import refuse_overwriting, write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType

    from dubito.saving._schema import Use

    AnyPath = str | os.PathLike[str]


class Saved(NamedTuple):
    """A model from a file, and what the file says about it."""

    model: Any
    stamp: Stamp


class _File(NamedTuple):
    """A model file whose checksum is right: all its bytes, its members, and its stamp."""

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
    """Save a fitted model with a stamp that says what it is.

    The file is a skops file (a zip of arrays and a schema, no pickle) with the stamp as one more
    member, so that `skops.io.load` can read it too. It is written whole or not at all.

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
    io = skops_io()
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
    stamp = replace(stamp, sha256=checksum(members, covered(loads(to_json(stamp)))))
    write_whole(path, pack({**members, STAMP: to_json(stamp)}), force=force)
    return stamp


def load(path: AnyPath, *, trusted: Iterable[str | type] = ()) -> Saved:
    """Load a model that `save` wrote, if it is made of trusted types alone.

    No object is made before every type that the file names has been looked at, and none is handed
    out before what it holds has been. Trusted are arrays, plain values, common estimators of
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
    io = skops_io()
    names = full_names(trusted)
    file = _read(path)
    uses = read_uses(file.members, str(path))
    _refuse_repetition(file, uses, str(path))
    model = _constructed(io, file, uses, names, str(path))
    _warn_of_other_versions(file.stamp, str(path))
    return Saved(model, file.stamp)


def read_stamp(path: AnyPath) -> Stamp:
    """Read what a file says about its model, without loading the model.

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
    return _read(path).stamp


def _read(path: AnyPath) -> _File:
    content = read_zip(Path(path))
    members = unpack(content, str(path))
    if STAMP not in members:
        raise ModelFileError(
            f"{path} is a skops file, but dubito did not write it: it has no stamp. If you know "
            "who made it, load it with skops.io.load and save the model with dubito.saving.save."
        )
    raw = parse(members.pop(STAMP), str(path))
    if checksum(members, covered(raw)) != raw.get("sha256"):
        raise ModelFileError(
            f"{path} is damaged: its checksum is not that of its content. Get or make it again."
        )
    return _File(content, members, from_raw(raw, str(path)))


def _dumped(io: ModuleType, model: Any) -> bytes:
    """Return the model as skops writes it, if it could be read again."""
    name = type(model).__name__
    try:
        content = io.dumps(model)
        untrusted = io.get_untrusted_types(data=content)
    except Exception as error:
        raise ModelFileError(f"{name} cannot be saved: {error}") from error
    nameless = [named for named in untrusted if "<" in named]  # lambdas, and what functions define
    if nameless:
        raise ModelFileError(
            f"{name} cannot be saved: it holds {nameless[0]}, which no other process can find by "
            "its name. Define it in a module."
        )
    return content


def _constructed(
    io: ModuleType, file: _File, uses: Sequence[Use], trusted: Sequence[str], path: str
) -> Any:
    """Return the model, after all types it names have been found to be trusted."""
    from sklearn.exceptions import InconsistentVersionWarning  # noqa: PLC0415

    trees = {use.number for use in uses if use.name in CHECKED and use.name not in trusted}
    try:
        untrusted = io.get_untrusted_types(data=file.content)
        allowed = allowed_names(untrusted, uses, trusted, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # one of our own follows
            model = io.loads(file.content, trusted=allowed)
            refuse_odd_parts(model, trusted, path)
            in_order = not trees or trees_are_in_order(parts_of(model), len(trees))
            described = is_described_by(model, file.stamp)
            limit_jobs(model)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(_failure(error, file.stamp, path)) from error
    if not in_order:
        raise ModelFileError(refusal(sorted({use.name for use in uses} & CHECKED.keys()), path))
    if not described:
        raise ModelFileError(
            f"{path} was not loaded: its stamp tells of other classes or columns than its model "
            "has. Somebody changed it; get or make it again."
        )
    return model


def _refuse_repetition(file: _File, uses: Sequence[Use], path: str) -> None:
    """Refuse a file whose members are read so often that they fill the memory."""
    reads = {use.number: len(file.members.get(use.file, "")) for use in uses if use.file}
    refuse_bombs(sum(reads.values()), len(file.content), path)


def _failure(error: Exception, stamp: Stamp, path: str) -> str:
    """Say why a file that names nothing bad cannot be loaded all the same."""
    told = "".join(letter if letter.isprintable() else " " for letter in str(error))[:300]
    what = f"({type(error).__name__}: {told})"
    if isinstance(error, ImportError):
        return f"{path} cannot be loaded: it needs a package that is not installed {what}."
    if stamp.dubito != dubito.__version__:
        return (
            f"{path} was saved by dubito {stamp.dubito} and cannot be loaded by dubito "
            f"{dubito.__version__} {what}. Load it with that version, or fit the model again."
        )
    return f"{path} cannot be loaded: its parts do not fit together {what}. Fit the model again."


def _warn_of_other_versions(stamp: Stamp, path: str) -> None:
    from dubito.saving._versions import version_warning  # noqa: PLC0415 - loads scikit-learn

    warning = version_warning(stamp, path)
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
