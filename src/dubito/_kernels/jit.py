"""The one place that compiles: import only from compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(
    signature: str | None = None, *, fastmath: bool | set[str] = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kernel that releases the GIL, kept on disk where there is a place for it.

    `fastmath` names the freedoms LLVM may take: {"reassoc"} lets it split sums over vector lanes.
    `inline="always"` puts a function into its callers: what is called through many others would
    else be compiled again with each of them.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        # Dividing by zero gives infinity, as in numpy: a check would keep loops off vector lanes.
        options: dict[str, Any] = {
            "nogil": True,
            "fastmath": fastmath,
            "inline": inline,
            "error_model": "numpy",
        }
        try:
            return njit(signature, cache=True, **options)(function)
        except RuntimeError:  # neither the package's nor the user's folder can be written
            return njit(signature, **options)(function)

    return decorate
