"""Tables and figures of P2 from quick rounds; continuing; without torch or matplotlib."""

import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common import published  # noqa: E402
from experiments.common.tables import Estimate  # noqa: E402
from experiments.p2 import (  # noqa: E402
    canvas,
    fusion,
    heart,
    measures,
    networks,
    perceptron,
    run,
    tables,
    trio,
)

P2 = ROOT / "experiments" / "p2"


def patients(n=80):
    rng = np.random.default_rng(0)
    X = rng.normal([45, 5], [14, 2], size=(n, 2))
    return X, (0.06 * (X[:, 0] - 50) + 0.2 * (X[:, 1] - 6) + rng.logistic(size=n) > 0).astype(int)


def random_layers(seed):
    rng = np.random.default_rng(seed)
    widths = (2, *networks.UNITS, 3)
    return [
        {
            "weight": (rng.normal(size=(after, before)) / np.sqrt(before)).tolist(),
            "bias": rng.normal(size=after).tolist(),
        }
        for before, after in pairwise(widths)
    ]


def fake_fitted(rows, alpha, *, seed):  # noqa: ARG001
    return networks.as_classifier(random_layers(seed), rows)


def fake_networks(cell, settings):
    train, test = trio.draw(cell.round, settings.seed)
    layers = random_layers(cell.round)
    classifier = networks.as_classifier(layers, train)
    bounds, mass = classifier.predict_bounds(test[0]), classifier.predict_mass(test[0])
    one = {**trio.evaluate(bounds, mass, test), "layers": layers}
    return {**asdict(cell), "after": {str(epochs): one for epochs in networks.EPOCHS}}


def fake_perceptron(cell, settings):
    train, test = trio.draw(cell.round, settings.seed)
    classifier = fake_fitted(train, 0.5, seed=cell.round)
    mass = classifier.predict_mass(test[0])
    found = trio.evaluate(classifier.predict_bounds(test[0]), mass, test)
    costs = trio.evaluate_with_costs(mass, test[1])
    return {**asdict(cell), **found, "costs": costs, "epochs": 100}


@pytest.fixture
def fake(calls, count_calls, monkeypatch):
    """Make rounds quick (few rows, no training); return the list of calls."""
    monkeypatch.setattr(trio, "N_TRAIN", 60)
    monkeypatch.setattr(trio, "N_TEST", 200)
    monkeypatch.setattr(heart, "N_FOLDS", 2)
    monkeypatch.setattr(heart, "patients", patients)
    monkeypatch.setattr(canvas, "RESOLUTION", 12)
    monkeypatch.setattr(canvas, "DPI", 30)
    monkeypatch.setattr(networks, "available", lambda: True)
    monkeypatch.setattr(perceptron, "fitted", fake_fitted)
    made = {"networks": fake_networks, "perceptron": fake_perceptron}

    for name, part in run.PARTS.items():
        count_calls(part.module, made.get(name))
    return calls


def test_all_parts_are_run_and_drawn(fake, tmp_path, capsys):
    options = ["--quick", "--out", str(tmp_path), "--quiet"]
    assert run.main(options) == 0
    captured = capsys.readouterr()
    assert len(fake) == len(set(fake)) == 3 + 2 + 2 + 2
    for part in run.PARTS:
        assert f"## {part}\n" in captured.out
    for part in ("heart", "networks"):
        for claim in published.read_claims(P2 / "claims.csv", part):
            assert f"| {claim.name} | {claim.statement} |" in captured.out
    drawn = {path.stem.removeprefix("figure_") for path in (tmp_path / "figures").iterdir()}
    ours = {f"{number}_perceptron" for number in (10, 11, 12)}
    assert drawn == {str(number) for number in (2, *range(5, 13))} | ours
    assert captured.err == f"12 figures are in {tmp_path / 'figures'}\n"
    assert not list(tmp_path.rglob("*.part"))
    assert (tmp_path / ".gitignore").read_text().splitlines()[-1] == "*"


@pytest.mark.usefixtures("no_figures")
def test_a_second_run_computes_nothing_and_prints_the_same(fake, tmp_path, capsys):
    options = ["--rounds", "2", "--out", str(tmp_path), "--quiet"]
    assert run.main(options) == 0
    first = capsys.readouterr().out
    assert len(fake) == len(set(fake)) == 2 + 5 + 4 + 4
    assert run.main(options) == 0
    assert capsys.readouterr().out == first
    assert len(fake) == 15


@pytest.mark.usefixtures("no_figures")
def test_an_interrupt_keeps_finished_rounds_and_prints_how_to_continue(
    fake, interrupted, tmp_path, capsys
):
    options = ["--quick", "--rounds", "3", "--parts", "heart,perceptron", "--out", str(tmp_path)]
    with interrupted(4, perceptron):
        assert run.main(options) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"stopped: 4 of 6 rounds are kept in {tmp_path}; run the same command again to continue.\n"
    )
    assert run.main(options) == 0
    assert len(fake) == len(set(fake)) == 6


@pytest.mark.usefixtures("no_figures")
def test_without_torch_the_other_parts_run_and_the_missing_one_is_reported(
    fake, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(networks, "available", lambda: False)
    assert run.main(["--quick", "--rounds", "1", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "networks" not in {name for name, _ in fake}
    assert "## networks" not in captured.out
    assert "## perceptron" in captured.out
    assert "networks left out (Tables 3 and 4" in captured.err
    assert "`make torch`" in captured.err
    assert captured.err.endswith(f"3 figures are in {tmp_path / 'figures'}\n")
    assert run.main(["--quick", "--parts", "networks", "--out", str(tmp_path)]) == 0
    with pytest.raises(SystemExit):
        run.main(["--write-readme"])
    assert "needs torch" in capsys.readouterr().err


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_tables_are_still_printed(fake, tmp_path, capsys):  # noqa: ARG001
    assert run.main(["--quick", "--parts", "heart", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "**Table 2**" in captured.out
    assert captured.err.startswith("figures left out: they need matplotlib")


# Published numbers


def made_up(table, n=5):
    """Return rounds of two classes, all with the same table for every rule."""
    names = ("mp", "interval_dominance", "maximality", "e_admissibility", "most_belief")
    names += ("cautious_features", "cautious_features_mp", "mp_where_rejected")
    return [{"counts": dict.fromkeys(names, table)} for _ in range(n)]


def test_the_papers_own_table_is_reproduced_and_another_is_not(fake):  # noqa: ARG001
    paper = [[36, 22], [98, 422], [212, 210]]
    numbers = measures.of_heart(made_up(paper))
    expected = published.read_expected(P2 / "expected.csv", "heart")
    cells = [q for q in expected if q.startswith("id.")]
    assert len(cells) == 9
    assert all(published.is_reproduced(expected[q], numbers[q]) for q in cells)
    text = tables.render_heart(made_up(paper))
    assert "| negative | 9.8 / 9.8 (sd 0.0) | 42.2 / 42.2 (sd 0.0) |" in text
    other = tables.render_heart(made_up([[56, 22], [98, 402], [212, 210]]))
    assert "| positive | 3.6 / *5.6* (sd 0.0) | 2.2 / 2.2 (sd 0.0) |" in other


def test_published_tables_agree_with_the_published_rates():
    heart_, trio_ = (published.read_expected(P2 / "expected.csv", p) for p in ("heart", "networks"))

    def total(expected, *cells):
        return sum(expected[cell].value for cell in cells)

    assert total(heart_, "mp.1.2", "mp.2.1") == pytest.approx(heart_["mp.error"].value)
    assert total(heart_, "id.1.2", "id.2.1") == pytest.approx(heart_["id.error"].value)
    assert total(heart_, "id.12.1", "id.12.2") == pytest.approx(heart_["id.rejected"].value)
    wrong = [f"id.{k}.{j}" for k in "123" for j in "123" if k != j]
    assert total(trio_, *wrong) == pytest.approx(trio_["id.error"].value)
    # As reconstructed, each class has a third of the rows up to sampling error.
    sets = ("1", "2", "3", "12", "23", "123")
    for k in "123":
        assert total(trio_, *(f"id.{named}.{k}" for named in sets)) == pytest.approx(33.3, abs=0.6)


def test_every_published_number_and_claim_is_computed(fake):  # noqa: ARG001
    found = {
        "heart": measures.of_heart([heart.run_cell(heart.Cell(0), heart.Settings())]),
        "networks": measures.of_trio(
            [fake_networks(networks.Cell("keras", 0), networks.Settings())["after"]["400"]]
        ),
    }
    for part, numbers in found.items():
        assert set(published.read_expected(P2 / "expected.csv", part)) <= set(numbers)
        claims = published.read_claims(P2 / "claims.csv", part)
        assert {claim.quantity for claim in claims} <= set(numbers)


def test_single_trainings_are_allowed_two_standard_deviations():
    values = np.array([10.0, 12.0, 14.0])
    near, far = (published.Expected(v, None, "", "") for v in ("15.9", "16.1"))
    assert published.allowed(near, values) == pytest.approx(4)
    assert published.is_reproduced(near, values)
    assert not published.is_reproduced(far, values)
    assert not published.is_reproduced(near._replace(tolerance=0.5), values)


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [(3, 1, "confirmed"), (1, 2, "open"), (-3, 1, "the opposite"), (3, np.inf, "open")],
)
def test_verdicts(mean, half_width, verdict):
    assert published.verdict(Estimate(mean, half_width), 0) == verdict


def test_a_set_of_the_first_and_third_class_is_a_seventh_region():
    def one(table):
        zeros = {"bayes_wrong": 0, "bayes_in_set": 1, "mp_not_bayes": 0}
        zeros |= {"mp_not_bayes_but_in_set": 0, "undecided": [0, 0], "undecided_mp_right": [0, 0]}
        return {"counts": dict.fromkeys(("mp", "interval_dominance"), table), "n": 10, **zeros}

    six, seven = np.ones((7, 3), dtype=int), np.ones((7, 3), dtype=int)
    six[4] = 0
    np.testing.assert_array_equal(measures.of_trio([one(six), one(seven)])["no_13"], [100, 0])


def test_ensembles_are_compared_with_averaged_probabilities():
    def one(wrong):
        table = [[50 - wrong, 0, 0], [wrong, 50, 0], *([[0, 0, 0]] * 5)]
        counted = {"mp": table, "interval_dominance": table}
        return {"counts": counted, "log_loss": 0.5, "ignorance": 0.25}

    wrong = dict(zip(fusion.METHODS, (12, 8, 9, 10, 7), strict=True))
    rounds = [
        {"scheme": "same", "methods": {m: one(w + r) for m, w in wrong.items()}} for r in range(3)
    ]
    text = tables.render_fusion(rounds)
    assert "trained on the same 900 rows" in text
    assert "rows of its own" not in text
    assert "| one member | 13.0 ± 2.5 |" in text
    assert "| 0.500 | 25.0 % | **+4.00 ± 0.00** |" in text
    assert "**-1.00 ± 0.00**" in text
