"""Derivatives of places by features, and points at places: local linear maps, both ways."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from heatsketch._exceptions import warn_of_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array
from heatsketch.layout.free import geometric_medians
from heatsketch.layout.maps import FreeMap, LinearMap, Map
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.out_of_sample import (
    DenseKernel,
    NeighborKernel,
    PointKernel,
    fraction_less_new,
)
from heatsketch.neighbors.near import Near

_ENTRIES = 2**22  # of derivatives of affinities, held at a time: 32 MB
_RIDGE = 1e-3  # of the spread of places, so that few neighbours leave no direction open
_PLACES = 15  # training places, and two for each coordinate, to which a plane is fitted
_LEFT_OUT = 2048  # training places by which the novelty of others is measured


# Derivatives of places


def derivatives(diffusion: Diffusion, placed: Map, X: Array) -> Array:
    """Return the derivatives (m, k, d) of the places of points X (m, d) by their features.

    With the affinities K_j to the training points x_j, s the local scale of x and s_j that of x_j,

        ∇ log K_j = -2 (x - x_j) / (s s_j) + |x - x_j|² / (s² s_j) ∇s,   ∇s = (x - x_o) / s,

    x_o the neighbour at the distance s. A linear map is a quotient of sums of K_j. The median y of
    places y_j with weights c_j = K_j / |x - x_j| fulfils Σ c_j u_j = 0 with the unit vectors
    u_j = (y - y_j) / |y - y_j|, so that

        Σ c_j / |y - y_j| (1 - u_j u_jᵀ) dy = -Σ dc_j u_j,

    or dy = 0 where y stays at a datum. A training point is left out of those that pull at it, for
    it would not move.
    """
    kernel = diffusion.out_of_sample
    if not isinstance(kernel, NeighborKernel | DenseKernel) or kernel.metric != "euclidean":
        raise ValueError(
            "Derivatives are those of Euclidean distances between points; fit points with "
            "metric='euclidean', and an affinity other than 'precomputed'."
        )
    if sparse.issparse(kernel.points):
        raise ValueError("The training points are sparse; fit X.toarray() for derivatives.")
    points = np.asarray(kernel.points, float)[diffusion.first_points]
    k = (placed.places if isinstance(placed, FreeMap) else placed.H[:, 1:]).shape[1]  # type: ignore[attr-defined]
    found = np.empty((len(X), k, X.shape[1]))
    width = kernel.n_neighbors + 1 if isinstance(kernel, NeighborKernel) else len(points)
    for rows in row_tiles(len(X), max(1, _ENTRIES // (width * X.shape[1]))):
        near = diffusion.near(X[rows])
        K = sparse.csr_matrix(near.affinities)
        pulls = near.attraction() if isinstance(placed, FreeMap) else None
        for i, x in enumerate(X[rows].astype(float)):
            own = slice(*K.indptr[i : i + 2])
            columns = K.indices[own]
            local = _Local(x - points[columns], columns)
            slopes = local.slopes(kernel)
            if isinstance(placed, FreeMap):
                assert pulls is not None
                row = slice(*pulls.indptr[i : i + 2])
                pulling = pulls.indices[row], pulls.data[row]
                found[rows.start + i] = _median_slopes(placed, *pulling, local, slopes)
            else:
                assert isinstance(placed, LinearMap)
                found[rows.start + i] = _linear_slopes(placed, near, K.data[own], columns, slopes)
    return found


@dataclass(frozen=True, eq=False)
class _Local:
    """A point beside the training points that it has affinities to.

    Attributes
    ----------
    apart : array (j, d)
        x - x_j.
    columns : array (j,)
        The vertices of x_j.
    """

    apart: Array
    columns: Array

    def slopes(self, kernel: PointKernel) -> Array:
        """Return the derivatives of log K_j by x (j, d)."""
        squared = np.einsum("jd,jd->j", self.apart, self.apart)
        if isinstance(kernel, NeighborKernel):
            scales, order = kernel.scales, kernel.order
        else:
            assert isinstance(kernel, DenseKernel)
            scales, order = kernel.kernel.epsilon, kernel.order
        if not np.ndim(scales):
            return -2 * self.apart / float(np.asarray(scales))
        own = np.asarray(scales)[self.columns]
        distances = np.sqrt(squared)
        by_distance = np.argsort(distances, kind="stable")
        if order is None:
            others = by_distance[1:]
            s = np.sqrt(2 * np.mean(squared[others]))
            turn = 2 / (len(others) * s) * self.apart[others].sum(axis=0)
        else:
            if isinstance(kernel, DenseKernel) or kernel.distinct is not None:  # copies count once
                first = np.unique(distances, return_index=True)[1]
                by_distance = first
            at = by_distance[order]
            s = distances[at]
            turn = self.apart[at] / s
        return -2 * self.apart / (s * own)[:, None] + np.outer(squared / (s**2 * own), turn)


def _linear_slopes(placed: LinearMap, near: Near, K: Array, columns: Array, slopes: Array) -> Array:
    """Return the derivatives (k, d) of a row of A H, by those of log K_j (j, d)."""
    scaling, H = near.scaling, np.asarray(placed.H, float)[columns]
    weight = K * np.asarray(scaling.s)[columns]
    if placed.is_markov:
        total = weight @ H[:, -1]
        y = weight @ H[:, :-1] / total
        return (weight[:, None] * (H[:, :-1] - np.outer(H[:, -1], y))).T @ slopes / total  # type: ignore[no-any-return]
    if scaling.density_weight is None:
        scale, turn = 1 / weight.sum(), -(weight @ slopes) / weight.sum()
    else:
        dense = K * np.asarray(scaling.density_weight)[columns]
        scale = K.sum() ** (-scaling.alpha / 2) / np.sqrt(dense.sum())
        turn = -(scaling.alpha / 2) * (K @ slopes) / K.sum() - (dense @ slopes) / (2 * dense.sum())
    weight *= scale
    y = weight @ H[:, :-1]
    return (weight[:, None] * H[:, :-1]).T @ slopes + np.outer(y, turn)  # type: ignore[no-any-return]


def _median_slopes(
    placed: FreeMap, pulling: Array, strength: Array, local: _Local, slopes: Array
) -> Array:
    """Return the derivatives (k, d) of a median of places, by those of log K_j (j, d)."""
    k, d = placed.places.shape[1], slopes.shape[1]
    others = np.isfinite(strength)
    if not others.any():
        return np.zeros((k, d))
    pulling, c = pulling[others], strength[others] / strength[others].max()
    row = sparse.csr_matrix((c, pulling, [0, len(c)]), (1, len(placed.places)))
    y = geometric_medians(placed.places, row)[0]
    away = y - placed.places[pulling]  # (j, k)
    lengths = np.linalg.norm(away, axis=1)
    if (lengths <= 1e-12 * lengths.max()).any():  # at a datum, where it stays
        return np.zeros((k, d))
    order = np.argsort(local.columns)
    place = order[np.searchsorted(local.columns[order], pulling)]
    apart = local.apart[place]
    turned = slopes[place] - apart / np.einsum("jd,jd->j", apart, apart)[:, None]
    units = away / lengths[:, None]
    over = c / lengths
    curvature = over.sum() * np.eye(k) - (over[:, None] * units).T @ units
    return -np.linalg.pinv(curvature) @ ((c[:, None] * units).T @ turned)  # type: ignore[no-any-return]


# Points at places


def points_at(places: Array, points: Array, Y: Array) -> Array:
    """Return points (m, d) at places Y (m, k): those of a local linear fit, exact at training ones.

    It minimises Σ_j w_j |x_j - a - B (y_j - y)|² over the nearest places y_j, w_j = 1/|y - y_j|²,
    with a small penalty of B; the point is a. Warns of places farther from all others than any
    training place is.
    """
    n, k = places.shape
    count = min(n, max(_PLACES, 2 * k + 1))
    tree = cKDTree(places)
    distances, nearest = (np.reshape(part, (len(Y), count)) for part in tree.query(Y, count))
    _warn_of_places(tree, distances[:, 0], nearest[:, 0], count)
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
        size = np.einsum("mcc->m", gram) / k
        gram += np.where(size > 0, _RIDGE * size, 1.0)[:, None, None] * np.eye(k)
        B = np.linalg.solve(gram, np.einsum("mj,mjc,mjd->mcd", w, y, x))
        found[rows] = mean_x - np.einsum("mc,mcd->md", mean_y, B)
    return found


def _warn_of_places(tree: cKDTree, distances: Array, nearest: Array, count: int) -> None:
    """Warn of places farther from the nearest training place, in its scale, than any of these."""
    chosen = np.linspace(0, tree.n - 1, min(tree.n, _LEFT_OUT)).astype(int)
    own, other = tree.query(tree.data[chosen], 2)

    def affinity(d: Array, places: Array) -> Array:
        scales = tree.query(tree.data[places], max(2, count // 2))[0][:, -1]
        return -d / np.maximum(scales, np.finfo(float).tiny)  # type: ignore[no-any-return]

    left_out = np.sort(affinity(own[:, 1], other[:, 1]))
    novelty = fraction_less_new(left_out, affinity(distances, nearest))
    new = np.flatnonzero((novelty >= 1) & (distances > 0))
    if len(new):
        warn_of_rows(
            new,
            "are at places farther from all training places than any of these is: the points "
            "returned are extrapolated.",
        )
