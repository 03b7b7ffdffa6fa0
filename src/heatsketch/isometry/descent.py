"""Minimise the log-distortion of a linear map: starts, spare dimensions, growing β."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from heatsketch._typing import Array
from heatsketch.isometry.loss import LogDistortion

COARSE = (4, 16)  # β of the search: smooth enough for many starts
FINE = (64, 256, 1024)  # β of the refinement of the best
_SPARE_WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0)
_SQUEEZE_STEPS = 25
_COLLAPSED = 20.0  # log L
_NUDGE = 0.01


@dataclass(eq=False)
class Problem:
    """A basis, pairs whose distances are to be kept, and a record of what was done.

    The map is Y = Z Q. Z are the points in some basis, Z · weights in their own scale.
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
        """Lower J_β + weight · (share of the variance in columns from `kept` on), from Q (R, k)."""

        def objective(q: Array) -> tuple[float, Array]:
            Yt = self.embedding(q.reshape(Q.shape))
            value, slope = self.loss(Yt, beta)
            if weight:
                share, share_slope = _spare_share(Yt, kept)
                value, slope = value + weight * share, slope + weight * share_slope
            return value, (slope @ self.Z).T.ravel()

        found = minimize(
            objective,
            self._apart(Q).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter},
        )
        record = {"beta": beta, "pairs": self.loss.n_pairs, "objective": float(found.fun)}
        self.history.append(record | {"iterations": int(found.nit)})
        best = found.x.reshape(Q.shape)
        return best / np.linalg.norm(best)  # the loss is free of scale; keep away from its ends

    def _apart(self, Q: Array) -> Array:
        """Nudge a map that lets points coincide: no gradient says which way to part them."""
        if self.log_L(Q) < _COLLAPSED:
            return Q
        nudge = self.weights[:, None] * np.random.default_rng(0).standard_normal(Q.shape)
        return Q + _NUDGE * np.linalg.norm(Q) / np.linalg.norm(nudge) * nudge

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
    """Press a map into its first `kept` dimensions, gently.

    In the plane a curve that crosses itself cannot be untangled without tearing; with a dimension
    to spare it can. The share of the variance in the spare dimensions is made dearer step by step,
    and then they are cut off.
    """
    Q = problem.descend(Q, COARSE[0], _SQUEEZE_STEPS)
    for weight in _SPARE_WEIGHTS:
        Q = problem.principal(Q)
        Q = problem.descend(Q, 2 * COARSE[0], _SQUEEZE_STEPS, kept, weight)
    return problem.principal(Q)[:, :kept]


def search(problem: Problem, k: int, n_init: int, max_iter: int, rng: Any) -> list[Array]:
    """Return the leading directions, and the maps (R, k) that `n_init` starts lead to."""
    found = [_leading(problem, k)]
    for Q in _starts(problem, k, n_init, rng):
        for beta in COARSE:
            Q = problem.descend(Q, beta, max_iter)
        found.append(Q)
    return found


def _starts(problem: Problem, k: int, n_init: int, rng: Any) -> Iterator[Array]:
    """Yield the leading directions, then these and random ones squeezed from one or two more."""
    R = problem.Z.shape[1]
    for number in range(n_init):
        spare = min((0, 1, 1, 2)[number] if number < 4 else 1 + number % 2, R - k)
        if number < 2:
            Q = _leading(problem, k + spare)
        else:
            Q = problem.weights[:, None] * rng.standard_normal((R, k + spare))
        yield squeezed(problem, Q, k) if spare else Q


def _leading(problem: Problem, k: int) -> Array:
    """Return the projection to the k directions of largest scale."""
    return np.diag(problem.weights)[:, :k]


def refine(problem: Problem, Q: Array, betas: Iterable[int], max_iter: int) -> Array:
    """Sharpen a map: the larger β, the more the worst pairs count. Return the best on the way."""
    best, least = Q, problem.log_L(Q)
    for beta in betas:
        Q = problem.descend(Q, beta, max_iter)
        log_L = problem.log_L(Q)
        if log_L < least:
            best, least = Q, log_L
    return best
