"""Warnings with a name for what can happen to imprecise discriminants."""


class WideBoxWarning(UserWarning):
    """A box is wider than a feature's spread: in its units the feature can tell nothing apart."""


class UnsettledWarning(UserWarning):
    """A search for the farthest mean was cut short: bounds and sets are wider than need be."""


class SingularCovarianceWarning(UserWarning):
    """Class covariances are singular or missing, so densities may not be comparable."""
