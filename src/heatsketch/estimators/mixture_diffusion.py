"""Mixture diffusion: coordinates from a Gaussian mixture, of a cost that does not depend on n."""

from __future__ import annotations

import logging
import time as clock
import warnings
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from heatsketch import memory
from heatsketch._array import seed_entropy
from heatsketch._checks import ConvergenceWarning, check_choice, check_number
from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.mixture import CholeskyMap, MixtureKernel
from heatsketch.mixture.maps import draw
from heatsketch.mixture.steps import Steps
from heatsketch.scales.bandwidth import RULES, rule_epsilon

logger = logging.getLogger("heatsketch")

COMPONENTS = range(1, 11)  # among which the Bayesian information criterion chooses
_PATIENCE = 2  # numbers of components in a row that are worse than the best before
_DRAWN = 2000  # points from ν, where later steps go: the map has to hold there, too
_SMALLEST = 1e-25  # typical distance that float32 still holds with digits to spare
_COARSER = 4.0  # a map whose difference says how good the one at hand is at later times
_SCALE_ROWS = 500  # distances between so many points say what a typical one is


class MixtureDiffusion(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed data by the diffusion of a Gaussian mixture: a small model that maps any point.

    The data become a Gaussian mixture, the mixture its MGC kernel (`MixtureKernel`), and the kernel
    a feature map of few coordinates whose distances are the diffusion distances
    d(x, z) = |p(x, ·) - p(z, ·)| in L²(dr), up to a tolerance that is certified for the training
    points and known for any other (`distance_error`). The model holds the mixture and some pivots,
    no training points; a point is mapped by itself, the same today and next year. *Diffusion
    representation*; the map is `heatsketch.mixture.CholeskyMap`.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Coordinates, the most important first; "auto": as many as the tolerance takes. Fewer leave
        more out: `diagnostics_["distance_error"]` says how much. Given float32 they are float32,
        where that can hold them (in many dimensions densities are tiny, or huge).
    epsilon : float, "ksum", "median" or "nearest", default "ksum"
        ε of the kernel, in squared data units. It falls off like exp(-|x-y|²/2ε), so the rules
        give half of what they give for exp(-|x-y|²/ε).
    mixture : None, int, or GaussianMixture or BayesianGaussianMixture, default None
        A fitted mixture is taken as it is, one that is not is fitted, with its own parameters; an
        int is the number of its components, None lets the Bayesian information criterion choose
        from 1 to 10 (it stops where two more are both worse). `sklearn.base.clone`, and so every
        search over parameters, forgets a fit: pass ``FrozenEstimator(fitted)`` there.
    tolerance : float, default 0.01
        Largest error of a distance, as a share of the root mean square distance.
    time : int >= 1, default 1
        Steps of the diffusion. Beyond 1 in closed form for one component; for several by one
        fixed matrix, from quadrature up to 3 features and from samples beyond, with its relative
        error in `diagnostics_["time_error"]`. The tolerance is that of the first step, on the
        training points and on 2,000 points drawn from ν; distances shrink with time, and what the
        map leaves out then counts for more: `diagnostics_["distance_error"]` is estimated then,
        not certified.
    max_features : int, default 500
        Most coordinates that the tolerance may take. Data in many dimensions take many where ε is
        small: nearly every point is far from every other then.
    random_state : int, RandomState, Generator or None, default None
        Of the mixture and of the samples.

    Attributes
    ----------
    embedding_ : array (n, k)
    kernel_ : MixtureKernel
        Closed forms: densities, distances, anomaly scores, gradients.
    features_ : CholeskyMap
    mixture_ : estimator
        The mixture fitted or given.
    stationary_ : array (n,)
        ν at the training points (`score_samples` gives log ν at any).
    epsilon_ : float
    diagnostics_ : dict
        `mixture_components`; `bic` of 1, 2, ... components, as far as was looked; `n_features`, the
        coordinates that the tolerance takes; `typical_distance`, the root mean square at the time
        asked for; `distance_error`, the bound on the error of distances between training points, in
        their units (at later times of several components an estimate, from a map four times as
        coarse); `time_error`, the relative standard error of the steps; seconds per stage.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Cost of a fit beyond that of the mixture: some r distances for each point, r the number of
    coordinates; of `transform` r + 1, a sum over pairs of components that are not negligible, in
    row tiles of constant memory. Distances are unweighted, so not those of `DiffusionMap`, which
    are weighted by 1/π.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, label = hs.datasets.gaussian_clouds(500, n_labels=2, dim=2, rng=0)
    >>> model = hs.MixtureDiffusion(2, random_state=0).fit(X[:250])
    >>> model.transform(X[250:]).shape
    (250, 2)
    """

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
        """Fit mixture and map to X, and embed it.

        Parameters
        ----------
        X : array or DataFrame (n, m)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad points or parameters; more `n_components` than the tolerance takes.

        Warns
        -----
        ConvergenceWarning
            The tolerance takes more than `max_features` coordinates;
            `diagnostics_["distance_error"]` is what was reached.
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
        fitted = clock.perf_counter()
        self._choose_coordinates(points, int(rng.integers(2**31)))
        self.embedding_ = self._rows_of(points, X.dtype)
        self.stationary_ = self.kernel_.stationary(points)
        self.diagnostics_ |= {
            "mixture_seconds": fitted - started,
            "embed_seconds": clock.perf_counter() - fitted,
        }
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit on X and return its embedding (n, k), the same as ``fit(X).transform(X)``."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Embed points, new or old, each by itself: (n, m) -> (n, k).

        For points that lie unlike the training points distances may err by more than the
        tolerance; `distance_error` says by how much.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False)
        return self._rows_of(X.astype(np.float64, copy=False), X.dtype)

    def distance_error(self, X: Any) -> Array:
        """Return what the coordinates miss of each point, (n,).

        The distance between two points errs by the sum of theirs at most, and is never too long;
        units are those of the distance. Of later times of several components it is not known, and
        refused.
        """
        check_is_fitted(self)
        if not self._is_first_step:
            raise ValueError(
                f"At time={self.time} of {self.kernel_.n_components} components it is not known "
                "what a point misses; diagnostics_['distance_error'] has an estimate for the fit."
            )
        X = read_points(self, X, reset=False)
        return self._missing(X.astype(np.float64, copy=False))

    def score_samples(self, X: Any) -> Array:
        """Return log ν(x), (n,), the logarithm of the stationary density, as mixtures do."""
        check_is_fitted(self)
        return self.kernel_.log_stationary(read_points(self, X, reset=False))

    def _check_parameters(self) -> None:
        if self.n_components != "auto":
            check_number(self.n_components, "n_components", low=1, integer=True)
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
        if self.mixture is None:
            return self._best_mixture(X[np.sort(rows)], seed)
        if hasattr(self.mixture, "fit"):
            return clone(self.mixture).fit(X[np.sort(rows)])
        high = len(X)
        count = check_number(self.mixture, "mixture", low=1, high=high, integer=True)
        return fit_mixture(X[np.sort(rows)], count, seed)[0]

    def _best_mixture(self, X: Array, seed: int) -> Any:
        """Fit more and more components, until the criterion has got worse twice in a row."""
        found: list[tuple[float, Any]] = []
        for count in COMPONENTS:
            if count > len(X):
                break
            fitted, bic = fit_mixture(X, count, seed)
            found.append((bic, fitted))
            logger.info("mixture of %d: criterion %.6g", count, bic)
            best = int(np.argmin([bic for bic, _ in found]))
            if len(found) - 1 - best >= _PATIENCE:
                break
        self.diagnostics_["bic"] = [bic for bic, _ in found]
        return found[best][1]

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

    def _choose_coordinates(self, X: Array, seed: int) -> None:
        rows = X[np.random.default_rng(seed).permutation(len(X))[:_SCALE_ROWS]]
        d2 = self.kernel_.squared_distance(rows, rows)
        typical = float(np.sqrt(d2.sum() / max(1, np.count_nonzero(d2))))
        if typical == 0:
            raise ValueError(
                "All points have the same transition densities, to rounding; pass points that "
                "differ, or a smaller epsilon."
            )
        features = CholeskyMap(int(self.max_features))
        steps = not self._is_first_step
        points = np.vstack([X, draw(self.kernel_, _DRAWN, seed)]) if steps else X
        self.features_ = features.fit(
            self.kernel_, tolerance=self.tolerance * typical, points=points
        )
        if features.n_features == 0:
            raise ValueError(
                f"tolerance={self.tolerance:g} leaves no coordinate: all distances are within it; "
                "pass a smaller tolerance."
            )
        self._later = np.eye(features.n_features)
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
            if self._later.shape[1] < features.n_features:
                error = 2 * float(self._missing(X).max())
        elif dropped is not None:
            left = features.transform(X) @ dropped
            error += 2 * float(np.sqrt(np.square(left).sum(axis=1)).max())
        self.diagnostics_["distance_error"] = error

    @property
    def _is_first_step(self) -> bool:
        """Whether the coordinates are those of the map, not stepped on from them."""
        return bool(self.time == 1 or self.kernel_.n_components == 1)

    def _take_steps(self, X: Array, points: Array, seed: int) -> float:
        """Step the coordinates on, and return an estimate of the error of their distances."""
        t = int(self.time)
        steps = Steps.of(self.features_, seed)
        y = self.features_.transform(X)
        later = steps.after(y, t)
        _, _, axes = np.linalg.svd(later - later.mean(axis=0), full_matrices=True)
        self._later = steps.after(np.eye(y.shape[1]), t) @ axes.T
        d = pdist(later[:_SCALE_ROWS])
        self.diagnostics_["time_error"] = steps.error(y, t)
        self.diagnostics_["typical_distance"] = float(np.sqrt(np.mean(np.square(d))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coarse = CholeskyMap(int(self.max_features)).fit(
                self.kernel_, tolerance=_COARSER * self.features_.error_bound, points=points
            )
        if coarse.n_features == 0:
            return float(d.max())
        other = Steps.of(coarse, seed).after(coarse.transform(X[:_SCALE_ROWS]), t)
        return float(np.abs(pdist(other) - d).max())

    def _keep(self, k: int) -> Array:
        """Keep the first k columns of what maps to coordinates, and return the others."""
        most = self._later.shape[1]
        if k > most:
            raise ValueError(
                f"n_components={k} but tolerance={self.tolerance:g} takes {most} coordinates; "
                "pass a smaller tolerance, or fewer n_components."
            )
        self._later, dropped = self._later[:, :k], self._later[:, k:]
        return dropped

    def _rows_of(self, X: Array, dtype: Any) -> Array:
        # A density in many dimensions may be of a size that float32 has no digits for.
        if not _SMALLEST < self.diagnostics_["typical_distance"] < 1 / _SMALLEST:
            dtype = np.float64
        return (self.features_.transform(X) @ self._later).astype(dtype, copy=False)

    def _missing(self, X: Array) -> Array:
        left = self.features_.residual(X)
        if self._later.shape[1] == self.features_.n_features:
            return left
        y = self.features_.transform(X)
        dropped = y - (y @ self._later) @ self._later.T
        return np.sqrt(left**2 + np.square(dropped).sum(axis=1))

    @property
    def _n_features_out(self) -> int:
        return self._later.shape[1]

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def fit_mixture(X: Array, count: int, seed: int) -> tuple[Any, float]:
    """Return a GaussianMixture of `count` components fitted to X (n, m), and its BIC.

    Fitted in units of each feature's spread, since scikit-learn's floor under variances (1e-6) is
    in data units.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = scale.max() or 1.0
    Z = (X - centre) / scale
    fitted = GaussianMixture(count, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(Z)
        bic = float(fitted.bic(Z))
    fitted.means_ = fitted.means_ * scale + centre
    fitted.covariances_ = fitted.covariances_ * np.outer(scale, scale)
    fitted.precisions_cholesky_ = fitted.precisions_cholesky_ / scale[:, None]
    fitted.precisions_ = fitted.precisions_ / np.outer(scale, scale)
    return fitted, bic + 2 * len(X) * float(np.log(scale).sum())
