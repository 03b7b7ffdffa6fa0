"""How far a picture can be believed: what is measured of it, and a verdict in words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.metrics import euclidean_distances

from heatsketch._typing import Array
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.layout.paths import Paths, graph_of_lengths, paths_of_few
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics.distortions import Distortion
from heatsketch.metrics.neighborhoods import losses
from heatsketch.metrics.ranks import rank_correlation

NEIGHBORS = 15
FACTOR = 1.5
_JUDGED, _SOURCES, _LEAST_SOURCES = 300, 50, 5  # points whose neighbours, geodesics are looked at
_ENTRIES, _VISITS = 30_000_000, 1_000_000  # of distances to judged points; of steps from sources
LEAST_JUDGED = 50  # points
_POOR = 0.75  # trustworthiness below which neighbours in the picture are hardly neighbours
_GOOD_NEIGHBORS, _GOOD_DISTANCES = 0.9, 0.7
_FRAME, _FAR = 0.98, 2.0  # central fraction of the points; distance in units of its radius
_CELLS, _DENSEST, _LEAST_CROWD = 2_500, 100, 100  # of the frame; one of so many; points
_CROWDED = 0.5


class PictureQuality(NamedTuple):
    """How far a picture can be believed.

    Attributes
    ----------
    neighbors : float
        Trustworthiness at 15 neighbours, of some 300 points: 1 if near points of the picture are
        near in the data, about 0.5 for a picture that has nothing to do with the data. NaN for
        fewer than 50 distinct points, which are too few to say anything.
    distances : float
        Rank correlation of distances in the picture with geodesic distances along the graph of
        neighbours, from up to 50 points, within components; NaN without such a graph, and for fewer
        than 50 points.
    outside : int
        Points farther from the middle than twice the radius of the central 98 %.
    within : float
        Fraction of the pairs whose distance the picture keeps within a factor of 1.5.
    crowding : float
        Fraction of the points in the densest 1 % of the frame: of the box around the central 98 %,
        cut into 50 x 50 cells (14 x 14 x 14 in three dimensions). NaN for fewer than 100 points and
        beyond three dimensions.
    is_free : bool
        Whether the points of the picture were free, so that it keeps neighbours and the order of
        distances rather than the distances.

    See Also
    --------
    audit : Find the points of a picture that can be believed.
    metrics.trustworthiness : Measure whether neighbours in an embedding are true.
    """

    neighbors: float
    distances: float
    outside: int
    within: float
    crowding: float = math.nan
    is_free: bool = False

    @property
    def verdict(self) -> str:
        """One word or a few about the use of this picture; other pictures may show more."""
        if math.isnan(self.neighbors):
            return f"Fewer than {LEAST_JUDGED} points, too few to judge"
        if self.neighbors < _POOR:
            return "Poor, this picture does not show the neighbours of the data"
        if math.isnan(self.distances):
            word = "Good" if self.neighbors >= _GOOD_NEIGHBORS else "Rough"
            return f"{word} for neighbours, large distances were not judged"
        if self.neighbors >= _GOOD_NEIGHBORS:
            poor = self.distances < _GOOD_DISTANCES
            return "Good for neighbours, not for large distances" if poor else "Good"
        good = self.distances >= _GOOD_DISTANCES
        return "Good for large distances, not for neighbours" if good else "Rough"

    def describe(self) -> str:
        """Describe in plain words how far the picture can be believed.

        Examples
        --------
        >>> from heatsketch.metrics import PictureQuality
        >>> print(PictureQuality(0.97, 0.92, 0, 0.89).describe().replace(". ", ".\\n"))
        Good: neighbours .97, large distances .92.
        It keeps 89 % of distances within a factor of 1.5.
        """
        numbers = {"neighbours": self.neighbors, "large distances": self.distances}
        known = ", ".join(shown(numbers))
        line = f"{self.verdict}: {known}." if known else f"{self.verdict}."
        if self.outside:
            line += f" Far points: {self.outside:,} outside the frame."
        if self.crowding > _CROWDED:
            line += " Most points are crowded in 1 % of the frame."
        kept = math.floor(100 * self.within + 1e-9)
        free = "A free layout, for neighbours and the order of distances; it"
        subject = free if self.is_free else "It"
        return f"{line} {subject} keeps {kept} % of distances within a factor of {FACTOR:g}."


def shown(numbers: Mapping[str, float]) -> list[str]:
    """Return numbers with their names, as a verdict has them: neighbours .97; none for NaN."""
    known = [f"{name} {x:.2f}" for name, x in numbers.items() if not math.isnan(x)]
    return [text.replace(" 0.", " .") for text in known]


def sampled_geodesics(
    diffusion: Diffusion, paths: Sequence[Paths] | None = None, gaps: Array | None = None
) -> tuple[Array, Array] | None:
    """Return up to 50 vertices (s,), and the lengths (s, n) of the shortest paths from them.

    They go along the graph of neighbours, and are found where the diffusion is, unless the paths of
    all components are known. None for fewer than 50 vertices, or without such a graph. `gaps` are
    those of `picture_quality`.
    """
    n = diffusion.n
    if n < LEAST_JUDGED:
        return None
    count = min(_SOURCES, max(_LEAST_SOURCES, _VISITS // n))
    if paths is not None and gaps is None:
        return paths_of_few(paths, count)
    graph = graph_of_lengths(diffusion, None if gaps is None else _observed(diffusion, gaps))
    if graph is None:
        return None
    sources = diffusion.sample(count)
    return sources, shortest_paths(graph, sources)


def picture_quality(
    Y: Array,
    diffusion: Diffusion,
    distortion: Distortion,
    geodesics: tuple[Array, Array] | None,
    *,
    is_free: bool = False,
    gaps: Array | None = None,
) -> PictureQuality:
    """Judge a picture Y (points, k) by the points of a diffusion and their `sampled_geodesics`.

    `is_free` is only passed on. `gaps` (points, d) says which entries of the points were filled:
    distances are those by the entries that both points have. The points looked at are chosen
    by their content, see `Diffusion.sample`. Cost: distances of up to 300 points to all.
    """
    new = cast(Any, diffusion.out_of_sample)
    X, Y = _observed(diffusion, gaps), Y[diffusion.first_points]
    distances = new.distances_are_given
    X = X[:, diffusion.first_points] if distances else X
    n = len(Y)
    judged = diffusion.sample(min(_JUDGED, max(30, _ENTRIES // n)))
    k = min(NEIGHBORS, (n - 1) // 2)
    radii = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    frame = np.quantile(radii, _FRAME)
    trust, correlation = math.nan, math.nan
    if n >= LEAST_JUDGED:
        trust = 1.0 - float(np.nanmean(losses(X, Y, k, judged, distances=distances)))
    if geodesics is not None:
        sources, lengths = geodesics
        reached = np.isfinite(lengths) & (lengths > 0)
        if np.count_nonzero(reached) >= 2:
            embedded = euclidean_distances(Y[sources], Y)
            correlation = rank_correlation(lengths[reached], embedded[reached])
    return PictureQuality(
        trust,
        correlation,
        int(np.count_nonzero(radii > _FAR * frame)),
        distortion.within[FACTOR],
        _crowding(Y[radii <= frame]),
        is_free,
    )


def _observed(diffusion: Diffusion, gaps: Array | None) -> Any:
    """Return the points of the vertices (n, d), NaN where their entries were filled."""
    first, new = diffusion.first_points, cast(Any, diffusion.out_of_sample)
    points = new.points[first]
    return points if gaps is None else np.where(gaps[first], np.nan, points)


def _crowding(Y: Array) -> float:
    """Return the fraction of points Y (n, k) in the densest 1 % of the cells of their box."""
    n, k = Y.shape
    if n < _LEAST_CROWD or k > 3:
        return math.nan
    side = round(_CELLS ** (1 / k))
    counts = np.sort(np.histogramdd(Y, side)[0], axis=None)
    return float(counts[-max(1, len(counts) // _DENSEST) :].sum() / n)
