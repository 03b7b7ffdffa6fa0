"""Coordinates of Dask arrays as Dask arrays, whose chunks are mapped when they are computed."""

import copy
import sys
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from heatsketch._typing import Array
from heatsketch._validation import precision_of


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array (n, d), without importing Dask."""
    lazy = sys.modules.get("dask.array")
    return lazy is not None and isinstance(X, lazy.Array) and X.ndim == 2


def lazily_mapped(estimator: Any, X: Any) -> Any:
    """Return the coordinates (n, k) as a Dask array of the chunks of X (n, d).

    The model is one task, which workers pass to each other.
    """
    from dask import delayed

    validate_data(estimator, X, reset=False, skip_check_array=True)
    model = delayed(copy.copy(estimator), pure=False, traverse=False)  # not changed by a later fit
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
        number = block_info[0]["chunk-location"][0]
        error.add_note(f"(in chunk {number} of a Dask array, whose rows are counted from 0)")
        raise
