"""Versions of the packages that a model depends on, and the warning where they have changed.

A module of its own because it imports scikit-learn, which reading a stamp does not need.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

from sklearn.exceptions import InconsistentVersionWarning

import dubito

if TYPE_CHECKING:
    from dubito.saving.stamp import Stamp


class OtherVersionWarning(InconsistentVersionWarning):
    """A model was saved by other versions: scikit-learn's warning, once for the whole model."""

    def __init__(self, text: str, saved: str, current: str) -> None:
        super().__init__(
            estimator_name="the model",
            current_sklearn_version=current,
            original_sklearn_version=saved,
        )
        self.text = text

    def __str__(self) -> str:
        return self.text


def version_warning(stamp: Stamp, path: str) -> OtherVersionWarning | None:
    """Return the warning for a model saved by other versions, or None."""
    saved = {"dubito": stamp.dubito, "scikit-learn": stamp.versions.get("scikit-learn", "unknown")}
    now = {"dubito": dubito.__version__, "scikit-learn": current_versions()["scikit-learn"]}
    if saved == now:
        return None
    then = " and ".join(f"{name} {saved[name]}" for name in saved if saved[name] != now[name])
    here = " and ".join(f"{name} {now[name]}" for name in saved if saved[name] != now[name])
    text = (
        f"{path} was saved with {then}; this is {here}. What the model says may differ. "
        "Check it on rows you know, or fit it again."
    )
    return OtherVersionWarning(text, saved["scikit-learn"], now["scikit-learn"])


def current_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a saved model depends on."""
    packages = ("numpy", "scipy", "scikit-learn", "skops")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
