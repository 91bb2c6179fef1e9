"""Modules common to the experiments: support vector machines, stored rounds, intervals."""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common import svm, tables  # noqa: E402
from experiments.common.rounds import Task, carry_out  # noqa: E402
from experiments.common.store import Store, atomic_write  # noqa: E402
from experiments.common.svm import Kernel  # noqa: E402


class Settings(NamedTuple):
    name: str = "some"
    seed: int = 0

    def described(self):
        return self._asdict()


class Cell(NamedTuple):
    name: str
    words: str = "a round"


# Machines


@pytest.mark.parametrize("kernel", [Kernel(None, 0.5), Kernel(0.7, 10.0), Kernel(2.0, 1.0)])
def test_machines_are_those_of_one_vs_rest_svc(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(4, size=60)
    fit, rest = X[:40], X[40:]
    scores = svm.train(fit, svm.one_vs_all(y[:40], 4), kernel).decide(rest)
    gamma = None if kernel.width is None else kernel.width / (5 * fit.var())
    svc = SVC(C=kernel.cost, kernel="linear") if gamma is None else SVC(C=kernel.cost, gamma=gamma)
    theirs = OneVsRestClassifier(svc).fit(fit, y[:40]).decision_function(rest)
    np.testing.assert_allclose(scores, theirs, atol=2e-3)  # libsvm stops at 1e-3


def test_gamma_of_libsvm_is_one_over_the_features():
    A = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert svm.gram(A, A, svm.LIBSVM_DEFAULT)[0, 1] == pytest.approx(np.exp(-2 / 2))


def test_absent_classes_and_a_single_class_have_constant_scores():
    X = np.array([[0.0], [1.0], [2.0]])

    def decided(y):
        return svm.train(X, svm.one_vs_all(np.array(y), 4), Kernel(None, 1.0)).decide(X)

    absent = decided([0, 2, 2])
    np.testing.assert_array_equal(absent[:, [1, 3]], -1)
    assert (absent[:, 0] != -1).any()
    np.testing.assert_array_equal(decided([2, 2, 2]), np.tile([-1, -1, 1, -1], (3, 1)))


def test_scaling_uses_the_training_rows_alone():
    X = np.array([[0.0, 5.0], [2.0, 5.0], [8.0, 7.0]])
    np.testing.assert_array_equal(svm.scaled(X, np.array([0, 1])), [[0, 0], [1, 0], [4, 2]])


# Rounds


def test_a_result_file_is_complete_or_absent(monkeypatch, tmp_path):
    store, cell = Store(tmp_path, Settings()), Cell("dna-1")

    def full_disc(self, target):  # noqa: ARG001
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full_disc)
        with pytest.raises(OSError, match="no space"):
            store.write(cell, {"accuracy": {}})
    assert not store.has(cell)
    assert not list(store.folder.iterdir())
    store.write(cell, {"accuracy": {}})
    assert store.read(cell) == {"accuracy": {}}


def test_a_failed_write_keeps_the_old_file(tmp_path):
    figure = tmp_path / "figure.png"
    figure.write_text("old")

    def fail():
        with atomic_write(figure) as draft:
            draft.write_text("half")
            raise ValueError("no ink")

    with pytest.raises(ValueError, match="no ink"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]
    assert figure.read_text() == "old"


def test_an_interrupt_in_the_second_of_two_tasks_counts_both(tmp_path, capsys):
    def stopped(cell, settings):
        if settings.name == "second" and cell.name == "b":
            raise KeyboardInterrupt
        return {"cell": cell.name}

    work = [Cell("a"), Cell("b"), Cell("c")]
    tasks = [Task(work, stopped, Store(tmp_path, Settings(name))) for name in ("first", "second")]
    assert carry_out(tasks, title="P", jobs=1, quiet=True) == 130
    assert capsys.readouterr().err == (
        f"stopped: 4 of 6 rounds are kept in {tmp_path}; run the same command again to continue.\n"
    )
    assert [len(task.missing()) for task in tasks] == [0, 2]
    assert tasks[0].results() == [{"cell": name} for name in "abc"]


# Numbers


def test_intervals_are_students():
    found = tables.estimate(np.array([1.0, 2.0, 3.0, 6.0]))
    assert found.mean == 3
    assert found.half_width == pytest.approx(3.182446 * np.sqrt(14 / 3) / 2, rel=1e-6)
    assert not found.significant
    assert tables.estimate(np.array([1.0, 1.1, 1.2])).significant
    alone = tables.estimate(np.array([5.0]))
    assert alone == (5.0, np.inf)
    assert not alone.significant


def test_significant_gains_and_losses_are_counted_by_column():
    clear, doubtful = tables.Estimate(2.0, 1.0), tables.Estimate(2.0, 3.0)
    loss = tables.Estimate(-2.0, 1.0)
    assert tables.better_and_worse([[clear, clear, loss], [doubtful]]) == ["2 / 1", "0 / 0"]
    assert tables.contrast(loss) == "**-2.00 ± 1.00**"
    assert tables.contrast(doubtful) == "+2.00 ± 3.00"
