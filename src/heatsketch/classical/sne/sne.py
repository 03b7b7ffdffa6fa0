"""Stochastic neighbour embedding with Gaussian neighbourhoods."""

from typing import Any

from scipy import sparse

from heatsketch._typing import Array
from heatsketch.classical.sne._base import Result, StochasticNeighborEmbedding, descend_exactly
from heatsketch.classical.sne.descent import Schedule
from heatsketch.classical.sne.objectives import Gaussian
from heatsketch.neighbors import Neighbors


class SNE(StochasticNeighborEmbedding):
    """Embed data so that each point keeps its neighbours, with Gaussian neighbourhoods: SNE.

    Stochastic neighbor embedding (Hinton and Roweis 2002; *Linear and nonlinear dimensionality
    reduction*, §8.1): p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), (13), σ_i from the perplexity (14), and
    q_{j|i} ∝ e^(-|y_i - y_j|²). It lowers C = Σ_i Σ_j p_{j|i} log(p_{j|i} / q_{j|i}), with gradient
    2 Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j), by the descent (20).

    When to use it: to compare with `TSNE`, or where points between two clusters should stay between
    them. When not: clusters are crowded together in the middle, which `TSNE` avoids. New points
    cannot be placed.

    Parameters
    ----------
    n_components : int >= 1, default 2
        Number of coordinates k.
    perplexity : float > 1, below n - 1, default 30
        2^H, H the entropy of p_{·|i} in bits: the effective number of neighbours of a point.
        Usually 5 to 50; smaller values show more clusters.
    n_iter : int >= 1, default 1000
        Steps of the descent, including the early phase.
    learning_rate : float > 0 or "auto", default "auto"
        η in (20). "auto": for each point 1 / (2 · exaggeration · Σ_j (p_{j|i} + p_{i|j})), two
        thirds of the rate from which attraction overshoots.
    early_exaggeration : float >= 1, default 4
        Factor of p in the early phase, which separates clusters; 1: none.
    early_compression : float >= 0, default 0
        λ: in the early phase λ Σ |y_i|² is added to C, which keeps points together while they find
        their order. Where needed, 0.1 to 1; the small initial places usually have the same effect.
    early_iter : int >= 0, below n_iter, default 250
        Steps of the early phase, in which the momentum α is 0.5; afterwards it is 0.8.
    init : "pca", "random" or array (n, k), default "pca"
        Initial places: principal components (for distances: classical scaling), scaled to a
        standard deviation of 1e-4; random places of this standard deviation; or given ones, which
        are used unchanged.
    metric : "euclidean", "cosine", "correlation" or "precomputed", default "euclidean"
        The distance of points, as in `HeatSketch`. With "precomputed", X holds distances (n, n).
    neighbors : None, NeighborIndex, KNeighborsTransformer or CSR (n, n), default None
        Search, or graph, that supplies the neighbours. With None or an index, up to 1,000 points
        all others are neighbours; otherwise the 3 · perplexity + 1 nearest are.
    random_state : int, RandomState, Generator or None, default None
        Seed of ``init="random"``, and of coordinates in which principal components do not vary.

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
        Among others "setbacks": how often 50 steps were undone because C had risen.
    n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range.

    Warns
    -----
    ConvergenceWarning
        The steps after the early phase did not lower C: the learning rate is too large.
    ScaleWarning
        More points than the perplexity are equally near to one point: they share its p equally.

    Notes
    -----
    Cost: that of the neighbours, and n² (4 k + 20) operations per step; memory O(n · perplexity).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import SNE
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
    ) -> Result:
        self.affinities_ = graph
        return descend_exactly(Gaussian(graph), Y, schedule)
