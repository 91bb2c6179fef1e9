"""scikit-learn's private helpers, imported only here: if they move, only this module changes."""

from sklearn.base import _fit_context as fit_context
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as pick
from sklearn.utils._param_validation import HasMethods, Hidden, Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_n_features as check_n_features
from sklearn.utils.validation import _check_y as check_y

__all__ = [
    "BaseComposition",
    "BaseSearchCV",
    "HasMethods",
    "Hidden",
    "Interval",
    "StrOptions",
    "check_feature_names",
    "check_n_features",
    "check_y",
    "fit_context",
    "pick",
]


class StrOptions(_StrOptions):  # type: ignore[misc]
    """scikit-learn's constraint for strings, with a message that lists the options sorted."""

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, sorted(self.options)))}}}"
