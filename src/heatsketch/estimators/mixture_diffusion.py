"""Mixture diffusion: coordinates from a Gaussian mixture."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from heatsketch._arrays import Array, returned_for
from heatsketch._checks import check_choice, check_number, read_points, warn_of_scales
from heatsketch._messages import warn_of_rows
from heatsketch._random import seed_entropy
from heatsketch.estimators._base import Embedder, is_dask, lazily_mapped
from heatsketch.estimators.local_maps import points_at
from heatsketch.markov.new_points import fraction_less_new, warn_of_new_points
from heatsketch.mixture import CholeskyMap, MixtureKernel, TaylorMap, Whitening
from heatsketch.mixture.cholesky_map import draw
from heatsketch.mixture.fitting import Steps, descend, fit_mixture, refitted, rescaled
from heatsketch.mixture.marginal import (
    Observation,
    fit_with_gaps,
    marginal_log_density,
    marginal_places,
    marginal_slopes,
)
from heatsketch.neighbors.missing import Donors
from heatsketch.scales import RULES, rule_epsilon

_STATIONARY_POINTS = 2000  # drawn from ν, because later steps lead there
_COARSE_TOLERANCE_RATIO = 4.0  # of a second map, to estimate the error at later times
_SCALE_POINTS = 500  # for the typical distance
_SMALLEST_SINGLE_DISTANCE = 1e-25  # least typical distance for float32
_FIT_ROWS = 20_000  # points for the fit of a mixture
_MOST_COMPONENTS = 10  # among which the Bayesian information criterion chooses
_FOLDS = 5  # of training points that are left out
_POINTS_PER_COMPONENT = 10  # least number for fits without a fold
_STARTS = 2000  # drawn from the mixture, from the nearest of which a descent to a place begins
_START_NOISE = 1e-4  # beside the mixture, whose covariances may be singular, in units of ε/2
_DONORS = 15  # nearest rows by which missing entries are filled roughly
_QUANTILES = 500  # of the densities of training points that are stored
_MAPS: dict[str, Any] = {"cholesky": CholeskyMap, "taylor": TaylorMap}


@dataclass(eq=False, repr=False)
class MixtureDiffusion(Embedder):
    """Embed data by the diffusion of a Gaussian mixture, a small model that maps any point.

    By default the data are whitened first: up to ten principal components with equal variance, so
    that neither units of features nor many dimensions make every point far from every other. A
    Gaussian mixture is fitted to them. Its MGC kernel (`MixtureKernel`) defines a diffusion with
    transition densities p(x, ·). The map gives a few coordinates whose distances are the diffusion
    distances d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr), up to an error with a certified bound for
    training points and a known one for others (`distance_error`) [1]_. The model consists of the
    mixture and some training points as pivots, mostly 10 to 100 kB. The coordinates of a point
    depend on no other new point, but for their last digits. The map is a
    `heatsketch.mixture.CholeskyMap`, or a `TaylorMap`.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of coordinates, the most important first; "auto": the number that the tolerance
        needs. Fewer have a larger error, `diagnostics_["distance_error"]`. They are float32 if X
        is, unless densities in many dimensions are too small or too large for it.
    epsilon : float or {"auto", "ksum", "median", "nearest"}, default="auto"
        ε of the kernel, which falls off like exp(-|x-y|²/2ε): rules return half their value for
        exp(-|x-y|²/ε). "auto": the data are whitened, ε is half the median squared distance, and
        the unit of length is such that the root mean square of diffusion distances after a step is
        1. Otherwise the data are not whitened, and ε is in their squared units.
    mixture : int, GaussianMixture or BayesianGaussianMixture, default=None
        A fitted mixture is used as it is; an unfitted one is fitted with its own parameters. With
        either the data are not whitened, and "auto" of `epsilon` is "median". An int is the number
        of components. None: the Bayesian information criterion chooses from 1 to 10 (the search
        stops after two numbers in a row that are worse than the best). `sklearn.base.clone`, and so
        every search over parameters, drops a fit: pass ``FrozenEstimator(fitted)`` there.
    tolerance : float, default=0.1
        Largest error of a distance, as a fraction of the root mean square distance.
    time : int >= 1, default=1
        Steps of the diffusion. With one component later times have a closed form. With several they
        are computed by one fixed matrix, from quadrature for up to 3 features and from samples for
        more, with the relative error `diagnostics_["time_error"]`. The tolerance holds for the
        first step, on the training points and on 2,000 points drawn from ν. Distances shrink with
        time, so that the relative error grows, and `diagnostics_["distance_error"]` is then an
        estimate, not a bound.
    max_features : int, default=200
        Largest number of coordinates for the tolerance; a file takes 12 bytes times its square.
        Many are needed if most points are far from all others, because ε is small or many points
        are outliers.
    features : {"cholesky", "taylor"}, default="cholesky"
        The map to coordinates. "taylor": the `TaylorMap` of [1]_, §4 and §5, on its principal axes,
        for a mixture whose components share one covariance (as those fitted here then do). Its
        bound holds in a whole ball, and it takes C(m + l, l) coordinates for order l in m
        dimensions: pass ``n_components``, and at most three features or a large tolerance. Later
        times need a single component.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the fit of the mixture and of samples.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training points.
    whitening_ : Whitening or None
        The map ``whitening_(X)`` (n_samples, n_directions) to the coordinates of `kernel_`,
        `features_`, `mixture_` and `epsilon_`: `heatsketch.mixture.Whitening`. None: the data are
        not whitened.
    kernel_ : MixtureKernel
        The kernel of the mixture, with closed forms of densities, distances, anomaly scores and
        gradients.
    features_ : CholeskyMap or TaylorMap
        The map to all coordinates that the tolerance needs.
    step_matrix_ : ndarray of shape (n_map_coordinates, n_components)
        Matrix from the coordinates of `features_` to those of the embedding: later steps, and the
        choice of the first `n_components`.
    mixture_ : estimator
        The mixture, fitted or given.
    stationary_ : ndarray of shape (n_samples,)
        ν at the training points, in the coordinates of `kernel_`; NaN for those with missing
        entries.
    epsilon_ : float
        Bandwidth ε used, in the coordinates of `kernel_`.
    diagnostics_ : dict
        `mixture_components`; `bic`, the criterion for 1, 2, ... components, as far as tried;
        `n_features`, the number of coordinates that the tolerance needs; `typical_distance`, the
        root mean square distance at `time`; `distance_error`, the bound on the error of distances
        between training points, in units of the distance (at later times of several components an
        estimate, from a map with four times the tolerance); `time_error`, the relative standard
        error of the steps.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if X has names that are all strings.

    See Also
    --------
    MixtureKernel : The MGC kernel of a Gaussian mixture, in closed form.
    mixture.CholeskyMap : Coordinates whose distances approximate those of a mixture kernel.
    DiffusionMap : Embed data by the leading eigenvectors of the diffusion.

    Notes
    -----
    The whitening and the mixture are fitted to at most 20,000 points, a random sample of X that
    `random_state` chooses. The map is then fitted to all points.

    In addition to the fit of the mixture, a fit costs about r distances for each point, where r is
    the number of coordinates. `transform` takes r + 1. Each distance is a sum over pairs of
    components that are not negligible, computed in row tiles of constant memory. Distances are
    unweighted, in contrast to those of `DiffusionMap`, which are weighted by 1/π.

    References
    ----------
    .. [1] *Diffusion representation*, on the measure-based Gaussian correlation (MGC) kernel,
       equation (2.4).

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=2, dim=2, rng=0)
    >>> model = hs.MixtureDiffusion(2, random_state=0).fit(X[::2])
    >>> model.transform(X[1::2]).shape
    (250, 2)
    """

    _not_stored = ("embedding_", "stationary_", "mixture_")  # so files do not grow with n
    _offset = 0.0  # subtracted from the coordinates of the map

    n_components: int | str = "auto"
    epsilon: float | str = "auto"
    mixture: Any = None
    tolerance: float = 0.1
    time: int = 1
    _: KW_ONLY
    max_features: int = 200
    features: str = "cholesky"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture and the map to points, and embed them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points. Missing entries, NaN, are integrated out: the mixture is fitted to the entries
            that are there, and p(x, ·) is the transition density given these.
        y : ignored
            Present for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Invalid points or parameters; more `n_components` than the tolerance needs.

        Warns
        -----
        ConvergenceWarning
            The tolerance needs more than `max_features` coordinates;
            `diagnostics_["distance_error"]` is the error reached.
        ScaleWarning
            There are more than ten features, and one of them decides the leading components.
        """
        check_number(self.n_components, "n_components", low=1, integer=True, rules=("auto",))
        check_number(self.tolerance, "tolerance", low=0, open_low=True)
        self._fit_time = check_number(self.time, "time", low=1, integer=True)
        check_number(self.max_features, "max_features", low=1, integer=True)
        check_number(self.epsilon, "epsilon", low=0, open_low=True, rules=("auto", *RULES))
        check_choice(self.features, "features", tuple(_MAPS))
        X = read_points(self, X, reset=True, allow_nan=True)
        given = X.astype(np.float64, copy=False)
        gaps = np.isnan(given).any(axis=1)
        if gaps.any():
            self._refuse_gaps()
        # Rough entries, for scales and the start; the mixture is fitted to those that are there.
        points = given
        if gaps.any():
            points = Donors.of(given, _DONORS, trends=False).fill(given)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        seeds = rng.integers(2**31, size=3).tolist()
        self.diagnostics_: dict[str, Any] = {}
        self._fit_mixture(points, given, seeds[0])
        self._left_out = self._densities_left_out(_sample(points, seeds[1]), seeds[1])
        z = self._coordinates(points)
        if gaps.any():
            z[gaps] = self._means_of(given[gaps])
        self._fit_map(z, seeds[2])
        self.embedding_ = self._placed(X, gaps)
        self.stationary_ = self.kernel_.stationary(z)
        if gaps.any():
            self.stationary_[gaps] = np.nan
            self.diagnostics_["rows_with_gaps"] = int(gaps.sum())
        return self

    def _fit_mixture(self, X: Array, given: Array, seed: int) -> None:
        """Set the mixture of points (n, m), its coordinates, its ε and its kernel.

        `given` (n, m) has NaN where entries are missing, which X has filled.
        """
        sample, self.whitening_ = _sample(X, seed), None
        if self.epsilon == "auto" and not hasattr(self.mixture, "fit"):
            self.whitening_ = Whitening.from_points(sample, seed)
            if X.shape[1] > len(self.whitening_.lengths):
                warn_of_scales(X, self._result("feature_names_in_"))
        z, sample = self._coordinates(X), self._coordinates(sample)
        self.epsilon_: Any = self.epsilon
        if isinstance(self.epsilon, str):
            rule = "median" if self.epsilon == "auto" else self.epsilon
            self.epsilon_ = rule_epsilon(z, rule) / 2
        kind = "tied" if self.features == "taylor" else "full"
        if hasattr(self.mixture, "means_"):
            self.mixture_ = self.mixture
        elif hasattr(self.mixture, "fit"):
            self.mixture_ = clone(self.mixture).fit(sample)
        elif self.mixture is None:
            counts = range(1, min(_MOST_COMPONENTS, len(sample)) + 1)
            self.mixture_, bic = fit_mixture(sample, counts, seed, kind)
            shift = 0.0 if self.whitening_ is None else 2 * len(sample) * self.whitening_.log_volume
            self.diagnostics_["bic"] = [value - shift for value in bic]  # in units of the data
        else:
            count = check_number(self.mixture, "mixture", low=1, high=len(sample), integer=True)
            self.mixture_, _ = fit_mixture(sample, [count], seed, kind)
        seen = _sample(given, seed)
        if np.isnan(seen).any() and self.mixture_ is not self.mixture:
            if self.mixture_.covariances_.ndim != 3:
                raise ValueError(
                    "X has missing entries, but the mixture has no full covariances; pass "
                    "covariance_type='full', or fill the entries first."
                )
            whole = Observation.of(self.whitening_, X.shape[1])
            self.mixture_ = fit_with_gaps(self.mixture_, whole, seen)
        if self.whitening_ is not None:
            kernel = MixtureKernel.from_sklearn(self.mixture_, self.epsilon_)
            unit = _typical_distance(kernel, z, seed) ** (2 / z.shape[1])  # d² is a density
            self.whitening_ = self.whitening_.scaled(unit)
            self.mixture_ = rescaled(self.mixture_, np.full(z.shape[1], unit))
            self.epsilon_ *= unit**2
        time = self._fit_time if len(self.mixture_.weights_) == 1 else 1
        self.kernel_ = MixtureKernel.from_sklearn(self.mixture_, self.epsilon_, time=time)
        if self.kernel_.n_features != z.shape[1]:
            raise ValueError(
                f"mixture has {self.kernel_.n_features} features but X has {z.shape[1]}; pass a "
                "mixture fitted to the same features."
            )
        self.diagnostics_["mixture_components"] = self.kernel_.n_components

    def _fit_map(self, X: Array, seed: int) -> None:
        """Set the coordinates of points (n, q), after all steps, and the errors of distances."""
        typical = _typical_distance(self.kernel_, X, seed)
        tolerance, steps = self.tolerance * typical, not self._is_first_step
        if steps and self.features == "taylor":
            raise ValueError(
                f"time={self._fit_time} but the mixture has {self.kernel_.n_components} components,"
                " for which a Taylor map has no later times; pass features='cholesky', time=1 or "
                "mixture=1."
            )
        points = np.vstack([X, draw(self.kernel_, _STATIONARY_POINTS, seed)]) if steps else X
        self.features_ = features = _MAPS[self.features](max_features=int(self.max_features))
        features.fit(self.kernel_, tolerance, points)
        needed = features.n_features
        k = needed if self.n_components == "auto" else int(self.n_components)
        if not 0 < k <= needed:
            raise ValueError(
                f"n_components={self.n_components} but tolerance={self.tolerance:g} needs {needed} "
                "coordinates; pass a smaller tolerance, or fewer n_components."
            )
        error, time_error = features.error_bound, 0.0
        matrix, y, self._offset = np.eye(needed), features.transform(X), 0.0
        if self.features == "taylor":  # a Cholesky map has its origin and its axes in the points
            self._offset = y.mean(axis=0)
            y = y - self._offset
            matrix = np.linalg.svd(y, full_matrices=True)[2].T
        if steps:
            T = Steps(features, seed)
            later = T.after(y, self._fit_time)
            _, _, axes = np.linalg.svd(later - later.mean(axis=0), full_matrices=True)
            matrix = T.after(matrix, self._fit_time) @ axes.T
            time_error, d = T.error(y, self._fit_time), pdist(later[:_SCALE_POINTS])
            typical, error = float(np.sqrt(np.mean(np.square(d)))), float(d.max())
            coarse = CholeskyMap(int(self.max_features))
            coarse.fit(self.kernel_, _COARSE_TOLERANCE_RATIO * features.error_bound, points)
            if coarse.n_features:
                z = coarse.transform(X[:_SCALE_POINTS])
                d -= pdist(Steps(coarse, seed).after(z, self._fit_time))
                error = float(np.abs(d).max())
        self.step_matrix_ = np.ascontiguousarray(matrix[:, :k])  # strides change bits
        if k < needed:
            left = np.linalg.norm(y @ matrix[:, k:], axis=1).max()
            error = error + 2 * left if steps else 2 * self._missing(X).max()
        self.diagnostics_ |= {
            "typical_distance": typical,
            "n_features": needed,
            "time_error": time_error,
            "distance_error": float(error),
        }

    def _densities_left_out(self, x: Array, seed: int) -> Array:
        """Return quantiles of log ν at training points (n, m), by fits without their fold."""
        scores = self._log_density(x, self.kernel_, self.whitening_)
        enough = len(x) >= _POINTS_PER_COMPONENT * self.kernel_.n_components
        if enough and not hasattr(self.mixture, "means_"):
            z = self._coordinates(x)
            fold_of = np.random.default_rng(seed).permutation(len(x)) % _FOLDS
            for fold in range(_FOLDS):
                out = fold_of == fold
                mixture = refitted(self.mixture_, z[~out])
                kernel = MixtureKernel.from_sklearn(mixture, self.epsilon_)
                # Principal components leave out less of the points from which they were computed.
                rest = None if self.whitening_ is None else Whitening.from_points(x[~out], seed)
                scores[out] = self._log_density(x[out], kernel, rest)
        return np.quantile(scores, np.linspace(0, 1, _QUANTILES))

    def transform(self, X: Any) -> Array:
        """Embed points, new or old, each independently of the others.

        Far from the training points the error of distances may exceed the tolerance;
        `distance_error` bounds it. A warning names points with hardly any density next to that of
        the least dense training point.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            Points; missing entries, NaN, are integrated out.

        Returns
        -------
        ndarray of shape (n_new_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazily_mapped(self, X)
        points = read_points(self, X, reset=False, allow_nan=True)
        gaps = np.isnan(points).any(axis=1)
        if not gaps.all():
            density = self._log_density(points[~gaps], self.kernel_, self.whitening_)
            warn_of_new_points(self._left_out, density)
        return returned_for(self._placed(points, gaps), X)

    def novelty(self, X: Any) -> Array:
        """Compute the novelty of points compared with the training points, from 0 to 1.

        The novelty is the fraction of training points with a higher density (`score_samples`) when
        they are left out. Typical points get 0.5; 1 % of points from the same distribution exceed
        0.99; points outside the data get 1. Training points are left out by fifths: the fit of the
        mixture continues from its solution without them. (A mixture that was passed fitted is used
        without change.)

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_new_samples,)
            Novelty of each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False)
        return fraction_less_new(self._left_out, self.score_samples(X))

    def distance_error(self, X: Any) -> Array:
        """Return a bound on the error of each point, in units of the distance.

        The distance between two points is too short by at most the sum of their errors, and never
        too long. At later times of several components the errors are not known.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_new_samples,)
            Bound of each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit; `time` > 1
            with several components.
        """
        check_is_fitted(self)
        if not self._is_first_step:
            raise ValueError(
                f"At time={self._fit_time} of {self.kernel_.n_components} components the error of "
                "a point is not known; use the estimate diagnostics_['distance_error'] of the fit."
            )
        return self._missing(self._coordinates(read_points(self, X, reset=False)))

    def score_samples(self, X: Any) -> Array:
        """Return log ν(x), the logarithm of the stationary density, in units of the data.

        Principal components that whitening leaves out contribute a normal density of their own.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            Points; of missing entries, NaN, the density is that of the others.

        Returns
        -------
        ndarray of shape (n_new_samples,)
            Logarithm of the density at each point.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False, allow_nan=True)
        if not np.isnan(X).any():
            return self._log_density(X, self.kernel_, self.whitening_)
        seen = Observation.of(self.whitening_, X.shape[1])
        return marginal_log_density(self.kernel_, seen, X.astype(np.float64))

    def sensitivity(self, X: Any) -> Array:
        """Compute how the coordinates of each point change with its features, in closed form.

        A large derivative says that this feature makes the point be where it is, rather than beside
        it. Features in different units compare after multiplication by their standard deviations.

        Parameters
        ----------
        X : array-like of shape (m_samples, n_features)
            Points, new ones or training points; missing entries, NaN, are integrated out, and the
            derivatives by these are 0.

        Returns
        -------
        ndarray of shape (m_samples, n_components, n_features)
            Derivatives of `transform`, in units of the coordinates by those of the features.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.

        Notes
        -----
        The cost is that of `transform`, times the number of coordinates of the mixture.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.random.default_rng(0).uniform(size=(300, 2)) * [5, 0.1]
        >>> model = hs.MixtureDiffusion(1, epsilon="median", random_state=0).fit(X)
        >>> S = model.sensitivity(X)
        >>> S.shape, bool(np.abs(S[:, 0, 0]).mean() > np.abs(S[:, 0, 1]).mean())
        ((300, 1, 2), True)
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False, allow_nan=True)
        gaps = np.isnan(X).any(axis=1)
        found = np.empty((len(X), self._n_features_out, X.shape[1]))
        if gaps.any():
            self._refuse_gaps()
            seen = Observation.of(self.whitening_, X.shape[1])
            slopes = marginal_slopes(self.features_, seen, X[gaps].astype(np.float64))
            found[gaps] = self.step_matrix_.T @ slopes
        if not gaps.all():
            slopes = self._slopes(self._coordinates(X[~gaps]))
            found[~gaps] = slopes if self.whitening_ is None else slopes @ self.whitening_.slopes
        return found

    def inverse_transform(self, Y: Any) -> Array:
        """Return points with given coordinates, by the derivatives of the coordinates.

        Levenberg and Marquardt's descent leads to the nearest place that a point has, from a local
        linear fit to 2,000 points drawn from the mixture, then from the nearest of these. Where no
        two points have the same coordinates this is the point itself, up to the principal
        components that whitening leaves out. With fewer coordinates than features many points share
        them; the one returned is near the mean of those that the mixture makes likely.

        Parameters
        ----------
        Y : array-like of shape (m_samples, n_components)
            Places, in the coordinates of `embedding_`.

        Returns
        -------
        ndarray of shape (m_samples, n_features)
            Points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; places that are not a finite table of as many columns as coordinates.

        Warns
        -----
        ScaleWarning
            Places farther from that of the point returned than the `tolerance`; points with hardly
            any density next to that of the least dense training point.

        Notes
        -----
        The cost is that of `transform` of 2,000 points, and of some ten or twenty calls of
        `sensitivity`.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=2, dim=2, rng=0)
        >>> model = hs.MixtureDiffusion(random_state=0).fit(X)
        >>> bool(np.allclose(model.inverse_transform(model.transform(X)), X))
        True
        """
        Y = self._read_places(Y)
        length, typical = np.sqrt(self.epsilon_), self.diagnostics_["typical_distance"]

        def place(z: Array) -> Array:  # units in which places and slopes are about 1
            return self._places(z * length) / typical

        def slopes(z: Array) -> Array:
            return self._slopes(z * length) * (length / typical)

        Y = Y / typical
        drawn = draw(self.kernel_, _STARTS, 0, _START_NOISE) / length
        places = place(drawn)
        tolerance, z = self._fitted_as.tolerance, np.empty((len(Y), drawn.shape[1]))
        off = np.full(len(Y), np.inf)
        for starts in (points_at(places, drawn, Y), drawn[cKDTree(places).query(Y)[1]]):
            rows = np.flatnonzero(off > tolerance)
            if len(rows):
                found, left = descend(place, slopes, starts[rows], Y[rows])
                better = left < off[rows]
                z[rows[better]], off[rows[better]] = found[better], left[better]
        if len(missed := np.flatnonzero(off > tolerance)):
            warn_of_rows(
                missed,
                "have places that no point was found to have: those of the points returned are up "
                f"to {off.max():.2g} typical distances away, more than tolerance={tolerance:g}.",
            )
        z = z * length
        X = z if self.whitening_ is None else self.whitening_.inverse(z)
        warn_of_new_points(self._left_out, self._log_density(X, self.kernel_, self.whitening_))
        return X

    def _marginal_embedding(self, X: Array) -> Array:
        """Return the coordinates of points with missing entries (n, k), in closed form."""
        self._refuse_gaps()
        seen = Observation.of(self.whitening_, X.shape[1])
        return marginal_places(self.features_, seen, X) @ self.step_matrix_

    def _refuse_gaps(self) -> None:
        """Raise unless the map has a rule for missing entries."""
        features = self._fitted_as.features
        if features != "cholesky":
            raise ValueError(
                f"X has missing entries, but features={features!r} has no rule for them; pass "
                "features='cholesky', or fill the entries first."
            )

    def _means_of(self, X: Array) -> Array:
        """Return the mean coordinates (n, q) of points, given the entries that are there."""
        kernel, seen = self.kernel_, Observation.of(self.whitening_, X.shape[1])
        found = np.empty((len(X), kernel.n_features))
        for rows in seen.tiles(len(X), kernel.n_components):
            log_joint, means, _ = seen.posteriors(
                X[rows], kernel.weights, kernel.means, kernel.covariances
            )
            found[rows] = np.einsum("nk,nkq->nq", softmax(log_joint, axis=1), means)
        return found

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _log_density(self, X: Array, kernel: MixtureKernel, rest: Whitening | None) -> Array:
        """Return log ν at points (n, m), in units of the data; `rest` has components left out."""
        inside = kernel.log_stationary(self._coordinates(X))
        if self.whitening_ is None or rest is None:
            return inside
        return inside + self.whitening_.log_volume + rest.log_rest(X)

    def _coordinates(self, X: Array) -> Array:
        """Return points (n, m) in the coordinates of the kernel, which computes in float64."""
        return X if self.whitening_ is None else self.whitening_(X)

    @property
    def _fit_times(self) -> Any:
        return (self._fit_time,)

    @property
    def _is_first_step(self) -> bool:
        """Whether the coordinates are those of the map, without further steps."""
        return bool(self.kernel_.time == self._fit_time)

    def _placed(self, X: Array, gaps: Array) -> Array:
        """Return the coordinates of points (n, m), of which some have gaps."""
        dtype, typical = X.dtype, self.diagnostics_["typical_distance"]
        # In many dimensions densities may be too small or too large for float32.
        if not _SMALLEST_SINGLE_DISTANCE < typical < 1 / _SMALLEST_SINGLE_DISTANCE:
            dtype = np.dtype(np.float64)
        if not gaps.any():
            return self._places(self._coordinates(X)).astype(dtype, copy=False)
        Y = np.empty((len(X), self.step_matrix_.shape[1]), dtype)
        Y[gaps] = self._marginal_embedding(X[gaps].astype(np.float64))
        if not gaps.all():
            Y[~gaps] = self._places(self._coordinates(X[~gaps]))
        return Y

    def _places(self, z: Array) -> Array:
        return (self.features_.transform(z) - self._offset) @ self.step_matrix_

    def _slopes(self, z: Array) -> Array:
        """Return the derivatives (n, k, q) of places by coordinates of the kernel."""
        return self.step_matrix_.T @ self.features_.gradient(z)

    def _missing(self, X: Array) -> Array:
        y = self.features_.transform(X) - self._offset
        dropped = y - (y @ self.step_matrix_) @ self.step_matrix_.T
        return np.sqrt(self.features_.residual(X) ** 2 + np.square(dropped).sum(axis=1))

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether a fit has ended; files have no embedding."""
        return "step_matrix_" in vars(self)

    @property
    def _n_features_out(self) -> int:
        return self.step_matrix_.shape[1]


def _sample(X: Array, seed: int) -> Array:
    """Return the points for the fit of a mixture: all or a random sample, in their order."""
    return X[np.sort(np.random.default_rng(seed).permutation(len(X))[:_FIT_ROWS])]


def _typical_distance(kernel: MixtureKernel, X: Array, seed: int) -> float:
    """Return the root mean square diffusion distance of points, or raise if they do not differ."""
    rows = X[np.random.default_rng(seed).permutation(len(X))[:_SCALE_POINTS]]
    d2 = kernel.squared_distance(rows, rows)
    typical = float(np.sqrt(d2.sum() / max(1, np.count_nonzero(d2))))
    if typical == 0:
        raise ValueError(
            "All points have the same transition densities up to rounding; pass points that "
            "differ, or a smaller epsilon."
        )
    return typical
