"""Matrix Market files (.mtx) that hold graphs, read by SciPy."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from scipy import sparse

from heatsketch.io.child import from_child
from heatsketch.io.files import blame, check_budget


def read(path: Path) -> sparse.coo_matrix:
    """Read a square matrix; SciPy's reader, which damaged files crash, runs in a child process."""
    with closing(from_child(path, parts, path)) as items:
        n = next(items)
        rows, columns, data = items
    return sparse.coo_matrix((data, (rows, columns)), shape=(n, n))


def parts(path: Path) -> Iterator[Any]:
    """Yield the number of rows, then rows, columns and values of the entries; in the child."""
    from scipy.io import mminfo, mmread

    with blame(path, ValueError, OverflowError, TypeError, EOFError):
        n, columns, entries, _, field, _ = mminfo(path)
        if n != columns:
            raise no_graph(path, (n, columns))
        if field == "complex":
            raise ValueError(f"{path} holds complex numbers; a graph has real weights.")
        check_budget(24 * entries + 8 * n, path.stat().st_size, str(path))
        matrix = sparse.coo_matrix(mmread(path))
    yield n
    yield from (matrix.row, matrix.col, matrix.data)


def no_graph(path: Path, shape: tuple[int, ...]) -> ValueError:
    """Return the error for a table that is not a matrix (n, n)."""
    return ValueError(
        f"{path} holds a table {shape}; a graph is a matrix (n, n). Rows of a table of counts have "
        "affinity 'bipartite' (--affinity bipartite, without --graph)."
    )
