"""Distances between some of the points, which those of embeddings are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._checks import Frame, logger
from heatsketch._typing import Array, Points
from heatsketch.graphs.neighborhoods import neighborhood_graph
from heatsketch.graphs.shortest_paths import shortest_paths
from heatsketch.markov.diffusion import Diffusion
from heatsketch.metrics import diffusion_distance, distortion, rank_correlation
from heatsketch.neighbors import pair_distances


@dataclass(frozen=True, eq=False)
class References:
    """Distances between all pairs of a sample of points, condensed as by `pdist`."""

    sample: Array  # (m,), the points, ascending
    distances: dict[str, Array]  # (m(m-1)/2,): "input" (Euclidean), "diffusion", "geodesic"

    def log_L(self, Y: Array, reference: str) -> float:
        """Return log L, (32) of *Sketching the heat kernel*, of Y (n, k) over the sample."""
        return distortion(Y[self.sample], self.distances[reference]).log_L

    def correlation(self, Y: Array, reference: str) -> float:
        """Return Spearman's correlation of the distances in Y (n, k) with the reference."""
        return rank_correlation(pdist(Frame.of(Y)(Y[self.sample])), self.distances[reference])


def references(
    X: Points,
    diffusion: Diffusion,
    size: int,
    n_neighbors: int,
    neighbors: Any,
    time: float,
    rng: Any,
) -> References:
    """Compute the distances between `size` random points of X (n, d)."""
    sample = np.sort(np.random.default_rng(rng).permutation(X.shape[0])[:size])
    i, j = np.triu_indices(len(sample), 1)
    points = Frame.of(X)(X[sample])
    logger.info("reference distances between %d points", len(sample))
    graph, found = neighborhood_graph(X, n_neighbors=n_neighbors, neighbors=neighbors)
    vertices = found.vertex[sample]
    paths = shortest_paths(found.connected(graph), vertices)[:, vertices]
    distances = {
        "input": pair_distances(points, points, i, j),
        "diffusion": diffusion_distance(diffusion, time=time, pairs=(sample[i], sample[j])),
        "geodesic": paths[i, j],
    }
    return References(sample, distances)
