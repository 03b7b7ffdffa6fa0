"""Reading and writing by suffix: the module of each format, and the checks that all share."""

import inspect
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from heatsketch import datasets
from heatsketch._typing import Array
from heatsketch.io import h5ad, npy, npz, parquet, text
from heatsketch.io.files import blame, check_target, listed, write_atomically
from heatsketch.io.metadata import encoded, read_beside, write_beside
from heatsketch.io.table import Names, Table, default_names, refuse_key
from heatsketch.io.values import as_float


class Format(Protocol):
    """The functions of a module that is a file format, and whether its files keep metadata."""

    KEEPS_METADATA: bool

    def read(self, path: Path, key: str | None, label: Names, ids: Names) -> Table:
        """Read the array `key`; columns among `label` and `ids` are not features."""

    def write(
        self, draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str
    ) -> None:
        """Write an embedding (n, k), float32 or float64, with the ids and labels of `table`.

        `note` is its metadata, or ""; it is lost unless the format keeps metadata.
        """


FORMATS: dict[str, Format] = {
    ".npy": npy,
    ".npz": npz,
    ".csv": text,
    ".tsv": text,
    ".parquet": parquet,
    ".h5ad": h5ad,
}
SUFFIXES = tuple(FORMATS)


def read_table(
    source: str | Path,
    *,
    label: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    key: str | None = None,
) -> Table:
    """Read points, their ids and their labels from a file or a built-in set.

    Parameters
    ----------
    source : str or path
        A file with one of the suffixes .npy, .npz, .csv, .tsv, .parquet, .h5ad; or a folder of
        MNIST IDX files; or the name of a built-in set (a key of `datasets.DATASETS`, drawn with
        seed 0). The name means the set even if there is such a folder; "./digits" is the folder.
    label : str or sequence of str, default ()
        Label columns; the first one is used for colours. By default this is the first column called
        label, labels, target, class or label_…, else the first text column with at most 50
        distinct values. In .npz `y` is a label, in .h5ad the first categorical column is preferred.
    ids : str or sequence of str, default ()
        Further columns that are not features. Columns called id or index never are.
    key : str or None, default None
        The array to read. In .npz its name; by default `X`, else `embedding`, else the only 2-d
        array.
        In .h5ad "obsm/NAME" or "layers/NAME", or NAME alone for the first of these that exists;
        by default X. In an MNIST folder "test" (default), "train" or "all".

    Returns
    -------
    Table
        In .csv, .tsv and .parquet the numeric and boolean columns are the features, all others
        are passed through. A .csv file whose first row has only numbers has no header and gets
        columns x0, x1, …, unless that row is 0, 1, 2, …, which pandas writes for columns without
        names. Missing numbers are NaN. `metadata` says how the values were made, where
        `write_table` was told; it is not checked.

    Raises
    ------
    FileNotFoundError
        If there is no such file, folder or set.
    ValueError
        If the file is not of the format of its suffix, or lacks features or a column that is named.
    ImportError
        If the format needs pyarrow or h5py, which is not installed.

    Examples
    --------
    >>> from heatsketch import io
    >>> table = io.read_table("digits")
    >>> table.values.shape, table.label, table.extra["label"][:3].tolist()
    ((1797, 64), 'label', [0, 1, 2])
    """
    label, ids = _as_names(label), _as_names(ids)
    if isinstance(source, str) and source in datasets.DATASETS:
        table = _read_builtin(source, key)
    else:
        path = Path(source)
        with blame(path, UnicodeError, json.JSONDecodeError):
            table = _read_path(path, key, label, ids)
    for name in label + ids:
        if name not in table.extra:
            known = listed([*table.extra, *table.columns])
            raise ValueError(f"{source} has no id or label column {name!r}; choose from {known}.")
    return replace(table, label=label[0]) if label else table


def _as_names(names: str | Sequence[str]) -> Names:
    return (names,) if isinstance(names, str) else tuple(names)


def _read_builtin(name: str, key: str | None) -> Table:
    refuse_key(key, name)
    make = datasets.DATASETS[name]
    random = "rng" in inspect.signature(make).parameters
    values, coordinates = make(rng=0) if random else make()
    names = datasets.COORDINATES[name]
    extra = dict(zip(names, coordinates.reshape(len(values), -1).T, strict=True))
    return Table(values, default_names(values), extra, names[0], name)


def _read_path(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    if path.is_dir():
        values, digit = datasets.mnist(path, part=key or "test")
        return Table(values, default_names(values), {"label": digit}, "label", str(path))
    if not path.exists():
        sets = listed(datasets.DATASETS)
        raise FileNotFoundError(
            f"{path} does not exist and is not a built-in set; the sets are {sets}."
        )
    form = _format_of(path)
    table = form.read(path, key, label, ids)
    return table if form.KEEPS_METADATA else replace(table, metadata=read_beside(path))


def _format_of(path: Path) -> Format:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{path} has no known suffix; choose from {', '.join(SUFFIXES)}.")
    return FORMATS[suffix]


def write_table(
    path: str | Path,
    embedding: Array,
    names: Sequence[str],
    table: Table,
    *,
    key: str = "X_heatsketch",
    metadata: dict[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write an embedding, with the ids and labels of its points, in the format of the suffix.

    Parameters
    ----------
    path : str or path
        The file to write: .npy (the embedding alone), .npz (`embedding`, `columns`, ids, labels),
        .csv, .tsv, .parquet (ids and labels first, then the coordinates), or .h5ad.
    embedding : array (n, k), finite
        Coordinates. float32 stays float32, other types become float64; text formats keep every
        digit.
    names : sequence of k str
        Names of the coordinates.
    table : Table
        The points, as read by `read_table`. An id or label whose name is also one of `names` gets
        the ending "_input". If points from a .h5ad file are written to .h5ad, the result is a copy
        of that file with the embedding; otherwise a new file with the points as X.
    key : str, default "X_heatsketch"
        The entry of obsm in .h5ad; in a copy, an entry of that name is replaced.
    metadata : dict, optional
        How the embedding was made, which `read_table` returns with it: JSON in the array
        `heatsketch` of .npz, the schema of .parquet and uns["heatsketch"][key] of .h5ad. Files
        .csv, .tsv and .npy stay as other programs expect them: theirs goes to a second file
        PATH.json, which is replaced; it counts only as long as the first file is unchanged.
    force : bool, default False
        Replace the file if it exists.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is false.
    ValueError
        If the suffix is unknown, the file is that of the points, the embedding is not finite, or
        the shapes do not fit.

    Notes
    -----
    In .csv and .tsv, text among ids and labels (and their names) that begins with =, +, -, @, tab
    or carriage return gets a leading apostrophe, so that no spreadsheet runs it as a formula.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from heatsketch import io
    >>> table = io.read_table("digits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "first_two.csv")
    ...     io.write_table(path, table.values[:, :2], ["a", "b"], table)
    ...     io.read_table(path).columns
    ('a', 'b')
    """
    path = Path(path)
    form = _format_of(path)
    check_target(path, force=force, source=table.source)
    embedding = as_float(np.asarray(embedding), "the embedding")
    names = _check_names(embedding, names, table)
    note = "" if metadata is None else encoded(metadata)

    def write(draft: Path) -> None:
        form.write(draft, embedding, names, table, key, note)

    write_atomically(path, write, force=force)
    if metadata is not None and not form.KEEPS_METADATA:
        write_beside(path, metadata)


def _check_names(embedding: Array, names: Sequence[str], table: Table) -> Names:
    n, k = embedding.shape
    if n != table.values.shape[0]:
        raise ValueError(
            f"the embedding has {n} rows but {table.source} has {table.values.shape[0]} points; "
            "pass one row per point."
        )
    if len(names) != k or len(set(names)) != k:
        raise ValueError(f"names={listed(names)} for {k} coordinates; pass {k} different names.")
    if not np.isfinite(embedding).all():
        raise ValueError("the embedding has NaN or infinite entries; nothing was written.")
    return tuple(map(str, names))
