"""Arrays that are not in memory: all or a sample of one is fitted, those of Dask stay lazy."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from heatsketch._ids import check_ids
from heatsketch._tensors import is_lazy
from heatsketch._typing import Array
from heatsketch.estimators._sample import Sample, most_fitted, seed_of

_PIECE_BYTES = 2**24  # that are read at a time


def is_dask(X: Any) -> bool:
    """Say whether X is a Dask array (n, d)."""
    return is_lazy(X) and X.ndim == 2


def is_unread(X: Any) -> bool:
    """Say whether X is an array of which slices are read: of Dask, zarr, h5py, a map of a file."""
    if isinstance(X, np.ndarray):
        return isinstance(X, np.memmap) and X.filename is not None and X.ndim == 2
    library = type(X).__module__.partition(".")[0]
    return is_dask(X) or (library in ("zarr", "h5py") and len(getattr(X, "shape", ())) == 2)


def whole_or_sampled(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let `fit` of such an array be that of all points, or of a sample that memory holds."""

    @functools.wraps(method)
    def fit(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        if not is_unread(X):
            return method(self, X, *args, **given)
        n, d = shape_of(X)
        count = most_fitted(self, n, d, precision_of(X))
        if count == n:
            return method(self, _whole(X), *args, **given)
        warnings.warn(
            f"X has {n:,} points, of which memory holds {count:,}: these are fitted, drawn at "
            "random, and embedding_ is of them alone; transform maps any others.",
            stacklevel=2,
        )
        rows = Sample.draw(n, count, seed_of(self)).rows
        if given.get("ids") is not None:
            given["ids"] = check_ids(given["ids"], n)[rows]
        method(self, _rows(X, rows), *args, **given)
        self.diagnostics_ = self.diagnostics_ | {"points": n, "fit_points": count}
        return self

    return fit


def lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let `transform` of a Dask array be a Dask array."""

    @functools.wraps(method)
    def transform(self: Any, X: Any) -> Any:
        return _lazily(self, X) if is_dask(X) else method(self, X)

    return transform


def both(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let `fit_transform` of a Dask array be its fit and then its `transform`, which is lazy."""

    @functools.wraps(method)
    def fit_transform(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        is_mapped = is_unread(X) and hasattr(self, "transform")
        if not is_mapped:
            return method(self, X, *args, **given)
        self.fit(X, *args, **given)
        is_sample = len(self.embedding_) < X.shape[0]
        return self.transform(X) if is_sample or is_dask(X) else self.embedding_

    return fit_transform


def _lazily(estimator: Any, X: Any) -> Any:
    """Return the coordinates (n, k) as a Dask array of the chunks of X (n, d).

    The model is one task, which workers get from each other.
    """
    from dask import delayed
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    _, d = shape_of(X)
    if d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input; pass points of these."
        )
    model = delayed(copy.copy(estimator), pure=False, traverse=False)  # another fit changes nothing
    whole = X.rechunk({1: -1})
    k, dtype = estimator._n_features_out, precision_of(X)
    return whole.map_blocks(
        _mapped,
        model=model,
        width=k,
        dtype=dtype,
        chunks=(whole.chunks[0], (k,)),
        meta=np.empty((0, 0), dtype),
    )


def _mapped(block: Any, model: Any = None, width: int = 0, block_info: Any = None) -> Array:
    """Return the coordinates of a chunk."""
    if not block.shape[0]:
        return np.empty((0, width), precision_of(block))
    try:
        return np.asarray(model.transform(block))
    except Exception as error:
        start = block_info[0]["array-location"][0][0]
        error.add_note(f"(in a chunk of a Dask array, of which rows count from {start:,} on)")
        raise


def shape_of(X: Any) -> tuple[int, int]:
    """Return the shape of an array, or raise if it is not known before it is computed."""
    n, d = X.shape
    if n != n or d != d:  # NaN
        raise ValueError(
            f"X is a Dask array of the shape {X.shape}, which is not known yet; call "
            "compute_chunk_sizes() on it first."
        )
    return int(n), int(d)


def precision_of(X: Any) -> np.dtype:
    """Return the type of the coordinates of X."""
    dtype = np.dtype(X.dtype)
    single = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if single else np.float64)


def _whole(X: Any) -> Any:
    if isinstance(X, np.memmap):
        return X
    return X.compute() if is_dask(X) else np.asarray(X[:])


def _rows(X: Any, rows: Array) -> Any:
    """Return some rows, increasing, of which no other row is held longer than a piece."""
    if is_dask(X):
        return X[rows].compute()
    size = max(1, _PIECE_BYTES // (X.dtype.itemsize * max(1, X.shape[1])))
    found = []
    for start in range(0, X.shape[0], size):
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + size)]
        if len(own):
            found.append(np.asarray(X[start : start + size])[own - start])
    return np.concatenate(found)
