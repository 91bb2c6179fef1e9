"""The words and facts of `dubito explain`: what every model can tell, then what only some can."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from dubito._promises import bounds_meaning, is_conformal, is_novelty_aware
from dubito.cli._measures import side_by_side
from dubito.cli._test_rows import DEFAULT_COVERAGE, gives_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from dubito._checks import BoolArray, FloatArray
    from dubito._promises import BoundsMeaning
    from dubito.belief import Bounds
    from dubito.saving import Saved

#: Classes that are told one by one, the most probable first.
MOST_TOLD = 5
#: Classes that are named on each side of a split.
MOST_NAMED = 3
#: How far beyond the model's own imprecision other classes are looked for.
FAR = 10.0


class Asked(NamedTuple):
    """One row, and what the model answers about it; no bounds where it has none."""

    model: Any
    name: Any
    X: Any
    classes: list[Any]
    proba: FloatArray
    bounds: Bounds | None
    possible: BoolArray | None
    meaning: BoundsMeaning

    @property
    def best(self) -> int:
        """The most probable class, by column."""
        return int(np.argmax(self.proba))

    @property
    def conformal(self) -> bool:
        """Whether the set holds the true class at a promised rate."""
        return is_conformal(self.model)

    @property
    def inner(self) -> Any:
        """The model that gives the reasons, without what is wrapped around it."""
        model = self.model
        while (is_conformal(model) or is_novelty_aware(model)) and hasattr(model, "estimator_"):
            model = model.estimator_
        return model

    @property
    def core(self) -> Any:
        """The model itself, without its preparation."""
        return self.inner.steps[-1][1] if isinstance(self.inner, Pipeline) else self.inner

    @property
    def prepared(self) -> Any:
        """The row as the model itself takes it."""
        return self.inner[:-1].transform(self.X) if isinstance(self.inner, Pipeline) else self.X


Told = tuple[list[str], dict[str, Any]]


def explain_rows(
    saved: Saved, X: Any, frame: pd.DataFrame, level: float | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Explain each row, in words and as plain facts.

    Parameters
    ----------
    saved : Saved
        The model.
    X : DataFrame or ndarray
        Rows as the model takes them.
    frame : DataFrame
        The same rows by column name; its index names them.
    level : float or None
        Confidence level of the bounds.

    Returns
    -------
    list of (str, dict)
    """
    classes = list(saved.stamp.classes)
    proba = np.asarray(saved.model.predict_proba(X))
    bounds, sets = _doubt(saved.model, X, level)
    meaning = bounds_meaning(saved.model, level)
    explained = []
    for i, name in enumerate(frame.index):
        asked = Asked(
            saved.model,
            name,
            X.iloc[[i]] if hasattr(X, "iloc") else X[[i]],
            classes,
            proba[i],
            None if bounds is None else bounds[i],
            None if sets is None else sets[i],
            meaning,
        )
        explained.append(_explained(saved, asked, frame.iloc[i]))
    return explained


def _doubt(model: Any, X: Any, level: float | None) -> tuple[Bounds | None, BoolArray | None]:
    if not gives_bounds(model):
        return None, None
    at = {} if level is None else {"level": level}
    asked = {"coverage": DEFAULT_COVERAGE} if is_conformal(model) else at
    return model.predict_bounds(X, **at), np.asarray(model.predict_set(X, **asked))


def _explained(saved: Saved, asked: Asked, row: pd.Series) -> tuple[str, dict[str, Any]]:
    parts = [_what(asked), *(tell(asked) for tell in _REASONS), _unseen(saved, row)]
    lines = [line for told, _ in parts for line in told]
    facts: dict[str, Any] = {"row": asked.name if isinstance(asked.name, str) else int(asked.name)}
    for _, more in parts:
        facts |= more
    return "\n".join(lines), facts


def _what(asked: Asked) -> Told:
    """Tell the most probable classes and, where there are bounds, the doubt about the first."""
    order = np.argsort(-asked.proba, kind="stable")[:MOST_TOLD].tolist()
    best = asked.classes[asked.best]
    opening = f"row {asked.name}: most probable is {best} ({asked.proba[asked.best]:.2f})."
    told = [_class_facts(asked, k) for k in order]
    facts: dict[str, Any] = {"prediction": best, "classes": told}
    head = tuple(_head(asked.meaning, name) for name in told[0])
    table = side_by_side([head, *map(_cells, told)])
    if asked.bounds is None or asked.possible is None:
        nothing = "This model gives no bounds, so it cannot tell what its doubt is made of."
        return [opening, table, *_others(asked), nothing], facts
    possible = [asked.classes[k] for k in np.flatnonzero(asked.possible)]
    lower, upper = (float(side[0, asked.best]) for side in (asked.bounds.lower, asked.bounds.upper))
    width, others = upper - lower, 1 - upper
    facts["set"] = possible
    facts["bounds"] = asked.meaning.both
    facts["level"] = asked.meaning.level
    facts["doubt"] = {
        "total": 1 - lower,
        "between_the_bounds": width,
        "left_to_other_classes": others,
    }
    said = [f"{opening} {_verdict(asked, possible, best)}", table, *_others(asked)]
    return [*said, _in_parts(best, width, others, asked.meaning)], facts


def _verdict(asked: Asked, possible: list[Any], best: Any) -> str:
    """Say what the set is, and what it promises."""
    if asked.conformal:
        return f"The set with coverage {DEFAULT_COVERAGE:g}: {_named(possible)}."
    if possible == [best]:
        return "It is clearly the most probable."
    return f"Could be the best answer: {_named(possible)}."


def _head(meaning: BoundsMeaning, name: str) -> str:
    """Name a column of the table: bounds by what they are."""
    named = {
        "belief": {"lower": "belief", "upper": "plausibility"},
        "level": {"lower": f"lower at {meaning.level}", "upper": f"upper at {meaning.level}"},
    }
    return named.get(meaning.kind, {}).get(name, name.replace("_", " "))


def _cells(facts: dict[str, Any]) -> tuple[str, ...]:
    """Return what is told of a class as the cells of a table."""
    shown = {True: "yes", False: "no"}
    label, *rest = facts.values()
    return str(label), *(shown[x] if isinstance(x, bool) else f"{abs(x):.2f}" for x in rest)


def _in_parts(label: Any, width: float, others: float, meaning: BoundsMeaning) -> str:
    """Say what doubt is made of, so that the digits shown add up.

    The width is rounded as everywhere else: evidential models tell it once more, as ignorance.
    """
    total, between = round(width + others, 2), round(width, 2)
    if total == 0:
        return f"Doubt about {label}: less than 0.01."
    return (
        f"Doubt about {label}: {total:.2f} = {between:.2f} between {meaning.lower} and "
        f"{meaning.upper} + {total - between:.2f} left to other classes."
    )


def _class_facts(asked: Asked, k: int) -> dict[str, Any]:
    facts = {"class": asked.classes[k], "probability": float(asked.proba[k])}
    if asked.bounds is not None and asked.possible is not None:
        facts["lower"] = float(asked.bounds.lower[0, k])
        facts["upper"] = float(asked.bounds.upper[0, k])
        facts["in_the_set" if asked.conformal else "could_be_best"] = bool(asked.possible[k])
    return facts


def _others(asked: Asked) -> list[str]:
    rest = len(asked.classes) - MOST_TOLD
    return (
        [f"  and {rest:,} less probable {'class' if rest == 1 else 'classes'}"] if rest > 0 else []
    )


def _evidence(asked: Asked) -> Told:
    """Tell what speaks for what, of models that weigh evidence."""
    if not hasattr(asked.inner, "explain"):
        return [], {}
    explanation = asked.inner.explain(asked.X)
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
    calibrated = hasattr(asked.inner, "pairs_")
    before = ", before calibration" if calibrated else ""
    heading = (
        f"The evidence{before} (ignorance: what the values of this row leave open between all "
        "classes, as average values do; conflict: how far they contradict each other; neither "
        "counts the rows that were seen):"
    )
    lines = [heading, explanation.text()]
    if calibrated:
        first = _plain(asked.inner.pairs_[0].estimator.predict(asked.X)[0])
        facts["prediction_before_calibration"] = first
        if first != asked.classes[asked.best]:
            lines.append(
                f"Calibration makes {asked.classes[asked.best]} more probable than {first}."
            )
    return lines, facts


def _imprecision(asked: Asked) -> Told:
    """Tell how much more imprecision would let other classes be best, of discriminants."""
    core = asked.core
    if not hasattr(core, "critical_c"):
        return [], {}
    largest = FAR * max(float(core.c_), 1.0)
    needed = core.critical_c(asked.prepared, max_c=largest)[0]
    order = np.argsort(needed, kind="stable")[:MOST_TOLD].tolist()
    told = [
        f"{asked.classes[k]} from {needed[k]:.2f} on" if math.isfinite(needed[k])
        else f"{asked.classes[k]} not below {largest:.0f}"
        for k in order
    ]  # fmt: skip
    line = (
        f"The model's imprecision is {core.c_:.2f}. Imprecision from which on each class could be "
        f"the best answer: {'; '.join(told)}."
    )
    facts = [
        {"class": asked.classes[k], "c": float(needed[k]) if math.isfinite(needed[k]) else None}
        for k in order
    ]
    return [line], {"imprecision": float(core.c_), "critical_c": facts}


def _splits(asked: Asked) -> Told:
    """Tell the splits on the way to the most probable class, of nested dichotomies."""
    if not hasattr(asked.core, "tree_"):
        return [], {}
    tree, best = asked.core.tree_, asked.classes[asked.best]
    column = {label: k for k, label in enumerate(asked.classes)}
    lines, facts = [f"The splits on the way to {best}:"], []
    for node, side in tree.path(best):
        start, split, stop = (int(part[node]) for part in (tree.start, tree.split, tree.stop))
        sides = [tree.leaves[start:split].tolist(), tree.leaves[split:stop].tolist()]
        shares = [float(asked.proba[[column[label] for label in part]].sum()) for part in sides]
        share = shares[side] / sum(shares) if sum(shares) > 0 else 0.5
        taken, other = sides[side], sides[1 - side]
        lines.append(f"  {share:.2f} for {_named(taken)} rather than {_named(other)}")
        facts.append({"for": taken, "rather_than": other, "probability": share})
    return lines, {"splits": facts}


def _trees(asked: Asked) -> Told:
    """Tell how many trees agree, of ensembles of nested dichotomies."""
    trees = getattr(asked.core, "estimators_", None)
    if not trees or not all(hasattr(tree, "tree_") for tree in trees):
        return [], {}
    best = asked.classes[asked.best]
    agree = sum(tree.predict(asked.prepared)[0] == best for tree in trees)
    return [f"{agree} of {len(trees)} trees find {best} most probable."], {
        "trees": len(trees),
        "trees_that_agree": agree,
    }


def _members(asked: Asked) -> Told:
    """Tell what each member says and how far they contradict each other, of a fusion."""
    core = asked.core
    if not (hasattr(core, "members_") and hasattr(core, "conflict")):
        return [], {}
    conflict = float(core.conflict(asked.prepared)[0])
    facts = []
    for (name, *_), (member, part) in zip(
        core.estimators, core._inputs(asked.prepared), strict=True
    ):
        proba = member.predict_proba(part)[0]
        k = int(np.argmax(proba))
        facts.append(
            {"member": name, "class": _plain(member.classes_[k]), "probability": float(proba[k])}
        )
    said = "; ".join(f"{f['member']}: {f['class']} ({f['probability']:.2f})" for f in facts)
    lines = [
        f"The members alone say {said}.",
        f"They contradict each other by {conflict:.2f} (0: not at all, 1: entirely).",
    ]
    return lines, {"members": facts, "conflict": conflict}


def _familiarity(asked: Asked) -> Told:
    """Tell whether the row is like those of the training, of models that know."""
    if not is_novelty_aware(asked.model):
        return [], {}
    familiarity, rate = float(asked.model.familiarity(asked.X)[0]), float(asked.model.rate)
    verdict = (
        "unlike the rows it was trained on, so that its bounds are widened"
        if familiarity < rate
        else "like rows it was trained on"
    )
    line = (
        f"Familiarity {familiarity:.3f}, {verdict} (of ordinary rows, such a fraction is as "
        "unusual or more)."
    )
    return [line], {"familiarity": familiarity, "unfamiliar": familiarity < rate}


_REASONS: tuple[Callable[[Asked], Told], ...] = (
    _familiarity,
    _evidence,
    _imprecision,
    _splits,
    _trees,
    _members,
)


def _unseen(saved: Saved, row: pd.Series) -> Told:
    """Tell of texts that training had not: they count as none of the known ones."""
    known = saved.stamp.options.get("values", {})
    unseen = {
        name: row[name]
        for name, values in known.items()
        if isinstance(row.get(name), str) and row[name] not in values
    }
    lines = [
        f"note: {name} = {value} did not occur in training; it counts as none of the values there."
        for name, value in unseen.items()
    ]
    return lines, {"unseen_values": unseen} if unseen else {}


def _named(labels: list[Any]) -> str:
    """Name a few classes."""
    if len(labels) > MOST_NAMED + 1:
        shown = ", ".join(map(str, labels[:MOST_NAMED]))
        return f"{shown} or {len(labels) - MOST_NAMED} others"
    words = list(map(str, labels))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
