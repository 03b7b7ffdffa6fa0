"""How far a picture can be believed, judged from outside: by the data, not by its own distances."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.metrics import euclidean_distances

from heatsketch._typing import Array, Points
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics.distortions import Distortion
from heatsketch.metrics.neighborhoods import losses
from heatsketch.metrics.ranks import rank_correlation
from heatsketch.neighbors import pair_distances

NEIGHBORS = 15
FACTOR = 1.5
_JUDGED, _SOURCES, _LEAST_SOURCES = 300, 50, 5  # points whose neighbours, geodesics are looked at
_ENTRIES, _VISITS = 30_000_000, 1_000_000  # of distances to judged points; of steps from sources
_STRUCTURE = 0.75  # trustworthiness below which neighbours in the picture are hardly neighbours
_GOOD_NEIGHBORS, _GOOD_DISTANCES = 0.9, 0.7
_FRAME, _FAR = 0.98, 2.0  # central fraction of the points; distance in units of its radius


class PictureQuality(NamedTuple):
    """How far a picture can be believed.

    Attributes
    ----------
    neighbors : float
        Trustworthiness at 15 neighbours, of some 300 points: 1 if near points of the picture are
        near in the data, about 0.5 for a picture that has nothing to do with the data.
    distances : float
        Rank correlation of distances in the picture with geodesic distances along the graph of
        neighbours, from up to 50 points, within components; NaN without such a graph.
    outside : int
        Points farther from the middle than twice the radius of the central 98 %.
    within : float
        Fraction of the pairs whose distance the picture keeps within a factor 1.5.
    """

    neighbors: float
    distances: float
    outside: int
    within: float

    @property
    def verdict(self) -> str:
        """One word or a few about the use of the picture."""
        if self.neighbors < _STRUCTURE:
            return "No structure found at this scale"
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
        >>> PictureQuality(0.97, 0.92, 0, 0.89).describe()
        'Good: neighbours .97, large distances .92. It keeps 89 % of distances within 1.5.'
        """
        distances = "" if math.isnan(self.distances) else f", large distances {self.distances:.2f}"
        line = f"{self.verdict}: neighbours {self.neighbors:.2f}{distances}.".replace(" 0.", " .")
        if self.outside:
            line += f" Far points: {self.outside:,} outside the frame."
        kept = math.floor(100 * self.within + 1e-9)
        return f"{line} It keeps {kept} % of distances within {FACTOR:g}."


def picture_quality(
    X: Points, Y: Array, diffusion: Diffusion, distortion: Distortion
) -> PictureQuality:
    """Judge a picture Y (n, k) of points X (n, d) by the points and their graph of neighbours.

    The points looked at are chosen by their content, see `Diffusion.sample`. Cost: distances of up
    to 300 points to all, and shortest paths from up to 50.
    """
    X, Y = X[diffusion.first_points], Y[diffusion.first_points]
    n = len(Y)
    judged = diffusion.sample(min(_JUDGED, max(30, _ENTRIES // n)))
    k = min(NEIGHBORS, (n - 1) // 2)
    radii = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    correlation, graph = math.nan, diffusion.directed_step
    if graph is not None:
        rows = np.repeat(np.arange(n), np.diff(graph.indptr))
        lengths = pair_distances(X, X, rows, graph.indices)
        edges = sparse.csr_matrix((lengths, graph.indices, graph.indptr), graph.shape)
        sources = diffusion.sample(min(_SOURCES, max(_LEAST_SOURCES, _VISITS // n)))
        geodesics = dijkstra(edges, directed=False, indices=sources)
        reached = np.isfinite(geodesics) & (geodesics > 0)
        if np.count_nonzero(reached) >= 2:
            embedded = euclidean_distances(Y[sources], Y)
            correlation = rank_correlation(geodesics[reached], embedded[reached])
    return PictureQuality(
        1.0 - float(losses(X, Y, k, judged).mean()) if k else 1.0,
        correlation,
        int(np.count_nonzero(radii > _FAR * np.quantile(radii, _FRAME))),
        distortion.within[FACTOR],
    )
