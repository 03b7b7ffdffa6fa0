"""How far a picture can be believed: what is measured of it, and a verdict in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.metrics import euclidean_distances

from heatsketch._arrays import Array
from heatsketch.core.operators import Bounds
from heatsketch.layout.free import Lengths, graph_of_lengths
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import LeadingPairs
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.metrics.distortions import Distortion, distortion_from
from heatsketch.metrics.neighborhoods import FAR_MOVE, excess_ranks, losses, rank_correlation
from heatsketch.neighbors.graph import shortest_paths

NEIGHBORS = 15
FACTOR = 1.5
_JUDGED, _SOURCES, _LEAST_SOURCES = 300, 50, 5  # points whose neighbours, geodesics are looked at
_ENTRIES, _VISITS = 30_000_000, 1_000_000  # of distances to judged points; of steps from sources
LEAST_JUDGED = 50  # points
_POOR = 0.75  # trustworthiness below which neighbours in the picture are hardly neighbours
_LIMITS = {  # of borderline and of good measures, which docs/howto/believe-my-umap.md explains
    "neighbors": (0.85, 0.9),
    "true_neighbors": (NEIGHBORS / 5, NEIGHBORS / 4),
    "distances": (0.6, 0.7),
}
_HELD = (2 / 3, 1 / 3)  # misfits up to which some path lengths are held, and all
_STRETCHED = ("only with much stretching", "only with some stretching", "with little stretching")
_GRADES = ("Rough", "Borderline", "Good")
_GOOD_WITHIN = 0.8
_FRAME, _FAR = 0.98, 2.0  # central fraction of the points; distance in units of its radius
_CELLS, _DENSEST, _LEAST_CROWD = 2_500, 100, 100  # of the frame; one of so many; points
_CROWDED = 0.5
_USES = {  # by whether neighbours and large distances are borderline at least: what to read
    (True, True): "Read near and far, not exact distances",
    (True, False): "Read who is near, not how far others are",
    (False, True): "Read which groups are far apart, not who is near",
    (False, False): "Trust neither neighbours nor distances",
}


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
    true_neighbors : float
        How many of the 15 nearest points in the picture are among the 30 nearest in the data, the
        mean of some 300 points. NaN for fewer than 50 distinct points.
    misfit : float
        Of a free layout: 0 if so few dimensions hold all path lengths along the data, so that it
        follows these; 1 if they hold at most half of them, so that it follows diffusion and
        straight distances. NaN for other pictures.
    moved : int
        Of a picture that keeps to old places: how many known points moved more than three edges
        against their old neighbours. -1 for other pictures.
    moved_to : int
        A row near which the largest group of these is now; -1 without a group.

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
    true_neighbors: float = math.nan
    misfit: float = math.nan
    moved: int = -1
    moved_to: int = -1

    @property
    def verdict(self) -> str:
        """One word or a few about the use of this picture; other pictures may show more."""
        return self._judged()[0]

    def describe(self) -> str:
        """Describe in plain words how far the picture can be believed.

        Examples
        --------
        >>> from textwrap import fill
        >>> from heatsketch.metrics import PictureQuality
        >>> print(fill(PictureQuality(0.97, 0.92, 0, 0.75, true_neighbors=11.4).describe(), 79))
        Good: on average 11.4 of a point's 15 neighbours in the picture are among its
        30 nearest in the data, trustworthiness .97, rank correlation of distances with
        path lengths along the data .92. Read near and far, not exact distances. The
        picture keeps 75 % of diffusion distances within a factor of 1.5.
        """
        lengths = "rank correlation of distances with path lengths along the data"
        known_near = _below_limits(self.true_neighbors, 1, _LIMITS["true_neighbors"])
        near = f"on average {known_near:.1f} of a point's {NEIGHBORS} neighbours in the "
        near += f"picture are among its {2 * NEIGHBORS} nearest in the data"
        measures = {
            "true_neighbors": [] if math.isnan(self.true_neighbors) else [near],
            "neighbors": shown({"trustworthiness": self.neighbors}, (_POOR, *_LIMITS["neighbors"])),
            "distances": shown({lengths: self.distances}, _LIMITS["distances"]),
        }
        known = []
        for name, words in measures.items():
            limit = f" (good from {_LIMITS[name][1]:g})".replace(" 0.", " .")
            known += [text + (limit if self._grade(name) == 1 else "") for text in words]
        word, use = self._judged()
        kept = math.floor(100 * self.within + 1e-9)
        misfit, stretched = ", ".join(shown({"misfit": self.misfit})), ""
        if misfit and use:
            stretched = _STRETCHED[sum(self.misfit <= limit for limit in _HELD)]
        said = [
            f"{word}: {', '.join(known)}" if known else word,
            use,
            f"The data fit into so few dimensions {stretched} ({misfit} of 1)" if stretched else "",
            f"Far points: {self.outside:,} outside the frame" if self.outside else "",
            "Most points are crowded in 1 % of the frame" if self.crowding > _CROWDED else "",
            f"The picture keeps {kept} % of diffusion distances within a factor of {FACTOR:g}",
            self._moves(),
        ]
        return " ".join(f"{sentence}." for sentence in said if sentence)

    def _moves(self) -> str:
        """Say how many known points moved, and where most of them are."""
        if self.moved < 0:
            return ""
        group = "" if self.moved_to < 0 else f", most of them to near row {self.moved_to}"
        known = f"{self.moved:,} known point{'s' * (self.moved != 1)} moved"
        return f"{known} more than {FAR_MOVE:g} edges against old neighbours{group}"

    def _grade(self, measure: str) -> int:
        """Return 2 where a measure is good or not known, 1 where it is borderline, else 0."""
        value = getattr(self, measure)
        return 2 if math.isnan(value) else sum(value >= limit for limit in _LIMITS[measure])

    def _judged(self) -> tuple[str, str]:
        """Return the verdict, and how to read the picture."""
        near, far = min(map(self._grade, ("neighbors", "true_neighbors"))), self._grade("distances")
        is_far_known = not math.isnan(self.distances)
        use = _USES[near > 0, far > 0 and is_far_known]
        grades = {"neighbours": near, "large distances": far}
        if doubtful := [name for name, grade in grades.items() if grade == 1]:
            use += f"; take {' and '.join(doubtful)} with care"
        if math.isnan(self.neighbors):
            return f"Fewer than {LEAST_JUDGED} points, too few to judge", ""
        if near == 2 and far == 2 and self.within >= _GOOD_WITHIN and not self.is_free:
            use = "Distances can be compared by eye"
        if self.neighbors < _POOR:
            word = "Poor, this picture does not show the neighbours of the data"
        elif not near and self._grade("neighbors") == 2 and not (far and is_far_known):
            word = "Good for regions, not for neighbours"
            word += " or large distances" if is_far_known else ", large distances were not judged"
            use = "Read which points are in one region, not who is near or how far others are"
        elif not is_far_known:
            word = f"{_GRADES[near]} for neighbours, large distances were not judged"
        elif near == far:
            word = _GRADES[near]
        else:
            better, worse = sorted(grades, key=lambda name: -grades[name])
            less = ("not", "borderline")[grades[worse]]
            word = f"{_GRADES[grades[better]]} for {better}, {less} for {worse}"
        return word, use


def shown(numbers: Mapping[str, float], limits: Sequence[float] = ()) -> list[str]:
    """Return numbers with their names, as a verdict has them: neighbours .97; none for NaN."""
    known = {name: _below_limits(x, 2, limits) for name, x in numbers.items() if not math.isnan(x)}
    return [f"{name} {x:.2f}".replace(" 0.", " .") for name, x in known.items()]


def _below_limits(x: float, digits: int, limits: Sequence[float]) -> float:
    """Return a number rounded, but down where it would reach a limit above it."""
    rounded = round(x, digits)
    reached = any(x < limit <= rounded for limit in limits)
    return rounded - 10.0**-digits if reached else rounded


@dataclass(frozen=True, eq=False)
class Picture:
    """What a picture is judged by, beside the diffusion of its points.

    Attributes
    ----------
    places : array (points, k)
    time, filter
        Of the diffusion distances that the picture should keep.
    ends : pair of floats or None
        The ends of the spectrum, if they are known.
    rows : array (n, r) or None
        Of the vertices; their distances are the diffusion distances. None: they are found again.
    error : float
        The relative one of a mean squared distance of the rows.
    held_out_log_L : float
        That of a learned map; NaN without one.
    is_free : bool
        Whether the points of the picture were free.
    of_points : bool
        Whether distances of the data are known, so that there is a quality.
    geodesics : pair of arrays or None
        `sampled_geodesics`, if they are known.
    gaps : array of bool (points, d) or None
        The entries of the data that were filled.
    misfit : float
        That of a free layout.
    moved : pair of int
        Those that `PictureQuality` has.
    """

    places: Array
    time: float
    filter: str
    ends: Bounds | None
    rows: Array | None
    error: float
    held_out_log_L: float
    is_free: bool
    of_points: bool
    geodesics: tuple[Array, Array] | None
    gaps: Array | None
    misfit: float = math.nan
    moved: tuple[int, int] = (-1, -1)

    def judged(
        self, diffusion: Diffusion, leading: LeadingPairs
    ) -> tuple[Distortion, PictureQuality | None]:
        """Measure how well the picture keeps diffusion distances, and how it agrees with data."""
        wanted = DiffusionDistances.from_operator(
            diffusion,
            self.time,
            self.filter,
            within_components=True,
            ends=self.ends,
            leading=leading,
        )
        known = None if self.rows is None else (self.rows[diffusion.vertex], self.error)
        distortion = distortion_from(self.places, wanted, known=known)
        distortion = distortion._replace(held_out_log_L=self.held_out_log_L)
        if not self.of_points:
            return distortion, None
        geodesics = self.geodesics
        if geodesics is None:
            geodesics = sampled_geodesics(diffusion, gaps=self.gaps)
        places = self.places[diffusion.counted]
        quality = picture_quality(
            places, diffusion, distortion, geodesics, is_free=self.is_free, gaps=self.gaps
        )
        return distortion, quality._replace(
            misfit=self.misfit, moved=self.moved[0], moved_to=self.moved[1]
        )


def sampled_geodesics(
    diffusion: Diffusion, paths: Lengths | None = None, gaps: Array | None = None
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
        along = np.where(paths.joined, paths.along, np.inf)
        return paths.landmarks[:count], along[:count]
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
    trust = correlation = true_neighbors = math.nan
    if n >= LEAST_JUDGED:
        excess, sizes = excess_ranks(X, Y, k, judged, distances=distances)
        trust = 1.0 - float(np.nanmean(losses(excess, sizes)))
        counted = np.count_nonzero(~np.isnan(excess), axis=1)
        near = k * np.count_nonzero(excess <= k, axis=1)[counted > 0] / counted[counted > 0]
        true_neighbors = float(np.mean(near))
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
        true_neighbors,
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
