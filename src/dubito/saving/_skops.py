"""The one door to skops."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

#: scikit-learn's bridges to other array libraries. They hold no estimators.
_BRIDGES = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch"))


def skops_io() -> ModuleType:
    """Return ``skops.io``, or say how to get it."""
    try:
        with _bridges_closed():
            import skops.io  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ImportError('model files need skops: pip install "dubito[cli]"') from error
    return skops.io


@contextmanager
def _bridges_closed() -> Iterator[None]:
    """Keep skops from importing torch and dask, which takes seconds, where they are installed.

    skops lists scikit-learn's estimators by a walk through all its packages, bridges and all. The
    walk passes over what cannot be imported.
    """
    closed = [name for name in _BRIDGES if name not in sys.modules]
    sys.modules.update(dict.fromkeys(closed))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in closed:
            sys.modules.pop(name, None)
