r"""Single rows: the least certain ones, and those unlike the training rows.

The doubt about a row is what its predicted class lacks to be certain,
:math:`1-l=(u-l)+(1-u)`: the first part is the width of the bounds, the second what is left to
other classes even at the upper bound. Neither counts how many rows like this one were seen.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._models import is_novelty_aware
from dubito._validation import TIE
from dubito._wording import shown_value
from dubito.evidence import Explanation
from dubito.evidence.explanation_text import SMALLEST_SHOWN
from dubito.report.predictions import take_rows
from dubito.report.wording import familiarity_line, plain, shown_name, without_direction_controls

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Classes of a set, and pieces of evidence, that are listed for a row.
MOST_NAMED_IN_SET = 5
MOST_PIECES = 10
#: The two parts of the doubt about a row.
WIDE, OTHERS = "wide bounds", "other classes"


def collect_doubt(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str], declined: BoolArray, most: int
) -> dict[str, Any]:
    """Return the least certain rows, and of both parts of the doubt the means and declined rows.

    Means are over all rows; a declined row is counted with the larger of its parts.
    """
    every = np.arange(len(rows))
    lower = outputs.bounds.lower[every, outputs.predicted]
    upper = outputs.bounds.upper[every, outputs.predicted]
    width, others = upper - lower, 1 - upper
    doubt = 1 - lower
    proba = outputs.proba[every, outputs.predicted]
    wide = width >= others
    least = _least_certain(doubt, wide, most)
    return {
        "has_bounds": outputs.has_wide_bounds,
        "before_calibration": hasattr(outputs.estimator, "calibrated_classifiers_"),
        "outside": float(((proba < lower - TIE) | (proba > upper + TIE)).mean()),
        "mean_width": float(width.mean()),
        "mean_others": float(others.mean()),
        "declined_wide": int((declined & wide).sum()),
        "declined_others": int((declined & ~wide).sum()),
        "numbered": all(rows.names[i] == str(rows.numbers[i]) for i in least),
        "rows": _doubtful_rows(outputs, rows, labels, least),
    }


def _least_certain(doubt: FloatArray, is_wide: BoolArray, most: int) -> IntArray:
    """Return the most doubtful rows of both causes, half of each where there are enough."""
    order = np.argsort(-doubt, kind="stable")
    order = order[doubt[order] > 0]
    wide, others = order[is_wide[order]], order[~is_wide[order]]
    n_wide = max(most - len(others), min(most // 2, len(wide)))
    chosen = np.append(wide[:n_wide], others[: max(most - n_wide, 0)])
    return chosen[np.argsort(-doubt[chosen], kind="stable")][:most]


def _doubtful_rows(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str], least: IntArray
) -> list[dict[str, Any]]:
    if not len(least):
        return []
    X = take_rows(outputs.X, least)
    names = displayed_names(rows, least)
    own = {
        f"own_{name}": _own_measure(outputs.estimator, name, X, len(least))
        for name in ("ignorance", "conflict")
    }
    evidence = _evidence(outputs, X, names, outputs.predicted[least])
    details = []
    for position, i in enumerate(least.tolist()):
        k = int(outputs.predicted[i])
        lower, upper = float(outputs.bounds.lower[i, k]), float(outputs.bounds.upper[i, k])
        members = np.flatnonzero(outputs.sets[i])
        members = members[np.argsort(-outputs.proba[i, members], kind="stable")]
        details.append(
            {
                "name": names[position],
                "truth": labels[rows.true_column[i]],
                "predicted": labels[k],
                "correct": bool(k == rows.true_column[i]),
                "set": [labels[j] for j in members[:MOST_NAMED_IN_SET]],
                "set_size": len(members),
                "probability": float(outputs.proba[i, k]),
                "lower": lower,
                "upper": upper,
                "width": upper - lower,
                "others": 1 - upper,
                "cause": _cause(outputs, lower, upper),
                **{key: values[position] for key, values in own.items() if values},
                "evidence": evidence[position] if evidence else None,
            }
        )
    return details


def displayed_names(rows: LabelledRows, chosen: IntArray) -> list[str]:
    """Return the names of rows, with their numbers in the table where names are not unique."""
    shown = [shown_name(rows.names[i]) for i in chosen]
    times, times_shown = Counter(rows.names), Counter(shown)
    return [
        f"{name} (row {rows.numbers[i]})"
        if times[rows.names[i]] > 1 or times_shown[name] > 1
        else name
        for name, i in zip(shown, chosen.tolist(), strict=True)
    ]


def _cause(outputs: ModelOutputs, lower: float, upper: float) -> str | None:
    """Return the larger part of the doubt; None without bounds."""
    if not outputs.has_wide_bounds:
        return None
    return WIDE if upper - lower >= 1 - upper else OTHERS


def _own_measure(model: Any, name: str, X: Any, n: int) -> list[float | None]:
    """Return the model's own ignorance or conflict of each row; empty without such a method."""
    if not hasattr(model, name):
        return []
    values = np.asarray(getattr(model, name)(X), dtype=float)
    return [plain(value) for value in values] if values.shape == (n,) else []


def _evidence(
    outputs: ModelOutputs, X: Any, names: list[str], predicted: IntArray
) -> list[dict[str, Any]]:
    """Return the explanation of each row: as text, and the pieces of largest weight."""
    explanation = outputs.estimator.explain(X) if hasattr(outputs.estimator, "explain") else None
    if not isinstance(explanation, Explanation):
        return []
    explanation = Explanation(
        weights=explanation.weights,
        names=explanation.names,
        classes=explanation.classes,
        values=explanation.values,
        rows=np.array(names, dtype=object),
    )
    return [
        {
            "text": without_direction_controls(explanation.text(i, max_pieces=MOST_PIECES)),
            **_pieces(explanation, i, int(predicted[i])),
        }
        for i in range(len(explanation))
    ]


def _pieces(explanation: Explanation, i: int, k: int) -> dict[str, Any]:
    """Return the pieces of largest weight for or against a class, and the sum of the others."""
    weights = explanation.weights[i]
    # Of two classes each has non-negative weights of its own; of more, weights are signed.
    signed = weights[:, k] - weights[:, 1 - k] if weights.shape[1] == 2 else weights[:, k]
    order = np.argsort(-np.abs(signed), kind="stable")
    n_shown = min(int((np.abs(signed) >= SMALLEST_SHOWN).sum()), MOST_PIECES)
    shown, rest = order[:n_shown], order[n_shown:]
    pieces = [
        {
            "name": shown_name(explanation.names[j]),
            "value": None
            if (value := explanation.values[i, j]) is None
            else without_direction_controls(shown_value(value)),
            "weight": float(signed[j]),
        }
        for j in shown
    ]
    return {"pieces": pieces, "others": len(rest), "others_weight": float(signed[rest].sum())}


def collect_familiarity(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str], most: int
) -> dict[str, Any] | None:
    """Return how many rows are unfamiliar, and which; None for models without familiarity."""
    if not is_novelty_aware(outputs.estimator):
        return None
    rate = float(outputs.estimator.rate)
    familiarity = np.asarray(outputs.estimator.familiarity(outputs.X), dtype=float)
    unfamiliar = familiarity < rate
    right = outputs.predicted == rows.true_column
    least = np.argsort(familiarity, kind="stable")[:most]
    least = least[unfamiliar[least]]
    details = [
        {
            "name": name,
            "familiarity": float(familiarity[i]),
            "predicted": labels[outputs.predicted[i]],
            "truth": labels[rows.true_column[i]],
            "correct": bool(right[i]),
            "probability": float(outputs.proba[i, outputs.predicted[i]]),
            "lower": float(outputs.bounds.lower[i, outputs.predicted[i]]),
            "upper": float(outputs.bounds.upper[i, outputs.predicted[i]]),
        }
        for name, i in zip(displayed_names(rows, least), least.tolist(), strict=True)
    ]
    n = int(unfamiliar.sum())
    return {
        "rate": rate,
        "unfamiliar": n,
        "fraction": n / len(rows),
        "accuracy_unfamiliar": _accuracy_in(right, unfamiliar),
        "accuracy_familiar": _accuracy_in(right, ~unfamiliar),
        "rows": details,
        "line": familiarity_line(n, len(rows), rate),
    }


def _accuracy_in(right: BoolArray, chosen: BoolArray) -> float | None:
    return float(right[chosen].mean()) if chosen.any() else None
