"""The one place that compiles: import only from compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(signature: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kernel that releases the GIL, kept on disk where there is a place for it."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(signature, cache=True, nogil=True)(function)
        except RuntimeError:  # neither the package's nor the user's folder can be written
            return njit(signature, nogil=True)(function)

    return decorate
