"""The heat trace of an operator, and what it says of the number of directions at each time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from heatsketch._checks import check_level, check_number
from heatsketch._typing import Array, Rng
from heatsketch.operators import numbered
from heatsketch.operators.base import Operator
from heatsketch.operators.deflated import as_deflated
from heatsketch.operators.order import first_inputs
from heatsketch.spectral.apply import SPECTRAL_LIMIT
from heatsketch.spectral.dense import all_eigenvalues
from heatsketch.spectral.eigenpairs import Spectrum, leading_vector
from heatsketch.spectral.filter_base import Filter
from heatsketch.spectral.filters import Heat
from heatsketch.spectral.traces import (
    Traces,
    chi_square_interval,
    estimated_traces,
    exact_traces,
)

_MOMENTS = ((0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # j and the multiple of t: tr x^j e^-x


@dataclass(frozen=True, eq=False)
class HeatTrace:
    """Z(t) = tr e^{-t(1-A)} at some times, with intervals, and what follows from it.

    With p_i = e^{-t(1-λ_i)} / Z the entropy is -Σ p_i log p_i = log Z + t Σ p_i (1 - λ_i), and the
    spectral dimension -2 d log Z / d log t = 2 t Σ p_i (1 - λ_i).

    Attributes
    ----------
    times, values, low, high : arrays (m,)
        Z and the ends of its interval, which are Z itself if all eigenvalues are known.
    entropy, effective_rank, dimension : arrays (m,)
        The entropy, e^entropy (how many directions are left) and the spectral dimension.
    entropy_error, dimension_error : arrays (m,)
        Their standard errors, by linearisation; 0 if all eigenvalues are known.
    polynomial_error : array (m,)
        Bound on the relative error of Z by the Chebyshev series, which is not part of the interval.
    level : float
    exact : bool
    """

    times: Array
    values: Array
    low: Array
    high: Array
    entropy: Array
    entropy_error: Array
    dimension: Array
    dimension_error: Array
    polynomial_error: Array
    level: float
    exact: bool

    @property
    def effective_rank(self) -> Array:
        """e^entropy (m,)."""
        return np.exp(self.entropy)

    @property
    def effective_rank_interval(self) -> tuple[Array, Array]:
        """The ends of an interval (m,), at the level."""
        low, high = self._around(self.entropy, self.entropy_error)
        return np.exp(low), np.exp(high)

    @property
    def dimension_interval(self) -> tuple[Array, Array]:
        """The ends of an interval (m,), at the level."""
        return self._around(self.dimension, self.dimension_error)

    def _around(self, value: Array, error: Array) -> tuple[Array, Array]:
        half = float(norm.ppf((1 + self.level) / 2)) * error
        return np.maximum(value - half, 0.0), value + half


def heat_trace(
    A: Any,
    times: Any,
    *,
    n_probes: int = 64,
    spectrum: Spectrum | None = None,
    level: float = 0.95,
    rng: Rng = None,
) -> HeatTrace:
    """Compute the heat trace Z(t) = tr e^{-t(1-A)} = Σ e^{-t(1-λ_i)}, with error bars.

    Z falls from n, where every point stands for itself, to the number of eigenvalues 1, which is
    that of the components. On data of dimension d it falls like t^{-d/2} in between: a plateau of
    `dimension` is an estimate of d. `effective_rank` says how many directions are left at a time.

    Up to 2,048 points from all eigenvalues. Beyond, k random columns estimate it (Hutchinson 1990),
    from one Chebyshev recurrence for all times; the eigenvector of the largest eigenvalue, and
    those of `spectrum`, are counted exactly.

    Parameters
    ----------
    A : array (n, n), SciPy sparse matrix, operator or Diffusion
        Symmetric, usually a normalised affinity. Directions that are `Deflated` do not count.
    times : float > 0, or a sequence of times
    n_probes : int, default 64
        Columns k: a standard error of Z is √(2 Z(2t) / k), less what is counted exactly.
    spectrum : Spectrum, optional
        Leading eigenpairs that are known, by `eigh` of the same A: at large times little else is
        left, so that the intervals become narrow.
    level : float in (0, 1), default 0.95
        Probability with which each interval holds. That of Z is by the law of chi-square with
        k Z(t)² / Z(2t) degrees of freedom, which is exact for equal eigenvalues; the others are
        normal, for many degrees of freedom.
    rng : int, Generator or None

    Returns
    -------
    HeatTrace
        `.values`, `.low`, `.high` (m,), and `entropy`, `effective_rank`, `dimension`.

    Raises
    ------
    ValueError
        A not symmetric or finite; a time so large that the precision of A does not reach.

    Notes
    -----
    Cost: all eigenvalues of up to 2,048 points; else about √(35 t) products with k columns for the
    largest t, however many times there are, and memory for four blocks (n, k).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> trace = hs.heat_trace(np.diag([1.0, 0.5, 0.5]), [2.0])
    >>> np.allclose(trace.values, 1 + 2 * np.exp(-1)), trace.exact
    (True, True)
    """
    times = _checked_times(times)
    k = check_number(n_probes, "n_probes", low=2, integer=True)
    level = check_level(level)
    numbering = numbered(A)
    operator = as_deflated(numbering.operator)
    functions = [_HeatMoment(c * t, j) for t in times for j, c in _MOMENTS]
    known, rest = np.empty(0), None
    if operator.n <= SPECTRAL_LIMIT:
        known = all_eigenvalues(operator)
    else:
        known, vectors = _known_pairs(operator, spectrum, numbering.vertex)
        if vectors.shape[1] < operator.n - operator.V.shape[1]:

            def without(X: Array) -> Array:
                return X - vectors @ (vectors.T @ X)

            rest = estimated_traces(functions, operator, without, k, rng)
    return _summary(times, exact_traces(functions, known), rest, k, level)


def _checked_times(times: Any) -> Array:
    values = times if isinstance(times, Sequence | np.ndarray) and np.ndim(times) else [times]
    if len(values) == 0:
        raise ValueError("times is an empty sequence; pass one or more times.")
    return np.array([check_number(t, "times", low=0, open_low=True) for t in values])


def _known_pairs(
    A: Operator, spectrum: Spectrum | None, vertex: Array | None
) -> tuple[Array, Array]:
    """Return eigenvalues and orthonormal eigenvectors (n, r) that need not be estimated."""
    if spectrum is None:
        if as_deflated(A).V.shape[1]:
            return np.empty(0), np.empty((A.n, 0))
        V = leading_vector(A, rng=0)[:, None].astype(float)
    else:
        V = np.asarray(spectrum.vectors, dtype=float)
        n_points = A.n if vertex is None else len(vertex)
        if len(V) != n_points:
            raise ValueError(
                f"spectrum has vectors of {len(V)} points but A has {n_points}; pass eigh(A, ...)."
            )
        V = np.linalg.qr(V if vertex is None else V[first_inputs(vertex)])[0]
    image = np.asarray(A @ A.asarray(V), dtype=float)
    return np.einsum("ij,ij->j", V, image), V


def _summary(times: Array, known: Traces, rest: Traces | None, k: int, level: float) -> HeatTrace:
    """Put the moments of both parts together; the part that is estimated has the errors."""
    shape = (len(times), len(_MOMENTS))
    if rest is None:
        nothing = np.zeros(known.values.shape)
        rest = Traces(nothing, known.log_scales, nothing, True)
    scales = np.maximum(_of_size(known), _of_size(rest)).reshape(shape)
    scale = scales[:, [0]] * np.array([c for _, c in _MOMENTS])  # one for Z², one for Z(2t)
    exact, random, error = (
        (values * np.exp(part.log_scales - scale.ravel())).reshape(shape)
        for part, values in ((known, known.values), (rest, rest.values), (rest, rest.errors))
    )
    Z, R = exact[:, 0] + random[:, 0], random[:, 0]
    energy = (exact[:, 1] + random[:, 1]) / Z  # t <1 - λ>, half the dimension
    f2, xf2, x2f2 = random[:, 2], random[:, 3] / 2, random[:, 4] / 4  # of the rest, at time t
    dimension_error = np.sqrt(_variance(f2, xf2, x2f2, -energy, k)) / Z
    entropy_error = np.sqrt(_variance(f2, xf2, x2f2, 1 - energy, k)) / Z
    ends = [chi_square_interval(r, s, k, level) for r, s in zip(R, f2, strict=True)]
    low, high = exact[:, 0] + np.array(ends).T
    unit = np.exp(scale[:, 0])
    return HeatTrace(
        times,
        Z * unit,
        low * unit,
        high * unit,
        np.log(Z) + scale[:, 0] + energy,
        entropy_error,
        2 * energy,
        2 * dimension_error,
        error[:, 0] / Z,
        level,
        rest.exact,
    )


def _of_size(part: Traces) -> Array:
    """Return the logarithm of the scale of the traces; -inf where there are none."""
    return np.where(part.values != 0, part.log_scales, -np.inf)


def _variance(f2: Array, xf2: Array, x2f2: Array, shift: Array, k: int) -> Array:
    """Return the variance 2/k Σ ((x + shift) e^-x)² of what is linear in the moments."""
    return 2 / k * np.maximum(x2f2 + 2 * shift * xf2 + shift**2 * f2, 0.0)


@dataclass(frozen=True)
class _HeatMoment(Filter):
    """x^j e^-x, x = t(1-λ)."""

    t: float
    j: int

    def __call__(self, lam: Array) -> Array:
        """Evaluate at eigenvalues."""
        values, log_scale = self.scaled(lam)
        return values * math.exp(log_scale)

    def scaled(self, lam: Array) -> tuple[Array, float]:
        """Return the values on the scale of the heat filter."""
        values, log_scale = Heat(self.t).scaled(lam)
        return values * (self.t * (1.0 - np.asarray(lam, dtype=float))) ** self.j, log_scale

    def sharpness(self, interval: tuple[float, float]) -> float:
        """Return that of the heat filter."""
        return Heat(self.t).sharpness(interval)
