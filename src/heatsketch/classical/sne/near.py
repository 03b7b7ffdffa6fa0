"""The nearest neighbours of points, by a search or from given distances."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError

from heatsketch._array import Frame, for_each_tile, single_threaded_blas
from heatsketch._typing import Array, Points
from heatsketch.graphs.neighborhoods import find_neighbors
from heatsketch.neighbors import NeighborIndex, Neighbors
from heatsketch.spectral.classical_scaling import classical_scaling

_MAX_COMPLETE_POINTS = 1000  # up to here every other point is a neighbour


class Near(ABC):
    """Abstract base: the nearest neighbours of points, and their distances."""

    exponent: int  # distances are in units of 2^exponent
    diagnostics: dict[str, float]  # measures of the quality of the search

    @abstractmethod
    def own(self) -> Neighbors:
        """Return the nearest neighbours of every point, nearest first."""

    @abstractmethod
    def of(self, X: Any) -> Neighbors:
        """Return the nearest neighbours of new points."""

    @abstractmethod
    def principal(self, k: int, seed: int) -> Array:
        """Return at most k principal components of the points, (n, at most k)."""


def near_points(X: Points, neighbors: Any, perplexity: float) -> Near:
    """Return the neighbours of points (n, d), by the search that `neighbors` specifies."""
    complete = neighbors is None or isinstance(neighbors, NeighborIndex)
    return _NearPoints(X, neighbors, _count(X.shape[0], perplexity, complete))


def near_distances(D: Array, perplexity: float) -> Near:
    """Return the neighbours of points with distances D (n, n)."""
    return _NearDistances(D, _count(len(D), perplexity, complete=True))


def _count(n: int, perplexity: float, complete: bool) -> int:
    """Return the number of neighbours: all of few points, else 3 · perplexity + 1."""
    return n - 1 if complete and n <= _MAX_COMPLETE_POINTS else min(n - 1, int(3 * perplexity + 1))


class _NearPoints(Near):
    def __init__(self, X: Points, neighbors: Any, count: int) -> None:
        self._X, self._count, self._frame = X, count, Frame.of(X)
        found = find_neighbors(X, self._frame, count, None, neighbors, merge=False)
        self._search, self._found = found.search, found.nearest
        self.exponent = self._frame.exponent
        self.diagnostics = found.recall

    def own(self) -> Neighbors:
        found, self._found = self._found, None  # not kept: it is as large as the data
        assert isinstance(found, Neighbors)
        return _others(found)

    def of(self, X: Any) -> Neighbors:
        return self._search.query(X, self._count)

    def principal(self, k: int, seed: int) -> Array:
        from sklearn.decomposition import PCA  # slow to import

        points = self._frame(self._X)
        k = min(k, *points.shape)
        if sparse.issparse(points) and k == min(points.shape):  # ARPACK cannot find all
            points = points.toarray()
        solver = "arpack" if sparse.issparse(points) else "auto"
        with single_threaded_blas(), np.errstate(all="ignore"):  # the same bits everywhere
            try:
                pca = PCA(k, svd_solver=solver, random_state=seed)
                return pca.set_output(transform="default").fit_transform(points)
            except ArpackError:  # all points are equal
                return np.zeros((points.shape[0], k))


class _NearDistances(Near):
    def __init__(self, D: Array, count: int) -> None:
        self._D, self._count = D, count
        self.exponent, self.diagnostics = int(np.frexp(D.max())[1]), {}

    def own(self) -> Neighbors:
        D = self._D.copy()
        np.fill_diagonal(D, -1.0)  # sorts first
        found = self._nearest(D, self._count + 1)
        return Neighbors(found.distances[:, 1:], found.indices[:, 1:])

    def of(self, X: Any) -> Neighbors:
        return self._nearest(X, self._count)

    def principal(self, k: int, seed: int) -> Array:
        squares = np.ldexp(self._D.astype(float), -self.exponent) ** 2
        with single_threaded_blas(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing dimensions are replaced by others
            return classical_scaling(squares, min(k, len(squares))).coordinates

    def _nearest(self, D: Array, count: int) -> Neighbors:
        distances, indices = np.empty((len(D), count)), np.empty((len(D), count), np.int64)

        def work(rows: slice) -> None:
            order = np.argsort(D[rows], axis=1, kind="stable")[:, :count]
            near = np.take_along_axis(D[rows], order, axis=1).astype(float)
            distances[rows], indices[rows] = np.ldexp(near, -self.exponent), order

        for_each_tile(work, len(D))
        return Neighbors(distances, indices)


def _others(found: Neighbors) -> Neighbors:
    """Remove each point from its own neighbours; the last one where copies have displaced it."""
    n, width = found.indices.shape
    own = found.indices == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (n, width - 1)
    return Neighbors(found.distances[~own].reshape(shape), found.indices[~own].reshape(shape))
