r"""How much of a diagonal above a matrix some of its coordinates need.

Where :math:`\mathrm{Diag}(u)\succeq Q`, fewer coordinates are content with a share of u: the
largest eigenvalue of Q relative to Diag(u) among them. It is estimated from below by powers, raised
a little and then proved by a Cholesky factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._kernels.box_nearest_compiled import times_rows
from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    SignArray = npt.NDArray[np.int8]

_POWERS = 12


@compiled()
def share_needed(quad: FloatArray, lift: FloatArray, side: SignArray, room: FloatArray) -> float:
    """Return t with t Diag(u) above Q in the open coordinates, those without a side; or 1.

    `room` is (p + 2, p).
    """
    v, w, block = room[0], room[1], room[2:]
    for i in range(len(lift)):
        # Uneven, so that rows of Q that sum to zero do not hide from it.
        v[i] = 1.0 + 0.37 * (i * 5 % 7) if side[i] == 0 and lift[i] > 0.0 else 0.0
    largest = _largest_ratio(quad, lift, v, w)
    for slack in (1.01, 1.1):
        share = slack * largest
        # What is not a number is not a share either.
        if 0.0 < share < 1.0 and _is_above(quad, lift, share, side, block):
            return share
    return 1.0


@compiled(fastmath=LANES)
def _largest_ratio(quad: FloatArray, lift: FloatArray, v: FloatArray, w: FloatArray) -> float:
    """Estimate from below the largest v'Qv / v'Diag(u)v over the v that vanish where it does."""
    p = len(lift)
    ratio = 0.0
    for _ in range(_POWERS):
        times_rows(quad, v, w)
        above, below, size = 0.0, 0.0, 0.0
        for i in range(p):
            above += v[i] * w[i]
            below += v[i] * v[i] * lift[i]
        if not above > 0.0:
            break
        ratio = above / below
        for i in range(p):
            w[i] = w[i] / lift[i] if v[i] != 0.0 else 0.0
            size = max(size, abs(w[i]))
        for i in range(p):
            # An open coordinate stays one, however little it has of the power.
            v[i] = w[i] / size if abs(w[i]) > 1e-30 * size else v[i] * 1e-30
    return ratio


@compiled(fastmath=LANES)
def _is_above(
    quad: FloatArray, lift: FloatArray, share: float, side: SignArray, block: FloatArray
) -> bool:
    """Say whether share Diag(u) - Q, open coordinates alone, has a Cholesky factor."""
    n = 0
    for i in range(len(lift)):
        if side[i] != 0 or lift[i] <= 0.0:
            continue
        row = block[n]
        m = 0
        for j in range(i + 1):
            if side[j] == 0 and lift[j] > 0.0:
                row[m] = -quad[i, j]
                m += 1
        row[n] += share * lift[i]
        for b in range(n):
            other, total = block[b], 0.0
            for d in range(b):
                total += row[d] * other[d]
            row[b] = (row[b] - total) / other[b]
        left = 0.0
        for d in range(n):
            left += row[d] * row[d]
        left = row[n] - left
        if not left > 1e-10 * share * lift[i]:
            return False
        row[n] = left**0.5
        n += 1
    return True
