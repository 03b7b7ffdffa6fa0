"""t-SNE: stochastic neighbour embedding with heavy-tailed neighbourhoods in the embedding."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import for_each_tile
from heatsketch._checks import check_choice
from heatsketch._typing import Array
from heatsketch.classical.sne._base import Result, StochasticNeighborEmbedding, descend_exactly
from heatsketch.classical.sne.descent import Schedule
from heatsketch.classical.sne.objectives import Student
from heatsketch.classical.sne.perplexity import conditional, joint
from heatsketch.neighbors import Neighbors

METHODS = ("auto", "exact", "barnes-hut", "fft")

_MAX_EXACT_POINTS = 20_000  # up to here "auto" sums over all pairs
_TILE_POINTS = 16  # new points that are placed in one unit of work


class TSNE(StochasticNeighborEmbedding):
    """Embed data so that neighbours stay neighbours and clusters separate: t-SNE.

    *Linear and nonlinear dimensionality reduction*, §8 (van der Maaten and Hinton 2008). With
    p_ij = (p_{j|i} + p_{i|j}) / 2n, (15), p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), (13), σ_i from the
    perplexity (14), and q_ij ∝ (1 + |y_i - y_j|²)⁻¹, (17), it lowers
    C = Σ_ij p_ij log(p_ij / q_ij), (18), whose gradient by y_i is
    4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), (19), by steps
    Y ← Y - η g ∇C + α (Y - Y_before): (20), whose printed sign of η is wrong.

    When to use it: to see clusters in the plane. When not: where sizes of clusters, or distances
    between them, are to be read from the picture, or where the data form a continuum, which may be
    torn; see `HeatSketch` and `DiffusionMap` for distances with a meaning.

    Parameters
    ----------
    n_components, perplexity, n_iter
        As in `SNE`.
    learning_rate : float > 0 or "auto", default "auto"
        η in (20). "auto": for each point 1 / (4 · exaggeration · Σ_j p_ij), two thirds of the rate
        from which attraction overshoots; on average about n / (4 · exaggeration) (Belkina et al.
        2019), the rate that "barnes-hut" and "fft" use.
    early_exaggeration : float >= 1, default 12
        Factor of p in the early phase, so that clusters are tight and can pass each other. The
        notes have 4, for 50 steps.
    early_compression : float >= 0, default 0
        λ: in the early phase λ / n · Σ |y_i|² is added to C; as in `SNE`.
    early_iter, init, metric, neighbors, random_state
        As in `SNE`.
    method : "auto", "exact", "barnes-hut" or "fft", default "auto"
        "exact": forces between all pairs. "barnes-hut": scikit-learn's TSNE on our neighbours, for
        n_components <= 2; it solves the perplexity itself, has a fixed early_iter=250, and gives
        equal results only with an equal number of threads. "fft": openTSNE on our p_ij (``pip
        install openTSNE``), for n_components <= 2. "auto": "exact" up to 20,000 points,
        "barnes-hut" for more.

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
    ConvergenceWarning, ScaleWarning
        As in `SNE`.

    Notes
    -----
    Cost: that of the neighbours, and n² (5 k + 3) operations per step, in the precision of X
    (float32 takes half the time); memory O(n · perplexity).

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
        early_compression: float = 0.0,
        early_iter: int = 250,
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
        self.early_compression = early_compression
        self.early_iter = early_iter
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
        from heatsketch.classical.sne.kernels import place  # compiled loops

        X = self._read_either(X, reset=False)
        found = self._near.of(X)
        p = conditional(found.distances, float(self.perplexity)).p
        Yt = np.ascontiguousarray(self.embedding_.T, dtype=np.float64)
        places = np.empty((len(p), len(Yt)))

        def work(rows: slice) -> None:
            place(Yt, found.indices[rows], p[rows], places[rows])

        for_each_tile(work, len(p), _TILE_POINTS)
        return places.astype(X.dtype)

    def _check_method(self, n: int, schedule: Schedule) -> None:
        method = check_choice(self.method, "method", METHODS)
        if method == "auto":
            method = "exact" if n <= _MAX_EXACT_POINTS else "barnes-hut"
        if method != "exact":
            from heatsketch.classical.sne.engines import check_engine

            check_engine(method, self.n_components, schedule)
        self._engine = method

    def _descend(
        self, graph: sparse.csr_matrix, found: Neighbors, Y: Array, schedule: Schedule
    ) -> Result:
        self.affinities_ = joint(graph)
        if self._engine == "exact":
            return descend_exactly(Student(self.affinities_), Y, schedule)
        from heatsketch.classical.sne.engines import barnes_hut, interpolated

        if self._engine == "barnes-hut":
            return Result(*barnes_hut(found, Y, float(self.perplexity), schedule), {})
        return Result(*interpolated(self.affinities_, Y, schedule), {})
