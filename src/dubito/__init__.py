"""dubito: classifiers that know when to doubt.

Calibrated probabilities, honest lower and upper bounds, set-valued or reject decisions, and the
evidence behind each of them. The rooms are imported on first use, so ``import dubito`` is light:

>>> import dubito
>>> dubito.belief.MassFunction({"flu": 0.6, ("flu", "cold"): 0.4}).pl("cold")
0.4
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "belief",
    "calibration",
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


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"dubito.{name}")
    rooms = ", ".join(__all__[1:])
    raise AttributeError(f"module 'dubito' has no attribute {name!r}; its rooms are {rooms}.")


def __dir__() -> list[str]:
    return sorted(__all__)
