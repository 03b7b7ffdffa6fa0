"""The formats of files: the functions that read, write and stream each, and shared checks."""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch import datasets
from heatsketch._arrays import Array
from heatsketch._words import did_you_mean
from heatsketch.io import anndata_files, numpy_files, parquet, text
from heatsketch.io.anndata_files import DEFAULT_KEY, check_key
from heatsketch.io.files import PIPE, blame, check_target, listed, need, suffix_of, write_atomically
from heatsketch.io.metadata import Record, encoded
from heatsketch.io.table import (
    Blocks,
    Learned,
    Reading,
    Table,
    as_float,
    default_names,
    of_array,
    of_parts,
    refined,
    stamp,
    with_label,
)
from heatsketch.io.text import arrow_table


class Format(NamedTuple):
    """What can be done with the files of a suffix.

    The module has `read(path, how)`, and perhaps `write(draft, embedding, names, table, key, note)`
    and `blocks(path, how)`. The note is metadata or ""; text and .npy have no place for it and drop
    it.
    """

    module: Any
    is_written: bool = True
    by_blocks: bool = False
    has_arrays: bool = False  # or sheets, of which a key names one
    has_columns: bool = False  # others beside coordinates
    package: str = ""  # that writing needs


_TEXT = Format(text, by_blocks=True, has_columns=True, package="pyarrow")
FORMATS = {
    ".npy": Format(numpy_files, by_blocks=True),
    ".npz": Format(numpy_files, has_arrays=True),
    **dict.fromkeys(text.SUFFIXES, _TEXT),
    ".parquet": _TEXT._replace(module=parquet),
    **dict.fromkeys(parquet.ARROW, _TEXT._replace(module=parquet, is_written=False)),
    ".h5ad": Format(anndata_files, by_blocks=True, has_arrays=True, package="anndata"),
    ".xlsx": Format(text, is_written=False, has_arrays=True, has_columns=True),
    ".zarr": Format(anndata_files, is_written=False, by_blocks=True, has_arrays=True),
}
SUFFIXES = tuple(suffix for suffix, form in FORMATS.items() if form.is_written)
BLOCK_FORMATS = tuple(suffix for suffix, form in FORMATS.items() if form.by_blocks)
WITH_ARRAYS = tuple(suffix for suffix, form in FORMATS.items() if form.has_arrays)
PART_SUFFIXES = (".npy", ".parquet", ".csv", ".arrow")  # of the parts in a folder


def read_table(
    source: str | Path,
    *,
    label: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    key: str | None = None,
    features: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    missing: str = "keep",
    standardize: bool = False,
    sep: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
    encode: bool = False,
) -> Table:
    """Read points, their ids and their labels from a file or a built-in data set.

    Parameters
    ----------
    source : str or path
        A file with one of the suffixes .npy, .npz, .csv, .tsv, .txt (also with .gz), .parquet,
        .arrow, .feather, .xlsx, .h5ad, .zarr; "-" for text on standard input; or the name of
        a built-in data set (a key of `datasets.DATASETS`, drawn with seed 0).
    label : str or sequence of str, default=()
        Label columns; the first one is used for colours. By default this is the first column called
        label, labels, target, class or label_…, else one with few whole numbers called outcome,
        cluster, species, group or the like, else the first text column with at most 50 distinct
        values. In .npz `y` is a label, in .h5ad the first categorical column is preferred.
    ids : str or sequence of str, default=()
        Further columns of ids, which are not features. Columns called id or index, or with the
        names that pandas and R give row numbers (rownames, Unnamed: 0, ...), are also ids, unless
        they are among `features`.
    key : str or None, default=None
        The array to read. In .npz: its name; by default `X`, else `embedding`, else the only 2-d
        array. In .h5ad and .zarr: "obsm/NAME" or "layers/NAME", or NAME alone for the first of
        these that exists; by default X, or "X_pca" if it exists and X has more than 50 columns, as
        in scanpy. In .xlsx: the name of the sheet, by default the first.
    features : str or sequence of str, default=()
        Columns to use as features; by default all numeric ones that are not ids, labels or
        excluded. Whole numbers that are all different and in equal steps, in 20 rows or more, are
        ids, also years. `notes` names them, and labels found by their few whole numbers.
    exclude : str or sequence of str, default=()
        Columns that are not features; they are passed through, like ids.
    missing : {"keep", "error", "drop", "median"}, default="keep"
        Missing numbers stay NaN ("keep"), raise ("error"), remove their rows ("drop") or become the
        median of their column ("median"). With "drop" and "median", text in a column of numbers is
        also missing; `notes` of the table names such cells.
    standardize : bool, default=False
        Scale every feature to mean 0 and variance 1 (sparse ones to variance 1 only), so that
        columns in different units have the same weight.
    encode : bool, default=False
        Make features of columns of all types, also of text, dates and booleans, by a
        `TableEncoder`: each column counts alike. `notes` says which are left out, and
        ``learned["encoder"].describe()`` what the others became. With ``missing="median"`` a
        missing category becomes the most frequent one. Name labels by `label`, so that they are no
        features.
    sep : str, default=None
        For text: the character between cells, "tab", or "space" for any run of blanks. By default
        the one of tab, semicolon, comma, | and (in .txt) blanks that gives all rows the same number
        of cells.
    decimal : "." or ",", default="."
        For text: the decimal mark.
    header : bool, default=None
        For text and .xlsx: whether the first row holds the names of the columns. By default it does
        if it has no number, or a usual name (id, name, sample, group, …) beside its numbers, or an
        empty cell above names or numbers of rows. If its numbers may be names (even steps, fewer
        digits or another scale than below; whole or increasing ones beside a text that does not
        occur below or an empty cell), an error asks for this option.

    Returns
    -------
    Table
        In tables of named columns the numeric and boolean columns are the features; all others are
        passed through, unless `encode` is true. A column of lists of numbers in .parquet or .arrow,
        all of one size, is points by itself: its entries are the features, and numbers beside it
        are passed through. `features` names one of several such columns, `exclude` leaves it out.
        Text without header gets columns x0, x1, …; a first row 0, 1, 2, …, which pandas writes for
        columns without names, is a header. Lines at the top that begin with # are comments; the
        last of them is the header if the rows have none.
        `metadata` is the record that `write_table` stored of how the values were made, unchecked.
        `notes` lists the changes by reading.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file or set; or if it is a folder (other than .zarr).
    ValueError
        If the file is not in the format of its suffix, or lacks features or a named column. If a
        column looks numeric (half of its cells are numbers) and has other cells, or integers beyond
        2^53; the message names row, column and value. If the first row may be a header or data.
    ImportError
        If the format needs a library that is not installed.

    See Also
    --------
    io.read_graph : Read a graph from a file.
    io.write_table : Write an embedding with ids and labels.
    io.Table : Points with names of features, ids and labels.

    Examples
    --------
    >>> from heatsketch import io
    >>> table = io.read_table("digits")
    >>> table.values.shape, table.label, table.extra["label"][:3].tolist()
    ((1797, 64), 'label', [0, 1, 2])
    >>> io.read_table("digits", features=["x10", "x11"], standardize=True).values.std(axis=0)
    array([1., 1.])
    """
    how = Reading(
        label, ids, key, features, exclude, missing, standardize, sep, decimal, header, encode
    )
    return refined(with_label(_read(source, how), how), how)


def read_like(source: str | Path, learned: Learned, **options: Any) -> Table:
    """Read points like another table: with its columns, medians, means and scales.

    Columns are found by their names, in any order; all others are passed through. `options` are
    those of `read_table`, except `features`, `exclude`, `standardize` and `encode`.
    """
    encoder = learned.get("encoder")
    known = {} if encoder is None else {"encode": True, "texts": encoder._texts}
    how = Reading(**options, features=learned["columns"], **known)
    return refined(with_label(_read(source, how), how), how, learned)


def read_embedding(
    path: str | Path,
    key: str | None = None,
    metadata: dict[str, Any] | None = None,
    *,
    ids: Sequence[str] = (),
    coordinates: Sequence[str] = (),
) -> Table:
    """Read the coordinates of an embedding, which `write_table` may have written.

    Other columns may hold anything. Without `key`, a .h5ad file gives the embedding that
    `write_table` wrote to it. `metadata` replaces that in the file. The table has something
    `learned` if its columns are known to be coordinates: by their names in `coordinates`, or by the
    record of `write_table`.
    """
    path = Path(path)
    if key is None and suffix_of(path) == ".h5ad" and path.is_file():
        key = anndata_files.key_of_embedding(path)
    how = Reading(key=key, ids=ids, features=coordinates, strict=False)
    table = _read(path, how)
    table = table if metadata is None else replace(table, metadata=metadata)
    if coordinates:
        return refined(table, how)
    recorded = Record(table.metadata).columns
    if recorded and {*recorded} <= {*table.columns}:
        return refined(table, Reading(features=recorded))
    return table


def _read(source: str | Path, how: Reading) -> Table:
    """Read a file, standard input or a built-in data set without any refinement."""
    if isinstance(source, str) and source in datasets.DATASETS:
        how.refuse_key(source)
        make = datasets.DATASETS[source]
        is_random = "rng" in inspect.signature(make).parameters
        values, coordinates = make(rng=0) if is_random else make()
        names = datasets.COORDINATES[source]
        extra = dict(zip(names, coordinates.reshape(len(values), -1).T, strict=True))
        return Table(values, default_names(values), extra, names[0], source)
    path = Path(source)
    if str(path) != PIPE and not path.exists():
        beside = map(str, path.parent.iterdir()) if path.parent.is_dir() else ()
        raise FileNotFoundError(
            f"{path} does not exist and is not a built-in set; the sets are "
            f"{listed(datasets.DATASETS)}{did_you_mean(path, [*datasets.DATASETS, *beside])}"
        )
    if path.is_dir() and suffix_of(path) != ".zarr":
        raise IsADirectoryError(f"{path} is a folder; pass a file.")
    with blame(path):
        table: Table = _format_of(path, FORMATS, how).read(path, how)
        return table


def _format_of(path: Path, suffixes: Iterable[str], how: Reading = Reading()) -> Any:
    """Return the module for a path, after a check that its format has arrays if a key is given."""
    suffix = ".txt" if str(path) == PIPE else suffix_of(path)
    if suffix not in suffixes:
        raise ValueError(f"{path} has no known suffix; choose from {', '.join(suffixes)}.")
    if suffix not in WITH_ARRAYS:
        how.refuse_key(path)
    return FORMATS[suffix].module


def open_blocks(source: Any, how: Reading) -> Blocks:
    """Return the points of a file, a folder of parts or an array by blocks.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If its format can only be read whole; other errors as in `read_table`.
    """
    is_named = isinstance(source, str | Path)
    form = FORMATS.get(suffix_of(Path(source))) if is_named else None
    if how.encode and (form is None or not form.has_columns):
        raise ValueError(
            f"{source if is_named else 'the array'} is read by blocks, but encode=True (--encode) "
            "is then for one text, .parquet or .arrow file; write one, or pass standardize=True "
            "(--standardize)."
        )
    if not is_named:
        return of_array(source)
    path = Path(source)
    if parts := parts_of(path):
        first = open_blocks(parts[0], how)  # decides on the features: a short part shows less
        like_it = replace(how, features=[c for c in first.columns if c not in how.exclude])
        return of_parts([first, *(open_blocks(part, like_it) for part in parts[1:])], path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; name a file, or a folder of parts.")
    if suffix_of(path) not in BLOCK_FORMATS:
        formats = f"{', '.join(BLOCK_FORMATS)}, or a folder of parts ({', '.join(PART_SUFFIXES)})"
        raise ValueError(f"{path} is not read by blocks; pass {formats}.")
    form = _format_of(path, FORMATS, how)
    with blame(path):
        found: Blocks = form.blocks(path, how)

    def tables(start: int) -> Iterator[Table]:
        with blame(path):
            yield from found.read(start)

    return replace(found, read=tables, stamp=partial(stamp, path))


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in a folder of points, in the order of their names: part-10 after part-2."""
    if not folder.is_dir() or suffix_of(folder) in BLOCK_FORMATS:
        return []

    def order(path: Path) -> list[int | str]:
        return [int(x) if x.isdecimal() else x for x in re.split(r"(\d+)", path.name)]

    found = [[f for f in folder.iterdir() if suffix_of(f) == suffix] for suffix in PART_SUFFIXES]
    return sorted(next(filter(None, found), []), key=order)


def write_table(
    path: str | Path,
    embedding: Array,
    names: Sequence[str],
    table: Table,
    *,
    key: str = DEFAULT_KEY,
    metadata: dict[str, Any] | None = None,
    force: bool = False,
    in_place: bool = False,
) -> None:
    """Write an embedding, with the ids and labels of its points, in the format of the suffix.

    Parameters
    ----------
    path : str or path
        The file to write: .npy (only the embedding), .npz (`embedding`, `columns`, ids, labels),
        .csv, .tsv, .txt (also with .gz), .parquet (ids and labels first, then the coordinates), or
        .h5ad; "-" writes .csv to standard output.
    embedding : array-like of shape (n_samples, n_components)
        Finite coordinates. float32 stays float32, other types become float64; text formats keep
        every digit.
    names : sequence of str
        Names of the coordinates.
    table : Table
        The points, as read by `read_table`. An id or label whose name is also in `names` gets the
        suffix "_input". If points from a .h5ad file are written to .h5ad, the result is a copy of
        that file with the embedding; otherwise a new file with the points as X.
    key : str, default="X_heat"
        The entry of obsm in .h5ad; in a copy, an entry of that name is replaced if `force` is true.
    metadata : dict, default=None
        Record of how the embedding was made, which `read_table` returns with it. It is stored as
        JSON in the array `heatsketch` of .npz, the schema of .parquet and uns["heatsketch"][key] of
        .h5ad. Text and .npy have no place for it and drop it.
    force : bool, default=False
        Replace the file, or the entry of obsm, if it exists.
    in_place : bool, default=False
        Add the embedding to the .h5ad file of the points; `path` must name that file. A complete
        copy replaces it at the end.

    Raises
    ------
    FileExistsError
        If the file or the entry of obsm exists and `force` is false.
    ValueError
        If the suffix is unknown, the file is that of the points, the embedding is not finite, or
        the shapes do not fit.

    See Also
    --------
    io.read_table : Read points, ids and labels from a file.
    io.write_atomically : Write a file completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from heatsketch import io
    >>> table = io.read_table("digits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.csv")
    ...     io.write_table(path, table.values[:, :2] / 16, ["a", "b"], table)
    ...     io.read_table(path).columns
    ('a', 'b')
    """
    embedding = as_float(np.asarray(embedding), "the embedding")
    (n, k), points, names = embedding.shape, table.values.shape[0], tuple(map(str, names))
    if n != points:
        raise ValueError(f"the embedding has {n} rows but {table.source} has {points} points.")
    if len(names) != k or len(set(names)) != k:
        raise ValueError(f"names={listed(names)} for {k} coordinates; pass {k} different names.")
    if not np.isfinite(embedding).all():
        raise ValueError("the embedding has NaN or infinite entries; nothing was written.")
    path = Path(path)
    if str(path) == PIPE:
        lines = need("pyarrow.csv", Path("stdout.csv"))
        lines.write_csv(arrow_table(embedding, names, table), sys.stdout.buffer)
        sys.stdout.flush()
        return
    form = _format_of(path, SUFFIXES)
    check_target(path, force=force, source=table.source, in_place=in_place)
    check_key(path, table.source, key, force=force)
    made = embedding, names, table, key, encoded(metadata) if metadata else ""
    write_atomically(path, lambda draft: form.write(draft, *made), force=force or in_place)
