"""`dubito datasets`: the benchmark datasets, whether each is on disk, and copies as tables."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dubito  # its packages are loaded on first use
from dubito.cli.console import CliError, Console, aligned_lines
from dubito.cli.options import Force, Json, Output, Quiet, Seed  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    import pandas as pd

    from dubito.datasets.records import Dataset

#: Name of the column with the labels in the files written here.
TARGET = "target"


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One of them, to read about or to write.")
    ] = None,
    *,
    output: Output = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A second file: the official test rows, or a random third.",
        ),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """List the benchmark datasets, their sizes, and whether each is on disk; or write one.

    `dubito datasets wine -o wine.csv` writes one as CSV or Parquet: its features by name, and the
    labels in a column "target". Iris and wine come with scikit-learn; others are looked for in the
    folder named by DUBITO_DATA, in the cache, and on OpenML.
    """
    console = Console(quiet=quiet, json=json)
    if name is None:
        if output or test:
            raise CliError(
                "no dataset given. Name the dataset to write, as in: dubito datasets wine -o "
                f"{output or 'wine.csv'}"
            )
        _list_all(console)
    elif output is None:
        if test is not None:
            raise CliError(f"{test} takes the rows to test on; say -o FILE for the others.")
        _describe(dubito.datasets.records.find_dataset(name), console)
    else:
        _write(name, output, test, seed=seed, force=force, console=console)


def _list_all(console: Console) -> None:
    catalogue = dubito.datasets.records.CATALOGUE
    every = [_facts(catalogue[name]) for name in sorted(catalogue)]
    keys = ("name", "rows", "features", "classes", "paper")
    rows = [
        (*(str(facts[key]) for key in keys), "yes" if facts["at_hand"] else "no") for facts in every
    ]
    for line in aligned_lines([(*keys, "on disk"), *rows]):
        console.say(line)
    console.result({"datasets": every})


def _describe(dataset: Dataset, console: Console) -> None:
    facts = _facts(dataset)
    console.say(f"{dataset.name}: {dataset.title}. {dataset.notes}".rstrip())
    console.say(
        f"{dataset.rows:,} rows, {dataset.features} features, {len(dataset.classes)} classes; "
        f"used by {dataset.paper}; {'on disk' if facts['at_hand'] else 'not on disk'}."
    )
    console.say(f"Origin: {dataset.origin}. Licence: {dataset.licence}.")
    console.say(f"Write it as a table: dubito datasets {dataset.name} -o {dataset.name}.csv")
    console.result(facts)


def _write(
    name: str, output: Path, test: Path | None, *, seed: int, force: bool, console: Console
) -> None:
    from contextlib import ExitStack  # noqa: PLC0415

    from dubito.cli.writer import TableWriter, check_outputs  # noqa: PLC0415 - slow to import

    # The error of an unknown name comes before that of an existing file.
    dubito.datasets.records.find_dataset(name)
    files = [output, *([test] if test else [])]
    check_outputs(files, [], force=force)
    writers = {path: TableWriter(path, force=force) for path in files}
    data = dubito.datasets.load(name)
    whole = _table(data)
    parts = (
        [whole]
        if test is None
        else [whole.iloc[rows] for rows in _training_and_test_rows(data, seed)]
    )
    with ExitStack() as stack:
        for writer, part in zip(writers.values(), parts, strict=True):
            stack.enter_context(writer).write(part)
    for path, part in zip(writers, parts, strict=True):
        console.say(
            f"{path}: {len(part):,} rows, {data.X.shape[1]} features, {part[TARGET].nunique()} "
            f"classes in column {TARGET}."
        )
    console.say(f"Next: dubito train {output} --target {TARGET} -o model.skops")
    console.result(
        {
            "files": {str(path): len(part) for path, part in zip(writers, parts, strict=True)},
            "features": data.X.shape[1],
            "classes": data.class_names,
            "target": TARGET,
        }
    )


def _training_and_test_rows(data: Any, seed: int) -> tuple[Any, Any]:
    """Return the numbers of the training and test rows: the official split, or a random one."""
    if data.split is not None:
        return data.split["train"], data.split["test"]
    from sklearn.model_selection import train_test_split  # noqa: PLC0415 - slow to import

    rows = range(len(data.y))
    train, test = train_test_split(rows, test_size=1 / 3, stratify=data.y, random_state=seed)
    return sorted(train), sorted(test)


def _table(data: Any) -> pd.DataFrame:
    """Return a dataset as one table: features, and the labels last."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    frame = pd.DataFrame(data.X, columns=data.feature_names)
    frame[TARGET] = data.y
    return frame


def _facts(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "title": dataset.title,
        "rows": dataset.rows,
        "features": dataset.features,
        "classes": len(dataset.classes),
        "paper": dataset.paper,
        "at_hand": dubito.datasets.records.is_on_disk(dataset),
        "licence": dataset.licence,
        "origin": dataset.origin,
    }
