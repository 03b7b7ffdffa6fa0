"""Diffusion maps: the embedding by eigenvectors."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number
from heatsketch._messages import texts_from, warn
from heatsketch.core.operators import Operator
from heatsketch.estimators._base import DiffusionEstimator
from heatsketch.layout.maps import Map
from heatsketch.markov.diffusion import Diffusion
from heatsketch.scales import WIDE_CUT
from heatsketch.spectral.eigen import Spectrum, largest_eigenpairs, slowest_eigenpairs
from heatsketch.spectral.filters import FILTERS, Filter, make_filter
from heatsketch.spectral.functions import SPECTRAL_LIMIT, check_range
from heatsketch.spectral.traces import Eigengap, explained_variance, largest_gap

# The eigenvalues that a rule of the time compares, by place.
_TIME_RULES = {"auto": (0, -1), "printed": (0, -1), "gap": (-2, -1)}
_LOOKING_AHEAD = ("auto", "gap")  # at the eigenvalue after those that are kept
_ORDERS = ("value", "magnitude")
_MOST_EXPLAINING = 1024  # most eigenpairs for a fraction of the variance, beyond 2,048 points
_SMALLEST_DIVISOR = 1e-6  # an eigenvalue; eigenvectors are accurate to some 1e-8
_LOG_TIMES = (-10.0, 40.0)  # between which a time is chosen
_TINY = 1e-300  # least argument of a logarithm
MOST_AUTO_COMPONENTS = 64  # eigenvalues that n_components="auto" computes


@texts_from(Diffusion.from_points, DiffusionEstimator)
@dataclass(eq=False, repr=False)
class DiffusionMap(DiffusionEstimator):
    """Embed data by the leading eigenvectors of its diffusion: λ_m^t v_m, m = 1, …, k.

    In the symmetric and bistochastic forms v_m are the eigenvectors of A [2]_. The Markov form uses
    the right eigenvectors r_m = v_m / √π of P, whose distances are diffusion distances weighted by
    1/π [1]_ [3]_. The constant eigenvector is left out. These are the most accurate k coordinates
    on average, but short directions may be missing completely (see `HeatSketch`). Eigenvalues are
    ordered by λ; by |λ| in [1]_, see `order`. A graph may have negative eigenvalues; they belong to
    walks that alternate, and come last.

    Parameters
    ----------
    n_components : int, float in (0, 1) or "auto", default=2
        Number k of coordinates. A fraction: the least number that explains this fraction of the
        diffusion variance (at least one; beyond 2,048 points at most 1,024, with a warning).
        "auto": those with λ_m^t > δ λ_1^t, (26) of [1]_, but at most 64. With several times, t is
        the smallest. With the heat filter, e^{-t(1-λ)} - e^{-t} replaces λ^t.
    time : float >= 0, "auto", "printed", "gap", or a sequence of times, default=1
        Diffusion time t: >= 0 with ``filter="power"``, > 0 with "heat", >= 1 with "accumulated".
        With "power", 0 gives the eigenvectors without the factor λ^t, (57) of [1]_. "auto": the
        smallest integer t with (λ_{k+1} / λ_1)^t <= δ, so that the other coordinates are
        negligible. "printed": the same with λ_k, as (29) of [1]_ stands in print, with which only
        k - 1 coordinates count. "gap": the t with the largest spectral gap of P^t after the k
        coordinates, λ_k^t - λ_{k+1}^t: the integer below or above
        log(log λ_{k+1} / log λ_k) / log(λ_k / λ_{k+1}). With the heat filter, e^{-t(1-λ)} - e^{-t}
        replaces λ^t, and t >= 1 of the first two need not be an integer.
    filter : {"power", "heat", "accumulated"}, default="power"
        Weight of a coordinate: λ^t, e^{-t(1-λ)} - e^{-t}, or that of squared distances added up
        from t on (see `Accumulated`).
    delta : float in (0, 1), default=0.2
        Fraction δ of the largest weight below which a coordinate is negligible, for "auto" in
        `n_components` or `time`.
    cut : float > 0, default=5
        For ``affinity="radius"`` (where `epsilon` is a number or a rule): pairs farther apart than
        cut √(ε/2) have no affinity. At 5 this changes 1 - λ by 5e-5 on a surface. At 3, as in §9.6
        of [1]_, the graph has (3/5)^d of the entries, and 1 - λ is too small by the factor
        F_{d+2}(9) / F_d(9) of chi-square distribution functions: 0.97 on a curve (d = 1), 0.95 on a
        surface, 0.80 in six dimensions.
    deflate : bool, default=True
        False: the trivial eigenvector v_0, of the eigenvalue 1, is one more coordinate, the first
        (§4.2 of [2]_). It is √π, and constant in the Markov and bistochastic forms. `eigenvalues_`
        and `eigenvectors_` never have it.
    order : {"value", "magnitude"}, default="value"
        "value": the largest λ come first. "magnitude": the largest |λ|, as in [1]_, so that walks
        that alternate (λ near -1, as of nearly bipartite graphs) count.
    affinity : {"knn", "variable", "dense", "radius", "precomputed"}, default="knn"
        As in `DiffusionEstimator`. The 5 is the default of `cut`.
    epsilon : float or {"self-tuning", "ksum", "median", "nearest"}, default="self-tuning"
        As in `Diffusion.from_points`.
    n_neighbors : int, default=15
        As in `Diffusion.from_points`.
    neighbors : NeighborIndex, transformer or sparse matrix, default=None
        As in `DiffusionEstimator`.
    metric : str or callable, default="euclidean"
        As in `Diffusion.from_points`.
    normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
        As in `Diffusion.from_points`.
    alpha : float, default=1
        As in `Diffusion.from_points`.
    tol : float, default=1e-8
        Largest |row sum - 1| of the bistochastic scaling, 0 < tol <= 1e-3. It also bounds the
        residuals of the eigenpairs
        (6e-6 at best for float32 data of more than 16,384 points, which are computed in float32).
    max_iter : int, default=1000
        As in `Diffusion.from_points`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the first block of the iteration for eigenpairs.
    memory : str or joblib.Memory, default=None
        As in `DiffusionEstimator`.
    device : str or torch.device, default=None
        As in `DiffusionEstimator`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates λ_m^t v_m, or λ_m^t r_m in the Markov form, in columns.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues λ_m of A in descending order, without the trivial 1.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Eigenvectors of A of unit length; in the Markov form r_m, with Σ π r_m² = 1.
    residuals_ : ndarray of shape (n_components,)
        Residuals |A v - λ v|, bounds on the errors of the eigenvalues.
    explained_diffusion_variance_ratio_ : ndarray of shape (n_components * n_times,)
        λ_m^2t / (tr A^2t - 1), computed at each access; `explained_diffusion_variance` adds
        intervals.
    time_ : float or list
        The time, or times, used.
    diffusion_ : Diffusion
        Operator, stationary measure and rows for new points.
    epsilon_ : float or ndarray of shape (n_samples,)
        Bandwidth ε used, or local scales of the points.
    diagnostics_ : dict
        `components`, `isolated`, `row_sum_error`, seconds per stage, and others.
    n_iter_ : int
        Number of iterations of the bistochastic scaling; 1 for the other normalizations.
    ids_ : ndarray of shape (n_samples,) or None
        Names of the points, if passed to `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    See Also
    --------
    HeatEmbedding : Embed data in few dimensions that keep diffusion distances.
    HeatSketch : Embed data by random columns; distances are right on average.
    eigh : Compute the leading eigenpairs of an operator.
    classical.LaplacianEigenmap : Embed by the lowest eigenvectors of a graph Laplacian.

    Notes
    -----
    The cost is the graph, and some hundred sparse products with k + 8 columns. New points have the
    coordinates y(x) = Σ_j a(x, x_j) λ^{t-1} v_j, without division by an eigenvalue for t >= 1. For
    t < 1 an eigenvalue below 1e-6 is an error.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9, equations
       (22)-(30) and (57).
    .. [2] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithm 3.
    .. [3] R. R. Coifman and S. Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis
       21 (2006), 5-30.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(200, rng=0)
    >>> hs.DiffusionMap(affinity="dense", epsilon=0.25).fit_transform(X).shape
    (200, 2)
    """

    n_components: int | float | str = 2
    time: Any = 1
    _: KW_ONLY
    delta: float = 0.2
    cut: float = WIDE_CUT
    deflate: bool = True
    order: str = "value"

    _states_variance = True

    def _check_parameters(self, times: list[Any]) -> None:
        rules = [t for t in times if isinstance(t, str)]
        if rules and rules[0] not in _TIME_RULES:
            raise TypeError(
                f"time={rules[0]!r} is of type str; pass a number >= 0, or a rule: "
                f"{', '.join(map(repr, _TIME_RULES))}."
            )
        if rules and (len(times) > 1 or self.n_components == "auto" or self._is_fraction):
            raise ValueError(
                f"time={rules[0]!r} chooses one time for a given number of components; pass a "
                "number for n_components (or for time)."
            )
        if {"auto", "printed"} & {*rules, self.n_components}:
            check_number(self.delta, "delta", low=0, high=1, open_low=True, open_high=True)
        if not self._is_fraction:
            check_number(self.n_components, "n_components", low=1, integer=True, rules=("auto",))
        if rules == ["printed"] and self.n_components == 1:
            raise ValueError(
                "time='printed' compares the last coordinate with the first; pass n_components >= "
                "2, or time='auto'."
            )
        check_number(self.cut, "cut", low=0, open_low=True)
        if not isinstance(self.deflate, bool | np.bool_):
            raise TypeError(
                f"deflate={self.deflate!r} is of type {type(self.deflate).__name__}; pass True or "
                "False."
            )
        if check_choice(self.order, "order", _ORDERS) == "magnitude" and self._is_fraction:
            raise ValueError(
                "order='magnitude' with a fraction as n_components has no rule; pass a number."
            )
        for t in times if not rules else ():
            FILTERS[self.filter].check_time(t)

    def _mapped(self, diffusion: Diffusion, times: list[Any]) -> tuple[Map, Any]:
        rule = times[0] if isinstance(times[0], str) else None
        if self._is_fraction:
            spectrum = self._explaining(diffusion, min(times))
        else:
            spectrum = self._eigenpairs(diffusion, rule)
        lam, k = spectrum.values, len(spectrum.values)
        if rule is not None:
            times, k = [self._time_by_gap(rule, lam)], int(self.n_components)
        elif self.n_components == "auto":
            f = make_filter(self.filter, min(times)).minus_constant()
            weights = np.abs(f.with_log_scale(np.abs(lam) if f.of_powers else lam)[0])
            counts = weights > self.delta * weights[0]
            k = 1 + int(np.max(np.flatnonzero(counts), initial=0))
            if k == MOST_AUTO_COMPONENTS:
                warn(
                    UserWarning,
                    f"All {k} computed eigenvalues count at delta={self.delta} and time="
                    f"{min(times)}; pass a larger time or delta, or n_components.",
                )
        self.time_ = times if len(times) > 1 else times[0]
        V, root = spectrum.vectors[:, :k], diffusion.root[:, None]
        self.eigenvalues_, self.residuals_ = lam[:k], spectrum.residuals[:k]
        self.eigenvectors_ = diffusion.expand(V / root if self.normalization == "markov" else V)
        lam = lam[:k]
        if not self.deflate:
            V, lam = np.hstack([diffusion.deflated.V[:, :1], V]), np.append(1.0, lam)
        f_by_time = [_step_weights(self.filter, t, lam, diffusion.operator) for t in times]
        return self._linear_map(diffusion, [V * f for f in f_by_time]), None

    @property
    def _is_fraction(self) -> bool:
        """Whether n_components is a fraction of the variance."""
        return isinstance(self.n_components, float | np.floating) and 0 < self.n_components < 1

    def eigengap(self) -> Eigengap:
        """Return the largest gap between the eigenvalues computed, with its uncertainty.

        `.n_components` coordinates come before it, at least one. The residuals bound the errors:
        `.certain` is true if no other gap between these eigenvalues can be as large.

        Raises
        ------
        NotFittedError
            Before `fit`.

        Examples
        --------
        >>> import heatsketch as hs
        >>> X, angle = hs.datasets.circle(200, rng=0)
        >>> model = hs.DiffusionMap(5, affinity="dense", epsilon=0.25).fit(X)
        >>> model.eigengap().n_components
        4
        """
        check_is_fitted(self)
        by_modulus = self._fitted_as.order == "magnitude"
        lam = np.abs(self.eigenvalues_) if by_modulus else self.eigenvalues_
        return largest_gap(lam, self.residuals_)

    def _explaining(self, diffusion: Diffusion, time: Any) -> Spectrum:
        """Return the eigenpairs that explain the wanted fraction, or warn and return too few."""
        A, wanted_fraction = diffusion.deflated, float(self.n_components)
        f = make_filter(self.filter, time).minus_constant()
        most = diffusion.n - 1
        count = most if diffusion.n <= SPECTRAL_LIMIT else MOST_AUTO_COMPONENTS
        while True:
            found = slowest_eigenpairs(A, count, tol=self.tol, rng=self.random_state)
            known = explained_variance(A, f, found.vectors, values=found.values)
            enough = np.flatnonzero(known.cumulative >= wanted_fraction)
            if len(enough) or count == most:
                k = enough[0] + 1 if len(enough) else count
                return Spectrum(found.values[:k], found.vectors[:, :k], found.residuals[:k])
            # Each further one explains no more than the last one, as long as it is positive.
            missing = (wanted_fraction - known.cumulative[-1]) / max(known.ratio[-1], 1e-300)
            if count + missing > min(most, _MOST_EXPLAINING):
                warn(
                    UserWarning,
                    f"n_components={wanted_fraction:g} of the diffusion variance at time={time} "
                    f"takes more than {_MOST_EXPLAINING} coordinates; {count} are kept, which "
                    f"explain {known.cumulative[-1]:.3f}. Pass a larger time, or a number.",
                )
                return found
            count = min(max(2 * count, count + math.ceil(missing)), most, _MOST_EXPLAINING)

    def _eigenpairs(self, diffusion: Diffusion, rule: str | None) -> Spectrum:
        """Return the eigenpairs to keep, and the one after them if a rule of the time needs it."""
        if self.n_components == "auto":
            count = min(MOST_AUTO_COMPONENTS, diffusion.n - 1)
        else:
            looks_ahead = rule in _LOOKING_AHEAD
            count = int(self.n_components) + looks_ahead
            if looks_ahead and count == diffusion.n:
                raise ValueError(
                    f"time={rule!r} needs the eigenvalue after the last one kept, but "
                    f"{count} distinct points have {count - 1}; pass n_components <= {count - 2}, "
                    "or a time."
                )
        pairs = slowest_eigenpairs if self.order == "value" else largest_eigenpairs
        return pairs(diffusion.deflated, count, tol=self.tol, rng=self.random_state)

    def _time_by_gap(self, rule: str, lam: Array) -> float:
        """Return the time at which λ_{k+1} or λ_k is negligible, or the gap between is largest.

        For filters that count steps it is an integer.
        """
        numbers = np.arange(1, len(lam) + 1)[[*_TIME_RULES[rule]]]
        ends = lam[numbers - 1]
        steps = FILTERS[self.filter].of_powers
        first, following = map(float, np.abs(ends) if steps else ends)
        if not following < first - max(1e-12 * abs(first), 1e-15):  # more than rounding
            why = " (are the data disconnected?)" if 1 - first < 1e-12 else ""
            raise ValueError(
                f"time={rule!r} finds no gap: the eigenvalues {numbers[0]} and {numbers[1]} are "
                f"both {first:.6g}{why}; pass a time, or another n_components."
            )
        ends = np.array([first, following])

        def at(log_time: float) -> Filter:
            return make_filter(self.filter, math.exp(log_time))

        if rule != "gap":  # the first time at which the second is <= δ times the first

            def log_excess(log_time: float) -> float:
                above, below = np.abs(at(log_time).minus_constant().with_log_scale(ends)[0])
                return math.log(max(below / above, _TINY) / self.delta)

            if first <= 0:  # of the heat filter
                raise ValueError(
                    f"time={rule!r} finds no time: the eigenvalue 1 is {first:.6g}, so that its "
                    "weight falls as fast as the others; pass a time, or filter='power'."
                )
            time = 1.0 if log_excess(0) <= 0 else math.exp(brentq(log_excess, 0, _LOG_TIMES[1]))
            return math.ceil(time * (1 - 1e-12)) if steps else time
        if 1 - first < 1e-12:
            raise ValueError(
                f"time='gap' finds no largest gap: an eigenvalue kept is {first:.6g} and does not "
                "decay (are the data disconnected?); pass a time."
            )

        def log_gap(log_time: float) -> float:
            (above, below), log_scale = at(log_time).with_log_scale(ends)
            return log_scale + math.log(max(above - below, _TINY))

        best = minimize_scalar(lambda log: -log_gap(log), bounds=_LOG_TIMES, method="bounded")
        time = math.exp(best.x)
        whole = max(1, math.floor(time))
        return max(whole, whole + 1, key=lambda t: log_gap(math.log(t))) if steps else time


def _step_weights(filter: str, time: Any, lam: Array, A: Operator) -> Array:
    """Return (f(λ) - f(0)) / λ of eigenvalues of A.

    For powers with a time below 1 this divides by eigenvalues. Raises if one is nearly 0, if the
    time is not whole and one is negative, or if the time is too large.
    """
    f = make_filter(filter, time)
    if f.of_powers and not float(time).is_integer() and (lam < 0).any():
        raise ValueError(
            f"time={time:g} is not whole and some eigenvalues are negative (the smallest is "
            f"{lam.min():.3g}); pass a whole time, a smaller n_components, or filter='heat'."
        )
    if not f.of_powers or time >= 1:
        f = f.reduced()
        check_range(f, A, (lam.min(), lam.max()))
        return f(lam)
    smallest = float(np.min(np.abs(lam)))
    if smallest < _SMALLEST_DIVISOR:
        raise ValueError(
            f"time={time:g} divides by eigenvalues, of which one is {smallest:.1e}; pass a "
            "smaller n_components, or a time of at least 1."
        )
    return f(lam) / lam
