"""Whether a file was written by the versions that read it, and a warning when not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.exceptions import InconsistentVersionWarning

import dubito
from dubito.saving._facts import current_versions

if TYPE_CHECKING:
    from dubito.saving._stamp import Stamp


class OtherVersionWarning(InconsistentVersionWarning):
    """A model was saved by other versions than read it: scikit-learn's warning, said once."""

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
    """Return what to warn of before a model is used, or None."""
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
