"""Terms of the objective of a free layout: each has a value, and a gradient with respect to Y.

    J(Y) = a KL(p || q) + mean over pairs of huber(log |y_i - y_j| - T_ij),

`Neighbors` and `LogDistances`. A new term is one more class. Y (n, c) is an array on the host, or a
tensor on a device, where the matrices of the terms are then, too.
"""

import math
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.backend import Block, blocks_of
from heatsketch.backend.tree import OPENING
from heatsketch.operators.torch import on_device

_EXACT_UP_TO = 1_000  # points, whose sums over all pairs are exact
_TINY = 1e-12  # squared distance that is added to those under a logarithm, as in the loops
_LEAST_TOTAL = float(np.finfo(float).tiny)


class Term(Protocol):
    """A part of the objective; s is the unit of length, half the median length of an edge."""

    def value(self, Y: Block, s: float) -> float:
        """Return the value at the places Y (n, c)."""

    def gradient(self, Y: Block, s: float) -> Block:
        """Return the derivatives with respect to Y (n, c)."""


class StiffTerm(Term, Protocol):
    """A term of which it is known how fast its gradient changes, as `descend` needs it."""

    def stiffness(self, s: float) -> Any:
        """Return about how much the gradient changes with the place of a point, (n, 1) or one."""


class Neighbors:
    """a KL(p || q) = a Σ p log(p / q): near points of the data shall be near in the picture.

    p: symmetric weights of the edges, of sum 1 or less. q: 1 / (1 + |y_i - y_j|² / s²) over all
    pairs, divided by its sum, as in t-SNE (van der Maaten and Hinton 2008).

    Parameters
    ----------
    edges : CSR matrix (n, n)
        p.
    weight : float
        a.
    opening : float, optional
        θ of `repulsion`; by default 0 up to 1,000 points, and 0.25 beyond.
    mass : block (n,), optional
        How often each point counts: q is multiplied by m_i m_j, as over pairs of so many copies at
        different places.
    total : float, optional
        That of p, which the repulsion is a part of: 1, unless p is smaller.
    """

    def __init__(
        self,
        edges: Any,
        weight: float,
        opening: float | None = None,
        mass: Block | None = None,
        total: float = 1.0,
    ) -> None:
        n = edges.shape[0]
        self.mass = mass
        self.edges, self.weight, self.blocks = edges, weight, blocks_of(edges)
        opening = (OPENING if n > _EXACT_UP_TO else 0.0) if opening is None else opening
        self._repulsion = self.blocks.repulsion(opening, mass)
        self.total = total

    def value(self, Y: Block, s: float) -> float:
        """Return a KL(p || q)."""
        xp, p = self.blocks.xp, self.edges.data
        squares = self.blocks.differences(Y, self.edges)[1]
        total = max(self._repulsion(Y, s)[1], _LEAST_TOTAL)
        ratio = p * (1 + squares / s**2)
        if self.mass is not None:
            ratio = ratio / _products(self.mass, self.edges)
        divergence = float((p * xp.log(ratio)).sum()) + self.total * math.log(total)
        return self.weight * divergence

    def gradient(self, Y: Block, s: float) -> Block:
        """Return 4 a / s² (Σ_j p q (y_i - y_j) - Σ p Σ_j q² (y_i - y_j) / Σ q), q not divided.

        With masses the last two sums are of m_i m_j times as much.
        """
        scale = 4 * self.weight / s

        def weights(squares: Block, p: Block) -> Block:
            return scale / s * p / (1 + squares / s**2)

        forces = self.blocks.forces(Y, self.edges, weights, "along_edges", s, scale / s)
        if not self.weight:
            return forces
        force, total = self._repulsion(Y, s)
        return forces - scale * self.total / max(total, _LEAST_TOTAL) * force

    def stiffness(self, s: float) -> float:
        """Return 4 a / (n s²)."""
        return 4 * self.weight / (self.edges.shape[0] * s**2)


class LogDistances:
    """The mean over pairs of huber(log |y_i - y_j| - T_ij): distances shall be those wanted.

    Parameters
    ----------
    n : int
        Number of points.
    pairs : (i, j), arrays (m,)
        m > 0.
    targets : array (m,)
        T.
    blocks : Blocks
        Where the points are.
    dtype : type
        The precision of the points.
    mass : array (n,), optional
        A pair counts m_i m_j times.
    """

    def __init__(
        self,
        n: int,
        pairs: tuple[Array, Array],
        targets: Array,
        blocks: Any,
        dtype: Any,
        mass: Array | None = None,
    ) -> None:
        self.pairs = on_device(_symmetric(n, pairs, targets), blocks.device)
        self.pairs.data = blocks.native(self.pairs.data, dtype)
        self.blocks = blocks
        self.total = float(len(pairs[0]))
        self.mass = None
        if mass is not None:
            self.total = float(np.sum(mass[pairs[0]] * mass[pairs[1]]))
            self.mass = blocks.native(mass, dtype)

    def value(self, Y: Block, s: float) -> float:
        """Return the mean of huber's loss."""
        xp = self.blocks.xp
        squares = self.blocks.differences(Y, self.pairs)[1] + _TINY
        off = abs(xp.log(squares) / 2 - self.pairs.data)
        losses = xp.where(off <= 1, off**2 / 2, off - 0.5)
        if self.mass is not None:
            losses = losses * _products(self.mass, self.pairs)
        return float(losses.sum()) / (2 * self.total)

    def gradient(self, Y: Block, s: float) -> Block:
        """Return m_i Σ_j m_j huber' (y_i - y_j) / |y_i - y_j|², over the sum of m_i m_j."""
        xp, total, mass = self.blocks.xp, self.total, self.mass

        def weights(squares: Block, targets: Block) -> Block:
            squares = squares + _TINY
            slopes = xp.clip(xp.log(squares) / 2 - targets, -1, 1) / (total * squares)
            return slopes if mass is None else slopes * mass[self.pairs.indices]

        forces = self.blocks.forces(Y, self.pairs, weights, "between_pairs", 1 / total, mass)
        return forces if mass is None else mass[:, None] * forces

    def stiffness(self, s: float) -> Block:
        """Return m_i Σ_j m_j exp(-2 T_ij), over the sum of m_i m_j, as at the distances wanted."""
        return self._at_targets

    @cached_property
    def _at_targets(self) -> Block:
        squares = self.blocks.xp.exp(-2 * self.pairs.data)
        if self.mass is not None:
            squares = squares * _products(self.mass, self.pairs)
        return self.blocks.sums_by_row(squares, self.pairs)[:, None] / self.total


def edges_of(M: Any, dtype: Any, mass: Block | None = None, sizes: Block | None = None) -> Any:
    """Return p (n, n): rows of M without the diagonal, of sum 1, then symmetric and of sum 1.

    With `mass` m a row has the sum m_i, and a column counts m_j times, whose root is in M already.
    With the `sizes` (n,) of the components of the points a row has the sum 1 - k / (size - 1), and
    p has the mean of these: who is near says nothing where all are. k is the number of neighbours
    that count, 1 / Σ_j p_ij².
    """
    blocks = blocks_of(M)
    xp, others = blocks.xp, blocks.row_numbers(M) != M.indices
    data = blocks.native(M.data, dtype) * others
    if mass is not None:
        data = data * xp.sqrt(mass)[M.indices]
    P = blocks.csr((data, M.indices + 0, M.indptr + 0), M.shape)  # copies, which change
    P.eliminate_zeros()
    sums = blocks.sums_by_row(P.data, P)
    P.data *= blocks.repeated(1 / xp.where(sums > 0, sums, 1.0), P)
    factors = xp.ones_like(sums) if mass is None else mass
    whole = 2 * float((factors * (sums > 0)).sum())
    if sizes is not None:
        squares = P.data**2 if mass is None else P.data**2 / mass[P.indices]
        squares = xp.where(sums > 0, blocks.sums_by_row(squares, P), 1.0)
        factors = factors * xp.clip(1 - 1 / (squares * xp.clip(sizes - 1, 1.0, None)), 0.0, 1.0)
    P.data *= blocks.repeated(factors, P)
    P = blocks.both_ways(P, "sum")
    P.data /= whole or 1.0
    return P


def _products(mass: Block, matrix: Any) -> Block:
    """Return m_i m_j at the entries of a matrix."""
    return mass[blocks_of(matrix).row_numbers(matrix)] * mass[matrix.indices]


def _symmetric(n: int, pairs: tuple[Array, Array], values: Array) -> sparse.csr_matrix:
    """Return values of pairs (i, j) and (j, i) as a CSR matrix; equal pairs stay apart."""
    (i, j), indices = pairs, np.int32
    both = np.append(i, j).astype(indices), np.append(j, i).astype(indices)
    matrix = sparse.coo_matrix((np.append(values, values), both), (n, n))
    matrix.has_canonical_format = True  # no sums of equal entries
    return matrix.tocsr()
