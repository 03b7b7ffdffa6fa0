"""Gaussian mixtures fitted to points, whatever the scales of the features."""

import warnings
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from heatsketch._checks import logger
from heatsketch._typing import Array

_MOST_COMPONENTS = 10  # up to which the Bayesian information criterion chooses
_WORSE_COUNTS = 2  # the search ends after so many counts in a row that are worse than the best


def best_mixture(X: Array, seed: int) -> tuple[Any, list[float]]:
    """Return the mixture with the smallest BIC, and the BIC of 1, 2, ... components as tried."""
    mixtures, criteria = [], []
    for count in range(1, min(_MOST_COMPONENTS, len(X)) + 1):
        fitted, bic = fit_mixture(X, count, seed)
        mixtures.append(fitted)
        criteria.append(bic)
        logger.info("mixture: criterion %.6g with %d components", bic, count)
        best = int(np.argmin(criteria))
        if count - 1 - best >= _WORSE_COUNTS:
            break
    return mixtures[best], criteria


def fit_mixture(X: Array, count: int, seed: int) -> tuple[Any, float]:
    """Return a GaussianMixture of `count` components fitted to X (n, m), and its BIC.

    Fitted in units of the standard deviation of each feature, since scikit-learn adds 1e-6 to
    variances, in the units it is given.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = scale.max() or 1.0
    Z = (X - centre) / scale
    fitted = GaussianMixture(count, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(Z)
        bic = float(fitted.bic(Z))
    return rescaled(fitted, scale, centre), bic + 2 * len(X) * float(np.log(scale).sum())


def rescaled(fitted: Any, scale: Array, centre: Array | float = 0.0) -> Any:
    """Return a mixture of full covariances for coordinates times `scale` (m,), plus `centre`."""
    other = deepcopy(fitted)
    other.means_ = fitted.means_ * scale + centre
    other.covariances_ = fitted.covariances_ * np.outer(scale, scale)
    other.precisions_cholesky_ = fitted.precisions_cholesky_ / scale[:, None]
    other.precisions_ = fitted.precisions_ / np.outer(scale, scale)
    other.reg_covar = fitted.reg_covar * float(scale.min()) ** 2  # if it is fitted again
    return other


def refitted(mixture: Any, X: Array) -> Any:
    """Return a fitted mixture after further steps of its fit, to the points X (n, m)."""
    again = deepcopy(mixture).set_params(warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return again.fit(X)
