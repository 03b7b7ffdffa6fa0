"""What a fitted mixture says of points: where they are, how new they are, how far off."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._reading import read_points
from heatsketch._typing import Array
from heatsketch.estimators._embedder import Embedder
from heatsketch.estimators._mixture_fit import log_density
from heatsketch.markov.novelty import LeftOut
from heatsketch.mixture import CholeskyMap, MixtureKernel, Whitening

_SMALLEST_SINGLE_DISTANCE = 1e-25  # typical distance from which on float32 has enough digits


class MixtureFacts(Embedder):
    """Abstract base: questions to a kernel and the map of its features, which a file holds."""

    kernel_: MixtureKernel
    features_: CholeskyMap
    step_matrix_: Array
    whitening_: Whitening | None
    diagnostics_: dict[str, Any]
    time: int
    _left_out: LeftOut | None

    def transform(self, X: Any) -> Array:
        """Embed points, new or old: (n, m) -> (n, k), each independently of the others.

        Where there were no training points, the error of distances may exceed the tolerance;
        `distance_error` bounds it. A warning names points with hardly any density there, next to
        the training point with the least.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False)
        points = X.astype(np.float64, copy=False)
        if self._left_out is not None:
            self._left_out.warn(log_density(points, self.kernel_, self.whitening_))
        return self._rows_of(self._coordinates(points), X.dtype)

    def novelty(self, X: Any) -> Array:
        """Say of points (n, m) how new they are next to the training points: (n,), from 0 to 1.

        It is the share of the training points that are less new, by the density that
        `score_samples` returns: 0.5 for the usual point, above 0.99 for one in a hundred points of
        the same law, and 1 outside. Each training point is left out: its density is that of the
        mixture after steps of the fit without a fifth of the points. (A mixture that was fitted
        before is used as it is.)

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; bad points; a file of an earlier version, without the densities of
            training points.
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
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit; `time` > 1
            with several components.
        """
        check_is_fitted(self)
        if not self._is_first_step:
            raise ValueError(
                f"At time={self.time} of {self.kernel_.n_components} components the error of a "
                "point is not known; use the estimate diagnostics_['distance_error'] of the fit."
            )
        X = read_points(self, X, reset=False)
        return self._missing(self._coordinates(X.astype(np.float64, copy=False)))

    def score_samples(self, X: Any) -> Array:
        """Return log ν(x), (n,), the logarithm of the stationary density, in units of the data.

        Where principal components are left out, they have a normal density of their own.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False)
        return log_density(X.astype(np.float64, copy=False), self.kernel_, self.whitening_)

    def _coordinates(self, X: Array) -> Array:
        """Return points (n, m) in the coordinates of the kernel."""
        return X if self.whitening_ is None else self.whitening_(X)

    @property
    def _is_first_step(self) -> bool:
        """Whether the coordinates are those of the map, without further steps."""
        return bool(self.time == 1 or self.kernel_.n_components == 1)

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
