"""A linear map to few dimensions that keeps distances."""

import time
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import Frame, seed_entropy, single_threaded_blas
from heatsketch._checks import check_number
from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.estimators._embedder import Embedder
from heatsketch.isometry.learn import MAX_ROWS, learn, sampled_rows
from heatsketch.metrics import row_distortion
from heatsketch.neighbors import distinct_rows
from heatsketch.spectral.eigenpairs import column_signs

EQUAL_BITS = 40  # rows that agree in so many count as one point


class NearIsometricProjection(Embedder):
    """Project to few dimensions so that no distance between rows is changed much.

    Finds the linear map y = W x, (n, r) -> (n, k), that minimises log L: the logarithm of the ratio
    between its largest and smallest dilation of a distance, (32) of *Sketching the heat kernel*.
    Principal components keep the sum of squares and may lose a short direction completely, so that
    distant points coincide; random directions lose such pairs by chance. Here the worst pairs
    count. The loss over pairs with dilations ρ is

        J_β = (1/β) log mean ρ^β + (1/β) log mean ρ^-β,

    which approaches log L as β grows from 4 to 1024. Useful for any embedding: a heat sketch
    (`HeatEmbedding` does both), principal components, or the outputs of a neural network.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions k.
    rank : int, optional
        Number of leading principal directions of X that the map may use. By default one of 256,
        128, ... is chosen by how well a map that was fitted without some rows keeps their
        distances: with as many directions as points, the map keeps the distances of these points
        but not of new ones.
    n_init : int, default 6
        Number of starts: the leading directions, and random ones reduced from one or two dimensions
        more.
    max_iter : int, default 60
        Iterations for each β.
    validation_fraction : float in [0, 1), default 0.2
        Share of the rows (of at most 1,000) that are left out to choose the rank and to measure
        log L on new points; 0: `rank` (256 by default) is used as it is.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    components_ : array (k, r)
        W, on the scale that keeps the median distance. Columns of the embedding are ordered by
        variance.
    embedding_ : array (n, k)
    distortion_ : Distortion
        Over all pairs up to 2,048 points; beyond, over the pairs used for fitting, random pairs and
        nearest neighbours in the input and in the embedding (see `looked_at`). `held_out_log_L` is
        that of pairs with points that were left out of basis and fit. The rank was chosen by the
        same pairs, so it is slightly too small; and they are fewer than those of `log_L`.
    rank_ : int
    history_ : list of dict
        The refinement: `beta`, `pairs`, `objective` and `iterations` of each stage.
    n_iter_ : int
        Iterations of the refinement.
    seconds_ : float
    n_features_in_, feature_names_in_ : as in scikit-learn

    Raises
    ------
    ValueError
        Fewer features than `n_components`, or bad input.

    Notes
    -----
    Cost: some 400 evaluations of about 4 k + 30 operations for each pair and 4 n R k for the basis,
    over all pairs up to 2,048 points, and otherwise over some 800,000 pairs of at most 20,000
    points. Rows that agree in 12 digits count as one point.

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        rank: int | None = None,
        n_init: int = 6,
        max_iter: int = 60,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.n_init = n_init
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @single_threaded_blas()  # the same bits for any number of threads
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of the rows of X (n, r)."""
        X = read_points(self, X, reset=True)
        k = self._check_parameters(X.shape[1])
        started = time.perf_counter()
        points = Frame.of(X)(X)  # (n, r), centred, at most 1
        rng = np.random.default_rng(seed_entropy(self.random_state))
        rows = sampled_rows(len(X), MAX_ROWS, rng)
        rows = rows[np.unique(_first_equal(points[rows]))]
        if len(rows) < 2:
            raise ValueError(f"All {len(X)} rows of X are equal; pass two different rows or more.")
        learned = learn(
            points[rows],
            k,
            rank=self.rank,
            n_init=self.n_init,
            max_iter=self.max_iter,
            validation_fraction=self.validation_fraction,
            rng=rng,
        )
        used = learned.used and (rows[learned.used[0]], rows[learned.used[1]])
        W = _oriented(learned.components, points[rows])
        distortion = row_distortion(points @ W.T, points, used=used, rng=rng)
        scale = distortion.median or distortion.expansion  # 0 if most pairs coincide
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
        """Map rows (m, r) to (m, k): X Wᵀ."""
        check_is_fitted(self)
        return read_points(self, X, reset=False) @ self.components_.T

    def _check_parameters(self, width: int) -> int:
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        if k > width:
            raise ValueError(
                f"n_components={k} but X has {width} features; pass n_components <= {width}."
            )
        if self.rank is not None:
            check_number(self.rank, "rank", low=k, integer=True)
        check_number(self.n_init, "n_init", low=1, integer=True)
        check_number(self.max_iter, "max_iter", low=1, integer=True)
        check_number(self.validation_fraction, "validation_fraction", low=0, high=1, open_high=True)
        return k


def _first_equal(points: Array) -> Array:
    """Return for each row the first one that counts as the same point."""
    same = np.arange(len(points))
    for shift in (0, 1 / 3, 2 / 3):  # near rows on two sides of one grid line share another cell
        first, inverse = distinct_rows(np.round(np.ldexp(points[same], EQUAL_BITS) + shift))
        same = same[first[inverse]]
    return same


def _oriented(W: Array, points: Array) -> Array:
    """Rotate the image to its principal axes; the largest weight of each is positive."""
    Y = points @ W.T
    Y -= Y.mean(axis=0)
    _, axes = np.linalg.eigh(Y.T @ Y)
    W = axes[:, ::-1].T @ W
    return W * column_signs(W.T)[:, None]
