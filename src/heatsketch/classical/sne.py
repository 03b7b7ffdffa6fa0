"""Stochastic neighbour embedding with Gaussian neighbourhoods."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import ConvergenceWarning, check_number
from heatsketch._progress import report
from heatsketch._tiles import for_each_tile
from heatsketch._typing import Array
from heatsketch.classical._neighbor_probabilities import NeighborProbabilities, conditional_graph
from heatsketch.neighbors import Neighbors

_MIN_GAIN = 0.01
_CHECK_INTERVAL = 50  # steps after which the cost is compared with the lowest so far
_ALLOWED_RISE = 0.01  # nats per point that the cost may lie above the lowest
_FORCE_BLOCKS = 16  # blocks of points; each block needs an array of forces on all points


class SNE(NeighborProbabilities):
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
    metric : str or callable, default "euclidean"
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

    def _check_options(self, n: int) -> None:
        n_iter = check_number(self.n_iter, "n_iter", low=1, integer=True)
        early = check_number(self.early_iter, "early_iter", low=0, integer=True)
        if early >= n_iter:
            raise ValueError(
                f"early_iter={early} but n_iter={n_iter}, so that the descent would end in its "
                f"early phase; pass early_iter < {n_iter}, or a larger n_iter."
            )
        check_number(self.early_exaggeration, "early_exaggeration", low=1)
        check_number(self.early_compression, "early_compression", low=0)
        check_number(self.learning_rate, "learning_rate", low=0, open_low=True, rules=("auto",))

    def _descend(self, X: Any, near: Neighbors, p: Array, Y: Array) -> Array:
        self.affinities_ = conditional_graph(p, near.indices)
        divergence = Divergence(self.affinities_)
        phases = [  # steps, exaggeration, compression, momentum
            (self.early_iter, self.early_exaggeration, self.early_compression, 0.5),
            (self.n_iter - self.early_iter, 1.0, 0.0, 0.8),
        ]
        rate = None if isinstance(self.learning_rate, str) else self.learning_rate
        Yt, setbacks = descend(divergence, np.ascontiguousarray(Y.T, dtype=float), phases, rate)
        self.kl_divergence_, self.n_iter_ = divergence(Yt), self.n_iter
        self.diagnostics_ |= {"kl_divergence": self.kl_divergence_, "setbacks": setbacks}
        return Yt.T


class Divergence:
    """C = Σ_i Σ_j p_{j|i} log(p_{j|i} / q_{j|i}), q_{j|i} ∝ e^(-|y_i - y_j|²), of places Yt (k, n).

    `graph`, CSR (n, n), has the conditional probabilities p_{j|i}, in row i.
    """

    def __init__(self, graph: sparse.csr_matrix) -> None:
        self._p, (self._i, self._j) = graph.data, graph.nonzero()
        self._constant = float(np.sum(graph.data * np.log(graph.data)))
        self._symmetric = sparse.csr_matrix(graph + graph.T)
        self.degrees = np.asarray(self._symmetric.sum(axis=1)).ravel()

    def gradient(self, Yt: Array, exaggeration: float) -> Array:
        """Return 2 Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j), p exaggerated."""
        pull = self.degrees * Yt - (self._symmetric @ Yt.T).T
        return 2 * (exaggeration * pull - self._forces(Yt)[0])

    def terms(self, Yt: Array) -> tuple[float, float]:
        """Return Σ_ij p_{j|i} |y_i - y_j|², which exaggeration multiplies, and Σ_i log Z_i."""
        squares = np.square(Yt[:, self._i] - Yt[:, self._j]).sum(axis=0)
        return float(self._p @ squares), float(self._forces(Yt)[1].sum())

    def __call__(self, Yt: Array) -> float:
        """Return C in nats."""
        return sum(self.terms(Yt)) + self._constant

    def _forces(self, Yt: Array) -> tuple[Array, Array]:
        from heatsketch.classical._gaussian_forces import gaussian_forces  # compiled loops

        n = Yt.shape[1]
        tile = -(-n // _FORCE_BLOCKS)
        push, logs = np.zeros((-(-n // tile), *Yt.shape)), np.empty(n)

        def work(rows: slice) -> None:
            gaussian_forces(Yt, rows.start, rows.stop, push[rows.start // tile], logs)

        for_each_tile(work, n, tile)
        return push.sum(axis=0), logs


def descend(
    divergence: Divergence,
    Yt: Array,
    phases: list[tuple[int, float, float, float]],
    rate: float | None,
) -> tuple[Array, int]:
    """Return the places (k, n) after the steps Y ← Y - η g ∇C + α (Y - Y_before), and setbacks.

    Equation (20), with the sign of η corrected. A phase has a number of steps, a factor of p
    (exaggeration), λ (λ Σ |y_i|² is added to C) and the momentum α; it starts at rest. `rate` None:
    for each point η = 1 / d, d the stiffness of attraction and compression, twice which bounds
    their second derivative: less than 3 / 2d, from which a momentum of 0.5 overshoots. The gains g
    are those of Jacobs (1988): 0.2 is added where the last step went down the gradient, and they
    are multiplied by 0.8 where it went up. Large gains may overshoot, and the forces, which grow
    with distance, then diverge: where C has risen after 50 steps, these steps are undone and η is
    halved (a setback).
    """
    Yt, done, setbacks, lowered = Yt.copy(), 0, 0, True
    for steps, exaggeration, compression, momentum in phases:
        if not steps:
            continue

        def cost(Yt: Array, e: float = exaggeration, c: float = compression) -> float:
            attraction, repulsion = divergence.terms(Yt)
            return e * attraction + repulsion + (c * float(np.sum(Yt**2)) if c else 0.0)

        rates = 1 / (2 * exaggeration * divergence.degrees + compression) if rate is None else rate
        velocity, gains = np.zeros_like(Yt), np.ones_like(Yt)
        lowest, best, lowered = cost(Yt), Yt.copy(), False
        for step in range(1, steps + 1):
            with np.errstate(over="ignore", invalid="ignore"):  # such steps are undone
                gradient = divergence.gradient(Yt, exaggeration) + 2 * compression * Yt
                gains = np.where(gradient * velocity < 0, gains + 0.2, 0.8 * gains)
                gains = np.maximum(gains, _MIN_GAIN)
                velocity = momentum * velocity - rates * gains * gradient
                Yt = Yt + velocity
                Yt -= Yt.mean(axis=1, keepdims=True)
                done += 1
                if step % _CHECK_INTERVAL and step < steps:
                    continue
                reached = cost(Yt)
            report("descent", "step %d: cost %.4f", done, reached)
            if reached <= lowest + _ALLOWED_RISE * Yt.shape[1]:
                lowest, best, lowered = reached, Yt.copy(), True
            else:
                Yt, velocity, gains = best.copy(), np.zeros_like(Yt), np.ones_like(Yt)
                setbacks += 1
                rates = rates / 2
        Yt = best
    if not lowered:
        warnings.warn(
            "The steps of the descent after its early phase did not lower the divergence; pass a "
            "smaller learning_rate, or a larger n_iter.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Yt, setbacks
