"""NumPy files: .npy, an array that is mapped into memory; .npz, named arrays or a CSR matrix."""

import math
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.blocks import PIECE_BYTES, Blocks, rows_in, stamp
from heatsketch.io.files import DAMAGE, blame, check_budget, listed, suffix_of
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.reading import Reading
from heatsketch.io.table import (
    Names,
    Table,
    choose_label,
    default_names,
    named_extra,
    refuse_key,
    require,
)
from heatsketch.io.values import as_csr, points_and_others

# NumPy's errors about files that are damaged, claim more than they hold, or hold pickles.
_DAMAGE = (
    *(*DAMAGE, ValueError, SyntaxError, tokenize.TokenError),
    *(OverflowError, NotImplementedError),
)
_OF_SPARSE = ("data", "indices", "indptr", "shape", "format")


def read(path: Path, how: Reading) -> Table:
    """Read the points of .npy, or the array `key` of .npz with its ids and labels."""
    if suffix_of(path) == ".npz":
        with blame(path, *_DAMAGE), np.load(path, allow_pickle=False) as archive:
            return _read_archive(archive, path, how)
    refuse_key(how.key, path)
    values, columns, extra = points_and_others(_mapped(path), how, str(path))
    # As a plain array, which estimators fit whole: of a map they may take a sample.
    return Table(np.asarray(values), columns, extra, None, str(path))


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points of .npy by blocks, read rather than mapped: pages of a map are memory."""
    refuse_key(how.key, path)
    whole = _mapped(path)
    first, columns, _ = points_and_others(whole[:0], how, str(path))
    n, d = whole.shape
    rows = rows_in(PIECE_BYTES, d)

    def pieces(start: int) -> Iterator[Table]:
        for at in range(start, n, rows):
            count = min(rows, n - at)
            if whole.flags.c_contiguous:
                offset = whole.offset + at * d * whole.itemsize
                values = np.fromfile(path, whole.dtype, count * d, offset=offset).reshape(count, d)
            else:
                values = np.array(whole[at : at + count])
            values, _, extra = points_and_others(values, how, str(path))
            yield Table(values, columns, extra, None, str(path))

    return Blocks(n, columns, first.dtype, str(path), lambda: stamp(path), pieces)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding alone, or in .npz with `columns`, note, ids and labels as arrays."""
    if suffix_of(draft) != ".npz":
        np.save(draft, embedding, allow_pickle=False)
        return
    arrays = {"embedding": embedding, "columns": np.array(names, dtype=str)}
    if note:
        arrays[KEY] = np.array(note)
    for name, column in named_extra(table, arrays).items():
        is_text = column.dtype.hasobject  # missing text becomes ""
        arrays[name] = (
            np.array(["" if v is None else str(v) for v in column]) if is_text else column
        )
    with zipfile.ZipFile(draft, "w") as archive:
        for name, array in arrays.items():  # without dates: equal content, equal bytes
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _mapped(path: Path) -> Any:
    with blame(path, *_DAMAGE):
        return np.lib.format.open_memmap(path, mode="r")


def _read_archive(archive: Any, path: Path, how: Reading) -> Table:
    """Read an array of .npz; every other array with one item per point is an id or a label."""
    size = sum(member.file_size for member in archive.zip.infolist())
    check_budget(size, path.stat().st_size, str(path))
    if set(_OF_SPARSE) <= set(archive.files):
        refuse_key(how.key, path)
        data, indices, indptr, shape, layout = (_item(archive, name) for name in _OF_SPARSE)
        matrix: sparse.csr_matrix = as_csr(data, indices, indptr, shape, str(layout), path)
        return Table(matrix, default_names(matrix), {}, None, str(path))
    shapes = {name: _shape(archive, name) for name in archive.files}
    chosen = _choice(shapes, how.key, path)
    array = _item(archive, chosen)
    columns: Names = ()
    if shapes.get("columns") == array.shape[1:2]:
        columns = tuple(map(str, _item(archive, "columns").tolist()))
    values, columns, extra = points_and_others(array, how, f"{chosen} in {path}", columns)
    extra |= {
        name: _item(archive, name)
        for name, shape in shapes.items()
        if shape == values.shape[:1] and name not in (chosen, "columns")
    }
    note = _item(archive, KEY).tolist() if shapes.get(KEY) == () else ""
    label = choose_label(extra, how.ids) or ("y" if "y" in extra else None)
    return Table(values, columns, extra, label, str(path), decoded(note))


def _item(archive: Any, name: str) -> Array:
    """Return an array of .npz, text decoded; errors name it."""
    try:
        array = archive[name]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _shape(archive: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array of .npz without reading it, if the file holds so much."""
    form, member = np.lib.format, archive.zip.getinfo(f"{name}.npy")
    with archive.zip.open(member) as stream:
        is_first = form.read_magic(stream) == (1, 0)
        reader = form.read_array_header_1_0 if is_first else form.read_array_header_2_0
        shape, _, dtype = reader(stream)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(f"{name} claims the shape {shape}, but holds less")
    return tuple(shape)


def _choice(shapes: dict[str, tuple[int, ...]], key: str | None, path: Path) -> str:
    if key is not None:
        require([key], shapes, path, "array")
        return key
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    named = [name for name in ("X", "embedding") if name in shapes]
    if named or len(tables) == 1:
        return (named or tables)[0]
    known = listed(tables or [f"{name} {shape}" for name, shape in shapes.items()])
    raise ValueError(
        f"{path} holds {len(tables)} 2-d arrays, none called X or embedding; choose one by key "
        f"(--read key=NAME) from {known}."
    )
