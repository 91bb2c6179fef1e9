"""The columns of scores and their classes: matched by name or by options, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dubito._wording import counted, name_ends
from dubito.cli.console import CliError
from dubito.cli.labels import class_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito.cli.tables import Table


@dataclass(frozen=True)
class ScoreColumns:
    """The score columns in the order of the classes; a single column is about ``classes[1]``.

    Parameters
    ----------
    columns : list of str
        Score columns.
    classes : list
        Classes.
    left_out : list of str
        Columns of numbers that are not used.
    """

    columns: list[str]
    classes: list[Any]
    left_out: list[str]


@dataclass(frozen=True)
class ColumnOptions:
    """The options about columns and classes.

    Parameters
    ----------
    columns : str or None
        ``--columns``.
    classes : list of str or None
        ``--classes``.
    positive : str or None
        ``--positive``.
    """

    columns: str | None = None
    classes: list[str] | None = None
    positive: str | None = None


def match_columns(
    table: Table, label: str, labels: Sequence[Any], options: ColumnOptions
) -> ScoreColumns:
    """Return the score column of each class.

    Parameters
    ----------
    table : Table
        The file.
    label : str
        Its column of labels.
    labels : sequence
        The distinct labels, sorted.
    options : ColumnOptions
        The options about columns and classes.

    Returns
    -------
    ScoreColumns
    """
    numbers, candidates = _candidate_columns(table, label, options)
    if options.classes is not None:
        columns, classes = candidates, _given_classes(candidates, labels, options.classes)
    elif len(candidates) == 1:
        columns = candidates
        classes = _two_classes(labels, f"one column of scores ({columns[0]}) is enough for")
    else:
        columns = _columns_by_name(candidates, labels, chosen=options.columns is not None)
        classes = list(labels)
    if len(columns) == 1:
        classes = _positive_last(columns[0], classes, options)
    elif options.positive is not None:
        raise CliError(
            "--positive says what one column of scores is about, but there is a column for each "
            f"class ({name_ends(columns)}). Leave it out."
        )
    return ScoreColumns(columns, classes, [name for name in numbers if name not in columns])


def match_classifiers(
    table: Table, label: str, labels: Sequence[Any], options: ColumnOptions
) -> ScoreColumns:
    """Return every column as the scores of one classifier of the same two classes.

    Parameters
    ----------
    table, label, labels, options
        As for `match_columns`.

    Returns
    -------
    ScoreColumns
    """
    numbers, columns = _candidate_columns(table, label, options)
    classes = _two_classes(
        labels, "--method evidential-joint takes scores of several classifiers of"
    )
    return ScoreColumns(
        columns,
        _positive_last(None, classes, options),
        [name for name in numbers if name not in columns],
    )


def _given_classes(columns: list[str], labels: Sequence[Any], names: list[str]) -> list[Any]:
    """Return the classes named with --classes, converted to the type of the labels."""
    one_column = len(columns) == 1 and len(names) == 2
    if len(columns) != len(names) and not one_column:
        raise CliError(
            f"--classes names {counted(len(names), 'class')} ({name_ends(names)}) for "
            f"{counted(len(columns), 'column')} of scores ({name_ends(columns)}). Name one class "
            "for each column, and choose the columns with --columns."
        )
    positions = class_positions(labels, names)
    lacking = [label for label, position in zip(labels, positions, strict=True) if position is None]
    if lacking:
        raise CliError(
            f"--classes lacks {name_ends(lacking)}, which occurs among the labels. It names "
            f"{name_ends(names)}."
        )
    label_at = dict(zip(positions, labels, strict=True))
    label_type = type(labels[0])
    try:
        return [label_at[i] if i in label_at else label_type(name) for i, name in enumerate(names)]
    except ValueError as error:
        raise CliError(
            f"--classes must name labels such as {name_ends(labels)}: whole numbers. It names "
            f"{name_ends(names)}."
        ) from error


def _candidate_columns(
    table: Table, label: str, options: ColumnOptions
) -> tuple[list[str], list[str]]:
    """Return the columns of numbers besides the label, and those chosen with --columns."""
    numbers = [name for name in table.number_columns() if name != label]
    if options.columns is None:
        chosen = numbers
    else:
        chosen = [name for name in table.select(options.columns) if name != label]
    if not chosen:
        raise CliError(f"{table.path} has no column of numbers besides {label!r}: no scores.")
    return numbers, chosen


def _two_classes(labels: Sequence[Any], what: str) -> list[Any]:
    if len(labels) == 1:
        raise CliError(
            f"all rows have the label {labels[0]}: there is nothing to learn from. If the other "
            "class is only rare here, say --classes A,B."
        )
    if len(labels) > 2:
        raise CliError(f"{what} two classes, but the labels are {name_ends(labels)}.")
    return list(labels)


def _positive_last(column: str | None, classes: list[Any], options: ColumnOptions) -> list[Any]:
    """Return both classes, the one that higher scores stand for second."""
    if options.positive is None:
        first, second = (str(name) for name in classes)
        if column and options.classes is None and first in column and second not in column:
            raise CliError(
                f"do higher scores in {column!r} mean {first!r}? Say --positive {first}, or "
                f"--positive {second}."
            )
        return classes
    [position] = class_positions([options.positive], classes)
    if position is None:
        raise CliError(
            f"--positive {options.positive} is not among the labels {name_ends(classes)}."
        )
    return classes if position == 1 else classes[::-1]


def _columns_by_name(columns: list[str], labels: Sequence[Any], *, chosen: bool) -> list[str]:
    """Return the column named after each label, as in cat, p_cat or cat_score.

    Other columns with the same prefix and suffix are an error; if the columns were `chosen` with
    --columns, any other column is.
    """
    if len(labels) == 1:
        raise CliError(f"all rows have the label {labels[0]}: there is nothing to learn from.")
    texts = [str(name) for name in labels]
    affixes = _affixes(columns, texts)
    if not affixes:
        raise _no_match_error(columns, labels)
    if len(affixes) > 1:
        ways = " or ".join(f"{before}{texts[0]}{after}, …" for before, after in affixes)
        raise CliError(
            f"several sets of columns are named after the classes: {ways}. Choose with --columns."
        )
    before, after = affixes[0]
    matched = [before + text + after for text in texts]
    spare = [name for name in columns if name not in matched]
    alike = [
        name
        for name in spare
        if (before or after) and name.startswith(before) and name.endswith(after)
    ]
    unmatched = spare if chosen else alike
    if unmatched:
        rest = [name for name in columns if name in matched or name in unmatched]
        raise CliError(
            f"no row has the label of {counted(len(unmatched), 'column')} "
            f"({name_ends(unmatched)}). Where these are scores of classes, name the classes of all "
            f"columns ({name_ends(rest)}) with --classes; else choose the columns with --columns."
        )
    return matched


def _affixes(columns: list[str], texts: list[str]) -> list[tuple[str, str]]:
    """Return each (prefix, suffix) with which every label is the name of a column.

    Only ("", "") is returned if the labels themselves are names of columns.
    """
    known = set(columns)
    if known.issuperset(texts):
        return [("", "")]
    affixes = []
    for name in columns:
        start = name.find(texts[0])
        while start >= 0:
            before, after = name[:start], name[start + len(texts[0]) :]
            if all(before + text + after in known for text in texts):
                affixes.append((before, after))
            start = name.find(texts[0], start + 1)
    return affixes


def _no_match_error(columns: list[str], labels: Sequence[Any]) -> CliError:
    named = [label for label in labels if str(label) in columns]
    if len(named) > 1:
        lacking = [label for label in labels if label not in named]
        return CliError(
            f"no column of numbers is named after the label {name_ends(lacking)}, as there are for "
            f"{name_ends(named)}. Correct the labels, or give each its column of scores."
        )
    if len(labels) == 2:
        return CliError(
            f"which columns hold the scores? Of two classes ({name_ends(labels)}) there may be one "
            f"column, or one named after each. The columns of numbers are {name_ends(columns)}: "
            "choose with --columns. Scores of several classifiers: --method evidential-joint."
        )
    return CliError(
        f"the columns {name_ends(columns)} are not named after the labels {name_ends(labels)}. Say "
        "which class each column is about with --classes, in the order of the columns, and choose "
        "columns with --columns."
    )
