"""Graphs in files: edge lists as text or .parquet, .mtx, sparse .npz and .npy, obsp of .h5ad."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io import anndata_files, numpy_files
from heatsketch.io.columns import classified, kind_of, numbers_in
from heatsketch.io.files import blame, listed, suffix_of
from heatsketch.io.header import column_names, question
from heatsketch.io.parquet import read_columns
from heatsketch.io.table import (
    Reading,
    Table,
    as_csr,
    default_names,
    objects,
    refuse_key,
    require,
)
from heatsketch.io.text import STDIN, SUFFIXES, read_cells
from heatsketch.markov.affinity import as_matrix
from heatsketch.operators.graph import graph

NODE = "id"  # the column of the names
_HEADERS = (
    *("source", "target", "from", "to", "src", "dst", "head", "tail", "start", "end"),
    *("node1", "node2", "fromnodeid", "tonodeid", "from_node", "to_node", "parent", "child"),
)
_MATRIX_MARKET = re.compile(
    r"%%matrixmarket\s+matrix\s+coordinate\s+(real|integer|pattern)\s+(general|symmetric)\s*"
)


def read_graph(
    source: str | Path,
    *,
    key: str | None = None,
    label: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    sep: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
) -> Table:
    """Read a graph from a file.

    Parameters
    ----------
    source : str or path
        An edge list: .csv, .tsv, .txt (also with .gz), .parquet, or "-" for text on standard
        input, with two columns of names and perhaps one of weights. Or a matrix (n, n): Matrix
        Market (.mtx), .npz, .npy, or an entry of obsp in .h5ad.
    key : str, optional
        The array in .npz; in .h5ad the entry of obsp, by default "connectivities".
    label, ids
        Columns of obs in .h5ad, as in `read_table`.
    exclude : str or sequence of str, default ()
        Columns of an edge list that are neither names nor weights.
    sep, decimal, header
        Of text, as in `read_table`. By default the first row is a header unless one of its names is
        that of a node below, or both are numbers.

    Returns
    -------
    Table
        `values` is the symmetric matrix of the weights (n, n), with the larger weight of the two
        directions; parallel edges are added, and a node without edges has a self-loop of the mean
        degree. The column "id" has the names, in the order in which they first appear: those
        of the first column of an edge list, and then the others of the second.

    Raises
    ------
    ValueError
        Not one or two names and a weight; a name that is missing; a weight that is not a number
        above or equal to 0; a header that may be an edge.
    FileNotFoundError, ImportError
        As in `read_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from heatsketch import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.csv")
    ...     _ = path.write_text("source,target,weight\\na,b,2\\nb,c,1\\n")
    ...     table = io.read_graph(path)
    >>> table.extra["id"].tolist(), table.values[0, 1]
    (['a', 'b', 'c'], np.float64(2.0))
    """
    how = Reading(
        key=key, label=label, ids=ids, exclude=exclude, sep=sep, decimal=decimal, header=header
    )
    path, suffix = Path(source), suffix_of(source)
    is_text = str(path) == STDIN or suffix in SUFFIXES
    if str(path) != STDIN and not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; pass an edge list, or a matrix (n, n).")
    if suffix not in (".h5ad", ".npz", ".npy"):
        refuse_key(how.key, path)
    table = Table(None, (), {}, None, str(path))
    details: dict[str, Any] = {}
    with blame(path):
        if suffix == ".h5ad":
            table = _of_h5ad(path, how)
            given = table.values
        elif is_text or suffix == ".parquet":
            cells = _cells(path, how) if is_text else read_columns(path)
            given, details = _edges(cells, how, path)
        else:
            given = _matrix(path, how, suffix)
    with blame(path, do=""):
        found = graph(given, **details)
    matrix = as_matrix(found)
    names = np.arange(matrix.shape[0]) if found.names is None else found.names
    loops = int((found.matrix.sum(axis=1) == 0).sum())
    return replace(
        table,
        values=matrix,
        columns=default_names(matrix),
        extra=table.extra or {NODE: names},
        notes=(f"{loops} node(s) without edges stay where they are",) if loops else (),
        metadata={},
    )


def _of_h5ad(path: Path, how: Reading) -> Table:
    """Read an entry of obsp, and obs."""
    name = (how.key or "connectivities").removeprefix("obsp/")
    if name.endswith("distances"):
        raise ValueError(f"obsp/{name} of {path} holds distances, not weights.")
    table = anndata_files.read(path, replace(how, key=f"obsp/{name}"))
    require((*how.label, *how.ids), table.extra, path)
    return replace(table, label=how.label[0]) if how.label else table


def _matrix(path: Path, how: Reading, suffix: str) -> Any:
    """Return the matrix (n, n) in a file."""
    if suffix not in (".mtx", ".npz", ".npy"):
        known = ".csv, .tsv, .txt (also with .gz), .parquet, .mtx, .npz, .npy, .h5ad"
        raise ValueError(f"{path} is not a file of a graph; choose from {known}.")
    matrix = read_matrix_market(path) if suffix == ".mtx" else numpy_files.read(path, how).values
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{path} holds a table {matrix.shape}; a graph is a matrix (n, n).")
    return matrix


def _edges(table: Any, how: Reading, path: Path) -> tuple[Array, dict[str, Any]]:
    """Return the edges (2, m) in two columns of names, and the names and weights, if there are."""
    import pyarrow as pa

    require(how.exclude, table.column_names, path)
    table = table.drop_columns(list(how.exclude)).combine_chunks()
    if table.num_columns not in (2, 3):
        raise ValueError(
            f"{path} has {table.num_columns} column(s) ({listed(table.column_names)}); an edge "
            "list has two of names, perhaps a weight; leave others out with exclude (--exclude)."
        )
    if not table.num_rows:
        raise ValueError(f"{path} has no edges; pass an edge list with at least one.")
    both = pa.chunked_array([table[j].cast(pa.string()).combine_chunks() for j in (0, 1)])
    encoded = both.combine_chunks().dictionary_encode(null_encoding="encode")
    names = objects(encoded.dictionary.to_pylist())
    ends = encoded.indices.to_numpy().astype(np.int64).reshape(2, -1)
    lacks = np.isin(ends, [i for i, name in enumerate(names) if not name]).any(axis=0)
    if lacks.any():
        raise ValueError(f"edge {lacks.argmax()} of {path} lacks the name of a node; leave it out.")
    weights = None
    if table.num_columns == 3:
        column = table[2].combine_chunks()
        column = column.cast(pa.float64()) if pa.types.is_floating(column.type) else column
        text = column.cast(pa.string())
        weights, others = numbers_in(text, how.decimal), None
        if weights is None:
            weights, others = classified(text, how.decimal)
        lacks = np.isnan(weights)
        if others is not None or lacks.any():
            row = lacks.argmax()
            given = f"the weight of edge {row} of {path} is {column[row].as_py()!r}"
            raise ValueError(f"{given}, which is not a number; or leave it out (--exclude).")
    return ends, {"weight": weights, "names": names, "n_nodes": len(names)}


def _cells(path: Path, how: Reading) -> Any:
    """Return the cells of a text, with the names of the columns if the first row holds these."""
    import pyarrow.compute as pc

    table, _ = read_cells(path, replace(how, header=False))
    table = table.from_arrays([*map(pc.utf8_trim_whitespace, table.columns)], table.column_names)
    first, *below = ([*row.values()] for row in table.slice(0, 2).to_pylist())
    header = how.header
    if header is None and len(first) > 1:
        header = _is_header(table, first, *below, decimal=how.decimal, path=path)
    return table.rename_columns(column_names(first, [])).slice(1) if header else table


def _is_header(
    table: Any, first: list[str], second: Sequence[str] = (), *, decimal: str, path: Path
) -> bool:
    """Say whether the first row holds names of columns: no node's, and no numbers."""
    if any(name in table[j].to_pylist()[1:] for name in first[:2] for j in (0, 1)):
        return False
    texts = [j for j, cell in enumerate(first) if kind_of(cell, decimal) != "number"]
    above_numbers = second and any(kind_of(second[j], decimal) == "number" for j in texts)
    if above_numbers or any(name.lower() in _HEADERS for name in first[:2]):
        return True
    if not {0, 1} & {*texts}:
        return False
    raise question(first, "an edge", path)


def read_matrix_market(path: Path) -> sparse.csr_matrix:
    """Read a .mtx file of real numbers, stored by coordinates.

    NumPy reads the numbers: SciPy's reader ends the process at a number that it cannot read.
    """
    with blame(path), path.open("rb") as stream:
        found = _MATRIX_MARKET.fullmatch(stream.readline().decode("latin-1").lower())
        if not found:
            raise ValueError("its first line is not that of coordinates with real weights")
        field, symmetry = found.groups()
        size = next((line for line in stream if line.strip() and line[:1] != b"%"), b"")
        n, n_columns, entries = map(int, size.split())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            table = np.loadtxt(stream, comments="%", ndmin=2, encoding="latin-1")
        width = 2 if field == "pattern" else 3
        if table.shape != (entries, width) and table.size + entries:
            raise ValueError(f"it has {table.shape} numbers in place of ({entries}, {width})")
        ends = (table[:, :2] - 1).astype(np.int64).reshape(-1, 2).T
        data = table[:, 2] if table.shape[1] == 3 else np.ones(entries)
        matrix = as_csr(sparse.coo_matrix((data, ends), shape=(n, n_columns)), path)
        if symmetry == "general":
            return matrix
        return matrix + sparse.tril(matrix, -1).T  # the lower triangle is stored
