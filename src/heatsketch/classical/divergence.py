"""Terms that the descents of `sne` lower, beside `layout.terms.Neighbors`, that of t-SNE."""

import math

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from heatsketch._tiles import sum_over_tiles
from heatsketch._typing import Array

_FORCE_TILE = 64  # points whose q are in the cache together


class GaussianNeighbors:
    """Σ_ij p_{j|i} log(p_{j|i} / q_{j|i}), the divergence of SNE; q_{j|i} ∝ e^(-|y_i - y_j|² / s²).

    Parameters
    ----------
    P : CSR matrix (n, n)
        p_{j|i} in row i, without zeros.
    exaggeration : float, default 1
        Factor of p_{j|i}, but not of the one under the logarithm.
    """

    def __init__(self, P: sparse.csr_matrix, exaggeration: float = 1.0) -> None:
        # Σ_ij p_ij |y_i - y_j|² = tr(Yᵀ L Y)
        self._laplacian = exaggeration * laplacian(P + P.T)
        self._own = exaggeration * float(P.data @ np.log(P.data))
        self.stiffness = self._laplacian.diagonal()[:, None]  # twice it bounds the curvature

    def value(self, Y: Array, s: float) -> float:
        """Return the divergence."""
        U = Y / s
        attraction = float(np.sum(U * (self._laplacian @ U)))
        return attraction + float(gaussian_forces(U)[1].sum()) + self._own

    def gradient(self, Y: Array, s: float) -> Array:
        """Return 2 / s² Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j)."""
        U = Y / s
        return 2 / s * (self._laplacian @ U - gaussian_forces(U)[0])


class Compression:
    """λ Σ |y_i|² / s²: the points stay together."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def value(self, Y: Array, s: float) -> float:
        """Return λ Σ |y_i|² / s²."""
        return self.weight * float(np.square(Y / s).sum())

    def gradient(self, Y: Array, s: float) -> Array:
        """Return 2 λ y_i / s²."""
        return 2 * self.weight / s**2 * Y


def gaussian_forces(Y: Array) -> tuple[Array, Array]:
    """Return Σ_j (q_{j|i} + q_{i|j}) (y_i - y_j), (n, k), and log Z_i = log Σ_j e^(-|y_i - y_j|²).

    Row i of q pushes y_i and every y_j. The term of the nearest point is 1, so that no Z is 0.
    """
    from heatsketch.operators.sparse_loops import exp2  # imports numba

    n, logs = len(Y), np.empty(len(Y))
    nearest = np.square(cKDTree(Y).query(Y, 2)[0][:, 1:])
    one, squares = np.ones((n, 1)), np.square(Y).sum(axis=1, keepdims=True)
    left, right = np.hstack([2 * Y, nearest - squares, -one]), np.hstack([Y, one, squares]).T
    left, with_one = left / math.log(2), np.hstack([Y, one])

    @np.errstate(all="ignore")  # places that a step has thrown far off
    def work(rows: slice) -> Array:
        q = left[rows] @ right  # (|y_i - y_nearest|² - |y_i - y_j|²) / log 2
        q[np.arange(len(q)), np.arange(rows.start, rows.stop)] = -np.inf
        exp2(q)
        sums = q @ with_one
        Z = sums[:, -1:]
        logs[rows] = (np.log(Z) - nearest[rows])[:, 0]
        back = q.T @ (with_one[rows] / Z)
        push = back[:, -1:] * Y - back[:, :-1]
        push[rows] += Y[rows] - sums[:, :-1] / Z
        return push

    return sum_over_tiles(work, n, _FORCE_TILE), logs


def student_costs(Y: Array, near: Array, p: Array, Z: Array) -> tuple[Array, Array]:
    """Return -Σ p_j log q_j of places Z (m, k), and its gradient 2 Σ (p_j - q_j) w_j (z - y_j).

    `near` (m, l) are the neighbours in Y (n, k) with probabilities p (m, l); q is over all of Y.
    """
    w = 1 / (1 + cdist(Z, Y, "sqeuclidean"))
    total = w.sum(axis=1)
    w *= w
    # Sum row by row, so that no row changes the rounding of another.
    mean = np.stack([(w * y).sum(axis=1) for y in Y.T], axis=1)
    push = (w.sum(axis=1)[:, None] * Z - mean) / total[:, None]
    steps = Z[:, None] - Y[near]
    squares = np.square(steps).sum(axis=2)
    pull = np.einsum("ml,mlk->mk", p / (1 + squares), steps)
    return np.log(total) + (p * np.log1p(squares)).sum(axis=1), 2 * (pull - push)
