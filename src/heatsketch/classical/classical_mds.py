"""Classical multidimensional scaling of points, or of all distances between them."""

from typing import Any, Self

from heatsketch._checks import check_number, logger, require
from heatsketch.classical._base import in_units
from heatsketch.classical._mds import MultidimensionalScaling


class ClassicalMDS(MultidimensionalScaling):
    """Embed points so that Euclidean distances approximate given ones as well as projections can.

    *Linear and nonlinear dimensionality reduction*, §3: from the squared distances Δ_ij with row
    means μ_i of mean μ,

        B_ij = ½ (μ_i + μ_j - Δ_ij - μ),  B = V Λ Vᵀ,  Z = [v_1 √λ_1, …, v_k √λ_k].

    For points, B = Y Yᵀ with Y the centred points, and Z equals the result of `PCA` up to signs; it
    is computed from the singular values of Y, without the distances. Where distances are not
    Euclidean, B may have negative eigenvalues; these are left out.

    When to use it: for distances that are given, such as travel times, dissimilarities stated by
    people, or distances between strings. When not: for more than some 15,000 points all distances
    take too much memory, see `LandmarkMDS`; on curved data straight distances mislead, see
    `Isomap`.

    Parameters
    ----------
    n_components : int, 1 <= k < n, default 2
        Number of coordinates k. Where fewer eigenvalues are positive, the last coordinates are
        zero, with a warning.
    metric : str or callable, default "euclidean"
        X holds points (n, d) with a distance as in `HeatSketch`, or distances (n, n): not squared,
        symmetric, zero on the diagonal.

    Attributes
    ----------
    embedding_ : array (n, k)
        Columns of mean zero, orthogonal, of squared length λ_m; the entry of largest modulus of
        each is positive.
    eigenvalues_ : array (k,)
        λ_m, descending, in squared units of the distances.
    diagnostics_ : dict
        `negative_eigenvalues`, their number, and `negative_share`, Σ|λ| over them as a share of
        Σ|λ| over all: 0 for points. For distances between more than 1,000 points both describe a
        sample of `spectrum_points` = 1,000 points, evenly spaced in the order of the rows.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    MemoryError
        Matrices (n, n) exceed the available memory; use `LandmarkMDS`.
    ValueError
        Distances that are negative, not symmetric, or not zero on the diagonal; too many
        components; coordinates too large for the precision of X.

    Notes
    -----
    Cost: for points, that of `PCA`. For distances 16 n² bytes; n³ operations for the eigenpairs of
    up to 1,500 points, some 50 products with B for more; n k operations for a new point. A new
    point at squared distances δ_j from the n points is placed at
    y_m = ½ λ_m^-½ Σ_j v_m(j) (μ_j - δ_j). This returns training points to their places (Gower
    1968), and for Euclidean distances it is the projection; far outside the data, digits of δ are
    lost.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import ClassicalMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> Z = ClassicalMDS(metric="precomputed").fit_transform(D)
    >>> float(np.linalg.norm(Z[1] - Z[2]).round(12))
    5.0
    """

    def __init__(self, n_components: int = 2, metric: str = "euclidean") -> None:
        self.n_components = n_components
        self.metric = metric

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points (n, d), or the distances (n, n) between them.

        Raises
        ------
        ValueError, TypeError, MemoryError
            Bad points or parameters, or too many points; the class says which.
        """
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        X = self._read_either(X, reset=True)
        n = len(X)
        if k >= n:
            raise ValueError(
                f"n_components={k} but X has {n} points; pass n_components <= {n - 1}."
            )
        logger.info("classical scaling of %s points", f"{n:,}")
        if not self._precomputed:
            self._scale_points(X, k)
            self.embedding_ = self._place(X)
            return self
        # At the peak two matrices (n, n), beside the given one.
        require(16.0 * n * n, f"Distances between {n:,} points", "use LandmarkMDS.")
        self._scale_distances(X, k)
        self.embedding_ = in_units(self._scaling.coordinates, 0, X.dtype)
        return self
