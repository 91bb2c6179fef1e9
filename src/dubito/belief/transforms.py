r"""The six equivalent representations of a mass function, by fast Möbius transforms.

Arrays have their last axis over all :math:`2^K` bit masks, the empty set first, as
`MassBatch.to_array` gives them; leading axes are rows. Each transform costs
:math:`O(K 2^K)` per row.

=============  ===============================================================================
mass           :math:`m(A)`
belief         :math:`\mathrm{Bel}(A)=\sum_{\emptyset\ne B\subseteq A}m(B)`
plausibility   :math:`\mathrm{Pl}(A)=\sum_{B\cap A\ne\emptyset}m(B)`
commonality    :math:`q(A)=\sum_{B\supseteq A}m(B)`
implicability  :math:`b(A)=\sum_{B\subseteq A}m(B)`
weights        :math:`w(A)=\sum_{B\supseteq A}(-1)^{|B|-|A|}\ln q(B)`, :math:`A\ne\Omega`
=============  ===============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dubito._wording import name_rows
from dubito.belief._kernels import moebius

if TYPE_CHECKING:
    from dubito._typing import FloatArray

__all__ = [
    "belief_to_mass",
    "commonality_to_mass",
    "implicability_to_mass",
    "mass_to_belief",
    "mass_to_commonality",
    "mass_to_implicability",
    "mass_to_plausibility",
    "mass_to_weights",
    "plausibility_to_mass",
    "weights_to_mass",
]


def _over_subsets(values: npt.ArrayLike) -> FloatArray:
    """Return the values as floats; raise an error unless the last axis has length 2^K."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] < 2 or array.shape[-1] & (array.shape[-1] - 1):
        raise ValueError(
            f"the last axis must list all 2^K subsets (K ≥ 1); got an array of shape {array.shape}."
        )
    return array


def mass_to_implicability(mass: npt.ArrayLike) -> FloatArray:
    r"""Return :math:`b(A)=\sum_{B\subseteq A}m(B)`.

    Examples
    --------
    >>> from dubito.belief.transforms import mass_to_implicability
    >>> mass_to_implicability([0.0, 0.6, 0.0, 0.4])
    array([0. , 0.6, 0. , 1. ])
    """
    return moebius.subset_sum(_over_subsets(mass))


def implicability_to_mass(implicability: npt.ArrayLike) -> FloatArray:
    """Return masses from implicabilities: the inverse of `mass_to_implicability`.

    Examples
    --------
    >>> from dubito.belief.transforms import implicability_to_mass
    >>> implicability_to_mass([0.0, 0.6, 0.0, 1.0]).round(12)
    array([0. , 0.6, 0. , 0.4])
    """
    return moebius.subset_difference(_over_subsets(implicability))


def mass_to_belief(mass: npt.ArrayLike) -> FloatArray:
    r"""Return :math:`\mathrm{Bel}(A)=\sum_{\emptyset\ne B\subseteq A}m(B)`.

    Examples
    --------
    >>> from dubito.belief.transforms import mass_to_belief
    >>> mass_to_belief([0.0, 0.6, 0.0, 0.4])
    array([0. , 0.6, 0. , 1. ])
    """
    mass = _over_subsets(mass)
    return mass_to_implicability(mass) - mass[..., :1]


def belief_to_mass(belief: npt.ArrayLike) -> FloatArray:
    r"""Return masses from beliefs, with :math:`m(\emptyset)=1-\mathrm{Bel}(\Omega)`.

    Examples
    --------
    >>> from dubito.belief.transforms import belief_to_mass
    >>> belief_to_mass([0.0, 0.6, 0.0, 1.0]).round(12)
    array([0. , 0.6, 0. , 0.4])
    """
    belief = _over_subsets(belief)
    return implicability_to_mass(belief + (1 - belief[..., -1:]))


def mass_to_plausibility(mass: npt.ArrayLike) -> FloatArray:
    r"""Return :math:`\mathrm{Pl}(A)=\sum_{B\cap A\ne\emptyset}m(B)=b(\Omega)-b(\bar A)`.

    Examples
    --------
    >>> from dubito.belief.transforms import mass_to_plausibility
    >>> mass_to_plausibility([0.0, 0.6, 0.0, 0.4])
    array([0. , 1. , 0.4, 1. ])
    """
    implicability = mass_to_implicability(mass)
    return implicability[..., -1:] - implicability[..., ::-1]


def plausibility_to_mass(plausibility: npt.ArrayLike) -> FloatArray:
    r"""Return masses from plausibilities, with :math:`m(\emptyset)=1-\mathrm{Pl}(\Omega)`.

    Examples
    --------
    >>> from dubito.belief.transforms import plausibility_to_mass
    >>> plausibility_to_mass([0.0, 1.0, 0.4, 1.0]).round(12)
    array([0. , 0.6, 0. , 0.4])
    """
    return implicability_to_mass(1 - _over_subsets(plausibility)[..., ::-1])


def mass_to_commonality(mass: npt.ArrayLike) -> FloatArray:
    r"""Return :math:`q(A)=\sum_{B\supseteq A}m(B)`.

    Examples
    --------
    >>> from dubito.belief.transforms import mass_to_commonality
    >>> mass_to_commonality([0.0, 0.6, 0.0, 0.4])
    array([1. , 1. , 0.4, 0.4])
    """
    return moebius.superset_sum(_over_subsets(mass))


def commonality_to_mass(commonality: npt.ArrayLike) -> FloatArray:
    """Return masses from commonalities: the inverse of `mass_to_commonality`.

    Examples
    --------
    >>> from dubito.belief.transforms import commonality_to_mass
    >>> commonality_to_mass([1.0, 1.0, 0.4, 0.4]).round(12)
    array([0. , 0.6, 0. , 0.4])
    """
    return moebius.superset_difference(_over_subsets(commonality))


def mass_to_weights(mass: npt.ArrayLike) -> FloatArray:
    r"""Return the weights of evidence of the canonical decomposition.

    :math:`w(A)=\sum_{B\supseteq A}(-1)^{|B|-|A|}\ln q(B)` for :math:`A\ne\Omega`, and 0 for
    :math:`\Omega`. These are Shafer's weights: a simple mass function with support s has
    :math:`w=-\ln(1-s)\ge0`, and weights add under Dempster's rule. Denœux (2008) calls
    :math:`e^{-w}` the weight.

    Raises
    ------
    ValueError
        Where a mass function is dogmatic, :math:`m(\Omega)=0`: it has no such decomposition.

    Examples
    --------
    >>> from dubito.belief.transforms import mass_to_weights
    >>> mass_to_weights([0.0, 0.6, 0.0, 0.4]).round(3) + 0.0
    array([0.   , 0.916, 0.   , 0.   ])
    """
    mass = _over_subsets(mass)
    dogmatic = ~(mass[..., -1] > 0)
    if dogmatic.any():
        raise ValueError(
            "weights of evidence need some mass on the whole frame; there is none in "
            f"{name_rows(np.flatnonzero(dogmatic.ravel()))}. Discount it a little first."
        )
    weights = moebius.superset_difference(np.log(mass_to_commonality(mass)))
    weights[..., -1] = 0.0
    return weights


def weights_to_mass(weights: npt.ArrayLike) -> FloatArray:
    r"""Return masses from weights of evidence: :math:`\ln q(B)=-\sum_{A\not\supseteq B}w(A)`.

    Examples
    --------
    >>> from dubito.belief.transforms import weights_to_mass
    >>> weights_to_mass([0.0, 0.916, 0.0, 0.0]).round(3)
    array([0. , 0.6, 0. , 0.4])
    """
    return commonality_to_mass(np.exp(weights_to_log_commonality(_over_subsets(weights))))


def weights_to_log_commonality(weights: FloatArray) -> FloatArray:
    r"""Return :math:`\ln q(B)=-\sum_{A\not\supseteq B}w(A)`."""
    return moebius.superset_sum(weights) - weights.sum(axis=-1, keepdims=True)
