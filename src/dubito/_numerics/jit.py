"""The decorator that compiles kernels with numba; no other module imports numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(
    signature: str | None = None, *, fastmath: bool | set[str] = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel without the GIL, cached on disk where possible.

    `fastmath` are LLVM fast-math flags: with {"reassoc"} sums are vectorised.
    `inline="always"` copies a function into its callers before compilation.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        # Dividing by zero gives infinity, as in numpy: loops with a check are not vectorised.
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
