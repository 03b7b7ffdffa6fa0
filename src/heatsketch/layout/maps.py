"""Maps to the picture: linear ones and free ones, with places and slopes of new points.

A new layout is another class with these methods. A point is known by what it is near to (`Near`),
so that its place depends on that point alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from heatsketch._arrays import Array
from heatsketch._threads import ROW_TILE, row_tiles
from heatsketch.core.blocks import HOST, Block, Blocks, blocks_of, largest_of_rows, multiply
from heatsketch.core.operators import Deflated
from heatsketch.device.operators import on_device
from heatsketch.layout.free import (
    STEPS,
    Lengths,
    evened,
    free_layout,
    in_frame,
    spread_targets,
    wanted_distances,
    with_few_digits,
)
from heatsketch.layout.linear import Objective, first_equal, learn_linear_map, sampled_pairs
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import Near
from heatsketch.markov.normalization import Scaling
from heatsketch.markov.rows import Step, divided
from heatsketch.neighbors import pair_distances
from heatsketch.neighbors.search import PointSearch

_STEPS = 200  # at most, that find a location
_ROUNDING = 1e-13  # of a curvature
_LOCATED = 2**21  # pairs of places looked at together


@dataclass(frozen=True, eq=False)
class NewPoint:
    """A new point, and the training points that it has affinities to.

    Attributes
    ----------
    affinities : array (j,)
        K_j.
    columns : array (j,)
        The vertices of the x_j.
    apart : array (j, d)
        x - x_j.
    log_slopes : array (j, d)
        The derivatives of log K_j by x.
    pull_slopes : array (j, d)
        Those of the logarithm of the pull of x_j.
    scaling : Scaling
        From K to A.
    """

    affinities: Array
    columns: Array
    apart: Array
    log_slopes: Array
    pull_slopes: Array
    scaling: Scaling


def slopes_of_row(H: Array, is_markov: bool, beside: NewPoint) -> Array:
    """Return the derivatives (k, d) of a row of A H, or in the Markov form of the quotient.

    The last column of H (n, k + 1) is √π.
    """
    K, scaling, log_slopes = beside.affinities, beside.scaling, beside.log_slopes
    H = np.asarray(H, float)[beside.columns]
    weight = K * np.asarray(scaling.s)[beside.columns]
    if is_markov:
        total = weight @ H[:, -1]
        y = weight @ H[:, :-1] / total
        moved = weight[:, None] * (H[:, :-1] - np.outer(H[:, -1], y))
        return np.asarray(moved.T @ log_slopes / total)
    if scaling.density_weight is None:
        scale, turn = 1 / weight.sum(), -(weight @ log_slopes) / weight.sum()
    else:
        dense = K * np.asarray(scaling.density_weight)[beside.columns]
        scale = K.sum() ** (-scaling.alpha / 2) / np.sqrt(dense.sum())
        turn = -(scaling.alpha / 2) * (K @ log_slopes) / K.sum()
        turn -= (dense @ log_slopes) / (2 * dense.sum())
    weight *= scale
    y = weight @ H[:, :-1]
    return np.asarray((weight[:, None] * H[:, :-1]).T @ log_slopes + np.outer(y, turn))


def slopes_of_location(
    places: Array, s: float, pulling: Array, strength: Array, beside: NewPoint
) -> Array:
    """Return the derivatives (k, d) of the location of the places that pull with these strengths.

    Of a training point, which is at its own place, those of the location among the others.
    """
    k, d = places.shape[1], beside.apart.shape[1]
    others = np.isfinite(strength)
    if not others.any():
        return np.zeros((k, d))
    pulling, w = pulling[others], strength[others] / strength[others].max()
    y = located(places[pulling][None], w[None], s)
    curvature = slope_and_curvature(y, places[pulling][None], w[None], s)[1][0]
    order = np.argsort(beside.columns)
    at = order[np.searchsorted(beside.columns[order], pulling)]
    away = y - places[pulling]  # (j, k)
    pull = w / (1 + np.square(away).sum(axis=1) / s**2)
    turned = (pull[:, None] * away).T @ beside.pull_slopes[at]
    return np.asarray(-np.linalg.pinv(curvature) @ turned)


# Locations of places that attract


def locations(places: Array, rows: Any, s: float) -> Array:
    """Return the minima y (m, c) of Σ_j w_j log(1 + |y - y_j|² / s²), y_j (n, c) the places.

    `rows` (m, n) contains the weights, a CSR matrix. Of infinite ones only these count: a training
    point has its own place exactly. The search starts at the place that has the least sum. A row
    depends on that row only.
    """
    blocks = blocks_of(rows)
    indptr, indices, data = (blocks.host(part) for part in (rows.indptr, rows.indices, rows.data))
    counts, found = np.diff(indptr), np.empty((len(indptr) - 1, places.shape[1]))
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        for tile in row_tiles(len(alike), max(1, _LOCATED // count**2)):
            rows = alike[tile]
            entries = indptr[rows, None] + np.arange(count)
            w, j = data[entries].astype(float), indices[entries]
            infinite = np.isinf(w)
            known = infinite.any(axis=1)
            found[rows[known]] = places[j[known, infinite[known].argmax(axis=1)]]
            w, j = w[~known], j[~known]
            w /= w.max(axis=1, keepdims=True)
            found[rows[~known]] = located(places[j], w, s)
    return found


def located(P: Array, w: Array, s: float) -> Array:
    """Return the locations (m, c) of places P (m, k, c) with weights (m, k).

    A step of Newton is taken where the sum curves upwards and its slope gets smaller, else one by
    means that are weighted again, which never increases the sum.
    """
    between = np.square(P[:, :, None] - P[:, None]).sum(axis=3) / s**2
    start = (np.log1p(between) * w[:, None]).sum(axis=2)
    start[w == 0] = np.inf
    found = P[np.arange(len(P)), start.argmin(axis=1)]
    left = np.arange(len(P))  # that move
    for _ in range(_STEPS):
        Q, v, y = P[left], w[left], found[left]
        slope, curvature = slope_and_curvature(y, Q, v, s)
        pull = v / (1 + np.square(Q - y[:, None]).sum(axis=2) / s**2)
        moved = y - slope / pull.sum(axis=1)[:, None]
        # Positive definite: by the leading minors.
        minors = [np.linalg.det(curvature[:, :i, :i]) for i in range(1, curvature.shape[1] + 1)]
        upwards = np.all(np.array(minors) > 0, axis=0)
        step = np.linalg.solve(curvature[upwards], slope[upwards, :, None])[:, :, 0]
        tried = moved.copy()
        tried[upwards] = y[upwards] - step
        lower = np.linalg.norm(slope_and_curvature(tried, Q, v, s)[0], axis=1)
        better = lower < np.linalg.norm(slope, axis=1)
        moved = np.where(better[:, None], tried, moved)
        found[left] = moved
        left = left[np.abs(moved - y).max(axis=1, initial=0.0) > _ROUNDING * s]
        if not len(left):
            break
    return found


def slope_and_curvature(y: Array, P: Array, w: Array, s: float) -> tuple[Array, Array]:
    """Return half the slope (m, c) and curvature (m, c, c) of the sum that a location minimises.

    In units of s².
    """
    away = y[:, None] - P
    near = 1 / (1 + np.square(away).sum(axis=2) / s**2)
    pull = w * near
    slope = (pull[:, :, None] * away).sum(axis=1)
    along = np.sqrt(2 * pull * near)[:, :, None] * away / s
    own = (1 + _ROUNDING) * pull.sum(axis=1)
    curvature = own[:, None, None] * np.eye(P.shape[2])
    return slope, curvature - (along[:, :, :, None] * along[:, :, None]).sum(axis=1)


_HELD_OUT = 0.2  # fraction of the sampled rows that measure a map and take no part in learning it
_ROWS_TO_SPARE = 500  # with fewer rows none are held out
_LEAST_ROWS = 64  # for the map of a component, if it has so many
_SCALE_PAIRS = 20_000  # of which a map keeps the median distance
_DEGENERATE = 1e-12  # size of a component next to the largest, below which it is one place
_MOST_PAIRS = 120  # of a point that stands where these want it
LEAST_FREE = 10  # points of a part that move; fewer ones keep their start
_EVENED = 0.1  # of the spread, at the end
_LEAST_NEIGHBORS = 0.02  # of their weight, where c dimensions hold all lengths
_FITS = 8  # times the misfit, from which on a start does not fit
_STEP_ENTRIES = 64  # of a row of `step_graph`, unless several are equal
_DENSE_ENTRIES = 2**24  # of rows looked at together: 128 MB
_PLACING = 5  # known points among which a new one starts
_FLAT = 1e-9  # width of known places next to their length
_STRANGERS, _FRIENDS = 15, 8  # nearest points of a known one, so many of which shall be near
_AMONG_STRANGERS = 6.0  # to its place: in units of the distance of its 15th nearest place
_VOID = 2.0  # which is at most so many medians
_TOGETHER = 1.5  # within which so many of them shall be elsewhere
_GAP, _LEAST_GAP = 0.2, 0.1  # between discs: of the median radius, and of the largest


class Map(ABC):
    """Abstract base: a rule that places points."""

    @abstractmethod
    def training(self, step: Step) -> Block:
        """Return the places of the vertices (n, k); `step` is their last one."""

    @abstractmethod
    def weights(self, near: Near) -> Any:
        """Return the weights of the training points for new points, array or CSR (m, n)."""

    @abstractmethod
    def weighed(self, weights: Any) -> Array:
        """Return the places (m, k) for these weights."""

    def place(self, near: Near) -> Array:
        """Return the places (m, k) of new points."""
        return self.weighed(self.weights(near))

    @abstractmethod
    def slopes(self, beside: NewPoint, columns: Array, weights: Array) -> Array:
        """Return the derivatives (k, d) of the place of a point whose weights these are."""

    @abstractmethod
    def spanned(self, A: Deflated, columns: slice) -> Array:
        """Return what some of the coordinates span of the range of A (n, k)."""

    def there(self, blocks: Blocks) -> Map:
        """Return the same map with its numbers in a place, if products are made there."""
        return self


@dataclass(frozen=True, eq=False)
class LinearMap(Map):
    """Rows of A times H; in the Markov form means over the neighbours of the rows of H / √π.

    Attributes
    ----------
    H : array or tensor (n, k + 1)
        Its last column is √π.
    is_markov : bool
    """

    H: Block
    is_markov: bool

    def training(self, step: Step) -> Block:
        """Return S H (n, k)."""
        return divided(multiply(step.matrix, self.H), self.is_markov)

    def weights(self, near: Near) -> Any:
        """Return rows of A."""
        return near.rows(np.dtype(str(self.H.dtype).removeprefix("torch.")))

    def weighed(self, weights: Any) -> Array:
        """Return the product."""
        blocks, H = blocks_of(weights), self.H
        if blocks_of(H) != blocks:
            H = blocks.brought(H)
        return blocks.host(divided(multiply(weights, H), self.is_markov))

    def slopes(self, beside: NewPoint, columns: Array, weights: Array) -> Array:
        """Return those of a row of A H; its weights follow from the affinities."""
        return slopes_of_row(self.H, self.is_markov, beside)

    def spanned(self, A: Deflated, columns: slice) -> Array:
        """Return A H."""
        return A @ self.H[:, columns]

    def there(self, blocks: Blocks) -> LinearMap:
        """Return the map with H in a place."""
        if blocks_of(self.H) == blocks:
            return self
        return replace(self, H=blocks.brought(self.H))


@dataclass(frozen=True, eq=False)
class FreeMap(Map):
    """Places of the vertices, each by itself; a new point is at the location of those near to it.

    It is where the attraction of the neighbours' term alone would bring it, with weights K(x, x_j).
    At a training point one weight is infinite.

    Attributes
    ----------
    places : array (n, k)
    root : array (n,)
        √π.
    s : float
        The unit of the attraction, half the median length of an edge.
    """

    places: Array
    root: Array
    s: float

    def training(self, step: Step) -> Array:
        """Return the places (n, k)."""
        return self.places

    def weights(self, near: Near) -> Any:
        """Return the attraction of the training points."""
        return near.attraction()

    def weighed(self, weights: Any) -> Array:
        """Return the locations."""
        return locations(self.places, weights, self.s)

    def slopes(self, beside: NewPoint, columns: Array, weights: Array) -> Array:
        """Return those of the location."""
        return slopes_of_location(self.places, self.s, columns, weights, beside)

    def spanned(self, A: Deflated, columns: slice) -> Array:
        """Return the places as functions on the vertices, without the trivial direction."""
        return A.project(self.root[:, None] * self.places[:, columns])


# Linear maps of wide coordinates


def learned_directions(
    F: Array,
    components: Sequence[Array],
    k: int,
    rng: np.random.Generator,
    objective: Objective,
    *,
    hold_out: bool,
    factor: float,
    n_init: Any,
) -> tuple[list[Array], float]:
    """Learn directions W (r, k) from rows of F (n, r) of each component; and log L of unseen rows.

    The first rows are taken, as the vertices of a component are in the order of content. W has the
    scale that keeps the median distance. With `hold_out` some rows of large components only measure
    the map.
    """
    count = max(_LEAST_ROWS, objective.rows // max(1, len(components)))
    samples = [F[vertices[:count]] for vertices in components]
    size = max((float(np.abs(S).max()) for S in samples), default=0.0) or 1.0
    maps, held_out_log_L = [], np.nan
    for S in samples:
        W = np.zeros((S.shape[1], k))
        S = S / size
        S = S[np.unique(first_equal(S))]
        used = np.flatnonzero(np.ptp(S, axis=0) > _DEGENERATE)
        if len(used):  # else the component is one place
            spared = hold_out and len(S) >= _ROWS_TO_SPARE
            S = S[:, used]
            learned = learn_linear_map(
                S,
                k,
                rng,
                objective=objective,
                factor=factor,
                n_init=n_init,
                validation_fraction=_HELD_OUT * spared,
            )
            images = S @ learned.components.T
            pairs = sampled_pairs(len(S), _SCALE_PAIRS)
            W[used] = learned.components.T / typical_ratio(images, S, *pairs)
            held_out_log_L = np.fmax(held_out_log_L, learned.held_out_log_L)
        maps.append(W)
    return maps, float(held_out_log_L)


def typical_ratio(Y: Array, F: Array, i: Array, j: Array) -> float:
    """Return the median ratio of distances of rows Y (n, k) to those of F (n, r), not 0."""
    distances = pair_distances(F, F, i, j)
    apart = distances > 0
    ratios = pair_distances(Y, Y, i, j)[apart] / distances[apart]
    median, largest = float(np.median(ratios)), float(ratios.max())
    return median if median > _DEGENERATE * largest else largest


# Free layouts


def free_map(
    diffusion: Diffusion,
    M: Any,
    F: Array,
    lengths: Sequence[tuple[Array, Lengths]],
    c: int,
    *,
    neighbor_weight: float,
    spread: float | None,
    path_weight: float,
    known: Array | None = None,
    place_weight: float = 0.0,
) -> tuple[FreeMap, float]:
    """Return the places (n, c) of a free layout of each part of the data, and the largest misfit.

    That is NaN if each part is one place. The layout keeps the neighbours in the graph M (n, n),
    and the distances that `wanted_distances` makes of those of rows F (n, r) and of the lengths of
    a part, pairs of its vertices and its `Lengths`. It starts from the scaling of these lengths.
    Parts have equally long edges, so that their points are equally dense, and stand beside each
    other. By default the spread depends on the misfit. Where c dimensions hold the lengths, these
    alone count: neighbours, which push each other away, would tear a strip into crumbs.

    Given `known` places (n, c) of an earlier picture, NaN where a vertex had none, it starts from
    these and stays in their frame. Their density is evened out already, and new points fit in.
    """
    mass = None if diffusion.scaling is None else diffusion.scaling.weights
    mass = None if mass is None else blocks_of(mass).host(mass).astype(float)
    mass = None if mass is None or np.ptp(mass) == 0 else mass  # equal ones change nothing
    several = diffusion.diagnostics.get("components", 1) > 1
    labels = diffusion.operator.components() if several else None
    labels = np.zeros(diffusion.n, int) if labels is None else labels
    sizes = np.bincount(labels, mass)[labels].astype(float)
    Y, blocks, most = np.zeros((diffusion.n, c)), diffusion.operator.blocks, np.nan
    for vertices, own in lengths:
        misfit, rows = own.misfit(c), F[vertices]
        part = misfit if spread is None else spread
        places = own.spread(part, c).placed(c)
        old = None if known is None or np.isnan(known[vertices]).all() else known[vertices]
        if old is not None:
            places = started(old, rows, places, misfit, math.isinf(place_weight))
            if (places == old).any():  # a known point among strangers is like a new one
                old = np.where(places == old, old, np.nan)
            middle = np.nanmean(old, axis=0)  # digits are those of the picture, not of its place
            places, old = places - middle, old - middle
        if places.any():  # else the part is one place
            most = np.fmax(most, misfit)
            pairs, targets = wanted_distances(own, rows, misfit * (1 - path_weight))
            targets = spread_targets(targets, part, c)
            step = M if len(vertices) == diffusion.n else M[vertices][:, vertices]
            step = step if blocks is HOST else on_device(step, blocks.device)
            step, places, targets = with_few_digits(step, places, targets)
            places = free_layout(
                step,
                places,
                pairs,
                targets,
                neighbor_weight=neighbor_weight * min(1.0, max(_LEAST_NEIGHBORS, 2 * misfit)),
                steps=STEPS if len(vertices) >= LEAST_FREE else 0,
                mass=None if mass is None else mass[vertices] / mass[vertices].mean(),
                sizes=sizes[vertices],
                held=max(0.0, 1 - _FITS * misfit),
                known=old,
                place_weight=place_weight,
            )
            many = np.flatnonzero(np.bincount(pairs[1], minlength=len(vertices)) > _MOST_PAIRS)
            if old is not None and math.isinf(place_weight):
                many = many[np.isnan(old[many, 0])]
            places[many] = _among_neighbors(places, step, many)
            if old is None and c == 2 and len(vertices) >= LEAST_FREE:
                places = evened(places, _EVENED * part)
        if diffusion.directed_step is None:  # equal points have a vertex each, but one place
            places = places[first_equal(rows / (np.abs(rows).max() or 1.0))]
        theirs = None if old is None else cast(Array, known)[vertices]
        if theirs is None:
            Y[vertices] = places - places.mean(axis=0)
        elif math.isinf(place_weight):
            Y[vertices] = np.where(np.isnan(theirs), places + middle, theirs)
        else:
            Y[vertices] = in_frame(places, theirs)
    if known is not None and len(lengths) > 1:
        _beside_known(Y, [vertices for vertices, _ in lengths], known, M)
    elif len(lengths) > 1:
        edges = [_median_length(M, vertices, Y) for vertices, _ in lengths]
        for (vertices, _), edge in zip(lengths, edges, strict=True):
            Y[vertices] *= edges[0] / edge if edges[0] * edge > 0 else 1.0
        Y += side_by_side(Y, [vertices for vertices, _ in lengths], diffusion.measure)
    s = _median_length(M, np.arange(diffusion.n), Y) / 2
    return FreeMap(Y, diffusion.root, s or 1.0), float(most)


def started(known: Array, F: Array, scaled: Array, misfit: float, hold: bool) -> Array:
    """Return places (n, c) to start from: known ones, NaN where a point has none, and the others.

    A new point is at the location of the known ones that are nearest by the rows of F (n, r), each
    moved by what lies between them in the scaling (n, c), as far as that fits, so that a strip goes
    on beyond its old end. So is a known point, unless known places `hold`, of whose nearest half
    are together elsewhere: it would stay among strangers, because attraction falls with the
    distance. Where few places are known, or all on a line, the scaling alone counts.
    """
    placed = ~np.isnan(known[:, 0])
    start, scaled = known.copy(), in_frame(scaled, known)
    spread = np.linalg.svd(known[placed] - known[placed].mean(axis=0), compute_uv=False)
    is_flat = len(spread) < known.shape[1] or spread[-1] <= _FLAT * spread[0]
    if is_flat and not hold:
        placed[:] = False
    if is_flat or np.count_nonzero(placed) <= _STRANGERS:
        start[~placed] = scaled[~placed]
        return start
    if not hold:
        old = known[placed]
        near = PointSearch(F[placed]).query(None, _STRANGERS + 1)[1][:, 1:]
        centres = old[:, None], np.median(old[near], axis=1)[:, None]
        apart, together = (
            np.sort(np.linalg.norm(old[near] - centre, axis=2), axis=1)[:, _FRIENDS - 1]
            for centre in centres
        )
        around = cKDTree(old).query(old, _STRANGERS + 1)[0][:, -1]
        around = np.minimum(around, _VOID * np.median(around))  # of a place far from all others
        strange = (apart > _AMONG_STRANGERS * around) & (together <= _TOGETHER * around)
        placed[placed] = ~strange
    if placed.all():
        return start
    old = known[placed]
    far, near = PointSearch(F[placed]).query(F[~placed], min(_PLACING, len(old)))
    weights = np.exp(-np.square(far / (np.median(far, axis=1, keepdims=True) + _DEGENERATE)))
    between = scaled[~placed][:, None] - scaled[placed][near]
    edges = np.linalg.norm(old[near] - old[near[:, :1]], axis=2)
    unit = float(np.median(edges)) / 2 or 1.0
    start[~placed] = located(old[near] + max(0.0, 1 - misfit) * between, weights, unit)
    return start


def _beside_known(Y: Array, parts: Sequence[Array], known: Array, M: Any) -> None:
    """Give parts of a picture in which no place is known edges of the others, at their right."""
    new = [part for part in parts if np.isnan(known[part, 0]).all()]
    rest = np.setdiff1d(np.arange(len(Y)), np.concatenate([*new, np.empty(0, int)]))
    low, high = Y[rest].min(axis=0), Y[rest].max(axis=0)
    gap, edge = _LEAST_GAP * float((high - low).max()), _median_length(M, rest, Y)
    for part in new:
        own = _median_length(M, part, Y)
        Y[part] *= edge / own if edge * own > 0 else 1.0
        Y[part] += (low + high) / 2 - Y[part].mean(axis=0)
        Y[part, 0] += high[0] + gap - Y[part, 0].min()
        high[0] = Y[part, 0].max()


def _among_neighbors(places: Array, M: Any, points: Array) -> Array:
    """Return locations of some points among their neighbours, by the step M (n, n).

    The distances of many pairs are stronger than the neighbours of a landmark, which would stand
    where they want it.
    """
    rows = M[points]
    own = np.repeat(points, np.diff(rows.indptr)) == rows.indices
    rows.data = np.where(own, 0.0, rows.data)
    rows.eliminate_zeros()
    found, some = places[points], np.diff(rows.indptr) > 0
    s = _median_length(M, np.arange(len(places)), places) / 2
    found[some] = locations(places, rows[some], s or 1.0)
    return found


def _median_length(M: Any, vertices: Array, Y: Array) -> float:
    """Return the median length of the edges of a component in a picture, 0 without edges."""
    i, j = M[vertices][:, vertices].nonzero()
    i, j = vertices[i], vertices[j]
    return float(np.median(pair_distances(Y, Y, i, j)[i != j])) if (i != j).any() else 0.0


def step_graph(diffusion: Diffusion) -> Any:
    """Return the 64 largest entries of each row of the last step M, CSR (n, n).

    It is where M is, if that has no larger rows, else on the host. None where entries of A are not
    known without products.
    """
    M, A = diffusion.directed_step, diffusion.operator
    A = A if A.blocks is HOST else on_device(A, None)
    M = A.sparse_matrix() if M is None else M
    if M is not None:
        return largest_of_rows(M, _STEP_ENTRIES)
    if A.matrix_rows(slice(1)) is None:
        return None
    tiles = row_tiles(A.n, max(1, min(ROW_TILE, _DENSE_ENTRIES // A.n)))
    rows = [largest_of_rows(A.matrix_rows(tile), _STEP_ENTRIES) for tile in tiles]
    return sparse.csr_matrix(sparse.vstack(rows).maximum(0))  # of rounding


# Several components


def side_by_side(Y: Array, components: Sequence[Array], measure: Array) -> Array:
    """Return shifts (n, k) of points Y after which the discs of components stand in rows, apart.

    The discs have their centres at the means. They stand in rows like words in a text, the largest
    one first, in about a square; with k = 1 there is one row. The mean of the shifts is 0 with the
    weights `measure` (n,).
    """
    mass = np.array([measure[vertices].sum() for vertices in components])
    means = np.array([Y[rows].mean(axis=0, dtype=float) for rows in components])
    radii = np.array(
        [
            np.linalg.norm(Y[rows] - mean, axis=1).max()
            for rows, mean in zip(components, means, strict=True)
        ],
        dtype=float,
    )
    gap = max(_GAP * float(np.median(radii)), _LEAST_GAP * float(radii.max())) or 1.0
    steps = 2 * radii + gap
    is_line = Y.shape[1] == 1
    width = np.inf if is_line else max(np.sqrt(np.sum(steps**2)), steps.max())
    shifts, x, y, height = -means, 0.0, 0.0, 0.0
    for disc in np.argsort(-radii, kind="stable"):
        step = steps[disc]
        if x + step > width * (1 + 1e-9):  # the next row
            x, y, height = 0.0, y - height, 0.0
        height = max(height, step)  # discs hang from the upper edge of their row
        shifts[disc, 0] += x + step / 2
        if not is_line:
            shifts[disc, 1] += y - step / 2
        x += step
    shifts -= mass @ shifts / mass.sum()
    of_points = np.empty(Y.shape)
    for vertices, shift in zip(components, shifts, strict=True):
        of_points[vertices] = shift
    return of_points
