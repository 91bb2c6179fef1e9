r"""Fusion of members that define mass functions themselves (outlook of Denœux 2019).

A member that treats its features as evidence (Denœux 2019) gives the Dempster sum of simple mass
functions, :math:`\{k\}^{w^+_k}` for each class and :math:`\overline{\{k\}}^{w^-_k}` against it.
With more than two classes these 2K sets differ, so the totals :math:`w^\pm_k` are the weights of
the canonical decomposition of its mass; normalising changes the weight of the empty set alone.
Hence

- Dempster's rule adds the members' totals (Denœux 2019, eq. 8),
- the cautious rule takes the largest of each, by its definition (Denœux 2008),

and both give a mass of the same form, whose bounds cost O(K). Two classes have only two such
sets, {k} and its complement, the other class: weights for one and against the other are added
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed

from dubito._compat import pick
from dubito._meta_estimators import fitted_copy, refuse_one_class, weight_parameters
from dubito._numerics import evidence_weights
from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.softmax import softmax_in_place
from dubito._validation import n_rows
from dubito.belief import Bounds, Frame, MassBatch, TotalConflictError, plausibility_transform
from dubito.belief.frame import DENSE_LIMIT
from dubito.calibration._cross_fit import rows_with_weight, weight_of
from dubito.calibration._fusion_independent import MASS_RULES, IndependentCombination
from dubito.calibration._fusion_members import Member, check_labels, features_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.calibration._fusion_independent import MemberRows
    from dubito.calibration.fusion import EvidentialFusion

#: Limit on the masses of a member in memory where they are not the result: 32 MiB.
_CHUNK_ENTRIES = 2**22


@dataclass(frozen=True)
class TotalsCombination:
    """A rule on the members' total weights of evidence, for any number of classes."""

    rule: str
    frame: Frame

    def proba(self, member_rows: MemberRows) -> FloatArray:
        """Return normalised plausibilities."""
        plus, minus = self._combined(member_rows)
        return softmax_in_place(plus - minus)

    def bounds(self, member_rows: MemberRows) -> Bounds:
        """Return the smaller of belief and probability, and the plausibility."""
        plus, minus = self._combined(member_rows)
        return Bounds._trusted(*evidence_weights.bounds(plus, minus)).including(
            softmax_in_place(plus - minus)
        )

    def mass(self, member_rows: MemberRows) -> MassBatch:
        """Return the combined masses of few classes."""
        subsets = self.frame.subsets()  # refuses too many classes before anything is computed
        return MassBatch(self.frame, subsets, evidence_weights.masses(*self._combined(member_rows)))

    def conflict(self, member_rows: MemberRows) -> FloatArray:
        r"""Return the mass of the empty set between the members' masses.

        Plausibilities multiply, :math:`Pl(k)=\prod_iPl_i(k)/(1-\kappa)`; :math:`\kappa` is computed
        from the class with the largest.
        """
        together: FloatArray = np.zeros((2, 1, 1))
        log_product: FloatArray = np.zeros((1, 1))
        for member, X in member_rows:
            weights = total_weights(member, X)
            together = together + weights
            with np.errstate(divide="ignore"):
                log_product = log_product + np.log(evidence_weights.bounds(*weights)[1])
        upper = evidence_weights.bounds(*together)[1]
        best = upper.argmax(axis=1)[:, None]
        alone, both = (np.take_along_axis(a, best, axis=1)[:, 0] for a in (log_product, upper))
        return np.abs(np.expm1(np.minimum(alone - np.log(both), 0.0)))

    def _combined(self, member_rows: MemberRows) -> FloatArray:
        join = np.maximum if self.rule == "cautious" else np.add
        return reduce(join, (total_weights(member, X) for member, X in member_rows))


def total_weights(member: Any, X: Any) -> FloatArray:
    """Return weights of evidence for and against each class, (2, n, K); each set occurs once."""
    weights = np.stack(member.totals(X))
    if weights.shape[2] == 2:
        weights[0] += weights[1][:, ::-1]
        weights[1] = 0.0
    return weights


@dataclass(frozen=True)
class MassCombination:
    """A rule on mass functions of any form, or on their contours."""

    inner: IndependentCombination
    classes: npt.NDArray[Any]

    def proba(self, member_rows: MemberRows) -> FloatArray:
        """Return normalised plausibilities.

        For rule "contour" the normalised product of the contours, which equals Dempster's.
        """
        if self.inner.rule == "contour":
            return self.inner.proba(self._on_all_classes(member_rows))
        return np.concatenate([plausibility_transform(mass) for mass in self._masses(member_rows)])

    def bounds(self, member_rows: MemberRows) -> Bounds:
        """Return the smaller of belief and probability, and the plausibility, or bounds on them."""
        if self.inner.rule == "contour":
            return self.inner.bounds(self._on_all_classes(member_rows))
        parts = [
            mass.bounds().including(plausibility_transform(mass))
            for mass in self._masses(member_rows)
        ]
        lower, upper = zip(*((part.lower, part.upper) for part in parts), strict=True)
        return Bounds(np.concatenate(lower), np.concatenate(upper))

    def mass(self, member_rows: MemberRows) -> MassBatch:
        """Return the combined masses."""
        return self.inner.mass(self._on_all_classes(member_rows))

    def conflict(self, member_rows: MemberRows) -> FloatArray:
        """Return the mass of the empty set between the members' masses, or a bound on it."""
        if self.inner.rule == "contour":
            return self.inner.conflict(self._on_all_classes(member_rows))
        return np.concatenate(list(self._in_chunks(self.inner.conflict, member_rows)))

    def _masses(self, member_rows: MemberRows) -> Iterator[MassBatch]:
        return self._in_chunks(self.inner.mass, member_rows)

    def _in_chunks(
        self, compute: Callable[[MemberRows], Any], member_rows: MemberRows
    ) -> Iterator[Any]:
        """Yield the results of chunks of rows, to bound memory; errors name rows of the whole."""
        pairs = list(self._on_all_classes(member_rows))
        n = n_rows(pairs[0][1])
        for rows in row_chunks(max(n, 1), 2 ** len(self.classes), _CHUNK_ENTRIES):
            whole = rows.stop - rows.start >= n
            part = pairs if whole else [(member, pick(X, rows)) for member, X in pairs]
            try:
                yield compute(iter(part))
            except TotalConflictError as error:
                raise TotalConflictError(error.rows + rows.start) from None

    def _on_all_classes(self, member_rows: MemberRows) -> MemberRows:
        """Extend members that do not know some classes to all classes."""
        for member, X in member_rows:
            same = np.array_equal(member.classes_, self.classes)
            yield (member if same else OnAllClasses(member, self.classes)), X  # type: ignore[misc]


class OnAllClasses:
    r"""A member that does not know some classes, extended to all classes.

    The mass of A goes to the union of A and all unknown classes: the least committed mass whose
    conditioning on the known classes is the member's own (Smets' conditional embedding).
    """

    def __init__(self, member: Any, classes: npt.NDArray[Any]) -> None:
        self.member, self.classes = member, classes
        self.columns = np.searchsorted(classes, member.classes_)

    def predict_bounds(self, X: Any) -> Bounds:
        """Return bounds: unknown classes are fully plausible, and no class is certain."""
        of_member = self.member.predict_bounds(X)
        lower = np.zeros((len(of_member), len(self.classes)))
        upper = np.ones_like(lower)
        upper[:, self.columns] = of_member.upper
        if len(self.columns) == len(self.classes):  # all known, but in another order
            lower[:, self.columns] = of_member.lower
        return Bounds(lower, upper)

    def predict_mass(self, X: Any) -> MassBatch:
        """Return masses on all classes."""
        of_member = self.member.predict_mass(X)
        focal = np.ones((len(of_member.focal), len(self.classes)), dtype=bool)
        focal[:, self.columns] = of_member.focal
        return MassBatch(self.classes, focal, of_member.mass)


def check_masses(fusion: EvidentialFusion) -> None:
    """Raise for parameters of calibration."""
    for name in ("calibrator", "cv"):
        if (given := getattr(fusion, name)) is not None:
            raise ValueError(
                f'method="masses" combines the members\' own mass functions and calibrates '
                f"nothing, but {name}={short(given)} was given. Leave it out, or use "
                'method="independent" to calibrate each member.'
            )


def fit_masses(
    fusion: EvidentialFusion,
    members: list[Member],
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[list[Any], TotalsCombination | MassCombination]:
    """Return the members, fitted on all rows unless frozen, and their combination."""
    for name, estimator, _ in members:
        if estimator is None:
            raise _no_masses(name, "None")
    if not all(isinstance(member.estimator, FrozenEstimator) for member in members):
        refuse_one_class(fusion, y, weight)
    rows = rows_with_weight(y, weight)
    weight = weight_of(weight, rows)
    parameters = [
        weight_parameters(member.estimator, weight, instead="the other members")
        for member in members
    ]
    work = delayed(fitted_copy)
    fitted = Parallel(n_jobs=fusion.n_jobs)(
        work(estimator, pick(features_of(X, columns), rows), y[rows], weight, fit_parameters)
        for (_, estimator, columns), fit_parameters in zip(members, parameters, strict=True)
    )
    for (name, *_), model in zip(members, fitted, strict=True):
        if not hasattr(model, "totals") and not hasattr(model, "predict_mass"):
            raise _no_masses(name, repr(model))
        # A member around a frozen model may know classes that y lacks.
        check_labels(name, model.classes_, y)
        fusion.classes_ = np.union1d(fusion.classes_, model.classes_)
    return fitted, _combination(fusion, fitted)


def _no_masses(name: str, what: str) -> TypeError:
    return TypeError(
        f"member {name!r}, {what}, defines no mass functions: it has neither totals nor "
        "predict_mass. Wrap a model that ends in a linear layer, with all steps before it, in "
        "dubito.evidence.EvidentialClassifier, another in CalibratedClassifier with a calibrator "
        'that has predict_mass, as EvidentialMultinomialCalibrator(coupling="inverse_cdf"), or use '
        'method="independent".'
    )


def _combination(
    fusion: EvidentialFusion, fitted: list[Any]
) -> TotalsCombination | MassCombination:
    """Return the rule on totals where all members have them, or else the rule on masses."""
    classes = fusion.classes_
    if fusion.discount == 0 and all(
        hasattr(model, "totals") and np.array_equal(model.classes_, classes) for model in fitted
    ):
        return TotalsCombination(fusion.rule, Frame(classes))
    if fusion.rule in MASS_RULES and len(classes) > DENSE_LIMIT:
        raise ValueError(
            f"rule={fusion.rule!r} lists all subsets of the classes, of which it takes at most "
            f"{DENSE_LIMIT}; there are {len(classes)}. Without a discount, members that all have "
            "totals and know all classes need no list; for others use "
            'rule="contour".'
        )
    return MassCombination(IndependentCombination(fusion.rule, fusion.discount), classes)
