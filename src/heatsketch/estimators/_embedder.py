"""The abstract base of all estimators."""

import copy
from abc import abstractmethod
from functools import wraps
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from heatsketch._random import data_hash
from heatsketch._state import Method, at_once
from heatsketch._tensors import returned_for
from heatsketch._tiles import single_threaded_blas
from heatsketch._typing import Array
from heatsketch._validation import check_parameters, check_points
from heatsketch.estimators._lazy import is_dask, lazily_mapped
from heatsketch.markov.rows import leading_pairs


def remembered(fit: Method) -> Method:
    """Make a fit change the estimator at its end, at once, and remember its parameters.

    BLAS has one thread meanwhile, because its sums depend on the number of them; tiles have all.
    """

    @wraps(fit)
    def whole(draft: Any, *args: Any, **options: Any) -> Any:
        draft._fitted_as = type(draft)(**draft.get_params(deep=False))
        with single_threaded_blas():
            return fit(draft, *args, **options)

    return at_once(cast(Method, whole))


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Abstract base: `fit` sets `embedding_` (n, k); `transform`, where it exists, maps any points.

    A fit that raises or is interrupted leaves the estimator as it was.
    Coordinates have the precision of the points, float32 or float64. `fit` reads arrays of Dask,
    zarr and h5py whole. Given a tensor of torch, `fit_transform` returns a tensor on its device;
    fitted attributes are arrays.
    """

    embedding_: Array
    # An estimator with the parameters of the fit, whatever `set_params` says since.
    _fitted_as: Any = None
    _takes_sparse: bool = False
    # Whether summaries state the explained variance. That of a `HeatSketch` takes as long as the
    # sketch, and its distances are right on average however small it is.
    _states_variance: bool = False
    _fit_times: Any = (None,)  # of a method without a time
    _has_free_layout: bool = False
    _leading_pairs = staticmethod(leading_pairs)

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every fit change the estimator at its end, at once, or not at all."""
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = remembered(cls.fit)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Make an estimator, or suggest the name of a parameter in place of an unknown one."""
        check_parameters(cls.__name__, parameters, cls)
        return super().__new__(cls)

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points; sparse only if the class accepts it. With ``metric="precomputed"`` distances of
            shape (n_samples, n_samples). A model that needs them later keeps a copy.
        y : array-like of shape (n_samples,), default=None
            Labels of the points. Only the discriminants use it; all others ignore it.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of numbers, or too few of them; parameters out of
            range or of another type.
        """

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit to X and return its embedding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points, as in `fit`.
        y : array-like of shape (n_samples,), default=None
            Labels, for the discriminants alone.
        **fit_params
            Other parameters of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates of the points.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As in `fit`.
        """
        self.fit(X, y, **fit_params)
        if is_dask(X) and hasattr(self, "transform"):
            return lazily_mapped(self, X)
        return returned_for(self.embedding_, X)

    @property
    def _time(self) -> Any:
        """The time of the fit, chosen or as it was given; None for methods without one."""
        given = self._fitted_as.get_params(deep=False).get("time")
        return given if (chosen := self._result("time_")) is None else chosen

    def _result(self, name: str) -> Any:
        """Return an attribute that only some fits set, such as "distortion_"; else None."""
        return getattr(self, name, None)

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether a fit has ended."""
        return "embedding_" in vars(self)

    def _as_fitted(self) -> Self:
        """Return a copy with the parameters of the fit, which later calls do not change."""
        check_is_fitted(self)
        return copy.copy(self).set_params(**self._fitted_as.get_params(deep=False))

    def _refuse_other_points(self, X: Any) -> None:
        """Raise if X (n, d) has other values than the points of the fit, where these are known."""
        given = self._fitted_as.get_params(deep=False)
        known = self._result("_data_hash")
        if known is None or "precomputed" in (given.get("metric"), given.get("affinity")):
            return
        points = check_points(X, allow_nan=True)
        kinds = {points.dtype, self.embedding_.dtype}
        if known not in [data_hash(points.astype(kind, copy=False)) for kind in kinds]:
            raise ValueError(
                f"X {points.shape} has other values, or another order of the rows or columns, than "
                f"the points that {type(self).__name__} was fitted to; pass the X of the fit, and "
                "other columns of the same rows as labels."
            )

    def _read_places(self, Y: Any) -> Array:
        """Return places (m, k) in float64, or raise if they are not places of this embedding."""
        check_is_fitted(self)
        Y, k = check_points(Y, "Y", min_rows=1, accept_sparse=False), self._n_features_out
        if Y.shape[1] != k:
            raise ValueError(f"Y has {Y.shape[1]} columns but there are {k} coordinates; pass {k}.")
        return Y.astype(np.float64, copy=False)  # type: ignore[no-any-return]

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        parameters = self.get_params(deep=False)
        given = "precomputed" in (parameters.get("affinity"), parameters.get("metric"))
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.positive_only = given
        tags.input_tags.pairwise = given and "landmarks" not in parameters
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
