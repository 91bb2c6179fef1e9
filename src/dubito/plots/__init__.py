"""Pictures of calibrators and what they believe.

One Display class per file, as in scikit-learn: `from_estimator` computes, the object keeps plain
arrays, and `plot` draws them on the axes it is given. matplotlib is imported on the first drawing;
``pip install "dubito[plots]"`` brings it.
"""

from dubito.plots.contour import ContourDisplay
from dubito.plots.error_reject import ErrorRejectDisplay

__all__ = ["ContourDisplay", "ErrorRejectDisplay"]
