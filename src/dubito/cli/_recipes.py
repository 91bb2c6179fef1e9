"""The models that `dubito train` offers, each with the preparation its columns need."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dubito

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: So many of the commonest values of a text column have a feature each; the rest share one.
MOST_VALUES = 50


class Table(NamedTuple):
    """What a recipe must know about the rows: columns by name, and how they are to be read."""

    types: Mapping[str, str]  # name -> "number" or "text"
    impute: bool
    folds: int  # for calibration, and for tuning
    seed: int


class Recipe(NamedTuple):
    """A model by name: one line about it, how to build it, and the kernels it compiles."""

    summary: str
    build: Callable[[Table], Any]
    kernels: tuple[str, ...] = ()
    #: Whether one class at least must have two rows: some are fitted without, to be tested on.
    needs_pairs: bool = True
    #: More rows, or more classes, than these take long.
    most_rows: float = math.inf
    most_classes: float = 200

    def takes_long(self, rows: int, classes: int) -> list[str]:
        """Say what will take its time, and which model is quicker."""
        said = []
        if self.compiles_first():
            said.append(
                "this model's numeric kernels are compiled when first used, which can take a "
                "minute; later runs start at once."
            )
        if rows > self.most_rows:
            said.append(f"{rows:,} rows take long; calibrated-boosting is quicker.")
        if classes > self.most_classes:
            said.append(f"{classes:,} classes take long; nested is made for many.")
        return said

    def compiles_first(self) -> bool:
        """Whether this installation has yet to compile its kernels, as far as can be seen."""
        named = os.environ.get("NUMBA_CACHE_DIR")
        beside = Path(dubito.__file__).parent / "_kernels" / "__pycache__"
        folder = Path(named) if named else beside
        if not named and not os.access(beside.parent, os.W_OK):
            return False  # they are kept elsewhere, if at all
        return not all(any(folder.rglob(f"{name}*.nbi")) for name in self.kernels)


def _prepared(table: Table, *, scale: bool = True) -> Any:
    """Return what makes numbers of a raw table: standardised ones, and one-hot words."""
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    # An empty cell of a text column is one more value to the encoder, or an unknown one.
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_VALUES, sparse_output=False
    )
    fill = [SimpleImputer(strategy="median")] if table.impute else []
    numbers = [*fill, *([StandardScaler()] if scale else [])]
    steps = {"number": make_pipeline(*numbers) if numbers else "passthrough", "text": one_hot}
    return ColumnTransformer(
        [
            (kind, steps[kind], [name for name, own in table.types.items() if own == kind])
            for kind in steps
            if kind in table.types.values()
        ],
        verbose_feature_names_out=False,
    )


def _after(table: Table, model: Any, *, scale: bool = True) -> Any:
    """Return a pipeline of the preparation and scikit-learn's own model."""
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    return Pipeline([("columns", _prepared(table, scale=scale)), ("model", model)])


def _cautious(table: Table, model: Any) -> Any:
    """Return a pipeline of the preparation and a model of dubito, which keeps its bounds."""
    from dubito.pipeline import CautiousPipeline  # noqa: PLC0415

    return CautiousPipeline([("columns", _prepared(table)), ("model", model)])


def _calibrated_logistic(table: Table) -> Any:
    """Return the default: reasons by evidence, probabilities and bounds by calibration."""
    import warnings  # noqa: PLC0415

    from dubito.calibration import CalibratedClassifier  # noqa: PLC0415

    if table.folds < 2:
        warnings.warn(
            "no class has two rows, so that none is left to calibrate on: probabilities are those "
            "of logistic regression as it is.",
            UserWarning,
            stacklevel=2,
        )
        return _evidential_logistic(table)
    return CalibratedClassifier(_evidential_logistic(table), cv=table.folds)


def _evidential_logistic(table: Table) -> Any:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    from dubito.evidence import EvidentialClassifier  # noqa: PLC0415

    # One piece of evidence for each column of the table, whatever is made of it.
    return EvidentialClassifier(_after(table, LogisticRegression(max_iter=2000)), groups="input")


def _imprecise(table: Table, covariance_type: str = "tied") -> Any:
    from dubito.discriminant import ImpreciseGaussianDiscriminant  # noqa: PLC0415

    return _cautious(table, ImpreciseGaussianDiscriminant(covariance_type=covariance_type))


def _tree(table: Table) -> Any:
    from dubito.dichotomies import NestedDichotomyClassifier  # noqa: PLC0415

    return _cautious(table, NestedDichotomyClassifier(random_state=table.seed))


def _ensemble(table: Table) -> Any:
    from dubito.dichotomies import NestedDichotomyEnsemble  # noqa: PLC0415

    return _cautious(table, NestedDichotomyEnsemble(random_state=table.seed))


def _calibrated(table: Table, model: Any, *, scale: bool) -> Any:
    from dubito.calibration import CalibratedClassifier  # noqa: PLC0415

    return CalibratedClassifier(_after(table, model, scale=scale), cv=table.folds)


def _forest(table: Table) -> Any:
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    return RandomForestClassifier(random_state=table.seed)


def _svm() -> Any:
    from sklearn.svm import SVC  # noqa: PLC0415

    return SVC()


def _boosting(table: Table) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

    return HistGradientBoostingClassifier(random_state=table.seed)


def _fusion(table: Table) -> Any:
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415

    from dubito.calibration import EvidentialFusion  # noqa: PLC0415

    members = [
        ("svm", _after(table, _svm())),
        ("bayes", _after(table, GaussianNB())),
        ("forest", _after(table, _forest(table), scale=False)),
    ]
    return EvidentialFusion(members, cv=table.folds, random_state=table.seed)


#: What is trained unless told otherwise.
DEFAULT = "calibrated-logistic"

RECIPES = {
    "calibrated-logistic": Recipe(
        "logistic regression, calibrated with bounds, and its reasons",
        _calibrated_logistic,
        ("evidence_compiled", "isotonic_compiled"),
        needs_pairs=False,
    ),
    "evidential-logistic": Recipe(
        "logistic regression as it is, read as evidence for and against each class",
        _evidential_logistic,
        ("evidence_compiled",),
        needs_pairs=False,
    ),
    "imprecise": Recipe(
        "linear discriminant that knows the centres of classes only roughly",
        _imprecise,
        ("boxed_",),
    ),
    "imprecise-quadratic": Recipe(
        "such a discriminant, with a spread of its own for each class",
        lambda table: _imprecise(table, "full"),
        ("boxed_",),
    ),
    "nested": Recipe(
        "a tree of two-way splits, for many classes, calibrated with bounds",
        _tree,
        ("node_", "tree_paths", "couplings_compiled"),
        needs_pairs=False,
        most_classes=math.inf,
    ),
    "nested-ensemble": Recipe(
        "ten trees of two-way splits, pooled and calibrated with bounds",
        _ensemble,
        ("node_", "tree_paths", "couplings_compiled"),
        needs_pairs=False,
        most_classes=math.inf,
    ),
    "calibrated-forest": Recipe(
        "random forest, calibrated with bounds",
        lambda table: _calibrated(table, _forest(table), scale=False),
        ("couplings_compiled",),
    ),
    "calibrated-svm": Recipe(
        "support vector machine, calibrated with bounds",
        lambda table: _calibrated(table, _svm(), scale=True),
        ("couplings_compiled",),
        most_rows=20_000,
    ),
    "calibrated-boosting": Recipe(
        "gradient-boosted trees, calibrated with bounds",
        lambda table: _calibrated(table, _boosting(table), scale=False),
        ("couplings_compiled",),
    ),
    "fusion": Recipe(
        "support vector machine, naive Bayes and forest, calibrated together",
        _fusion,
        ("joint_",),
        most_rows=20_000,
    ),
}
