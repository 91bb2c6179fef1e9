"""Rounds of the reproduction of Denoeux 2019: rows, classifiers, and counts."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.p2 import counts, fusion, heart, networks, perceptron, trio  # noqa: E402

from dubito.belief import cautious, dempster  # noqa: E402
from dubito.calibration import EvidentialFusion  # noqa: E402
from dubito.metrics import coverage, discounted_accuracy, u65, u80  # noqa: E402


def import_torch():
    return pytest.importorskip("torch", reason="the paper's network is trained in torch")


@pytest.fixture
def few_rows(monkeypatch):
    """Use fewer rows of the Gaussian data."""
    monkeypatch.setattr(trio, "N_TRAIN", 200)
    monkeypatch.setattr(trio, "N_TEST", 300)


def patients(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal([45, 5], [14, 2], size=(n, 2))
    return X, (0.06 * (X[:, 0] - 50) + 0.2 * (X[:, 1] - 6) + rng.logistic(size=n) > 0).astype(int)


# Tables of counts


def some_sets(n=400, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    sets = rng.random((n, n_classes)) < 0.4
    sets[np.arange(n), rng.integers(n_classes, size=n)] = True
    return sets, rng.integers(n_classes, size=n)


def test_tables_are_in_bit_mask_order():
    sets = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1]], dtype=bool)
    table = counts.confusion(sets, np.array([0, 0, 1, 2, 2, 2]))
    assert table.tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 1],
        [0, 0, 0],
        [0, 0, 2],
    ]
    assert counts.sizes(table).tolist() == [1, 1, 2, 1, 2, 2, 3]


def test_rates_of_a_table_are_those_of_its_rows():
    sets, truth = some_sets()
    table = counts.percent(counts.confusion(sets, truth))
    size, inside = sets.sum(axis=1), sets[np.arange(len(truth)), truth]
    assert counts.error(table) == pytest.approx(100 * np.mean((size == 1) & ~inside))
    assert counts.outside(table) == pytest.approx(100 * (1 - coverage(truth, sets)))
    assert counts.guessed(table) == pytest.approx(100 * (1 - discounted_accuracy(truth, sets)))
    for s in (1, 2, 3):
        assert counts.of_size(table, s) == pytest.approx(100 * np.mean(size == s))
    assert counts.utility(table, 1.6) == pytest.approx(100 * u65(truth, sets))
    assert counts.utility(table, 2.2) == pytest.approx(100 * u80(truth, sets))


def test_the_papers_sum_counts_a_third_of_the_triples_as_wrong_instead_of_two_thirds():
    table = np.zeros((7, 3))
    table[counts.sizes(table) == 1] = np.diag([30.0, 30.0, 21.0]) + 0
    table[6] = 1.0, 8.0, 10.0
    assert counts.guessed_as_printed(table) == pytest.approx(19 / 3)
    assert counts.guessed(table) == pytest.approx(2 * 19 / 3)


# Heart disease


def test_a_replication_decides_for_every_patient_once(monkeypatch):
    X, y = patients()
    monkeypatch.setattr(heart, "patients", lambda: (X, y))
    found = heart.run_cell(heart.Cell(0), heart.Settings())["counts"]
    by_class = [int(y.sum()), int((1 - y).sum())]  # presence first, as in the paper
    for name, table in found.items():
        if name != "mp_where_rejected":
            assert np.sum(table, axis=0).tolist() == by_class
    assert found["mp"][2] == [0, 0]
    assert found["most_belief"] == found["mp"]
    assert found["maximality"] == found["e_admissibility"] == found["interval_dominance"]
    rejected = np.sum(found["interval_dominance"][2])
    assert 0 < np.sum(found["mp_where_rejected"]) == rejected
    assert np.sum(found["cautious_features"][2]) > rejected
    again = heart.run_cell(heart.Cell(0), heart.Settings())["counts"]
    other = heart.run_cell(heart.Cell(1), heart.Settings())["counts"]
    assert again == found != other


def test_the_largest_weight_for_each_class_is_the_cautious_rule():
    X, y = patients()
    classifier = heart.fitted(X, y)
    pieces = [classifier.piece_mass(X, j) for j in range(2)]
    theirs = cautious(*pieces).bounds()
    ours = heart.cautiously_combined(classifier, X)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-9)


@pytest.mark.data
def test_the_papers_cut_offs_of_age_and_ldl():
    age, ldl = heart.fitted(*heart.patients()).model_.cutoffs.ravel()
    assert (round(age, 2), round(ldl, 3)) == (49.67, 6.868)


# Gaussian data


def test_rows_depend_on_the_round_and_the_seed_only():
    (X, _), (test, y) = trio.draw(0, 0)
    assert (len(X), len(test)) == (900, 15_000)
    np.testing.assert_array_equal(trio.draw(0, 0)[1][0], test)
    assert not np.allclose(trio.draw(1, 0)[0][0], X)
    for k, mean in enumerate(trio.MEANS):
        np.testing.assert_allclose(test[y == k].mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(test[y == k].T), trio.COVARIANCES[k], atol=0.03)
    bayes = np.mean(trio.densities(test).argmax(axis=1) != y)
    assert bayes == pytest.approx(0.2455, abs=0.012)  # three standard deviations


def random_layers(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    widths = (2, *networks.UNITS, 3)
    return [
        {
            "weight": (scale * rng.normal(size=(after, before)) / np.sqrt(before)).tolist(),
            "bias": rng.normal(size=after).tolist(),
        }
        for before, after in pairwise(widths)
    ]


def test_counts_of_a_network_follow_their_definition(few_rows):  # noqa: ARG001
    train, test = trio.draw(0, 0)
    classifier = networks.as_classifier(random_layers(), train)
    bounds, mass = classifier.predict_bounds(test[0]), classifier.predict_mass(test[0])
    found = trio.evaluate(bounds, mass, test)
    best = trio.densities(test[0]).argmax(axis=1)
    mp = classifier.predict_proba(test[0]).argmax(axis=1)
    kept = bounds.upper >= bounds.lower.max(axis=1, keepdims=True) - 1e-12
    rows = np.arange(len(mp))
    assert found["n"] == 300
    assert found["bayes_wrong"] == np.sum(best != test[1])
    assert found["mp_not_bayes"] == np.sum(mp != best) > 0
    assert found["mp_not_bayes_but_in_set"] == np.sum((mp != best) & kept[rows, best])
    for i, size in enumerate((2, 3)):
        here = kept.sum(axis=1) == size
        assert found["undecided"][i] == here.sum()
        assert found["undecided_mp_right"][i] == np.sum(here & (mp == test[1]))
    tables = found["counts"]
    assert tables["maximality"] == tables["interval_dominance"]
    costs = trio.evaluate_with_costs(mass, test[1])
    kept_by = [
        int(counts.sizes(np.array(costs[rule])) @ np.sum(costs[rule], axis=1))
        for rule in ("interval_dominance", "maximality", "e_admissibility")
    ]
    assert kept_by == sorted(kept_by, reverse=True)
    assert kept_by[0] > kept_by[1]


def test_the_classifier_of_layers_computes_their_function(few_rows):  # noqa: ARG001
    train, (X, _) = trio.draw(0, 0)
    layers = random_layers()
    classifier = networks.as_classifier(layers, train)
    phi = X
    for layer in layers[:-1]:
        phi = np.maximum(phi @ np.array(layer["weight"]).T + layer["bias"], 0)
    np.testing.assert_allclose(classifier.features(X), phi)
    logits = phi @ np.array(layers[-1]["weight"]).T + layers[-1]["bias"]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(X), proba)


# The network in torch


def test_a_training_is_evaluated_after_each_number_of_epochs_and_repeatable(few_rows):  # noqa: ARG001
    torch = import_torch()
    settings = networks.Settings(epochs=(1, 3))
    before = torch.random.get_rng_state()
    found = networks.run_cell(networks.Cell("keras", 0), settings)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert list(found["after"]) == ["1", "3"]
    for one in found["after"].values():
        assert [np.sum(table) for table in one["counts"].values()] == [300] * 4
    weights = [np.array(one["layers"][-1]["weight"]) for one in found["after"].values()]
    assert not np.allclose(*weights)
    shorter = networks.run_cell(networks.Cell("keras", 0), networks.Settings(epochs=(1,)))
    assert shorter["after"]["1"] == found["after"]["1"]
    other = networks.run_cell(networks.Cell("keras", 1), networks.Settings(epochs=(1,)))
    assert other["after"]["1"]["layers"] != shorter["after"]["1"]["layers"]


def test_the_head_in_torch_and_the_classifier_of_its_layers_agree(few_rows):  # noqa: ARG001
    import_torch()
    train, test = trio.draw(0, 0)
    _, model = next(networks.trained(train, networks.VARIANTS["none"], (2,), seed=0))
    by_head = networks.evaluate(model, train, test)
    classifier = networks.as_classifier(by_head["layers"], train)
    mass = classifier.predict_mass(test[0])
    by_layers = trio.evaluate(classifier.predict_bounds(test[0]), mass, test)
    moved = np.subtract(*(np.array(c["counts"]["mp"]) for c in (by_head, by_layers)))
    assert np.abs(moved).sum() <= 2  # features are in single precision there
    assert by_head["bayes_wrong"] == by_layers["bayes_wrong"]


def test_the_penalty_shrinks_only_the_output_weights(few_rows):  # noqa: ARG001
    import_torch()
    train, _ = trio.draw(0, 0)

    def squares(variant):
        *_, (_, model) = networks.trained(train, networks.VARIANTS[variant], (20,), seed=0)
        return [np.square(layer["weight"]).sum() for layer in networks.layers_of(model)]

    free, penalised, strong = (squares(name) for name in ("none", "summed", "keras"))
    assert free[-1] > penalised[-1] > strong[-1]
    assert strong[0] == pytest.approx(free[0], rel=0.2)


def test_networks_are_initialised_as_in_keras():
    torch = import_torch()
    model = networks._untrained()
    linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    widths = [(layer.in_features, layer.out_features) for layer in linear]
    assert widths == [(2, 20), (20, 10), (10, 3)]
    for layer in linear:
        limit = np.sqrt(6 / (layer.in_features + layer.out_features))
        assert float(layer.weight.detach().abs().max()) <= limit
        assert not layer.bias.any()
    assert isinstance(model[2], torch.nn.Dropout)
    assert model[2].p == 0.5


def test_the_main_variant_has_all_rounds_and_the_others_half_of_them():
    work = networks.cells(4, quick=False)
    rounds = {v: [cell.round for cell in work if cell.variant == v] for v in networks.VARIANTS}
    assert rounds.pop(networks.MAIN) == [0, 1, 2, 3]
    assert set(map(tuple, rounds.values())) == {(0, 1)}
    assert {cell.variant for cell in networks.cells(4, quick=True)} == {networks.MAIN}


# Without torch


def test_a_perceptron_is_trained_until_it_converges(few_rows):  # noqa: ARG001
    found = perceptron.run_cell(perceptron.Cell("lambda", 0), perceptron.Settings())
    assert 10 < found["epochs"] < perceptron.MAX_EPOCHS
    assert [np.sum(table) for table in found["counts"].values()] == [300] * 4
    assert [np.sum(table) for table in found["costs"].values()] == [300] * 3
    error = counts.error(counts.percent(found["counts"]["mp"]))
    assert error < 40


def test_members_of_an_ensemble_are_trained_on_all_rows_or_on_disjoint_parts(few_rows, monkeypatch):  # noqa: ARG001
    train, _ = trio.draw(0, 0)
    seen = []
    monkeypatch.setattr(
        perceptron, "fitted", lambda rows, alpha, *, seed: seen.append((rows, alpha, seed))
    )
    for scheme in fusion.SCHEMES:
        list(fusion.members(fusion.Cell(scheme, 2), fusion.Settings(), train))
    same, own = seen[:5], seen[5:]
    assert len({seed for _, _, seed in same}) == 5
    assert all(len(rows[0]) == 200 for rows, _, _ in same)
    together = np.vstack([rows[0] for rows, _, _ in own])
    np.testing.assert_array_equal(np.sort(together[:, 0]), np.sort(train[0][:, 0]))
    for rows, alpha, _ in own:
        assert alpha == 0.5
        assert len(rows[0]) == len(rows[1]) == 40


def test_methods_of_fusion_on_identical_members(few_rows, monkeypatch):  # noqa: ARG001
    train, _ = trio.draw(0, 0)
    monkeypatch.setattr(
        fusion,
        "members",
        lambda *_: [networks.as_classifier(random_layers(), train)] * fusion.N_MEMBERS,
    )
    found = fusion.run_cell(fusion.Cell("same", 0), fusion.Settings())["methods"]
    assert tuple(found) == fusion.METHODS
    alone = found["alone"]
    # Five identical members: the cautious rule and averages count them once.
    for method in ("cautious", "masses_averaged"):
        assert found[method]["counts"] == alone["counts"]
        assert found[method]["log_loss"] == pytest.approx(alone["log_loss"])
    assert found["dempster"]["ignorance"] < found["cautious"]["ignorance"]
    assert found["probabilities"]["ignorance"] == 0
    assert len({str(one["counts"]["mp"]) for one in found.values()}) == 1


@pytest.mark.parametrize(("rule", "combine"), [("dempster", dempster), ("cautious", cautious)])
def test_evidential_fusion_gives_the_same_masses(few_rows, rule, combine):  # noqa: ARG001
    train, (X, _) = trio.draw(0, 0)
    classifiers = [networks.as_classifier(random_layers(seed), train) for seed in range(3)]
    members = [(str(i), FrozenEstimator(one)) for i, one in enumerate(classifiers)]
    fusion_ = EvidentialFusion(members, method="masses", rule=rule).fit(*train)
    ours = combine(*(one.predict_mass(X) for one in classifiers))
    np.testing.assert_allclose(fusion_.predict_mass(X).mass, ours.mass, atol=1e-9)


@pytest.mark.parametrize("module", [heart, perceptron, fusion])
@pytest.mark.parametrize("quick", [True, False])
def test_names_of_rounds_are_unique(module, quick):
    work = module.cells(3, quick=quick)
    assert len({cell.name for cell in work}) == len(work) >= 3
    assert all("3" in cell.words for cell in work if cell.round == 2)
