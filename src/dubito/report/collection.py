"""Every number of a report as a plain dict: `collect` computes the outputs of the models once."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from dubito import __version__
from dubito._validation import (
    DEFAULT_COVERAGE,
    check_choice,
    check_fraction,
    check_level,
    check_unit_interval,
)
from dubito.decision.rejection import STRATEGIES, reject
from dubito.report.classes import collect_confusions, collect_coverage, collect_sets
from dubito.report.declining import collect_declining
from dubito.report.metrics import collect_metrics
from dubito.report.predictions import (
    declining_options,
    model_outputs,
    models_by_name,
    select_rows,
    tables_by_model,
    take_rows,
)
from dubito.report.reliability import collect_miscalibration, collect_reliability
from dubito.report.rows import collect_doubt, collect_familiarity
from dubito.report.wording import collect_summary, distinct_names, without_direction_controls

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray
    from dubito.report.predictions import ModelOutputs

#: Version of the dict that `render` reads.
FORMAT = 4


def collect(  # noqa: PLR0913 - keyword options
    models: Any,
    X: Any,
    y: npt.ArrayLike,
    *,
    title: str | None = None,
    strategy: str | None = None,
    cost: float | None = None,
    level: float | None = None,
    coverage: float = DEFAULT_COVERAGE,
    doubtful_rows: int = 20,
    row_names: Any = None,
    random_state: int = 0,
) -> dict[str, Any]:
    """Return the numbers and sentences of a report on one classifier, compared with others.

    Parameters
    ----------
    models : estimator, or dict of str to estimator
        Fitted classifiers, or calibrators with scores in place of X; anything with ``classes_``
        and ``predict_proba`` or ``predict_bounds``. The report is about the first; the others are
        compared with it and must know the same classes.
    X : array-like, or dict of str to array-like
        Rows that no model was fitted on: one table for all, or one for each model by name.
    y : array-like of shape (n,)
        Their true labels.
    title : str, optional
        Heading of the page.
    strategy : {"pignistic", "pessimistic", "optimistic", "probabilistic"}, optional
        Which risk decides whether a row is declined; see `dubito.decision.reject`. By default that
        of the first model, if it is a `RejectClassifier`, otherwise "pignistic". Models without
        bounds decline by Chow's rule, which is "probabilistic".
    cost : float in [0, 1], optional
        Cost of declining a row, where an error costs 1, to a thousandth. The summary is about this
        cost; the slider starts there. By default that of the first model, if it is a
        `RejectClassifier` without a loss of its own, otherwise 0.2.
    level : float in (0, 1), optional
        Confidence level of the bounds; without it they are belief and plausibility. All models
        that have bounds must have such a level.
    coverage : float in (0, 1), default 0.9
        Coverage of the sets of conformal models; other models have none.
    doubtful_rows : int, default 20
        How many of the least certain rows, and of the least familiar ones, are listed.
    row_names : sequence of n labels, optional
        Names of the rows; by default the index of a pandas table, or numbers from 0. Where a name
        is not unique, the row's number from 0 is added.
    random_state : int, default 0
        Seeds the resamples behind the intervals, and the sample of rows that is taken where there
        are more than 50 million probabilities. Same input, same report.

    Returns
    -------
    dict
        Of numbers, strings, lists and dicts alone: ``json.dumps`` takes it, and `render` makes the
        page of it. ``collected["summary"]["lines"]`` are the sentences worth knowing: three, one
        where probabilities are not calibrated (the interval of the calibration error excludes
        calibration), and one each on coverage and on unfamiliar rows for models that have them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.report import collect
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    >>> for line in collect(model, X[1::2], y[1::2])["summary"]["lines"]:
    ...     print(line)
    It is right in 96.0% of 75 cases (95% interval: 88.8% to 99.2%).
    Where a mistake costs 1 and asking a person costs 0.2, it declines 24.0% of the cases (18).
    Declining raises the mean cost: of the answers it gives 0% are wrong instead of 4.0% without
    asking, but a case costs 0.048 on average instead of 0.040.
    Its probabilities are not calibrated: they differ from the observed frequencies by 11.2
    percentage points on average (95% interval: 7.2 to 13.4), more than chance explains. The
    probability of the predicted class is 86.6% on average, and it is right in 96.0% of the cases:
    it is underconfident.
    """
    by_name = models_by_name(models)
    defaults = declining_options(next(iter(by_name.values())))
    cost = defaults.cost if cost is None else cost
    strategy = defaults.strategy if strategy is None else strategy
    check_choice(strategy, "strategy", STRATEGIES)
    _check_options(title, cost, doubtful_rows)
    cost = check_unit_interval(cost, "cost")
    level = check_level(level)
    coverage = check_fraction(coverage, "coverage")
    tables = tables_by_model(X, list(by_name))
    first, model = next(iter(by_name.items()))
    rows, sample = select_rows(model, tables[first], y, row_names, random_state)
    shown = distinct_names(by_name)
    all_outputs = [
        model_outputs(
            name,
            by_name[key],
            take_rows(tables[key], sample),
            rows.classes,
            level=level,
            coverage=coverage,
        )
        for key, name in zip(by_name, shown, strict=True)
    ]
    labels = distinct_names(rows.classes.tolist())
    outputs = all_outputs[0]
    metrics = collect_metrics(all_outputs, rows, random_state)
    declining = collect_declining(all_outputs, rows, strategy, cost)
    declined = _declined(outputs, strategy, declining["start"])
    miscalibration = collect_miscalibration(outputs, rows, metrics)
    coverage_found = collect_coverage(outputs, rows, labels, coverage)
    familiarity = collect_familiarity(outputs, rows, labels, doubtful_rows)
    return {
        "format": FORMAT,
        "dubito": __version__,
        "title": (
            f"How far to trust {shown[0]}" if title is None else without_direction_controls(title)
        ),
        "rows": len(rows),
        "rows_given": rows.n_given,
        "classes": len(labels),
        "models": shown,
        "has_bounds": [each.has_wide_bounds for each in all_outputs],
        "bounds": [each.meaning._asdict() for each in all_outputs],
        "summary": collect_summary(
            len(rows), metrics, declining, [miscalibration, coverage_found, familiarity]
        ),
        "miscalibration": miscalibration,
        "declining": declining,
        "reliability": collect_reliability(all_outputs, rows, labels),
        "sets": collect_sets(outputs, rows),
        "confusions": collect_confusions(outputs, rows, labels),
        "doubt": collect_doubt(outputs, rows, labels, declined, doubtful_rows),
        "coverage": coverage_found,
        "familiarity": familiarity,
        "metrics": metrics,
    }


def _check_options(title: Any, cost: Any, doubtful_rows: Any) -> None:
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a text. Got {title!r} instead.")
    if isinstance(cost, bool) or not isinstance(cost, Real):
        raise TypeError(f"cost must be a number in [0, 1]. Got {cost!r} instead.")
    whole = isinstance(doubtful_rows, Integral) and not isinstance(doubtful_rows, bool)
    if not whole or doubtful_rows < 0:
        raise ValueError(
            f"doubtful_rows must be a whole number, 0 or more. Got {doubtful_rows!r} instead."
        )


def _declined(outputs: ModelOutputs, strategy: str, cost: float) -> BoolArray:
    strategy = outputs.strategy(strategy)
    return reject(outputs.proba if strategy == "probabilistic" else outputs.bounds, cost, strategy)
