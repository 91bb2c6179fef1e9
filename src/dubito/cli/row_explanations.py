"""Explanations of single rows: probabilities and doubt, then the reasons that some models give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from dubito._bounds_meaning import bounds_meaning
from dubito._models import has_bounds, is_conformal, is_novelty_aware
from dubito._validation import DEFAULT_COVERAGE
from dubito._wording import join_some
from dubito.cli.console import side_by_side
from dubito.cli.saved_models import bounds_and_sets

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from dubito._bounds_meaning import BoundsMeaning
    from dubito._typing import BoolArray, FloatArray
    from dubito.belief import Bounds
    from dubito.saving import Saved

#: Classes listed, the most probable first.
MOST_LISTED = 5
#: Critical imprecisions are searched up to this multiple of max(c, 1), c the model's imprecision.
SEARCH_FACTOR = 10.0


class RowOutputs(NamedTuple):
    """One row and the outputs of the model for it."""

    model: Any
    name: Any
    X: Any  # of one row
    classes: list[Any]
    proba: FloatArray  # (K,)
    bounds: Bounds | None  # of one row; None for models without bounds
    possible: BoolArray | None  # (K,), which classes are in the set; None without bounds
    meaning: BoundsMeaning

    @property
    def best(self) -> int:
        """Index of the most probable class."""
        return int(np.argmax(self.proba))

    @property
    def conformal(self) -> bool:
        """Whether the set has a chosen coverage."""
        return is_conformal(self.model)

    @property
    def inner(self) -> Any:
        """The model without conformal and novelty wrappers."""
        model = self.model
        while (is_conformal(model) or is_novelty_aware(model)) and hasattr(model, "estimator_"):
            model = model.estimator_
        return model

    @property
    def last_step(self) -> Any:
        """The last step of the model, if it is a pipeline."""
        return self.inner.steps[-1][1] if isinstance(self.inner, Pipeline) else self.inner

    @property
    def last_step_input(self) -> Any:
        """The row as the last step of the model takes it."""
        return self.inner[:-1].transform(self.X) if isinstance(self.inner, Pipeline) else self.X


#: A part of an explanation: lines of text, and the same content for JSON.
ExplanationPart = tuple[list[str], dict[str, Any]]


def explain_rows(
    saved: Saved, X: Any, frame: pd.DataFrame, level: float | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return an explanation of each row, as text and as facts for JSON.

    Parameters
    ----------
    saved : Saved
        The model.
    X : DataFrame or ndarray
        Rows as inputs of the model.
    frame : DataFrame
        The same rows by column name; the index holds their names.
    level : float or None
        Confidence level of the bounds.

    Returns
    -------
    list of (str, dict)
    """
    classes = list(saved.stamp.classes)
    proba = np.asarray(saved.model.predict_proba(X))
    bounds, sets = (
        bounds_and_sets(saved.model, X, level) if has_bounds(saved.model) else (None, None)
    )
    meaning = bounds_meaning(saved.model, level)
    explained = []
    for i, name in enumerate(frame.index):
        outputs = RowOutputs(
            saved.model,
            name,
            X.iloc[[i]] if hasattr(X, "iloc") else X[[i]],
            classes,
            proba[i],
            None if bounds is None else bounds[i],
            None if sets is None else sets[i],
            meaning,
        )
        explained.append(_explain_row(saved, outputs, frame.iloc[i]))
    return explained


def _explain_row(saved: Saved, outputs: RowOutputs, row: pd.Series) -> tuple[str, dict[str, Any]]:
    parts = [_prediction(outputs), *(reason(outputs) for reason in _REASONS), _unseen(saved, row)]
    lines = [line for text, _ in parts for line in text]
    facts: dict[str, Any] = {
        "row": outputs.name if isinstance(outputs.name, str) else int(outputs.name)
    }
    for _, more in parts:
        facts |= more
    return "\n".join(lines), facts


def _prediction(outputs: RowOutputs) -> ExplanationPart:
    """Return the most probable classes and, with bounds, the doubt about the first."""
    order = np.argsort(-outputs.proba, kind="stable")[:MOST_LISTED].tolist()
    best = outputs.classes[outputs.best]
    opening = f"row {outputs.name}: most probable is {best} ({outputs.proba[outputs.best]:.2f})."
    listed = [_class_facts(outputs, k) for k in order]
    facts: dict[str, Any] = {"prediction": best, "classes": listed}
    head = tuple(_column_name(outputs.meaning, name) for name in listed[0])
    table = side_by_side([head, *map(_cells, listed)])
    if outputs.bounds is None or outputs.possible is None:
        no_bounds = "This model has no bounds, so the doubt cannot be divided into its two parts."
        return [opening, table, *_other_classes(outputs), no_bounds], facts
    possible = [outputs.classes[k] for k in np.flatnonzero(outputs.possible)]
    lower, upper = (
        float(bound[0, outputs.best]) for bound in (outputs.bounds.lower, outputs.bounds.upper)
    )
    width, others = upper - lower, 1 - upper
    facts["set"] = possible
    facts["bounds"] = outputs.meaning.both
    facts["level"] = outputs.meaning.level
    facts["doubt"] = {
        "total": 1 - lower,
        "between_the_bounds": width,
        "left_to_other_classes": others,
    }
    lines = [f"{opening} {_set_sentence(outputs, possible, best)}", table, *_other_classes(outputs)]
    return [*lines, _doubt_sentence(best, width, others, outputs.meaning)], facts


def _set_sentence(outputs: RowOutputs, possible: list[Any], best: Any) -> str:
    """Return a sentence on the set of classes."""
    if outputs.conformal:
        return f"The set with coverage {DEFAULT_COVERAGE:g}: {join_some(possible, 'or')}."
    if possible == [best]:
        return "Its lower bound is above the upper bounds of all other classes."
    return f"Could be the best answer: {join_some(possible, 'or')}."


def _column_name(meaning: BoundsMeaning, name: str) -> str:
    """Return the name of a column of the table; of bounds, by their meaning."""
    named = {
        "belief": {"lower": "belief", "upper": "plausibility"},
        "level": {"lower": f"lower at {meaning.level}", "upper": f"upper at {meaning.level}"},
    }
    return named.get(meaning.kind, {}).get(name, name.replace("_", " "))


def _cells(facts: dict[str, Any]) -> tuple[str, ...]:
    """Return the facts about a class as cells of a table."""
    shown = {True: "yes", False: "no"}
    label, *rest = facts.values()
    return str(label), *(shown[x] if isinstance(x, bool) else f"{abs(x):.2f}" for x in rest)


def _doubt_sentence(label: Any, width: float, others: float, meaning: BoundsMeaning) -> str:
    """Return a sentence on the doubt and its two parts, rounded so that the parts add up.

    The width is rounded by itself, since evidential models print it once more as ignorance; the
    other part is the rounded total minus the rounded width.
    """
    total, between = round(width + others, 2), round(width, 2)
    if total == 0:
        return f"Doubt about {label}: less than 0.01."
    return (
        f"Doubt about {label}: {total:.2f} = {between:.2f} between {meaning.lower} and "
        f"{meaning.upper} + {total - between:.2f} left to other classes."
    )


def _class_facts(outputs: RowOutputs, k: int) -> dict[str, Any]:
    """Return the outputs for one class, for JSON and for a row of the printed table."""
    facts = {"class": outputs.classes[k], "probability": float(outputs.proba[k])}
    if outputs.bounds is not None and outputs.possible is not None:
        facts["lower"] = float(outputs.bounds.lower[0, k])
        facts["upper"] = float(outputs.bounds.upper[0, k])
        facts["in_the_set" if outputs.conformal else "could_be_best"] = bool(outputs.possible[k])
    return facts


def _other_classes(outputs: RowOutputs) -> list[str]:
    rest = len(outputs.classes) - MOST_LISTED
    return (
        [f"  and {rest:,} less probable {'class' if rest == 1 else 'classes'}"] if rest > 0 else []
    )


def _evidence(outputs: RowOutputs) -> ExplanationPart:
    """Return the weights of evidence; empty for models without them."""
    if not hasattr(outputs.inner, "explain"):
        return [], {}
    explanation = outputs.inner.explain(outputs.X)
    table = explanation.table
    columns = {
        name: np.asarray(table[name]).tolist() for name in ("feature", "value", "class", "weight")
    }
    pieces = [
        dict(zip(columns, piece, strict=True)) for piece in zip(*columns.values(), strict=True)
    ]
    for piece in pieces:
        if isinstance(piece["value"], float) and not math.isfinite(piece["value"]):
            piece["value"] = None
    facts = {
        "evidence": pieces,
        "ignorance": float(explanation.ignorance[0]),
        "conflict": float(explanation.conflict[0]),
    }
    calibrated = hasattr(outputs.inner, "calibrated_classifiers_")
    before = ", before calibration" if calibrated else ""
    heading = (
        f"The evidence{before} (ignorance: what the values of this row leave open between all "
        "classes, as average values do; conflict: how far they contradict each other; neither "
        "depends on how many such rows were seen):"
    )
    lines = [heading, explanation.text()]
    if calibrated:
        first = _plain(outputs.inner.calibrated_classifiers_[0].estimator.predict(outputs.X)[0])
        facts["prediction_before_calibration"] = first
        if first != outputs.classes[outputs.best]:
            lines.append(
                f"Calibration makes {outputs.classes[outputs.best]} more probable than {first}."
            )
    return lines, facts


def _imprecision(outputs: RowOutputs) -> ExplanationPart:
    """Return the imprecision at which each class could be best; only of imprecise discriminants."""
    last_step = outputs.last_step
    if not hasattr(last_step, "critical_c"):
        return [], {}
    largest = SEARCH_FACTOR * max(float(last_step.c_), 1.0)
    needed = last_step.critical_c(outputs.last_step_input, max_c=largest)[0]
    order = np.argsort(needed, kind="stable")[:MOST_LISTED].tolist()
    parts = [
        f"{outputs.classes[k]} from {needed[k]:.2f} on" if math.isfinite(needed[k])
        else f"{outputs.classes[k]} not below {largest:.0f}"
        for k in order
    ]  # fmt: skip
    line = (
        f"The model's imprecision is {last_step.c_:.2f}. Imprecision from which on each class "
        f"could be the best answer: {'; '.join(parts)}."
    )
    facts = [
        {"class": outputs.classes[k], "c": float(needed[k]) if math.isfinite(needed[k]) else None}
        for k in order
    ]
    return [line], {"imprecision": float(last_step.c_), "critical_c": facts}


def _splits(outputs: RowOutputs) -> ExplanationPart:
    """Return the splits from the root to the most probable class; only of nested dichotomies."""
    if not hasattr(outputs.last_step, "tree_"):
        return [], {}
    tree, best = outputs.last_step.tree_, outputs.classes[outputs.best]
    column = {label: k for k, label in enumerate(outputs.classes)}
    lines, facts = [f"The splits on the way to {best}:"], []
    for node, side in tree.path(best):
        start, split, stop = int(tree.start[node]), int(tree.split[node]), int(tree.stop[node])
        sides = [tree.leaves[start:split].tolist(), tree.leaves[split:stop].tolist()]
        sums = [float(outputs.proba[[column[label] for label in one]].sum()) for one in sides]
        probability = sums[side] / sum(sums) if sum(sums) > 0 else 0.5
        taken, other = sides[side], sides[1 - side]
        lines.append(
            f"  {probability:.2f} for {join_some(taken, 'or')} rather than {join_some(other, 'or')}"
        )
        facts.append({"for": taken, "rather_than": other, "probability": probability})
    return lines, {"splits": facts}


def _trees(outputs: RowOutputs) -> ExplanationPart:
    """Return how many trees agree; only of ensembles of nested dichotomies."""
    trees = getattr(outputs.last_step, "estimators_", None)
    if not trees or not all(hasattr(tree, "tree_") for tree in trees):
        return [], {}
    best = outputs.classes[outputs.best]
    agree = sum(tree.predict(outputs.last_step_input)[0] == best for tree in trees)
    return [f"{agree} of {len(trees)} trees find {best} most probable."], {
        "trees": len(trees),
        "trees_that_agree": agree,
    }


def _members(outputs: RowOutputs) -> ExplanationPart:
    """Return the prediction of each member and their conflict; only of a fusion."""
    last_step = outputs.last_step
    if not (hasattr(last_step, "members_") and hasattr(last_step, "conflict")):
        return [], {}
    conflict = float(last_step.conflict(outputs.last_step_input)[0])
    facts = []
    for (name, *_), (member, inputs) in zip(
        last_step.estimators, last_step._member_rows(outputs.last_step_input), strict=True
    ):
        proba = member.predict_proba(inputs)[0]
        k = int(np.argmax(proba))
        facts.append(
            {"member": name, "class": _plain(member.classes_[k]), "probability": float(proba[k])}
        )
    members = "; ".join(f"{f['member']}: {f['class']} ({f['probability']:.2f})" for f in facts)
    lines = [
        f"Predictions of the members, each alone: {members}.",
        f"Conflict between the members: {conflict:.2f} (0: none, 1: total).",
    ]
    return lines, {"members": facts, "conflict": conflict}


def _familiarity(outputs: RowOutputs) -> ExplanationPart:
    """Return how similar the row is to the training rows; only of novelty-aware models."""
    if not is_novelty_aware(outputs.model):
        return [], {}
    familiarity, rate = float(outputs.model.familiarity(outputs.X)[0]), float(outputs.model.rate)
    verdict = (
        "unlike the rows it was trained on, so that its bounds are widened"
        if familiarity < rate
        else "like rows it was trained on"
    )
    line = (
        f"Familiarity {familiarity:.3f}, {verdict} (this fraction of ordinary rows is as unusual "
        "or more so)."
    )
    return [line], {"familiarity": familiarity, "unfamiliar": familiarity < rate}


_REASONS: tuple[Callable[[RowOutputs], ExplanationPart], ...] = (
    _familiarity,
    _evidence,
    _imprecision,
    _splits,
    _trees,
    _members,
)


def _unseen(saved: Saved, row: pd.Series) -> ExplanationPart:
    """Return notes on text values that were not in the training rows."""
    known = saved.stamp.options.get("values", {})
    unseen = {
        name: row[name]
        for name, values in known.items()
        if isinstance(row.get(name), str) and row[name] not in values
    }
    lines = [
        f"note: {name} = {value} did not occur in training; it is encoded as none of the known "
        "values."
        for name, value in unseen.items()
    ]
    return lines, {"unseen_values": unseen} if unseen else {}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
