"""Derivatives of places by features, and points at places: local linear maps, both ways."""

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from heatsketch._arrays import Array
from heatsketch._messages import warn_of_rows
from heatsketch._threads import row_tiles
from heatsketch.layout.maps import Map, NewPoint
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import PointKernel, fraction_less_new

_ENTRIES = 2**22  # of derivatives of affinities, held at a time: 32 MB
_RIDGE = 1e-3  # of squared distances of places, so that few neighbours leave no direction open
_PLACES = 15  # training places, and two for each coordinate, to which a plane is fitted
_SAME = 1e-6  # of the farthest place, by which places differ by rounding in single precision
_LEFT_OUT = 2048  # training places by which the novelty of others is measured


# Derivatives of places


def derivatives(diffusion: Diffusion, placed: Map, X: Array) -> Array:
    """Return the derivatives (m, k, d) of the places of points X (m, d) by their features.

    With the affinities K_j to the training points x_j, s the local scale of x and s_j that of x_j,

        ∇ log K_j = -2 (x - x_j) / (s s_j) + |x - x_j|² / (s² s_j) ∇s,   ∇s = (x - x_o) / s,

    x_o the neighbour at the distance s. A linear map is a quotient of sums of K_j. The location y
    of places y_j with pulls c_j fulfils Σ c_j q_j (y - y_j) = 0, q_j = 1 / (1 + |y - y_j|² / s²),
    so that

        Σ c_j q_j (1 - 2 q_j (y - y_j) (y - y_j)ᵀ / s²) dy = -Σ dc_j q_j (y - y_j).

    A training point is left out of those that pull at it, for it would not move.
    """
    kernel = diffusion.out_of_sample
    if not isinstance(kernel, PointKernel) or kernel.metric != "euclidean":
        raise ValueError(
            "Derivatives are those of Euclidean distances between points; fit points with "
            "metric='euclidean', and an affinity other than 'precomputed'."
        )
    if sparse.issparse(kernel.points):
        raise ValueError("The training points are sparse; fit X.toarray() for derivatives.")
    if sparse.issparse(X):
        raise ValueError("X is sparse, but derivatives are by all features; pass X.toarray().")
    points = np.asarray(kernel.points, float)[diffusion.first_points]
    found = []
    for rows in row_tiles(len(X), max(1, _ENTRIES // points.size)):
        near = diffusion.near(X[rows])
        K, weights = (sparse.csr_matrix(part) for part in (near.affinities, placed.weights(near)))
        for i, x in enumerate(X[rows].astype(float)):
            own, row = (slice(*part.indptr[i : i + 2]) for part in (K, weights))
            columns = K.indices[own]
            apart = x - points[columns]
            slopes = kernel.log_slopes(apart, columns), kernel.pull_slopes(apart, columns)
            beside = NewPoint(K.data[own], columns, apart, *slopes, near.scaling)
            found.append(placed.slopes(beside, weights.indices[row], weights.data[row]))
    return np.stack(found)


# Points at places


def points_at(places: Array, points: Array, Y: Array) -> Array:
    """Return points (m, d) at places Y (m, k): those of a local linear fit, exact at training ones.

    It minimises Σ_j w_j |x_j - a - B (y_j - y)|² over the nearest places y_j, w_j = 1/|y - y_j|²,
    with a small penalty of B; the point is a. The penalty is relative to Σ_j w_j |y_j - y|², so
    that places that differ by rounding alone, next to their distance from y, give no slope.
    """
    k, count = places.shape[1], _count(places)
    near_places = cKDTree(places).query(Y, count)
    distances, nearest = (np.reshape(part, (len(Y), count)) for part in near_places)
    found = np.empty((len(Y), points.shape[1]))
    for rows in row_tiles(len(Y), max(1, _ENTRIES // (count * max(k, points.shape[1])))):
        d, near = distances[rows], nearest[rows]
        x, y = points[near].astype(float), places[near] - Y[rows][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            w = (d[:, -1:] / d) ** 2
        here = d == 0
        w = np.where(here.any(axis=1, keepdims=True), here, w)
        w /= w.sum(axis=1, keepdims=True)
        mean_x, mean_y = (np.einsum("mj,mjc->mc", w, part) for part in (x, y))
        x, y = x - mean_x[:, None], y - mean_y[:, None]
        gram = np.einsum("mj,mjc,mje->mce", w, y, y)
        size = np.einsum("mj,mj->m", w, d * d) / k
        gram += np.where(size > 0, _RIDGE * size, 1.0)[:, None, None] * np.eye(k)
        B = np.linalg.solve(gram, np.einsum("mj,mjc,mjd->mcd", w, y, x))
        found[rows] = mean_x - np.einsum("mc,mcd->md", mean_y, B)
    return found


def _count(places: Array) -> int:
    """Return how many of the places (n, k) a local fit takes."""
    n, k = places.shape
    return min(n, max(_PLACES, 2 * k + 1))


def warn_of_places(places: Array, Y: Array) -> None:
    """Warn of places Y farther from the nearest training place, in its scale, than any of these."""
    tree = cKDTree(places)
    chosen = np.linspace(0, tree.n - 1, min(tree.n, _LEFT_OUT)).astype(int)
    own, other = tree.query(places[chosen], 2)

    def affinity(d: Array, at: Array) -> Array:
        scales = tree.query(places[at], max(2, _count(places) // 2))[0][:, -1]
        return -d / np.maximum(scales, np.finfo(float).tiny)  # type: ignore[no-any-return]

    left_out = np.sort(affinity(own[:, 1], other[:, 1]))
    distances, nearest = tree.query(Y)
    novelty = fraction_less_new(left_out, affinity(distances, nearest))
    new = np.flatnonzero((novelty >= 1) & (distances > _SAME * np.abs(places).max()))
    if len(new):
        warn_of_rows(
            new,
            "are at places farther from all training places than any of these is: the points "
            "returned are extrapolated.",
        )
