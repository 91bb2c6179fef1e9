"""Calibration maps of all nodes, compared with one calibrator for each node."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.base import clone

from dubito.calibration import (
    BetaCalibrator,
    BinningCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration.errors import CalibrationInputError
from dubito.dichotomies import NestedDichotomyClassifier

from reference.packed_nodes import QUERIES, Packed, gaussian_nodes, has_bounds

#: A side of a node: scores, many of them tied, with integer weights.
SIDE = st.lists(st.tuples(st.integers(-8, 8), st.integers(1, 3)), min_size=2, max_size=12)
NODE = st.tuples(SIDE, SIDE)
NODES = st.lists(NODE, min_size=1, max_size=4)
CONSTANT = [([(1, 1), (1, 2)], [(1, 1), (1, 1), (1, 3)])]
SEPARABLE = [([(-8, 1), (-6, 2)], [(5, 1), (8, 1), (7, 1)])]
WRONG_WAY = [([(5, 1), (8, 1)], [(-8, 1), (-6, 2)])]

EXACT = [
    PlattCalibrator(),
    IsotonicCalibrator(),
    IsotonicCalibrator(smoothing=0.25, input="logits"),
    EvidentialIsotonicCalibrator(),
]
GENERIC = [
    PlattCalibrator(ridge=1.0),
    PlattCalibrator(input="proba"),
    IsotonicCalibrator(input="proba"),
    BetaCalibrator(),
    BinningCalibrator(n_bins=2),
    TemperatureCalibrator(),
    VectorCalibrator(),
    MatrixCalibrator(),
    EvidentialBinningCalibrator(n_bins=3),
    EvidentialLogisticCalibrator(input="proba"),
]


@pytest.mark.parametrize("calibrator", EXACT, ids=repr)
@settings(max_examples=30)
@given(nodes=NODES)
@example(nodes=CONSTANT)
@example(nodes=SEPARABLE)
@example(nodes=WRONG_WAY)
def test_probabilities_are_those_of_a_calibrator_at_each_node(calibrator, nodes):
    packed = Packed(nodes)
    log_odds = packed.fit(calibrator).log_odds(packed.queries)
    for t, one in enumerate(packed.by_hand(calibrator)):
        expected = one.predict_proba(QUERIES)[:, 1]
        np.testing.assert_allclose(expit(log_odds[:, t]), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["platt", "isotonic"])
def test_names_mean_calibrators_with_default_parameters(name):
    packed = gaussian_nodes([5, 40])
    calibrator = {"platt": PlattCalibrator(), "isotonic": IsotonicCalibrator()}[name]
    assert repr(NestedDichotomyClassifier(internal=name)._calibrators().internal) == repr(
        calibrator
    )
    got, expected = packed.fit(name), packed.fit(calibrator)
    np.testing.assert_array_equal(got.log_odds(packed.queries), expected.log_odds(packed.queries))


@settings(max_examples=30)
@given(nodes=NODES)
@example(nodes=CONSTANT)
@example(nodes=WRONG_WAY)
def test_evidential_isotonic_bounds_are_exactly_those_at_each_node(nodes):
    packed = Packed(nodes)
    lower, upper = packed.fit(EvidentialIsotonicCalibrator()).bounds(packed.queries)
    for t, one in enumerate(packed.by_hand(EvidentialIsotonicCalibrator())):
        bounds = one.predict_bounds(QUERIES)
        np.testing.assert_allclose(lower[:, t], bounds.lower[:, 1], atol=1e-13)
        np.testing.assert_allclose(upper[:, t], bounds.upper[:, 1], atol=1e-13)


@settings(max_examples=15)
@given(nodes=st.lists(NODE, min_size=1, max_size=2))
@example(nodes=CONSTANT)
@example(nodes=SEPARABLE)
@example(nodes=WRONG_WAY)
def test_evidential_logistic_bounds_are_those_at_each_node(nodes):
    packed = Packed(nodes)
    check_logistic_bounds(packed, QUERIES)


@pytest.mark.parametrize("gap", [0.2, 2.0, 8.0])
def test_evidential_logistic_bounds_of_many_rows(gap):
    queries = np.concatenate([QUERIES, np.random.default_rng(3).normal(0, 4, 30)])
    check_logistic_bounds(gaussian_nodes([20, 300, 3000], gap=gap), queries)


@pytest.mark.parametrize("distinct", [1, 3, 12, 13, 400])
def test_condensed_rows_have_the_same_sums(distinct):
    """Softplus sums are equal for all slopes up to the steepest, and weights are positive."""
    from dubito._numerics.condensed_rows_compiled import condense

    rng = np.random.default_rng(distinct)
    x = np.sort(rng.choice(rng.normal(size=distinct), size=500))
    points = np.stack([x, rng.uniform(0.5, 2, 500)])
    fewer = condense(points, 3.0)
    assert fewer.shape[1] <= 12 * np.ceil(3.0 * np.ptp(x) / 4 + 1)
    assert (fewer[1] > 0).all()
    for slope in (-3.0, -0.4, 0.0, 1.7, 3.0):
        for intercept in (-6.0, 0.5, 20.0):
            many, few = (w @ np.logaddexp(0, intercept + slope * z) for z, w in (points, fewer))
            np.testing.assert_allclose(few, many, rtol=1e-12)


def test_evidential_logistic_bounds_of_an_unbalanced_node():
    rng = np.random.default_rng(0)
    many = np.column_stack([rng.normal(2, 2, 2000), np.ones(2000)])
    check_logistic_bounds(Packed([[[(-2, 1), (1, 1)], many]]), QUERIES)


def check_logistic_bounds(packed, queries):
    table = np.repeat(queries[:, None], len(packed.nodes), axis=1)
    maps = packed.fit(EvidentialLogisticCalibrator())
    lower, upper = maps.bounds(table)
    proba = expit(maps.log_odds(table))
    for t, one in enumerate(packed.by_hand(EvidentialLogisticCalibrator())):
        bounds = one.predict_bounds(queries)
        np.testing.assert_allclose(lower[:, t], bounds.lower[:, 1], atol=1e-8)
        np.testing.assert_allclose(upper[:, t], bounds.upper[:, 1], atol=1e-8)
        np.testing.assert_allclose(
            proba[:, t], one.predict_proba(queries)[:, 1], rtol=1e-8, atol=1e-12
        )


@pytest.mark.parametrize("calibrator", GENERIC, ids=repr)
def test_any_other_calibrator_is_fitted_at_each_node(calibrator):
    packed = gaussian_nodes([4, 25])
    maps = packed.fit(calibrator)
    proba = expit(maps.log_odds(packed.queries[2:-2]))
    as_input = expit if calibrator.input == "proba" else np.asarray
    for t in packed.all:
        scores, event, weight = packed.of_node(t)
        one = clone(calibrator).fit(as_input(scores), event, weight)
        expected = one.predict_proba(as_input(QUERIES[2:-2]))[:, 1]
        np.testing.assert_allclose(proba[:, t], expected, atol=1e-9)
        if has_bounds(maps):
            bounds = one.predict_bounds(as_input(QUERIES))
            upper = maps.bounds(packed.queries)[1][:, t]
            np.testing.assert_allclose(upper, bounds.upper[:, 1], atol=1e-13)


class Reversed(IsotonicCalibrator):
    """A subclass with another map."""

    def _proba(self, table):
        return super()._proba(-table)


def test_subclasses_are_fitted_with_their_own_map():
    packed = gaussian_nodes([4, 25])
    assert IsotonicCalibrator().node_map_spec() is not None
    assert Reversed().node_map_spec() is None
    proba = expit(packed.fit(Reversed()).log_odds(packed.queries))
    for t, one in enumerate(packed.by_hand(Reversed())):
        np.testing.assert_allclose(proba[:, t], one.predict_proba(QUERIES)[:, 1], atol=1e-12)


@pytest.mark.parametrize("calibrator", [PlattCalibrator(), TemperatureCalibrator()], ids=repr)
def test_slopes_and_intercepts_of_affine_maps(calibrator):
    packed = gaussian_nodes([4, 25])
    maps = packed.fit(calibrator)
    slope, intercept = maps.affine
    np.testing.assert_allclose(
        slope * packed.queries + intercept, maps.log_odds(packed.queries), rtol=1e-10, atol=1e-10
    )


def test_no_slopes_if_they_would_lose_digits():
    packed = Packed([[[(0, 1), (1, 1)], [(1, 1), (3, 1)]]])
    packed.out_of_fold += 1e9
    assert packed.fit("platt").affine is None


def test_no_calibration_keeps_scores():
    packed = gaussian_nodes([3])
    maps = packed.fit(None)
    np.testing.assert_array_equal(maps.log_odds(packed.queries), packed.queries)
    np.testing.assert_array_equal(maps.bounds(packed.queries)[0], expit(packed.queries))
    assert not has_bounds(maps)
    slope, intercept = maps.affine
    np.testing.assert_array_equal(slope * packed.queries + intercept, packed.queries)


ALL = ["platt", "isotonic", IsotonicCalibrator(smoothing=0), EvidentialLogisticCalibrator()]
ALL += [EvidentialIsotonicCalibrator(), EvidentialBinningCalibrator(), BetaCalibrator()]


@pytest.mark.parametrize("internal", ALL, ids=repr)
def test_nodes_without_scores_are_not_calibrated(internal):
    packed = gaussian_nodes([6, 1, 9])
    packed.out_of_fold[packed.start[1] : packed.start[2]] = np.nan
    maps, full = packed.fit(internal), gaussian_nodes([6, 1, 9]).fit(internal)
    log_odds = maps.log_odds(packed.queries)
    np.testing.assert_array_equal(log_odds[:, 1], QUERIES)
    np.testing.assert_array_equal(log_odds[:, [0, 2]], full.log_odds(packed.queries)[:, [0, 2]])
    if has_bounds(maps):
        lower, upper = maps.bounds(packed.queries)
        assert (lower[:, 1] == 0).all()
        assert (upper[:, 1] == 1).all()
        assert (upper[:, 2] < 1).any()


@pytest.mark.parametrize("internal", ALL, ids=repr)
def test_extreme_scores_have_finite_log_odds_within_their_bounds(internal):
    packed = gaussian_nodes([4, 60], gap=9.0)
    extreme = np.array([-np.inf, -1e308, -1e300, -800.0, 800.0, 1e300, 1e308, np.inf])
    table = np.repeat(extreme[:, None], 2, axis=1)
    maps = packed.fit(internal)
    log_odds = maps.log_odds(table)
    lower, upper = maps.bounds(table)
    assert np.isfinite(log_odds).all()
    assert (np.diff(log_odds, axis=0) >= 0).all()
    assert (lower <= upper).all()
    assert (lower >= 0).all()
    assert (upper <= 1).all()


@pytest.mark.parametrize("internal", ALL, ids=repr)
def test_extreme_training_scores(internal):
    packed = gaussian_nodes([5, 5])
    packed.out_of_fold[[0, 9]] = -1e308, np.inf
    assert np.isfinite(packed.fit(internal).log_odds(packed.queries)).all()


@settings(max_examples=20)
@given(nodes=NODES)
@example(nodes=SEPARABLE)
@pytest.mark.parametrize(
    "calibrator",
    [EvidentialLogisticCalibrator(), EvidentialIsotonicCalibrator(), EvidentialBinningCalibrator()],
    ids=repr,
)
def test_bounds_contain_the_probability(calibrator, nodes):
    packed = Packed(nodes)
    maps = packed.fit(calibrator)
    lower, upper = maps.bounds(packed.queries)
    proba = expit(maps.log_odds(packed.queries))
    assert (lower <= proba + 1e-12).all()
    assert (proba <= upper + 1e-12).all()


@pytest.mark.parametrize(
    "calibrator", [IsotonicCalibrator(smoothing=0), BinningCalibrator(n_bins=9)], ids=repr
)
def test_certainty_is_limited_to_half_the_frequency_of_one_more_row(calibrator):
    packed = gaussian_nodes([20], gap=9.0)
    proba = expit(packed.fit(calibrator).log_odds(packed.queries))[:, 0]
    expected = clone(calibrator).fit(*packed.of_node(0)).predict_proba(QUERIES)[:, 1]
    floor = 0.5 / 41
    if calibrator.get_params().get("smoothing") == 0:
        assert {0.0, 1.0} <= set(expected)
        expected = np.clip(expected, floor, 1 - floor)
    np.testing.assert_allclose(proba, expected, rtol=1e-12)


@pytest.mark.parametrize("internal", ALL, ids=repr)
def test_rows_are_independent_and_survive_pickling(internal):
    packed = gaussian_nodes([3, 30])
    maps = packed.fit(internal)
    table = np.random.default_rng(5).normal(0, 3, (150, 2))
    # The rounding of a matrix product depends on the number of rows.
    same = np.testing.assert_array_equal
    if isinstance(internal, BetaCalibrator):
        same = partial(np.testing.assert_allclose, rtol=1e-13)
    for predict in (lambda m, s: m.log_odds(s), lambda m, s: np.hstack(m.bounds(s))):
        whole = predict(maps, table)
        rows = [predict(maps, table[i : i + 1]) for i in (0, 63, 64, 149)]
        same(np.concatenate(rows), whole[[0, 63, 64, 149]])
        np.testing.assert_array_equal(predict(maps, np.asfortranarray(table)), whole)
        np.testing.assert_array_equal(predict(pickle.loads(pickle.dumps(maps)), table), whole)  # noqa: S301


@pytest.mark.parametrize("internal", [*ALL[3:6], BetaCalibrator()], ids=repr)
def test_the_number_of_jobs_does_not_matter(internal):
    packed = gaussian_nodes([2, 30, 5, 8, 3])
    one, two = packed.fit(internal, n_jobs=1), packed.fit(internal, n_jobs=2)
    np.testing.assert_array_equal(one.log_odds(packed.queries), two.log_odds(packed.queries))
    np.testing.assert_array_equal(one.bounds(packed.queries), two.bounds(packed.queries))


@settings(max_examples=20)
@given(nodes=st.lists(NODE, min_size=2, max_size=4))
def test_weights_are_copies_and_nodes_are_independent(nodes):
    """Weight 2 equals the row twice; a node's map does not depend on other nodes."""
    packed = Packed(nodes)
    twice = Packed(
        [[[(s, 1) for s, w in side for _ in range(w)] for side in node] for node in nodes]
    )
    for internal in ("platt", "isotonic"):
        together = packed.fit(internal).log_odds(packed.queries)
        np.testing.assert_allclose(
            together, twice.fit(internal).log_odds(packed.queries), rtol=1e-7, atol=1e-9
        )
        alone = Packed(nodes[1:2]).fit(internal).log_odds(packed.queries[:, :1])
        np.testing.assert_array_equal(together[:, 1:2], alone)


def test_sigmoids_have_a_small_gradient():
    packed = gaussian_nodes([2, 50, 4000])
    assert (packed.fit("platt").coef[:, 4] < 1e-12).all()


def test_weights_are_found_by_the_first_row_of_a_node():
    """The order of weights differs from that of scores, because nodes have rows in common."""
    packed = gaussian_nodes([4, 6])
    other = gaussian_nodes([4, 6])
    other.weight = np.concatenate([np.full(3, 9.0), packed.weight[8:] * 2, packed.weight[:8] * 3])
    other.weight_start = np.array([3 + 12, 3])
    packed.weight = np.concatenate([packed.weight[:8] * 3, packed.weight[8:] * 2])
    np.testing.assert_array_equal(
        other.fit("platt").log_odds(packed.queries), packed.fit("platt").log_odds(packed.queries)
    )


def test_float32_scores():
    packed = gaussian_nodes([7])
    packed.out_of_fold = packed.out_of_fold.astype(np.float32)
    maps = packed.fit("isotonic")
    table = packed.queries.astype(np.float32)
    assert maps.log_odds(table).dtype == np.float64
    np.testing.assert_array_equal(maps.log_odds(table), maps.log_odds(table.astype(float)))


@pytest.mark.parametrize(
    ("internal", "bounds"),
    [
        (None, False),
        ("platt", False),
        (BetaCalibrator(), False),
        (EvidentialIsotonicCalibrator(), True),
        (EvidentialLogisticCalibrator(), True),
        (EvidentialBinningCalibrator(), True),
    ],
    ids=repr,
)
def test_which_maps_have_bounds(internal, bounds):
    assert has_bounds(gaussian_nodes([3]).fit(internal)) is bounds


@pytest.mark.parametrize(
    ("internal", "message"),
    [
        ("sigmoid", "must be 'auto', None, one of 'beta'.*'platt'.* or a cal.*Got 'sigmoid'"),
        (3, "Got 3 instead"),
        (PlattCalibrator, r"Pass an instance: PlattCalibrator\(\)"),
        (IsotonicCalibrator(smoothing=-1), "'smoothing' parameter of IsotonicCalibrator"),
    ],
    ids=repr,
)
def test_invalid_calibrators_raise(internal, message):
    with pytest.raises(ValueError, match=message):
        gaussian_nodes([3]).fit(internal)


@pytest.mark.parametrize(
    ("calibrator", "node"),
    [
        (EvidentialLogisticCalibrator(targets="raw"), 1),
        (EvidentialJointCalibrator(input=[]), "[01]"),
    ],
    ids=repr,
)
def test_errors_of_calibrators_name_the_node(calibrator, node):
    easy = Packed([[[(-1, 1), (2, 1)], [(1, 1), (4, 1)]], *SEPARABLE])
    with pytest.raises(CalibrationInputError, match=f"cannot calibrate node {node} of the tree"):
        easy.fit(calibrator)


def test_raw_targets_with_overlapping_sides():
    packed = gaussian_nodes([40], gap=0.5)
    calibrator = EvidentialLogisticCalibrator(targets="raw")
    lower, _ = packed.fit(calibrator).bounds(packed.queries)
    expected = packed.by_hand(calibrator)[0].predict_bounds(QUERIES).lower[:, 1]
    np.testing.assert_allclose(lower[:, 0], expected, atol=1e-13)


def test_a_tree_without_nodes_has_empty_maps():
    empty = Packed([])
    empty.weight = np.ones(3)
    for internal in (None, *ALL):
        assert empty.fit(internal).log_odds(np.zeros((4, 0))).shape == (4, 0)


def test_isotonic_log_odds_are_those_of_the_probability():
    packed = gaussian_nodes([30], gap=1.0)
    expected = packed.by_hand(IsotonicCalibrator())[0].predict_proba(QUERIES)[:, 1]
    np.testing.assert_allclose(
        packed.fit("isotonic").log_odds(packed.queries)[:, 0], logit(expected), atol=1e-12
    )
