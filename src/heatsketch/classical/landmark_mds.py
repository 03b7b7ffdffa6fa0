"""Landmark scaling: a few landmarks are scaled, and all points placed by distances to them."""

from typing import Any, Self

import numpy as np

from heatsketch._checks import as_floats, check_number, check_points, logger
from heatsketch._typing import Array
from heatsketch.classical._base import check_distances, check_non_negative
from heatsketch.classical._mds import MultidimensionalScaling
from heatsketch.graphs.landmarks import check_indices, choose_landmarks
from heatsketch.neighbors import in_metric


class LandmarkMDS(MultidimensionalScaling):
    """Embed many points by their distances to a few landmarks, which classical scaling places.

    De Silva and Tenenbaum (2004), the remark that ends §3 of *Linear and nonlinear dimensionality
    reduction*: the l landmarks are embedded by `ClassicalMDS`, with eigenpairs (λ_m, v_m) of B and
    row means μ_j of their squared distances; a point at squared distances δ_j from them is placed
    at

        y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j).

    This is exact where the points lie in k dimensions that the landmarks span. The map depends on
    the landmarks alone: the last step of the paper, a rotation to the principal axes of all points,
    is left out, and `PCA` of the embedding performs it. Axes and origin are those of the landmarks.

    When to use it: for more points than fit in memory with `ClassicalMDS`, or where distances are
    expensive, because n l of them are enough. When not: for points the map is linear, namely the
    projection on the principal axes of the landmarks (and computed as such); `PCA` projects on
    those of all points.

    Parameters
    ----------
    n_components : int, 1 <= k < l, default 2
        As in `ClassicalMDS`.
    landmarks : "maxmin", "random", indices (l,) or coordinates (l, d), default "maxmin"
        "maxmin": after a random first one, always the point farthest from the landmarks chosen so
        far, which covers the data evenly but prefers outliers; "random": points drawn at random.
        Or the indices of rows of X, or coordinates, which need not be points of X.
    n_landmarks : int, default 200
        How many landmarks l the two rules choose; all points where there are fewer. More than
        k + 1 make the result less sensitive to noise.
    metric : "euclidean", "cosine", "correlation" or "precomputed", default "euclidean"
        X holds points (n, d) with a distance as in `HeatSketch`, or their distances to the
        landmarks (n, l), not squared; `landmarks` are then the indices of the rows of X that are
        the landmarks, in the order of the columns.
    random_state : int, RandomState, Generator or None, default None
        Seed of the two rules.

    Attributes
    ----------
    embedding_ : array (n, k)
        The coordinates of the landmarks have mean zero and are orthogonal.
    landmarks_ : array (l,) or (l, d)
        The indices of the rows of X that are landmarks, or the coordinates given.
    eigenvalues_ : array (k,)
        λ_m of the landmarks, descending.
    diagnostics_ : dict
        `n_landmarks`; the others as in `ClassicalMDS`, for the landmarks.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    ValueError
        As many components as landmarks, or more; indices out of range or repeated; coordinates of
        another dimension; distances between landmarks that are not symmetric or not zero on the
        diagonal.

    Notes
    -----
    Cost for points: n l d operations for "maxmin", and memory for the data twice; l d min(l, d) for
    the scaling, n d k for the coordinates. For distances: l³ and n l k.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, t = hs.datasets.swiss_roll(5000, rng=0)
    >>> hs.classical.LandmarkMDS(n_landmarks=50, random_state=0).fit_transform(X).shape
    (5000, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        landmarks: Any = "maxmin",
        n_landmarks: int = 200,
        metric: str = "euclidean",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.metric = metric
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose and scale landmarks; place points (n, d), or distances to landmarks (n, l).

        Raises
        ------
        ValueError, TypeError
            Bad points or parameters; the class says which.
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_either(X, reset=True)
        landmarks = self._distances_between(X) if self._precomputed else self._coordinates(X)
        if len(landmarks) <= k:
            raise ValueError(
                f"n_components={k} but there are {len(landmarks)} distinct landmark(s); pass fewer "
                f"components, or at least {k + 1} landmarks."
            )
        logger.info("placing %s points by %s landmarks", f"{len(X):,}", f"{len(landmarks):,}")
        if self._precomputed:
            self._scale_distances(landmarks, k)
        else:
            self._scale_points(landmarks, k)
        self.diagnostics_["n_landmarks"] = len(landmarks)
        self.embedding_ = self._place(X)
        return self

    def _read_distances(self, X: Any, reset: bool) -> Array:
        # Not a square matrix: the rows of the landmarks are checked in `_distances_between`.
        X = self._read(X, reset)
        if self._metric != "precomputed":
            in_metric(X, self._metric)  # says which metrics there are
        check_non_negative(X)
        return X

    def _distances_between(self, X: Array) -> Array:
        """Return the distances (l, l) between the landmarks, their rows of X (n, l)."""
        if isinstance(self.landmarks, str):
            raise ValueError(
                f"landmarks={self.landmarks!r} but metric='precomputed'; pass the indices of the "
                "rows of X that are the landmarks, in the order of the columns."
            )
        self.landmarks_ = check_indices(self.landmarks, len(X))
        if len(self.landmarks_) != X.shape[1]:
            raise ValueError(
                f"X has shape {X.shape} but there are {len(self.landmarks_)} landmarks; with "
                "metric='precomputed' pass the distances to the landmarks, (n, l), and the indices "
                "of their l rows."
            )
        between = X[self.landmarks_]
        check_distances(between)
        return between

    def _coordinates(self, X: Array) -> Array:
        """Return the coordinates (l, d) of the landmarks."""
        if isinstance(self.landmarks, str):
            count = check_number(self.n_landmarks, "n_landmarks", low=2, integer=True)
            points = X.astype(float)
            self.landmarks_ = choose_landmarks(points, self.landmarks, count, self.random_state)
        elif np.ndim(self.landmarks) == 2:
            self.landmarks_ = in_metric(self._check_coordinates(X.shape[1]), self._metric)
        else:
            self.landmarks_ = check_indices(self.landmarks, len(X))
        return self.landmarks_ if self.landmarks_.ndim == 2 else X[self.landmarks_]

    def _check_coordinates(self, d: int) -> Array:
        given = check_points(as_floats(self.landmarks, "landmarks"), "landmarks")
        if given.shape[1] != d:
            raise ValueError(
                f"landmarks has shape {given.shape} but X has {d} features; pass (l, {d})."
            )
        return given

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn: distances to landmarks are not square."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags
