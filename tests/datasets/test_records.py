"""The catalogue agrees with itself, with `list_datasets` and with the user page."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from dubito.datasets import list_datasets
from dubito.datasets.records import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "datasets.md"


@pytest.mark.parametrize("name", CATALOGUE)
def test_entry_agrees_with_itself(name):
    dataset = CATALOGUE[name]
    assert dataset.name == name
    assert re.fullmatch("[0-9a-f]{64}", dataset.sha256)
    assert list(dataset.classes) == sorted(dataset.classes)
    assert len({type(label) for label in dataset.classes}) == 1
    if dataset.train_classes:
        whole = dataset.classes.values()
        assert all(
            0 < part < count for part, count in zip(dataset.train_classes, whole, strict=True)
        )
    if dataset.openml is not None and dataset.openml.labels:
        assert {str(label) for label in dataset.classes} == set(dataset.openml.labels.values())
        # A wrong translation of labels must change the counts.
        assert len(set(dataset.classes.values())) == len(dataset.classes)
    if dataset.openml is not None and dataset.openml.columns:
        assert len(dataset.openml.columns) == dataset.features


def test_no_two_entries_share_a_file_or_a_number():
    checksums = {dataset.sha256 for dataset in CATALOGUE.values()}
    numbers = [dataset.openml.data_id for dataset in CATALOGUE.values() if dataset.openml]
    assert len(checksums) == len(CATALOGUE)
    assert len(set(numbers)) == len(numbers)


def test_list_is_sorted_and_whole():
    assert list_datasets() == sorted(CATALOGUE)
    assert len(list_datasets()) == 23


def test_every_dataset_belongs_to_one_paper():
    parts = [list_datasets(paper=f"P{i}") for i in range(5)]
    assert sorted(chain(*parts)) == list_datasets()
    assert parts[2] == ["saheart"]
    assert parts[4] == ["letter", "micromass", "optdigits"]


def test_unknown_paper():
    with pytest.raises(ValueError, match=r"one of P0, P1, P2, P3, P4\. Got 'P9'"):
        list_datasets(paper="P9")


def page_rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| name |"))
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_page_lists_every_dataset_with_its_numbers():
    assert [row[0] for row in page_rows()] == [f"`{name}`" for name in list_datasets()]


@pytest.mark.parametrize("row", list(page_rows()), ids=lambda row: row[0])
def test_page_row_agrees_with_catalogue(row):
    name, rows, features, classes, train, paper, openml, licence, notes = row
    dataset = CATALOGUE[name.strip("`")]
    assert (int(rows), int(features), int(classes)) == (
        dataset.rows,
        dataset.features,
        len(dataset.classes),
    )
    assert train == (str(dataset.train_rows) if dataset.train_rows else "-")
    assert paper == dataset.paper
    assert openml == (str(dataset.openml.data_id) if dataset.openml else "-")
    assert licence == dataset.licence
    assert notes == f"{dataset.title}. {dataset.notes}".strip()
