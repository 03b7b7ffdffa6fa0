"""Compiled loop: weighted geometric medians, the places of new points in a free layout."""

from math import sqrt

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array

ROUNDING = 1e-12  # of the pull of some weights, relative to one
HALVINGS = 10  # of a step of Newton
MOST_ROUNDS, STILL = 200, 1e-15  # of a median, and the relative step at which it is found


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
    pull, curvature, total, y = np.empty(c), np.empty((c, c)), np.empty(c), np.empty(c)
    for i in range(start, stop):
        data, w = Y[indices[indptr[i] : indptr[i + 1]]], weights[indptr[i] : indptr[i + 1]].copy()
        heaviest = w.max()
        for e in range(len(w)):
            w[e] = w[e] / heaviest if w[e] < heaviest else 1.0  # a finite one of infinite ones: 0
        count, first, least = 0, 0, np.inf
        total[:] = 0.0
        for e in range(len(w)):
            if w[e] > 0.0:
                cost, own, inverse = _slopes(data, w, data[e], pull, curvature)
                strength = sqrt(np.sum(pull**2))
                if strength <= own * (1 + ROUNDING):
                    first = first if count else e
                    count += 1
                    total += data[e] - data[first]
                elif cost < least:
                    least = cost
                    y[:] = data[e] - (1 - own / strength) / inverse * pull
        out[i] = data[first] + total / max(count, 1)
        if count:
            continue
        cost, own, inverse = _slopes(data, w, y, pull, curvature)
        for _ in range(MOST_ROUNDS):
            out[i] = y - pull / inverse
            for a in range(c):
                curvature[a, a] += ROUNDING * inverse
            newton = np.linalg.solve(curvature, pull)
            cost, own, inverse = _slopes(data, w, out[i], pull, curvature)
            for _ in range(HALVINGS):
                if _slopes(data, w, y - newton, pull, curvature)[0] <= cost:
                    out[i] = y - newton
                    break
                newton /= 2
            moved, extent = np.abs(out[i] - y).max(), np.abs(data - y).max()
            y[:] = out[i]
            cost, own, inverse = _slopes(data, w, y, pull, curvature)
            if moved <= STILL * extent:
                break


@compiled
def _slopes(
    data: Array, w: Array, y: Array, pull: Array, curvature: Array
) -> tuple[float, float, float]:
    """Return Σ w d, the weight at y and Σ w / d of the others; write slope and curvature at y."""
    cost = own = inverse = 0.0
    pull[:] = 0.0
    curvature[:] = 0.0
    for e in range(len(w)):
        square = 0.0
        for a in range(len(y)):
            square += (y[a] - data[e, a]) ** 2
        if square > 0.0:
            d = sqrt(square)
            cost += w[e] * d
            inverse += w[e] / d
            for a in range(len(y)):
                along = w[e] / d * (y[a] - data[e, a])
                pull[a] += along
                curvature[a, a] += w[e] / d
                for b in range(len(y)):
                    curvature[a, b] -= along * (y[b] - data[e, b]) / square
        else:
            own += w[e]
    return cost, own, inverse
