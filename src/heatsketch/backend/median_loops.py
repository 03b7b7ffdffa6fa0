"""Compiled loop: weighted geometric medians, the places of new points in a free layout.

Plain loops throughout: products, slices and solvers of NumPy would take the compiler ten times as
long.
"""

from math import sqrt

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array
from heatsketch.backend.medians import HALVINGS, MOST_ROUNDS, ROUNDING, STILL


@compiled
def medians(
    Y: Array, indptr: Array, indices: Array, weights: Array, start: int, stop: int, out: Array
) -> None:
    """Write the weighted geometric median of the positions Y of each row's entries to out (m, c).

    Of infinite weights only these count. A datum is the minimum if the others pull at it with at
    most its own weight (Kuhn 1973); the mean of several such is one, too. Else the descent starts
    beside the best datum (Vardi and Zhang 2000). It makes steps of Newton, shortened until they
    lead lower than Weiszfeld's.
    """
    c = Y.shape[1]
    y, tried, newton = np.empty(c), np.empty(c), np.empty(c)
    total, pull, curvature = np.empty(c), np.empty(c), np.empty((c, c))
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    every_w = np.empty(longest)
    for i in range(start, stop):
        data = indices[indptr[i] : indptr[i + 1]]
        w = every_w[: len(data)]
        heaviest = 0.0
        for e in range(len(data)):
            w[e] = weights[indptr[i] + e]
            heaviest = max(heaviest, w[e])
        for e in range(len(data)):
            w[e] = w[e] / heaviest if w[e] < heaviest else 1.0  # a finite one of infinite ones: 0
        count, first, least = 0, data[0], np.inf
        for a in range(c):
            total[a] = 0.0
        for e in range(len(data)):
            if w[e] > 0.0:
                for a in range(c):
                    tried[a] = Y[data[e], a]
                cost, own, inverse = _slopes(Y, data, w, tried, pull, curvature)
                strength = 0.0
                for a in range(c):
                    strength += pull[a] ** 2
                strength = sqrt(strength)
                if strength <= own * (1 + ROUNDING):
                    first = first if count else data[e]
                    count += 1
                    for a in range(c):
                        total[a] += tried[a] - Y[first, a]
                elif cost < least:
                    least = cost
                    for a in range(c):
                        y[a] = tried[a] - (1 - own / strength) / inverse * pull[a]
        if count:
            for a in range(c):
                out[i, a] = Y[first, a] + total[a] / count
            continue
        cost, own, inverse = _slopes(Y, data, w, y, pull, curvature)
        for _ in range(MOST_ROUNDS):
            for a in range(c):
                out[i, a] = y[a] - pull[a] / inverse
                newton[a] = pull[a]
                curvature[a, a] += ROUNDING * inverse
            _solve(curvature, newton)
            cost, own, inverse = _slopes(Y, data, w, out[i], pull, curvature)
            for _ in range(HALVINGS):
                for a in range(c):
                    tried[a] = y[a] - newton[a]
                    newton[a] /= 2
                if _slopes(Y, data, w, tried, pull, curvature)[0] <= cost:
                    for a in range(c):
                        out[i, a] = tried[a]
                    break
            moved = extent = 0.0
            for a in range(c):
                moved = max(moved, abs(out[i, a] - y[a]))
                for e in range(len(data)):
                    extent = max(extent, abs(Y[data[e], a] - y[a]))
                y[a] = out[i, a]
            cost, own, inverse = _slopes(Y, data, w, y, pull, curvature)
            if moved <= STILL * extent:
                break


@compiled
def _slopes(
    Y: Array, data: Array, w: Array, y: Array, pull: Array, curvature: Array
) -> tuple[float, float, float]:
    """Return Σ w d, the weight at y and Σ w / d of the others; write slope and curvature at y."""
    c = len(y)
    cost = own = inverse = 0.0
    for a in range(c):
        pull[a] = 0.0
        for b in range(c):
            curvature[a, b] = 0.0
    for e in range(len(data)):
        square = 0.0
        for a in range(c):
            square += (y[a] - Y[data[e], a]) ** 2
        if square > 0.0:
            d = sqrt(square)
            cost += w[e] * d
            inverse += w[e] / d
            for a in range(c):
                along = w[e] / d * (y[a] - Y[data[e], a])
                pull[a] += along
                curvature[a, a] += w[e] / d
                for b in range(c):
                    curvature[a, b] -= along * (y[b] - Y[data[e], b]) / square
        else:
            own += w[e]
    return cost, own, inverse


@compiled
def _solve(A: Array, x: Array) -> None:
    """Replace x (c,) by A⁻¹ x, A (c, c) positive definite, which is overwritten."""
    c = len(x)
    for a in range(c):
        for b in range(a + 1, c):
            factor = A[b, a] / A[a, a]
            x[b] -= factor * x[a]
            for j in range(a, c):
                A[b, j] -= factor * A[a, j]
    for a in range(c - 1, -1, -1):
        for j in range(a + 1, c):
            x[a] -= A[a, j] * x[j]
        x[a] /= A[a, a]
