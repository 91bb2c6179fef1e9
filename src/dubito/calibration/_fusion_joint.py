"""Members calibrated together: one calibrator reads the scores of them all (P1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from dubito.calibration._cross_fit import (
    Job,
    Source,
    carry_out,
    counted_folds,
    cross_fit_plan,
    every_row,
    folds_of,
    held_out,
    refuse_one_class,
    source_of,
    weight_of,
)
from dubito.calibration._fusion_independent import contour_product
from dubito.calibration._members import GivenScores, Member, disjoint_shares, features_of
from dubito.calibration._responses import choose_response
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.evidential_joint import EvidentialJointCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray
    from dubito.belief import Bounds, MassBatch
    from dubito.calibration._cross_fit import Rows
    from dubito.calibration._fusion_independent import Inputs
    from dubito.calibration.fusion import EvidentialFusion


@dataclass(frozen=True)
class JointCombination:
    """One calibrator, asked with the scores that all members give."""

    calibrator: EvidentialJointCalibrator

    def proba(self, inputs: Inputs) -> FloatArray:
        """Return the estimated probabilities."""
        return self.calibrator.predict_proba(self._table(inputs))

    def bounds(self, inputs: Inputs) -> Bounds:
        """Return what the likelihood makes of belief and plausibility."""
        return self.calibrator.predict_bounds(self._table(inputs))

    def level_bounds(self, inputs: Inputs, level: float) -> Bounds:
        """Return bounds that hold the true probability at a confidence level."""
        return self.calibrator.predict_bounds(self._table(inputs), level)

    def mass(self, inputs: Inputs) -> MassBatch:
        """Return the masses of two classes."""
        return self.calibrator.predict_mass(self._table(inputs))

    def conflict(self, inputs: Inputs) -> FloatArray:
        """Return how far the members, each calibrated alone, contradict each other."""
        return contour_product(inputs).conflict

    def _table(self, inputs: Inputs) -> FloatArray:
        """Return the scores (n, J, K) of all members."""
        return joint_table([member._own_scores(own) for member, own in inputs], self.calibrator)


def joint_table(scores: list[FloatArray], calibrator: EvidentialJointCalibrator) -> FloatArray:
    """Put the members' scores side by side, with a column for each class also of two.

    The margin d of two classes becomes (-d/2, d/2), of which the calibrator takes the difference:
    so members with one column and with two share a table, and no digit is lost.
    """
    columns = []
    for own, kind in zip(scores, calibrator.input, strict=True):
        if own.shape[1] > 1:
            columns.append(own)
        elif kind == "proba":
            columns.append(np.hstack([1 - own, own]))
        else:
            columns.append(np.hstack([-0.5 * own, 0.5 * own]))
    return np.stack(columns, axis=1)


def check_joint(fusion: EvidentialFusion) -> None:
    """Refuse parameters of the other method."""
    calibrator = fusion.calibrator
    if not isinstance(calibrator, EvidentialJointCalibrator | None):
        raise TypeError(
            'method="joint" calibrates all members by one EvidentialJointCalibrator; got '
            f'{type(calibrator).__name__}, which is for one classifier. Use method="independent" '
            "to calibrate each member by it."
        )
    for name, usual in (("rule", "contour"), ("discount", 0)):
        if (given := getattr(fusion, name)) != usual:
            raise ValueError(
                f"{name}={given!r} is a way to combine members that were calibrated alone, and "
                'belongs to method="independent"; method="joint" calibrates them together and '
                f"has no {name}."
            )


def fit_joint(
    fusion: EvidentialFusion,
    members: list[Member],
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[list[CalibratedClassifier], JointCombination]:
    """Score the same held-out rows by all members; calibrate all together, and each alone."""
    shared = fusion.calibrator
    if shared is None:
        shared = EvidentialJointCalibrator(ridge="auto")
    kinds = shared._inputs(len(members))
    sources = [
        _source(member, kind, X, weight, fusion.classes_)
        for member, kind in zip(members, kinds, strict=True)
    ]
    plans, rows = _plans(fusion, sources, X, y, weight)
    scored = carry_out(plans, y, classes=fusion.classes_, n_jobs=fusion.n_jobs)
    read = [source.response.kind for source in sources]
    joint = clone(shared).set_params(classes=fusion.classes_, input=read)
    table = joint_table([scores for _, scores in scored], joint)
    joint.fit(table, y[rows], weight_of(weight, rows))
    alone = [
        CalibratedClassifier(member.estimator, clone(shared).set_params(input=kind))._adopt(
            [own], [rows], y, weight, known=fusion.classes_, response=source.response
        )
        for member, kind, source, own in zip(members, kinds, sources, scored, strict=True)
    ]
    return alone, JointCombination(joint)


def _source(
    member: Member,
    kind: str,
    X: Any,
    weight: FloatArray | None,
    classes: npt.NDArray[Any],
) -> Source:
    """Return what the member reads and is asked for; bare scores are as good as frozen."""
    estimator = member.estimator
    if estimator is None:
        estimator = FrozenEstimator(GivenScores(classes))
    response = choose_response(estimator, kind, "auto", n_classes=len(classes))
    return source_of(estimator, features_of(X, member.columns), response, weight)


def _plans(
    fusion: EvidentialFusion,
    sources: list[Source],
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[list[list[Job]], Rows]:
    """Return every member's plan, and the rows they all score, in the order of the scores.

    With disjoint parts no member was trained on any of these rows; with folds each is scored by
    copies that were not.
    """
    rows = every = every_row(y, weight)
    learners = [j for j, s in enumerate(sources) if not isinstance(s.estimator, FrozenEstimator)]
    plans: dict[int, list[Job]] = {}
    if learners:
        refuse_one_class(type(fusion).__name__, y, weight)
    if learners and fusion.cv == "disjoint":
        shares = disjoint_shares(y, len(learners), fusion.random_state)
        folds = counted_folds(shares, y, weight)
        rows = held_out(folds)
        for j, (train, _) in zip(learners, folds, strict=True):
            plans[j] = [Job(sources[j], train, rows)]
    elif learners:
        folds = folds_of(fusion.cv, X, y, weight)
        rows = held_out(folds)
        plans = {j: cross_fit_plan(sources[j], folds, every) for j in learners}
    return [plans.get(j, [Job(source, None, rows)]) for j, source in enumerate(sources)], rows
