"""Fusion by one calibrator of the scores of all members (Minary et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from dubito._meta_estimators import folds_with_weight, refuse_one_class
from dubito._numerics.log_odds import two_class_scores
from dubito.calibration._cross_fit import (
    Job,
    ScoredClassifier,
    cross_fit_plan,
    folds_of,
    held_out_indices,
    rows_with_weight,
    run_plans,
    scored_classifier,
    weight_of,
)
from dubito.calibration._fusion_independent import dempster_bounds_of_members
from dubito.calibration._fusion_members import GivenScores, Member, disjoint_parts, features_of
from dubito.calibration.by_name import named_calibrator
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.evidential_joint import EvidentialJointCalibrator
from dubito.calibration.responses import choose_response

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.belief import Bounds, MassBatch
    from dubito.calibration._cross_fit import Rows
    from dubito.calibration._fusion_independent import MemberRows
    from dubito.calibration.fusion import EvidentialFusion


@dataclass(frozen=True)
class JointCombination:
    """One calibrator of the scores of all members."""

    calibrator: EvidentialJointCalibrator

    def proba(self, member_rows: MemberRows) -> FloatArray:
        """Return the estimated probabilities."""
        return self.calibrator.predict_proba(self._table(member_rows))

    def bounds(self, member_rows: MemberRows) -> Bounds:
        """Return belief and plausibility from the likelihood."""
        return self.calibrator.predict_bounds(self._table(member_rows))

    def level_bounds(self, member_rows: MemberRows, level: float) -> Bounds:
        """Return bounds that contain the true probability at a confidence level."""
        return self.calibrator.predict_bounds(self._table(member_rows), level)

    def mass(self, member_rows: MemberRows) -> MassBatch:
        """Return the masses of two classes."""
        return self.calibrator.predict_mass(self._table(member_rows))

    def conflict(self, member_rows: MemberRows) -> FloatArray:
        """Return the conflict of the members, each calibrated alone."""
        return dempster_bounds_of_members(member_rows).conflict

    def _table(self, member_rows: MemberRows) -> FloatArray:
        """Return the scores (n, J, K) of all members."""
        return joint_table(
            [member._scores_of_single_pair(X) for member, X in member_rows], self.calibrator
        )


def joint_table(scores: list[FloatArray], calibrator: EvidentialJointCalibrator) -> FloatArray:
    """Return the members' scores as one table (n, J, K), also for two classes.

    The margin d of two classes becomes (-d/2, d/2), whose difference is exactly d again.
    """
    columns = []
    for member_scores, kind in zip(scores, calibrator.input, strict=True):
        if member_scores.shape[1] > 1:
            columns.append(member_scores)
        elif kind == "proba":
            columns.append(np.hstack([1 - member_scores, member_scores]))
        else:
            columns.append(two_class_scores(member_scores))
    return np.stack(columns, axis=1)


def check_joint(fusion: EvidentialFusion) -> None:
    """Raise for parameters of the other methods."""
    calibrator = named_calibrator(fusion.calibrator)
    if calibrator is not None and not calibrator._reads_members:
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
    """Return the members, each calibrated alone, and the calibrator of all of them."""
    shared = named_calibrator(fusion.calibrator)
    if shared is None:
        shared = EvidentialJointCalibrator(ridge="auto", n_jobs=fusion.n_jobs)
    given_kinds = shared._kinds(len(members))
    classifiers = [
        _scored_member(member, kind, X, weight, fusion.classes_)
        for member, kind in zip(members, given_kinds, strict=True)
    ]
    plans, rows = _plans(fusion, classifiers, X, y, weight)
    scored = run_plans(plans, y, classes=fusion.classes_, n_jobs=fusion.n_jobs)
    kinds = [classifier.response.kind for classifier in classifiers]
    joint = clone(shared).set_params(classes=fusion.classes_, input=kinds)
    table = joint_table([scores for _, scores in scored], joint)
    joint.fit(table, y[rows], weight_of(weight, rows))
    alone = [
        CalibratedClassifier(
            member.estimator, clone(shared).set_params(input=kind)
        )._fit_calibrators(
            [held_out], [rows], y, weight, classes=fusion.classes_, response=classifier.response
        )
        for member, kind, classifier, held_out in zip(
            members, given_kinds, classifiers, scored, strict=True
        )
    ]
    return alone, JointCombination(joint)


def _scored_member(
    member: Member,
    kind: str,
    X: Any,
    weight: FloatArray | None,
    classes: npt.NDArray[Any],
) -> ScoredClassifier:
    """Return the member with its data; scores without a classifier count as frozen."""
    estimator = member.estimator
    if estimator is None:
        estimator = FrozenEstimator(GivenScores(classes))
    response = choose_response(estimator, kind, "auto", n_classes=len(classes))
    return scored_classifier(estimator, features_of(X, member.columns), response, weight)


def _plans(
    fusion: EvidentialFusion,
    classifiers: list[ScoredClassifier],
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[list[list[Job]], Rows]:
    """Return the plan of each member, and the held-out rows in the order of their scores.

    With disjoint parts no member is trained on any of these rows; with folds each row is scored by
    a copy that was not trained on it.
    """
    rows = every = rows_with_weight(y, weight)
    learners = [
        j for j, c in enumerate(classifiers) if not isinstance(c.estimator, FrozenEstimator)
    ]
    plans: dict[int, list[Job]] = {}
    if learners:
        refuse_one_class(fusion, y, weight)
    if learners and fusion.cv == "disjoint":
        parts = disjoint_parts(y, len(learners), fusion.random_state)
        folds = folds_with_weight(parts, y, weight)
        rows = held_out_indices(folds)
        for j, (train, _) in zip(learners, folds, strict=True):
            plans[j] = [Job(classifiers[j], train, rows)]
    elif learners:
        folds = folds_of(fusion.cv, X, y, weight)
        rows = held_out_indices(folds)
        plans = {j: cross_fit_plan(classifiers[j], folds, every) for j in learners}
    return [plans.get(j, [Job(c, None, rows)]) for j, c in enumerate(classifiers)], rows
