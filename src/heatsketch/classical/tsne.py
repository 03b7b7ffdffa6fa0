"""t-SNE: stochastic neighbour embedding with heavy-tailed neighbourhoods in the embedding."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import check_choice, check_number
from heatsketch._tiles import filled
from heatsketch._typing import Array
from heatsketch.classical._neighbor_probabilities import (
    NeighborProbabilities,
    conditional,
    conditional_graph,
    joint,
)
from heatsketch.neighbors import Neighbors

METHODS = ("auto", "exact", "barnes-hut", "fft")

_EARLY_STEPS, _EARLY_MOMENTUM, _LATE_MOMENTUM = 250, 0.5, 0.8  # those of scikit-learn
_MOST_COMPONENTS = {"barnes-hut": 3, "fft": 2}
_TILE_POINTS = 64  # new points that are placed in one unit of work
_MIN_STEP_LENGTH = 1e-7  # a new point whose step is shorter has arrived
_MAX_TRIAL_STEPS = 300  # for a new point


class TSNE(NeighborProbabilities):
    """Embed data so that neighbours stay neighbours and clusters separate: t-SNE.

    *Linear and nonlinear dimensionality reduction*, §8 (van der Maaten and Hinton 2008). With
    p_ij = (p_{j|i} + p_{i|j}) / 2n, (15), p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), (13), σ_i from the
    perplexity (14), and q_ij ∝ (1 + |y_i - y_j|²)⁻¹, (17), it lowers
    C = Σ_ij p_ij log(p_ij / q_ij), (18), whose gradient by y_i is
    4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), (19), by the descent of scikit-learn or
    openTSNE: (20), whose printed sign of η is wrong.

    When to use it: to see clusters in the plane. When not: where sizes of clusters, or distances
    between them, are to be read from the picture, or where the data form a continuum, which may be
    torn; see `HeatSketch` and `DiffusionMap` for distances with a meaning.

    Parameters
    ----------
    n_components, perplexity
        As in `SNE`.
    n_iter : int >= 250, default 1000
        Steps of the descent, of which 250 are the early phase.
    learning_rate : float > 0 or "auto", default "auto"
        η in (20). "auto": n / (4 · exaggeration), at least 50 (Belkina et al. 2019).
    early_exaggeration : float >= 1, default 12
        Factor of p in the early phase, so that clusters are tight and can pass each other. The
        notes have 4, for 50 steps.
    init, metric, neighbors, random_state
        As in `SNE`.
    method : "auto", "exact", "barnes-hut" or "fft", default "auto"
        "barnes-hut": scikit-learn's TSNE on our neighbours, for n_components <= 3; forces of far
        points are approximate, and results are equal only with an equal number of threads. "exact":
        scikit-learn's TSNE with forces between all pairs, for some thousand points. Both solve the
        perplexity themselves, to 1e-5. "fft": openTSNE on our p_ij (``pip install openTSNE``), for
        n_components <= 2; the fastest for many points. "auto": "barnes-hut" where it can, else
        "exact".

    Attributes
    ----------
    embedding_ : array (n, k)
    kl_divergence_ : float
        C, in nats; approximate unless the method is "exact".
    affinities_ : CSR (n, n)
        p_ij: symmetric, of sum 1.
    sigmas_, n_iter_, diagnostics_, n_features_in_, feature_names_in_
        As in `SNE`.

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range or not available with
        `method`.
    ImportError
        ``method="fft"`` without openTSNE.

    Warns
    -----
    ScaleWarning
        As in `SNE`.

    Notes
    -----
    Cost: that of the neighbours, and n log n operations per step; "exact": n² operations and
    16 n² bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import TSNE
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> tsne = TSNE(perplexity=10).fit(X[:50])
    >>> tsne.embedding_.shape, tsne.transform(X[50:]).shape
    ((50, 2), (10, 2))
    """

    def __init__(
        self,
        n_components: int = 2,
        perplexity: float = 30.0,
        *,
        n_iter: int = 1000,
        learning_rate: float | str = "auto",
        early_exaggeration: float = 12.0,
        init: Any = "pca",
        method: str = "auto",
        metric: str = "euclidean",
        neighbors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_iter = n_iter
        self.learning_rate = learning_rate
        self.early_exaggeration = early_exaggeration
        self.init = init
        self.method = method
        self.metric = metric
        self.neighbors = neighbors
        self.random_state = random_state

    def transform(self, X: Any) -> Array:
        """Place each new point on its own among the training points, which stay where they are.

        A point starts at the mean of its neighbours' places, weighted by its p (13) of the same
        perplexity, and descends Σ_j p_j log(p_j / q_j), q_j ∝ (1 + |y - y_j|²)⁻¹ over all training
        points. Training points are placed near, but not exactly at, their places in `embedding_`,
        because there they are also attracted as neighbours of other points.

        X holds points (m, d), or with ``metric="precomputed"`` their distances (m, n) to the
        training points. Cost: some 30 steps of n (5 k + 3) operations per point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = self._read_either(X, reset=False)
        near = self._neighbors_of(X)
        p = conditional(near.distances, float(self.perplexity)).p
        Y = np.asarray(self.embedding_, dtype=float)
        places = filled(
            lambda rows: _placed(Y, near.indices[rows], p[rows]),
            (len(p), Y.shape[1]),
            _TILE_POINTS,
        )
        return places.astype(X.dtype)

    def _check_options(self, n: int) -> None:
        check_number(self.n_iter, "n_iter", low=_EARLY_STEPS, integer=True)
        check_number(self.early_exaggeration, "early_exaggeration", low=1)
        check_number(self.learning_rate, "learning_rate", low=0, open_low=True, rules=("auto",))
        method = check_choice(self.method, "method", METHODS)
        if method == "auto":
            most = _MOST_COMPONENTS["barnes-hut"]
            method = "barnes-hut" if self.n_components <= most else "exact"
        most = _MOST_COMPONENTS.get(method, self.n_components)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} but method={method!r} allows at most {most}; "
                "pass method='exact'."
            )
        if method == "fft" and find_spec("openTSNE") is None:
            raise ImportError(
                "method='fft' needs openTSNE: pip install openTSNE; or pass method='barnes-hut'."
            )
        self._method = method

    def _descend(self, X: Any, near: Neighbors, p: Array, Y: Array) -> Array:
        self.affinities_ = joint(conditional_graph(p, near.indices))
        if self._method == "fft":
            return self._interpolated(Y)
        return self._by_sklearn(_all_distances(X, self._precomputed, near, self._method), Y)

    def _by_sklearn(self, distances: Any, Y: Array) -> Array:
        """Descend by scikit-learn, from distances (n, n): dense, or CSR of the neighbours."""
        from sklearn import manifold

        model = manifold.TSNE(
            Y.shape[1],
            method="exact" if self._method == "exact" else "barnes_hut",
            perplexity=float(self.perplexity),
            early_exaggeration=self.early_exaggeration,
            learning_rate=self.learning_rate,
            max_iter=self.n_iter,
            metric="precomputed",
            init=Y.astype(np.float32),
            random_state=0,  # nothing is drawn: the initial places are given
        )
        model.set_output(transform="default").fit(distances)
        self.kl_divergence_, self.n_iter_ = float(model.kl_divergence_), int(model.n_iter_) + 1
        self.diagnostics_["kl_divergence"] = self.kl_divergence_
        return model.embedding_

    def _interpolated(self, Y: Array) -> Array:
        """Descend by openTSNE: forces by FFT on a grid."""
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PrecomputedAffinities

        # A copy, because it is scaled in place when exaggerated.
        affinities = PrecomputedAffinities(self.affinities_.copy(), normalize=False)
        places = TSNEEmbedding(Y.astype(float), affinities, negative_gradient_method="fft")
        # openTSNE leaves out the factor 4 of (19).
        rate = self.learning_rate if self.learning_rate == "auto" else 4 * self.learning_rate
        for steps, exaggeration, momentum in (
            (_EARLY_STEPS, self.early_exaggeration, _EARLY_MOMENTUM),
            (self.n_iter - _EARLY_STEPS, 1.0, _LATE_MOMENTUM),
        ):
            places = places.optimize(
                n_iter=steps, exaggeration=exaggeration, momentum=momentum, learning_rate=rate
            )
        self.kl_divergence_, self.n_iter_ = float(places.kl_divergence), self.n_iter
        self.diagnostics_["kl_divergence"] = self.kl_divergence_
        return np.asarray(places)


def _all_distances(X: Any, precomputed: bool, near: Neighbors, method: str) -> Any:
    """Return what scikit-learn takes: all distances, or CSR with each point before its own."""
    if method == "exact":
        points = X.toarray() if sparse.issparse(X) else X
        return X if precomputed else cdist(points, points)
    n, width = near.indices.shape
    indices = np.hstack([np.arange(n)[:, None], near.indices])
    distances = np.hstack([np.zeros((n, 1)), near.distances])
    starts = np.arange(0, n * (width + 1) + 1, width + 1)
    return sparse.csr_matrix((distances.ravel(), indices.ravel(), starts), shape=(n, n))


def _placed(Y: Array, columns: Array, p: Array) -> Array:
    """Return places (m, k) of new points among the points Y (n, k), which stay where they are.

    Each starts at the mean of its neighbours' places, weighted by p (m, l), and descends the
    gradient of Σ_j p_j log(p_j / q_j), q over all n points. The step size is doubled while the
    divergence falls sufficiently (Armijo's rule), and halved otherwise.
    """
    Z = np.einsum("ml,mlk->mk", p, Y[columns])
    step = np.ones(len(Z))
    cost, gradient = _divergence(Y, columns, p, Z)
    for _ in range(_MAX_TRIAL_STEPS):
        slope = np.square(gradient).sum(axis=1)
        moving = np.flatnonzero(step * np.sqrt(slope) > _MIN_STEP_LENGTH)
        if not len(moving):
            break
        trial = Z[moving] - step[moving, None] * gradient[moving]
        reached, there = _divergence(Y, columns[moving], p[moving], trial)
        lower = reached <= cost[moving] - 0.25 * step[moving] * slope[moving]
        step[moving] *= np.where(lower, 2.0, 0.5)
        moved = moving[lower]
        Z[moved], cost[moved], gradient[moved] = trial[lower], reached[lower], there[lower]
    return Z


def _divergence(Y: Array, columns: Array, p: Array, Z: Array) -> tuple[Array, Array]:
    """Return -Σ p_j log q_j of places Z (m, k), and its gradient 2 Σ (p_j - q_j) w_j (z - y_j)."""
    w = 1 / (1 + cdist(Z, Y, "sqeuclidean"))
    total = w.sum(axis=1)
    w *= w
    # Sums row by row, so that no row changes the rounding of another.
    mean = np.stack([(w * y).sum(axis=1) for y in Y.T], axis=1)
    push = (w.sum(axis=1)[:, None] * Z - mean) / total[:, None]
    steps = Z[:, None] - Y[columns]
    squares = np.square(steps).sum(axis=2)
    pull = np.einsum("ml,mlk->mk", p / (1 + squares), steps)
    return np.log(total) + (p * np.log1p(squares)).sum(axis=1), 2 * (pull - push)
