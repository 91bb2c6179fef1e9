"""Predictions of a fitted conformal classifier: p-values, sets, bounds and masses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dubito._compat import pick
from dubito._numerics.row_subsets import row_chunks
from dubito._validation import check_level, level_error, n_rows
from dubito.base import named_loss
from dubito.belief import Bounds, MassBatch
from dubito.belief.bounds import including
from dubito.conformal._estimator_predictions import EstimatorPredictionMixin
from dubito.conformal.contours import consonant_bounds, coverage_sets, nested_masses, raised
from dubito.conformal.full_refits import full_p_values, refuse_too_many_refits
from dubito.conformal.p_values import check_coverage, fold_p_values, warn_of_few_calibration_rows
from dubito.conformal.scores import class_table
from dubito.decision import choose_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray
    from dubito.conformal.full_refits import FullRefit
    from dubito.conformal.p_values import CalibrationTotals, ScoredFold
    from dubito.conformal.scores import NonconformityScore
    from dubito.decision.rules import SetRule

#: Largest number of entries in the buffers of a prediction, without its result: 32 MiB.
_CHUNK_ENTRIES = 2**22

#: Entries of these buffers for each row and class.
_ENTRIES_PER_CLASS = 8

#: Largest table of masses, rows times focal sets: 512 MiB.
_MAX_MASSES = 2**26


class ConformalPredictionMixin(EstimatorPredictionMixin):
    """Predictions from the calibration scores of a fitted model, or by refits with each row."""

    classes_: npt.NDArray[Any]
    folds_: list[ScoredFold]
    refit_: FullRefit | None
    nonconformity_: NonconformityScore
    calibration_weights_: CalibrationTotals
    seed_: int
    max_refits: int
    n_jobs: int | None

    def _uniform_numbers(
        self, sizes: list[int], *, new: bool = False
    ) -> Iterator[FloatArray | None]:
        """Yield u of `cumulative` for parts of the rows of these sizes; None if not randomized."""
        rng = np.random.default_rng([self.seed_, int(new)])
        return (rng.random(size) if self.nonconformity_.randomized else None for size in sizes)

    def predict_contour(self, X: Any) -> FloatArray:
        """Return the p-value of each class, before raising.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
            Multiples of 1/(n + 1) without weights, and never 0. A row whose values are all small
            is unlike the calibration rows.
        """
        return np.concatenate(list(self._contours(X)))

    def _contours(self, X: Any) -> Iterator[FloatArray]:
        """Yield the p-values of rows in chunks, so that memory is bounded."""
        check_is_fitted(self)
        n, n_classes = n_rows(X), len(self.classes_)
        if self.refit_ is not None:
            refuse_too_many_refits(self.refit_, X, n, self.max_refits)
            yield full_p_values(
                self.refit_, X, n, next(self._uniform_numbers([n], new=True)), self.n_jobs
            )
            return
        row_size = _ENTRIES_PER_CLASS * n_classes
        chunks = [np.arange(n)[rows] for rows in row_chunks(max(n, 1), row_size, _CHUNK_ENTRIES)]
        uniforms = self._uniform_numbers([len(rows) for rows in chunks], new=True)
        for rows, uniform in zip(chunks, uniforms, strict=True):
            part = X if len(rows) == n else pick(X, rows)
            yield fold_p_values(
                self.folds_,
                self.calibration_weights_,
                self.nonconformity_,
                part,
                classes=self.classes_,
                uniform=uniform,
            )

    def predict_set(
        self,
        X: Any,
        rule: SetRule = None,
        *,
        level: float | None = None,
        coverage: float | None = None,
        allow_empty: bool = False,
        **options: Any,
    ) -> BoolArray:
        r"""Return label sets that contain the true label with a chosen probability.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        rule : str or callable, optional
            A decision rule on the bounds instead, as in the other models: "interval_dominance",
            "maximality", ... Such sets have no promised coverage.
        level : None
            Must be None, as in `predict_bounds`.
        coverage : float, default 0.9
            Requested probability that a set contains the true label (proven for split, frozen and
            full; see the class): the set is :math:`\{k:\pi_k>1-\text{coverage}\}`.
        allow_empty : bool, default False
            Whether a set may be empty, which means that the row is unlike the calibration rows.
            Otherwise it contains the classes with the largest p-value, which only adds coverage.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Warns
        -----
        SmallCalibrationWarning
            With fewer than 1/(1 - coverage) - 1 rows: every set contains all classes.
        """
        if rule is not None:
            if coverage is not None:
                raise ValueError(
                    "rule and coverage were both given: a rule decides by the bounds, which "
                    "promise no coverage. Pass one of them."
                )
            bounds = self.predict_bounds(X, level=level)
            return choose_set(bounds, rule, **named_loss(self, options))
        self._refuse_level(level)
        if options:
            raise TypeError(
                f"predict_set got {', '.join(sorted(options))}. Conformal sets take coverage=, as "
                "in coverage=0.9; options of a rule need rule= as well."
            )
        wanted = check_coverage(coverage)
        check_is_fitted(self)
        warn_of_few_calibration_rows(self.calibration_weights_, self.classes_, wanted)
        return np.concatenate(
            [coverage_sets(c, wanted, allow_empty=allow_empty) for c in self._contours(X)]
        )

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        r"""Return belief and plausibility of each class by the raised contour.

        :math:`\text{upper}_k=\pi_k` and :math:`\text{lower}_k=1-\max_{l\ne k}\pi_l`, with the
        largest :math:`\pi` raised to 1. Where the probability of `predict_proba` lies outside, the
        bound is moved to contain it: a p-value is the fraction of rows that fit as badly, and can
        be smaller than the probability.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : None
            Must be None: these bounds are about labels, and have no confidence level.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        self._refuse_level(level)
        lower, upper = consonant_bounds(raised(self.predict_contour(X)))
        if hasattr(self.estimator_, "predict_proba"):
            lower, upper = including(self.predict_proba(X), (lower, upper))
        return Bounds(lower, upper)

    def _refuse_level(self, level: Any) -> None:
        if check_level(level) is not None:
            raise level_error(
                self,
                "its p-values are about labels, not about probabilities. Use "
                "predict_set(X, coverage=0.9), or level=None.",
            )

    def predict_mass(self, X: Any) -> MassBatch:
        r"""Return the consonant mass function of each row, whose contour is the raised one.

        Nested sets: with :math:`\pi_{(1)}\ge\pi_{(2)}\ge\ldots` the j classes that come first have
        the mass :math:`\pi_{(j)}-\pi_{(j+1)}`.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
            Of the focal sets that occur. `predict_bounds` differs from its bounds where those do
            not contain the probability.
        """
        focal, mass = nested_masses(raised(self.predict_contour(X)), _MAX_MASSES)
        return MassBatch(self.classes_.tolist(), focal, mass)

    def _proba(self, X: Any) -> FloatArray:
        # A class that the estimator was not fitted on has a column of zeros.
        return class_table(self.estimator_, X, "predict_proba", self.classes_)
