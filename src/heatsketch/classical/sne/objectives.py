"""The Kullback-Leibler divergences that SNE and t-SNE lower, and their gradients."""

import math
from typing import Protocol

import numpy as np
from scipy import sparse

from heatsketch._array import for_each_tile
from heatsketch._typing import Array

_TILE_POINTS = 128  # points whose forces are one unit of work in t-SNE
_FORCE_BLOCKS = 16  # blocks of points in SNE; each block needs an array of forces on all points


class Objective(Protocol):
    """A divergence of places Yt (k, n)."""

    @property
    def point_weight(self) -> float:
        """The weight of one point in the divergence."""

    @property
    def stiffness(self) -> Array:
        """The force of attraction on each point per unit of displacement, (n,)."""

    def gradient(self, Yt: Array, exaggeration: float) -> Array:
        """Return the derivative by Yt (k, n), with every p multiplied by `exaggeration`."""

    @property
    def constant(self) -> float:
        """The term of the divergence that depends on the data alone: Σ p log p."""

    def terms(self, Yt: Array) -> tuple[float, float]:
        """Return the terms lowered by attraction and by repulsion.

        The divergence is their sum plus `constant`. Exaggeration multiplies the first.
        """


class Student:
    """t-SNE: C = Σ_ij p_ij log(p_ij / q_ij), (18), q_ij of Student's t-distribution, (17).

    P, CSR (n, n), has the joint probabilities p_ij.
    """

    def __init__(self, P: sparse.csr_matrix) -> None:
        self._P = P
        self.stiffness = 4 * np.asarray(P.sum(axis=1)).ravel()
        self.constant = float(np.sum(P.data * np.log(P.data)))
        self.point_weight = 1 / P.shape[0]

    def gradient(self, Yt: Array, exaggeration: float) -> Array:
        """Return 4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), (19)."""
        pull, push, sums = self._forces(Yt)
        return 4 * (exaggeration * pull - push / float(sums.sum()))

    def terms(self, Yt: Array) -> tuple[float, float]:
        """Return Σ p_ij log(1 + |y_i - y_j|²) and log Σ_{k≠l} 1 / (1 + |y_k - y_l|²)."""
        Yt = Yt.astype(float)
        attraction = float(np.sum(self._P.data * np.log1p(_squares(self._P, Yt))))
        return attraction, math.log(self._forces(Yt)[2].sum())

    def _forces(self, Yt: Array) -> tuple[Array, Array, Array]:
        from heatsketch.classical.sne.kernels import student_forces  # compiled loops

        P = self._P
        p = P.data.astype(Yt.dtype, copy=False)
        pull, push, sums = np.empty_like(Yt), np.empty_like(Yt), np.empty(Yt.shape[1])

        def work(rows: slice) -> None:
            student_forces(Yt, P.indptr, P.indices, p, rows.start, rows.stop, pull, push, sums)

        for_each_tile(work, Yt.shape[1], _TILE_POINTS)
        return pull, push, sums


class Gaussian:
    """SNE: C = Σ_i Σ_j p_{j|i} log(p_{j|i} / q_{j|i}), q_{j|i} ∝ e^(-|y_i - y_j|²).

    `graph`, CSR (n, n), has the conditional probabilities p_{j|i}, in row i.
    """

    point_weight = 1.0

    def __init__(self, graph: sparse.csr_matrix) -> None:
        self._graph = graph
        self.constant = float(np.sum(graph.data * np.log(graph.data)))
        self._symmetric = sparse.csr_matrix(graph + graph.T)
        self._degrees = np.asarray(self._symmetric.sum(axis=1)).ravel()
        self.stiffness = 2 * self._degrees

    def gradient(self, Yt: Array, exaggeration: float) -> Array:
        """Return 2 Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j)."""
        Yt = Yt.astype(float, copy=False)
        pull = self._degrees * Yt - (self._symmetric @ Yt.T).T
        return 2 * (exaggeration * pull - self._forces(Yt)[0])

    def terms(self, Yt: Array) -> tuple[float, float]:
        """Return Σ_ij p_{j|i} |y_i - y_j|² and Σ_i log Z_i."""
        Yt = Yt.astype(float)
        attraction = float(np.sum(self._graph.data * _squares(self._graph, Yt)))
        return attraction, float(self._forces(Yt)[1].sum())

    def _forces(self, Yt: Array) -> tuple[Array, Array]:
        from heatsketch.classical.sne.kernels import gaussian_forces  # compiled loops

        n = Yt.shape[1]
        tile = -(-n // _FORCE_BLOCKS)
        push, logs = np.zeros((-(-n // tile), *Yt.shape)), np.empty(n)

        def work(rows: slice) -> None:
            gaussian_forces(Yt, rows.start, rows.stop, push[rows.start // tile], logs)

        for_each_tile(work, n, tile)
        return push.sum(axis=0), logs


def _squares(graph: sparse.csr_matrix, Yt: Array) -> Array:
    """Return |y_i - y_j|² of the pairs stored in the graph."""
    from heatsketch.classical.sne.kernels import squares_of_pairs  # compiled loops

    squares = np.empty(graph.nnz)

    def work(rows: slice) -> None:
        squares_of_pairs(Yt, graph.indptr, graph.indices, rows.start, rows.stop, squares)

    for_each_tile(work, Yt.shape[1])
    return squares
