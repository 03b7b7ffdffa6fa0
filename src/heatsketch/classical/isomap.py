"""Isomap: shortest paths along a neighbourhood graph, and classical scaling of their lengths."""

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.classical._path_scaling import PathScaling


class Isomap(PathScaling):
    """Embed points so that distances are those along a neighbourhood graph.

    *Linear and nonlinear dimensionality reduction*, §6 (Tenenbaum, de Silva and Langford 2000):

    1. a graph G joins each point to its k nearest others (or to all within ε), where either end
       has the other as a neighbour: max(G, Gᵀ);
    2. Δ holds the lengths of the shortest paths between all points;
    3. classical scaling (§3) of Δ gives the coordinates.

    A new point x is at distance δ_j = min over its neighbours i of |x - x_i| + Δ_ij from point j,
    and is placed by these distances; training points get their own coordinates.

    Use it for data on a surface that unrolls to a convex region of the plane: it keeps the geodesic
    distances. Do not use it for noisy data, where a few edges across a gap shorten all paths, for
    surfaces with holes or curvature, which it distorts, or for more than about 20,000 points (see
    `LandmarkIsomap`).

    Parameters
    ----------
    n_components : int >= 1, default 2
        Number of coordinates.
    n_neighbors : int >= 1, default 10
        k. A small k keeps paths on the surface; a larger k brings their lengths closer to the
        geodesic distances.
    radius : float > 0, optional
        ε, in the units of X: join all points up to this distance instead.
    neighbors : None, NeighborIndex, transformer or CSR matrix (n, n), optional
        The search to use, as in `HeatSketch`.
    metric : str or callable, default "euclidean"
        The distance of points, as in `HeatSketch`. "precomputed": X holds the distances between
        all points (n, n), of which the nearest become edges; or it is a sparse matrix, all of
        whose entries are edges (if it lists k neighbours of each point, as a KNeighborsTransformer
        does, the k nearest of a new one).

    Attributes
    ----------
    embedding_ : array (n, n_components)
        In the units and the precision of X; mean 0 (points with equal coordinates count once).
    residual_variance_ : array (n_components,)
        1 - R² between the lengths of paths and the distances in the first 1, 2, … coordinates; it
        stops falling at the dimension of the data.
    diagnostics_ : dict
        `mean_neighbors`, `components` (of the graph before they are joined), `duplicates` (points
        that share the vertex of an equal point), `residual_variance` (of all coordinates).
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    ValueError
        Too few points for the neighbours or coordinates; invalid numbers in X.
    MemoryError
        The paths would take more memory than is available.

    Notes
    -----
    Components of the graph are joined by the shortest link between every two (more than 4 √n
    components by a minimum spanning tree), with a warning: paths between clusters that are far
    apart are then nearly straight.

    Cost: n searches of the graph (3 ms each for 10,000 points, in parallel), and about 50 products
    with an (n, n) matrix. Memory: 16 n² bytes, half of which are kept for `transform`.

    Examples
    --------
    >>> import heatsketch as hs, numpy as np
    >>> from heatsketch.classical import Isomap
    >>> X, flat = hs.datasets.swiss_roll(500, rng=0)
    >>> model = Isomap(n_neighbors=8).fit(X)
    >>> print(abs(np.corrcoef(model.embedding_[:, 0], flat[:, 0])[0, 1]) > 0.99)
    True
    """

    _instead = "pass LandmarkIsomap, which needs only the paths from the landmarks."

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 10,
        radius: float | None = None,
        neighbors: Any = None,
        metric: str = "euclidean",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.neighbors = neighbors
        self.metric = metric

    def _landmarks(self, graph: sparse.csr_matrix, n: int) -> Array:
        return np.arange(graph.shape[0])
