"""Landmark Isomap: all points are placed by the lengths of their paths to a few landmarks."""

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import check_choice, check_number
from heatsketch._typing import Array
from heatsketch.classical._path_scaling import PathScaling
from heatsketch.graphs.landmarks import check_indices
from heatsketch.graphs.shortest_paths import spread_vertices


class LandmarkIsomap(PathScaling):
    """Embed points by the lengths of their shortest paths to a few landmarks.

    `Isomap` with landmark scaling as step 3 (de Silva and Tenenbaum 2004): classical scaling embeds
    l landmarks, and every other point is placed by its distances to them. With all points as
    landmarks it is Isomap; so it is with any three landmarks that are not on a line, where path
    lengths are Euclidean distances in the plane.

    Use it for many points, where n² path lengths take too much time or memory, with at least about
    ten landmarks for each coordinate, over which the errors of the paths average out.

    Parameters
    ----------
    n_components, n_neighbors, radius, neighbors, metric
        As in `Isomap`.
    n_landmarks : int >= 1, default 200
        Number of landmarks to choose; all points if there are fewer.
    landmarks : "maxmin" or array of int (l,), default "maxmin"
        "maxmin": each is the farthest along the graph from those before, the first far from the
        first point. They reach the boundary of the data, so that most points lie between them. Or
        the row indices of the landmarks.

    Attributes
    ----------
    landmarks_ : array of int (l,)
        The row indices of the landmarks.
    embedding_ : array (n, n_components)
        In the units and the precision of X; the mean of the landmarks is 0.
    residual_variance_, diagnostics_, n_features_in_, feature_names_in_
        As in `Isomap`; the residual variance is that of the pairs of a landmark and any point.

    Raises
    ------
    ValueError, MemoryError
        As in `Isomap`; landmarks that are not row indices of X.

    Notes
    -----
    Cost: l searches of the graph (30 ms each for 100,000 points, in parallel). Memory: 8 l n bytes,
    which are kept for `transform`.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical import LandmarkIsomap
    >>> X, flat = hs.datasets.swiss_roll(2000, rng=0)
    >>> Y = LandmarkIsomap(n_landmarks=50).fit_transform(X)
    >>> print(abs(np.corrcoef(Y[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    _instead = "pass fewer landmarks."

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_landmarks: int = 200,
        landmarks: Any = "maxmin",
        n_neighbors: int = 10,
        radius: float | None = None,
        neighbors: Any = None,
        metric: str = "euclidean",
    ) -> None:
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.neighbors = neighbors
        self.metric = metric

    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        vertex = self._neighborhoods.vertex
        vertex = np.arange(n) if vertex is None else vertex
        if isinstance(self.landmarks, str):
            check_choice(self.landmarks, "landmarks", ("maxmin",))
            count = check_number(self.n_landmarks, "n_landmarks", low=1, integer=True)
            chosen = spread_vertices(graph, min(count, graph.shape[0]), vertex[0])
        else:
            chosen = np.unique(vertex[check_indices(np.asarray(self.landmarks), n)])
        self.landmarks_ = np.unique(vertex, return_index=True)[1][chosen]
        return chosen
