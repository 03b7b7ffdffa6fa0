"""SNE and t-SNE: perplexities, divergences, their descent, and the classes."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn import manifold

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number, check_points
from heatsketch._messages import ConvergenceWarning, logger, texts_from, warn
from heatsketch._random import seed_entropy
from heatsketch._threads import filled, for_each_tile, require_memory, sum_over_tiles
from heatsketch._words import optional
from heatsketch.classical._base import Embedding
from heatsketch.classical.mds import ClassicalMDS
from heatsketch.classical.pca import PCA
from heatsketch.layout.free import Neighbors as StudentNeighbors
from heatsketch.layout.free import Term
from heatsketch.neighbors import NeighborIndex, Neighbors, ordered_search
from heatsketch.neighbors.search import in_unit

_MIN_GAIN = 0.01
_CHECK_INTERVAL = 50  # steps after which the objective is compared with the lowest so far
_MAX_TRIAL_STEPS, _MIN_STEP_LENGTH = 300, 1e-7  # a single point stops at a shorter step


class Phase(NamedTuple):
    """Steps that lower one objective."""

    steps: int
    terms: Sequence[Term]  # the objective is their sum
    rates: Any  # η, a number or one for each point (n, 1)
    allowed_rise: float  # of the objective above the lowest value so far


def descend(
    Y: Array, phases: Sequence[Phase], momentum: Callable[[int], float]
) -> tuple[Array, int]:
    """Return the places (n, k) after Y ← Y - η g ∇C + α (Y - Y_before), and the setbacks.

    Equation (20), with the sign of η corrected; α is the momentum of step t = 0, 1, ..., and each
    phase starts at rest. The gains g are those of Jacobs (1988): 0.2 is added where the last step
    went down the gradient, and they are multiplied by 0.8 where it went up. Large gains may
    overshoot, and forces that grow with distance then diverge: where C has risen after 50 steps by
    more than is allowed, these steps are undone and η is halved (a setback).
    """
    setbacks, t = 0, 0
    for steps, terms, rates, allowed_rise in phases:
        velocity, gains = np.zeros_like(Y), np.ones_like(Y)
        lowest, best, lowered = _value(terms, Y), Y, False
        for step in range(1, steps + 1):
            with np.errstate(over="ignore", invalid="ignore"):  # such steps are undone
                gradient = reduce(add, (term.gradient(Y, 1.0) for term in terms))
                gains = np.where(gradient * velocity < 0, gains + 0.2, 0.8 * gains)
                gains = np.maximum(gains, _MIN_GAIN)
                velocity = momentum(t) * velocity - rates * gains * gradient
                Y = Y + velocity
                Y -= Y.mean(axis=0)
                t += 1
                finite = np.isfinite(Y).all()
                if finite and step % _CHECK_INTERVAL and step < steps:
                    continue
                reached = _value(terms, Y) if finite else np.inf
            logger.info("descent: step %d of the phase: cost %.4f", step, reached)
            if reached <= lowest + allowed_rise:
                lowest, best, lowered = reached, Y, True
            else:
                Y, velocity, gains = best, np.zeros_like(Y), np.ones_like(Y)
                setbacks += 1
                rates = rates / 2
        Y = best
    if not lowered:
        warn(
            ConvergenceWarning,
            "The steps of the descent after its early phase did not lower the divergence; pass "
            "a smaller learning_rate, or a larger n_iter.",
        )
    return Y, setbacks


def descend_each(cost: Callable[[Array, Array], tuple[Array, Array]], Z: Array) -> Array:
    """Descend from places Z (m, k), each point by itself, and return the last ones.

    `cost` returns the costs (c,) of some rows at places (c, k), and their gradients (c, k). The
    step size is doubled while the cost falls sufficiently (Armijo's rule), and halved otherwise.
    """
    step = np.ones(len(Z))
    value, gradient = cost(np.arange(len(Z)), Z)
    for _ in range(_MAX_TRIAL_STEPS):
        slope = np.square(gradient).sum(axis=1)
        moving = np.flatnonzero(step * np.sqrt(slope) > _MIN_STEP_LENGTH)
        if not len(moving):
            break
        trial = Z[moving] - step[moving, None] * gradient[moving]
        reached, there = cost(moving, trial)
        lower = reached <= value[moving] - 0.25 * step[moving] * slope[moving]
        step[moving] *= np.where(lower, 2.0, 0.5)
        moved = moving[lower]
        Z[moved], value[moved], gradient[moved] = trial[lower], reached[lower], there[lower]
    return Z


def _value(terms: Sequence[Term], Y: Array) -> float:
    return sum(term.value(Y, 1.0) for term in terms)


# Bandwidths: see `conditional`
_LOG_BETAS = (-400.0, math.log(800.0))
_MAX_ENTROPY_STEPS, _ENTROPY_TOLERANCE = 200, 1e-12
_NO_WEIGHT = 1e4  # e to minus this is 0


def conditional(distances: Array, perplexity: float) -> tuple[Array, Array]:
    """Return p_{j|i} = e^(-d_ij² / 2σ_i²) / Σ_k e^(-d_ik² / 2σ_i²), (13), and σ by perplexity (14).

    Distances to the neighbours (m, l) ascend in every row; the perplexity is above 1 and below l.
    Newton's method in log β, β = 1/2σ², where dH / d log β = -Var(β u), gives the entropy to twelve
    digits; a step that leaves the bracket is replaced by bisection. The smallest square is
    subtracted from all, and the rest divided so that that of neighbour ⌈perplexity⌉ is 1: then β
    cannot exceed 800, because fewer points would have a weight. Where more neighbours than the
    perplexity are nearest at the same distance, no σ_i has this perplexity; then these neighbours
    share the probability, which is the limit σ_i → 0.
    """
    p, sigma = np.empty(distances.shape), np.empty(len(distances))

    def work(rows: slice) -> None:
        d = distances[rows]
        u = (d - d[:, :1]) * (d + d[:, :1])
        gap = u[:, [math.ceil(perplexity) - 1]]  # 0 where the nearest share p, whatever β
        u = np.divide(u, gap, out=_NO_WEIGHT * (u > 0), where=gap > 0)
        t, low, high = (np.full(gap.shape, end) for end in (0.0, *_LOG_BETAS))
        for _ in range(_MAX_ENTROPY_STEPS):
            v = np.exp(t) * u
            q = np.exp(-v)
            sums = q.sum(axis=1, keepdims=True)
            q /= sums
            mean = (v * q).sum(axis=1, keepdims=True)
            excess = np.log(sums) + mean - math.log(perplexity)
            off = (np.abs(excess) > _ENTROPY_TOLERANCE) & (gap > 0)
            if not off.any():
                break
            low, high = np.where(excess > 0, t, low), np.where(excess > 0, high, t)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = t + excess / ((v * v * q).sum(axis=1, keepdims=True) - mean**2)
            inside = (low < newton) & (newton < high)
            t = np.where(off, np.where(inside, newton, (low + high) / 2), t)
        p[rows], sigma[rows] = q, np.sqrt(gap / (2 * np.exp(t)))[:, 0]

    for_each_tile(work, len(distances))
    return p, sigma


def nearest_columns(D: Array, count: int) -> Neighbors:
    """Return the nearest columns of each row of distances (m, n), nearest first."""
    indices = np.argsort(D, axis=1, kind="stable")[:, :count]
    return Neighbors(np.take_along_axis(D, indices, axis=1), indices)


_FORCE_TILE = 64  # points whose q are in the cache together


class GaussianNeighbors:
    """Σ_ij p_{j|i} log(p_{j|i} / q_{j|i}), the divergence of SNE; q_{j|i} ∝ e^(-|y_i - y_j|² / s²).

    Parameters
    ----------
    P : CSR matrix (n, n)
        p_{j|i} in row i, without zeros.
    exaggeration : float, default 1
        Factor of p_{j|i}, but not of the one under the logarithm.
    """

    def __init__(self, P: sparse.csr_matrix, exaggeration: float = 1.0) -> None:
        # Σ_ij p_ij |y_i - y_j|² = tr(Yᵀ L Y)
        self._laplacian = exaggeration * laplacian(P + P.T)
        self._own = exaggeration * float(P.data @ np.log(P.data))
        self.stiffness = self._laplacian.diagonal()[:, None]  # twice it bounds the curvature

    def value(self, Y: Array, s: float) -> float:
        """Return the divergence."""
        U = Y / s
        attraction = float(np.sum(U * (self._laplacian @ U)))
        return attraction + float(gaussian_forces(U)[1].sum()) + self._own

    def gradient(self, Y: Array, s: float) -> Array:
        """Return 2 / s² Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j)."""
        U = Y / s
        return 2 / s * (self._laplacian @ U - gaussian_forces(U)[0])


class Compression:
    """λ Σ |y_i|² / s²: the points stay together."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def value(self, Y: Array, s: float) -> float:
        """Return λ Σ |y_i|² / s²."""
        return self.weight * float(np.square(Y / s).sum())

    def gradient(self, Y: Array, s: float) -> Array:
        """Return 2 λ y_i / s²."""
        return 2 * self.weight / s**2 * Y


def gaussian_forces(Y: Array) -> tuple[Array, Array]:
    """Return Σ_j (q_{j|i} + q_{i|j}) (y_i - y_j), (n, k), and log Z_i = log Σ_j e^(-|y_i - y_j|²).

    Row i of q pushes y_i and every y_j. The term of the nearest point is 1, so that no Z is 0.
    """
    from heatsketch.core.loops import exp2  # imports numba

    n, logs = len(Y), np.empty(len(Y))
    nearest = np.square(cKDTree(Y).query(Y, 2)[0][:, 1:])
    one, squares = np.ones((n, 1)), np.square(Y).sum(axis=1, keepdims=True)
    left, right = np.hstack([2 * Y, nearest - squares, -one]), np.hstack([Y, one, squares]).T
    left, with_one = left / math.log(2), np.hstack([Y, one])

    @np.errstate(all="ignore")  # places that a step has thrown far off
    def work(rows: slice) -> Array:
        q = left[rows] @ right  # (|y_i - y_nearest|² - |y_i - y_j|²) / log 2
        q[np.arange(len(q)), np.arange(rows.start, rows.stop)] = -np.inf
        exp2(q)
        sums = q @ with_one
        Z = sums[:, -1:]
        logs[rows] = (np.log(Z) - nearest[rows])[:, 0]
        back = q.T @ (with_one[rows] / Z)
        push = back[:, -1:] * Y - back[:, :-1]
        push[rows] += Y[rows] - sums[:, :-1] / Z
        return push

    return sum_over_tiles(work, n, _FORCE_TILE), logs


def student_costs(Y: Array, near: Array, p: Array, Z: Array) -> tuple[Array, Array]:
    """Return -Σ p_j log q_j of places Z (m, k), and its gradient 2 Σ (p_j - q_j) w_j (z - y_j).

    `near` (m, l) are the neighbours in Y (n, k) with probabilities p (m, l); q is over all of Y.
    """
    w = 1 / (1 + cdist(Z, Y, "sqeuclidean"))
    total = w.sum(axis=1)
    w *= w
    # Sum row by row, so that no row changes the rounding of another.
    mean = np.stack([(w * y).sum(axis=1) for y in Y.T], axis=1)
    push = (w.sum(axis=1)[:, None] * Z - mean) / total[:, None]
    steps = Z[:, None] - Y[near]
    squares = np.square(steps).sum(axis=2)
    pull = np.einsum("ml,mlk->mk", p / (1 + squares), steps)
    return np.log(total) + (p * np.log1p(squares)).sum(axis=1), 2 * (pull - push)


_MAX_COMPLETE_POINTS = 1000  # up to here every other point is a neighbour
# Starts are so small that clusters can pass through each other
_PRINCIPAL_DEVIATION = 1e-4  # as in scikit-learn and openTSNE
_RANDOM_DEVIATION = 1e-2  # a variance of 1e-4, as in van der Maaten and Hinton
_MIN_DEVIATION_RATIO = 1e-6  # to the largest one; principal components below it are rounding
_ALLOWED_RISE = 0.01  # nats, for a sum of p of 1, that a cost may lie above the lowest
# t-SNE
_EARLY_STEPS = 250  # as in scikit-learn
_LEAST_RATE = 50.0
_PAIR_BYTES = 120  # of a pair, at most, in "exact"
_TILE_POINTS = 64  # new points that are placed in one unit of work


@dataclass(eq=False, repr=False)
class NeighborEmbedding(Embedding):
    """Abstract base: probabilities of the data, and a descent that subclasses choose."""

    n_components: int = 2
    perplexity: float = 30.0
    _: KW_ONLY
    n_iter: int = 1000
    learning_rate: float | str = "auto"
    early_exaggeration: float
    early_compression: float = 0.0
    early_iter: int = 250
    momentum_iter: int | None = None
    init: Any = "pca"
    metric: str = "euclidean"
    neighbors: Any = None
    random_state: Any = None

    _takes_sparse = True

    @abstractmethod
    def _descend(self, X: Any, near: Neighbors, P: sparse.csr_matrix, Y: Array) -> Array:
        """Return places (n, k) from the start Y, and set the attributes of the descent."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, or the distances between them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` X holds distances of shape (n_samples, n_samples).
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters, listed in the docstring of the class.
        """
        X = self._read_either(X, reset=True)
        n = X.shape[0]
        perplexity = check_number(self.perplexity, "perplexity", low=1, open_low=True)
        self._perplexity = float(perplexity)
        if perplexity >= n - 1:
            remedy = f"pass perplexity < {n - 1}" if n > 3 else "pass more points"
            raise ValueError(f"perplexity={perplexity:g} but X has {n} samples; {remedy}.")
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        check_number(self.early_exaggeration, "early_exaggeration", low=1)
        check_number(self.early_compression, "early_compression", low=0)
        check_number(self.early_iter, "early_iter", low=0, integer=True)
        if self.momentum_iter is not None:
            check_number(self.momentum_iter, "momentum_iter", low=0, integer=True)
        check_number(self.learning_rate, "learning_rate", low=0, open_low=True, rules=("auto",))
        Y = self._initial_places(X, k).astype(X.dtype)
        near, self.diagnostics_ = self._neighbors_of_points(X, perplexity)
        p, self.sigmas_ = conditional(near.distances, perplexity)
        P = Neighbors(p, near.indices).as_csr(n)
        P.eliminate_zeros()  # of the smallest numbers, which underflow
        P.sort_indices()
        self.embedding_ = np.ascontiguousarray(self._descend(X, near, P, Y), dtype=X.dtype)
        self.diagnostics_ |= {
            "kl_divergence": self.kl_divergence_,
            "neighbors": near.indices.shape[1],
        }
        return self

    def _takes_all_pairs(self, n: int) -> bool:
        """Say whether every other one of n points is a neighbour."""
        return n <= _MAX_COMPLETE_POINTS

    @property
    def _slow_steps(self) -> int:
        """Return the number of steps with the smaller momentum."""
        return self.early_iter if self.momentum_iter is None else self.momentum_iter

    def _by_momentum(self, Y: Array, early: Phase, late: Phase) -> Array:
        """Return the places (n, k) at the end of two phases, and set what is known of them.

        The early phase gets the compression.
        """
        if self.early_compression:
            early = early._replace(terms=[*early.terms, Compression(self.early_compression)])
        slow = self._slow_steps
        Y, setbacks = descend(Y.astype(float), [early, late], lambda t: 0.5 if t < slow else 0.8)
        self.kl_divergence_ = late.terms[0].value(Y, 1.0)
        self.n_iter_ = early.steps + late.steps
        self.diagnostics_["setbacks"] = setbacks
        return Y

    def _neighbors_of_points(self, X: Any, perplexity: float) -> tuple[Neighbors, dict[str, float]]:
        """Return the neighbours of all points, and the recall of their search."""
        n = X.shape[0]
        complete = isinstance(self.neighbors, NeighborIndex | None) and self._takes_all_pairs(n)
        self._count = n - 1 if complete else min(n - 1, int(3 * perplexity + 1))
        recall = {}
        if not self._precomputed:
            self._search, self._rows, place = ordered_search(self.neighbors, X, join=False)
            points = self._search.points
            if complete and isinstance(points, np.ndarray):  # there is nothing to search for
                ordered = nearest_columns(squareform(pdist(points)), n)
            else:
                ordered = self._search.query(None, self._count + 1)
                recall = self._search.diagnostics(self._count + 1)
            near = Neighbors(ordered.distances[place], self._rows[ordered.indices[place]])
        elif self.neighbors is None:
            D = np.array(X, dtype=float)
            np.fill_diagonal(D, -1.0)  # sorts first
            near = nearest_columns(D, self._count + 1)
        else:
            raise ValueError("metric='precomputed', so X holds all distances; pass neighbors=None.")
        return near.without_itself(), recall

    def _initial_places(self, X: Any, k: int) -> Array:
        """Return the given places, principal components, or random places (n, k).

        Constant coordinates are replaced by random ones, because no gradient would move them.
        """
        n = X.shape[0]
        if not isinstance(self.init, str):
            places = check_points(self.init, "init")
            if places.shape != (n, k):
                raise ValueError(f"init has shape {places.shape}; pass ({n}, {k}).")
            return places.astype(float)
        is_random = check_choice(self.init, "init", ("pca", "random")) == "random"
        seed = seed_entropy(self.random_state)
        scale = _RANDOM_DEVIATION if is_random else _PRINCIPAL_DEVIATION
        places = np.random.default_rng(seed).normal(scale=scale, size=(n, k))
        if is_random:
            return places
        # Missing dimensions are replaced by random ones.
        with warnings.catch_warnings(action="ignore"):
            if self._precomputed:
                axes = ClassicalMDS(k, metric="precomputed").fit(X).embedding_
            else:
                axes = PCA(min(k, *X.shape), random_state=seed[0]).fit(X).embedding_
        deviation = axes.std(axis=0, dtype=float)
        varies = np.flatnonzero(deviation > _MIN_DEVIATION_RATIO * deviation.max())
        if len(varies):
            places[:, varies] = axes[:, varies] * (scale / deviation.max())
        return places


@texts_from(Embedding)
@dataclass(eq=False, repr=False)
class SNE(NeighborEmbedding):
    """Embed data so that each point keeps its neighbours, with Gaussian neighbourhoods: SNE.

    Stochastic neighbor embedding [1]_ compares p_{j|i} ∝ e^(-|x_i - x_j|² / 2σ_i²), with σ_i from
    the perplexity, and q_{j|i} ∝ e^(-|y_i - y_j|²). It lowers C = Σ_i Σ_j p_{j|i} log(p_{j|i} /
    q_{j|i}), with gradient 2 Σ_j (p_{j|i} - q_{j|i} + p_{i|j} - q_{i|j}) (y_i - y_j), by the
    descent (20) of [2]_.

    When to use it: to compare with `TSNE`, or if points between two clusters should stay between
    them. When not: to separate clusters, because they are crowded together in the middle, which
    `TSNE` avoids. New points cannot be placed.

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of coordinates k.
    perplexity : float > 1, below n - 1, default=30
        2^H, H the entropy of p_{·|i} in bits: the effective number of neighbours of a point.
        Usually 5 to 50; smaller values show more clusters.
    n_iter : int >= 1, default=1000
        Steps of the descent, including the early phase.
    learning_rate : float or {"auto"}, default="auto"
        Step η in (20) of [2]_. "auto": for each point 1 / (2 · exaggeration · Σ_j (p_{j|i} +
        p_{i|j})), two thirds of the rate from which attraction overshoots.
    early_exaggeration : float >= 1, default=4
        Factor of p in the early phase, which separates clusters; 1: none.
    early_compression : float >= 0, default=0
        Weight λ: in the early phase λ Σ |y_i|² is added to C, which keeps points together while
        they find their order. If needed, choose 0.1 to 1; the small initial places usually have the
        same effect.
    early_iter : int >= 0, default=250
        Steps of the early phase.
    momentum_iter : int >= 0, default=None
        Steps in which the momentum α is 0.5; afterwards it is 0.8. None: the early phase.
    init : {"pca", "random"} or array-like of shape (n_samples, n_components), default="pca"
        Initial places: principal components (for distances: classical scaling), scaled to a
        standard deviation of 1e-4; random places of variance 1e-4 in each coordinate; or given
        ones, which are used unchanged.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds distances of shape (n_samples, n_samples).
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`. With None or an index, up to 1,000 points all others are neighbours;
        otherwise the 3 · perplexity + 1 nearest are.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of ``init="random"``, and of random coordinates that replace constant principal
        components.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates.
    kl_divergence_ : float
        C, in nats: a sum over the points.
    affinities_ : sparse CSR matrix of shape (n_samples, n_samples)
        p_{j|i}, in row i.
    sigmas_ : ndarray of shape (n_samples,)
        σ_i, in data units.
    n_iter_ : int
        Number of steps.
    diagnostics_ : dict
        Among others "setbacks": the number of times that 50 steps were undone because C had risen.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range.

    Warns
    -----
    ConvergenceWarning
        The steps after the early phase did not lower C: the learning rate is too large, or `n_iter`
        is not above `early_iter`, so that there are no such steps.

    See Also
    --------
    classical.TSNE : Embed so that neighbours stay and clusters separate.
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.

    Notes
    -----
    The cost is the search for neighbours, and n² (4 k + 20) operations per step; memory is n² k / 8
    bytes.

    References
    ----------
    .. [1] G. E. Hinton and S. T. Roweis, "Stochastic neighbor embedding", NIPS 15 (2002).
    .. [2] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §8.1,
       equations (13), (14) and (20).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import SNE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> SNE(perplexity=10, n_iter=300).fit_transform(X).shape
    (50, 2)
    """

    early_exaggeration: float = 4.0

    def _descend(self, X: Any, near: Neighbors, P: sparse.csr_matrix, Y: Array) -> Array:
        """Return the places (n, k) after the descent.

        "auto": for each point η = 1 / d, d the stiffness of attraction and compression, twice which
        bounds their second derivative: less than 3 / 2d, from which a momentum of 0.5 overshoots.
        """
        n_iter = check_number(self.n_iter, "n_iter", low=1, integer=True)
        steps = min(n_iter, self.early_iter)
        self.affinities_ = P
        first, last = GaussianNeighbors(P, self.early_exaggeration), GaussianNeighbors(P)
        rates = self.learning_rate, self.learning_rate
        if self.learning_rate == "auto":
            stiffness = 2 * first.stiffness + self.early_compression
            rates = 1 / stiffness, 1 / (2 * last.stiffness)
        rise = _ALLOWED_RISE * len(Y)
        early_phase = Phase(steps, [first], rates[0], rise)
        return self._by_momentum(Y, early_phase, Phase(n_iter - steps, [last], rates[1], rise))


@texts_from(Embedding, SNE)
@dataclass(eq=False, repr=False)
class TSNE(NeighborEmbedding):
    """Embed data so that neighbours stay neighbours and clusters separate: t-SNE.

    The method [1]_ [2]_ compares p_ij = (p_{j|i} + p_{i|j}) / 2n, where p_{j|i} ∝ e^(-|x_i - x_j|²
    / 2σ_i²) with σ_i from the perplexity, and q_ij ∝ (1 + |y_i - y_j|²)⁻¹. It lowers C = Σ_ij p_ij
    log(p_ij / q_ij). The gradient by y_i is 4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²).
    The descent is (20) of [2]_, with the sign of η corrected.

    When to use it: to see clusters in the plane. When not: to read sizes of clusters, or distances
    between them, from the picture; for data that form a continuum, which may be torn. See
    `HeatSketch` and `DiffusionMap` for distances with a meaning.

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of coordinates k.
    perplexity : float > 1, below n - 1, default=30
        2^H, H the entropy of p_{·|i} in bits: the effective number of neighbours of a point.
        Usually 5 to 50; smaller values show more clusters.
    n_iter : int >= early_iter, default=1000
        Steps of the descent, including the early phase; at least one step follows it.
    learning_rate : float or {"auto"}, default="auto"
        Step η in (20) of [2]_. "auto": n / (4 · exaggeration), at least 50 [3]_.
    early_exaggeration : float >= 1, default=12
        Factor of p in the early phase, so that clusters are tight and can pass each other.
    early_compression : float >= 0, default=0
        Weight λ: in the early phase λ Σ |y_i|² is added to C, which keeps points together. For
        "exact" only.
    early_iter : int >= 0, default=250
        Steps of the early phase; 250 with "barnes-hut".
    momentum_iter : int >= 0, default=None
        Steps in which the momentum α is 0.5; afterwards it is 0.8. None: the early phase; nothing
        else with "barnes-hut".
    init : {"pca", "random"} or array-like of shape (n_samples, n_components), default="pca"
        As in `SNE`.
    metric : str or callable, default="euclidean"
        As in `Embedding`. "precomputed": X holds distances of shape (n_samples, n_samples).
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `Embedding`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of ``init="random"``, and of random coordinates that replace constant principal
        components.
    method : {"auto", "exact", "barnes-hut", "fft"}, default="auto"
        "barnes-hut": scikit-learn's TSNE on the 3 · perplexity + 1 nearest neighbours of each point
        (also up to 1,000 points, where `affinities_` has all pairs), for n_components <= 3; forces
        of far points are approximate, its perplexity is met to 1e-5, and results depend on the
        number of threads. "exact": p_ij and forces of all pairs, by the descent of `SNE`, for some
        thousand points. "fft": openTSNE on our p_ij (``pip install openTSNE``), for n_components <=
        2; the fastest for many points. "auto": "barnes-hut" if n_components <= 3, else "exact".

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates.
    kl_divergence_ : float
        C, in nats; an approximation unless the method is "exact".
    affinities_ : sparse CSR matrix of shape (n_samples, n_samples)
        p_ij: symmetric, of sum 1.
    sigmas_ : ndarray of shape (n_samples,)
        σ_i, in data units.
    n_iter_ : int
        Number of steps.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.
    diagnostics_ : dict
        `kl_divergence`; `neighbors`, their number for each point; the recall of their search.

    Raises
    ------
    ValueError
        X not finite, perplexity not below n - 1, an option out of range or not available with
        `method`.
    ImportError
        ``method="fft"`` without openTSNE.

    See Also
    --------
    classical.SNE : Embed so that points keep Gaussian neighbourhoods.
    initialization : Compute a start for UMAP, t-SNE or PaCMAP.
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    sklearn.manifold.TSNE : The t-SNE of scikit-learn.

    Notes
    -----
    The cost is the search for neighbours, and n log n operations per step; with "exact" it is n²
    operations and up to 120 n² bytes.

    t-SNE as printed in §8 of [2]_ is ``TSNE(method="exact", init="random", learning_rate=100,
    early_exaggeration=4, early_iter=50, momentum_iter=250)``; the λ of its early compression is not
    printed. After the early phase the points start from rest, on which (20) says nothing.

    References
    ----------
    .. [1] L. van der Maaten and G. E. Hinton, "Visualizing data using t-SNE", Journal of Machine
       Learning Research 9 (2008), 2579-2605.
    .. [2] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §8, equations
       (13)-(20).
    .. [3] A. C. Belkina et al., "Automated optimized parameters for t-distributed stochastic
       neighbor embedding improve visualization and analysis of large datasets", Nature
       Communications 10 (2019), 5415.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.classical import TSNE
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> tsne = TSNE(perplexity=10).fit(X[:50])
    >>> tsne.embedding_.shape, tsne.transform(X[50:]).shape
    ((50, 2), (10, 2))
    """

    early_exaggeration: float = 12.0
    method: str = "auto"

    def transform(self, X: Any) -> Array:
        """Place each new point by itself among the training points, which keep their places.

        A point starts at the mean of its neighbours' places, weighted by its p with the same
        perplexity, and descends on Σ_j p_j log(p_j / q_j), q_j ∝ (1 + |y - y_j|²)⁻¹ over all
        training points. Training points are placed near, but not exactly at, their places in
        `embedding_`, because there they are also attracted as neighbours of other points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new_samples, n_features)
            Points. With ``metric="precomputed"`` X holds the distances to the training points, of
            shape (n_new_samples, n_samples).

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.

        Notes
        -----
        The cost is some 30 steps of n (5 k + 3) operations per point.
        """
        X = self._read_either(X, reset=False)
        if self._precomputed:
            near = nearest_columns(np.asarray(X, dtype=float), self._count)
        else:
            ordered = self._search.query(X, self._count)
            near = Neighbors(ordered.distances, self._rows[ordered.indices])
        p, _ = conditional(near.distances, self._perplexity)
        Y = np.asarray(self.embedding_, dtype=float)

        def place(rows: slice) -> Array:
            own, j = p[rows], near.indices[rows]
            start = np.einsum("ml,mlk->mk", own, Y[j])
            return descend_each(lambda i, Z: student_costs(Y, j[i], own[i], Z), start)

        return filled(place, (len(p), Y.shape[1]), _TILE_POINTS).astype(X.dtype)

    def _descend(self, X: Any, near: Neighbors, P: sparse.csr_matrix, Y: Array) -> Array:
        check_number(self.n_iter, "n_iter", low=self.early_iter, integer=True)
        self.affinities_ = sparse.csr_matrix(P + P.T) / (2 * len(Y))
        self.affinities_.eliminate_zeros()  # underflow
        if self._chosen_method == "exact":
            return self._exactly(Y)
        if self._chosen_method == "fft":
            return self._by_opentsne(Y)
        return self._by_scikit_learn(near, Y)

    @property
    def _chosen_method(self) -> str:
        method = check_choice(self.method, "method", ("auto", "exact", "barnes-hut", "fft"))
        if method == "auto":
            method = "barnes-hut" if self.n_components <= 3 else "exact"
        return method

    def _takes_all_pairs(self, n: int) -> bool:
        if self._chosen_method != "exact":
            return super()._takes_all_pairs(n)
        what, instead = "The probabilities of all pairs", "pass method='barnes-hut'."
        require_memory(_PAIR_BYTES * n**2, what, instead)
        return True

    def _exactly(self, Y: Array) -> Array:
        first, last = (
            StudentNeighbors(factor * self.affinities_, 1.0, opening=0.0)
            for factor in (self.early_exaggeration, 1.0)
        )
        rate = self.learning_rate
        if rate == "auto":
            rate = max(len(Y) / (4 * self.early_exaggeration), _LEAST_RATE)
        rise, late = _ALLOWED_RISE, max(self.n_iter - self.early_iter, 1)
        early_phase = Phase(self.early_iter, [first], rate, rise * self.early_exaggeration)
        return self._by_momentum(Y, early_phase, Phase(late, [last], rate, rise))

    def _refuse(self, **only: int) -> None:
        """Raise if a parameter has another value than the one with which a library descends."""
        for name, value in only.items():
            if (given := getattr(self, name)) not in (None, value):
                raise ValueError(
                    f"{name}={given} but method={self._chosen_method!r} has {value}; pass "
                    "method='exact'."
                )

    def _by_scikit_learn(self, near: Neighbors, Y: Array) -> Array:
        self._refuse(early_iter=_EARLY_STEPS, momentum_iter=_EARLY_STEPS, early_compression=0)
        itself = np.arange(len(Y))[:, None]  # each point before its neighbours
        distances = np.hstack([0.0 * itself, in_unit(near.distances)])  # squared in float32
        model = manifold.TSNE(
            Y.shape[1],
            perplexity=float(self.perplexity),
            early_exaggeration=self.early_exaggeration,
            learning_rate=self.learning_rate,
            max_iter=max(self.n_iter, _EARLY_STEPS + 1),  # the early steps report no cost
            metric="precomputed",
            init=Y.astype(np.float32),
            random_state=0,  # not used, because the initial places are given
        )
        model.set_output(transform="default")
        model.fit(Neighbors(distances, np.hstack([itself, near.indices])).as_csr(len(Y)))
        self.kl_divergence_, self.n_iter_ = float(model.kl_divergence_), int(model.n_iter_) + 1
        return model.embedding_

    def _by_opentsne(self, Y: Array) -> Array:
        """Descend by openTSNE: forces by FFT on a grid."""
        self._refuse(early_compression=0)
        optional("openTSNE", 'method="fft" needs openTSNE', "tsne")
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PrecomputedAffinities

        # A copy, because it is scaled in place when exaggerated.
        affinities = PrecomputedAffinities(self.affinities_.copy(), normalize=False)
        # openTSNE leaves out the factor 4 of (19).
        rate = self.learning_rate if self.learning_rate == "auto" else 4 * self.learning_rate
        options = {"negative_gradient_method": "fft", "learning_rate": rate}
        places = TSNEEmbedding(Y.astype(float), affinities, **options)
        early, slow = self.early_iter, self._slow_steps
        for start, stop in pairwise(sorted({0, early, min(slow, self.n_iter), self.n_iter})):
            places = places.optimize(
                stop - start,
                exaggeration=self.early_exaggeration if start < early else None,
                momentum=0.5 if start < slow else 0.8,
            )
        self.kl_divergence_, self.n_iter_ = float(places.kl_divergence), self.n_iter
        return np.asarray(places)
