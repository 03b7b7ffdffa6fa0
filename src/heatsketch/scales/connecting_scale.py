"""The ε at which the Gaussian affinity of points becomes connected."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import squareform

from heatsketch._docstrings import texts_from
from heatsketch._validation import check_number, check_points
from heatsketch.backend import HOST
from heatsketch.graphs.links import shortest_links
from heatsketch.neighbors import NeighborIndex, distinct_rows, in_metric
from heatsketch.operators.kernel import centred, squared_distances
from heatsketch.scales.bandwidth import WIDE_CUT

EXACT_POINTS = 4096  # up to here all pairs are used
_TREE_NEIGHBORS = 15  # of each point, for the spanning tree of more points
_MARGIN = 1e-7  # relative, added to ε so that it does connect


@texts_from(in_metric)
def connecting_epsilon(X: Any, *, metric: str = "euclidean", cut: float = WIDE_CUT) -> float:
    """Compute the smallest ε at which the Gaussian affinity of points is connected.

    With `affinity="radius"` points are joined up to the distance cut √(ε/2). The graph is connected
    once this reaches the longest edge L of the minimum spanning tree: ε = 2 (L / cut)².

    Use it for a lower bound of ε, "as small as possible without making the generator reducible"
    [1]_. Just above it the connection is weak, and a single outlier can determine it. If it is far
    above `ksum(X).epsilon`, leave out outliers, or treat each component on its own.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        As in `in_metric`.
    cut : float > 0, default=5
        Affinities below exp(-cut²/2) are ignored. For `affinity="dense"`, where those below 1e-14
        of a row sum are negligible, pass 7 for up to 1,000 points and 6 for up to 100,000.

    Returns
    -------
    float
        The smallest ε in squared data units, 1e-7 above the exact number so that it connects.
        Beyond 4,096 points it may be larger, see Notes.

    Raises
    ------
    ValueError
        All points are the same.

    See Also
    --------
    ksum : Choose a bandwidth and estimate the dimension.
    gaussian_affinity : Compute the Gaussian affinity of all pairs of points.

    Notes
    -----
    The cost is n² d operations and 24 n² bytes for up to 4,096 points. For more, it is a search of
    15 nearest neighbours. The tree is then that of their graph, whose components are joined by
    shortest links. That ε connects the points, and may be larger than necessary if clusters are
    denser than the space between them.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.7.

    Examples
    --------
    >>> import heatsketch as hs
    >>> round(hs.connecting_epsilon([[0.0], [1.0], [3.0]], cut=2.0), 6)
    2.0
    """
    check_number(cut, "cut", low=0, open_low=True)
    X = in_metric(check_points(X), metric)
    points = centred(X[distinct_rows(X)[0]], HOST.centre(X))
    n = points.shape[0]
    if n == 1:
        raise ValueError("All points are the same; pass distinct points.")
    if n <= EXACT_POINTS:
        pairs = squareform(squared_distances(points, points, direct=False), checks=False)
        longest = float(np.sqrt(linkage(pairs, "single")[-1, 2]))  # it merges along the tree
    else:
        nearest = NeighborIndex(points).query(None, _TREE_NEIGHBORS + 1)
        tree = minimum_spanning_tree(nearest.as_csr(n))
        links = shortest_links(points, connected_components(tree, directed=False)[1])
        longest = float(max(tree.data.max(), links[2].max(initial=0.0)))
    return 2 * (longest / cut) ** 2 * (1 + _MARGIN)
