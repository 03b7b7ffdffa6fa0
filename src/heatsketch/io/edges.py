"""Graphs in files: edge lists as text or .parquet, .mtx, sparse .npz and .npy, obsp of .h5ad."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io import formats, h5ad, matrix_market, parquet, text
from heatsketch.io.files import blame, listed
from heatsketch.io.layout import STDIN, column_names, is_number
from heatsketch.io.matrix_market import no_graph
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, default_names, objects, refuse_key, require
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
    suffix = formats.suffix_of(path)
    if suffix == ".h5ad":
        return _of_h5ad(path, how)
    form = formats.FORMATS.get(suffix)
    if form is text or form is parquet or str(path) == STDIN:
        with blame(path, ValueError, TypeError, do=""):
            found = _of_edges(path, how, is_text=form is not parquet)
    else:
        how.refuse_text_options(path)
        with blame(path, ValueError, TypeError, do=""):
            found = graph(_matrix(path, how, suffix))
    names = np.arange(found.matrix.shape[0]) if found.names is None else found.names
    return _table(found, {NODE: names}, path)


def _table(found: Graph, extra: dict[str, Array], path: Path, label: str | None = None) -> Table:
    matrix = taken(found)
    loops = int((found.matrix.sum(axis=1) == 0).sum())
    notes = (f"{loops} node(s) without edges stay where they are",) if loops else ()
    return Table(matrix, default_names(matrix), extra, label, str(path), notes=notes)


def _of_h5ad(path: Path, how: Reading) -> Table:
    name = (how.key or _CONNECTIVITIES).removeprefix("obsp/")
    if name.endswith("distances"):
        raise ValueError(
            f"obsp/{name} of {path} holds distances, not weights; pass the connectivities."
        )
    how.refuse_text_options(path)
    table = h5ad.read(path, replace(how, key=f"obsp/{name}"))
    with blame(path, TypeError, ValueError, do=""):
        found = graph(table.values)
    label = how.label[0] if how.label else table.label
    require((*how.label, *how.ids), table.extra, path)
    return replace(_table(found, table.extra, path, label), metadata={})


def _matrix(path: Path, how: Reading, suffix: str) -> Any:
    """Return the matrix (n, n) in a file."""
    if suffix == ".mtx":
        refuse_key(how.key, path)
        return matrix_market.read(path)
    if suffix not in (".npz", ".npy"):
        known = ".csv, .tsv, .txt (also with .gz), .parquet, .mtx, .npz, .npy, .h5ad"
        raise ValueError(f"{path} is not a file of a graph; choose from {known}.")
    matrix = formats.read_table(path, key=how.key).values
    if matrix.shape[0] != matrix.shape[1]:
        raise no_graph(path, matrix.shape)
    return matrix


def _of_edges(path: Path, how: Reading, *, is_text: bool) -> Graph:
    """Read two columns of names and perhaps one of weights."""
    refuse_key(how.key, path)
    table = _of_text(path, how) if is_text else parquet.read_columns(path)
    require(how.exclude, table.column_names, path)
    table = table.drop_columns(list(how.exclude))
    if table.num_columns not in (2, 3):
        raise ValueError(
            f"{path} has {table.num_columns} column(s) ({listed(table.column_names)}); an edge "
            "list has two of names, and perhaps one of weights: leave others out with exclude "
            "(--exclude)."
        )
    tail, head, *weight = (table.column(j).combine_chunks() for j in range(table.num_columns))
    ends, names = _numbered(tail, head, path)
    weights = _weights(weight[0], how.decimal, path) if weight else None
    return graph(ends, weight=weights, names=names, n_nodes=len(names))


def _of_text(path: Path, how: Reading) -> Any:
    """Return the cells of a text, with the names of the columns if the first row holds these."""
    table = text.read_cells(path, how)
    if table.num_rows and _has_header(table, how, path):
        names = [str(table.column(j)[0]) for j in range(table.num_columns)]
        table = table.rename_columns(column_names(names, [])).slice(1)
    return table


def _has_header(table: Any, how: Reading, path: Path) -> bool:
    """Say whether the first row holds the names of the columns."""
    import pyarrow.compute as pc

    if how.header is not None or table.num_columns < 2:
        return bool(how.header)
    first, second = ([str(c[0]) for c in table.slice(i, 1).columns if len(c)] for i in (0, 1))
    below = table.slice(1)
    ends = [(name, column) for name in first[:2] for column in below.columns[:2]]
    if any(pc.any(pc.equal(column, name)).as_py() for name, column in ends):
        return False  # it is a node
    numbers = [[is_number(cell, how.decimal) for cell in row] for row in (first, second)]
    above = any(not a and b for a, b in zip(*numbers, strict=False))
    if above or any(name.lower() in _HEADERS for name in first[:2]):
        return True
    if all(numbers[0][:2]):
        return False
    raise ValueError(
        f"the first row of {path} ({', '.join(first)}) may be a header or an edge; pass "
        "header=True (--header) or header=False (--no-header)."
    )


def _numbered(tail: Any, head: Any, path: Path) -> tuple[Array, Array]:
    """Return the ends of edges (2, m) as numbers, and the names (n,) in order of appearance."""
    import pyarrow as pa

    m = len(tail)
    if m == 0:
        raise ValueError(f"{path} has no edges; pass an edge list with at least one.")
    both = pa.concat_arrays([_as_names(column, path) for column in (tail, head)])
    encoded = both.dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    numbers = encoded.indices.to_numpy().astype(np.int64).reshape(2, m)
    for missing in {None, ""} & set(names):
        row = int((numbers == names.index(missing)).any(axis=0).argmax())
        raise ValueError(f"edge {row} of {path} lacks the name of a node; leave it out.")
    return numbers, objects(names)


def _as_names(column: Any, path: Path) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_integer(column.type):
        return column.cast(pa.int64()).cast(pa.string())
    if types.is_floating(column.type):
        raise ValueError(
            f"the nodes of {path} are named by floating-point numbers; store integers or text."
        )
    return column.cast(pa.string())


def _weights(column: Any, decimal: str, path: Path) -> Array:
    """Return the weights (m,), or raise for the first that is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False).astype(float)  # type: ignore[no-any-return]
    cells = column.cast(pa.string())
    if decimal == ",":
        cells = pc.replace_substring(cells, ",", ".")
    with suppress(pa.ArrowInvalid):
        return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    for row, cell in enumerate(cells.to_pylist()):
        if not is_number(cell or ""):
            raise ValueError(
                f"the weight of edge {row} of {path} is {cell!r}, which is not a number; pass two "
                "columns of names and one of weights, or exclude it (--exclude)."
            )
    return np.array([float(cell) for cell in cells.to_pylist()])
