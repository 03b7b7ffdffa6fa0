"""Three-term recurrences of an operator on a block: Chebyshev polynomials, and Lanczos steps.

Lanczos steps give the distribution of the eigenvalues.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from heatsketch._arrays import Array
from heatsketch._random import random_block
from heatsketch.core.blocks import Block
from heatsketch.core.operators import LANCZOS_STEPS, Bounds, Operator
from heatsketch.spectral.filters import Filter

_PROBES = 4


def recurrence(
    A: Operator, X: Block, interval: Bounds, degree: int, image: Block | None = None
) -> Iterator[Block]:
    """Yield T_j(x) X for j = 1, ..., degree, x = A with the interval mapped to [-1, 1].

    Callers must not write to these blocks, because the next one is computed from the last two.
    `image` is A X if it is known; it is overwritten.
    """
    low, high = interval
    scale, shift = 2.0 / (high - low), (high + low) / (high - low)
    combine = A.blocks.combine
    previous, current = X, A.product(X) if image is None else image
    combine((current, scale, [(-shift, X)]))  # T_1 = x T_0
    del X, image  # memory: of all terms only the last two are kept
    yield current
    for _ in range(1, degree):  # T_(j+1) = 2 x T_j - T_(j-1)
        following = A.product_without_V(A.without_V(current, out=current))
        combine((following, 2 * scale, [(-2 * shift, current), (-1.0, previous)]))
        yield following
        previous, current = current, following


class SpectralDensity(NamedTuple):
    """Nodes, and the number of eigenvalues of A near each: tr f(A) ≈ Σ counts · f(values)."""

    values: Array  # (m,)
    counts: Array  # (m,), not whole

    def fraction_beyond(self, count: int, f: Filter) -> float:
        """Return the fraction of tr f(A)² without the `count` largest eigenvalues."""
        order = np.argsort(-self.values)
        counts, f_values = self.counts[order], f.with_log_scale(self.values[order])[0]
        number, sums = (np.cumsum([0.0, *some]) for some in (counts, counts * f_values**2))
        return 1.0 - float(np.interp(count, number, sums) / sums[-1])


def spectral_density(
    A: Operator, X: Block | None = None, steps: int = LANCZOS_STEPS
) -> SpectralDensity:
    """Return the Gauss quadratures of Σ xᵀ f(A) x over the columns of X (n, k), by Lanczos steps.

    They are exact for polynomials of degree 2 · steps - 1 (Ubaru, Chen and Saad 2017). For random X
    with E XXᵀ = I their mean is tr f(A). By default X are four such columns, without the deflated
    directions. Then traces of functions that vary little over the spectrum are exact except for the
    error of the probes, about √(2 / (probes · n)). The density is most accurate at the ends of the
    spectrum.

    Cost: as many products by A with X as there are steps.
    """
    size = A.n - A.n_deflated
    native, dots, dtype = A.blocks.native, A.blocks.dots, A.dtype
    if X is None:
        probes = random_block(A.n, _PROBES, "gaussian", np.random.default_rng(0))
        X = A.without_V(native(probes, dtype))
        X = X * native(np.sqrt(size / _PROBES) / A.blocks.norms(X))
    X, steps = native(X, dtype), min(steps, size)
    squares, before = np.maximum(dots(X, X), np.finfo(dtype).tiny), 0 * X
    diagonals, off_diagonals = np.zeros((2, steps, X.shape[1]))
    X = X / native(np.sqrt(squares), dtype)
    for step in range(steps):
        Y = A.product_without_V(X)
        diagonals[step] = dots(X, Y)
        Y -= native(diagonals[step], dtype) * X
        Y -= native(off_diagonals[step - 1], dtype) * before
        off_diagonals[step] = np.sqrt(dots(Y, Y))
        # If the residual is 0 the quadrature is exact, and further nodes have no weight.
        Y /= native(np.maximum(off_diagonals[step], np.finfo(dtype).tiny), dtype)
        before, X = X, Y
    values, counts = [], []
    for square, diagonal, off_diagonal in zip(
        squares, diagonals.T, off_diagonals[:-1].T, strict=True
    ):
        nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal)
        values.append(nodes)
        counts.append(square * vectors[0] ** 2)
    return SpectralDensity(np.concatenate(values), np.concatenate(counts))
