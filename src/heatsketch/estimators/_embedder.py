"""The base of all estimators: what scikit-learn asks of a method that makes coordinates."""

from abc import abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from heatsketch._typing import Array
from heatsketch.estimators._of_tensors import kept_on_host, returned
from heatsketch.estimators._unread import both, lazy, whole_or_sampled

# How methods take tensors of torch, and then arrays that are not in memory.
_RULES = {
    "fit": (kept_on_host, whole_or_sampled),
    "transform": (returned, lazy),
    "fit_transform": (returned, both),
}


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Abstract base: `fit` sets `embedding_` (n, k); `transform`, where it exists, maps any points.

    Coordinates have the precision of the points, float32 or float64. Of a Dask array the rows of
    `transform` are a Dask array; where memory does not hold an array of Dask, zarr or h5py, or the
    map of a file, a sample is fitted. Of a tensor of torch they are a tensor on its device; what is
    fitted is made of arrays.
    """

    embedding_: Array
    _takes_sparse: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Let `fit` and `transform` take arrays that are not in memory, and tensors of torch."""
        super().__init_subclass__(**options)
        for name, rules in _RULES.items():
            if name in vars(cls):
                for rule in rules:
                    setattr(cls, name, rule(vars(cls)[name]))

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the points.

        Parameters
        ----------
        X : array or DataFrame (n, d)
            Sparse where the class says so. With ``metric="precomputed"`` distances (n, n).
        y : ignored
            Except by the discriminants, which need the labels (n,) of the points.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of numbers, or too few of them; parameters out of
            range or of another type.
        """

    @both
    @returned
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit on X and return its embedding (n, k).

        Raises
        ------
        ValueError, TypeError, MemoryError
            As `fit`.
        """
        return self.fit(X, y).embedding_

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
