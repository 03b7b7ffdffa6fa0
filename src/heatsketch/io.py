"""Tables of points in, tables of embeddings out: .npy, .npz, .csv, .tsv, .parquet, .h5ad.

Files are read as hostile: sizes are checked before memory is taken, nothing is unpickled, and a
.h5ad file that points into other files is refused. Files are written under a temporary name and
renamed when complete.
"""

from __future__ import annotations

import csv
import importlib
import json
import math
import os
import secrets
import shutil
import tokenize
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

Names = tuple[str, ...]
SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".h5ad")

# Columns with these names, whatever their case, are not features even if they are numbers. The
# empty name and the last one are how pandas writes a row index to .csv and to .parquet. A name
# that begins with "label_" is a label, too.
ID_NAMES = ("id", "index", "_index", "", "__index_level_0__")
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
        with _blame(path, UnicodeError, json.JSONDecodeError):
            table = _reader(path)(path, key, label, ids)
    for name in label + ids:
        if name not in table.extra:
            there = _listed([*table.extra, *table.columns])
            raise ValueError(f"{source} has no id or label column {name!r}; choose from {there}.")
    return replace(table, label=label[0]) if label else table


def _as_names(names: str | Sequence[str]) -> Names:
    return (names,) if isinstance(names, str) else tuple(names)


def _listed(names: Iterable[Any], limit: int = 20) -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "nothing") + more


def _reader(path: Path) -> Callable[[Path, str | None, Names, Names], Table]:
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


def _choose_label(extra: dict[str, Array], ids: Names) -> str | None:
    names = [name for name in extra if name not in ids and not _is_id(name)]
    for name in names:
        if _is_label(name):
            return name
    for name in names:
        column = extra[name]
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
    names = datasets.COORDINATES[name]
    extra = dict(zip(names, coordinates.reshape(len(values), -1).T, strict=True))
    return Table(values, _numbered(values), extra, names[0], name)


def _read_mnist(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    values, digit = datasets.mnist(path, part=key or "test")
    return Table(values, _numbered(values), {"label": digit}, "label", str(path))


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


def _read_npy(path: Path, key: str | None, label: Names, ids: Names) -> Table:
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
    except (ValueError, KeyError, TypeError, SyntaxError, tokenize.TokenError) as error:
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


def _read_npz(path: Path, key: str | None, label: Names, ids: Names) -> Table:
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
    chosen_label = _choose_label(extra, ids) or ("y" if "y" in extra else None)
    return Table(values, columns, extra, chosen_label, str(path))


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
    named = [name for name in ("X", "embedding") if name in shapes]
    if named or len(tables) == 1:
        return (named or tables)[0]
    there = _listed(tables or [f"{name} {shape}" for name, shape in shapes.items()])
    raise ValueError(
        f"{path} holds {len(tables)} 2-d arrays, none called X or embedding; choose one by key "
        f"(--key). It holds {there}."
    )


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
    data, indices, indptr = parts
    try:
        rows, columns = (int(size) for size in shape)
        # A compressed file may claim any number of empty columns (csc: rows) without holding them.
        _check_budget(64 * (rows + columns), path.stat().st_size, f"its {rows} × {columns} matrix")
        data = _as_float(data.reshape(1, -1), "the data")[0]
        matrix = kinds[layout]((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} holds a damaged sparse matrix: {error}.") from error
    return matrix.tocsr()


# Text and Parquet tables


def _read_csv(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    _refuse_key(key, path)
    names = _csv_names(path)
    table = _parse_csv(path, names)
    features = _feature_names(table, label + ids, path)
    others = [name for name in table.column_names if name not in set(features)]
    # The other columns are read again as text, so that an id 007 stays 007.
    texts = _parse_csv(path, names, as_text=others) if others else table
    extra = {
        name: _csv_extra(table[name], texts[name], name in ids or _is_id(name)) for name in others
    }
    chosen = _choose_label(extra, ids)
    return Table(_features(table, features), features, extra, chosen, str(path))


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _csv_names(path: Path) -> list[str]:
    """Return the names in the first row, or x0, x1, … if that row holds numbers only."""
    with (
        _blame(path, csv.Error),
        path.open(encoding="utf-8-sig", errors="replace", newline="") as stream,
    ):
        cells = next(filter(None, csv.reader(stream, delimiter=_delimiter(path))), [])
    if not cells:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    return [] if _is_header(cells) else [f"x{j}" for j in range(len(cells))]


def _is_header(cells: list[str]) -> bool:
    counted = cells[1:] if cells[0] == "" else cells  # the index of a pandas frame has no name
    if counted == [str(j) for j in range(len(counted))] and (len(counted) > 2 or cells[0] == ""):
        return True
    filled = [cell for cell in cells if cell.strip()]
    return not filled or not all(map(_is_number, filled))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _parse_csv(path: Path, names: list[str], as_text: Sequence[str] = ()) -> Any:
    """Parse in one block, so that every row has its say in the type of a column."""
    pa, pacsv = _need("pyarrow", path), _need("pyarrow.csv", path)
    block = min(max(path.stat().st_size + 1, 2**20), 2**31 - 1)
    with _blame(path, pa.ArrowException, OSError):
        return pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=names or None, use_threads=False, block_size=block
            ),
            parse_options=pacsv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(as_text), column_types=dict.fromkeys(as_text, pa.string())
            ),
        )


def _csv_extra(guess: Any, text: Any, is_id: bool) -> Array:
    """Return integers if they read back as the same text, floats for labels, else the text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_integer(guess.type) and guess.cast(pa.string()).equals(text):
        return guess.to_numpy()
    numeric = types.is_integer(guess.type) or types.is_floating(guess.type)
    padded = pc.any(pc.match_substring_regex(text, r"^[+-]?0[0-9]")).as_py()
    if numeric and not padded and not is_id:
        return guess.cast(pa.float64(), safe=False).to_numpy()
    return _objects(text.to_pylist())


def _read_parquet(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    _refuse_key(key, path)
    pa, parquet = _need("pyarrow", path), _need("pyarrow.parquet", path)
    with _blame(path, pa.ArrowException, OSError), parquet.ParquetFile(path) as file:
        facts = file.metadata
        _check_budget(8 * facts.num_rows * facts.num_columns, path.stat().st_size, str(path))
        table = file.read()
    index = [name for name in _pandas_index(table.schema) if name in table.column_names]
    features = _feature_names(table, (*label, *ids, *index), path)
    others = [name for name in table.column_names if name not in set(features)]
    extra = {name: _parquet_extra(table[name], f"{name} in {path}") for name in others}
    chosen = _choose_label(extra, (*ids, *index))
    return Table(_features(table, features), features, extra, chosen, str(path))


def _pandas_index(schema: Any) -> list[str]:
    """Return the columns that pandas noted as the row index."""
    noted = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in noted if isinstance(name, str)]


def _parquet_extra(column: Any, what: str) -> Array:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_nested(column.type):
        raise ValueError(f"{what} has type {column.type}; spread it over columns or drop it.")
    plain = types.is_integer(column.type) or types.is_boolean(column.type)
    if (plain and not column.null_count) or types.is_floating(column.type):
        return column.to_numpy()
    return _objects(column.to_pylist())


def _feature_names(table: Any, aside: Names, path: Path) -> Names:
    """Return the numeric columns that are neither ids nor labels."""
    import pyarrow as pa

    names, types = table.column_names, pa.types
    double = _listed(sorted({name for name in names if names.count(name) > 1}))
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has several columns of one name: {double}; rename them.")
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = [name for name in names if any(test(table[name].type) for test in tests)]
    kept = [n for n in numeric if n not in aside and not _is_id(n) and not _is_label(n)]
    if not kept:
        raise ValueError(
            f"{path} has no numeric column to use as a feature; its columns are {_listed(names)}."
        )
    return tuple(kept)


def _features(table: Any, names: Names) -> Array:
    import pyarrow as pa

    single = all(table[name].type == pa.float32() for name in names)
    values = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    kind = pa.float32() if single else pa.float64()
    for j, name in enumerate(names):
        values[:, j] = table[name].cast(kind, safe=False).to_numpy()
    return values


def _objects(items: list[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


# AnnData files


def _read_h5ad(path: Path, key: str | None, label: Names, ids: Names) -> Table:
    h5py = _need("h5py", path)
    with _blame(path, *_DAMAGE), h5py.File(path, "r") as file:
        _refuse_links(file, path)
        where = _h5_place(file, key, path)
        values = _h5_matrix(file[where], f"{where} in {path}", path)
        extra = _h5_frame(file, path)
        chosen = _h5_label(file, extra, ids)
        columns = _numbered(values)
        if "var" in file and not where.startswith("obsm"):
            columns = tuple(map(str, _h5_index(file["var"], path)))
    wrong = [name for name, column in extra.items() if len(column) != values.shape[0]]
    if wrong or len(columns) != values.shape[1]:
        raise ValueError(f"{path} is damaged: {where} does not fit {_listed(wrong) or 'var'}.")
    return Table(values, columns, extra, chosen, str(path))


def _refuse_links(file: Any, path: Path) -> None:
    """Refuse whatever would make HDF5 open another file."""
    import h5py

    stack, seen = [file], set()
    while stack:
        group = stack.pop()
        for name in group:
            link = group.get(name, getlink=True)
            item = group[name] if isinstance(link, h5py.HardLink) else None
            elsewhere = isinstance(item, h5py.Dataset) and (item.is_virtual or item.external)
            if isinstance(link, h5py.ExternalLink) or elsewhere:
                raise ValueError(
                    f"{path} keeps {group.name.rstrip('/')}/{name} in another file; save it as one "
                    "file."
                )
            if isinstance(item, h5py.Group):
                address = h5py.h5o.get_info(item.id).addr
                if address not in seen:
                    seen.add(address)
                    stack.append(item)


def _h5_place(file: Any, key: str | None, path: Path) -> str:
    """Return the path inside the file of the array that `key` means."""
    group, _, name = (key or "X").rpartition("/")
    there = {part: list(file[part]) for part in ("obsm", "layers") if part in file}
    places = [group] if group else ["obsm", "layers"]
    if (group, name) == ("", "X") and "X" in file:
        return "X"
    for place in places:
        if name in there.get(place, []):
            return f"{place}/{name}"
    held = "; ".join(f"{place}: {_listed(names)}" for place, names in there.items())
    raise ValueError(
        f"{path} has no array {key or 'X'!r}; choose one by key (--key) from {held or 'nothing'}."
    )


def _h5_array(node: Any, what: str) -> Array:
    import h5py

    if not isinstance(node, h5py.Dataset) or node.shape is None:
        raise ValueError(f"{what} is not an array; choose another key.")
    size = math.prod(node.shape) * node.dtype.itemsize
    _check_budget(size, node.id.get_storage_size(), what)
    text = h5py.check_string_dtype(node.dtype)
    return node.asstr(errors="replace")[()] if text else node[()]


def _h5_matrix(node: Any, what: str, path: Path) -> Any:
    layout = str(node.attrs.get("encoding-type", "")).removesuffix("_matrix")
    if layout not in ("csr", "csc"):
        return _as_float(_h5_array(node, what), what)
    parts = [_h5_array(node[name], what) for name in ("data", "indices", "indptr")]
    return _csr((parts[0], parts[1], parts[2]), node.attrs["shape"], layout, path)


def _h5_frame(file: Any, path: Path) -> dict[str, Array]:
    """Read the index and the columns of obs."""
    if "obs" not in file:
        return {}
    obs = file["obs"]
    index = _h5_index(obs, path)
    columns = {_h5_index_name(obs): index}
    for name in obs.attrs.get("column-order", []):
        decoded = _h5_column(obs[name], f"obs column {name} in {path}")
        if decoded is not None:
            columns[str(name)] = decoded
    return columns


def _h5_index(frame: Any, path: Path) -> Array:
    name = frame.attrs.get("_index")
    index = None if name is None else _h5_column(frame[name], f"the index of {path}")
    if index is None:
        raise ValueError(f"{path} is not of a known AnnData format; save it anew with anndata.")
    return index


def _h5_index_name(frame: Any) -> str:
    name = str(frame.attrs["_index"])
    return "index" if name == "_index" and "index" not in frame else name


def _h5_label(file: Any, extra: dict[str, Array], ids: Names) -> str | None:
    """Return the first categorical column of obs, else what other tables would colour by."""
    if not extra:
        return None
    names = [name for name in extra if name not in (*ids, _h5_index_name(file["obs"]))]
    for name in names:
        if _h5_kind(file["obs"][name]) == "categorical":
            return name
    return _choose_label({name: extra[name] for name in names}, ids)


def _h5_kind(node: Any) -> str:
    # anndata 0.7 kept the categories elsewhere, under a reference
    old = "categories" in node.attrs
    return "categorical" if old else str(node.attrs.get("encoding-type", "array"))


def _h5_column(node: Any, what: str) -> Array | None:
    """Decode one column (n,); None for an encoding that has no plain equivalent."""
    kind = _h5_kind(node)
    if kind in ("array", "string-array"):
        return _h5_array(node, what)
    if kind == "categorical":
        reference = node.attrs.get("categories")
        parts = (
            (node["codes"], node["categories"])
            if reference is None
            else (node, node.file[reference])
        )
        codes, categories = _h5_array(parts[0], what), _h5_array(parts[1], what)
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
            raise ValueError(f"{what} has codes that no category belongs to.")
        return _objects([*categories.tolist(), None])[codes]
    if kind.startswith("nullable"):
        values = _h5_array(node["values"], what).astype(object)
        values[_h5_array(node["mask"], what).astype(bool)] = None
        return values
    return None


# Writing


def write_table(
    path: str | Path,
    embedding: Array,
    names: Sequence[str],
    table: Table,
    *,
    key: str = "X_heatsketch",
    force: bool = False,
) -> None:
    """Write an embedding, with the ids and labels of its points, in the format of the suffix.

    Parameters
    ----------
    path : str or path
        The file to write: .npy (the embedding alone), .npz (`embedding`, `columns`, ids, labels),
        .csv, .tsv, .parquet (ids and labels first, then the coordinates), or .h5ad.
    embedding : array (n, k), finite
        Coordinates. float32 stays float32, all else becomes float64; text formats keep every
        digit.
    names : sequence of k str
        Names of the coordinates.
    table : Table
        The points, as read by `read_table`. An id or label whose name is also one of `names` gets
        the ending "_input". For .h5ad, when the points came from a .h5ad file, the result is a
        copy of that file plus the embedding; otherwise a new file with the points as X.
    key : str, default "X_heatsketch"
        The entry of obsm in .h5ad; one of that name in the copy is replaced.
    force : bool, default False
        Replace the file if it exists.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is false.
    ValueError
        If the suffix is unknown, the file is the one the points came from, the embedding is not
        finite, or the shapes do not fit.

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
    suffix = _suffix(path)
    if path.exists() and Path(table.source).exists() and path.samefile(table.source):
        raise ValueError(f"{path} is also the input; choose another name.")
    embedding = _as_float(np.asarray(embedding), "the embedding")
    names = _check_names(embedding, names, table)
    write = {
        ".npy": _write_npy,
        ".npz": _write_npz,
        ".csv": _write_csv,
        ".tsv": _write_csv,
        ".parquet": _write_parquet,
        ".h5ad": _write_h5ad,
    }[suffix]
    name = key.removeprefix("obsm/")
    if suffix == ".h5ad" and (not name or "/" in name):
        raise ValueError(f"key={key!r} is no name for an entry of obsm; pass one without a slash.")
    write_atomically(path, lambda draft: write(draft, embedding, names, table, name), force=force)


def _check_names(embedding: Array, names: Sequence[str], table: Table) -> Names:
    n, k = embedding.shape
    if n != table.values.shape[0]:
        raise ValueError(
            f"the embedding has {n} rows but {table.source} has {table.values.shape[0]} points; "
            "pass one row per point."
        )
    if len(names) != k or len(set(names)) != k:
        raise ValueError(f"names={_listed(names)} for {k} coordinates; pass {k} different names.")
    if not np.isfinite(embedding).all():
        raise ValueError("the embedding has NaN or infinite entries; nothing was written.")
    return tuple(map(str, names))


def write_atomically(
    path: str | Path, write: Callable[[Path], object], *, force: bool = False
) -> None:
    """Write a file so that at every moment its name holds the old content or all of the new.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist. A symbolic link is followed.
    write : callable
        Called with a temporary path, of the same suffix and in the same folder, to write to. What
        it wrote is flushed to disk and renamed; if it raises, the temporary file is removed.
    force : bool, default False
        Replace the file if it exists.

    Raises
    ------
    FileExistsError, FileNotFoundError, IsADirectoryError
        If the file exists and `force` is false, its folder does not, or it is a folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from heatsketch import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     io.write_atomically(path, lambda draft: draft.write_text("all of it"))
    ...     path.read_text()
    'all of it'
    """
    target = Path(path).resolve()
    _check_free(target, path, force)
    draft = target.with_name(f".heatsketch-{secrets.token_hex(6)}{target.suffix}")
    try:
        draft.touch(exist_ok=False)
        write(draft)
        _flush(draft, os.O_RDWR)
        _check_free(target, path, force)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        _flush(target.parent, os.O_RDONLY)


def _check_free(target: Path, path: str | Path, force: bool) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist; create it or choose another one."
        )
    if target.exists() and not force:
        raise FileExistsError(
            f"{path} exists; pass force=True (--force) to replace it or choose another name."
        )


def _flush(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _named_extra(table: Table, reserved: Container[str]) -> dict[str, Array]:
    """Return the ids and labels under names that are not taken by the embedding."""
    named: dict[str, Array] = {}
    for name, column in table.extra.items():
        while name in reserved or name in named:
            name += "_input"
        named[name] = column
    return named


def _write_npy(draft: Path, embedding: Array, names: Names, table: Table, key: str) -> None:
    with draft.open("wb") as stream:
        np.lib.format.write_array(stream, embedding, allow_pickle=False)


def _write_npz(draft: Path, embedding: Array, names: Names, table: Table, key: str) -> None:
    arrays = {"embedding": embedding, "columns": np.array(names, dtype=str)}
    for name, column in _named_extra(table, arrays).items():
        text = column.dtype.hasobject
        arrays[name] = np.array(["" if v is None else str(v) for v in column]) if text else column
    with zipfile.ZipFile(draft, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # without a date: same content, same bytes
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _write_csv(draft: Path, embedding: Array, names: Names, table: Table, key: str) -> None:
    pa, pacsv = _need("pyarrow", draft), _need("pyarrow.csv", draft)
    columns = {
        _safe_text(pa.array([name]))[0].as_py(): _safe_text(column)
        for name, column in _arrow_extra(table, names).items()
    }
    columns |= {name: pa.array(embedding[:, j]) for j, name in enumerate(names)}
    options = pacsv.WriteOptions(delimiter=_delimiter(draft))
    pacsv.write_csv(pa.table(columns), draft, options)


def _safe_text(column: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if any(test(column.type) for test in (types.is_integer, types.is_floating, types.is_boolean)):
        return column
    text = column.cast(pa.string())
    formula = pc.match_substring_regex(text, r"^[=+\-@\t\r]")
    return pc.if_else(formula, pc.binary_join_element_wise("'", text, ""), text)


def _write_parquet(draft: Path, embedding: Array, names: Names, table: Table, key: str) -> None:
    pa, parquet = _need("pyarrow", draft), _need("pyarrow.parquet", draft)
    columns = _arrow_extra(table, names)
    columns |= {name: pa.array(embedding[:, j]) for j, name in enumerate(names)}
    parquet.write_table(pa.table(columns), draft)


def _arrow_extra(table: Table, names: Names) -> dict[str, Any]:
    import pyarrow as pa

    columns = {}
    for name, column in _named_extra(table, names).items():
        try:
            columns[name] = pa.array(column.tolist() if column.dtype.hasobject else column)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # items of several types
            columns[name] = pa.array([None if item is None else str(item) for item in column])
    return columns


def _write_h5ad(draft: Path, embedding: Array, names: Names, table: Table, key: str) -> None:
    h5py, source = _need("h5py", draft), Path(table.source)
    copied = source.suffix.lower() == ".h5ad" and source.is_file()
    if copied:
        shutil.copyfile(source, draft)
    with h5py.File(draft, "r+" if copied else "w") as file:
        if copied:
            _refuse_links(file, source)
        else:
            _put_points(file, table)
        obsm = file["obsm"] if "obsm" in file else _put_group(file, "obsm")
        if key in obsm:
            del obsm[key]
        _put(obsm, key, embedding)


def _put_points(file: Any, table: Table) -> None:
    """Write what anndata calls a minimal file: X, obs, var and empty groups for the rest."""
    file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    if sparse.issparse(table.values):
        X = _put_group(file, "X", "csr_matrix")
        X.attrs["shape"] = table.values.shape
        for part in ("data", "indices", "indptr"):
            X[part] = getattr(table.values, part)
    else:
        _put(file, "X", table.values)
    n = table.values.shape[0]
    extra = {name.replace("/", "_"): column for name, column in table.extra.items()}
    index = next((name for name in extra if _is_index(name, extra[name])), "_index")
    rows = extra.pop(index, np.arange(n)).astype(str)
    _put_frame(file, "obs", "_index" if index == "index" else index, rows, extra, table.label)
    _put_frame(file, "var", "_index", np.array(table.columns, dtype=str), {}, None)
    for part in ("layers", "obsp", "uns", "varm", "varp"):
        _put_group(file, part)


def _is_index(name: str, column: Array) -> bool:
    items = column.tolist()
    return bool(name) and _is_id(name) and None not in items and len(set(items)) == len(items)


def _put_group(parent: Any, name: str, kind: str = "dict") -> Any:
    group = parent.create_group(name)
    version = "0.2.0" if kind in ("dataframe", "categorical") else "0.1.0"
    group.attrs.update({"encoding-type": kind, "encoding-version": version})
    return group


def _put(group: Any, name: str, array: Array) -> None:
    import h5py

    text = array.dtype.kind in "OU"
    if text:
        array = array.astype(object)
    node = group.create_dataset(name, data=array, dtype=h5py.string_dtype() if text else None)
    kind = "string-array" if text else "array"
    node.attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})


def _put_frame(
    file: Any, name: str, index: str, rows: Array, columns: dict[str, Array], label: str | None
) -> None:
    import h5py

    frame = _put_group(file, name, "dataframe")
    frame.attrs["_index"] = index
    order = {"data": list(columns), "shape": (len(columns),), "dtype": h5py.string_dtype()}
    frame.attrs.create("column-order", **order)
    _put(frame, index, rows)
    for column, items in columns.items():
        if items.dtype.kind in "biuf":
            _put(frame, column, items)
        else:
            _put_text(frame, column, items, column == label)


def _put_text(frame: Any, name: str, items: Array, is_label: bool) -> None:
    """Write text as categories if it repeats, has gaps or is the label, else as it is."""
    texts = [None if item is None else str(item) for item in items]
    categories = sorted({text for text in texts if text is not None})
    if len(categories) == len(texts) and not is_label:
        return _put(frame, name, _objects(texts))
    group = _put_group(frame, name, "categorical")
    group.attrs["ordered"] = False
    code = {text: j for j, text in enumerate(categories)}
    _put(group, "codes", np.array([-1 if t is None else code[t] for t in texts], dtype=np.int32))
    return _put(group, "categories", _objects(list(categories)))
