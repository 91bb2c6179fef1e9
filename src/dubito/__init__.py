"""dubito: calibrated probabilities, bounds and label sets for classifiers.

Also decisions to decline a row, and the evidence behind each prediction. Packages are imported on
first use, so ``import dubito`` is light:

>>> import dubito
>>> dubito.belief.MassFunction({"flu": 0.6, ("flu", "cold"): 0.4}).pl("cold")
0.4
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PACKAGES = [
    "belief",
    "calibration",
    "conformal",
    "datasets",
    "decision",
    "dichotomies",
    "discriminant",
    "evidence",
    "metrics",
    "pipeline",
    "plots",
    "report",
    "saving",
]

#: Names available as ``dubito.NAME``, and the package that exports each.
_SHORTCUTS = {
    "CalibratedClassifier": "calibration",
    "ConformalClassifier": "conformal",
    "EvidentialClassifier": "evidence",
    "EvidentialFusion": "calibration",
    "ImpreciseGaussianDiscriminant": "discriminant",
    "NestedDichotomyClassifier": "dichotomies",
    "NestedDichotomyEnsemble": "dichotomies",
    "NotSupportedError": "evidence",
    "NoveltyAwareClassifier": "conformal",
    "RejectClassifier": "pipeline",
    "load": "saving",
    "save": "saving",
}

__all__ = ["__version__", *_PACKAGES, *_SHORTCUTS]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"dubito.{name}")
    if name in _SHORTCUTS:
        return getattr(import_module(f"dubito.{_SHORTCUTS[name]}"), name)
    packages, names = ", ".join(_PACKAGES), ", ".join(_SHORTCUTS)
    raise AttributeError(
        f"module 'dubito' has no attribute {name!r}{_suggestion(name)}; its packages are "
        f"{packages}, and it offers {names} directly."
    )


def _suggestion(name: str) -> str:
    """Return a clause that names the attribute meant: a package's, or one of a similar name."""
    for package in [] if name.startswith("_") else _PACKAGES:
        try:
            if name in import_module(f"dubito.{package}").__all__:
                return f" (it is dubito.{package}.{name})"
        except ImportError:  # the package needs an extra that is not installed
            continue
    from difflib import get_close_matches  # noqa: PLC0415 - needed by errors alone

    similar = get_close_matches(name, [*_PACKAGES, *_SHORTCUTS], n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""


def __dir__() -> list[str]:
    return sorted(__all__)
