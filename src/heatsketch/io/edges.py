"""Graphs in files: edges in text, .parquet, .arrow; .mtx, sparse .npz and .npy, obsp of .h5ad."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch.core.graph import graph
from heatsketch.io import anndata_files, numpy_files
from heatsketch.io.files import PIPE, blame, listed, suffix_of
from heatsketch.io.formats import WITH_ARRAYS
from heatsketch.io.parquet import SUFFIXES as COLUMNS
from heatsketch.io.parquet import read_columns
from heatsketch.io.table import Reading, Table, as_float, check_names, default_names, with_label
from heatsketch.io.text import (
    SUFFIXES,
    classified,
    column_names,
    kind_of,
    names_columns,
    question,
    read_cells,
)
from heatsketch.markov.affinity import as_matrix

_ENDS = (  # usual names of the columns of edges; in a table of points these may be data
    *("source", "target", "from", "to", "src", "dst", "head", "tail", "start", "end", "parent"),
    *("child", "node1", "node2", "fromnodeid", "tonodeid", "from_node", "to_node"),
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
        An edge list: .csv, .tsv, .txt (also with .gz), .parquet, .arrow, .feather, or "-" for text
        on standard input, with two columns of names and perhaps one of weights. Or a matrix of
        shape (n_nodes, n_nodes): Matrix Market (.mtx), .npz, .npy, or an entry of obsp in .h5ad.
        Integers of shape (2, n_edges) in .npy are edges.
    key : str, default=None
        The array in .npz; in .h5ad the entry of obsp, by default "connectivities".
    label : str or sequence of str, default=()
        Columns of labels of obs in .h5ad.
    ids : str or sequence of str, default=()
        Columns of ids of obs in .h5ad.
    exclude : str or sequence of str, default=()
        Columns of an edge list to ignore: neither names nor weights.
    sep : str, default=None
        For text: the character between cells, "tab", or "space" for any run of blanks. By default
        the one that gives all rows the same number of cells.
    decimal : {".", ","}, default="."
        For text: the decimal mark.
    header : bool, default=None
        For text: whether the first row is a header. By default the first row is an edge if one of
        its names is that of a node below; a header if a text is above a number, or its names are
        usual (source, target, from, to, …); else an edge if both names are numbers. Otherwise an
        error asks.

    Returns
    -------
    Table
        `values` is the symmetric matrix of the weights, of shape (n_nodes, n_nodes): the larger
        weight of the two directions, the sum of parallel edges, a self-loop of the mean degree for
        a node without edges. The column "id" has the names in the order in which they first appear:
        those of the first column of an edge list, then the others of the second.

    Raises
    ------
    ValueError
        An edge list without two columns of names and at most one of weights; a missing name; a
        weight that is not a number >= 0; a first row that may be a header or an edge.
    FileNotFoundError, ImportError
        There is no such file; the format needs a library that is not installed.

    See Also
    --------
    io.read_table : Read points, ids and labels from a file.
    graph : Read a graph of any library.

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
    how = Reading(label, ids, key, exclude=exclude, sep=sep, decimal=decimal, header=header)
    path, suffix = Path(source), suffix_of(source)
    is_text = str(path) == PIPE or suffix in SUFFIXES
    if str(path) != PIPE and not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; pass an edge list, or a matrix (n, n).")
    extra, preferred = {}, None
    details: dict[str, Any] = {}
    if suffix not in WITH_ARRAYS:
        how.refuse_key(path)
    with blame(path):
        if is_text or suffix in COLUMNS:
            given, details = _edges(_cells(path, how) if is_text else read_columns(path), how, path)
        elif suffix in _MATRICES:
            table = _MATRICES[suffix](path, how)
            given, extra, preferred = table.values, table.extra, table.label
            if suffix == ".npy" and given.shape[0] != given.shape[1]:  # edges are integers
                given = np.load(path, allow_pickle=False)
        else:
            formats = ", ".join([*SUFFIXES, *COLUMNS, *_MATRICES])
            raise ValueError(f"{path} is not a file of a graph; choose from {formats}.")
    with blame(path, do=""):
        found = graph(given, **details)
    matrix = as_matrix(found)
    names = np.arange(matrix.shape[0]) if found.names is None else found.names
    extra = extra or {"id": names}
    loops = int((found.matrix.sum(axis=1) == 0).sum())
    notes = (f"{loops} node(s) without edges stay where they are",) if loops else ()
    table = with_label(Table(matrix, (), extra, preferred, str(path), notes=notes), how)
    return replace(table, columns=default_names(matrix))


def _of_h5ad(path: Path, how: Reading) -> Table:
    """Read an entry of obsp, and obs."""
    name = (how.key or "connectivities").removeprefix("obsp/")
    if name.endswith("distances"):
        raise ValueError(f"obsp/{name} of {path} holds distances, not weights.")
    return anndata_files.read(path, replace(how, key=f"obsp/{name}"))


def _edges(table: Any, how: Reading, path: Path) -> tuple[Array, dict[str, Any]]:
    """Return the edges (2, m) by numbers of nodes, the names of nodes and any weights of edges."""
    import pyarrow as pa

    check_names(how.exclude, table.column_names, path)
    table = table.drop_columns(list(how.exclude))
    if table.num_columns not in (2, 3):
        raise ValueError(
            f"{path} has {table.num_columns} column(s) ({listed(table.column_names)}); an edge "
            "list has two of names, perhaps a weight; leave others out with exclude (--exclude)."
        )
    if not table.num_rows:
        raise ValueError(f"{path} has no edges; pass an edge list with at least one.")
    both = [chunk for column in table.columns[:2] for chunk in column.cast(pa.string()).chunks]
    encoded = pa.concat_arrays(both).dictionary_encode(null_encoding="encode")
    names = np.array(encoded.dictionary.to_pylist(), dtype=object)
    ends = encoded.indices.to_numpy().astype(np.int64).reshape(2, -1)
    lacks = np.isin(ends, [i for i, name in enumerate(names) if not name]).any(axis=0)
    if lacks.any():
        raise ValueError(f"edge {lacks.argmax()} of {path} lacks the name of a node; leave it out.")
    weights = None
    if table.num_columns == 3:
        column = table[2].combine_chunks()
        column = column.cast(pa.float64()) if pa.types.is_floating(column.type) else column
        text = column.cast(pa.string())
        weights = classified(text, how.decimal)[0]
        if (lacks := np.isnan(weights)).any():
            row = lacks.argmax()
            given = f"the weight of edge {row} of {path} is {column[row].as_py()!r}"
            raise ValueError(f"{given}, which is not a number; or leave it out (--exclude).")
    return ends, {"weight": weights, "names": names, "n_nodes": len(names)}


def _cells(path: Path, how: Reading) -> Any:
    """Return the cells of a text; the first row names the columns if it holds no node or number.

    Raises
    ------
    ValueError
        If it may be an edge.
    """
    import pyarrow.compute as pc

    table, _ = read_cells(path, replace(how, header=False))
    table = table.from_arrays([*map(pc.utf8_trim_whitespace, table.columns)], table.column_names)
    rows = [[*row.values()] for row in table.slice(0, 2).to_pylist()]
    first, header = rows[0], how.header
    if header is None and len(first) > 1:
        nodes = {name for column in table.columns[:2] for name in column.to_pylist()[1:]}
        numbers = [[kind_of(cell, how.decimal) == "number" for cell in row] for row in rows]
        is_above_numbers = any(n > word for word, n in zip(numbers[0], numbers[-1], strict=True))
        if nodes & {*first[:2]}:
            header = False
        elif is_above_numbers or all(x.lower() in _ENDS or names_columns(x) for x in first[:2]):
            header = True
        elif not all(numbers[0][:2]):
            raise question(first, "an edge", path)
    return table.rename_columns(column_names(first)).slice(1) if header else table


def read_matrix_market(path: Path, how: Reading = Reading()) -> Table:
    """Read a .mtx file of real numbers, stored by coordinates.

    NumPy reads the numbers, because SciPy's reader ignores text after them, or ends the process.
    """
    with blame(path), path.open("rb") as stream:
        found = _MATRIX_MARKET.fullmatch(stream.readline().decode("latin-1").lower())
        if not found:
            raise ValueError("its first line is not that of coordinates with real weights")
        size = next((line for line in stream if line.strip() and line[:1] != b"%"), b"")
        n, n_columns, entries = map(int, size.split())
        width = 2 if found[1] == "pattern" else 3
        table = np.empty((0, width))
        if entries:
            table = np.loadtxt(stream, comments="%", ndmin=2, encoding="latin-1")
        if table.shape != (entries, width) or stream.read().strip():
            raise ValueError(f"it has {table.shape} numbers in place of ({entries}, {width})")
        data = table[:, 2] if width == 3 else np.ones(entries)
        ends = (table[:, :2] - 1).astype(np.int64).T
        matrix = as_float(sparse.coo_matrix((data, ends), shape=(n, n_columns)), path, path)
        if found[2] == "symmetric":  # the lower triangle is stored
            matrix += sparse.tril(matrix, -1).T
        return Table(matrix, default_names(matrix), {}, None, str(path))


_MATRICES = {
    ".mtx": read_matrix_market,
    **dict.fromkeys((".npz", ".npy"), numpy_files.read),
    ".h5ad": _of_h5ad,
}
