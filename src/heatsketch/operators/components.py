"""Components of the points, from labels or from the rows of a matrix."""

from collections.abc import Callable

import numpy as np

from heatsketch._typing import Array

NEGLIGIBLE = 1e-14  # fraction of a row sum below which an affinity changes nothing in float64
_ROW_ENTRIES = 2**22  # of rows looked at together in the search for components


def members_of(labels: Array) -> list[Array]:
    """Return the points of each component, ascending, from their labels (n,), numbered from 0."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def components_of_rows(rows_of: Callable[[Array], Array], sums: Array) -> Array:
    """Return the component of each row (n,) of a symmetric, non-negative matrix, from its rows.

    `rows_of` returns some of its rows, `sums` (n,) are those of all. The search goes from row to
    row, and ends when all are reached: where most entries count, after a few rows.
    """
    n, count = len(sums), 0
    labels = np.full(n, -1)
    for start in range(n):
        if labels[start] >= 0:
            continue
        labels[start], reached = count, np.array([start])
        while len(reached) and labels.min() < 0:
            rows, reached = np.split(reached, [max(1, _ROW_ENTRIES // n)])
            counts = rows_of(rows) > NEGLIGIBLE * np.minimum(sums[rows, None], sums)
            new = np.flatnonzero(counts.any(axis=0) & (labels < 0))
            labels[new] = count
            reached = np.append(reached, new)
        count += 1
    return labels


def between_components(root: Array, labels: Array, k: int) -> Array:
    """Return at most k directions (n, k) that are multiples of √π on each component.

    One for each component but the largest, orthonormal, and orthogonal to `root`, √π (n,). The m-th
    is √π on the m larger components together against the next one, in the proportion that keeps it
    orthogonal to √π.
    """
    mass = np.bincount(labels, weights=root**2)
    by_mass = np.argsort(-mass, kind="stable")
    rank = np.argsort(by_mass)[labels]
    m, together = mass[by_mass][1:], np.cumsum(mass[by_mass])
    larger, both = together[:-1], together[1:]
    H = np.zeros((len(root), min(k, len(m))))
    for j in range(H.shape[1]):
        H[rank <= j, j] = np.sqrt(m[j] / (larger[j] * both[j]))
        H[rank == j + 1, j] = -np.sqrt(larger[j] / (m[j] * both[j]))
    return H * root[:, None]
