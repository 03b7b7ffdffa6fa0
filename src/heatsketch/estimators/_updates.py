"""Points that come and go after a fit: which are there now, and what a new fit would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import check_number
from heatsketch._ids import check_ids
from heatsketch._typing import Array, Points
from heatsketch.neighbors import in_metric


@dataclass(frozen=True, eq=False)
class Changes:
    """The points that are there now: some of those fitted, and added ones after them.

    Attributes
    ----------
    fitted_ids : array (n,)
    kept : array (p,)
        Rows of the fit.
    added : array or CSR matrix (m, d), or None
    """

    fitted_ids: Array
    kept: Array
    added: Any = None

    def without(self, removed: Any) -> tuple[Changes, Array]:
        """Take out points by their present rows; return what is left, and its present rows."""
        count = len(self.kept) + (0 if self.added is None else self.added.shape[0])
        stays = np.ones(count, bool)
        stays[_rows(removed, count)] = False
        if stays.sum() < 2:
            raise ValueError(
                f"removed has {count - stays.sum()} of {count} points; leave at least two."
            )
        rows, p = np.flatnonzero(stays), len(self.kept)
        added = None if self.added is None or not stays[p:].any() else self.added[stays[p:]]
        return Changes(self.fitted_ids, self.kept[stays[:p]], added), rows

    def with_points(self, X: Points) -> Changes:
        """Add points after the others."""
        added = X if self.added is None else stacked(self.added, X)
        return Changes(self.fitted_ids, self.kept, added)

    def points(self, diffusion: Any, metric: str) -> Points:
        """Return the points that are there now, in the metric."""
        fitted = fitted_points(diffusion)[self.kept]
        return fitted if self.added is None else stacked(fitted, in_metric(self.added, metric))


def fitted_points(diffusion: Any) -> Points:
    """Return the points that a diffusion was built from, in their metric, or raise."""
    near = getattr(getattr(diffusion.extend, "affinity_rows", None), "near", None)
    if near is None:
        raise ValueError(
            "The diffusion was not built from points, so that there is no rule for others; fit "
            "points, with an affinity other than 'precomputed'."
        )
    points: Points = near.points
    return points


def stacked(X: Points, Z: Points) -> Points:
    """Return the rows of X and then those of Z, in the precision of X."""
    if sparse.issparse(X):
        return sparse.vstack([X, sparse.csr_matrix(Z)], format="csr").astype(X.dtype)
    Z = Z.toarray() if sparse.issparse(Z) else Z
    return np.vstack([X, np.asarray(Z, dtype=X.dtype)])


def joined_ids(present: Array, new: Any, count: int) -> Array:
    """Return the ids of the points there and of `count` new ones, or raise."""
    if new is None:
        raise ValueError("ids are missing; pass ids of the added points, as fit was given them.")
    new = check_ids(new, count)
    if (new.dtype.kind in "iu") != (present.dtype.kind in "iu"):
        raise TypeError(
            f"ids of the added points are of dtype {new.dtype} but those of the fit of "
            f"{present.dtype}; pass ids of one kind."
        )
    known = np.flatnonzero(np.isin(new, present))
    if len(known):
        raise ValueError(
            f"ids name {new[known[0]].item()!r}, which is there already; remove it first, or pass "
            "another id."
        )
    return np.concatenate([present, new])


def _rows(removed: Any, count: int) -> Array:
    """Return indices of present points, or raise."""
    rows = np.atleast_1d(np.asarray(removed))
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise TypeError(
            f"removed is of dtype {rows.dtype} and shape {rows.shape}; pass rows of embedding_, "
            "integers."
        )
    rows = rows.astype(np.int64)
    for row in (rows.min(initial=0), rows.max(initial=0)):
        check_number(row, "removed", low=0, high=count - 1, integer=True)
    return rows
