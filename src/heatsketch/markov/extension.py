"""Rows of A for new points: out-of-sample extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heatsketch._checks import check_points, name_rows
from heatsketch._typing import Array
from heatsketch.markov.normalization import Scaling
from heatsketch.mixture import MixtureKernel
from heatsketch.neighbors import in_metric

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


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Affinities of new points by the kernel of a mixture."""

    kernel: MixtureKernel
    points: Array
    log_unit: float

    def __call__(self, X: Any) -> Array:
        """Return affinities of new points (m, n)."""
        log_k = self.kernel.log_kernel(X, self.points) - self.log_unit
        # Rows of far points would underflow; normalisation cancels a factor of a row.
        log_k -= np.minimum(log_k.max(axis=1, keepdims=True) + _MAX_NEGATIVE_LOG, 0.0)
        return np.exp(log_k)


@dataclass(frozen=True, eq=False)
class MetricRows:
    """Affinities of new points in the metric of the data."""

    affinity_rows: Callable[[Any], Any]
    metric: str

    def __call__(self, X: Any) -> Any:
        """Return affinities of new points (m, n), array or CSR."""
        return self.affinity_rows(in_metric(X, self.metric))


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows of A for new points, from their affinities."""

    affinity_rows: Callable[[Any], Any]
    scaling: Scaling
    width: int
    is_sparse: bool

    def __call__(self, X: Any, dtype: Any = np.float64) -> Any:
        """Return rows of A (m, n), array or CSR; CSR in the given precision."""
        X = check_points(X, min_rows=1)
        if X.shape[1] != self.width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the diffusion was built with {self.width}; pass "
                "new points with the same features (or affinities to all points)."
            )
        return self.scaling.rows(self.affinity_rows(X), dtype)


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Affinities of new points to the input points, computed by the caller."""

    inputs: Array | None  # (n,), the input point at each vertex; None: they have the same numbers

    def __call__(self, rows: Any) -> Any:
        """Return the affinities to the vertices, checked."""
        sums = np.asarray(rows.sum(axis=1)).ravel()
        if rows.min() < 0 or not (sums > 0).all():
            raise ValueError(
                "Affinities of new points must be non-negative with positive row sums (bad rows: "
                f"{name_rows(np.flatnonzero(~(sums > 0)))}); leave these points out."
            )
        return rows if self.inputs is None else rows[:, self.inputs]
