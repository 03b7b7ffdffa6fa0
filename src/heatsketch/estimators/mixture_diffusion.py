"""Mixture diffusion: coordinates from a Gaussian mixture, which needs no training points later."""

import time as clock
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from heatsketch import memory
from heatsketch._array import seed_entropy
from heatsketch._checks import check_choice, check_number, warn_of_scales
from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.estimators._mixture_facts import MixtureFacts
from heatsketch.estimators._mixture_fit import (
    densities_left_out,
    fitted_map,
    some,
    typical_distance,
    warn_of_errors,
)
from heatsketch.mixture import MixtureKernel, Whitening
from heatsketch.mixture.fitting import best_mixture, fit_mixture, rescaled
from heatsketch.mixture.maps import draw
from heatsketch.mixture.steps import Steps
from heatsketch.scales.bandwidth import RULES, rule_epsilon

_STATIONARY_POINTS = 2000  # drawn from ν, where later steps lead: the map has to hold there, too
_COARSE_TOLERANCE_RATIO = 4.0  # of a second map, from which the error at later times is estimated
_SCALE_POINTS = 500  # whose distances are looked at at later times
_ROUNDING = 1e-9  # of a tolerance


class MixtureDiffusion(MixtureFacts):
    """Embed data by the diffusion of a Gaussian mixture: a small model that maps any point.

    By default the data are whitened: up to ten principal components, each of the same variance, so
    that neither units of features nor many dimensions make every point far from every other. They
    become a Gaussian mixture, the mixture its MGC kernel (`MixtureKernel`), and the kernel a few
    coordinates whose distances are the diffusion distances d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr),
    up to an error that is certified for training points and known for others (`distance_error`).
    The model is the mixture and some pivots, without the training points, mostly 10 to 100 kB. The
    coordinates of a point depend on no other point. *Diffusion representation*; the map is
    `heatsketch.mixture.CholeskyMap`.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of coordinates, the most important first; "auto": as many as the tolerance needs.
        Fewer have a larger error, `diagnostics_["distance_error"]`. They are float32 if X is, as
        far as float32 can hold them (in many dimensions densities are tiny, or huge).
    epsilon : float, "auto", "ksum", "median" or "nearest", default "auto"
        ε of the kernel, which falls off like exp(-|x-y|²/2ε): rules return half their value for
        exp(-|x-y|²/ε). "auto": the data are whitened, and ε is half the median squared distance
        then; the unit of length is such that the root mean square of diffusion distances after a
        step is 1. With anything else the data stay as they are, and ε is in their squared units.
    mixture : None, int, or GaussianMixture or BayesianGaussianMixture, default None
        A fitted mixture is used as it is; one that is not fitted is fitted with its own
        parameters; for neither are the data whitened, and "auto" is "median" then. An int is the
        number of components; None: the Bayesian information criterion chooses from 1 to 10 (the
        search stops after two numbers in a row that are worse than the best).
        `sklearn.base.clone`, and so every search over parameters, forgets a fit: pass
        ``FrozenEstimator(fitted)`` there.
    tolerance : float, default 0.1
        Largest error of a distance, as a share of the root mean square distance.
    time : int >= 1, default 1
        Steps of the diffusion. Later times are in closed form for one component; for several they
        are computed by one fixed matrix, from quadrature for up to 3 features and from samples for
        more, with the relative error `diagnostics_["time_error"]`. The tolerance holds for the
        first step, on the training points and on 2,000 points drawn from ν; distances shrink with
        time, so that the relative error grows, and `diagnostics_["distance_error"]` is estimated
        then, not certified.
    max_features : int, default 200
        Largest number of coordinates for the tolerance; a file takes 12 bytes times its square.
        Many are needed where most points are far from all others: ε is small, or many are outliers.
    random_state : int, RandomState, Generator or None, default None
        For the fit of the mixture and for samples.

    Attributes
    ----------
    embedding_ : array (n, k)
    whitening_ : Whitening or None
        The map ``whitening_(X)`` (n, q) to the coordinates of `kernel_`, `features_`, `mixture_`
        and `epsilon_`: `heatsketch.mixture.Whitening`. None: those of the data.
    kernel_ : MixtureKernel
        Closed forms: densities, distances, anomaly scores, gradients.
    features_ : CholeskyMap
    step_matrix_ : array (r, k)
        Maps the coordinates of `features_` to those of the embedding: later steps, and the choice
        of the first `n_components`.
    mixture_ : estimator
        The mixture, fitted or given.
    stationary_ : array (n,)
        ν at the training points, in the coordinates of `kernel_`.
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
    >>> model = hs.MixtureDiffusion(2, random_state=0).fit(X[::2])
    >>> model.transform(X[1::2]).shape
    (250, 2)
    """

    _not_stored = ("embedding_", "stationary_", "mixture_")  # in files, whose size is without n

    def __init__(
        self,
        n_components: int | str = "auto",
        epsilon: float | str = "auto",
        mixture: Any = None,
        tolerance: float = 0.1,
        time: int = 1,
        *,
        max_features: int = 200,
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
        ScaleWarning
            Of more than ten features one decides which components are the leading ones.
        """
        self._check_parameters()
        X = read_points(self, X, reset=True)
        parameters = self.get_params(deep=False)
        memory.check(*X.shape, **memory.options_of(X, "mixture-diffusion", parameters))
        points = X.astype(np.float64, copy=False)
        rng = np.random.default_rng(seed_entropy(self.random_state))
        started = clock.perf_counter()
        seeds = rng.integers(2**31, size=3).tolist()
        self.diagnostics_: dict[str, Any] = {}
        self._fit_mixture(points, seeds[0])
        self._left_out = densities_left_out(self, some(points, seeds[1]), seeds[1])
        fitted = clock.perf_counter()
        z = self._coordinates(points)
        self._choose_coordinates(z, seeds[2])
        self.embedding_ = self._rows_of(z, X.dtype)
        self.stationary_ = self.kernel_.stationary(z)
        self.diagnostics_ |= {
            "mixture_seconds": fitted - started,
            "embed_seconds": clock.perf_counter() - fitted,
        }
        return self

    def _check_parameters(self) -> None:
        check_number(self.n_components, "n_components", low=1, integer=True, rules=("auto",))
        check_number(self.tolerance, "tolerance", low=0, open_low=True)
        check_number(self.time, "time", low=1, integer=True)
        check_number(self.max_features, "max_features", low=1, integer=True)
        if isinstance(self.epsilon, str):
            check_choice(self.epsilon, "epsilon", ("auto", *RULES))
        else:
            check_number(self.epsilon, "epsilon", low=0, open_low=True)

    def _fit_mixture(self, X: Array, seed: int) -> None:
        """Set the mixture of points (n, m), its coordinates, its ε and its kernel."""
        sample, self.whitening_ = some(X, seed), None
        own = hasattr(self.mixture, "fit") or hasattr(self.mixture, "means_")
        if self.epsilon == "auto" and not own:
            self.whitening_ = Whitening.of(sample, seed)
            if X.shape[1] > self.whitening_.n_directions:
                warn_of_scales(X, getattr(self, "feature_names_in_", None))
        z = self._coordinates(X)
        if isinstance(self.epsilon, str):
            rule = "median" if self.epsilon == "auto" else self.epsilon
            self.epsilon_ = rule_epsilon(z, rule) / 2
        else:
            self.epsilon_ = float(self.epsilon)
        self.mixture_ = self._fitted_mixture(self._coordinates(sample), seed)
        if self.whitening_ is not None:
            kernel = MixtureKernel.from_sklearn(self.mixture_, self.epsilon_)
            unit = typical_distance(kernel, z, seed) ** (2 / z.shape[1])  # d² is a density
            self.whitening_ = self.whitening_.scaled(unit)
            self.mixture_ = rescaled(self.mixture_, np.full(z.shape[1], unit))
            self.epsilon_ *= unit**2
        self._set_kernel(z.shape[1])

    def _fitted_mixture(self, sample: Array, seed: int) -> Any:
        if hasattr(self.mixture, "means_"):
            return self.mixture
        if self.mixture is None:
            best, bic = best_mixture(sample, seed)
            shift = 0.0 if self.whitening_ is None else 2 * len(sample) * self.whitening_.log_volume
            self.diagnostics_["bic"] = [value - shift for value in bic]  # in units of the data
            return best
        if hasattr(self.mixture, "fit"):
            return clone(self.mixture).fit(sample)
        count = check_number(self.mixture, "mixture", low=1, high=len(sample), integer=True)
        return fit_mixture(sample, count, seed)[0]

    def _set_kernel(self, m: int) -> None:
        self.kernel_ = MixtureKernel.from_sklearn(self.mixture_, self.epsilon_)
        if self.kernel_.n_features != m:
            raise ValueError(
                f"mixture has {self.kernel_.n_features} features but X has {m}; pass a mixture "
                "fitted to the same features."
            )
        if self.kernel_.n_components == 1 and self.time > 1:
            self.kernel_ = MixtureKernel.from_sklearn(
                self.mixture_, self.epsilon_, time=int(self.time)
            )
        self.diagnostics_["mixture_components"] = self.kernel_.n_components

    def _choose_coordinates(self, X: Array, seed: int) -> None:
        typical = typical_distance(self.kernel_, X, seed)
        tolerance = self.tolerance * typical
        steps = not self._is_first_step
        points = np.vstack([X, draw(self.kernel_, _STATIONARY_POINTS, seed)]) if steps else X
        features = fitted_map(self.kernel_, tolerance, points, self.max_features)
        self.features_ = features
        if features.error_bound > (1 + _ROUNDING) * tolerance:
            warn_of_errors(self)
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
        coarse = fitted_map(
            self.kernel_,
            _COARSE_TOLERANCE_RATIO * self.features_.error_bound,
            points,
            self.max_features,
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
        kept, dropped = self.step_matrix_[:, :k], self.step_matrix_[:, k:]
        self.step_matrix_ = np.ascontiguousarray(kept)  # as after a file: strides change bits
        return dropped
