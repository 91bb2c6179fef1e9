"""The one door to scikit-learn's private helpers: when they move, only this file changes."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names as check_feature_names

__all__ = ["HasMethods", "Interval", "StrOptions", "check_feature_names", "fit_context"]
