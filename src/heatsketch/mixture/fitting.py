"""Fitting a mixture to points: whitening, the fit, the inverse, diffusion at later times.

With p(x, ·) = b + Σ_m y_m(x) ψ_m, ψ_m orthonormal, two steps from x have the density
∫ p(x, u) p(u, ·) du = b' + Σ_m (Σ_n y_n(x) T_nm) ψ_m, T_nm = ∫ ψ_n(u) y_m(u) du: differences
of coordinates after t steps are (y(x) - y(z)) T^(t-1). The normalised t-th power of the kernel, a
possible reading of *Diffusion representation*, §7.1, is another process.
"""

import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from heatsketch._arrays import Array
from heatsketch._messages import logger
from heatsketch._threads import filled, row_tiles
from heatsketch.mixture.cholesky_map import CholeskyMap
from heatsketch.mixture.components import Components

_WORSE_COUNTS = 2  # counts in a row worse than the best, after which the search ends


def fit_mixture(
    X: Array, counts: Iterable[int], seed: int, kind: str = "full"
) -> tuple[Any, list[float]]:
    """Return the GaussianMixture of points (n, m) with the smallest BIC, and the BIC of each try.

    `kind` is that of the covariances, "full" or "tied".

    The counts of components are tried in their order. Fits are in units of the standard deviation
    of each feature, because scikit-learn adds 1e-6 to variances in any unit.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = scale.max() or 1.0
    Z, log_volume = (X - centre) / scale, len(X) * float(np.log(scale).sum())
    mixtures, criteria, best = [], [], 0
    for count in counts:
        mixture = GaussianMixture(count, covariance_type=kind, random_state=seed)
        with warnings.catch_warnings(action="ignore"):
            mixtures.append(mixture.fit(Z))
        criteria.append(float(mixture.bic(Z)) + 2 * log_volume)
        logger.info("mixture: criterion %.6g with %d components", criteria[-1], count)
        best = int(np.argmin(criteria))
        if len(criteria) - 1 - best >= _WORSE_COUNTS:
            break
    return rescaled(mixtures[best], scale, centre), criteria


def rescaled(fitted: Any, scale: Array, centre: Array | float = 0.0) -> Any:
    """Return a full or tied mixture for coordinates times `scale` (m,), plus `centre`."""
    other = deepcopy(fitted)
    other.means_ = fitted.means_ * scale + centre
    other.covariances_ = fitted.covariances_ * np.outer(scale, scale)
    other.precisions_cholesky_ = fitted.precisions_cholesky_ / scale[:, None]
    other.precisions_ = fitted.precisions_ / np.outer(scale, scale)
    other.reg_covar = fitted.reg_covar * float(scale.min()) ** 2  # for further fits
    return other


def refitted(mixture: Any, X: Array) -> Any:
    """Return a fitted mixture after further steps of its fit, now to the points X (n, m)."""
    again = deepcopy(mixture).set_params(warm_start=True)
    with warnings.catch_warnings(action="ignore"):
        return again.fit(X)


MAX_DIRECTIONS = 10  # chosen by experiment: benchmarks/README.md
_LEAST_FRACTION = 1e-6  # of the mean variance, for the rest if the points do not vary in it


@dataclass(frozen=True, eq=False)
class Whitening:
    """The affine map x -> (x - centre) axes / lengths to principal components of equal variance.

    After it one ε suits all directions, in any units of the features. There are at most ten
    directions, because in a hundred all of ten thousand points would be far from each other.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
        Mean of the points.
    axes : ndarray of shape (n_features, n_directions)
        Orthonormal, in columns.
    lengths : ndarray of shape (n_directions,)
        Units of the coordinates along the axes, in units of the data.
    rest_deviation : float
        Root mean variance of the points in the m - q other directions, in units of the data; at
        least 1e-3 of that of the features.

    See Also
    --------
    MixtureDiffusion : Embed data by the diffusion of a Gaussian mixture.
    classical.PCA : Project on the directions of largest variance.
    """

    centre: Array
    axes: Array
    lengths: Array
    rest_deviation: float

    @classmethod
    def from_points(cls, X: Array, seed: int) -> Self:
        """Return the whitening of points (n, m): at most 10 components, without vanishing ones.

        `seed` starts the truncated singular value decomposition, which is the cost.

        Raises
        ------
        ValueError
            All points are equal.
        """
        n, m = X.shape
        centre = X.mean(axis=0)
        if not np.ptp(X, axis=0).any():
            raise ValueError(f"All {n:,} points are equal; pass distinct points.")
        # Centre the points first, because scikit-learn's products lose digits to an offset.
        Z = X - centre
        pca = PCA(min(MAX_DIRECTIONS, n, m), random_state=seed).fit(Z)
        lengths = np.sqrt(pca.explained_variance_)
        # Roots of eigenvalues of a covariance have half of the digits: 1e-8 may be nothing. Nor is
        # a direction that which the rounding of the features leaves of them.
        seen, eps = (Z @ pca.components_.T).std(axis=0), np.finfo(float).eps
        rounding = np.abs(X).max(axis=0) @ np.abs(pca.components_.T)
        kept = seen > eps * np.maximum(max(n, m) * seen[0], rounding)
        lengths, total = lengths[kept], float(Z.var(axis=0, ddof=1).sum())
        rest = (total - float(np.square(lengths).sum())) / max(1, m - len(lengths))
        rest = float(np.sqrt(max(rest, _LEAST_FRACTION * total / m)))
        return cls(centre, pca.components_[kept].T, lengths, rest)

    def scaled(self, factor: float) -> Self:
        """Return the map to coordinates multiplied by a factor."""
        return replace(self, lengths=self.lengths / factor)

    def __call__(self, X: Array) -> Array:
        """Map points (n, m) to (n, q)."""
        return (X - self.centre) @ self.axes / self.lengths

    @property
    def slopes(self) -> Array:
        """Derivatives of coordinates by features, (q, m)."""
        return (self.axes / self.lengths).T

    def inverse(self, z: Array) -> Array:
        """Map coordinates (n, q) to points (n, m) without the components left out by the map."""
        return self.centre + (z * self.lengths) @ self.axes.T

    @property
    def log_volume(self) -> float:
        """Logarithm of the ratio of volumes after and before the map."""
        return -float(np.log(self.lengths).sum())

    def log_rest(self, X: Array) -> Array:
        """Return the log of a normal density of the components of X left out by the map, (n,)."""

        def squares(rows: slice) -> Array:
            x = X[rows] - self.centre
            left = (x - (x @ self.axes) @ self.axes.T) / self.rest_deviation
            return np.square(left).sum(axis=1)

        n_rest = X.shape[1] - len(self.lengths)  # for 0 only rounding is left
        volume = n_rest * (np.log(2 * np.pi) / 2 + np.log(self.rest_deviation))
        return -0.5 * filled(squares, (len(X),)) - volume


_MOST_STEPS = 200
_FIRST_DAMPING, _LEAST_DAMPING = 1e-3, 1e-12  # next to the mean square of the slopes
_SMALLEST_STEP = 1e-10


def descend(
    place: Callable[[Array], Array], slopes: Callable[[Array], Array], x: Array, y: Array
) -> tuple[Array, Array]:
    """Return points (n, q) near starts x where |place(x) - y| is least, and what it is there, (n,).

    Steps solve (JᵀJ + λ |J|²/q) s = Jᵀ (place(x) - y), J the slopes (n, k, q), with λ larger after
    steps that do not help (Levenberg and Marquardt), and are at most 1 long: on this length places
    must change smoothly. Each row descends by itself.
    """
    x, off = x.copy(), place(x) - y
    q, damping, active = x.shape[1], np.full(len(x), _FIRST_DAMPING), np.arange(len(x))
    for _ in range(_MOST_STEPS):
        J = slopes(x[active])
        gram = J.transpose(0, 2, 1) @ J
        size = np.maximum(np.einsum("naa->n", gram) / q, np.finfo(float).tiny)
        gram += (damping[active] * size)[:, None, None] * np.eye(q)
        step = np.linalg.solve(gram, J.transpose(0, 2, 1) @ off[active, :, None])[:, :, 0]
        length = np.linalg.norm(step, axis=1)
        new = x[active] - step / np.maximum(length, 1.0)[:, None]
        new_off = place(new) - y[active]
        better = np.linalg.norm(new_off, axis=1) < np.linalg.norm(off[active], axis=1)
        rows = active[better]
        x[rows], off[rows] = new[better], new_off[better]
        damping[active] *= np.where(better, 0.1, 10.0)
        damping = np.maximum(damping, _LEAST_DAMPING)
        active = active[length > _SMALLEST_STEP]
        if not len(active):
            break
    return x, np.linalg.norm(off, axis=1)


_MAX_GRID_FEATURES = 3  # with more features, samples are used instead of a grid
_GRID_SPACINGS = (0.8, 0.4, 0.2, 0.1)  # in units of √(ε/2), tried until two shifted grids agree
_GRID_TOLERANCE = 1e-9  # relative difference at which two grids agree
_MARGIN_WIDTHS = 7.0  # of the grid around all means after a step, in units of √ε
_MAX_GRID_NODES = 2**18
_BATCHES, _BATCH_SAMPLES = 16, 1024  # of independently scrambled Sobol nets
_BLOCK_DENSITIES = 2**22  # computed at a time: 32 MB


class Steps:
    """The matrix T of one more step, the mean of several estimates, and its error.

    T comes from the mean of the coordinates after a step from each pivot and the origin. For up to
    three features these are sums over a grid, which is refined until the same grid shifted by half
    its spacing agrees. For more features, or if the first grid would have more than 2^18 nodes,
    they come from 16 batches of about 1,000 samples of the steps from all pivots, weighted by the
    inverse of their mean density over the pivots.

    Attributes
    ----------
    matrix : array (r, r)
        Differences after t steps are (y(x) - y(z)) @ T^(t-1).
    versions : array (b, r, r)
        Estimates of T from independent samples, or from two grids.
    sampled : bool
        Whether the estimates are from samples.
    """

    def __init__(self, features: CholeskyMap, seed: int) -> None:
        c = features.kernel.components
        starts = np.concatenate([features.origin, features.pivots])
        p = c.transitions(starts)
        means = c.in_data_units(p.means[p.weights > 1e-12])
        margin = _MARGIN_WIDTHS * np.sqrt(c.epsilon)
        low, high = means.min(axis=0) - margin, means.max(axis=0) + margin
        versions: list[Array] = []
        for fineness in _GRID_SPACINGS if c.n_features <= _MAX_GRID_FEATURES else ():
            spacing = fineness * c.unit
            counts = np.ceil((high - low) / spacing).astype(int)
            if counts.prod(dtype=float) > _MAX_GRID_NODES:
                break
            axes = [start + spacing * np.arange(n) for start, n in zip(low, counts, strict=True)]
            nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, c.n_features)
            cell = spacing**c.n_features
            first, second = versions = [
                _matrix(features, starts, nodes + shift, cell) for shift in (0.0, spacing / 2)
            ]
            if np.linalg.norm(first - second) <= _GRID_TOLERANCE * np.linalg.norm(first):
                break
        self.sampled = not versions
        if self.sampled:
            rng = np.random.default_rng(seed)
            batches = [_sample(c, starts, rng) for _ in range(_BATCHES)]
            versions = [_matrix(features, starts, nodes, None) for nodes in batches]
        self.versions = np.array(versions)
        self.matrix = self.versions.mean(axis=0)

    def after(self, y: Array, time: int) -> Array:
        """Return coordinates (n, r) after `time` steps, given those after one step."""
        return y @ np.linalg.matrix_power(self.matrix, time - 1)

    def error(self, y: Array, time: int) -> float:
        """Return the relative error of the coordinates y (n, r) after `time` steps.

        It is the standard error of the samples (or half the difference of the two grids), as a root
        mean square over points and coordinates, relative to that of the coordinates.
        """
        y = y - y.mean(axis=0)
        later = self.after(y, time)
        off = [y @ np.linalg.matrix_power(T, time - 1) - later for T in self.versions]
        mean_square = float(np.mean(np.square(off)))
        if self.sampled:
            mean_square /= len(self.versions) - 1
        return float(np.sqrt(mean_square / np.mean(np.square(later)))) if later.any() else 0.0


def _sample(c: Components, starts: Array, rng: np.random.Generator) -> Array:
    """Draw points (N, m) of the steps from all starts, equally many from each."""
    each = -(-_BATCH_SAMPLES // len(starts))
    # SciPy 1.13 knows no other name of seed; N need not be a power of 2.
    with warnings.catch_warnings(action="ignore"):
        net = qmc.Sobol(c.n_features, seed=rng).random(each * len(starts))
    noise = ndtri(np.clip(net, 2.0**-40, 1 - 2.0**-40))
    p = c.transitions(np.repeat(starts, each, axis=0))
    chance = rng.random((len(noise), 1))
    j = np.minimum((p.weights.cumsum(axis=1) < chance).sum(axis=1), c.n_components - 1)
    roots = c.axes * np.sqrt(c.spreads)[:, None]
    ends = p.means[np.arange(len(noise)), j] + np.einsum("nab,nb->na", roots[j], noise)
    return c.in_data_units(ends)


def _matrix(features: CholeskyMap, starts: Array, nodes: Array, cell: float | None) -> Array:
    """Solve Y T = E: rows of Y are pivots minus the origin, of E their means after a step.

    The means are sums over the nodes of a grid with this volume of a cell, or over samples (None).
    """
    means = np.zeros((len(starts), features.n_features))
    for tile in row_tiles(len(nodes), max(1, _BLOCK_DENSITIES // len(starts))):
        weights = features.kernel.transition_density(starts, nodes[tile])
        weights *= cell or 1 / (len(nodes) * weights.mean(axis=0))
        means += weights @ features.transform(nodes[tile])
    y = features.transform(starts)
    return np.linalg.solve(y[1:] - y[0], means[1:] - means[0])
