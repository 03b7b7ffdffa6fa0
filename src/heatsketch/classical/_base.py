"""The base of the classical estimators."""

from typing import Any

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import check_n_components, read_points
from heatsketch.estimators._base import Embedder
from heatsketch.neighbors import Distances, in_metric
from heatsketch.neighbors.graph import Neighborhoods, neighborhood_graph
from heatsketch.neighbors.search import check_distances, check_non_negative


class Embedding(Embedder):
    """Abstract base: `fit` sets `embedding_` (n, k) and `diagnostics_`, a dict of numbers.

    Subclasses with a rule for new points define `transform`; those that compare points by a
    distance have a parameter `metric`; most of these accept distances instead of points.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        Distance between points: "euclidean"; "cosine", the chord √(2 - 2 cos(x, y)); "correlation",
        the chord after the mean of each row has been subtracted from it; "manhattan"; "hamming";
        "jaccard"; or a function of two rows, which is slow.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        A `heatsketch.neighbors.NeighborIndex`, a transformer of scikit-learn that returns sparse
        graphs of distances, or the distances to the neighbours, a sparse matrix of shape
        (n_samples, n_samples). None: a search that suits the data.
    """

    diagnostics_: dict[str, Any]
    _takes_graphs = False  # sparse distances, those between neighbours

    @property
    def _fit_metric(self) -> Any:
        return (self._fitted_as or self).get_params(deep=False).get("metric", "euclidean")

    @property
    def _precomputed(self) -> bool:
        """Whether the method compares distances, given ones or in a metric without coordinates."""
        return Distances.from_metric(self._fit_metric) is not None

    def _read(self, X: Any, reset: bool) -> Any:
        """Return X as finite float32 or float64, or raise; also raises before `fit`."""
        if reset:
            Distances.from_metric(self._fit_metric)  # raises for an unknown one
        else:
            check_is_fitted(self)
        sparse_too = self.__sklearn_tags__().input_tags.sparse
        return read_points(self, X, reset, accept_sparse=sparse_too)

    def _read_points(self, X: Any, reset: bool) -> Any:
        """Return points (m, d) whose Euclidean distances are those of the metric, or raise."""
        X = self._read(X, reset)
        return in_metric(X, self._fit_metric)

    def _read_either(self, X: Any, reset: bool) -> Any:
        """Return points or, for a metric without coordinates, distances (m, n) to the data."""
        X = self._read(X, reset)
        distances = Distances.from_metric(self._fit_metric)
        if distances is None:
            return in_metric(X, self._fit_metric)
        if distances.precomputed:
            check = check_distances if reset else check_non_negative
            check(X)
            return X
        points = distances.points(X)
        if reset:
            self._training_points = points
        return distances(points, self._training_points).astype(X.dtype)

    def _graph_of(self, X: Any) -> tuple[sparse.csr_matrix, Neighborhoods]:
        """Return the graph of nearest neighbours, or of a radius, of points or distances."""
        names = ("n_neighbors", "radius", "neighbors")
        given = self.get_params(deep=False)
        options: dict[str, Any] = {name: given.get(name) for name in names}
        if self._precomputed:
            options["neighbors"] = Distances("precomputed")
            if not sparse.issparse(X):
                X = options["neighbors"].points(X, training=True)
        return neighborhood_graph(X, **options)

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        if self.get_params(deep=False).get("metric") == "precomputed":
            tags.input_tags.sparse = self._takes_graphs
        return tags


def check_fewer_components(k: Any, count: int) -> int:
    """Return the number of coordinates, or raise unless it is below the number of points."""
    return check_n_components(k, count - 1, f"there are {count} distinct points or landmarks")
