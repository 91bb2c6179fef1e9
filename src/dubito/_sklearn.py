"""The one door to scikit-learn's private helpers: when they move, only this file changes."""

from functools import cache

from sklearn.base import _fit_context as fit_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as pick
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_n_features as check_n_features
from sklearn.utils.validation import _check_y as check_y

__all__ = [
    "BaseComposition",
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_feature_names",
    "check_n_features",
    "check_y",
    "discriminants_divide_by_rows",
    "fit_context",
    "pick",
]


@cache
def discriminants_divide_by_rows() -> bool:
    """Say whether discriminants divide sums of squares by n (1.9.1 on) or by n - K (before).

    With classes at -1, 1 and 9, 11 the within-class sum of squares is 4 and the coefficient is the
    distance of the means, 10, over the variance.
    """
    model = LinearDiscriminantAnalysis().fit([[-1.0], [1.0], [9.0], [11.0]], [0, 0, 1, 1])
    return bool(model.coef_[0, 0] > 7.5)  # 10 for four rows, 5 for two degrees of freedom
