"""Shortest paths along the graph of neighbours: what free layouts follow, and start with.

Diffusion distances added up over times grow like the root of the length of a strip, because a
commute distance is the root of a resistance. Path lengths grow like the length, but take short cuts
where there is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from heatsketch._random import content_order
from heatsketch._tensors import landed
from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.out_of_sample import PointKernel
from heatsketch.neighbors import COORDINATES, pair_distances
from heatsketch.neighbors.metric import in_unit
from heatsketch.neighbors.missing import observed_distances
from heatsketch.operators.torch import on_device
from heatsketch.spectral.classical_scaling import ClassicalScaling, centre_squares
from heatsketch.spectral.eigenpairs import fix_signs

_LANDMARKS, _VISITS, _LEAST_LANDMARKS = 128, 2**21, 24  # of a component; of vertices in all
_PAIRS_OF_A_POINT = 12  # with landmarks
# times as far as in a disc or a ball may points be: as far as those of a line, beside the median
FARTHEST = {2: 1.55, 3: 1.8}
_FAR = 3.5  # medians: the length that this is
_BITS, _START_BITS, _TARGET_BITS = 8, 9, 5  # of weights; after the point, of places and targets
_ENDS = (0.975, 0.025)
_ROUNDING = 1e-10  # an eigenvalue next to the largest
_TINY = 1e-12  # a length next to the largest, of equal points


@dataclass(frozen=True, eq=False)
class Paths:
    """Lengths of the shortest paths from landmarks, within one component.

    Attributes
    ----------
    vertices : array (n,)
        Those of the component, ascending.
    order : array (n,)
        The places in `vertices` in the order of content; the first ones are the landmarks.
    lengths : array (L, n)
    """

    vertices: Array
    order: Array
    lengths: Array

    @property
    def landmarks(self) -> Array:
        """The places of the landmarks (L,) in `vertices`."""
        return self.order[: len(self.lengths)]

    def pairs(self) -> tuple[tuple[Array, Array], Array]:
        """Return pairs of a point and a landmark, places (m,), and logarithms of their lengths.

        These are in a unit of their own, see `in_unit`. The k-th point in the order of content has
        the same landmarks whatever its row is.
        """
        n, count = len(self.order), len(self.lengths)
        drawn = np.random.default_rng(0).integers(0, count, (n, _PAIRS_OF_A_POINT))
        if count <= _PAIRS_OF_A_POINT:
            drawn = np.tile(np.arange(count), (n, 1))
        i, j = np.repeat(self.order, drawn.shape[1]), self.order[drawn.ravel()]
        lengths = self.lengths[drawn.ravel(), i]
        apart = i != j
        lengths = in_unit(np.maximum(lengths[apart], _TINY * lengths.max()))
        return (i[apart], j[apart]), np.log(lengths)

    def start(self, c: int) -> tuple[Array, float]:
        """Return landmark MDS in c dimensions (n, c), and its misfit.

        The misfit is 0 where c dimensions hold all lengths, as those of a strip, and 1 where they
        hold at most half of the spectrum, as of groups that are equally far from each other. The
        eigenvalues of B = -½ J Δ J, Δ the squared lengths between landmarks, count by their
        modulus (de Silva and Tenenbaum 2004). Longer paths than on a line count as those, so that
        a few far points do not take the spectrum.
        """
        median = np.median(self.lengths[:, self.landmarks])
        squares = np.square(np.minimum(self.lengths, _FAR * median))
        between = squares[:, self.landmarks]
        means = centre_squares(between)
        values, vectors = eigh(between)
        held = float(values[-c:].sum() / (np.abs(values).sum() or 1.0))
        values, vectors = values[: -c - 1 : -1], fix_signs(vectors[:, : -c - 1 : -1])
        values = np.where(values > _ROUNDING * values[0], values, 0.0)
        places = ClassicalScaling(values, vectors, means).place(squares.T)
        return np.pad(places, ((0, 0), (0, c - places.shape[1]))), min(1.0, 2 * (1 - held))


def followed(log_distances: Array, log_lengths: Array, weight: float) -> Array:
    """Return the weighted mean of logarithms of distances and of path lengths, of one median.

    Where paths have nearly the same length, as between groups in many dimensions, their logarithms
    are stretched: the middle 95 % of them cover at least the range of those of the distances. Along
    strips they cover more, and stay as they are.
    """
    center = np.median(log_distances)
    ranges = [np.subtract(*np.quantile(x, _ENDS)) for x in (log_distances, log_lengths)]
    stretch = max(1.0, ranges[0] / ranges[1]) if ranges[1] > 0 else 1.0
    lengths = stretch * (log_lengths - np.median(log_lengths)) + center
    return (1 - weight) * log_distances + weight * lengths


def with_few_digits(
    M: Any, root: Array, start: Array, targets: Array
) -> tuple[Any, Array, Array, Array]:
    """Return a step M, √π, places and logarithms of distances with two to three digits.

    The descent increases rounding until single points end elsewhere. So what is rounding before it,
    between precisions or machines, is mostly taken out here, and a picture does not show digits.
    """
    blocks, unit = blocks_of(M), 2.0 ** np.round(np.median(targets) / np.log(2))
    M = blocks.csr((_rounded(M.data, blocks.xp), M.indices, M.indptr), M.shape)
    start = unit * np.round(start / unit * 2**_START_BITS) / 2**_START_BITS
    return M, _rounded(root, np), start, np.round(targets * 2**_TARGET_BITS) / 2**_TARGET_BITS


def _rounded(x: Any, xp: Any) -> Any:
    """Return numbers with eight binary digits."""
    mantissa, exponent = xp.frexp(x)
    return xp.ldexp(xp.round(mantissa * 2**_BITS) / 2**_BITS, exponent)


def is_measurable(diffusion: Diffusion) -> bool:
    """Say whether distances of single pairs of points are known: by coordinates, or given."""
    new = diffusion.out_of_sample
    return isinstance(new, PointKernel) and new.metric in (*COORDINATES, "precomputed")


def graph_of_lengths(diffusion: Diffusion, observed: Array | None = None) -> Any:
    """Return the graph of neighbours with the lengths of its edges, CSR (n, n), symmetric.

    It is where the diffusion is. None without such a graph, and where lengths are not known. Given
    the points as they were `observed` (n, d), NaN where nothing was, lengths are those by the
    entries that both points have; edges between points that share none are left out.
    """
    step, new = diffusion.directed_step, cast(Any, diffusion.out_of_sample)
    if step is None or not is_measurable(diffusion):
        return None
    first, points = diffusion.first_points, new.points
    graph = blocks_of(step).both_ways(step)
    graph = landed(graph) if new.distances_are_given or observed is not None else graph
    blocks = blocks_of(graph)
    i, j = blocks.row_numbers(graph), graph.indices
    if new.distances_are_given:
        graph.data = np.minimum(points[first[i], first[j]], points[first[j], first[i]])
    elif observed is not None:
        lengths = observed_distances(observed, i, j)
        known = ~np.isnan(lengths)
        graph = sparse.csr_matrix((lengths[known], (i[known], j[known])), graph.shape)
    else:
        points = points[first]
        graph.data = pair_distances(points, points, i, j)
    return graph


def paths_within(diffusion: Diffusion, components: list[Array]) -> list[Paths] | None:
    """Return the paths within each component; None without a graph of lengths, or where a part is
    not connected.

    Landmarks are chosen by the content of the points in float32, so that they are the same ones in
    both precisions.
    """
    graph = graph_of_lengths(diffusion)
    if graph is None:
        return None
    new = cast(Any, diffusion.out_of_sample)
    points, by_column = new.points[diffusion.first_points], not new.distances_are_given
    place = np.argsort(content_order(points, by_column, np.float32))
    device, found = blocks_of(graph).device, []
    most = max(_LEAST_LANDMARKS, min(_LANDMARKS, _VISITS // diffusion.n))
    for vertices in components:
        order = np.argsort(place[vertices])
        own = graph if len(vertices) == diffusion.n else graph[vertices][:, vertices]
        lengths = shortest_paths(on_device(own, device), order[:most])
        if not np.isfinite(lengths).all():
            return None
        found.append(Paths(vertices, order, lengths))
    return found


def paths_of_few(paths: Sequence[Paths], count: int) -> tuple[Array, Array]:
    """Return some landmarks (s,), the same part of each component, and their lengths (s, n)."""
    n = sum(len(one.vertices) for one in paths)
    sources, lengths = [], []
    for one in paths:
        own = min(len(one.lengths), max(1, round(count * len(one.vertices) / n)))
        rows = np.full((own, n), np.inf)
        rows[:, one.vertices] = one.lengths[:own]
        sources.append(one.vertices[one.order[:own]])
        lengths.append(rows)
    return np.concatenate(sources), np.concatenate(lengths)
