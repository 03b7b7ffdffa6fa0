""".npz files: named arrays in a zip archive, or one SciPy sparse matrix in parts."""

import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.files import DAMAGE, blame, check_budget, listed
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.npy import claimed_size, read_header
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
from heatsketch.io.values import as_csr, as_float

KEEPS_METADATA = True


def read(path: Path, how: Reading) -> Table:
    """Read the array `key`; every other array with one item per point is an id or a label."""
    with blame(path, *DAMAGE, NotImplementedError), zipfile.ZipFile(path) as archive:
        check_budget(sum(i.file_size for i in archive.infolist()), path.stat().st_size, str(path))
        shapes = _shapes(archive, path)
        if {"format", "shape", "data", "indices", "indptr"} <= set(shapes):
            refuse_key(how.key, path)
            values = _sparse(archive, path)
            return Table(values, default_names(values), {}, None, str(path))
        chosen = _choice(shapes, how.key, path)
        values = as_float(read_member(archive, chosen, path), f"{chosen} in {path}")
        columns = default_names(values)
        if shapes.get("columns") == (len(columns),):
            columns = tuple(map(str, read_member(archive, "columns", path).tolist()))
        extra = {
            name: read_member(archive, name, path)
            for name, shape in shapes.items()
            if shape == values.shape[:1] and name not in (chosen, "columns")
        }
        note = read_member(archive, KEY, path).tolist() if shapes.get(KEY) == () else ""
    chosen_label = choose_label(extra, how.ids) or ("y" if "y" in extra else None)
    return Table(values, columns, extra, chosen_label, str(path), decoded(note))


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write `embedding`, `columns`, note, ids and labels as arrays; missing text becomes ""."""
    arrays = {"embedding": embedding, "columns": np.array(names, dtype=str)}
    if note:
        arrays[KEY] = np.array(note)
    for name, column in named_extra(table, arrays).items():
        text = column.dtype.hasobject
        arrays[name] = np.array(["" if v is None else str(v) for v in column]) if text else column
    with zipfile.ZipFile(draft, "w") as archive:
        for name, array in arrays.items():
            write_member(archive, name, array)


def write_member(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    """Write the array `name` into an archive without a date: equal content, equal bytes."""
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)


def _shapes(archive: zipfile.ZipFile, path: Path) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for member in archive.namelist():
        if member.endswith(".npy"):
            with archive.open(member) as stream:
                name = member.removesuffix(".npy")
                shapes[name] = read_header(stream, f"{name} in {path}")[0]
    return shapes


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
        f"(--key) from {known}."
    )


def read_member(archive: zipfile.ZipFile, name: str, path: Path) -> Array:
    """Read the array `name` of an archive, of the size that its header claims; no pickles."""
    member, what = archive.getinfo(f"{name}.npy"), f"{name} in {path}"
    with archive.open(member) as stream:
        size = claimed_size(stream, what)
    if size != member.file_size:
        raise ValueError(
            f"{what} claims {size:,} bytes but holds {member.file_size:,}; save it again."
        )
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _sparse(archive: zipfile.ZipFile, path: Path) -> sparse.csr_matrix:
    names = ("data", "indices", "indptr", "shape", "format")
    data, indices, indptr, shape, layout = (read_member(archive, name, path) for name in names)
    return as_csr(data, indices, indptr, shape, str(layout), path)
