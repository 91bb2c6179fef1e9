"""The command as tests call it, and small tables and models to call it with."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from dubito import save
from dubito.cli import build_app


@pytest.fixture
def dubito_command():
    """Call the command line in this process: `dubito_command("datasets").stdout`."""
    app = build_app()
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def refused(dubito_command):
    """Call it, expect exit code 2 and nothing on stdout, and return the message."""

    def call(*arguments):
        result = dubito_command(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1, "one line, no traceback"
        return result.stderr.removeprefix("error: ").rstrip("\n")

    return call


@pytest.fixture
def start_dubito():
    """Start the command line as a process of its own; use it in a `with` block."""

    def start(*arguments, **options):
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "dubito.cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
            **options,
        )

    return start


def scores_of(n, names=("cat", "cow", "dog"), seed=0, **columns):
    """Margins of classes named in the columns, and labels `y`."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % len(names))
    scores = 2 * rng.normal(size=(n, len(names)))
    scores[np.arange(n), codes] += 4
    frame = pd.DataFrame(scores, columns=list(names))
    return frame.assign(y=np.asarray(names)[codes], **columns)


@pytest.fixture
def make_scores():
    """Make a table of scores and labels."""
    return scores_of


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Work in an empty folder, so that messages name files as typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scores(in_folder):
    """300 rows of scores of three animals in scores.csv, and the table."""
    frame = scores_of(300)
    frame.to_csv(in_folder / "scores.csv", index=False)
    return frame


def save_plain(path):
    """Save a classifier without bounds, of the three score columns."""
    frame = scores_of(300)
    model = LogisticRegression().fit(frame.drop(columns="y"), frame["y"])
    save(model, path, label="y")


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory):
    """Model files by name: with bounds, and without."""
    folder = tmp_path_factory.mktemp("models")
    scores_of(300).to_csv(folder / "scores.csv", index=False)
    app, models = build_app(), {}
    for method in ("evidential-multinomial", "platt"):
        models[method] = folder / f"{method}.skops"
        arguments = ["calibrate", folder / "scores.csv", "-y", "y", "--cv", 0]
        ran = CliRunner().invoke(
            app, [str(a) for a in (*arguments, "--method", method, "-o", models[method])]
        )
        assert ran.exit_code == 0, ran.output
    models["plain"] = folder / "plain.skops"
    save_plain(models["plain"])
    return models


@pytest.fixture
def model(saved_models):
    """A model with bounds, of three score columns."""
    return saved_models["evidential-multinomial"]


@pytest.fixture
def two(in_folder):
    """200 rows of one score, higher for "spam"."""
    rng = np.random.default_rng(1)
    spam = rng.permutation(np.arange(200) % 2)
    frame = pd.DataFrame({"score": 2.0 * spam - 1 + rng.normal(size=200)})
    frame["y"] = np.where(spam == 1, "spam", "ham")
    frame.to_csv(in_folder / "two.csv", index=False)
    return frame
