"""Data sets of the benchmark of default pictures: points, labels, and the truth where it is known.

`draw(name, folder, noise)` returns a set by its name, `roll:20000` with another number of points.
All random numbers have fixed seeds.
"""

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.csgraph
from _harness import cells as blood_cells
from _harness import mnist as mnist_digits
from _harness import overlapping
from scipy import sparse

import heatsketch as hs

BRANCHES, TREE_FEATURES = 10, 60
BRANCH_FEATURES, BRANCH_LENGTH, TREE_NOISE = 4, 50.0, 7.0  # a branch and the noise in a feature
PARENTS = (None, 0, 0, 1, 1, 2, 2, 4, 4, 6)  # the branch at whose end each one starts
WALK_NOISE = 4.0  # the default of PHATE's gen_dla, whose steps are uniform in [-1, 1]
TEXT_PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib", "pandas", "numba", "networkx", "h5py")
TEXTS_PER_PACKAGE, SHORTEST_TEXT = 500, 40  # words


class Data(NamedTuple):
    """A data set.

    Attributes
    ----------
    X : array or CSR matrix (n, d)
    label : array of int (n,), optional
    coordinates : array (n, 2), optional
        Intrinsic coordinates, which a picture should show.
    distances : callable, optional
        (i, j) -> true distances of pairs of points.
    """

    X: Any
    label: Any = None
    coordinates: Any = None
    distances: Callable[[Any, Any], Any] | None = None

    def rows(self, chosen):
        """Return the set with only these rows of X."""
        return self._replace(X=self.X[chosen])


# --- tables, cells, pictures, text ------------------------------------------------------------


def wine(n):
    """Return the 178 wines of scikit-learn, 13 standardised features, 3 growers."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    X, label = load_wine(return_X_y=True)
    return Data(StandardScaler().fit_transform(X)[:n], label[:n])


def cells(n):
    """Return the 700 blood cells that scanpy ships, 50 principal components, 10 types."""
    return Data(*blood_cells(n))


def digits(n):
    X, label = hs.datasets.digits()
    return Data(X[:n], label[:n])


def mnist(n, folder=None):
    """Return the first n test digits of MNIST from a folder of IDX files, 784 pixels, float32."""
    if folder is None:
        raise ImportError("MNIST", name="no --mnist FOLDER")
    X, label = mnist_digits(folder)
    return Data(X[:n].astype(np.float32), label[:n])


def text(n):
    """Return the docstrings of installed packages as TF-IDF, sparse; labels are the packages."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, label = [], []
    for code, package in enumerate(TEXT_PACKAGES):
        found = _docstrings(package)
        order = np.random.default_rng(code).permutation(len(found))[:TEXTS_PER_PACKAGE]
        texts += [found[i] for i in order]
        label += [code] * len(order)
    rule = TfidfVectorizer(min_df=3, max_df=0.3, stop_words="english", token_pattern=r"[a-z]{3,}")
    X, label = rule.fit_transform(texts), np.array(label)
    kept = np.flatnonzero(np.diff(X.indptr) > 0)
    kept = np.random.default_rng(0).permutation(kept)[:n]
    return Data(sparse.csr_matrix(X[kept]), label[kept])


def _docstrings(package):
    """Return the longer docstrings of a package, each once, in the order of files and lines."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return []
    return docstrings_of(Path(found.origin).parent, SHORTEST_TEXT)


def docstrings_of(folder, shortest):
    """Return the docstrings of at least so many words in a folder, each once, in order."""
    texts = {}
    for path in sorted(folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                said = ast.get_docstring(node) or ""
                if len(said.split()) >= shortest:
                    texts[said] = None
    return list(texts)


# --- shapes -----------------------------------------------------------------------------------


def tree(n):
    """Return the tree of PHATE's paper, as it describes it: 10 branches in 60 dimensions.

    Every branch progresses linearly in four features of its own, from the end of another one; 40
    more points are at each of the 11 ends (28 % of n); noise of 7 is added to every feature. The
    true distance of two points is that along the tree, in branches.
    """
    rng = np.random.default_rng(37)
    at_ends = round(n * 40 / 1440)
    on_branch = (n - at_ends * (BRANCHES + 1)) // BRANCHES
    branch = np.repeat(np.arange(BRANCHES), on_branch + at_ends)
    place = np.tile(np.append(np.linspace(0, 1, on_branch), np.ones(at_ends)), BRANCHES)
    branch, place = np.append(np.zeros(at_ends, int), branch), np.append(np.zeros(at_ends), place)
    X = np.zeros((len(place), TREE_FEATURES))
    for own in range(BRANCHES):
        progress = np.where(branch == own, place, [own in _ancestors(b) for b in branch])
        X[:, BRANCH_FEATURES * own : BRANCH_FEATURES * (own + 1)] = progress[:, None]
    noisy = BRANCH_LENGTH * X + TREE_NOISE * rng.standard_normal(X.shape)

    def distances(i, j):  # along the tree, because every branch has features of its own
        return np.abs(X[i] - X[j]).sum(axis=1) / BRANCH_FEATURES

    return Data(noisy, branch, None, distances)


def _ancestors(branch):
    """Return the branches from which a branch starts, the nearest first."""
    above = PARENTS[branch]
    return [] if above is None else [above, *_ancestors(above)]


def walks(n):
    """Return random walks that branch, with noise, in the manner of PHATE's gen_dla: 10 branches.

    The true distance of two points is the number of steps between them along the tree.
    """
    rng = np.random.default_rng(37)
    length = max(2, n // BRANCHES)
    rows, parent = [], [-1]
    for branch in range(BRANCHES):
        walk = np.cumsum(rng.uniform(-1, 1, (length, TREE_FEATURES)), axis=0)
        if branch:
            start = int(rng.integers(branch * length))
            walk += np.concatenate(rows)[start]
            parent.append(start)
        parent += range(branch * length, (branch + 1) * length - 1)
        rows.append(walk)
    X, parent = np.concatenate(rows), np.array(parent)
    X += WALK_NOISE * rng.standard_normal(X.shape)
    steps = _steps(parent)
    return Data(X, np.arange(len(X)) // length, None, lambda i, j: steps[i, j])


def _steps(parent):
    child = np.arange(1, len(parent))
    links = sparse.csr_matrix((np.ones(len(child)), (child, parent[1:])), (len(parent),) * 2)
    return scipy.sparse.csgraph.shortest_path(links, directed=False, unweighted=True)


def _flat(X, coordinates):
    """Return a surface that unrolls: true distances are those of its coordinates."""

    def distances(i, j):
        return np.linalg.norm(coordinates[i] - coordinates[j], axis=1)

    return Data(X, None, coordinates, distances)


def roll(n):
    return _flat(*hs.datasets.swiss_roll(n, rng=0))


def s_curve(n):
    from sklearn.datasets import make_s_curve

    X, angle = make_s_curve(n, random_state=0)
    return _flat(X, np.column_stack([angle, X[:, 1]]))  # circles of radius 1: angle is length


def severed_sphere(n):
    """Return a sphere without its poles and a slice, as in scikit-learn's example: (θ, φ)."""
    rng = np.random.default_rng(0)
    phi = rng.uniform(0, 2 * np.pi - 0.55, n)
    theta = rng.uniform(np.pi / 8, 7 * np.pi / 8, n)
    X = np.column_stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    return Data(X, None, np.column_stack([phi, theta]))


def torus(n):
    """Return a torus of radii 3 and 1 in ten dimensions, by a random isometry."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(0, 2 * np.pi, (2, n))
    wide = 3 + np.cos(v)
    X = np.column_stack([wide * np.cos(u), wide * np.sin(u), np.sin(v)])
    isometry, _ = np.linalg.qr(rng.standard_normal((10, 3)))
    return Data(X @ isometry.T)


def clusters(n):
    return Data(*overlapping(n))


def garbage(n):
    """Return digits with one in a hundred rows of noise, which has a label of its own."""
    data = digits(n)
    rng = np.random.default_rng(0)
    noise = rng.uniform(0, 16, (max(1, n // 100), data.X.shape[1]))
    return Data(np.vstack([data.X, noise]), np.append(data.label, np.full(len(noise), 10)))


def pieces(n):
    """Return forty clusters of different width that no neighbour graph connects."""
    rng = np.random.default_rng(0)
    centers, widths = rng.normal(size=(40, 20)) * 3, rng.uniform(0.2, 1.0, 40)
    labels = rng.integers(0, 40, n)
    return Data(centers[labels] + widths[labels, None] * rng.normal(size=(n, 20)), labels)


SETS = {
    "garbage": (garbage, 1797),
    "pieces": (pieces, 4000),
    "wine": (wine, 178),
    "cells": (cells, 700),
    "digits": (digits, 1797),
    "tree": (tree, 1440),
    "walks": (walks, 1440),
    "mnist": (mnist, 10_000),
    "text": (text, 4000),
    "roll": (roll, 2000),
    "s-curve": (s_curve, 2000),
    "sphere": (severed_sphere, 2000),
    "torus": (torus, 2000),
    "clusters": (clusters, 100_000),
}
DEFAULT = (
    *("wine", "cells", "digits", "tree", "walks", "mnist", "text"),
    *("roll", "roll:20000", "roll:50000", "s-curve", "sphere", "torus", "clusters"),
)
LARGE = ("roll:1000000", "clusters:1000000")


def draw(name, folder=None, noise=0.0):
    """Return the set of a name; noise is a standard deviation in diameters of the data."""
    kind, _, size = name.partition(":")
    if kind not in SETS:
        raise SystemExit(f"no set {kind!r}; choose from {', '.join(SETS)}")
    make, usual = SETS[kind]
    n = int(size) if size else usual
    data = make(n, folder) if kind == "mnist" else make(n)
    if noise:
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        size = noise * np.linalg.norm(np.ptp(X, axis=0))
        drawn = np.random.default_rng(1).standard_normal(X.shape)
        data = data._replace(X=(X + size * drawn).astype(X.dtype))
    return data
