"""Other implementations of trees of classes, for `bench_dichotomies.py`.

The obvious implementation of nested dichotomies: recursive, with scikit-learn's LogisticRegression
at each node. And two packages for many labels, where they are installed (`pip install
dubito[bench]`): napkinXC, whose hierarchical softmax is a nested dichotomy when its tree is binary,
and omikuji, whose label trees rank a few labels and give no distribution.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse as sp
from sklearn.linear_model import LogisticRegression

try:
    from napkinxc.models import HSM
except ImportError:
    HSM = None

try:
    import omikuji
except ImportError:
    omikuji = None

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dubito.dichotomies import DichotomyTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Node:
    """A binary model of two groups of classes, and the nodes or classes below it."""

    model: LogisticRegression
    left: Node | int
    right: Node | int

    @classmethod
    def grow(cls, nested: Any, X: Any, y: Ints) -> Node | int:
        """Return a node fitted to the rows of these classes, with the nodes below it."""
        if not isinstance(nested, tuple):
            return nested
        event = np.isin(y, labels(nested[1]))
        model = LogisticRegression(max_iter=1_000).fit(X, event)
        left = cls.grow(nested[0], X[~event], y[~event])
        return cls(model, left, cls.grow(nested[1], X[event], y[event]))

    def spread(self, X: Any, proba: Floats, out: Floats) -> None:
        """Divide the probability of this node among the classes below it, in `out`."""
        sides = self.model.predict_proba(X)
        for side, child in enumerate((self.left, self.right)):
            below = proba * sides[:, side]
            if isinstance(child, Node):
                child.spread(X, below, out)
            else:
                out[:, child] = below


def labels(nested: Any) -> list[int]:
    """List the classes of nested tuples."""
    if not isinstance(nested, tuple):
        return [nested]
    return labels(nested[0]) + labels(nested[1])


@dataclass
class Obvious:
    """Nested dichotomies of classes 0, ..., K - 1 by their definition."""

    tree: DichotomyTree
    root: Any = None

    def fit(self, X: Any, y: Ints) -> Obvious:
        """Fit a model at each node."""
        self.root = Node.grow(self.tree.to_nested(), X, y)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return products of probabilities along the paths."""
        out = np.empty((X.shape[0], self.tree.n_classes))
        self.root.spread(X, np.ones(X.shape[0]), out)
        return out


class NapkinSoftmax:
    """napkinXC's hierarchical softmax on a given binary tree of classes 0, ..., K - 1.

    Its own settings, C=10 and liblinear's tolerance of 0.1, but for the number of threads.
    """

    def __init__(self, tree: DichotomyTree, threads: int = 1) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._n_classes = tree.n_classes
        self._model = HSM(self._folder.name, tree_structure=napkin_tree(tree), threads=threads)

    def fit(self, X: Any, y: Ints) -> NapkinSoftmax:
        """Fit; the package always writes the model to a folder."""
        with silence():
            self._model.fit(sp.csr_matrix(X), y.tolist())
        return self

    def load(self) -> NapkinSoftmax:
        """Read the model back from its folder, once for all predictions."""
        with silence():
            self._model.load()
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of all classes, in the order of the classes."""
        out = np.zeros((X.shape[0], self._n_classes))
        with silence():
            pairs = self._model.predict_proba(sp.csr_matrix(X), top_k=self._n_classes)
        for row, found in zip(out, pairs, strict=True):
            where, proba = zip(*found, strict=True)
            row[list(where)] = proba
        return out


def napkin_tree(tree: DichotomyTree) -> list[tuple[int, int, int]]:
    """Return (parent, node, label) triples for napkinXC; -1 is no parent, or no label."""
    leaf = tree.n_nodes + np.arange(tree.n_classes)
    listed = [(int(parent), node, -1) for node, parent in enumerate(tree.parent)]
    for node, children in enumerate(zip(tree.left, tree.right, strict=True)):
        for child in children:
            if child < 0:
                position = -1 - int(child)
                listed.append((node, int(leaf[position]), int(tree.leaves[position])))
    return listed


class OmikujiTrees:
    """omikuji's label trees, with its own settings but for the numbers of trees and threads."""

    def __init__(self, n_trees: int, threads: int = 1) -> None:
        self._n_trees, self._threads = n_trees, threads
        self._model: Any = None

    def fit(self, path: Path) -> OmikujiTrees:
        """Fit to a file written by `write_rows`: the package reads no arrays."""
        settings = omikuji.Model.default_hyper_param()
        settings.n_trees = self._n_trees
        with silence():
            self._model = omikuji.Model.train_on_data(str(path), settings, n_threads=self._threads)
        return self

    def predict(self, X: Any) -> Ints:
        """Return the label ranked first for each row."""
        X = sp.csr_array(X)
        found = np.empty(X.shape[0], dtype=np.intp)
        for i, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
            pairs = zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True)
            ranked = self._model.predict(list(pairs), top_k=1)
            found[i] = ranked[0][0] if ranked else -1
        return found


def write_rows(path: Path, X: Any, y: Ints, n_classes: int) -> None:
    """Write rows and labels in the text format of the extreme classification repository."""
    X = sp.csr_array(X)
    with path.open("w", encoding="ascii") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {n_classes}\n")
        for label, start, stop in zip(y, X.indptr[:-1], X.indptr[1:], strict=True):
            pairs = zip(X.indices[start:stop], X.data[start:stop], strict=True)
            file.write(f"{label} " + " ".join(f"{j}:{v:.8g}" for j, v in pairs) + "\n")


@contextmanager
def silence() -> Iterator[None]:
    """Suppress the output of compiled code, which would mix with the table of results."""
    kept = [os.dup(stream) for stream in (1, 2)]
    try:
        with Path(os.devnull).open("w", encoding="ascii") as nowhere:
            for stream in (1, 2):
                os.dup2(nowhere.fileno(), stream)
        yield
    finally:
        for stream, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, stream)
            os.close(copy)
