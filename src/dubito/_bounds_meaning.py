"""What the bounds of a model mean, in words for reports and the command line."""

from __future__ import annotations

from typing import Any, NamedTuple

from dubito._models import bounds_kind


class BoundsMeaning(NamedTuple):
    """Names of a pair of bounds, and what is promised about them.

    Parameters
    ----------
    kind : {"belief", "level", "box", "conformal", "venn_abers"}
        How the bounds are computed.
    level : float or None
        Their confidence level, if they have one.
    lower, upper : str
        The name of each within a sentence.
    both : str
        The name of the two together.
    promise : str
        What is promised, in one or two sentences.
    """

    kind: str
    level: float | None
    lower: str
    upper: str
    both: str
    promise: str


_WITHOUT_LEVEL = {
    "belief": BoundsMeaning(
        "belief",
        None,
        "belief",
        "plausibility",
        "belief and plausibility",
        "Belief is what the evidence supports, plausibility what it does not contradict. They "
        "have no confidence level: nothing is promised about how often they contain the "
        "true probability.",
    ),
    "box": BoundsMeaning(
        "box",
        None,
        "lower probability",
        "upper probability",
        "lower and upper probability",
        "They are the least and the largest probability while the mean of each class moves within "
        "its box. They have no confidence level: nothing is promised about how often they "
        "contain the true probability.",
    ),
    "conformal": BoundsMeaning(
        "conformal",
        None,
        "conformal belief",
        "conformal plausibility",
        "conformal belief and plausibility",
        "The plausibility of a class is its conformal p-value, raised so that the largest is 1. "
        "The promise is made by the sets, which contain the true class as often as their coverage "
        "says; nothing is promised about probabilities.",
    ),
    "venn_abers": BoundsMeaning(
        "venn_abers",
        None,
        "lower Venn-Abers probability",
        "upper Venn-Abers probability",
        "Venn-Abers probabilities",
        "One of the two is calibrated: of the cases that it gives a probability, that fraction "
        "happens. Nothing is promised about how often they contain the true probability.",
    ),
}


def bounds_meaning(model: Any, level: float | None = None) -> BoundsMeaning:
    """Return what the bounds of a fitted model mean at a confidence level, or without one.

    Parameters
    ----------
    model : estimator
        Fitted, perhaps inside scikit-learn's pipelines and searches.
    level : float, optional
        As in ``predict_bounds``.

    Returns
    -------
    BoundsMeaning

    Examples
    --------
    >>> from dubito._bounds_meaning import bounds_meaning
    >>> bounds_meaning(None).both
    'belief and plausibility'
    >>> bounds_meaning(None, 0.9).both
    'bounds at level 0.9'
    """
    if level is None:
        return _WITHOUT_LEVEL[bounds_kind(model)]
    return BoundsMeaning(
        "level",
        level,
        f"lower bound (level {level:.15g})",
        f"upper bound (level {level:.15g})",
        f"bounds at level {level:.15g}",
        "They contain the true probability of a class, given its scores, in about "
        f"{100 * level:.15g}% of the cases, if the map has the right form and the cases are drawn "
        "from the same distribution as the calibration rows.",
    )
