"""Graphs in files: edge lists as text or .parquet, .mtx, sparse .npz and .npy, obsp of .h5ad."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io import anndata_files, formats, matrix_market, parquet, text
from heatsketch.io.columns import is_number, numbers
from heatsketch.io.files import blame, listed, suffix_of
from heatsketch.io.header import column_names
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, default_names, objects, refuse_key, require
from heatsketch.io.text import STDIN
from heatsketch.markov.given import taken
from heatsketch.operators import Graph, graph

NODE = "id"  # the column of the names
_CONNECTIVITIES = "connectivities"
_HEADERS = (
    *("source", "target", "from", "to", "src", "dst", "head", "tail", "start", "end"),
    *("node1", "node2", "fromnodeid", "tonodeid", "from_node", "to_node", "parent", "child"),
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
    path = Path(source)
    how = Reading.of(
        key=key, label=label, ids=ids, exclude=exclude, sep=sep, decimal=decimal, header=header
    )
    if str(path) != STDIN and not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; pass an edge list, or a matrix (n, n).")
    suffix = suffix_of(path)
    is_text = str(path) == STDIN or formats.FORMATS.get(suffix) is text
    if not is_text:
        how.refuse_text_options(path)
    extra, label_column = None, None
    with blame(path, ValueError, TypeError, do=""):
        if suffix == ".h5ad":
            table = _of_h5ad(path, how)
            found, extra, label_column = graph(table.values), table.extra, table.label
        elif is_text or suffix == ".parquet":
            found = _of_edges(path, how, is_text=is_text)
        else:
            found = graph(_matrix(path, how, suffix))
    if extra is None:
        extra = {NODE: np.arange(found.matrix.shape[0]) if found.names is None else found.names}
    matrix = taken(found)
    loops = int((found.matrix.sum(axis=1) == 0).sum())
    notes = (f"{loops} node(s) without edges stay where they are",) if loops else ()
    return Table(matrix, default_names(matrix), extra, label_column, str(path), notes=notes)


def _of_h5ad(path: Path, how: Reading) -> Table:
    name = (how.key or _CONNECTIVITIES).removeprefix("obsp/")
    if name.endswith("distances"):
        raise ValueError(
            f"obsp/{name} of {path} holds distances, not weights; pass the connectivities."
        )
    table = anndata_files.read(path, replace(how, key=f"obsp/{name}"))
    require((*how.label, *how.ids), table.extra, path)
    return replace(table, label=how.label[0]) if how.label else table


def _matrix(path: Path, how: Reading, suffix: str) -> Any:
    """Return the matrix (n, n) in a file."""
    if suffix == ".mtx":
        refuse_key(how.key, path)
        matrix = matrix_market.read(path)
    elif suffix in (".npz", ".npy"):
        matrix = formats.read_table(path, key=how.key).values
    else:
        known = ".csv, .tsv, .txt (also with .gz), .parquet, .mtx, .npz, .npy, .h5ad"
        raise ValueError(f"{path} is not a file of a graph; choose from {known}.")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{path} holds a table {matrix.shape}; a graph is a matrix (n, n); leave out "
            "--graph to embed the rows of a table."
        )
    return matrix


def _of_edges(path: Path, how: Reading, *, is_text: bool) -> Graph:
    """Read two columns of names and perhaps one of weights."""
    refuse_key(how.key, path)
    table = _cells(path, how) if is_text else parquet.read_columns(path)
    require(how.exclude, table.column_names, path)
    table = table.drop_columns(list(how.exclude))
    if table.num_columns not in (2, 3):
        raise ValueError(
            f"{path} has {table.num_columns} column(s) ({listed(table.column_names)}); an edge "
            "list has two of names, and perhaps one of weights: leave others out with exclude "
            "(--exclude)."
        )
    if not table.num_rows:
        raise ValueError(f"{path} has no edges; pass an edge list with at least one.")
    ends, names = _nodes([table.column(j) for j in (0, 1)], path)
    weights = _weights(table.column(2), how.decimal, path) if table.num_columns == 3 else None
    return graph(ends, weight=weights, names=names, n_nodes=len(names))


def _cells(path: Path, how: Reading) -> Any:
    """Return the cells of a text, with the names of the columns if the first row holds these."""
    table = text.read_cells(path, how)
    first, *below = table.slice(0, 2).to_pylist()
    if _is_header(table, list(first.values()), [list(row.values()) for row in below], how, path):
        return table.rename_columns(column_names(list(first.values()), [])).slice(1)
    return table


def _is_header(
    table: Any, first: list[str], below: list[list[str]], how: Reading, path: Path
) -> bool:
    """Say whether the first row holds names of columns: no node's, and no numbers."""
    if how.header is not None or len(first) < 2:
        return bool(how.header)
    nodes = {name for column in table.slice(1).columns[:2] for name in column.to_pylist()}
    names = first[:2]
    if nodes & set(names):
        return False
    is_above = any(
        not is_number(name, how.decimal) and is_number(cell, how.decimal)
        for row in below
        for name, cell in zip(first, row, strict=True)
    )
    if is_above or any(name.lower() in _HEADERS for name in names):
        return True
    if all(is_number(name, how.decimal) for name in names):
        return False
    raise ValueError(
        f"the first row of {path} ({', '.join(first)}) may be a header or an edge; pass "
        "header=True (--read header=yes) or header=False (--read header=no)."
    )


def _nodes(columns: list[Any], path: Path) -> tuple[Array, Array]:
    """Return the ends of edges (2, m) as numbers, and the names (n,) in order of appearance."""
    import pyarrow as pa

    parts = []
    for column in columns:
        column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_floating(column.type):
            raise ValueError(
                f"the nodes of {path} are named by floating-point numbers; store integers or text."
            )
        parts.append(column.cast(pa.string()))
    encoded = pa.concat_arrays(parts).dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    ends = encoded.indices.to_numpy().astype(np.int64).reshape(2, -1)
    for missing in {None, ""} & set(names):
        row = int((ends == names.index(missing)).any(axis=0).argmax())
        raise ValueError(f"edge {row} of {path} lacks the name of a node; leave it out.")
    return ends, objects(names)


def _weights(column: Any, decimal: str, path: Path) -> Array:
    """Return the weights (m,), or raise for the first that is not a number."""
    import pyarrow as pa

    column = column.combine_chunks()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False).astype(float)  # type: ignore[no-any-return]
    found = numbers(column.cast(pa.string()), decimal)
    if found is None or found.null_count:
        cells = column.to_pylist()
        row = next(i for i, cell in enumerate(cells) if not is_number(str(cell), decimal))
        raise ValueError(
            f"the weight of edge {row} of {path} is {cells[row]!r}, which is not a number; pass "
            "two columns of names and one of weights, or exclude it (--exclude)."
        )
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
