"""The compiled loops of SNE and t-SNE: bandwidths, forces between all pairs, places of new points.

Embeddings are stored by coordinate, Yt (k, n), so that loops over points are loops over vectors.
"""

import math

import numpy as np

from heatsketch._compile import compiled, compiled_as_written
from heatsketch._typing import Array
from heatsketch.operators.exp2 import exp2_double

_BLOCK_POINTS = 512  # points whose weights are held at a time
_MIN_LOG_BETA, _MAX_LOG_BETA = math.log(1e-215), math.log(800.0)  # see `calibrate`
_MAX_LENGTH_RATIO = 1e100  # beyond, a point has no weight unless all other points coincide
_MAX_EXPONENT = 745.0  # e^-x is 0 for larger x
_ENTROPY_TOLERANCE = 1e-12
_MIN_STEP_LENGTH = 1e-7  # a new point whose step is shorter has arrived
_MAX_TRIAL_STEPS = 300  # for a new point


@compiled_as_written  # 1 / gap may overflow where value / gap does not
def calibrate(distances: Array, perplexity: float, p: Array, sigma: Array, ties: Array) -> None:
    """Solve the perplexity (14) for the bandwidth of every row, and write p_{j|i} (13) and σ_i.

    Distances (m, l) ascend. With k = ⌈perplexity⌉, the smallest square is subtracted from all, and
    the rest divided so that the k-th is 1: then β = 1/2σ² cannot exceed 800, because fewer than k
    points would have a weight, nor be so small that all weights are equal. `ties` counts the points
    as near as the nearest; where they are too many for the perplexity, they share p: the limit of
    σ → 0.
    """
    wanted, k, width = math.log(perplexity), math.ceil(perplexity), distances.shape[1]
    u = np.empty(width)
    for i in range(len(distances)):
        r = distances[i]
        least, count = r[0], 1
        while count < width and r[count] == least:
            count += 1
        ties[i], sigma[i] = count, 0.0
        if count >= perplexity:
            p[i, :count], p[i, count:] = 1.0 / count, 0.0
            continue
        gap, total = r[k - 1] - least, r[k - 1] + least
        for j in range(width):
            difference = min((r[j] - least) / gap, _MAX_LENGTH_RATIO)
            u[j] = difference * min((r[j] + least) / total, _MAX_LENGTH_RATIO)
        beta = _solve_entropy(u, wanted, p[i])
        sigma[i] = math.sqrt(gap) * math.sqrt(total) / math.sqrt(2 * beta)


@compiled_as_written
def _solve_entropy(u: Array, wanted: float, p: Array) -> float:
    """Return β so that p ∝ e^(-β u) has the wanted entropy (nats), by Newton's method in log β.

    A step that leaves the bracket is replaced by bisection. dH / d log β = -Var(β u).
    """
    low, high, t, total = _MIN_LOG_BETA, _MAX_LOG_BETA, 0.0, 1.0
    for _ in range(200):
        beta = math.exp(t)
        total, mean, square = 0.0, 0.0, 0.0
        for j in range(len(u)):
            v = beta * u[j]
            p[j] = 0.0
            if v < _MAX_EXPONENT:
                p[j] = math.exp(-v)
                total += p[j]
                mean += v * p[j]
                square += v * v * p[j]
        mean /= total
        excess = math.log(total) + mean - wanted
        if abs(excess) <= _ENTROPY_TOLERANCE:
            break
        if excess > 0:
            low = t
        else:
            high = t
        t += excess / (square / total - mean * mean)
        if not low < t < high:
            t = 0.5 * (low + high)
    for j in range(len(u)):
        p[j] /= total
    return beta


@compiled
def student_forces(
    Yt: Array,
    starts: Array,
    columns: Array,
    p: Array,
    first: int,
    stop: int,
    pull: Array,
    push: Array,
    sums: Array,
) -> None:
    """Write Σ_j p_ij w_ij (y_i - y_j), Σ_j w_ij² (y_i - y_j) and Σ_{j≠i} w_ij for some rows i.

    w_ij = 1 / (1 + |y_i - y_j|²). The first sum runs over the pairs stored, the others over all.
    """
    k = Yt.shape[0]
    y, force = np.empty(k, Yt.dtype), np.empty(k, Yt.dtype)
    weights = np.empty(_BLOCK_POINTS, Yt.dtype)
    for i in range(first, stop):
        for c in range(k):
            y[c], force[c] = Yt[c, i], 0
        for e in range(starts[i], starts[i + 1]):
            j, square = columns[e], 0.0
            for c in range(k):
                square += (y[c] - Yt[c, j]) ** 2
            weight = p[e] / (1.0 + square)
            for c in range(k):
                force[c] += weight * (y[c] - Yt[c, j])
        pull[:, i] = force
        sums[i] = _student_row(Yt, y, i, weights, force)
        push[:, i] = force


@compiled
def _student_row(Yt: Array, y: Array, own: int, weights: Array, force: Array) -> float:
    """Return Σ_j w_j and write Σ_j w_j² (y - y_j), w_j = 1 / (1 + |y - y_j|²), over j ≠ own."""
    k, n = Yt.shape
    one, total = Yt.dtype.type(1), 0.0
    force[:] = 0
    for start in range(0, n, _BLOCK_POINTS):
        count = min(_BLOCK_POINTS, n - start)
        weights[:count] = 1
        for c in range(k):
            here, others = y[c], Yt[c, start : start + count]
            for j in range(count):
                d = here - others[j]
                weights[j] += d * d
        if start <= own < start + count:
            weights[own - start] = np.inf
        part = Yt.dtype.type(0)
        for j in range(count):
            w = one / weights[j]
            part += w
            weights[j] = w * w
        total += part
        for c in range(k):
            here, others = y[c], Yt[c, start : start + count]
            part = Yt.dtype.type(0)
            for j in range(count):
                part += weights[j] * (here - others[j])
            force[c] += part
    return total


@compiled
def gaussian_forces(Yt: Array, first: int, stop: int, push: Array, logs: Array) -> None:
    """Add to push (k, n) what some rows i contribute to Σ_j (q_{j|i} + q_{i|j}) (y_i - y_j).

    Row i contributes q_{j|i} = e^(-|y_i - y_j|²) / Z_i for all j, which pushes y_i and every y_j.
    Also writes log Z_i. The smallest square is subtracted from all, so that no Z is 0.
    """
    k, n = Yt.shape
    q = np.empty(n)
    for i in range(first, stop):
        q[:] = 0.0
        for c in range(k):
            here, others = Yt[c, i], Yt[c]
            for j in range(n):
                d = here - others[j]
                q[j] -= d * d
        q[i] = -np.inf
        top = -np.inf
        for j in range(n):
            top = max(top, q[j])
        for j in range(n):
            q[j] = (q[j] - top) * 1.4426950408889634  # 1 / log 2
        exp2_double(q)
        total = 0.0
        for j in range(n):
            total += q[j]
        logs[i] = math.log(total) + top
        for c in range(k):
            here, others, out = Yt[c, i], Yt[c], push[c]
            own, share = 0.0, 1 / total
            for j in range(n):
                move = q[j] * share * (here - others[j])
                own += move
                out[j] -= move
            out[i] += own


@compiled
def squares_of_pairs(
    Yt: Array, starts: Array, columns: Array, first: int, stop: int, squares: Array
) -> None:
    """Write |y_i - y_j|² for the stored pairs of some rows i."""
    for i in range(first, stop):
        for e in range(starts[i], starts[i + 1]):
            square = 0.0
            for c in range(Yt.shape[0]):
                square += (Yt[c, i] - Yt[c, columns[e]]) ** 2
            squares[e] = square


@compiled
def place(Yt: Array, columns: Array, p: Array, out: Array) -> None:
    """Write the places (m, k) of new points among the points Yt (k, n), which stay where they are.

    Each starts at the mean of its neighbours' places, weighted by p (m, l), and descends the
    gradient of Σ_j p_j log(p_j / q_j), q over all n points. The step size is doubled while the
    divergence falls sufficiently (Armijo's rule), and halved otherwise.
    """
    k = Yt.shape[0]
    weights = np.empty(_BLOCK_POINTS)
    y, trial, g, g_trial = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for i in range(len(columns)):
        for c in range(k):
            y[c] = 0.0
            for e in range(columns.shape[1]):
                y[c] += p[i, e] * Yt[c, columns[i, e]]
        cost = _divergence(Yt, columns[i], p[i], y, weights, g)
        step = 1.0
        for _ in range(_MAX_TRIAL_STEPS):
            slope = 0.0
            for c in range(k):
                slope += g[c] * g[c]
                trial[c] = y[c] - step * g[c]
            if step * math.sqrt(slope) <= _MIN_STEP_LENGTH:
                break
            new = _divergence(Yt, columns[i], p[i], trial, weights, g_trial)
            if new <= cost - 0.25 * step * slope:
                y[:], g[:], cost = trial, g_trial, new
                step *= 2.0
            else:
                step *= 0.5
        out[i] = y


@compiled
def _divergence(Yt: Array, near: Array, p: Array, y: Array, weights: Array, g: Array) -> float:
    """Return -Σ p_j log q_j of a place y, and write its gradient 2 Σ (p_j - q_j) w_j (y - y_j)."""
    total = _student_row(Yt, y, -1, weights, g)
    for c in range(len(y)):
        g[c] *= -2.0 / total
    cost = math.log(total)
    for e in range(len(near)):
        square = 0.0
        for c in range(len(y)):
            square += (y[c] - Yt[c, near[e]]) ** 2
        cost += p[e] * math.log1p(square)
        weight = 2.0 * p[e] / (1.0 + square)
        for c in range(len(y)):
            g[c] += weight * (y[c] - Yt[c, near[e]])
    return cost
