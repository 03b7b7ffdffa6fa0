"""Mixture diffusion: coordinates from a Gaussian mixture, which needs no training points later."""

import time as clock
import warnings
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from heatsketch import memory
from heatsketch._array import seed_entropy
from heatsketch._checks import ConvergenceWarning, check_choice, check_number
from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.estimators._embedder import Embedder
from heatsketch.markov.novelty import LeftOut
from heatsketch.mixture import CholeskyMap, MixtureKernel
from heatsketch.mixture.fitting import best_mixture, fit_mixture, refitted
from heatsketch.mixture.maps import draw
from heatsketch.mixture.steps import Steps
from heatsketch.scales.bandwidth import RULES, rule_epsilon

_STATIONARY_POINTS = 2000  # drawn from ν, where later steps lead: the map has to hold there, too
_SMALLEST_SINGLE_DISTANCE = 1e-25  # typical distance from which on float32 has enough digits
_COARSE_TOLERANCE_RATIO = 4.0  # of a second map, from which the error at later times is estimated
_FOLDS = 5  # in which training points are left out
_POINTS_PER_COMPONENT = 10  # from which on parts of the points are enough to fit the mixture
_QUANTILES = 500  # of the densities of training points that are kept
_SCALE_POINTS = 500  # whose distances give the typical distance


class MixtureDiffusion(Embedder):
    """Embed data by the diffusion of a Gaussian mixture: a small model that maps any point.

    The data become a Gaussian mixture, the mixture its MGC kernel (`MixtureKernel`), and the kernel
    a feature map of few coordinates whose distances are the diffusion distances
    d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr), up to an error that is certified for the training
    points and known for any other point (`distance_error`). The model consists of the mixture and
    some pivots, without the training points; the coordinates of a point depend on no other point.
    *Diffusion representation*; the map is `heatsketch.mixture.CholeskyMap`.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of coordinates, the most important first; "auto": as many as the tolerance needs.
        Fewer have a larger error, `diagnostics_["distance_error"]`. They are float32 if X is, as
        far as float32 can hold them (in many dimensions densities are tiny, or huge).
    epsilon : float, "ksum", "median" or "nearest", default "ksum"
        ε of the kernel, in squared data units. The kernel falls off like exp(-|x-y|²/2ε), so the
        rules return half their value for exp(-|x-y|²/ε).
    mixture : None, int, or GaussianMixture or BayesianGaussianMixture, default None
        A fitted mixture is used as it is; one that is not fitted is fitted with its own
        parameters. An int is the number of components; None: the Bayesian information criterion
        chooses from 1 to 10 (the search stops after two numbers in a row that are worse than the
        best). `sklearn.base.clone`, and so every search over parameters, forgets a fit: pass
        ``FrozenEstimator(fitted)`` there.
    tolerance : float, default 0.01
        Largest error of a distance, as a share of the root mean square distance.
    time : int >= 1, default 1
        Steps of the diffusion. Later times are in closed form for one component; for several they
        are computed by one fixed matrix, from quadrature for up to 3 features and from samples for
        more, with the relative error `diagnostics_["time_error"]`. The tolerance holds for the
        first step, on the training points and on 2,000 points drawn from ν; distances shrink with
        time, so that the relative error grows, and `diagnostics_["distance_error"]` is estimated
        then, not certified.
    max_features : int, default 500
        Largest number of coordinates for the tolerance. Data in many dimensions need many if ε is
        small, as nearly every point is far from every other then.
    random_state : int, RandomState, Generator or None, default None
        For the fit of the mixture and for samples.

    Attributes
    ----------
    embedding_ : array (n, k)
    kernel_ : MixtureKernel
        Closed forms: densities, distances, anomaly scores, gradients.
    features_ : CholeskyMap
    step_matrix_ : array (r, k)
        Maps the coordinates of `features_` to those of the embedding: later steps, and the choice
        of the first `n_components`.
    mixture_ : estimator
        The mixture, fitted or given.
    stationary_ : array (n,)
        ν at the training points (`score_samples` returns log ν at any points).
    epsilon_ : float
    diagnostics_ : dict
        `mixture_components`; `bic` of 1, 2, ... components, as far as they were tried;
        `n_features`, the number of coordinates that the tolerance needs; `typical_distance`, the
        root mean square distance at `time`; `distance_error`, the bound on the error of distances
        between training points, in units of the distance (at later times of several components an
        estimate, from a map with four times the tolerance); `time_error`, the relative standard
        error of the steps; seconds per stage.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Cost of a fit in addition to that of the mixture: about r distances for each point, r the number
    of coordinates; of `transform` r + 1, each a sum over pairs of components that are not
    negligible, in row tiles of constant memory. Distances are unweighted, in contrast to those of
    `DiffusionMap`, which are weighted by 1/π.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=2, dim=2, rng=0)
    >>> model = hs.MixtureDiffusion(2, random_state=0).fit(X[:250])
    >>> model.transform(X[250:]).shape
    (250, 2)
    """

    _left_out: LeftOut | None

    def __init__(
        self,
        n_components: int | str = "auto",
        epsilon: float | str = "ksum",
        mixture: Any = None,
        tolerance: float = 0.01,
        time: int = 1,
        *,
        max_features: int = 500,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.mixture = mixture
        self.tolerance = tolerance
        self.time = time
        self.max_features = max_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit mixture and map to the points X, array or DataFrame (n, m), and embed them.

        Raises
        ------
        ValueError
            Bad points or parameters; more `n_components` than the tolerance needs.

        Warns
        -----
        ConvergenceWarning
            The tolerance needs more than `max_features` coordinates;
            `diagnostics_["distance_error"]` is the error that was reached.
        """
        self._check_parameters()
        X = read_points(self, X, reset=True)
        parameters = self.get_params(deep=False)
        memory.check(*X.shape, **memory.options_of(X, "mixture-diffusion", parameters))
        points = X.astype(np.float64, copy=False)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        started = clock.perf_counter()
        self.epsilon_ = self._resolve_epsilon(points)
        self.diagnostics_: dict[str, Any] = {}
        self.mixture_ = self._fitted_mixture(points, int(rng.integers(2**31)))
        self._set_kernel()
        self._left_out = self._densities_left_out(points, int(rng.integers(2**31)))
        fitted = clock.perf_counter()
        self._choose_coordinates(points, int(rng.integers(2**31)))
        self.embedding_ = self._rows_of(points, X.dtype)
        self.stationary_ = self.kernel_.stationary(points)
        self.diagnostics_ |= {
            "mixture_seconds": fitted - started,
            "embed_seconds": clock.perf_counter() - fitted,
        }
        return self

    def transform(self, X: Any) -> Array:
        """Embed points, new or old: (n, m) -> (n, k), each independently of the others.

        Where there were no training points, the error of distances may exceed the tolerance;
        `distance_error` bounds it. A warning names points with hardly any density there, next to
        the training point with the least.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False)
        if self._left_out is not None:
            self._left_out.warn(self.kernel_.log_stationary(X))
        return self._rows_of(X.astype(np.float64, copy=False), X.dtype)

    def novelty(self, X: Any) -> Array:
        """Say of points (n, m) how new they are next to the training points: (n,), from 0 to 1.

        It is the share of the training points that are less new, by the density ν: 0.5 for the
        usual point, above 0.99 for one in a hundred points of the same law, and 1 outside. Each
        training point is left out: its density is that of the mixture after steps of the fit
        without a fifth of the points. (A mixture that was fitted before is used as it is.)
        """
        check_is_fitted(self)
        if self._left_out is None:
            raise ValueError(
                "The file of this model has no densities of training points, as it was written by "
                "an earlier version; fit and save the model again."
            )
        return self._left_out.share(self.score_samples(X))

    def distance_error(self, X: Any) -> Array:
        """Return the error of each point, (n,), in units of the distance.

        The distance between two points is too short by at most the sum of their errors, and never
        too long. At later times of several components the errors are not known.

        Raises
        ------
        ValueError
            `time` > 1 with several components.
        """
        check_is_fitted(self)
        if not self._is_first_step:
            raise ValueError(
                f"At time={self.time} of {self.kernel_.n_components} components the error of a "
                "point is not known; use the estimate diagnostics_['distance_error'] of the fit."
            )
        X = read_points(self, X, reset=False)
        return self._missing(X.astype(np.float64, copy=False))

    def score_samples(self, X: Any) -> Array:
        """Return log ν(x), (n,), the logarithm of the stationary density."""
        check_is_fitted(self)
        return self.kernel_.log_stationary(read_points(self, X, reset=False))

    def _check_parameters(self) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True, rules=("auto",))
        check_number(self.tolerance, "tolerance", low=0, open_low=True)
        check_number(self.time, "time", low=1, integer=True)
        check_number(self.max_features, "max_features", low=1, integer=True)
        if isinstance(self.epsilon, str):
            check_choice(self.epsilon, "epsilon", RULES)
        else:
            check_number(self.epsilon, "epsilon", low=0, open_low=True)

    def _resolve_epsilon(self, X: Array) -> float:
        if isinstance(self.epsilon, str):
            return rule_epsilon(X, self.epsilon) / 2
        return float(self.epsilon)

    def _fitted_mixture(self, X: Array, seed: int) -> Any:
        if hasattr(self.mixture, "means_"):
            return self.mixture
        rows = np.random.default_rng(seed).permutation(len(X))[: memory.MIXTURE_FIT_ROWS]
        sample = X[np.sort(rows)]
        if self.mixture is None:
            best, self.diagnostics_["bic"] = best_mixture(sample, seed)
            return best
        if hasattr(self.mixture, "fit"):
            return clone(self.mixture).fit(sample)
        count = check_number(self.mixture, "mixture", low=1, high=len(X), integer=True)
        return fit_mixture(sample, count, seed)[0]

    def _set_kernel(self) -> None:
        self.kernel_ = MixtureKernel.from_sklearn(self.mixture_, self.epsilon_)
        if self.kernel_.n_features != self.n_features_in_:
            raise ValueError(
                f"mixture has {self.kernel_.n_features} features but X has "
                f"{self.n_features_in_}; pass a mixture fitted to the same features."
            )
        if self.kernel_.n_components == 1 and self.time > 1:
            self.kernel_ = MixtureKernel.from_sklearn(
                self.mixture_, self.epsilon_, time=int(self.time)
            )
        self.diagnostics_["mixture_components"] = self.kernel_.n_components

    def _densities_left_out(self, X: Array, seed: int) -> LeftOut:
        """Return log ν at training points, each without its fifth of them."""
        rows = np.random.default_rng(seed).permutation(len(X))[: memory.MIXTURE_FIT_ROWS]
        x = X[rows]
        few = len(x) < _POINTS_PER_COMPONENT * self.kernel_.n_components
        if few or hasattr(self.mixture, "means_"):
            log_density = self.kernel_.log_stationary(x)
        else:
            log_density = np.empty(len(x))
            for fold in range(_FOLDS):
                part = np.arange(len(x)) % _FOLDS == fold
                mixture = refitted(self.mixture_, x[~part])
                kernel = MixtureKernel.from_sklearn(mixture, self.epsilon_)
                log_density[part] = kernel.log_stationary(x[part])
        return LeftOut.of(log_density).thinned(_QUANTILES)

    def _choose_coordinates(self, X: Array, seed: int) -> None:
        rows = X[np.random.default_rng(seed).permutation(len(X))[:_SCALE_POINTS]]
        d2 = self.kernel_.squared_distance(rows, rows)
        typical = float(np.sqrt(d2.sum() / max(1, np.count_nonzero(d2))))
        if typical == 0:
            raise ValueError(
                "All points have the same transition densities up to rounding; pass points that "
                "differ, or a smaller epsilon."
            )
        features = CholeskyMap(int(self.max_features))
        steps = not self._is_first_step
        points = np.vstack([X, draw(self.kernel_, _STATIONARY_POINTS, seed)]) if steps else X
        self.features_ = features.fit(
            self.kernel_, tolerance=self.tolerance * typical, points=points
        )
        if features.n_features == 0:
            raise ValueError(
                f"tolerance={self.tolerance:g} needs no coordinates, as all distances are below "
                "it; pass a smaller tolerance."
            )
        self.step_matrix_ = np.eye(features.n_features)
        self.diagnostics_ |= {
            "typical_distance": typical,
            "n_features": features.n_features,
            "time_error": 0.0,
        }
        if steps:
            error = self._take_steps(X, points, seed)
        dropped = None if self.n_components == "auto" else self._keep(int(self.n_components))
        if self._is_first_step:
            error = features.error_bound
            if self.step_matrix_.shape[1] < features.n_features:
                error = 2 * float(self._missing(X).max())
        elif dropped is not None:
            left = features.transform(X) @ dropped
            error += 2 * float(np.sqrt(np.square(left).sum(axis=1)).max())
        self.diagnostics_["distance_error"] = error

    @property
    def _is_first_step(self) -> bool:
        """Whether the coordinates are those of the map, without further steps."""
        return bool(self.time == 1 or self.kernel_.n_components == 1)

    def _take_steps(self, X: Array, points: Array, seed: int) -> float:
        """Step the coordinates to `time`; return an estimate of the error of their distances."""
        t = int(self.time)
        steps = Steps.of(self.features_, seed)
        y = self.features_.transform(X)
        later = steps.after(y, t)
        _, _, axes = np.linalg.svd(later - later.mean(axis=0), full_matrices=True)
        self.step_matrix_ = steps.after(np.eye(y.shape[1]), t) @ axes.T
        d = pdist(later[:_SCALE_POINTS])
        self.diagnostics_["time_error"] = steps.error(y, t)
        self.diagnostics_["typical_distance"] = float(np.sqrt(np.mean(np.square(d))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coarse = CholeskyMap(int(self.max_features)).fit(
                self.kernel_,
                tolerance=_COARSE_TOLERANCE_RATIO * self.features_.error_bound,
                points=points,
            )
        if coarse.n_features == 0:
            return float(d.max())
        other = Steps.of(coarse, seed).after(coarse.transform(X[:_SCALE_POINTS]), t)
        return float(np.abs(pdist(other) - d).max())

    def _keep(self, k: int) -> Array:
        """Keep the first k columns of the step matrix, and return the others."""
        most = self.step_matrix_.shape[1]
        if k > most:
            raise ValueError(
                f"n_components={k} but tolerance={self.tolerance:g} needs only {most} coordinates; "
                "pass a smaller tolerance, or fewer n_components."
            )
        self.step_matrix_, dropped = self.step_matrix_[:, :k], self.step_matrix_[:, k:]
        return dropped

    def _rows_of(self, X: Array, dtype: Any) -> Array:
        # In many dimensions densities may be too small or too large for float32.
        if (
            not _SMALLEST_SINGLE_DISTANCE
            < self.diagnostics_["typical_distance"]
            < 1 / _SMALLEST_SINGLE_DISTANCE
        ):
            dtype = np.float64
        return (self.features_.transform(X) @ self.step_matrix_).astype(dtype, copy=False)

    def _missing(self, X: Array) -> Array:
        left = self.features_.residual(X)
        if self.step_matrix_.shape[1] == self.features_.n_features:
            return left
        y = self.features_.transform(X)
        dropped = y - (y @ self.step_matrix_) @ self.step_matrix_.T
        return np.sqrt(left**2 + np.square(dropped).sum(axis=1))

    @property
    def _n_features_out(self) -> int:
        return self.step_matrix_.shape[1]
