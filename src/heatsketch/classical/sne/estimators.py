"""SNE and t-SNE as estimators."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._array import for_each_tile, seed_entropy
from heatsketch._checks import check_choice, check_number
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding
from heatsketch.classical.sne.descent import Schedule, descend
from heatsketch.classical.sne.initial import check_init, first_places
from heatsketch.classical.sne.near import Near, near_distances, near_points
from heatsketch.classical.sne.objectives import Gaussian, Objective, Student
from heatsketch.classical.sne.perplexity import conditional, conditional_graph, joint
from heatsketch.neighbors import Neighbors

logger = logging.getLogger("heatsketch")

METHODS = ("auto", "exact", "barnes-hut", "fft")
_EXACT_POINTS = 20_000  # up to here "auto" sums over all pairs
_PLACE_TILE = 16  # new points that are one unit of work


class _Result(NamedTuple):
    places: Array  # (n, k)
    divergence: float
    n_iter: int
    diagnostics: dict[str, float]


class _NeighborEmbedding(Embedding):
    """Abstract base: probabilities of the data, a start, and a descent that subclasses choose."""

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return bool(self.metric != "precomputed")

    @abstractmethod
    def _descend(
        self, graph: sparse.csr_matrix, found: Neighbors, Y: Array, schedule: Schedule
    ) -> _Result:
        """Return the embedding that the descent from Y comes to, and set `affinities_`."""

    def _check_method(self, n: int, schedule: Schedule) -> None:
        """Raise where the descent cannot do what is asked, before anything is computed."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (n, d)
            Points; with ``metric="precomputed"`` their distances, array (n, n).
        y : ignored

        Returns
        -------
        self
        """
        started = time.perf_counter()
        X = self._read_any(X, reset=True)
        n, schedule = X.shape[0], self._schedule()
        perplexity = check_number(self.perplexity, "perplexity", low=1, open_low=True)
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        _check_size(perplexity, n)
        self._check_method(n, schedule)
        init = check_init(self.init, n, k)
        self._near = self._near_of(X, perplexity)
        found = self._near.own()
        logger.info("probabilities of %s points at perplexity %g", f"{n:,}", perplexity)
        p, sigma = conditional(found.distances, perplexity)
        graph = conditional_graph(p, found.indices)
        Y = first_places(self._near, n, k, init, seed_entropy(self.random_state))
        result = self._descend(graph, found, Y.astype(X.dtype), schedule)
        self.kl_divergence_, self.n_iter_ = result.divergence, result.n_iter
        self.sigmas_ = np.ldexp(sigma, self._near.exponent)
        self.embedding_ = np.ascontiguousarray(result.places, dtype=X.dtype)
        self.diagnostics_ = self._near.diagnostics | result.diagnostics
        self.diagnostics_ |= {
            "kl_divergence": self.kl_divergence_,
            "neighbors": found.indices.shape[1],
            "fit_seconds": time.perf_counter() - started,
        }
        return self

    def _near_of(self, X: Any, perplexity: float) -> Near:
        if not self._precomputed:
            return near_points(X, self.neighbors, perplexity)
        if self.neighbors is not None:
            raise ValueError(
                "neighbors and metric='precomputed', where X says who is near; pass neighbors=None."
            )
        return near_distances(X, perplexity)

    def _schedule(self) -> Schedule:
        n_iter = check_number(self.n_iter, "n_iter", low=1, integer=True)
        early = check_number(self.early_iter, "early_iter", low=0, integer=True)
        if early >= n_iter:
            raise ValueError(
                f"early_iter={early} but n_iter={n_iter}, so that the descent would end in its "
                f"early phase; pass early_iter < {n_iter}, or a larger n_iter."
            )
        exaggeration = check_number(self.early_exaggeration, "early_exaggeration", low=1)
        compression = check_number(self.early_compression, "early_compression", low=0)
        rate = None
        if not (isinstance(self.learning_rate, str) and self.learning_rate == "auto"):
            rate = check_number(self.learning_rate, "learning_rate", low=0, open_low=True)
        return Schedule(n_iter, early, exaggeration, compression, rate)

    def _read_any(self, X: Any, reset: bool) -> Any:
        if self._precomputed:
            return self._read_distances(X, reset)
        return self._read(X, reset, accept_sparse="csr")


class SNE(_NeighborEmbedding):
    """Embed data so that each point has the neighbours it had, with Gaussian neighbourhoods.

    Stochastic neighbor embedding (Hinton and Roweis 2002; *Linear and nonlinear dimensionality
    reduction*, §8.1): p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), (13), σ_i from the perplexity (14), and
    q_{j|i} ∝ e^(-|y_i - y_j|²). It lowers C = Σ_i Σ_j p_{j|i} log(p_{j|i} / q_{j|i}), with gradient
    2 Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j), by the descent (20).

    Use it to compare with `TSNE`, or where points between two clusters should stay between them.
    Clusters crowd in the middle, which `TSNE` cures. There is no rule for new points.

    Parameters
    ----------
    n_components : int >= 1, default 2
        Coordinates k.
    perplexity : float > 1, below n - 1, default 30
        2^H, H the entropy of p_{·|i} in bits: how many neighbours a point has, smoothly counted.
        Usually 5 to 50; fewer show more clusters.
    n_iter : int >= 1, default 1000
        Steps of the descent, the early ones included.
    learning_rate : float > 0 or "auto", default "auto"
        η in (20). "auto": for each point 1 / (2 · exaggeration · Σ_j (p_{j|i} + p_{i|j})), two
        thirds of what would make attraction overshoot.
    early_exaggeration : float >= 1, default 4
        What p is multiplied by in the early phase, so that clusters part; 1: nothing.
    early_compression : float >= 0, default 0
        λ: in the early phase λ Σ |y_i|² is added to C, which keeps points together while they sort
        themselves. About 0.1 to 1 if at all: starting all near the origin mostly does the same.
    early_iter : int >= 0, below n_iter, default 250
        Steps of the early phase, in which the momentum α is 0.5; it is 0.8 later.
    init : "pca", "random" or array (n, k), default "pca"
        Places at the start: principal components (of distances: classical scaling), scaled to a
        standard deviation of 1e-4; random ones of that; or given ones, which are taken as they are.
    metric : "euclidean" or "precomputed", default "euclidean"
        With "precomputed", X holds distances (n, n).
    neighbors : None, NeighborIndex, KNeighborsTransformer or CSR (n, n), default None
        Where neighbours come from. None or an index: up to 1,000 points all others are neighbours,
        beyond (and from all others) the 3 · perplexity + 1 nearest.
    random_state : int, RandomState, Generator or None, default None
        Of ``init="random"``, and of coordinates that principal components leave flat.

    Attributes
    ----------
    embedding_ : array (n, k)
    kl_divergence_ : float
        C, in nats: a sum over the points.
    affinities_ : CSR (n, n)
        p_{j|i}, in row i.
    sigmas_ : array (n,)
        σ_i, in data units.
    n_iter_ : int
    diagnostics_ : dict
        Among others "setbacks": how often 50 steps were taken back because C had risen.
    n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range.

    Warns
    -----
    ConvergenceWarning
        No steps lowered C: the learning rate is too large.
    ScaleWarning
        More points than the perplexity are equally near to one: these share its p equally.

    Notes
    -----
    Cost: the neighbours, and n² (4 k + 20) operations a step; memory O(n · perplexity).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical.sne import SNE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> SNE(perplexity=10, n_iter=300).fit_transform(X).shape
    (50, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        perplexity: float = 30.0,
        *,
        n_iter: int = 1000,
        learning_rate: float | str = "auto",
        early_exaggeration: float = 4.0,
        early_compression: float = 0.0,
        early_iter: int = 250,
        init: Any = "pca",
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
        self.metric = metric
        self.neighbors = neighbors
        self.random_state = random_state

    def _descend(
        self, graph: sparse.csr_matrix, found: Neighbors, Y: Array, schedule: Schedule
    ) -> _Result:
        self.affinities_ = graph
        return _exactly(Gaussian(graph), Y, schedule)


class TSNE(_NeighborEmbedding):
    """Embed data so that neighbours stay neighbours and clusters part: t-SNE.

    *Linear and nonlinear dimensionality reduction*, §8 (van der Maaten and Hinton 2008). With
    p_ij = (p_{j|i} + p_{i|j}) / 2n, (15), p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), (13), σ_i from the
    perplexity (14), and q_ij ∝ (1 + |y_i - y_j|²)⁻¹, (17), it lowers
    C = Σ_ij p_ij log(p_ij / q_ij), (18), whose gradient by y_i is
    4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), (19), by steps
    Y ← Y - η g ∇C + α (Y - Y_before): (20), where the sign of η is wrong in print.

    Use it to see clusters in the plane. Sizes of clusters and distances between them mean little,
    and a continuum may be torn: for distances that mean something see `HeatSketch`, `DiffusionMap`.

    Parameters
    ----------
    n_components, perplexity, n_iter
        As in `SNE`.
    learning_rate : float > 0 or "auto", default "auto"
        η in (20). "auto": for each point 1 / (4 · exaggeration · Σ_j p_ij), two thirds of what
        would make attraction overshoot; on average about n / (4 · exaggeration) (Belkina et al.
        2019), which is what the other methods take.
    early_exaggeration : float >= 1, default 12
        What p is multiplied by in the early phase, so that clusters are tight and pass by each
        other. The notes have 4, for 50 steps.
    early_compression : float >= 0, default 0
        λ: in the early phase λ / n · Σ |y_i|² is added to C, which keeps points together while they
        sort themselves. About 0.1 to 1 if at all: the small start mostly does the same.
    early_iter, init, metric, neighbors, random_state
        As in `SNE`.
    method : "auto", "exact", "barnes-hut" or "fft", default "auto"
        "exact": forces between all pairs. "barnes-hut": scikit-learn's TSNE on our neighbours, for
        n_components <= 2; it solves the perplexity itself, fixes early_iter=250, and equal results
        need an equal number of threads. "fft": openTSNE on our p_ij (``pip install openTSNE``), for
        n_components <= 2. "auto": "exact" up to 20,000 points, "barnes-hut" beyond.

    Attributes
    ----------
    embedding_ : array (n, k)
    kl_divergence_ : float
        C, in nats; approximate if the method is.
    affinities_ : CSR (n, n)
        p_ij: symmetric, of sum 1.
    sigmas_, n_iter_, diagnostics_, n_features_in_, feature_names_in_
        As in `SNE`.

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range or that `method` lacks.
    ImportError
        ``method="fft"`` without openTSNE.

    Warns
    -----
    ConvergenceWarning, ScaleWarning
        As in `SNE`.

    Notes
    -----
    Cost: the neighbours, and n² (5 k + 3) operations a step, in the precision of X (float32 takes
    half the time); memory O(n · perplexity).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical.sne import TSNE
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
        """Place new points among the training points, which stay where they are, each on its own.

        A point starts at the mean of its neighbours' places, weighted by its p (13) of the same
        perplexity, and descends Σ_j p_j log(p_j / q_j), q_j ∝ (1 + |y - y_j|²)⁻¹ over all training
        points. Training points come out near, but not exactly at, their places in `embedding_`:
        there they are also neighbours of others, here they are not.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix (m, d)
            Points; with ``metric="precomputed"`` their distances to the training points (m, n).

        Returns
        -------
        array (m, k)

        Notes
        -----
        Cost: some 30 steps of n (5 k + 3) operations a point.
        """
        check_is_fitted(self)
        from heatsketch.classical.sne.kernels import place  # compiled loops

        X = self._read_any(X, reset=False)
        found = self._near.of(X)
        p = conditional(found.distances, float(self.perplexity)).p
        Yt = np.ascontiguousarray(self.embedding_.T, dtype=np.float64)
        places = np.empty((len(p), len(Yt)))

        def work(rows: slice) -> None:
            place(Yt, found.indices[rows], p[rows], places[rows])

        for_each_tile(work, len(p), _PLACE_TILE)
        return places.astype(X.dtype)

    def _check_method(self, n: int, schedule: Schedule) -> None:
        method = check_choice(self.method, "method", METHODS)
        if method == "auto":
            method = "exact" if n <= _EXACT_POINTS else "barnes-hut"
        if method != "exact":
            from heatsketch.classical.sne.engines import check_engine

            check_engine(method, self.n_components, schedule)
        self._engine = method

    def _descend(
        self, graph: sparse.csr_matrix, found: Neighbors, Y: Array, schedule: Schedule
    ) -> _Result:
        self.affinities_ = joint(graph)
        if self._engine == "exact":
            return _exactly(Student(self.affinities_), Y, schedule)
        from heatsketch.classical.sne.engines import barnes_hut, interpolated

        if self._engine == "barnes-hut":
            found_by_tree = barnes_hut(found, Y, float(self.perplexity), schedule)
            return _Result(*found_by_tree, {})
        return _Result(*interpolated(self.affinities_, Y, schedule), {})


def _exactly(objective: Objective, Y: Array, schedule: Schedule) -> _Result:
    Yt, setbacks = descend(objective, np.ascontiguousarray(Y.T), schedule)
    divergence = sum(objective.parts(Yt)) + objective.constant
    return _Result(Yt.T, divergence, schedule.n_iter, {"setbacks": setbacks})


def _check_size(perplexity: float, n: int) -> None:
    if perplexity < n - 1:
        return
    do = f"pass perplexity < {n - 1}" if n > 3 else "pass more points"
    raise ValueError(f"perplexity={perplexity:g} but X has {n} samples; {do}.")
