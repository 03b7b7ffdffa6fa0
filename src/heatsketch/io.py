"""Tables of points in, tables of embeddings out: .npy, .npz, .csv, .tsv, .parquet, .h5ad.

Files are read as hostile: sizes are checked before memory is taken, nothing is unpickled, and a
.h5ad file that points into other files is refused. Files are written under a temporary name and
renamed when complete.
"""

from __future__ import annotations

import csv
import importlib
import math
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import datasets
from heatsketch._typing import Array

SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".h5ad")

# Columns with these names, whatever their case, are not features even if they are numbers. The
# empty name and the last one are how pandas writes a row index to .csv and to .parquet. A name
# that begins with "label_" is a label too.
ID_NAMES = ("id", "index", "", "__index_level_0__")
LABEL_NAMES = ("label", "labels", "target", "class")

_MAX_CATEGORIES = 50  # a text column with more distinct values is no label to colour by
_FREE_BYTES = 2**30  # what any file may unpack to
_MAX_RATIO = 200  # what larger contents may unpack to, in sizes of the file
_DAMAGE = (OSError, EOFError, KeyError, RuntimeError, TypeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, eq=False)
class Table:
    """Points with names, and whatever else the file says about them."""

    values: Any  # (n, d) array or CSR matrix, float32 or float64; may be a read-only memory map
    columns: tuple[str, ...]  # names of the d features
    extra: dict[str, Array]  # ids and labels, each (n,), in file order, unchanged
    label: str | None  # the column of `extra` to colour by
    source: str  # path or built-in name


# Reading


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
        seed 0). The name means the set even if a folder is called so; "./digits" is the folder.
    label : str or sequence of str, default ()
        Label columns, the one to colour by first. By default that is the first column called
        label, labels, target, class or label_…, else the first text column with at most 50
        distinct values. In .npz `y` is a label, in .h5ad the first categorical column comes first.
    ids : str or sequence of str, default ()
        Further columns that are not features. Columns called id or index never are.
    key : str or None, default None
        Which array. In .npz its name; by default `X`, else `embedding`, else the only 2-d array.
        In .h5ad "obsm/NAME" or "layers/NAME", or NAME alone for the first of these that exists;
        by default X. In an MNIST folder "test" (default), "train" or "all".

    Returns
    -------
    Table
        In .csv, .tsv and .parquet the numeric and boolean columns are the features, all others
        are passed through. A .csv whose first row is all numbers has no header and gets columns
        x0, x1, …, unless that row is 0, 1, 2, …, which is what pandas writes for columns without
        names. Missing numbers are NaN.

    Raises
    ------
    FileNotFoundError
        If there is no such file, folder or set.
    ValueError
        If the file cannot be read as its suffix says, or has no features, or lacks a name.
    ImportError
        If the format needs pyarrow or h5py and it is not installed.

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
        table = _reader(path)(path, key, label + ids)
    for name in label + ids:
        if name not in table.extra:
            there = _listed([*table.extra, *table.columns])
            raise ValueError(f"{source} has no id or label column {name!r}; choose from {there}.")
    return replace(table, label=_choose_label(table, label, ids))


def _as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _listed(names: Iterable[Any], limit: int = 20) -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "nothing") + more


def _reader(path: Path) -> Callable[[Path, str | None, tuple[str, ...]], Table]:
    if path.is_dir():
        return _read_mnist
    if not path.exists():
        sets = _listed(datasets.DATASETS)
        raise FileNotFoundError(f"{path} does not exist and is no built-in set ({sets}).")
    readers = {
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".parquet": _read_parquet,
        ".h5ad": _read_h5ad,
    }
    return readers[_suffix(path)]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} has no known suffix; choose {', '.join(SUFFIXES)}.")
    return suffix


def _choose_label(table: Table, label: tuple[str, ...], ids: tuple[str, ...]) -> str | None:
    if label or table.label is not None:
        return label[0] if label else table.label
    names = [name for name in table.extra if name not in ids and not _is_id(name)]
    for name in names:
        if _is_label(name):
            return name
    for name in names:
        column = table.extra[name]
        if column.dtype.kind in "OU" and len(set(column.tolist())) <= _MAX_CATEGORIES:
            return name
    return None


def _is_id(name: str) -> bool:
    return name.strip().lower() in ID_NAMES


def _is_label(name: str) -> bool:
    name = name.strip().lower()
    return name in LABEL_NAMES or name.startswith("label_")


def _read_builtin(name: str, key: str | None) -> Table:
    _refuse_key(key, name)
    make = datasets.DATASETS[name]
    values, coordinates = make() if name == "digits" else make(rng=0)
    columns = coordinates.reshape(len(values), -1).T
    extra = dict(zip(datasets.COORDINATES[name], columns, strict=True))
    return Table(values, _numbered(values), extra, datasets.COORDINATES[name][0], name)


def _read_mnist(path: Path, key: str | None, aside: tuple[str, ...]) -> Table:
    values, label = datasets.mnist(path, part=key or "test")
    return Table(values, _numbered(values), {"label": label}, "label", str(path))


def _refuse_key(key: str | None, source: Any) -> None:
    if key is not None:
        raise ValueError(f"key={key!r} but {source} holds a single table; leave the key out.")


def _numbered(values: Any) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(values.shape[1]))


def _as_float(array: Array, what: str) -> Array:
    """Return a 2-d array as native float32 if it is float32, else as float64."""
    if array.ndim != 2:
        raise ValueError(f"{what} has shape {array.shape}; pass an array (points, features).")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} has dtype {array.dtype}; pass real numbers.")
    single = array.dtype.newbyteorder("=") == np.float32
    return np.asanyarray(array, dtype=np.float32 if single else np.float64)


def _check_budget(size: int, stored: int, what: str) -> None:
    """Refuse contents that would take far more memory than the file takes on disk."""
    if size > max(_FREE_BYTES, _MAX_RATIO * stored):
        raise ValueError(
            f"{what} would unpack from {stored:,} to {size:,} bytes; if that is meant, store it "
            "sparse or uncompressed."
        )


def _need(module: str, path: Path) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'{path.suffix} files need {package}; pip install "heatsketch[io]"'
        ) from error


@contextmanager
def _blame(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a decoder raises on a damaged file into one line that names the file."""
    try:
        yield
    except errors as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read: {reason}") from error


# NumPy files


def _read_npy(path: Path, key: str | None, aside: tuple[str, ...]) -> Table:
    _refuse_key(key, path)
    with path.open("rb") as stream:
        size = _npy_size(stream, path)
    held = path.stat().st_size
    if size > held:
        raise ValueError(f"{path} claims {size:,} bytes but holds {held:,}; it is cut short.")
    values = _as_float(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
    return Table(values, _numbered(values), {}, None, str(path))


def _npy_header(stream: Any, what: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Read shape and dtype without the data; version 3 exists for structured dtypes only."""
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    try:
        version = form.read_magic(stream)
        shape, _, dtype = readers[version](stream)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError) as error:
        raise ValueError(f"{what} has no valid .npy header; save it with numpy.save.") from error
    if min(shape, default=0) < 0:
        raise ValueError(f"{what} claims the shape {shape}; it is damaged.")
    return shape, dtype


def _npy_size(stream: Any, what: Any) -> int:
    """Return the bytes that the header claims for itself and the data; refuse object arrays."""
    shape, dtype = _npy_header(stream, what)
    if dtype.hasobject:
        raise ValueError(
            f"{what} is an object array, which only pickle could read; save it as numbers or as "
            "strings of dtype str."
        )
    return stream.tell() + math.prod(shape) * dtype.itemsize


def _read_npz(path: Path, key: str | None, aside: tuple[str, ...]) -> Table:
    with _blame(path, *_DAMAGE, NotImplementedError), zipfile.ZipFile(path) as archive:
        _check_budget(sum(i.file_size for i in archive.infolist()), path.stat().st_size, str(path))
        shapes = _npz_shapes(archive, path)
        if {"format", "shape", "data", "indices", "indptr"} <= set(shapes):
            _refuse_key(key, path)
            values = _npz_sparse(archive, path)
            return Table(values, _numbered(values), {}, None, str(path))
        chosen = _npz_choice(shapes, key, path)
        values = _as_float(_npz_array(archive, chosen, path), f"{chosen} in {path}")
        columns = _numbered(values)
        if shapes.get("columns") == (len(columns),):
            columns = tuple(map(str, _npz_array(archive, "columns", path).tolist()))
        extra = {
            name: _npz_array(archive, name, path)
            for name, shape in shapes.items()
            if shape == values.shape[:1] and name not in (chosen, "columns")
        }
    return Table(values, columns, extra, "y" if "y" in extra else None, str(path))


def _npz_shapes(archive: zipfile.ZipFile, path: Path) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for member in archive.namelist():
        if member.endswith(".npy"):
            with archive.open(member) as stream:
                name = member.removesuffix(".npy")
                shapes[name] = _npy_header(stream, f"{name} in {path}")[0]
    return shapes


def _npz_choice(shapes: dict[str, tuple[int, ...]], key: str | None, path: Path) -> str:
    if key is not None:
        if key not in shapes:
            raise ValueError(f"{path} has no array {key!r}; choose from {_listed(shapes)}.")
        return key
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    chosen = [name for name in ("X", "embedding") if name in shapes] or tables
    if not chosen or (len(chosen) > 1 and chosen == tables and "X" not in chosen):
        there = _listed(tables or [f"{name} {shape}" for name, shape in shapes.items()])
        raise ValueError(
            f"{path} holds {len(tables)} 2-d arrays, none of them X or embedding; pass key= "
            f"(--key) to choose one of: {there}."
        )
    return chosen[0]


def _npz_array(archive: zipfile.ZipFile, name: str, path: Path) -> Array:
    member, what = archive.getinfo(f"{name}.npy"), f"{name} in {path}"
    with archive.open(member) as stream:
        size = _npy_size(stream, what)
    if size != member.file_size:
        raise ValueError(f"{what} claims {size:,} bytes but holds {member.file_size:,}.")
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _npz_sparse(archive: zipfile.ZipFile, path: Path) -> sparse.csr_matrix:
    names = ("data", "indices", "indptr", "shape", "format")
    data, indices, indptr, shape, layout = (_npz_array(archive, name, path) for name in names)
    return _csr((data, indices, indptr), shape, str(layout), path)


def _csr(
    parts: tuple[Array, Array, Array], shape: Array, layout: str, path: Path
) -> sparse.csr_matrix:
    """Build a CSR matrix from parts of a file, every index checked before compiled code uses it."""
    kinds = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
    if layout not in kinds:
        raise ValueError(f"{path} holds a sparse matrix of format {layout!r}; save it as csr.")
    rows, columns = (int(size) for size in shape)
    _check_budget(64 * (rows + columns), path.stat().st_size, f"a {rows} × {columns} matrix")
    data, indices, indptr = parts
    try:
        data = _as_float(data.reshape(1, -1), f"the sparse matrix in {path}")[0]
        matrix = kinds[layout]((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{path} holds a damaged sparse matrix: {error}.") from error
    return matrix.tocsr()


# Text and Parquet tables


def _read_csv(path: Path, key: str | None, aside: tuple[str, ...]) -> Table:
    _refuse_key(key, path)
    names = _csv_names(path)
    table = _parse_csv(path, names)
    features = _feature_names(table.schema, aside, path)
    values = _features(table, features)
    others = [name for name in table.column_names if name not in features]
    # A second pass takes the other columns as text, so that an id 007 stays 007.
    texts = _parse_csv(path, names, only=others) if others else None
    extra = {
        name: _plain(texts[name], floats=name not in aside[:0] and not _is_id(name))
        for name in others
    }
    return Table(values, features, extra, None, str(path))
