"""Three weak detectors, one honest answer.

Each detector sees one third of an 8 x 8 digit. Its probabilities, discounted by how often it
errs, become belief masses; Dempster's rule fuses them. What comes out knows when to doubt.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

from dubito.belief import MassBatch, conflict, dempster, discount, nonspecificity
from dubito.decision import maximax, reject, set_utility
from dubito.metrics import aurc, coverage, error_reject_curve, mean_set_size, u65, u80

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dubito.metrics import ErrorRejectCurve

    Floats = NDArray[np.float64]

RED = "#b3261e"
STRIPS = {"top": slice(0, 24), "middle": slice(24, 40), "bottom": slice(40, 64)}


@dataclass(frozen=True)
class Detector:
    """A classifier on a part of the picture, and how often it errs."""

    part: slice
    model: LogisticRegression
    error: float

    @classmethod
    def train(cls, X: Floats, y: NDArray[np.int_], part: slice) -> Detector:
        """Fit on one part; the error rate is cross-validated."""
        model = LogisticRegression(max_iter=1000)
        error = float(np.mean(cross_val_predict(model, X[:, part], y, cv=5) != y))
        return cls(part, model.fit(X[:, part], y), error)

    def proba(self, X: Floats) -> Floats:
        """Return the probabilities of the classes."""
        return self.model.predict_proba(X[:, self.part])

    def masses(self, X: Floats) -> MassBatch:
        """Return the probabilities as masses, the error rate set aside for ignorance."""
        return discount(MassBatch.from_proba(self.model.classes_, self.proba(X)), self.error)


def main() -> None:
    """Train, fuse, decide, and show what doubt buys."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path, default=Path("demo/demo.png"))
    picture = parser.parse_args().picture

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X / 16, y, test_size=0.5, stratify=y, random_state=0
    )
    detectors = {name: Detector.train(X_train, y_train, part) for name, part in STRIPS.items()}

    print(__doc__)
    print(f"{len(X_train)} digits to learn from, {len(X_test)} to judge by\n")
    print("                 accuracy   area under risk-coverage (smaller is better)")
    curves = {}
    probas = {name: detector.proba(X_test) for name, detector in detectors.items()}
    probas["average"] = np.mean(list(probas.values()), axis=0)
    for name, proba in probas.items():
        curves[name] = judge(name, proba, proba.max(axis=1), y_test)

    sources = [detector.masses(X_test) for detector in detectors.values()]
    fused = dempster(*sources)
    bounds = fused.bounds()
    curves["fused"] = judge("fused", bounds.upper, bounds.lower.max(axis=1), y_test)

    sets = set_utility(fused, "u80")
    doubtful = sets.sum(axis=1) > 1
    wrong = maximax(bounds) != y_test
    print(
        f"\nForced to answer, the fused detector errs on {wrong.mean():.1%}. Allowed to name a set"
        f"\n(a pair is worth 0.8), it doubts on {doubtful.mean():.1%} of the digits, "
        f"mean set {mean_set_size(sets):.2f}:"
        f"\nits sets hold the truth in {coverage(y_test, sets):.1%}; its best guess errs on "
        f"{wrong[doubtful].mean():.0%} where it doubts,\nand on {wrong[~doubtful].mean():.1%} "
        f"where it does not. u65 {u65(y_test, sets):.3f}, u80 {u80(y_test, sets):.3f}.\n"
    )
    for cost in (0.6, 0.4, 0.2):
        declined = reject(bounds, cost)
        print(
            f"If asking a person costs {cost:g} of an error, it declines {declined.mean():.1%} "
            f"and errs on {wrong[~declined].mean():.1%} of the rest."
        )
    kappa, ignorance = conflict(*sources), nonspecificity(fused)
    torn = int(np.argmax(np.where(doubtful, kappa, -1)))
    print(
        f"\nThe detectors disagree most on digit {torn} (conflict {kappa[torn]:.2f}, "
        f"ignorance {ignorance[torn]:.2f} bits), truly a {y_test[torn]}:"
    )
    for k in np.flatnonzero(sets[torn]):
        print(
            f"  a {k}? belief {bounds.lower[torn, k]:.2f}, plausibility {bounds.upper[torn, k]:.2f}"
        )

    draw(curves, bounds.lower[torn], bounds.upper[torn], X_test[torn], picture)
    print(f"\nPicture: {picture}")


def judge(name: str, scores: Floats, confidence: Floats, y: NDArray[np.int_]) -> ErrorRejectCurve:
    """Print one line and return the error-reject curve."""
    predicted = scores.argmax(axis=1)
    area = aurc(y, predicted, confidence)
    print(f"  {name:<12} {np.mean(predicted == y):9.1%} {area:10.4f}")
    return error_reject_curve(y, predicted, confidence)


def draw(
    curves: dict[str, ErrorRejectCurve], lower: Floats, upper: Floats, image: Floats, picture: Path
) -> None:
    """Draw what doubt buys, and one digit it is about."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11, 3.6), width_ratios=[2.2, 0.9, 1.6], layout="constrained"
    )
    styles = {"average": {"color": "0.4", "ls": "--"}, "fused": {"color": RED, "lw": 2.5}}
    for name, curve in curves.items():
        shown = curve.rejection <= 0.6
        style = styles.get(name, {"color": "0.7"})
        label = {"average": "probabilities averaged", "fused": "masses fused"}.get(name)
        left.plot(curve.rejection[shown], curve.error[shown], label=label, **style)
    left.lines[0].set_label("one detector alone")
    left.legend(frameon=False)
    left.set(xlabel="share declined", ylabel="error on the rest", xlim=(0, 0.6), ylim=(0, None))
    left.set_title("What doubt buys", loc="left")
    middle.imshow(image.reshape(8, 8), cmap="gray_r")
    for edge in (2.5, 4.5):
        middle.axhline(edge, color=RED, lw=0.8, ls=":")
    middle.set(xticks=[], yticks=[])
    middle.set_title("They disagree", loc="left")
    digits = np.arange(10)
    right.barh(digits, upper - lower, left=lower, color="#e8b4b0", label="ignorance")
    right.barh(digits, lower, color=RED, label="belief")
    right.set(xlabel="belief to plausibility", yticks=digits, xlim=(0, 0.6))
    right.invert_yaxis()
    right.set_title("What may it be?", loc="left")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    main()
