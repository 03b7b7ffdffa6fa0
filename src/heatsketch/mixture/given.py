"""A Gaussian mixture as it is given: checked, and prepared for what is computed from it."""

from functools import cached_property
from typing import Any, Self

import numpy as np

from heatsketch._checks import check_number, check_points
from heatsketch.mixture.components import Components
from heatsketch.mixture.parameters import checked_weights, dense_floats, full_covariances


class GivenMixture:
    """Base of `MixtureKernel`, which says what the arguments are."""

    def __init__(
        self,
        weights: Any,
        means: Any,
        covariances: Any,
        epsilon: float,
        *,
        covariance_type: str | None = None,
        time: int = 1,
    ) -> None:
        self.epsilon = check_number(epsilon, "epsilon", low=0, open_low=True)
        self.time = check_number(time, "time", low=1, integer=True)
        means = check_points(dense_floats(means, "means"), "means", min_rows=1)
        weights = checked_weights(weights, len(means))
        full = full_covariances(covariances, covariance_type, *means.shape)
        kept = weights > 0
        self.weights, self.means, self.covariances = weights[kept], means[kept], full[kept]
        self.n_components, self.n_features = self.means.shape
        if self.time > 1 and self.n_components > 1:
            raise ValueError(
                f"time={time} has a closed form for one component only, but the mixture has "
                f"{self.n_components}; use MixtureDiffusion(time=...) for later times."
            )
        _ = self.components  # raises where densities are beyond float64

    @cached_property
    def components(self) -> Components:
        """What all methods compute from."""
        return Components.of(self.weights, self.means, self.covariances, self.epsilon, self.time)

    @classmethod
    def from_sklearn(cls, mixture: Any, epsilon: float, *, time: int = 1) -> Self:
        """Take the mixture from a fitted `GaussianMixture` or `BayesianGaussianMixture`.

        Raises
        ------
        ValueError, TypeError
            A mixture that is not fitted, or not of Gaussians; an ε or a number of steps out of
            range.

        Examples
        --------
        >>> import heatsketch as hs, sklearn.mixture
        >>> X, label = hs.datasets.digits()
        >>> fitted = sklearn.mixture.GaussianMixture(3, random_state=0).fit(X[:, 18:20])
        >>> hs.MixtureKernel.from_sklearn(fitted, epsilon=10.0)
        MixtureKernel(n_components=3, n_features=2, epsilon=10)
        """
        missing = [n for n in ("weights_", "means_", "covariances_") if not hasattr(mixture, n)]
        if missing:
            raise ValueError(
                f"{type(mixture).__name__} has no {missing[0]}; pass a fitted GaussianMixture or "
                "BayesianGaussianMixture."
            )
        weights = np.asarray(mixture.weights_, dtype=float)
        return cls(
            weights / weights.sum(),  # those of the Bayesian one sum to 1 up to 1e-9
            mixture.means_,
            mixture.covariances_,
            epsilon,
            covariance_type=mixture.covariance_type,
            time=time,
        )

    def __repr__(self) -> str:
        """Return a short description without the arrays."""
        later = f", time={self.time}" if self.time > 1 else ""
        return (
            f"MixtureKernel(n_components={self.n_components}, n_features={self.n_features}, "
            f"epsilon={self.epsilon:g}{later})"
        )
