"""Maps: the places of the training points, and by the same rule those of any point.

A new layout is another class with these methods. A point is known by what it is near to (`Near`),
so that its place depends on that point alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._tiles import ROW_TILE, row_tiles
from heatsketch._typing import Array
from heatsketch.backend import Block, Blocks, blocks_of
from heatsketch.layout.free import free_layout, geometric_medians
from heatsketch.layout.linear import Objective, first_equal, learn_linear_map
from heatsketch.layout.objective import sampled_pairs
from heatsketch.layout.paths import FARTHEST, Paths, followed, with_few_digits
from heatsketch.layout.slopes import Beside, slopes_of_median, slopes_of_row
from heatsketch.markov.components import WideCoordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import Step, divided
from heatsketch.neighbors import pair_distances
from heatsketch.neighbors.near import Near
from heatsketch.operators.csr import largest_of_rows, multiply
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.torch import on_device

_HELD_OUT = 0.2  # fraction of the sampled rows that measure a map and take no part in learning it
_ROWS_TO_SPARE = 500  # with fewer rows none are held out
_LEAST_ROWS = 64  # for the map of a component, if it has so many
_SCALE_PAIRS = 20_000  # of which a map keeps the median distance
_DEGENERATE = 1e-12  # size of a component next to the largest, below which it is one place
_SPREAD = 0.5  # where k dimensions do not hold the paths, and without paths
_LEAST_NEIGHBORS = 0.02  # of their weight, where k dimensions hold all paths
LEAST_FREE = 10  # points of a component whose layout is free
_PAIRS_OF_A_POINT, _MOST_PAIRS = 20, 2_000_000  # whose distances a free layout keeps
_STEP_ENTRIES = 64  # of a row of `step_graph`, unless several are equal
_DENSE_ENTRIES = 2**24  # of rows looked at together: 128 MB
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
    def slopes(self, beside: Beside, columns: Array, weights: Array) -> Array:
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
            H = blocks.native(H)
        return blocks.host(divided(multiply(weights, H), self.is_markov))

    def slopes(self, beside: Beside, columns: Array, weights: Array) -> Array:
        """Return those of a row of A H; its weights follow from the affinities."""
        return slopes_of_row(self.H, self.is_markov, beside)

    def spanned(self, A: Deflated, columns: slice) -> Array:
        """Return A H."""
        return A @ self.H[:, columns]

    def there(self, blocks: Blocks) -> LinearMap:
        """Return the map with H in a place."""
        return replace(self, H=blocks.native(self.H))


@dataclass(frozen=True, eq=False)
class FreeMap(Map):
    """Places of the vertices, each by itself; a new point is at a median of those near to it.

    The median is the geometric one with the weights K(x, x_j) / |x - x_j|. At a training point one
    weight is infinite.

    Attributes
    ----------
    places : array (n, k)
    root : array (n,)
        √π.
    """

    places: Array
    root: Array

    def training(self, step: Step) -> Array:
        """Return the places (n, k)."""
        return self.places

    def weights(self, near: Near) -> Any:
        """Return the attraction of the training points."""
        return near.attraction()

    def weighed(self, weights: Any) -> Array:
        """Return the medians."""
        return geometric_medians(self.places, weights)

    def slopes(self, beside: Beside, columns: Array, weights: Array) -> Array:
        """Return those of the median."""
        return slopes_of_median(self.places, columns, weights, beside)

    def spanned(self, A: Deflated, columns: slice) -> Array:
        """Return the places as functions on the vertices, without the trivial direction."""
        return A.project(self.root[:, None] * self.places[:, columns])


# Linear maps of wide coordinates


def learned_directions(
    wide: WideCoordinates,
    k: int,
    rng: np.random.Generator,
    objective: Objective,
    *,
    hold_out: bool,
    factor: float,
    n_init: Any,
) -> tuple[list[Array], float]:
    """Learn directions W (r, k) from sampled rows of each component; return log L of unseen rows.

    Rows are chosen by their place in the order of content. W has the scale that keeps the median
    distance. With `hold_out` some rows of large components only measure the map.
    """
    count = max(_LEAST_ROWS, objective.rows // max(1, len(wide.components)))
    samples = [wide.after[wide.ordered(vertices)[:count]] for vertices in wide.components]
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


# Free layouts of wide coordinates


def free_places(
    diffusion: Diffusion,
    wide: WideCoordinates,
    M: Any,
    start: Array,
    paths: list[Paths] | None,
    *,
    neighbor_weight: float,
    spread: float | None,
    path_weight: float,
) -> Array | None:
    """Return places (n, k): a free layout of each component of ten points and more.

    It keeps the distances of the wide coordinates and the neighbours in the graph M (n, n), and
    starts from a picture (n, k); with paths it follows these, too, and starts with their landmark
    MDS. Where k dimensions hold all path lengths, these alone count: diffusion distances would bend
    a strip, and neighbours, which push each other away, would make waves of it.

    None if there is no such component. Several components have equally long edges, so that their
    points are as dense as those of a typical group of the largest one. By default the spread
    depends on the paths.
    """
    components, k = wide.components, start.shape[1]
    large = [at for at, c in enumerate(components) if len(c) >= LEAST_FREE]
    if paths is None:
        large = [at for at in large if np.ptp(start[components[at]]) > 0]
    if not large:
        return None
    Y, S, blocks = start.astype(float), wide.after, diffusion.operator.blocks
    mass = None if diffusion.scaling is None else diffusion.scaling.weights
    mass = None if mass is None else blocks_of(mass).host(mass).astype(float)
    for at in large:
        vertices = components[at]
        n, ordered = len(vertices), np.argsort(wide.place[vertices])
        if paths is None:
            count = min(_PAIRS_OF_A_POINT * n, max(_MOST_PAIRS, n))
            i, j = (ordered[side] for side in sampled_pairs(n, count))
        else:
            (i, j), log_lengths = paths[at].pairs()
        ends = (blocks.native(vertices[side]) for side in (i, j))
        distances = blocks.host(pair_distances(S, S, *ends))
        targets, misfit = np.log(np.maximum(distances, _DEGENERATE * distances.max())), 1.0
        own = on_device(M if n == diffusion.n else M[vertices][:, vertices], blocks.device)
        root, places = diffusion.root[vertices], Y[vertices]
        if paths is not None:
            places, misfit = paths[at].start(k)
            targets = followed(targets, log_lengths, 1 - (1 - path_weight) * misfit)
            size = np.exp(np.median(targets)) / np.median(pair_distances(places, places, i, j))
            own, root, places, targets = with_few_digits(own, root, size * places, targets)
        Y[vertices] = free_layout(
            own,
            root,
            places,
            (i, j),
            targets,
            neighbor_weight=neighbor_weight * min(1.0, max(_LEAST_NEIGHBORS, 2 * misfit)),
            spread=_SPREAD * misfit if spread is None else spread,
            farthest=math.inf if spread is not None else FARTHEST[k],
            mass=None if mass is None else mass[vertices] / mass[vertices].mean(),
        )
        i, j = (vertices[ordered[side]] for side in sampled_pairs(n, _SCALE_PAIRS))
        Y[vertices] /= typical_ratio(Y, S, i, j)
        if diffusion.directed_step is None:  # equal points have a vertex each, but one place
            own = S[vertices]
            Y[vertices] = Y[vertices[first_equal(own / np.abs(own).max())]]
    for vertices in components:
        Y[vertices] -= Y[vertices].mean(axis=0)
    if len(components) > 1:
        edges = [_median_length(M, vertices, Y) for vertices in components]
        for vertices, edge in zip(components, edges, strict=True):
            Y[vertices] *= edges[0] / edge if edges[0] * edge > 0 else 1.0
    return Y


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
    M, A = diffusion.directed_step, on_device(diffusion.operator, None)
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
