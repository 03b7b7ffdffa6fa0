"""What SNE and t-SNE share: probabilities that points are neighbours, and initial places."""

import math
import warnings
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from heatsketch._checks import ScaleWarning, check_choice, check_finite, check_number, name_rows
from heatsketch._random import seed_entropy
from heatsketch._tiles import filled, for_each_tile
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding
from heatsketch.classical.classical_mds import ClassicalMDS
from heatsketch.classical.pca import PCA
from heatsketch.neighbors import NeighborIndex, Neighbors, ordered_search

_MAX_COMPLETE_POINTS = 1000  # up to here every other point is a neighbour
_INITIAL_DEVIATION = 1e-4  # so small that clusters can pass through each other
_MIN_DEVIATION_RATIO = 1e-6  # to the largest one; principal components below it are rounding
_LOG_BETAS = (math.log(1e-215), math.log(800.0))  # see `_solve_entropy`
_MAX_LENGTH_RATIO = 1e100  # beyond, a point has no weight unless all other points coincide
_MAX_EXPONENT = 745.0  # e^-x is 0 for larger x
_ENTROPY_TOLERANCE = 1e-12


class NeighborProbabilities(Embedding):
    """Abstract base: probabilities of the data, and a descent that subclasses choose."""

    n_components: int
    perplexity: float
    init: Any
    neighbors: Any
    random_state: Any

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return bool(self.metric != "precomputed")

    @abstractmethod
    def _check_options(self, n: int) -> None:
        """Raise where an option of the descent cannot be, before anything is computed."""

    @abstractmethod
    def _descend(self, X: Any, near: Neighbors, p: Array, Y: Array) -> Array:
        """Return places (n, k) from the start Y, and set the attributes of the descent."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, array, DataFrame or sparse matrix (n, d), or distances (n, n).

        Raises
        ------
        ValueError, TypeError
            Bad points or parameters; the class says which.
        """
        X = self._read_either(X, reset=True)
        n = X.shape[0]
        perplexity = check_number(self.perplexity, "perplexity", low=1, open_low=True)
        k = check_number(self.n_components, "n_components", low=1, integer=True)
        if perplexity >= n - 1:
            remedy = f"pass perplexity < {n - 1}" if n > 3 else "pass more points"
            raise ValueError(f"perplexity={perplexity:g} but X has {n} samples; {remedy}.")
        self._check_options(n)
        init = _check_init(self.init, n, k)
        near, exponent, self.diagnostics_ = self._find_neighbors(X, perplexity)
        p, sigma = conditional(near.distances, perplexity)
        self.sigmas_ = np.ldexp(sigma, exponent)
        Y = self._initial_places(X, k) if isinstance(init, str) else init
        places = self._descend(X, near, p, Y.astype(X.dtype))
        self.embedding_ = np.ascontiguousarray(places, dtype=X.dtype)
        self.diagnostics_["neighbors"] = near.indices.shape[1]
        return self

    def _find_neighbors(self, X: Any, perplexity: float) -> tuple[Neighbors, int, dict[str, Any]]:
        """Return the neighbours of all points, the exponent of the unit of their distances."""
        n = X.shape[0]
        if self._precomputed and self.neighbors is not None:
            raise ValueError(
                "neighbors are given but metric='precomputed', so that X holds all distances; pass "
                "neighbors=None."
            )
        complete = self.neighbors is None or isinstance(self.neighbors, NeighborIndex)
        self._count = n - 1
        if not complete or n > _MAX_COMPLETE_POINTS:
            self._count = min(n - 1, int(3 * perplexity + 1))
        if self._precomputed:
            D = np.array(X, dtype=float)
            np.fill_diagonal(D, -1.0)  # sorts first
            return _without_self(_nearest(D, self._count + 1)), 0, {}
        self._search, frame, self._rows, place = ordered_search(self.neighbors, X, join=False)
        found = self._search.of_points(self._count + 1)
        own = Neighbors(found.distances[place], self._rows[found.indices[place]])
        recall = self._search.diagnostics(self._count + 1)
        return _without_self(own), frame.exponent, recall

    def _neighbors_of(self, X: Any) -> Neighbors:
        """Return the neighbours of new points among the training points."""
        if self._precomputed:
            return _nearest(np.asarray(X, dtype=float), self._count)
        found = self._search.query(X, self._count)
        return Neighbors(found.distances, self._rows[found.indices])

    def _initial_places(self, X: Any, k: int) -> Array:
        """Return principal components of standard deviation 1e-4, or random places (n, k).

        Coordinates in which the points do not differ are random, because no gradient would move
        them.
        """
        n, seed = X.shape[0], seed_entropy(self.random_state)
        places = np.random.default_rng(seed).normal(scale=_INITIAL_DEVIATION, size=(n, k))
        if self.init == "random":
            return places
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing dimensions are replaced by random ones
            if self._precomputed:
                axes = ClassicalMDS(k, metric="precomputed").fit(X).embedding_
            else:
                axes = PCA(min(k, *X.shape), random_state=seed[0]).fit(X).embedding_
        deviation = axes.std(axis=0, dtype=float)
        varies = np.flatnonzero(deviation > _MIN_DEVIATION_RATIO * deviation.max(initial=0.0))
        if len(varies):
            places[:, varies] = axes[:, varies] * (_INITIAL_DEVIATION / deviation.max())
        return places


class Conditional(NamedTuple):
    """The conditional probabilities (13) of points, over their neighbours."""

    p: Array  # (m, l), p_{j|i}; rows sum to 1
    sigma: Array  # (m,), σ_i, in the units of the distances


def conditional(distances: Array, perplexity: float) -> Conditional:
    """Compute p_{j|i} = e^(-d_ij² / 2σ_i²) / Σ_k e^(-d_ik² / 2σ_i²), (13), of a perplexity (14).

    Distances to the neighbours (m, l) ascend in every row; the perplexity is above 1 and below l.
    σ_i gives the entropy to twelve digits, on any scale of the distances. Where more neighbours
    than the perplexity are nearest at the same distance, no σ_i has this perplexity; then these
    neighbours share the probability, which is the limit σ_i → 0, with a warning.
    """
    p, sigma = np.empty(distances.shape), np.zeros(len(distances))
    nearest = distances == distances[:, :1]
    ties = nearest.sum(axis=1)

    def work(rows: slice) -> None:
        crowded = ties[rows] >= perplexity
        p[rows] = nearest[rows] / ties[rows, None]
        p[rows][~crowded], sigma[rows][~crowded] = _solve_entropy(
            distances[rows][~crowded], perplexity
        )

    for_each_tile(work, len(distances))
    crowded = np.flatnonzero(ties > perplexity)
    if len(crowded):
        warnings.warn(
            f"{len(crowded)} point(s) (rows {name_rows(crowded)}) have more nearest neighbours at "
            f"one distance (up to {ties.max()}) than perplexity={perplexity:g}, which no bandwidth "
            "gives; these neighbours get equal weights. Remove copies, or raise perplexity.",
            ScaleWarning,
            stacklevel=4,
        )
    return Conditional(p, sigma)


def _solve_entropy(d: Array, perplexity: float) -> tuple[Array, Array]:
    """Return p (m, l) of the perplexity, and σ (m,), by Newton's method in log β, β = 1/2σ².

    The smallest square is subtracted from all, and the rest divided so that that of neighbour
    ⌈perplexity⌉ is 1: then β cannot exceed 800, because fewer points would have a weight, nor be so
    small that all weights are equal. A step that leaves the bracket is replaced by bisection.
    dH / d log β = -Var(β u).
    """
    least, k = d[:, :1], math.ceil(perplexity)
    gap, total = d[:, k - 1 : k] - least, d[:, k - 1 : k] + least
    with np.errstate(over="ignore"):
        u = np.minimum((d - least) / gap, _MAX_LENGTH_RATIO)
        u *= np.minimum((d + least) / total, _MAX_LENGTH_RATIO)
    t = np.zeros(len(d))  # log β
    low, high = (np.full(len(d), end) for end in _LOG_BETAS)
    for _ in range(200):
        v = np.minimum(np.exp(t)[:, None] * u, _MAX_EXPONENT)
        p = np.exp(-v)
        sums = p.sum(axis=1)
        mean = (v * p).sum(axis=1) / sums
        excess = np.log(sums) + mean - math.log(perplexity)
        off = np.abs(excess) > _ENTROPY_TOLERANCE
        if not off.any():
            break
        low, high = np.where(excess > 0, t, low), np.where(excess > 0, high, t)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = t + excess / ((v * v * p).sum(axis=1) / sums - mean**2)
        inside = (low < newton) & (newton < high)
        t = np.where(off, np.where(inside, newton, (low + high) / 2), t)
    sigma = np.sqrt(gap[:, 0]) * np.sqrt(total[:, 0]) / np.sqrt(2 * np.exp(t))
    return p / sums[:, None], sigma


def conditional_graph(p: Array, indices: Array) -> sparse.csr_matrix:
    """Return the conditional probabilities of n points as CSR (n, n)."""
    n, width = p.shape
    starts = np.arange(0, n * width + 1, width)
    graph = sparse.csr_matrix((p.ravel(), indices.ravel(), starts), shape=(n, n))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def joint(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return p_ij = (p_{i|j} + p_{j|i}) / 2n, (15), CSR (n, n): symmetric, of sum 1."""
    P = sparse.csr_matrix(graph + graph.T)
    P.data /= 2 * graph.shape[0]
    P.eliminate_zeros()  # the smallest numbers may have underflowed
    P.sort_indices()
    return P


def _nearest(D: Array, count: int) -> Neighbors:
    """Return the nearest columns of each row of distances (m, n), nearest first."""
    shape = (len(D), count)
    indices = filled(
        lambda rows: np.argsort(D[rows], axis=1, kind="stable")[:, :count], shape
    ).astype(np.int64)
    return Neighbors(np.take_along_axis(D, indices, axis=1), indices)


def _without_self(found: Neighbors) -> Neighbors:
    """Remove each point from its own neighbours; the last one where copies have displaced it."""
    n, width = found.indices.shape
    own = found.indices == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (n, width - 1)
    return Neighbors(found.distances[~own].reshape(shape), found.indices[~own].reshape(shape))


def _check_init(init: Any, n: int, k: int) -> Any:
    """Return `init`, a name or places (n, k) as float64, or raise."""
    if isinstance(init, str):
        return check_choice(init, "init", ("pca", "random"))
    places = np.asarray(init, dtype=np.float64)
    if places.shape != (n, k):
        raise ValueError(
            f"init has shape {places.shape}, but X has {n} points and n_components={k}; pass "
            f"({n}, {k})."
        )
    check_finite(places, "init")
    return places
