"""The reproduction of Table II of Xu et al. 2015: protocol, continuing after a stop, tables."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.rounds import Task, reproduce  # noqa: E402
from experiments.common.store import Store  # noqa: E402
from experiments.common.svm import Kernel  # noqa: E402
from experiments.common.tables import insert  # noqa: E402
from experiments.p0 import protocol, run, tables  # noqa: E402
from experiments.p0.protocol import Cell, Settings  # noqa: E402

from dubito.datasets import DatasetError  # noqa: E402

EXPECTED = tables.read_expected(ROOT / "experiments" / "p0" / "expected.csv")


@pytest.fixture
def fake(calls, monkeypatch):
    """Replace rounds by accuracies that depend on the cell only; return the list of calls."""

    def run_cell(cell, settings):
        calls.append(cell)
        base = 80 + cell.scenario + 0.1 * cell.round + (settings.svm == "libsvm")
        accuracy = {method: base + i for i, method in enumerate(protocol.METHODS)}
        return {**cell._asdict(), "accuracy": accuracy}

    monkeypatch.setattr(run, "run_cell", run_cell)
    return calls


# The protocol


def test_scenarios_use_all_training_rows():
    assert [len(sizes) for sizes in protocol.SCENARIOS.values()] == [10, 10, 10]
    assert {sum(sizes) for sizes in protocol.SCENARIOS.values()} == {protocol.N_TRAIN}


def test_the_kernel_with_most_validation_rows_right_is_chosen_and_ties_go_to_the_first():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = (np.hypot(*X.T) < 1.1).astype(np.intp)  # no line separates a disc from its surroundings
    rows = np.arange(90)
    data = protocol.Data(X, y, rows[:60], rows[60:], np.arange(2))
    line, disc = Kernel(None, 1.0), Kernel(1.0, 10.0)
    chosen = protocol.best_kernel(data, rows[:30], rows[30:60], (line, disc))
    assert chosen.kernel == disc
    np.testing.assert_array_equal(chosen.rows, X[:30])
    again = (disc, disc._replace(unit="variance"))
    assert protocol.best_kernel(data, rows[:30], rows[30:60], again).kernel is disc


def test_each_part_trains_with_its_first_half_and_is_validated_on_its_second():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(np.intp)
    rows = rng.permutation(60)
    data = protocol.Data(X, y, rows[:30], rows[30:], np.arange(2))
    halves = list(protocol.parts(data, (20, 10)))
    assert [(len(fit), len(held_out)) for fit, held_out in halves] == [(10, 10), (5, 5)]
    np.testing.assert_array_equal(np.concatenate([*halves[0], *halves[1]]), rows[:30])
    line = Kernel(None, 1.0)
    scored = list(protocol.classifiers(data, (20, 10), (line,)))
    for one, (fit, held_out) in zip(scored, halves, strict=True):
        machine = protocol.best_kernel(data, fit, held_out, (line,))
        np.testing.assert_array_equal(one.validation, machine.decide(X[held_out]))
        np.testing.assert_array_equal(one.labels, y[held_out])
        np.testing.assert_array_equal(one.test, machine.decide(X[rows[30:]]))
        assert one.kernel == line


def scored_example(n_classes=4, seed=0):
    rng = np.random.default_rng(seed)

    def draw(n):
        y = rng.integers(n_classes, size=n)
        return rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y], y

    validation, labels = draw(30)
    return protocol.Scored(validation, labels, draw(200)[0], Kernel(None, 1.0))


def test_combination_multiplies_and_permuting_changes_only_inverse_cdf():
    scored = [scored_example(seed=seed) for seed in range(3)]
    combined, slopes = protocol.combine(scored, np.array([2, 0, 3, 1]), n_points=16)
    assert sorted(combined) == sorted(protocol.METHODS)
    fitted = [protocol.calibrator(one, "gumbel", 16) for one in scored]
    assert slopes == [f.slope_ for f in fitted]
    proba = np.prod([f.predict_proba(o.test) for f, o in zip(fitted, scored, strict=True)], axis=0)
    upper = [f.predict_bounds(o.test).upper for f, o in zip(fitted, scored, strict=True)]
    np.testing.assert_allclose(np.exp(combined["probabilistic"]), proba, rtol=1e-9)
    np.testing.assert_allclose(np.exp(combined["gumbel"]), np.prod(upper, axis=0), rtol=1e-9)
    np.testing.assert_allclose(combined["gumbel_permuted"], combined["gumbel"], rtol=1e-9)
    moved = np.abs(np.exp(combined["inverse_cdf_permuted"]) - np.exp(combined["inverse_cdf"]))
    assert moved.max() > 0.01


def test_reversing_the_classes_changes_nothing_even_for_inverse_cdf():
    combined, _ = protocol.combine([scored_example()], np.array([3, 2, 1, 0]), n_points=16)
    np.testing.assert_allclose(
        combined["inverse_cdf_permuted"], combined["inverse_cdf"], rtol=1e-7, atol=1e-9
    )


# Stopping and continuing


def test_a_second_run_computes_nothing_and_a_longer_one_only_the_new_rounds(fake, tmp_path, capsys):
    options = ["--datasets", "dna,usps", "--out", str(tmp_path), "--quiet"]
    assert run.main([*options, "--rounds", "2"]) == 0
    first = capsys.readouterr().out
    assert len(fake) == len(set(fake)) == 12
    assert run.main([*options, "--rounds", "2"]) == 0
    assert capsys.readouterr().out == first
    assert len(fake) == 12
    assert run.main([*options, "--rounds", "3"]) == 0
    assert {cell.round for cell in fake[12:]} == {2}
    assert len(fake) == 18


def test_each_choice_of_settings_has_its_own_folder(fake, tmp_path, capsys):
    for svm in ("grid", "libsvm"):
        options = ["--svm", svm, "--datasets", "dna", "--rounds", "1", "--out", str(tmp_path)]
        assert run.main(options) == 0
    assert len(fake) == 6
    assert "| dna | 1 | 68.9 ± 1.7 | *82.0* |" in capsys.readouterr().out
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert sorted(path.name.split("-")[0] for path in folders) == ["grid", "libsvm"]
    assert Store(tmp_path, Settings(seed=1)).folder not in folders
    assert Store(tmp_path, Settings(n_points=9)).folder not in folders
    settings = json.loads((Store(tmp_path, Settings()).folder / "settings.json").read_text())
    assert settings == Settings().described()
    assert (tmp_path / ".gitignore").read_text().splitlines()[-1] == "*"


def test_an_interrupt_keeps_finished_rounds_and_prints_how_to_continue(
    fake, interrupted, tmp_path, capsys
):
    options = ["--datasets", "dna", "--rounds", "2", "--out", str(tmp_path)]
    with interrupted(4, run):
        assert run.main(options) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("stopped: 4 of 6 rounds are kept in ")
    assert captured.err.endswith("run the same command again to continue.\n")
    assert run.main(options) == 0
    assert len(fake) == len(set(fake)) == 6
    assert not list(tmp_path.rglob("*.part"))


def test_a_missing_dataset_is_reported_on_stderr(monkeypatch, tmp_path, capsys):
    def nowhere(cell, settings):  # noqa: ARG001
        raise DatasetError("dataset 'dna' was not found.")

    monkeypatch.setattr(run, "run_cell", nowhere)
    assert run.main(["--datasets", "dna", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: dataset 'dna' was not found.\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--datasets", "dna,iris"], "unknown: iris"),
        (["--rounds", "0"], "at least 1"),
        (["--jobs", "0"], "at least 1"),
        (["--write-readme", "--quick"], "needs all datasets"),
    ],
)
def test_wrong_options_are_refused(options, words, capsys):
    with pytest.raises(SystemExit) as stop:
        run.main(options)
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


# The tables


def test_the_published_numbers_are_complete_and_agree_with_each_other():
    keys = {(d, s) for d in protocol.DATASETS for s in protocol.SCENARIOS}
    methods = ("probabilistic", "evidential", "difference")
    assert set(EXPECTED) == {(*key, method) for key in keys for method in methods}
    for key in keys:
        p, e, d = (EXPECTED[*key, method].value for method in methods)
        assert e - p == pytest.approx(d)


def test_differences_are_paired_by_rounds_and_misses_are_marked():
    rng = np.random.default_rng(0)
    luck = rng.normal(scale=3, size=20)
    rounds = {method: 78.5 + luck - luck.mean() for method in protocol.METHODS}
    rounds["inverse_cdf"] = rounds["inverse_cdf"] + 1.0 + 0.1 * np.sin(np.arange(20))
    summaries = {("satimage", 1): rounds}
    assert tables.misses(summaries, EXPECTED) == []
    text = tables.render(summaries, EXPECTED)
    assert "mean of 20 rounds" in text
    assert "| 78.5 ± 0.6 | 78.5 ± 1." in text
    assert "| +1.8 | +1.0 ± 0.0 |" in text
    assert "| **+1.00 ± 0.03** | 0.00 ± 0.00 | 0.00 ± 0.00 |" in text
    assert "| better / worse |  | 1 / 0 | 0 / 0 | 0 / 0 | 0 / 0 | 0 / 0 | 1 / 0 |" in text
    rounds["probabilistic"] = rounds["probabilistic"] - 4
    assert tables.misses(summaries, EXPECTED) == [
        ("satimage", 1, "probabilistic"),
        ("satimage", 1, "difference"),
    ]
    assert "0 of 3" in text
    assert "2 of 3" in tables.render(summaries, EXPECTED)


def test_the_readme_has_markers_for_each_table(tmp_path):
    original = (ROOT / "experiments" / "p0" / "README.md").read_text(encoding="utf-8")
    copy = tmp_path / "README.md"
    copy.write_text(original, encoding="utf-8")
    for svm in protocol.SVMS:
        insert(copy, svm, f"the \\1 table of {svm}")
    text = copy.read_text(encoding="utf-8")
    assert all(f"the \\1 table of {svm}\n" in text for svm in protocol.SVMS)
    assert text.splitlines()[:5] == original.splitlines()[:5]
    with pytest.raises(ValueError, match="no markers for 'other'"):
        insert(copy, "other", "")


# With the data


@pytest.mark.data
def test_two_rounds_of_two_datasets(tmp_path):
    settings = Settings(svm="libsvm")
    store = Store(tmp_path, settings)
    work = run.cells(("segment", "dna"), 2)
    task = Task(work, protocol.run_cell, store)
    assert reproduce(task, jobs=2) == len(work) == 12
    assert reproduce(task) == 0
    results = task.results()
    summaries = tables.summarise(results)
    assert set(summaries) == {(d, s) for d in ("segment", "dna") for s in (1, 2, 3)}
    for one in results:
        assert one["n_test"] == protocol.TESTING_SIZE[one["dataset"]]
        # Rounding may break a tie of one test row either way.
        accuracy = one["accuracy"]
        row = 100 / one["n_test"]
        assert abs(accuracy["gumbel"] - accuracy["gumbel_permuted"]) < 1.01 * row
    changed = [
        abs(one["accuracy"]["inverse_cdf"] - one["accuracy"]["inverse_cdf_permuted"])
        for one in results
        if one["dataset"] == "segment"
    ]
    assert max(changed) > 1
    text = tables.render(summaries, EXPECTED)
    assert text.count("| segment | ") == text.count("| dna | ") == 6


@pytest.mark.data
def test_segment_is_reproduced():
    accuracy = protocol.run_cell(Cell("segment", 1, 0), Settings())["accuracy"]
    for method in ("probabilistic", "evidential"):
        published = EXPECTED["segment", 1, method]
        ours = accuracy["inverse_cdf" if method == "evidential" else method]
        assert ours == pytest.approx(published.value, abs=published.tolerance)
