"""`dubito datasets`: the list, one of them in words, and one as a table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from dubito.datasets import list_datasets, load


def test_datasets_lists_all_with_their_sizes(dubito_command, monkeypatch, tmp_path):
    monkeypatch.setenv("DUBITO_DATA", str(tmp_path))
    monkeypatch.setenv("DUBITO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "dna.csv.gz").write_bytes(b"")
    head, *lines = dubito_command("datasets").stdout.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert head.split() == ["name", "rows", "features", "classes", "paper", "on", "disk"]
    assert list(rows) == list_datasets()
    iris = load("iris")
    assert rows["iris"] == [*map(str, iris.X.shape), str(len(iris.class_names)), "P3", "yes"]
    assert rows["dna"][-1] == "yes"
    assert rows["usps"][-1] == "no"


def test_datasets_looks_in_the_cache_too(dubito_command, monkeypatch, tmp_path):
    monkeypatch.delenv("DUBITO_DATA", raising=False)
    monkeypatch.setenv("DUBITO_CACHE", str(tmp_path))
    (tmp_path / "usps.csv.gz").write_bytes(b"")
    hand = dict(re.findall(r"^(\w+) .* (\w+)$", dubito_command("datasets").stdout, re.MULTILINE))
    assert [name for name, word in hand.items() if word == "yes"] == ["iris", "usps", "wine"]


def test_the_list_as_json(dubito_command):
    listed = json.loads(dubito_command("datasets", "--json").stdout)["datasets"]
    assert [one["name"] for one in listed] == list_datasets()
    wine = next(one for one in listed if one["name"] == "wine")
    assert (wine["rows"], wine["features"], wine["classes"], wine["at_hand"]) == (178, 13, 3, True)


def test_one_of_them_in_words(dubito_command):
    result = dubito_command("datasets", "wine")
    assert result.stdout.startswith("wine: ")
    assert "178 rows, 13 features, 3 classes" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("dubito datasets wine -o wine.csv")
    assert json.loads(dubito_command("datasets", "wine", "--json").stdout)["rows"] == 178


@pytest.mark.parametrize("file", ["iris.csv", "iris.csv.gz", "iris.parquet"])
def test_one_of_them_as_a_table(file, in_folder, dubito_command):
    result = dubito_command("datasets", "iris", "-o", file)
    assert result.stdout.splitlines() == [
        f"{file}: 150 rows, 4 features, 3 classes in column target.",
        f"Next: dubito train {file} --target target -o model.skops",
    ]
    read = pd.read_parquet if file.endswith("parquet") else pd.read_csv
    iris, table = load("iris"), read(in_folder / file)
    assert list(table.columns) == [*iris.feature_names, "target"]
    np.testing.assert_array_equal(table[iris.feature_names], iris.X)
    np.testing.assert_array_equal(table["target"], iris.y)


@pytest.mark.usefixtures("in_folder")
def test_a_part_to_test_on(dubito_command):
    result = dubito_command("datasets", "wine", "-o", "a.csv", "--test", "b.csv", "--json")
    assert json.loads(result.stdout)["files"] == {"a.csv": 118, "b.csv": 60}
    wine, both = load("wine"), pd.concat([pd.read_csv("a.csv"), pd.read_csv("b.csv")])
    whole = pd.DataFrame(wine.X, columns=wine.feature_names).assign(target=wine.y)
    by = list(whole.columns)
    pd.testing.assert_frame_equal(
        both.sort_values(by, ignore_index=True),
        whole.sort_values(by, ignore_index=True),
        check_dtype=False,
    )
    assert set(pd.read_csv("b.csv")["target"]) == {0, 1, 2}
    first = pd.read_csv("b.csv")
    dubito_command("datasets", "wine", "-o", "a.csv", "--test", "b.csv", "--seed", 1, "--force")
    assert not first.equals(pd.read_csv("b.csv"))


@pytest.mark.data
@pytest.mark.usefixtures("in_folder")
def test_the_official_part_to_test_on(dubito_command):
    assert dubito_command("datasets", "satimage", "-o", "a.csv", "--test", "b.csv").exit_code == 0
    data = load("satimage")
    tested = pd.read_csv("b.csv")
    np.testing.assert_array_equal(tested[data.feature_names], data.X[data.split["test"]])
    np.testing.assert_array_equal(tested["target"], data.y[data.split["test"]])


def test_a_file_is_not_overwritten_without_force(in_folder, dubito_command, refused):
    (in_folder / "b.csv").write_text("mine", encoding="utf-8")
    for options in (["-o", "b.csv"], ["-o", "a.csv", "--test", "b.csv"]):
        assert refused("datasets", "wine", *options) == (
            "b.csv exists already. Add --force to overwrite it, or name another file."
        )
    assert [file.name for file in in_folder.iterdir()] == ["b.csv"]
    assert dubito_command("datasets", "wine", "-o", "b.csv", "--force").exit_code == 0
    assert len(pd.read_csv("b.csv")) == 178


@pytest.mark.usefixtures("in_folder")
def test_what_cannot_be_written(refused):
    assert refused("datasets", "wien", "-o", "a.csv").startswith(
        "unknown dataset 'wien'. Did you mean 'wine'?"
    )
    assert "must end in .csv" in refused("datasets", "wine", "-o", "wine.xls")
    assert refused("datasets", "wine", "-o", "no/a.csv").startswith("there is no folder no")
    assert refused("datasets", "-o", "a.csv").startswith(
        "no dataset given. Name the dataset to write, as in: "
    )
    assert refused("datasets", "wine", "--test", "a.csv").startswith("a.csv takes the rows to test")
    assert refused("datasets", "wine", "-o", "a.csv", "--test", "./a.csv").startswith(
        "a.csv is named twice"
    )


def test_a_missing_dataset_names_the_places_searched(dubito_command, monkeypatch, in_folder):
    monkeypatch.setenv("DUBITO_DATA", str(in_folder))
    monkeypatch.setenv("DUBITO_CACHE", str(in_folder))
    result = dubito_command("datasets", "satimage", "-o", "a.csv")  # OpenML has no copy of it
    assert result.exit_code == 2
    assert result.stderr.startswith("error: dataset 'satimage' was not found. Looked in:\n")
    assert "set DUBITO_DATA" in result.stderr
    assert list(in_folder.iterdir()) == []
