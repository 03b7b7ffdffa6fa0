"""Affinities of the rows of a table, such as documents by words, that are never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import name_rows
from heatsketch._typing import Array
from heatsketch.markov.affinity import Affinity
from heatsketch.operators import LowRank


def bipartite_affinity(X: Any) -> Affinity:
    """Build the affinity of two steps, from rows to columns and back: X diag(1/c) Xᵀ.

    c are the sums of the columns. Its row sums are those of X, so that the Markov form with α = 0
    is the walk on the bipartite graph of rows and columns, looked at every other step:
    A = D_r^-1/2 X D_c^-1 Xᵀ D_r^-1/2. Two sparse products; eigenvalues are in [0, 1].
    """
    table = _non_negative(X, "bipartite")
    sums = np.asarray(table.sum(axis=0)).ravel()
    weights = np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
    return _affinity(TableRows(sparse.csr_matrix(table @ sparse.diags(weights)), weights))


def cosine_affinity(X: Any) -> Affinity:
    """Build the cosines of the angles between rows of X: two sparse products."""
    table = _of_unit_length(_non_negative(X, "cosine"))
    return _affinity(TableRows(table, None))


def _affinity(rows: TableRows) -> Affinity:
    return Affinity(LowRank(rows.factor), rows, diagnostics={"stored": rows.factor.nnz})


def _non_negative(X: Any, affinity: str) -> sparse.csr_matrix:
    table = sparse.csr_matrix(X, dtype=np.float64)
    if table.nnz and table.data.min() < 0:
        raise ValueError(
            f"Negative values in data: X goes down to {table.data.min():.3g}, but "
            f"affinity={affinity!r} is for counts and other amounts; pass non-negative values, or "
            "affinity='knn' with metric='cosine'."
        )
    return table


def _of_unit_length(table: sparse.csr_matrix) -> sparse.csr_matrix:
    """Divide rows by their lengths; empty rows stay empty."""
    largest = np.asarray(table.max(axis=1).todense()).ravel()
    table = _rows_divided(table, largest)  # squares neither overflow nor vanish
    return _rows_divided(table, np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel()))


def _rows_divided(table: sparse.csr_matrix, by: Array) -> sparse.csr_matrix:
    each = np.repeat(by, np.diff(table.indptr))
    data = np.divide(table.data, each, out=np.zeros_like(table.data), where=each > 0)
    return sparse.csr_matrix((data, table.indices, table.indptr), shape=table.shape)


@dataclass(frozen=True, eq=False)
class TableRows:
    """Affinities of new rows of a table to its own.

    Attributes
    ----------
    factor : CSR (n, d)
        F, whose products F Fᵀ are the affinities.
    weights : array (d,) or None
        What columns are multiplied by; None: rows are divided by their lengths.
    """

    factor: sparse.csr_matrix
    weights: Array | None

    def __call__(self, X: Any) -> Array:
        """Return the affinities of new rows (m, d) to the rows of the table (m, n)."""
        table = _non_negative(X, "cosine" if self.weights is None else "bipartite")
        own = _of_unit_length(table) if self.weights is None else table @ sparse.diags(self.weights)
        rows = (own @ self.factor.T).toarray()
        far = np.flatnonzero(rows.sum(axis=1) == 0)
        if len(far):
            raise ValueError(
                f"{len(far)} new row(s) have no column in common with the table (rows "
                f"{name_rows(far)}); leave them out."
            )
        return rows
