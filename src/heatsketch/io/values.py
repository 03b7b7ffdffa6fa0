"""Numbers of a file, checked and in native byte order: float arrays and CSR matrices."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.files import check_budget
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, default_names

EXACT = 2.0**53  # from here on, float64 merges integers


def as_float(array: Array, what: str) -> Array:
    """Return a 2-d array as native float32 if it is float32, else as float64."""
    if array.ndim != 2:
        raise ValueError(f"{what} has shape {array.shape}; pass an array (points, features).")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {array.dtype}; pass real numbers.")
    single = array.dtype.newbyteorder("=") == np.float32
    return np.asanyarray(array, dtype=np.float32 if single else np.float64)


def merged_integer(name: str, value: Any, where: str = "") -> str:
    """Return the message about an integer beyond 2^53."""
    return (
        f"column {name!r} holds {value}{where}, an integer beyond 2^53, which float64 does not "
        f"tell from the next one; an id? pass ids={name!r} (--id {name}); else leave it out with "
        f"exclude={name!r} (--exclude {name}), or store it as floating-point numbers."
    )


def points_and_others(
    array: Array, how: Reading, source: str, names: Names = ()
) -> tuple[Array, Names, dict[str, Array]]:
    """Return the features of an array (n, d), their names, and the columns of ids and labels.

    Raises
    ------
    ValueError
        For a feature with an integer from 2^53 on, which float64 does not tell from the next one.
    """
    as_float(array[:0] if array.ndim == 2 else array, source)
    names = names or default_names(array)
    others = [name for name in how.label + how.ids if name in names]
    extra = {name: np.array(array[:, names.index(name)]) for name in others}
    if extra:
        kept = [j for j, name in enumerate(names) if name not in extra]
        array, names = array[:, kept], tuple(names[j] for j in kept)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        for name, low, high in zip(names, array.min(axis=0), array.max(axis=0), strict=True):
            is_feature = name in how.features or not (how.features or name in how.exclude)
            if is_feature and max(-int(low), int(high)) >= EXACT:
                value = low if -int(low) >= EXACT else high
                raise ValueError(f"{source}: {merged_integer(name, value)}")
    return as_float(array, source), names, extra


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
