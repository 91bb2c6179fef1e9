"""The evidence behind a prediction, together and piece by piece (Denœux 2019)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dubito._labels import as_labels, label_columns
from dubito._validation import check_choice, check_rows_match
from dubito._wording import name_some, shorten
from dubito.plots._drawing import SingleAxesDisplay, new_axes, set_name
from dubito.plots._evidence_views import MassCurves, Waterfall, WeightCurves
from dubito.plots._plane import span

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import AnyArray, FloatArray

_KINDS = ("waterfall", "weight", "mass")
_N_POINTS = 201
#: Largest number of curves of masses: the sets of three classes. Of more sets, those of the
#: smallest masses are summed in one curve.
_MOST_SETS = 7
#: Longest name and longest value beside a bar, in characters.
_LONGEST = 30


class EvidenceDisplay(SingleAxesDisplay):
    r"""Weights of evidence: of one prediction, or of one piece over its values.

    ========= =====================================================================================
    `kind`    what is drawn
    ========= =====================================================================================
    waterfall All pieces of evidence behind one prediction, the largest first. Bars to the right
              are for a class; to the left against it or, of two classes, for the other. Each
              begins where the last one ended, and together they reach :math:`w^+_k-w^-_k`: of two
              classes the log-odds, otherwise the class's output less the mean of all outputs.
    weight    The weight of one piece against its value, and the cut-off at which it changes sides
              (Denœux 2019, figure 6). One line for two classes, else one per class. Ticks are rows.
    mass      The masses that one piece alone gives to sets of classes (figures 7 and 11).
    ========= =====================================================================================

    Make one with `from_estimator` or `from_explanation`.

    Parameters
    ----------
    view : Waterfall, WeightCurves or MassCurves
        The arrays that are drawn, as `from_estimator` computes them.

    Attributes
    ----------
    view : named tuple
        As given. Of a waterfall: ``names``, ``weight``, ``target``, ``classes``, ``headline``; of
        weights: ``value``, ``weight``, ``cutoffs``, ``points``, ``column``, ``classes``,
        ``label``; of masses: ``value``, ``mass``, ``focal``, ``names``, ``label``.
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    bars_ : matplotlib bar container
        Of a waterfall: the pieces, then all together.
    lines_ : list of matplotlib lines
        Of weights and masses.
    cutoff_lines_, ticks_ : list of matplotlib lines
        Of weights: the cut-offs within the axes, and the rows, class by class.

    Notes
    -----
    Figure 6 of Denœux 2019 puts rows of the class that positive weights support at the lower edge;
    here they are at the upper edge, where the weights are.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.evidence import EvidentialClassifier
    >>> from dubito.plots import EvidenceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ev = EvidentialClassifier(LogisticRegression(tol=1e-8, max_iter=1000)).fit(X, y)
    >>> display = EvidenceDisplay.from_estimator(ev, X[70:71], ax=Figure().subplots())
    >>> for name, weight in zip(display.view.names, display.view.weight):
    ...     print(f"{name}: {weight:+.2f}")
    petal length (cm) = 4.8: +2.33
    petal width (cm) = 1.8: +0.70
    sepal width (cm) = 3.2: -0.60
    sepal length (cm) = 5.9: -0.52
    >>> display.ax_.get_xlabel()
    '← against 2     weight of evidence     for 2 →'
    """

    bars_: Any
    lines_: list[Any]
    cutoff_lines_: list[Any]
    ticks_: list[Any]

    def __init__(self, view: Waterfall | WeightCurves | MassCurves) -> None:
        self.view = view

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: npt.ArrayLike | None = None,
        kind: str = "waterfall",
        piece: int | str | None = None,
        target: Any = None,
        max_pieces: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the evidence of a fitted classifier.

        Parameters
        ----------
        estimator : EvidentialClassifier
            Fitted.
        X : array-like of shape (n, features), or data frame
            For a waterfall the one row to explain; else rows whose range the axes cover.
        y : array-like of shape (n,), optional
            For weights: labels of the rows, which are then drawn class by class.
        kind : {"waterfall", "weight", "mass"}, default "waterfall"
            What to draw, as listed for the class.
        piece : int or str, optional
            For weights and masses: which piece of evidence, by number or by name as in
            ``estimator.piece_names_``. Its value is what enters the last layer: behind a scaler
            the scaled value, in a network the output of a hidden unit.
        target, max_pieces
            For waterfalls, as in `from_explanation`.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        EvidenceDisplay
        """
        check_choice(kind, "kind", _KINDS)
        _check_classifier(estimator)
        if kind == "waterfall":
            if piece is not None:
                raise ValueError(
                    "a waterfall draws all pieces of evidence; leave piece out, or pass "
                    'kind="weight" or kind="mass".'
                )
            options = {"target": target, "max_pieces": max_pieces, "ax": ax, **kwargs}
            return cls.from_explanation(estimator.explain(X), **options)
        number = _piece_number(estimator, piece)
        if kind == "weight":
            return cls(_weight_curves(estimator, X, number, y)).plot(ax=ax, **kwargs)
        return cls(_mass_curves(estimator, X, number)).plot(ax=ax, **kwargs)

    @classmethod
    def from_explanation(
        cls,
        explanation: Any,
        *,
        target: Any = None,
        max_pieces: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw one explained row as a waterfall.

        Parameters
        ----------
        explanation : Explanation
            Of one row, as ``classifier.explain(X)[0]``.
        target : label, optional
            The class that bars to the right support; by default the second of two classes and
            the most plausible of more.
        max_pieces : int, default 10
            Bars drawn one by one, the largest; the others are added up as "the other n".
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        EvidenceDisplay
        """
        return cls(_waterfall(explanation, target, max_pieces)).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the view.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default new ones. The names of a waterfall's bars are to their
            left, the legend of the other kinds to their right: a figure made with
            ``layout="constrained"`` has space for them.
        **kwargs
            Passed on to ``ax.barh`` for a waterfall, to ``ax.plot`` for the lines of the others.

        Returns
        -------
        EvidenceDisplay
            Itself.
        """
        self._set_axes(ax if ax is not None else new_axes(height=_height(self.view)))
        for name, artists in self.view.draw(self.ax_, kwargs).items():
            setattr(self, name, artists)
        return self


def _height(view: Waterfall | WeightCurves | MassCurves) -> float:
    """Return the height of a figure, for a waterfall by its number of bars."""
    return 1.5 + 0.36 * (len(view.names) + 1) if isinstance(view, Waterfall) else 4.8


def _check_classifier(classifier: Any) -> None:
    for method in ("explain", "features", "model_"):
        if not hasattr(classifier, method):
            raise TypeError(
                f"{type(classifier).__name__} has no {method}: its evidence cannot be read. Wrap "
                "the classifier in dubito.evidence.EvidentialClassifier and fit that."
            )


def _waterfall(explanation: Any, target: Any, max_pieces: Any) -> Waterfall:
    if len(explanation) != 1:
        raise ValueError(
            f"a waterfall explains one row; got {len(explanation)}. Pass X[:1], or draw one "
            "for each."
        )
    if not isinstance(max_pieces, Integral) or max_pieces < 1:
        raise ValueError(f"max_pieces must be a whole number above 0. Got {max_pieces!r} instead.")
    classes = explanation.classes.tolist()
    k = _target_column(explanation, classes, target)
    signed = explanation.weights[0, :, k]
    if len(classes) == 2:
        signed = signed - explanation.weights[0, :, 1 - k]
    names = list(map(_with_value, explanation.names, explanation.values[0]))
    names, weight = _largest(names, signed, int(max_pieces))
    lower, upper = explanation.bounds.lower[0, k], explanation.bounds.upper[0, k]
    headline = (
        f"{classes[k]}: belief {lower:.2f}, plausibility {upper:.2f}\n"
        f"ignorance {explanation.ignorance[0]:.2f}, conflict {explanation.conflict[0]:.2f}"
    )
    return Waterfall(tuple(names), weight, k, tuple(classes), headline)


def _target_column(explanation: Any, classes: list[Any], target: Any) -> int:
    if target is None:
        return 1 if len(classes) == 2 else int(explanation.bounds.upper[0].argmax())
    if target not in classes:
        known = name_some(classes, shown=10, rest=", …")
        raise ValueError(f"target must be a class ({known}). Got {target!r} instead.")
    return classes.index(target)


def _largest(names: list[str], weight: FloatArray, most: int) -> tuple[list[str], FloatArray]:
    """Return the `most` largest weights in order and, if several others are left, their sum."""
    order = np.argsort(-np.abs(weight), kind="stable")
    rest = order[most:]
    if len(rest) < 2:
        return [names[j] for j in order], weight[order]
    largest = [names[j] for j in order[:most]]
    joined = np.append(weight[order[:most]], weight[rest].sum())
    return [*largest, f"the other {len(rest)}"], joined


def _with_value(name: Any, value: Any) -> str:
    if value is None:
        return shorten(name, _LONGEST)
    shown = f"{value:.4g}" if isinstance(value, Real) else shorten(value, _LONGEST)
    return f"{shorten(name, _LONGEST)} = {shown}"


def _piece_number(classifier: Any, piece: Any) -> int:
    names = list(classifier.piece_names_)
    if piece is None and len(names) == 1:
        return 0
    if isinstance(piece, int | np.integer) and -len(names) <= piece < len(names):
        return int(piece) % len(names)
    if piece in names:
        return names.index(piece)
    shown = name_some(names, shown=10, rest=", …")
    raise ValueError(
        f"piece must be one piece of evidence, by number from 0 to {len(names) - 1} or by name "
        f"({shown}). Got {piece!r} instead."
    )


class _Sweep(NamedTuple):
    """The x axis of a plot of one piece: values in rising order, features there, values in X."""

    value: FloatArray
    phi: Any
    points: FloatArray
    label: str


def _sweep(classifier: Any, X: Any, piece: int, n_points: int) -> _Sweep:
    """Return features over the range of one piece, with all others at their mean.

    For a piece of several features these are the features of the rows, ordered by their input.
    """
    members = list(classifier.model_.members[piece])
    name = str(classifier.piece_names_[piece])
    phi = classifier.features(X)
    if len(members) > 1:
        return _sweep_rows(classifier.explain(X).values[:, piece], phi, name)
    column = phi[:, members]
    points = np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    value = np.linspace(*span(points), n_points)
    lines = _lines(classifier, _rows_with(classifier, members[0], value[[0, -1]]), piece)
    # Values at the cut-offs are added: masses have kinks there.
    cutoffs = [_crossings(value[[0, -1]], line) for line in lines.T]
    value = np.unique(np.concatenate([value, *cutoffs]))
    label = name if _is_input(X, phi) else f"{name} (as it enters the last layer)"
    return _Sweep(value, _rows_with(classifier, members[0], value), points, label)


def _rows_with(classifier: Any, feature: int, value: FloatArray) -> FloatArray:
    """Return rows of mean features, with given values of one of them."""
    rows = np.tile(classifier.model_.mean, (len(value), 1))
    rows[:, feature] = value
    return rows


def _sweep_rows(values: AnyArray, phi: Any, name: str) -> _Sweep:
    """Return the rows in the order of the input column that a group is computed from."""
    if not all(isinstance(value, Real) for value in values):
        raise ValueError(
            f"{name!r} joins several features that are not all made of one input of numbers, so "
            "it has no value to be drawn against. A waterfall shows its weight in one row."
        )
    points = values.astype(np.float64)
    value, first = np.unique(points, return_index=True)
    value, first = value[np.isfinite(value)], first[np.isfinite(value)]
    if len(value) < 2:
        raise ValueError(
            f"{name!r} is drawn through its values in X; pass rows with at least two of them."
        )
    return _Sweep(value, phi[first], points, name)


def _is_input(X: Any, phi: Any) -> bool:
    """Return whether the features are the input itself."""
    given = np.asarray(X)
    return given.dtype.kind in "iuf" and not hasattr(phi, "toarray") and np.array_equal(given, phi)


def _weight_curves(classifier: Any, X: Any, piece: int, y: npt.ArrayLike | None) -> WeightCurves:
    sweep = _sweep(classifier, X, piece, 2)  # a single feature's weights are straight lines
    weight = _lines(classifier, sweep.phi, piece)
    column = None
    if y is not None:
        labels = as_labels(y, "y")
        check_rows_match("y", len(labels), "X", len(sweep.points))
        column = label_columns(labels, len(classifier.classes_), classifier.classes_)
    cutoffs = tuple(_crossings(sweep.value, line) for line in weight.T)
    classes = tuple(classifier.classes_.tolist())
    return WeightCurves(sweep.value, weight, cutoffs, sweep.points, column, classes, sweep.label)


def _lines(classifier: Any, phi: Any, piece: int) -> FloatArray:
    """Return the weights of a piece, (t, L): for each class; of two classes, second minus first."""
    weight = classifier.model_.weights(phi)[:, piece]
    return weight[:, 1:] - weight[:, :1] if weight.shape[1] == 2 else weight


def _crossings(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the values at which a piecewise linear curve changes sign."""
    v, w = value[weight != 0], weight[weight != 0]
    before = np.flatnonzero(np.sign(w[1:]) != np.sign(w[:-1]))
    fraction = w[before] / (w[before] - w[before + 1])
    return v[before] + fraction * (v[before + 1] - v[before])


def _mass_curves(classifier: Any, X: Any, piece: int) -> MassCurves:
    sweep = _sweep(classifier, X, piece, _N_POINTS)
    batch = classifier.model_.piece_mass(sweep.phi, piece)
    order = np.argsort(batch.focal.sum(axis=1), kind="stable")
    focal, mass = batch.focal[order], batch.mass[:, order]
    rest = np.zeros(len(focal), dtype=bool)
    if len(focal) > _MOST_SETS:
        rest[np.argsort(-mass.max(axis=0), kind="stable")[_MOST_SETS - 1 :]] = True
    names = [set_name(inside, batch.frame.labels) for inside in focal[~rest]]
    if rest.any():
        names.append(f"the other {rest.sum()}")
        mass = np.column_stack([mass[:, ~rest], mass[:, rest].sum(axis=1)])
        focal = np.vstack([focal[~rest], np.zeros(focal.shape[1], dtype=bool)])
    return MassCurves(sweep.value, mass, focal, tuple(names), sweep.label)
