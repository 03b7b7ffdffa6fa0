"""Matrix Market files (.mtx) that hold graphs.

NumPy reads the numbers: SciPy's reader ends the process at a number that it cannot read.
"""

import re
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from heatsketch.io.files import blame, check_budget

_HEADER = re.compile(
    r"%%MatrixMarket\s+matrix\s+coordinate\s+(real|integer|pattern|complex)\s+"
    r"(general|symmetric|skew-symmetric|hermitian)\s*",
    re.IGNORECASE,
)


def read(path: Path) -> sparse.coo_matrix:
    """Read a matrix of real numbers, stored by coordinates."""
    with blame(path, ValueError, OverflowError, EOFError), path.open("rb") as stream:
        found = _HEADER.fullmatch(stream.readline().decode("latin-1"))
        if not found:
            raise ValueError("its first line is not that of a Matrix Market file of coordinates")
        field, symmetry = (word.lower() for word in found.groups())
        if field == "complex":
            raise ValueError(f"{path} holds complex numbers; a graph has real weights.")
        size = next((line for line in stream if line.strip() and line[:1] != b"%"), b"")
        n, n_columns, entries = map(int, size.split())
        check_budget(24 * entries + 8 * n, path.stat().st_size, str(path))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            table = np.loadtxt(stream, comments="%", ndmin=2, encoding="latin-1")
        width = 2 if field == "pattern" else 3
        if table.shape != (entries, width) and table.size + entries:
            raise ValueError(f"it has {table.shape} numbers in place of ({entries}, {width})")
        table = table.reshape(entries, width)
    rows, columns = (table[:, :2] - 1).astype(np.int64).T
    data = table[:, 2] if width == 3 else np.ones(entries)
    if symmetry != "general":
        apart = rows != columns
        rows, columns = np.append(rows, columns[apart]), np.append(columns, rows[apart])
        data = np.append(data, -data[apart] if symmetry == "skew-symmetric" else data[apart])
    with blame(path, ValueError):  # an entry outside of the matrix
        return sparse.coo_matrix((data, (rows, columns)), shape=(n, n_columns))
