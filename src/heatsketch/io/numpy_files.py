"""NumPy files: .npy, an array mapped into memory; .npz, named arrays or a matrix of SciPy."""

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch.io.files import check_archive, suffix_of
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.table import (
    BLOCK_BYTES,
    EXACT,
    Blocks,
    Names,
    Reading,
    Table,
    as_float,
    default_names,
    refuse_merged,
    refuse_repeated,
    rows_in,
)


def read(path: Path, how: Reading) -> Table:
    """Read the points of .npy, or the array `key` of .npz with its ids and labels."""
    if suffix_of(path) == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            check_archive(archive.zip, path)
            return _read_archive(archive, path, how)
    return _table(open_memmap(path, mode="r"), how, path)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points of .npy by blocks, each from its own map, so that no pages accumulate."""
    whole = open_memmap(path, mode="r")
    empty = _table(whole[:0], how, path)
    rows = rows_in(BLOCK_BYTES, whole.shape[1])

    def tables(start: int) -> Iterator[Table]:
        for at in range(start, len(whole), rows):
            mapped = open_memmap(path, mode="r")
            yield _table(np.array(mapped[at : at + rows]), how, path)

    return Blocks(len(whole), empty.columns, empty.values.dtype, str(path), tables)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding, in .npz with the arrays `columns`, note, ids and labels."""
    if suffix_of(draft) != ".npz":
        np.save(draft, embedding, allow_pickle=False)
        return
    arrays = {"embedding": embedding, "columns": np.array(names, dtype=str)}
    arrays |= {KEY: np.array(note)} if note else {}
    for name, column in table.named_extra(arrays).items():
        if column.dtype.hasobject:  # missing text becomes ""
            column = np.array(["" if item is None else str(item) for item in column])
        arrays[name] = column
    with zipfile.ZipFile(draft, "w") as archive:
        write_arrays(archive, arrays)


def write_arrays(archive: zipfile.ZipFile, arrays: dict[str, Array]) -> None:
    """Write arrays of any names as in .npz, without dates: equal arrays give equal bytes."""
    for name, array in arrays.items():
        with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array(stream, array, allow_pickle=False)


def _table(array: Array, how: Reading, path: Path, what: str = "", names: Names = ()) -> Table:
    """Return the features of an array (n, d), without the columns of ids and labels."""
    source = f"{what} in {path}" if what else str(path)
    values = as_float(array, source)  # a map stays a map: estimators may take a sample
    names = names or default_names(array)
    extra = {n: np.array(array[:, names.index(n)]) for n in how.label + how.ids if n in names}
    if array.dtype in (np.int64, np.uint64):
        features = {*(how.features or names)} - {*how.exclude, *extra}
        largest = np.maximum(values.max(axis=0, initial=0), -values.min(axis=0, initial=0))
        for j in np.flatnonzero(largest >= EXACT):
            if names[j] in features:
                refuse_merged(names[j], values[:, j], array[:, j], f"row {{}} of {source}".format)
    if extra:
        kept = [j for j, name in enumerate(names) if name not in extra]
        values, names = values[:, kept], tuple(names[j] for j in kept)
    return Table(values, names, extra, None, str(path))


def _read_archive(archive: Any, path: Path, how: Reading) -> Table:
    """Read an array of .npz; other arrays with one item per point are ids or labels."""
    shapes = {name: _shape(archive, name) for name in archive.files}
    # As `scipy.sparse.save_npz` writes.
    if shapes.get("format") == () and {"data", "shape"} <= shapes.keys():
        how.refuse_key(path)
        matrix = as_float(sparse.load_npz(path), path, path)
        return Table(matrix, default_names(matrix), {}, None, str(path))
    chosen = how.choose_array(shapes, path)
    array = _item(archive, chosen)
    has_names = shapes.get("columns") == array.shape[1:2]
    names = tuple(map(str, _item(archive, "columns").tolist())) if has_names else ()
    refuse_repeated(names, path)
    table = _table(array, how, path, chosen, names)
    alike = [n for n in shapes if shapes[n] == array.shape[:1] and n not in (chosen, "columns")]
    extra = table.extra | {name: _item(archive, name) for name in alike}
    label = how.choose_label(extra) or ("y" if "y" in extra and "y" not in how.others else None)
    note = _item(archive, KEY).tolist() if shapes.get(KEY) == () else ""
    return replace(table, extra=extra, label=label, metadata=decoded(note))


def _item(archive: Any, name: str) -> Array:
    """Return an array of .npz, text decoded; errors name it."""
    try:
        array = archive[name]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _shape(archive: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array of .npz without reading it."""
    with archive.zip.open(f"{name}.npy") as stream:
        is_first = np.lib.format.read_magic(stream) == (1, 0)
        form = np.lib.format
        return (form.read_array_header_1_0 if is_first else form.read_array_header_2_0)(stream)[0]
