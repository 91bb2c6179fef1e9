"""Fusion of members calibrated one by one, as independent evidence (Xu et al. 2015, section II)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dubito._compat import pick
from dubito.belief import (
    Bounds,
    MassBatch,
    TotalConflictError,
    cautious,
    conflict,
    dempster,
)
from dubito.belief import discount as discounted
from dubito.calibration._cross_fit import weight_of
from dubito.calibration._fusion_members import Member, disjoint_parts, features_of
from dubito.calibration._kernels.dempster_on_singletons import DempsterBounds, dempster_bounds
from dubito.calibration.by_name import named_calibrator
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.evidential_multinomial import EvidentialMultinomialCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.calibration.fusion import EvidentialFusion

    #: Every member with the features it reads.
    MemberRows = Iterator[tuple[CalibratedClassifier, Any]]

MASS_RULES = {"dempster": dempster, "cautious": cautious}


@dataclass(frozen=True)
class IndependentCombination:
    """A rule on the members' contours, or on their masses, after discounting."""

    rule: str
    discount: float

    def proba(self, member_rows: MemberRows) -> FloatArray:
        """Return the normalised product of contours, or pignistic probabilities."""
        if self.rule == "contour":
            return self._combined(member_rows).proba
        return self.mass(member_rows).pignistic()

    def bounds(self, member_rows: MemberRows) -> Bounds:
        """Return belief and plausibility, or bounds on them."""
        if self.rule == "contour":
            combined = self._combined(member_rows)
            return Bounds(combined.lower, combined.upper)
        return self.mass(member_rows).bounds()

    def mass(self, member_rows: MemberRows) -> MassBatch:
        """Return the combined masses."""
        return MASS_RULES[self.rule](*self._masses(member_rows))

    def conflict(self, member_rows: MemberRows) -> FloatArray:
        """Return the mass of the empty set before normalisation, or a bound on it."""
        if self.rule == "contour":
            return dempster_bounds_of_members(member_rows, self.discount).conflict
        return np.asarray(conflict(*self._masses(member_rows)))

    def _combined(self, member_rows: MemberRows) -> DempsterBounds:
        """Return bounds of Dempster's combination; raise where no class remains possible."""
        combined = dempster_bounds_of_members(member_rows, self.discount)
        if combined.total_conflict.any():
            raise TotalConflictError(np.flatnonzero(combined.total_conflict))
        return combined

    def _masses(self, member_rows: MemberRows) -> list[MassBatch]:
        """Return every member's mass functions."""
        return [discounted(member.predict_mass(X), self.discount) for member, X in member_rows]


def dempster_bounds_of_members(member_rows: MemberRows, discount: float = 0.0) -> DempsterBounds:
    """Return bounds of Dempster's combination of the members, one at a time to bound memory."""
    log_a = log_d = np.zeros((1, 1))
    count = 0
    for member, X in member_rows:
        count += 1
        bounds = member.predict_bounds(X)
        lower = (1 - discount) * bounds.lower
        upper = (1 - discount) * bounds.upper + discount
        with np.errstate(divide="ignore"):
            log_a = log_a + np.log(upper)
            log_d = log_d + np.log(upper - lower)
    return dempster_bounds(log_a, log_d, count)


def check_independent(fusion: EvidentialFusion) -> None:
    """Raise for a calibrator of several classifiers."""
    calibrator = named_calibrator(fusion.calibrator)
    if calibrator is not None and calibrator._reads_members:
        raise TypeError(
            'method="independent" calibrates each member alone, but '
            f"{type(calibrator).__name__} is for all of them together. "
            'Use method="joint", or another calibrator.'
        )


def fit_independent(
    fusion: EvidentialFusion,
    members: list[Member],
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[list[CalibratedClassifier], IndependentCombination]:
    """Return the calibrated members and their combination."""
    fitted = [
        _calibrated(fusion, member.estimator, split)._fit(
            pick(features_of(X, member.columns), rows),
            y[rows],
            weight_of(weight, rows),
            classes=fusion.classes_,
        )
        for member, (rows, split) in zip(members, _splits(fusion, y), strict=True)
    ]
    _check_masses(fusion, fitted)
    return fitted, IndependentCombination(fusion.rule, fusion.discount)


def _calibrated(fusion: EvidentialFusion, estimator: Any, split: Any) -> CalibratedClassifier:
    """Return the member as a calibrated classifier, not yet fitted."""
    if isinstance(estimator, CalibratedClassifier):
        return clone(estimator)
    calibrator = named_calibrator(fusion.calibrator)
    if calibrator is None:
        coupling = "gumbel" if fusion.rule == "contour" else "inverse_cdf"
        calibrator = EvidentialMultinomialCalibrator(coupling=coupling)
    return CalibratedClassifier(
        estimator, calibrator, cv=split, ensemble=fusion.cv == "disjoint", n_jobs=fusion.n_jobs
    )


def _splits(fusion: EvidentialFusion, y: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of each member, and the folds in which it is trained and calibrated."""
    n_members = len(fusion.estimators)
    if fusion.cv != "disjoint":
        # A generator of folds would be used up by the first member.
        folds = list(fusion.cv) if isinstance(fusion.cv, Iterator) else fusion.cv
        yield from [(slice(None), folds)] * n_members
        return
    for train, test in disjoint_parts(y, n_members, fusion.random_state):
        rows = np.union1d(train, test)
        yield rows, [(np.searchsorted(rows, train), np.searchsorted(rows, test))]


def _check_masses(fusion: EvidentialFusion, fitted: list[CalibratedClassifier]) -> None:
    """Raise if the rule needs masses that some member does not have."""
    if fusion.rule == "contour":
        return
    n_classes = len(fusion.classes_)
    if fusion.rule == "cautious" and fusion.discount == 0 and n_classes > 2:
        raise ValueError(
            'rule="cautious" needs some mass on the whole frame, which calibrators of '
            f"{n_classes} classes need not give; set the discount of the members, as in "
            "discount=0.05."
        )
    for member, (name, *_) in zip(fitted, fusion.estimators, strict=True):
        if not hasattr(member, "predict_mass"):
            kind = type(member.calibrated_classifiers_[0].calibrator).__name__
            raise TypeError(
                f"rule={fusion.rule!r} combines full mass functions, which {kind} of member "
                f"{name!r} does not define for {n_classes} classes. Use "
                'EvidentialMultinomialCalibrator(coupling="inverse_cdf"), for at most 12 '
                'classes, or rule="contour".'
            )
