"""What the metrics of `evaluate` are called, what they mean, and which values are better."""

from __future__ import annotations

from typing import Literal, NamedTuple


class MetricDescription(NamedTuple):
    """The name and meaning of a metric, and which of its values are better.

    Parameters
    ----------
    name : str
        As printed; up to 26 letters, so that two models fit side by side in 80 columns.
    meaning : str
        One line for readers who do not know the metric.
    better : {"high", "low"} or None, default None
        Which values are better; None where larger and smaller values each have a price, so that
        no model is better for this value alone.
    is_fraction : bool, default False
        Whether values are fractions of rows, printed in percent.
    """

    name: str
    meaning: str
    better: Literal["high", "low"] | None = None
    is_fraction: bool = False


#: Shown where the interval of the observed coverage ends below the requested one.
LOW_COVERAGE = "The observed coverage is lower than the requested one by more than chance explains."

# No value of coverage, of set sizes or of widths is better as such: sets of all classes have the
# highest coverage, and smaller sets or narrower bounds cost coverage. Utilities weigh both.
_DESCRIPTIONS = {
    "accuracy": MetricDescription(
        "right (accuracy)", "fraction of cases where the first choice is right", "high", True
    ),
    "error": MetricDescription(
        "wrong (error)", "fraction of cases where the first choice is wrong", "low", True
    ),
    "log_loss": MetricDescription("log loss", "punishes being sure and wrong; 0 is perfect", "low"),
    "brier": MetricDescription(
        "Brier score", "squared distance from the truth; 0 is perfect", "low"
    ),
    "ece": MetricDescription(
        "calibration error (ECE)", "how far probabilities are from what happens", "low"
    ),
    "classwise_ece": MetricDescription(
        "calibration error by class", "the mean calibration error of single classes", "low"
    ),
    "smooth_ece": MetricDescription(
        "calibration error, smooth", "a calibration error without sorting into bins", "low"
    ),
    "aurc": MetricDescription(
        "error among decided (AURC)",
        "mean error among the decided as more and more doubtful cases are declined",
        "low",
    ),
    "coverage": MetricDescription(
        "true class in the set", "fraction of sets that contain the true class", is_fraction=True
    ),
    "determinacy": MetricDescription(
        "sets of one class", "fraction of cases where one class is named", is_fraction=True
    ),
    "single_class_accuracy": MetricDescription(
        "right in sets of one class",
        "fraction right among cases where one class is named",
        "high",
        True,
    ),
    "mean_set_size": MetricDescription(
        "classes in the set, mean", "how many classes are left open on average"
    ),
    "discounted_accuracy": MetricDescription(
        "discounted accuracy", "a set of n classes that contains the truth earns 1/n", "high"
    ),
    "u65": MetricDescription(
        "u65", "a pair that contains the truth earns 0.65: a mild reward for caution", "high"
    ),
    "u80": MetricDescription(
        "u80", "a pair that contains the truth earns 0.80: a strong reward for caution", "high"
    ),
    "mean_width": MetricDescription(
        "width of the bounds, mean", "upper minus lower bound, on average"
    ),
}


def describe_metric(key: str) -> MetricDescription:
    """Return the description of a metric of `evaluate`; an unknown one is named after its key.

    >>> describe_metric("u80").better, describe_metric("mean_set_size").better
    ('high', None)
    >>> describe_metric("my_metric").name
    'my metric'
    """
    return _DESCRIPTIONS.get(key, MetricDescription(key.replace("_", " "), ""))
