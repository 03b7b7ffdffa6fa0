"""What SNE and t-SNE share: neighbours, probabilities, initial places and the descent."""

import time
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from heatsketch._array import seed_entropy
from heatsketch._checks import check_number, logger
from heatsketch._typing import Array
from heatsketch.classical._base import Embedding
from heatsketch.classical.sne.descent import Schedule, descend
from heatsketch.classical.sne.initial import check_init, initial_places
from heatsketch.classical.sne.near import Near, near_distances, near_points
from heatsketch.classical.sne.objectives import Objective
from heatsketch.classical.sne.perplexity import conditional, conditional_graph
from heatsketch.neighbors import Neighbors


class Result(NamedTuple):
    """What a descent returns."""

    places: Array  # (n, k)
    divergence: float
    n_iter: int
    diagnostics: dict[str, float]


class StochasticNeighborEmbedding(Embedding):
    """Abstract base: probabilities of the data, and a descent that subclasses choose."""

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return bool(self.metric != "precomputed")

    @abstractmethod
    def _descend(
        self, graph: sparse.csr_matrix, found: Neighbors, Y: Array, schedule: Schedule
    ) -> Result:
        """Return the result of the descent from the places Y (n, k), and set `affinities_`."""

    def _check_method(self, n: int, schedule: Schedule) -> None:
        """Raise where the method cannot do what is asked, before anything is computed."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points, array, DataFrame or sparse matrix (n, d), or distances (n, n).

        Raises
        ------
        ValueError, TypeError
            Bad points or parameters; the class says which.
        """
        started = time.perf_counter()
        X = self._read_either(X, reset=True)
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
        Y = initial_places(self._near, n, k, init, seed_entropy(self.random_state))
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
                "neighbors are given but metric='precomputed', so that X holds all distances; pass "
                "neighbors=None."
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
        rate = self.learning_rate
        rate = check_number(rate, "learning_rate", low=0, open_low=True, rules=("auto",))
        rate = None if rate == "auto" else rate
        return Schedule(n_iter, early, exaggeration, compression, rate)


def descend_exactly(objective: Objective, Y: Array, schedule: Schedule) -> Result:
    """Run our own descent, with forces between all pairs."""
    Yt, setbacks = descend(objective, np.ascontiguousarray(Y.T), schedule)
    divergence = sum(objective.terms(Yt)) + objective.constant
    return Result(Yt.T, divergence, schedule.n_iter, {"setbacks": setbacks})


def _check_size(perplexity: float, n: int) -> None:
    if perplexity < n - 1:
        return
    remedy = f"pass perplexity < {n - 1}" if n > 3 else "pass more points"
    raise ValueError(f"perplexity={perplexity:g} but X has {n} samples; {remedy}.")
