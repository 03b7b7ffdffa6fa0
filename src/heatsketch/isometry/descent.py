"""Minimise the log-distortion of a linear map: starts, spare dimensions, growing β."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from heatsketch._typing import Array
from heatsketch.isometry.loss import LogDistortion

SEARCH_BETAS = (4, 16)  # smooth enough to descend from many starts
REFINEMENT_BETAS = (64, 256, 1024)  # for the best maps
_SPARE_WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0)  # of the variance in spare dimensions
_SQUEEZE_ITERATIONS = 25  # for each of them
_COLLAPSED_LOG_L = 20.0
_PERTURBATION = 0.01  # of a collapsed map, relative to its norm


@dataclass(eq=False)
class Problem:
    """A basis, pairs whose distances are to be kept, and a record of the descents.

    The map is Y = Z Q. Z are the points in some basis, Z · weights on their original scale.
    """

    Z: Array  # (n, R)
    weights: Array  # (R,), decreasing
    loss: LogDistortion
    history: list[dict[str, Any]] = field(default_factory=list)

    def embedding(self, Q: Array) -> Array:
        """Return Yt (k, n)."""
        return np.ascontiguousarray((self.Z @ Q).T)

    def log_L(self, Q: Array) -> float:
        """Return log L over the pairs."""
        return self.loss.log_L(self.embedding(Q))

    def value(self, Q: Array, beta: int) -> float:
        """Return J_β over the pairs."""
        return self.loss(self.embedding(Q), beta)[0]

    def descend(
        self, Q: Array, beta: int, max_iter: int, kept: int | None = None, weight: float = 0.0
    ) -> Array:
        """Minimise J_β + weight · (share of variance in columns `kept`, ...), from Q (R, k)."""

        def objective(q: Array) -> tuple[float, Array]:
            Yt = self.embedding(q.reshape(Q.shape))
            value, slope = self.loss(Yt, beta)
            if weight:
                share, share_slope = _spare_share(Yt, kept)
                value, slope = value + weight * share, slope + weight * share_slope
            return value, (slope @ self.Z).T.ravel()

        found = minimize(
            objective,
            self._perturbed(Q).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter},
        )
        record = {"beta": beta, "pairs": self.loss.n_pairs, "objective": float(found.fun)}
        self.history.append(record | {"iterations": int(found.nit)})
        best = found.x.reshape(Q.shape)
        return best / np.linalg.norm(best)  # the loss does not depend on scale: avoid overflow

    def _perturbed(self, Q: Array) -> Array:
        """Perturb a map under which points coincide: the gradient does not separate them."""
        if self.log_L(Q) < _COLLAPSED_LOG_L:
            return Q
        noise = self.weights[:, None] * np.random.default_rng(0).standard_normal(Q.shape)
        return Q + _PERTURBATION * np.linalg.norm(Q) / np.linalg.norm(noise) * noise

    def principal(self, Q: Array) -> Array:
        """Rotate the map so that its columns have decreasing variance."""
        Y = self.Z @ Q
        variances, axes = np.linalg.eigh(Y.T @ Y)
        return Q @ axes[:, np.argsort(-variances, kind="stable")]


def _spare_share(Yt: Array, kept: int | None) -> tuple[float, Array]:
    total = float(np.sum(Yt**2))
    share = float(np.sum(Yt[kept:] ** 2)) / total
    slope = -2 * share / total * Yt
    slope[kept:] += 2 / total * Yt[kept:]
    return share, slope


def squeezed(problem: Problem, Q: Array, kept: int) -> Array:
    """Reduce a map gradually to its first `kept` dimensions.

    In the plane a curve that crosses itself cannot be untangled without tearing it; with a spare
    dimension it can. The penalty on the variance in the spare dimensions increases step by step,
    then they are removed.
    """
    Q = problem.descend(Q, SEARCH_BETAS[0], _SQUEEZE_ITERATIONS)
    for weight in _SPARE_WEIGHTS:
        Q = problem.principal(Q)
        Q = problem.descend(Q, 2 * SEARCH_BETAS[0], _SQUEEZE_ITERATIONS, kept, weight)
    return problem.principal(Q)[:, :kept]


def search(problem: Problem, k: int, n_init: int, max_iter: int, rng: Any) -> list[Array]:
    """Return the map to the leading directions, and the maps (R, k) found from `n_init` starts."""
    found = [leading(problem.weights, k)]
    for Q in _starts(problem, k, n_init, rng):
        for beta in SEARCH_BETAS:
            Q = problem.descend(Q, beta, max_iter)
        found.append(Q)
    return found


def _starts(problem: Problem, k: int, n_init: int, rng: Any) -> Iterator[Array]:
    """Yield the leading directions, then these and random ones, squeezed from spare dimensions."""
    R = problem.Z.shape[1]
    for start in range(n_init):
        spare = min((0, 1, 1, 2)[start] if start < 4 else 1 + start % 2, R - k)
        if start < 2:
            Q = leading(problem.weights, k + spare)
        else:
            Q = problem.weights[:, None] * rng.standard_normal((R, k + spare))
        yield squeezed(problem, Q, k) if spare else Q


def leading(weights: Array, k: int) -> Array:
    """Return the projection to the k directions of largest weight, (R, k)."""
    return np.diag(weights)[:, :k]


def refine(problem: Problem, Q: Array, betas: Iterable[int], max_iter: int) -> Array:
    """Descend with growing β, where the worst pairs count more and more; return the best map."""
    best, least = Q, problem.log_L(Q)
    for beta in betas:
        Q = problem.descend(Q, beta, max_iter)
        log_L = problem.log_L(Q)
        if log_L < least:
            best, least = Q, log_L
    return best
