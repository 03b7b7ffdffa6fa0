"""Pairs of points, losses over them with their slopes, and the descent of any layout.

Losses are functions of the log distance ratios ℓ of pairs. They do not change when all distances
are multiplied by one number.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from heatsketch._exceptions import logger
from heatsketch._typing import Array
from heatsketch.neighbors import NeighborIndex, all_distances, pair_distances

Pairs = tuple[Array, Array]
Loss = Callable[..., tuple[float, Array]]  # its value and its slope

ALL_PAIRS_UP_TO = 2_048  # points
RANDOM_PAIRS = 500_000
NEAR_ROWS = 4_000  # points whose nearest neighbours are searched in many dimensions
_NEAR, _COLLIDING = 5, 5  # nearest neighbours in the input and in the embedding
_SEED = 0  # a constant: pairs depend only on the order of the rows
SEARCH_BETA = 16.0  # of the first J_β
_WIDTH = 2.0  # width of the window of `outside_fraction`, in units of log factor
_CENTRING_STEPS = 8
_TINY = 1e-24  # squared ratio that counts as zero


# Pairs


def sampled_pairs(
    n: int, count: int, rng: np.random.Generator | None = None, labels: Array | None = None
) -> Pairs:
    """Return all pairs of n points if there are at most `count`; else draw so many pairs.

    Drawn pairs are of two different points; some may occur more than once. With labels (n,), from
    0, pairs are always drawn, of points of the same label; raises if there is no such pair.
    """
    if labels is None and n * (n - 1) // 2 <= count:
        return np.triu_indices(n, 1)
    rng = np.random.default_rng(_SEED) if rng is None else rng
    if labels is None:
        i = rng.integers(0, n, count)
        return i, (i + rng.integers(1, n, count)) % n
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ends = np.cumsum(sizes * (sizes - 1))
    if ends[-1] == 0:
        raise ValueError("No two points are in the same component; pass a larger n_neighbors.")
    drawn = rng.integers(0, ends[-1], count)  # of all ordered pairs
    group = np.searchsorted(ends, drawn, side="right")
    size = sizes[group]
    place, offset = np.divmod(ends[group] - 1 - drawn, size - 1)
    partner = (place + 1 + offset) % size
    return order[starts[group] + place], order[starts[group] + partner]


def within_labels(i: Array, j: Array, labels: Array | None) -> Pairs:
    """Return the pairs whose points have the same label; all pairs without labels (n,)."""
    if labels is None:
        return i, j
    kept = labels[i] == labels[j]
    return i[kept], j[kept]


def nearest_pairs(F: Array, rows: Array, k: int) -> Pairs:
    """Return the pairs of each of the rows and its k nearest other rows of F."""
    i = np.repeat(rows, k + 1)
    j = NeighborIndex(F).query(F[rows], k + 1).indices.ravel()
    return i[i != j], j[i != j]


def shortest_pairs(F: Array) -> Pairs:
    """Return the pairs of 4,000 rows of F, or all, and their nearest neighbours."""
    return nearest_pairs(F, np.arange(min(len(F), NEAR_ROWS)), min(_NEAR, len(F) - 1))


def log_ratio_evaluator(F: Array) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return a function that evaluates embeddings of F (n, r) on fixed pairs and on near pairs.

    It maps an embedding Y (n, k) to its log ratios to F, (m,), and their pairs i, j. Up to 2,048
    points these are all pairs. Beyond, they are random pairs, nearest neighbours in F, and nearest
    neighbours in each embedding, which include collisions.
    """
    if len(F) <= ALL_PAIRS_UP_TO:
        fixed_pairs = np.array(np.triu_indices(len(F), 1))
        fixed_logs = _logs(all_distances(F))
    else:
        fixed_pairs = np.hstack([sampled_pairs(len(F), RANDOM_PAIRS // 2), shortest_pairs(F)])
        fixed_logs = _logs(pair_distances(F, F, *fixed_pairs))

    def evaluate(Y: Array) -> tuple[Array, Array, Array]:
        if len(Y) <= ALL_PAIRS_UP_TO:
            i, j = fixed_pairs
            return _logs(pdist(Y)) - fixed_logs, i, j
        close_pairs = nearest_pairs(Y, np.arange(len(Y)), _COLLIDING)
        close_logs = _logs(pair_distances(F, F, *close_pairs))
        i, j = np.hstack([fixed_pairs, close_pairs])
        logs = np.append(fixed_logs, close_logs)
        return _logs(pair_distances(Y, Y, i, j)) - logs, i, j

    return evaluate


def _logs(distances: Array) -> Array:
    """Return logarithms of distances, which are at least 1e-30 of the largest one."""
    return np.log(np.maximum(distances, 1e-30 * (distances.max() or 1.0)))


# Losses: ℓ (m,) -> value, slope (m,)


def stress(log_ratios: Array) -> tuple[float, Array]:
    """Return the variance of ℓ and its slope: smooth, and with few minima.

    It is the limit of J_β / β as β → 0, see `log_distortion`.
    """
    centred = log_ratios - log_ratios.mean()
    return float(np.mean(centred**2, dtype=float)), centred * (2 / len(centred))


def outside_fraction(
    log_ratios: Array, factor: float, log_L_weight: float = 0.0
) -> tuple[float, Array]:
    """Return the smoothed fraction of pairs whose ratio is far from the typical one, and its slope.

    The value is the mean of 1 - exp(-(ℓ - c)²/2w²), with the centre c at which it is least and the
    width w = 2 log `factor`. A width of 1.25 log `factor` would keep 1-3 % more pairs within
    `factor`, but other pairs would coincide in the picture (docs/embeddings.md). `log_L_weight`
    times J_16 is added, so that no two points coincide.
    """
    width = _WIDTH * math.log(factor)
    centre = float(log_ratios.mean())
    for _ in range(_CENTRING_STEPS):
        near = np.exp(-(((log_ratios - centre) / width) ** 2) / 2)
        centre = float(near @ log_ratios / max(near.sum(), 1e-30))
    centred = log_ratios - centre
    near = np.exp(-((centred / width) ** 2) / 2)
    # c does not contribute to the slope, because it is at a minimum.
    value = 1 - float(near.mean(dtype=float))
    slope = near * centred / (width**2 * len(near))
    if log_L_weight:
        log_L, log_L_slope = log_distortion(log_ratios, SEARCH_BETA)
        value += log_L_weight * log_L
        slope += log_L_weight * log_L_slope
    return value, slope


def log_distortion(log_ratios: Array, beta: float) -> tuple[float, Array]:
    """Return the smoothed log-distortion J_β and its slope.

    J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}. It tends to log L = max ℓ - min ℓ
    as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """
    low, high = log_ratios.min(), log_ratios.max()
    up = np.exp(beta * (log_ratios - high))
    down = np.exp(beta * (low - log_ratios))
    total_up = float(up.sum(dtype=float))
    total_down = float(down.sum(dtype=float))
    log_means = math.log(total_up / len(up)) + math.log(total_down / len(up))
    return float(high - low) + log_means / beta, up / total_up - down / total_down


# The descent


class Layout(Protocol):
    """Map from parameters to points Y (n, k), such as Y = Z Q of a linear map Q."""

    def images(self, parameters: Array) -> Array:
        """Return the points Y (n, k)."""

    def pull(self, parameters: Array, slope: Array) -> Array:
        """Return dJ/dparameters at some parameters, given dJ/dY (n, k)."""


class PairObjective:
    """Pairs of points whose distances a layout should keep, up to one factor.

    One evaluation takes m k operations for m pairs, beyond those of the layout.

    Parameters
    ----------
    n : int
        Number of points.

    Attributes
    ----------
    history : list of dict
        A record of each descent.
    """

    def __init__(self, n: int) -> None:
        self.history: list[dict[str, Any]] = []
        self.differences = sparse.csr_array((0, n))  # (m, n): takes Y to (y_i - y_j) / d_ij

    def add(self, i: Array, j: Array, distances: Array) -> None:
        """Add pairs (m,) with the distances to keep."""
        m = len(distances)
        entries = np.repeat(1 / distances, 2) * np.tile([1.0, -1.0], m)
        matrix = (entries, np.stack([i, j], axis=1).ravel(), np.arange(0, 2 * m + 1, 2))
        added = sparse.csr_array(matrix, (m, self.differences.shape[1]))
        self.differences = sparse.vstack([self.differences, added], format="csr")

    def log_ratios(self, Y: Array) -> Array:
        """Return ℓ (m,) of all pairs of points Y (n, k)."""
        return np.log(self._scaled_differences(Y)[1]) / 2

    def evaluate(self, Y: Array, loss: Loss, **options: float) -> tuple[float, Array]:
        """Return the loss J of points Y (n, k) with its `options`, and its slope dJ/dY (n, k)."""
        differences, squares = self._scaled_differences(Y)
        value, slope = loss(np.log(squares) / 2, **options)
        return value, self.differences.T @ (differences * (slope / squares)[:, None])

    def _scaled_differences(self, Y: Array) -> tuple[Array, Array]:
        """Return (y_i - y_j) / d_ij of all pairs, (m, k), and their squared lengths (m,)."""
        differences = self.differences @ Y
        return differences, np.einsum("ij,ij->i", differences, differences) + _TINY

    def descend(
        self,
        layout: Layout,
        start: Array,
        loss: Loss,
        max_iter: int,
        penalty: Loss | None = None,
        **options: float,
    ) -> Array:
        """Minimise the loss, with its `options`, over the parameters of a layout.

        The penalty adds a function of the parameters, given with its gradient.
        """

        def objective(flat: Array) -> tuple[float, Array]:
            parameters = flat.reshape(start.shape)
            value, slope = self.evaluate(layout.images(parameters), loss, **options)
            gradient = layout.pull(parameters, slope)
            if penalty is not None:
                added, added_gradient = penalty(parameters)
                value += added
                gradient += added_gradient
            return value, gradient.ravel()

        limits = {"maxiter": max_iter}
        found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=limits)
        record = {"loss": loss.__name__, **options, "pairs": self.differences.shape[0]}
        record |= {"objective": float(found.fun), "iterations": int(found.nit)}
        self.history.append(record)
        logger.info("learning the map: %s", record)
        return found.x.reshape(start.shape)
