"""The models that `dubito train` offers, each with the preprocessing of its columns."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dubito

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: A text column is encoded as at most this many features: one for each frequent value, and the last
#: one for all others.
MOST_VALUES = 50


class ColumnPlan(NamedTuple):
    """The columns of the training rows and their types, and the options of a recipe."""

    types: Mapping[str, str]  # name -> "number" or "text"
    impute: bool
    folds: int  # for calibration, and for tuning
    seed: int


class Recipe(NamedTuple):
    """A model of `dubito train`: how it is described and built, and when it is slow."""

    summary: str
    build: Callable[[ColumnPlan], Any]
    #: Parts of the file names of the kernels that are compiled when the model is trained.
    kernels: tuple[str, ...] = ()
    #: Whether some class must have two rows, because rows are held out for calibration or tuning.
    needs_two_rows: bool = True
    #: With more rows or classes than these, fitting is slow.
    most_rows: float = math.inf
    most_classes: float = 200

    def slow_notes(self, n_rows: int, n_classes: int) -> list[str]:
        """Return notes on what will be slow, and which model is quicker."""
        notes = []
        if self.compiles_first():
            notes.append(
                "this model's numeric kernels are compiled when first used, which can take a "
                "minute; later runs start at once."
            )
        if n_rows > self.most_rows:
            notes.append(f"{n_rows:,} rows take long; calibrated-boosting is quicker.")
        if n_classes > self.most_classes:
            notes.append(f"{n_classes:,} classes take long; nested is made for many.")
        return notes

    def compiles_first(self) -> bool:
        """Return whether the cache of numba lacks a kernel of the model."""
        package, cache = Path(dubito.__file__).parent, os.environ.get("NUMBA_CACHE_DIR")
        if not cache and not os.access(package, os.W_OK):
            return False  # numba then uses another folder, or none
        folder = Path(cache) if cache else package
        return not all(any(folder.rglob(f"*{stem}*.nbi")) for stem in self.kernels)


def _preprocessing(plan: ColumnPlan, *, scale: bool = True) -> Any:
    """Return the preprocessing of a table: numbers standardised, texts one-hot encoded."""
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    # The encoder takes an empty cell as one more value, or as an unknown one.
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_VALUES, sparse_output=False
    )
    fill = [SimpleImputer(strategy="median")] if plan.impute else []
    numbers = [*fill, *([StandardScaler()] if scale else [])]
    steps = {"number": make_pipeline(*numbers) if numbers else "passthrough", "text": one_hot}
    return ColumnTransformer(
        [
            (type_, step, [name for name, own in plan.types.items() if own == type_])
            for type_, step in steps.items()
            if type_ in plan.types.values()
        ],
        verbose_feature_names_out=False,
    )


def _pipeline(plan: ColumnPlan, model: Any, *, scale: bool = True) -> Any:
    """Return a scikit-learn pipeline of the preprocessing and a model."""
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    return Pipeline([("columns", _preprocessing(plan, scale=scale)), ("model", model)])


def _cautious_pipeline(plan: ColumnPlan, model: Any) -> Any:
    """Return a pipeline of the preprocessing and a model of dubito, which keeps its bounds."""
    from dubito.pipeline import CautiousPipeline  # noqa: PLC0415

    return CautiousPipeline([("columns", _preprocessing(plan)), ("model", model)])


def _calibrated_logistic(plan: ColumnPlan) -> Any:
    """Return the default model: calibrated logistic regression with weights of evidence."""
    import warnings  # noqa: PLC0415

    from dubito.calibration import CalibratedClassifier  # noqa: PLC0415

    if plan.folds < 2:
        warnings.warn(
            "no class has two rows, so that none is left to calibrate on: probabilities are those "
            "of logistic regression as it is.",
            UserWarning,
            stacklevel=2,
        )
        return _evidential_logistic(plan)
    return CalibratedClassifier(_evidential_logistic(plan), cv=plan.folds)


def _evidential_logistic(plan: ColumnPlan) -> Any:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    from dubito.evidence import EvidentialClassifier  # noqa: PLC0415

    # One weight of evidence for each column of the table, not for each encoded feature.
    return EvidentialClassifier(_pipeline(plan, LogisticRegression(max_iter=2000)), groups="input")


def _imprecise(plan: ColumnPlan, covariance_type: str = "tied") -> Any:
    from dubito.discriminant import ImpreciseGaussianDiscriminant  # noqa: PLC0415

    return _cautious_pipeline(plan, ImpreciseGaussianDiscriminant(covariance_type=covariance_type))


def _tree(plan: ColumnPlan) -> Any:
    from dubito.dichotomies import NestedDichotomyClassifier  # noqa: PLC0415

    return _cautious_pipeline(plan, NestedDichotomyClassifier(random_state=plan.seed))


def _ensemble(plan: ColumnPlan) -> Any:
    from dubito.dichotomies import NestedDichotomyEnsemble  # noqa: PLC0415

    return _cautious_pipeline(plan, NestedDichotomyEnsemble(random_state=plan.seed))


def _calibrated(plan: ColumnPlan, model: Any, *, scale: bool) -> Any:
    from dubito.calibration import CalibratedClassifier  # noqa: PLC0415

    return CalibratedClassifier(_pipeline(plan, model, scale=scale), cv=plan.folds)


def random_forest(plan: ColumnPlan) -> Any:
    """Return the forest of "calibrated-forest" and "fusion"."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    return RandomForestClassifier(random_state=plan.seed)


def _svm() -> Any:
    from sklearn.svm import SVC  # noqa: PLC0415

    return SVC()


def _boosting(plan: ColumnPlan) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

    return HistGradientBoostingClassifier(random_state=plan.seed)


def _fusion(plan: ColumnPlan) -> Any:
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415

    from dubito.calibration import EvidentialFusion  # noqa: PLC0415

    members = [
        ("svm", _pipeline(plan, _svm())),
        ("bayes", _pipeline(plan, GaussianNB())),
        ("forest", _pipeline(plan, random_forest(plan), scale=False)),
    ]
    return EvidentialFusion(members, cv=plan.folds, random_state=plan.seed)


#: Kernels of the default calibrator; most of its time to compile is theirs.
AUTO_KERNELS = ("temperature_scaling", "isotonic")

#: The model that is trained by default.
DEFAULT = "calibrated-logistic"

RECIPES = {
    "calibrated-logistic": Recipe(
        "logistic regression, calibrated with bounds, and its reasons",
        _calibrated_logistic,
        AUTO_KERNELS,
        needs_two_rows=False,
    ),
    "evidential-logistic": Recipe(
        "logistic regression as it is, read as evidence for and against each class",
        _evidential_logistic,
        ("evidence_weights",),
        needs_two_rows=False,
    ),
    "imprecise": Recipe(
        "linear discriminant analysis with imprecise class means, for few rows of each class",
        _imprecise,
        ("boxed",),
    ),
    "imprecise-quadratic": Recipe(
        "quadratic discriminant analysis with imprecise class means",
        lambda plan: _imprecise(plan, "full"),
        ("boxed",),
    ),
    "nested": Recipe(
        "a tree of two-way splits, for many classes, calibrated with bounds",
        _tree,
        ("logistic_node",),
        needs_two_rows=False,
        most_classes=math.inf,
    ),
    "nested-ensemble": Recipe(
        "ten trees of two-way splits, pooled and calibrated with bounds",
        _ensemble,
        ("logistic_node",),
        needs_two_rows=False,
        most_classes=math.inf,
    ),
    "calibrated-forest": Recipe(
        "random forest, calibrated with bounds",
        lambda plan: _calibrated(plan, random_forest(plan), scale=False),
        AUTO_KERNELS,
    ),
    "calibrated-svm": Recipe(
        "support vector machine, calibrated with bounds",
        lambda plan: _calibrated(plan, _svm(), scale=True),
        AUTO_KERNELS,
        most_rows=20_000,
    ),
    "calibrated-boosting": Recipe(
        "gradient-boosted trees, calibrated with bounds",
        lambda plan: _calibrated(plan, _boosting(plan), scale=False),
        AUTO_KERNELS,
    ),
    "fusion": Recipe(
        "support vector machine, naive Bayes and forest, calibrated together",
        _fusion,
        ("joint",),
        most_rows=20_000,
    ),
}
