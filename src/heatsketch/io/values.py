"""Numbers of a file, checked and in native byte order: float arrays and CSR matrices."""

from pathlib import Path

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.files import check_budget


def as_float(array: Array, what: str) -> Array:
    """Return a 2-d array as native float32 if it is float32, else as float64."""
    if array.ndim != 2:
        raise ValueError(f"{what} has shape {array.shape}; pass an array (points, features).")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {array.dtype}; pass real numbers.")
    single = array.dtype.newbyteorder("=") == np.float32
    return np.asanyarray(array, dtype=np.float32 if single else np.float64)


def as_csr(
    data: Array, indices: Array, indptr: Array, shape: Array, layout: str, path: Path
) -> sparse.csr_matrix:
    """Build a CSR matrix from arrays of a file; every index is checked before it is used."""
    kinds = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
    if layout not in kinds:
        raise ValueError(f"{path} holds a sparse matrix of format {layout!r}; save it as csr.")
    try:
        rows, columns = (int(size) for size in shape)
        # A compressed file may claim any number of empty columns (csc: rows) without holding them.
        check_budget(64 * (rows + columns), path.stat().st_size, f"its {rows} × {columns} matrix")
        data = as_float(data.reshape(1, -1), "the data")[0]
        matrix = kinds[layout]((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{path} holds a damaged sparse matrix: {error}; save it again."
        ) from error
    return matrix.tocsr()
