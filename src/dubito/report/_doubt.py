r"""The least certain rows, and whether their bounds are wide or other classes are probable too.

The doubt about a row is what its predicted class lacks to be certain,
:math:`1-l=(u-l)+(1-u)`: the first part is the width of the bounds, the second what is left to
other classes even at the upper bound. Neither counts how many rows like this one were seen.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.decision._risk import TIE
from dubito.evidence import Explanation
from dubito.evidence._wording import shown_value
from dubito.evidence.explanation import SMALLEST_SHOWN
from dubito.report._answers import picked
from dubito.report._words import plain, shown_name, straight

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray
    from dubito.report._answers import Answers, Rows

MOST_NAMED_IN_SET = 5
MOST_PIECES = 10
WIDE, OTHERS = "wide bounds", "other classes"


def collect_doubt(
    model: Answers, rows: Rows, labels: list[str], declined: BoolArray, most: int
) -> dict[str, Any]:
    """Return the least certain rows, and how doubt divides among all and the declined."""
    every = np.arange(len(rows))
    lower, upper = (bound[every, model.predicted] for bound in _both(model))
    width, others = upper - lower, 1 - upper
    doubt = 1 - lower
    said = model.proba[every, model.predicted]
    wide = width >= others
    least = _least_certain(doubt, wide, most)
    return {
        "told_apart": model.has_bounds,
        "before_calibration": hasattr(model.model, "pairs_"),
        "outside": float(((said < lower - TIE) | (said > upper + TIE)).mean()),
        "mean_width": float(width.mean()),
        "mean_others": float(others.mean()),
        "declined_wide": int((declined & wide).sum()),
        "declined_others": int((declined & ~wide).sum()),
        "numbered": all(rows.names[i] == str(rows.numbers[i]) for i in least),
        "rows": _rows(model, rows, labels, least),
    }


def _least_certain(doubt: FloatArray, is_wide: BoolArray, most: int) -> IntArray:
    """Return the most doubtful rows of both causes, half of each where there are enough."""
    order = np.argsort(-doubt, kind="stable")
    order = order[doubt[order] > 0]
    wide, others = order[is_wide[order]], order[~is_wide[order]]
    n_wide = max(most - len(others), min(most // 2, len(wide)))
    chosen = np.append(wide[:n_wide], others[: max(most - n_wide, 0)])
    return chosen[np.argsort(-doubt[chosen], kind="stable")][:most]


def _both(model: Answers) -> tuple[FloatArray, FloatArray]:
    return model.bounds.lower, model.bounds.upper


def _rows(model: Answers, rows: Rows, labels: list[str], least: IntArray) -> list[dict[str, Any]]:
    if not len(least):
        return []
    X = picked(model.X, least)
    names = shown_rows(rows, least)
    own = {
        f"own_{word}": _own(model.model, word, X, len(least)) for word in ("ignorance", "conflict")
    }
    evidence = _evidence(model, X, names, model.predicted[least])
    told = []
    for place, i in enumerate(least.tolist()):
        k = int(model.predicted[i])
        lower, upper = float(model.bounds.lower[i, k]), float(model.bounds.upper[i, k])
        members = np.flatnonzero(model.sets[i])
        members = members[np.argsort(-model.proba[i, members], kind="stable")]
        told.append(
            {
                "name": names[place],
                "truth": labels[rows.column[i]],
                "predicted": labels[k],
                "right": bool(k == rows.column[i]),
                "set": [labels[j] for j in members[:MOST_NAMED_IN_SET]],
                "set_size": len(members),
                "probability": float(model.proba[i, k]),
                "lower": lower,
                "upper": upper,
                "width": upper - lower,
                "others": 1 - upper,
                "cause": _cause(model, lower, upper),
                **{word: values[place] for word, values in own.items() if values},
                "evidence": evidence[place] if evidence else None,
            }
        )
    return told


def shown_rows(rows: Rows, least: IntArray) -> list[str]:
    """Name rows; with their number in the table where the name alone would not tell them apart."""
    shown = [shown_name(rows.names[i]) for i in least]
    often, seen = Counter(rows.names), Counter(shown)
    return [
        f"{name} (row {rows.numbers[i]})" if often[rows.names[i]] > 1 or seen[name] > 1 else name
        for name, i in zip(shown, least.tolist(), strict=True)
    ]


def _cause(model: Answers, lower: float, upper: float) -> str | None:
    if not model.has_bounds:
        return None
    return WIDE if upper - lower >= 1 - upper else OTHERS


def _own(model: Any, word: str, X: Any, n: int) -> list[float | None]:
    """Return the model's own ignorance or conflict, where it has such a measure."""
    if not hasattr(model, word):
        return []
    values = np.asarray(getattr(model, word)(X), dtype=float)
    return [plain(value) for value in values] if values.shape == (n,) else []


def _evidence(
    model: Answers, X: Any, names: list[str], predicted: IntArray
) -> list[dict[str, Any]]:
    """Return what a model with `explain` says of rows: in words, and the weightiest pieces."""
    told = model.model.explain(X) if hasattr(model.model, "explain") else None
    if not isinstance(told, Explanation):
        return []
    told = Explanation(
        weights=told.weights,
        names=told.names,
        classes=told.classes,
        values=told.values,
        rows=np.array(names, dtype=object),
    )
    return [
        {
            "text": straight(told.text(i, max_pieces=MOST_PIECES)),
            **_pieces(told, i, int(predicted[i])),
        }
        for i in range(len(told))
    ]


def _pieces(told: Explanation, i: int, k: int) -> dict[str, Any]:
    """Return the pieces that say most for or against the predicted class, and the rest's sum."""
    weights = told.weights[i]
    # Two classes each have their own part; of more, a class has signed weights.
    signed = weights[:, k] - weights[:, 1 - k] if weights.shape[1] == 2 else weights[:, k]
    order = np.argsort(-np.abs(signed), kind="stable")
    n_shown = min(int((np.abs(signed) >= SMALLEST_SHOWN).sum()), MOST_PIECES)
    shown, rest = order[:n_shown], order[n_shown:]
    pieces = [
        {
            "name": shown_name(told.names[j]),
            "value": None if (value := told.values[i, j]) is None else straight(shown_value(value)),
            "weight": float(signed[j]),
        }
        for j in shown
    ]
    return {"pieces": pieces, "others": len(rest), "others_weight": float(signed[rest].sum())}
