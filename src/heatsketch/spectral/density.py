"""The distribution of the eigenvalues of an operator, by stochastic Lanczos quadrature."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from heatsketch._random import random_block
from heatsketch._typing import Array
from heatsketch.operators.operator import Deflated, Operator
from heatsketch.spectral.cache import cached
from heatsketch.spectral.chebyshev import combine
from heatsketch.spectral.filters import Filter

_PROBES, _STEPS = 4, 40


class SpectralDensity(NamedTuple):
    """Nodes, and the number of eigenvalues of A near each: tr f(A) ≈ Σ counts · f(values)."""

    values: Array  # (m,)
    counts: Array  # (m,), not whole

    def fraction_beyond(self, count: int, f: Filter) -> float:
        """Return the fraction of tr f(A)² without the `count` largest eigenvalues."""
        order = np.argsort(-self.values)
        counts, f_values = self.counts[order], f.scaled(self.values[order])[0]
        number, sums = (np.cumsum([0.0, *some]) for some in (counts, counts * f_values**2))
        return 1.0 - float(np.interp(count, number, sums) / sums[-1])


@cached
def spectral_density(A: Deflated, seed: int = 0) -> SpectralDensity:
    """Estimate the density of the eigenvalues of A, without those of deflated directions.

    Traces of functions that vary little over the spectrum are exact except for the error of the
    probes, about √(2 / (probes · n)). The density is most accurate at the ends of the spectrum.

    Cost: 40 products by A with 4 columns.
    """
    size = A.n - A.V.shape[1]
    G = A.project(random_block(A.n, _PROBES, "gaussian", np.random.default_rng(seed)))
    return quadrature(A, G * (np.sqrt(size / _PROBES) / np.linalg.norm(G, axis=0)), _STEPS)


def quadrature(A: Operator, X: Array, steps: int) -> SpectralDensity:
    """Return the Gauss quadratures of Σ xᵀ f(A) x over the columns of X (n, k), by Lanczos steps.

    They are exact for polynomials of degree 2 · steps - 1 (Ubaru, Chen and Saad 2017). For random X
    with E XXᵀ = I their mean is tr f(A).
    """
    steps = min(steps, A.n - A.V.shape[1])
    X = A.asarray(X)
    dots = functools.partial(np.einsum, "ij,ij->j", dtype=float)  # of columns, in the same order
    squares, before = np.maximum(dots(X, X), np.finfo(A.dtype).tiny), 0 * X
    diagonals, off_diagonals = np.zeros((2, steps, X.shape[1]))
    X = X / np.sqrt(squares).astype(A.dtype)
    for step in range(steps):
        Y = A.multiply_projected(X)
        diagonals[step] = dots(X, Y)
        combine(
            Y, -diagonals[step].astype(A.dtype), X, -off_diagonals[step - 1].astype(A.dtype), before
        )
        off_diagonals[step] = np.sqrt(dots(Y, Y))
        # If the residual is 0 the quadrature is exact, and further nodes have no weight.
        sizes = np.maximum(off_diagonals[step], np.finfo(A.dtype).tiny)
        Y /= sizes.astype(A.dtype)
        before, X = X, Y
    values, counts = [], []
    for square, diagonal, off_diagonal in zip(
        squares, diagonals.T, off_diagonals[:-1].T, strict=True
    ):
        nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal)
        values.append(nodes)
        counts.append(square * vectors[0] ** 2)
    return SpectralDensity(np.concatenate(values), np.concatenate(counts))
