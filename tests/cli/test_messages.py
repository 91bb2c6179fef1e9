"""The page of messages: every command on it is run, and refused with the words it shows."""

import pickle
import re
import shlex
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

from dubito import save

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "messages.md"
ROW = re.compile(r"^\| (.+?) \| `(dubito .+?)` \| (.+) \|$", re.MULTILINE)


@pytest.fixture
def troubled_files(in_folder, dubito_command, make_scores):
    """The tables of the page, with what is wrong in each, and its models."""
    good = make_scores(60)
    tables = {
        "scores": good,
        "no_dog": good.drop(columns="dog"),
        "nan": good.assign(cow=good["cow"].where(good.index != 17)),
        "words": good.assign(cow=good["cow"].astype(object).where(good.index != 17, "abc")),
        "unknown": good.assign(y=good["y"].where(good.index != 3, "horse")),
        "no_labels": good.drop(columns="y"),
        "one_class": good.assign(y="cat"),
        "no_rows": good.iloc[:0],
    }
    for name, table in tables.items():
        table.to_csv(in_folder / f"{name}.csv", index=False)
    (in_folder / "empty.csv").write_bytes(b"")
    (in_folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (in_folder / "pickle.skops").write_bytes(pickle.dumps({"a": 1}))
    (in_folder / "folder").mkdir()
    made = dubito_command("calibrate", "scores.csv", "--label", "y", "--cv", 0, "-o", "model.skops")
    assert made.exit_code == 0, made.output
    save(LogisticRegression().fit(good.drop(columns="y"), good["y"]), "plain.skops")
    whole = (in_folder / "model.skops").read_bytes()
    (in_folder / "damaged.skops").write_bytes(whole[: len(whole) // 2])
    return in_folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_every_message_on_the_page_is_printed(troubled_files, refused):
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    before = contents(troubled_files)
    for _, command, shown in rows:
        assert refused(*shlex.split(command)[1:]) == shown, command
    assert contents(troubled_files) == before
    assert {shlex.split(command)[1] for _, command, _ in rows} == {
        *("calibrate", "predict", "evaluate", "report", "explain", "train", "datasets")
    }
