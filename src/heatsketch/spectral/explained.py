"""How much of a diffusion some coordinates hold, and where its eigenvalues have a gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heatsketch._typing import Array
from heatsketch.operators.deflated import Deflated
from heatsketch.spectral.apply import SPECTRAL_LIMIT, Block, apply
from heatsketch.spectral.dense import all_eigenvalues
from heatsketch.spectral.filter_base import Filter
from heatsketch.spectral.traces import Square, chi_square_interval, estimated_traces

N_PROBES = 64  # an interval of what is left out has a width of √(8/64) of it at most
_SEED = 0x6B5F3A91C2D4E807
_DEPENDENT = 1e-9  # share of a column that is new, below which it is rounding


class ExplainedVariance(NamedTuple):
    """Shares of the diffusion variance tr f(A)², the trivial direction left out, by coordinates.

    Attributes
    ----------
    ratio, low, high : arrays (k,)
        Share of each coordinate, beyond what those before it hold, and the ends of its interval.
    cumulative, cumulative_low, cumulative_high : arrays (k,)
        Share of the first 1, 2, ..., k coordinates.
    total : float
        tr f(A)².
    level : float
    exact : bool
        Whether the total is known, so that the intervals are points.
    """

    ratio: Array
    low: Array
    high: Array
    cumulative: Array
    cumulative_low: Array
    cumulative_high: Array
    total: float
    level: float
    exact: bool

    def describe(self) -> str:
        """Return the share of all coordinates in words."""
        ends = self.cumulative_low[-1], self.cumulative[-1], self.cumulative_high[-1]
        low, share, high = (f"{100 * value:.3g}" for value in ends)
        between = "" if self.exact else f" ({100 * self.level:g} %: {low} to {high})"
        return f"{share} % of the diffusion variance{between}"


class Eigengap(NamedTuple):
    """The largest gap between eigenvalues that follow each other.

    Attributes
    ----------
    n_components : int
        Number of eigenvalues before the gap, at least 1.
    gap, low, high : float
        Its width, and an interval for it by the residuals: each eigenvalue found is within its
        residual of one of A.
    certain : bool
        Whether it is larger than any other gap, whatever the errors.
    gaps, errors : arrays (k - 1,)
        All gaps λ_m - λ_(m+1), m = 1, ..., k - 1, and the bounds on their errors.
    """

    n_components: int
    gap: float
    low: float
    high: float
    certain: bool
    gaps: Array
    errors: Array


def largest_gap(values: Array, residuals: Array) -> Eigengap:
    """Return the largest gap of eigenvalues (k,) in descending order, with residuals (k,).

    Of one eigenvalue no gap is known: then `n_components` is 1 and the gap NaN.
    """
    gaps, errors = -np.diff(values), residuals[1:] + residuals[:-1]
    if len(gaps) == 0:
        return Eigengap(1, np.nan, np.nan, np.nan, False, gaps, errors)
    m = int(np.argmax(gaps))
    low, high = max(float(gaps[m] - errors[m]), 0.0), float(gaps[m] + errors[m])
    others = np.delete(gaps + errors, m)
    certain = low > float(np.max(others, initial=0.0))
    return Eigengap(m + 1, float(gaps[m]), low, high, certain, gaps, errors)


def explained_variance(
    A: Deflated,
    f: Filter,
    Y: Array,
    level: float = 0.95,
    *,
    values: Array | None = None,
    labels: Array | None = None,
    everything: Array | None = None,
    n_probes: int = N_PROBES,
) -> ExplainedVariance:
    """Return the shares of tr f(A)² in the span of the first columns of Y, and in that of all.

    The share of an orthonormal basis Q is |f(A) Q|² / tr f(A)²: of eigenvectors Σ f(λ)² / tr f(A)².
    Exact up to 2,048 points; beyond, what Q leaves out is estimated by random columns orthogonal to
    it, with the law of chi-square, which is exact if Q are eigenvectors and what is left out has
    equal eigenvalues, and a little too wide if Q are none.

    Parameters
    ----------
    A : Deflated
    f : Filter
    Y : array (n, k)
    level : float
    values : array (k,), optional
        The eigenvalues, where the columns of Y are eigenvectors.
    labels : array (n,), optional
        Components of A, of which each has coordinates of its own.
    everything : array (n - r,), optional
        All eigenvalues of A but those of its r directions, where they are known.
    n_probes : int
        Number of random columns.
    """
    square, pieces = Square(f), _rows_of(labels)
    if values is not None and len(values) == A.n - A.V.shape[1]:  # nothing is left out
        return _shares(*square.scaled(values), (0.0, 0.0, 0.0), level, True)
    Q = _in_each(A.project(Y), pieces, _orthonormal)
    block = _held(A, f, Q, values)
    if A.n <= SPECTRAL_LIMIT:
        lam = all_eigenvalues(A) if everything is None else everything
        weights, scale = square.scaled(lam)
        held, whole, log_scale = _on_one_scale(block, Block(weights.sum()[None], scale))
        left = max(float(whole[0] - held.sum()), 0.0)
        return _shares(held, log_scale, (left, left, left), level, True)

    def without(X: Array) -> Array:
        return X - _in_each(X, pieces, lambda part, rows: Q[rows] @ (Q[rows].T @ part))

    # Not the columns of a sketch with a small seed, which Y may span.
    probes = np.random.default_rng(_SEED)
    rest = estimated_traces([square, Square(square)], A, without, n_probes, probes)
    held, own, log_scale = _on_one_scale(block, Block(rest.values[:1], rest.log_scales[0]))
    change = float(np.exp(rest.log_scales[0] - log_scale))
    mean, spread, error = (float(x) for x in (*rest.values, rest.errors[0]))
    low, high = chi_square_interval(mean, spread, n_probes, level)
    ends = (max(low - error, 0.0) * change, (high + error) * change)
    return _shares(held, log_scale, (max(float(own[0]), 0.0), *ends), level, False)


def _rows_of(labels: Array | None) -> list[Any]:
    """Return the rows of each component, or all."""
    if labels is None:
        return [slice(None)]
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _in_each(X: Array, pieces: list[Any], work: Callable[[Array, Any], Array]) -> Array:
    """Return what `work` makes of the rows of X (n, k) in each piece."""
    result = np.zeros(X.shape)
    for rows in pieces:
        result[rows] = work(X[rows].astype(float), rows)
    return result


def _orthonormal(Y: Array, rows: Any = None) -> Array:
    """Return Q (n, k) whose first columns span those of Y; 0 for a column that adds nothing."""
    sizes = np.linalg.norm(Y, axis=0)
    Q, R = np.zeros(Y.shape), np.zeros(Y.shape[1])
    full = min(Y.shape)
    Q[:, :full], triangle = np.linalg.qr(Y / np.where(sizes > 0, sizes, 1.0))
    R[:full] = np.diag(triangle)
    return Q * (np.abs(R) > _DEPENDENT)


def _held(A: Deflated, f: Filter, Q: Array, values: Array | None) -> Block:
    """Return |f(A) q|² of every column q."""
    if values is not None:
        return Block(*Square(f).scaled(values))
    block = apply([f], A, Q)[0]
    return Block(np.sum(np.square(block.values), axis=0, dtype=float), 2 * block.log_scale)


def _on_one_scale(*blocks: Block) -> tuple[Array, Array, float]:
    log_scale = max((b.log_scale for b in blocks if b.values.any()), default=0.0)
    one, other = (b.values * np.exp(b.log_scale - log_scale) for b in blocks)
    return one, other, log_scale


def _shares(
    held: Array, log_scale: float, left: tuple[float, float, float], level: float, exact: bool
) -> ExplainedVariance:
    """Divide by the whole, and by the ends of its interval; nothing has shares of 0."""
    rest, least, most = left
    wholes = [float(held.sum()) + part for part in (rest, most, least)]
    ratio, low, high = (held / (whole or 1.0) for whole in wholes)
    sums = [np.minimum(np.cumsum(share), 1.0) for share in (ratio, low, high)]
    with np.errstate(over="ignore", under="ignore"):
        total = float(wholes[0] * np.exp(log_scale))
    return ExplainedVariance(ratio, low, high, sums[0], sums[1], sums[2], total, level, exact)
