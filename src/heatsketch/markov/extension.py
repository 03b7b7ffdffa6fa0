"""Rows of A for new points: out-of-sample extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from heatsketch._checks import check_points, name_rows, rows_from
from heatsketch._tiles import ROW_TILE, row_tiles
from heatsketch._typing import Array
from heatsketch.markov.normalization import Scaling
from heatsketch.markov.novelty import LeftOut, NearNovelty
from heatsketch.mixture import MixtureKernel
from heatsketch.neighbors import Distances, in_metric
from heatsketch.neighbors.metric import Metric
from heatsketch.operators import Operator
from heatsketch.operators.order import inverse_permutation
from heatsketch.operators.products import multiply

_SPARSE_TILE = 2**16  # new points whose sparse rows are computed at a time
_DENSE_ENTRIES = 2**24  # of rows computed at a time: 128 MB
_MAX_NEGATIVE_LOG = 500.0  # rows whose largest affinity is below e^-500 are rescaled


class Extension(Protocol):
    """The rule for the rows of A of new points (out-of-sample extension).

    Attributes
    ----------
    width : int
        Columns of the new points (or affinities).
    is_sparse : bool
        Whether the rows are CSR.
    """

    @property
    def width(self) -> int:
        """Columns of the new points."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        ...

    def __call__(self, X: Any, dtype: Any = np.float64) -> Any:
        """Return the rows a(x, x_j) of new points (m, width), array or CSR (m, n)."""
        ...

    def novelty(self, X: Any) -> Array:
        """Return the share of training points, left out, that are less new than each point (m,)."""
        ...


def rule_of(extend: Extension | None) -> Extension:
    """Return the rule of a diffusion, or raise if there is none."""
    if extend is None:
        raise ValueError(
            "This diffusion has no rule for new points; build it from points or an affinity."
        )
    return extend


def multiply_rows(extend: Extension, X: Any, H: Array) -> Array:
    """Apply the rows of new points (m, width) to H (n, k), in tiles: (m, k)."""
    if len(getattr(X, "shape", ())) != 2:
        X = check_points(X, min_rows=0)
    tile = max(1, min(ROW_TILE, _DENSE_ENTRIES // H.shape[0]))
    Y = np.empty((X.shape[0], H.shape[1]), H.dtype)
    for rows in row_tiles(X.shape[0], _SPARSE_TILE if extend.is_sparse else tile):
        with rows_from(rows.start):
            Y[rows] = multiply(extend(X[rows], H.dtype), H)
    return Y


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Affinities of new points by the kernel of a mixture."""

    kernel: MixtureKernel
    points: Array
    log_unit: float

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        self._own.warn(self.kernel.log_stationary(X))
        log_k = self.kernel.log_kernel(X, self.points) - self.log_unit
        # Rows of far points would underflow; normalisation cancels a factor of a row.
        log_k -= np.minimum(log_k.max(axis=1, keepdims=True) + _MAX_NEGATIVE_LOG, 0.0)
        return np.exp(log_k)

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the stationary density: the integral of the affinities."""
        return self._own.share(self.kernel.log_stationary(X))

    @cached_property
    def _own(self) -> LeftOut:
        return LeftOut.of(self.kernel.log_stationary(self.points))


@dataclass(frozen=True, eq=False)
class MetricRows:
    """Affinities of new points in the metric of the data."""

    affinity_rows: Callable[[Any], Any]
    metric: Metric
    near: NearNovelty

    @classmethod
    def of(cls, rows: Callable[[Any], Any], X: Any, metric: Metric, n_neighbors: int) -> Self:
        """Add to the rows the metric, in which X (n, d) is, and the novelty of points."""
        found = getattr(rows, "neighborhoods", None)
        return cls(rows, metric, NearNovelty(X, n_neighbors, found, metric))

    def __call__(self, X: Any) -> Any:
        """Return affinities of new points (m, n), array or CSR."""
        distances = Distances.of(self.metric)
        return self.affinity_rows(X if distances else in_metric(X, self.metric))

    def novelty(self, X: Any) -> Array:
        """Return the novelty (m,), by the nearest training points."""
        return self.near(X)


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows of A for new points, from their affinities."""

    affinity_rows: Any
    scaling: Scaling
    width: int
    is_sparse: bool

    def __call__(self, X: Any, dtype: Any = np.float64) -> Any:
        """Return rows of A (m, n), array or CSR; CSR in the given precision."""
        return self.scaling.rows(self.affinity_rows(self._checked(X)), dtype)

    def novelty(self, X: Any) -> Array:
        """Return the novelty of new points (m,)."""
        return self.affinity_rows.novelty(self._checked(X))

    def _checked(self, X: Any) -> Any:
        X = check_points(X, min_rows=1)
        if X.shape[1] != self.width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the diffusion was built with {self.width}; pass "
                "new points with the same features (or affinities to all points)."
            )
        return X


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Affinities of new points to the input points, computed by the caller."""

    inputs: Array  # (n,), the input point at each vertex
    left_out: LeftOut

    @classmethod
    def of(cls, K: Operator, vertex: Array) -> Self:
        """Prepare rows for the affinity K with these vertices of input points (n,)."""
        own = K.diagonal()
        others = K @ np.ones(K.n, K.dtype) - (0.0 if own is None else own)
        return cls(inverse_permutation(vertex), LeftOut.of(_logarithm(others)))

    def __call__(self, rows: Any) -> Any:
        """Return the affinities to the vertices, checked."""
        with np.errstate(over="ignore"):
            sums = np.asarray(rows.sum(axis=1)).ravel()
        least = rows.min(axis=1)
        least = np.asarray(least.todense() if sparse.issparse(least) else least).ravel()
        bad = np.flatnonzero((least < 0) | ~(sums > 0) | np.isinf(sums))
        if len(bad):
            raise ValueError(
                "Affinities of new points must be non-negative with positive, finite row sums (bad "
                f"rows: {name_rows(bad)}); leave these points out."
            )
        self.left_out.warn(_logarithm(sums))
        return rows[:, self.inputs]

    def novelty(self, rows: Any) -> Array:
        """Return the novelty of points (m,) with these affinities (m, n), by their sums."""
        return self.left_out.share(_logarithm(np.asarray(rows.sum(axis=1)).ravel()))


def _logarithm(sums: Array) -> Array:
    """Return the logarithm; -∞ where there is nothing, or only rounding."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(sums, 0.0))
