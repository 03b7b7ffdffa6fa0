"""A linear map to few dimensions that keeps distances."""

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array, returned_for
from heatsketch._checks import check_choice, check_n_components, check_number, read_points
from heatsketch._random import seed_entropy
from heatsketch.core.blocks import HOST
from heatsketch.core.kernel import centred
from heatsketch.estimators._base import Embedder, is_dask, lazily_mapped
from heatsketch.layout.linear import OBJECTIVES, first_equal, learn_linear_map
from heatsketch.metrics import row_distortion
from heatsketch.neighbors.search import in_unit

_COINCIDING = 1e-12  # median ratio next to the largest, below which most pairs coincide


@dataclass(eq=False, repr=False)
class NearIsometricProjection(Embedder):
    """Project to few dimensions so that distances between rows change little.

    The linear map is y = W x, from r features to k components. Its loss depends on the ratios ρ of
    the distances of pairs after and before the map. ``objective="worst"`` minimises log L, the
    logarithm of the ratio between the largest and the smallest ρ [1]_. ``objective="most"`` keeps
    as many pairs as possible within a factor. Principal components keep the sum of squares and may
    lose a short direction completely, so that distant points coincide. Random directions lose such
    pairs by chance. The method is useful for any embedding: a heat sketch (`HeatEmbedding` does
    both), principal components, or the outputs of a neural network.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions k.
    objective : {"worst", "most"}, default="worst"
        "worst": least log L. "most": the largest fraction of pairs whose ratio is within `factor`
        of the median, with a little weight on log L.
    factor : float, default=1.5
        For "most": the factor within which a pair counts as kept.
    rank : int, default=None
        Number of leading principal directions of X that the map may use. By default max(64, 2 k)
        for "most". For "worst" the largest candidate is max(256, 2 k), or less if there are fewer
        features or rows; the others are half of it, a quarter, ..., k. Maps are fitted without some
        rows, and the rank whose map best preserves the distances of these rows is taken. With as
        many directions as points, a map would preserve the distances of these points but not of new
        ones. Rank k means the principal components. They are taken if no other map preserves new
        distances better by 10 % (J_16, see Notes).
    n_init : int or "auto", default="auto"
        Number of starts ("auto": 1 for "most", 4 for "worst"), in this order: the leading k + 12
        directions gradually reduced to k; the leading k; the leading k + 1 and k + 2, reduced to k;
        random ones.
    max_iter : int, default=60
        Iterations of each descent.
    validation_fraction : float in [0, 1), default=0.2
        Fraction of the rows that is held out, to measure log L on new points. "most": the map is
        learned without these rows. "worst": they come from at most 1,000 rows; a first map is
        learned without them, half of them choose the rank, and the final map sees all rows. 0: no
        rows are held out, and `rank` (at most 256 by default for "worst") is used as it is.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of starts beyond the fourth; with fewer starts nothing is random.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The map W, with the scale that keeps the median distance. Columns of the embedding are
        ordered by variance.
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the rows, X Wᵀ up to a shift.
    distortion_ : Distortion
        Change of distances over all pairs up to 2,048 points; beyond, over random pairs and nearest
        neighbours in the input and in the embedding (`distortion_.looked_at` says which).
        `held_out_log_L` is log L of pairs with held-out rows. For "worst" a first map is measured,
        at most 100 new rows beside 800 known ones; its basis, fit and rank do not use these rows.
        As an extreme it grows with the number of pairs.
    rank_ : int
        Number of leading directions that the map uses.
    history_ : list of dict
        `loss` (with its parameters), `pairs`, `objective` and `iterations` of each descent.
    n_iter_ : int
        Iterations of all descents.
    seconds_ : float
        Time of the fit.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        More `n_components` than features, or invalid input.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    classical.PCA : Project on the directions of largest variance.
    metrics.row_distortion : Measure how one embedding keeps the distances of another.

    Notes
    -----
    A map has r k numbers, so few pairs decide. First the variance of log ρ is minimised, which has
    few minima, over 20,000 random pairs, out of k + 12 dimensions; a penalty removes the spare
    ones. Then comes a smooth fraction, or J_β = (1/β) log mean ρ^β + (1/β) log mean ρ^-β, which
    approaches log L as β grows. All pairs (beyond 2,048 points: 250,000, and nearest neighbours in
    input and embedding) are measured between descents; for "worst" the pairs changed most join the
    sample.

    Rows are chosen by their values, sorted along a fixed direction and then shuffled: the map
    depends neither on their order nor on rounding of X. Rows that agree in 12 digits count as one
    point.

    Cost: some 400 evaluations of 20,000 pairs times R (k + 12) operations, 4 n R k for the basis,
    and some ten evaluations of all pairs.

    References
    ----------
    .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (32).

    Examples
    --------
    Principal components of images; the same works on a 512-dimensional neural embedding.

    >>> import heatsketch as hs
    >>> from sklearn.decomposition import PCA
    >>> X, labels = hs.datasets.digits()
    >>> scores = PCA(30, random_state=0).fit_transform(X[:300])
    >>> projection = hs.NearIsometricProjection(3, random_state=0).fit(scores)
    >>> projection.distortion_.log_L < hs.metrics.row_distortion(scores[:, :3], scores).log_L
    True
    >>> projection.transform(scores[:2]).shape
    (2, 3)
    """

    n_components: int = 2
    _: KW_ONLY
    objective: str = "worst"
    factor: float = 1.5
    rank: int | None = None
    n_init: Any = "auto"
    max_iter: int = 60
    validation_fraction: float = 0.2
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Rows that are not a finite table of numbers, or fewer than two; parameters out of
            range or of another type; more components than rows have directions.
        """
        X = read_points(self, X, reset=True)
        objective = OBJECTIVES[check_choice(self.objective, "objective", tuple(OBJECTIVES))]
        check_number(self.factor, "factor", low=1, open_low=True)
        width = X.shape[1]
        k = check_n_components(self.n_components, width, f"X has {width} features")
        if self.rank is not None:
            check_number(self.rank, "rank", low=k, integer=True)
        check_number(self.n_init, "n_init", low=1, integer=True, rules=("auto",))
        check_number(self.max_iter, "max_iter", low=1, integer=True)
        check_number(self.validation_fraction, "validation_fraction", low=0, high=1, open_high=True)
        started = time.perf_counter()
        points = in_unit(centred(X, HOST.centre(X)))  # (n, r)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        rows = np.unique(first_equal(points))
        # Sorted along a direction and then shuffled, rows have an order that depends neither on
        # their places nor on rounding.
        fixed = np.random.default_rng(0)
        order = np.argsort(points[rows] @ fixed.standard_normal(X.shape[1]), kind="stable")
        rows = rows[order[fixed.permutation(len(rows))[: objective.rows]]]
        if len(rows) < 2:
            raise ValueError(f"All {len(X)} rows of X are equal; pass two different rows or more.")
        names = ("factor", "rank", "n_init", "max_iter", "validation_fraction")
        options = {name: getattr(self, name) for name in names}
        learned = learn_linear_map(points[rows], k, rng, objective=objective, **options)
        W = learned.components
        distortion = row_distortion(points @ W.T, points)
        scale = distortion.median
        if scale < _COINCIDING * distortion.expansion:
            scale = distortion.expansion
        self.components_ = (W / scale).astype(X.dtype)
        self.distortion_ = distortion._replace(
            expansion=distortion.expansion / scale,
            contraction=distortion.contraction / scale,
            median=distortion.median / scale,
            held_out_log_L=learned.held_out_log_L,
        )
        self.rank_ = learned.rank
        self.history_ = learned.history
        self.n_iter_ = max(1, sum(stage["iterations"] for stage in learned.history))
        self.embedding_ = X @ self.components_.T
        self.seconds_ = time.perf_counter() - started
        return self

    def transform(self, X: Any) -> Array:
        """Map rows by W: X Wᵀ.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the rows.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; rows that are not a finite table of the columns of the fit.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazily_mapped(self, X)
        return returned_for(read_points(self, X, reset=False) @ self.components_.T, X)
