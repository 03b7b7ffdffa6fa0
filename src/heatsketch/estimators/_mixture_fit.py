"""Steps of the fit of a mixture diffusion: its scale, its map, densities of points left out."""

import warnings
from inspect import signature
from typing import Any

import numpy as np

from heatsketch import memory
from heatsketch._checks import ConvergenceWarning
from heatsketch._typing import Array
from heatsketch.markov.novelty import LeftOut
from heatsketch.mixture import CholeskyMap, MixtureKernel, Whitening
from heatsketch.mixture.fitting import refitted

_FOLDS = 5  # in which training points are left out
_POINTS_PER_COMPONENT = 10  # from which on parts of the points are enough to fit the mixture
_QUANTILES = 500  # of the densities of training points that are kept
_SCALE_POINTS = 500  # whose distances give the typical distance


def some(X: Array, seed: int) -> Array:
    """Return as many of the points as a mixture is fitted to, in their order."""
    rows = np.random.default_rng(seed).permutation(len(X))[: memory.MIXTURE_FIT_ROWS]
    return X[np.sort(rows)]


def typical_distance(kernel: MixtureKernel, X: Array, seed: int) -> float:
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


def fitted_map(
    kernel: MixtureKernel, tolerance: float, points: Array, max_features: int
) -> CholeskyMap:
    """Return the map of points (n, m), without a warning where the tolerance is not reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CholeskyMap(int(max_features)).fit(kernel, tolerance=tolerance, points=points)


def log_density(X: Array, kernel: MixtureKernel, whitening: Whitening | None) -> Array:
    """Return log ν at points (n, m), in units of the data, of a kernel in whitened coordinates."""
    if whitening is None:
        return kernel.log_stationary(X)
    inside = kernel.log_stationary(whitening(X)) + whitening.log_volume
    return inside + whitening.log_rest(X)


def densities_left_out(model: Any, x: Array, seed: int) -> LeftOut:
    """Return log ν of a model at training points (n, m), each without its fifth of them."""
    kernel, white = model.kernel_, model.whitening_
    if hasattr(model.mixture, "means_") or len(x) < _POINTS_PER_COMPONENT * kernel.n_components:
        return LeftOut.of(log_density(x, kernel, white)).thinned(_QUANTILES)
    z = x if white is None else white(x)
    found = np.empty(len(x))
    fold_of = np.random.default_rng(seed).permutation(len(x)) % _FOLDS
    for fold in range(_FOLDS):
        left, kept = fold_of == fold, fold_of != fold
        mixture = refitted(model.mixture_, z[kept])
        of_fold = MixtureKernel.from_sklearn(mixture, model.epsilon_)
        found[left] = of_fold.log_stationary(z[left])
        if white is not None:
            # Principal components leave less out of the points that they come from.
            rest = Whitening.of(x[kept], seed).log_rest(x[left])
            found[left] += rest + white.log_volume
    return LeftOut.of(found).thinned(_QUANTILES)


def warn_of_errors(model: Any) -> None:
    """Say that the map is not as exact as asked, with no numbers but those that the user gave."""
    defaults = {name: p.default for name, p in signature(type(model)).parameters.items()}
    names = ("epsilon", "tolerance", "max_features")
    given = [f"{n}={getattr(model, n)}" for n in names if getattr(model, n) != defaults[n]]
    asked = f" with {', '.join(given)}" if given else ""
    if model.features_.n_features < model.max_features:
        why = f"Distances do not have so many digits in float64 as are asked for{asked}"
        do = "Pass a larger tolerance."
    else:
        why = (
            "Too many points are far from all others for a small model to keep all distances"
            f"{asked}"
        )
        do = "Pass a larger epsilon, tolerance or max_features, or drop outliers."
    warnings.warn(
        f"{why}; diagnostics_['distance_error'] is the error of distances beside "
        f"diagnostics_['typical_distance']. {do}",
        ConvergenceWarning,
        stacklevel=4,
    )
