"""Gaussian mixtures fitted to points with features of any scales."""

import warnings
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from heatsketch._exceptions import logger
from heatsketch._typing import Array

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
