""".zarr folders: a single array, a group of arrays, or a store of AnnData; they are read only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.blocks import PIECE_BYTES, Blocks, rows_in, stamp_of_folder
from heatsketch.io.files import blame, check_budget, listed, need
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, choose_label, default_names, objects, refuse_key, require
from heatsketch.io.values import as_csr, as_float

KEEPS_METADATA = True  # none are written
_ANY = (Exception,)  # zarr and anndata have errors of many kinds, some of their own
_METADATA_FILES = (".zarray", ".zmetadata", "zarr.json")


def read(path: Path, how: Reading) -> Table:
    """Read the array that `how.key` means; the columns of obs are the ids and labels."""
    zarr = need("zarr", path)
    _refuse_pickles(path)
    with blame(path, *_ANY):
        node = zarr.open(str(path), mode="r")
        arrays = {"": node} if isinstance(node, zarr.Array) else _arrays(node, zarr.Array)
    size = sum(array.dtype.itemsize * int(np.prod(array.shape)) for array in arrays.values())
    check_budget(size, sum(f.stat().st_size for f in path.rglob("*") if f.is_file()), str(path))
    if isinstance(node, zarr.Array):
        refuse_key(how.key, path)
        return _plain(node, path)
    if "obs" in node:
        return _of_anndata(path, how)
    return _plain(node[_choice(arrays, how.key, path)], path)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points of one array by blocks; of AnnData without ids and labels."""
    zarr = need("zarr", path)
    _refuse_pickles(path)
    with blame(path, *_ANY):
        array = zarr.open(str(path), mode="r")
        if not isinstance(array, zarr.Array):
            arrays = _arrays(array, zarr.Array)
            array = array[
                _dense(arrays, how.key or "X", path)
                if "obs" in array
                else _choice(arrays, how.key, path)
            ]
        elif how.key is not None:
            refuse_key(how.key, path)
    first = as_float(np.asarray(array[:1]), str(path))
    chunk = max(1, int(array.chunks[0]))
    rows = max(1, rows_in(PIECE_BYTES, array.shape[1]) // chunk) * chunk

    def pieces(start: int) -> Iterator[Table]:
        at = start
        while at < array.shape[0]:
            stop = (at // rows + 1) * rows  # whole chunks, but for the first
            with blame(path, *_ANY):
                values = as_float(np.asarray(array[at:stop]), str(path))
            yield Table(values, default_names(values), {}, None, str(path))
            at = stop

    columns = default_names(first)
    return Blocks(
        array.shape[0], columns, first.dtype, str(path), lambda: stamp_of_folder(path), pieces
    )


def _dense(arrays: dict[str, Any], key: str, path: Path) -> str:
    """Return the place in a store of AnnData of the array that a key means."""
    places = [p for p in (key, f"obsm/{key}", f"layers/{key}") if p in arrays]
    if not places:
        raise ValueError(
            f"{path} has no dense array {key!r}, and only these are read by blocks; choose one by "
            f"key (--key) from {listed(name for name in arrays if name.startswith('obsm/'))}."
        )
    return places[0]


def _refuse_pickles(path: Path) -> None:
    """Raise for a store whose metadata name the codec that runs code."""
    for file in path.rglob("*"):
        if file.name in _METADATA_FILES and b"pickle" in file.read_bytes():
            raise ValueError(f"{path} holds pickled objects ({file.name}); save it as numbers.")


def _arrays(group: Any, kind: type, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted(group):
        node = group[name]
        inner = {prefix + name: node} if isinstance(node, kind) else None
        found |= _arrays(node, kind, f"{prefix}{name}/") if inner is None else inner
    return found


def _plain(array: Any, path: Path) -> Table:
    with blame(path, *_ANY):
        values = as_float(np.asarray(array[...]), str(path))
    return Table(values, default_names(values), {}, None, str(path))


def _choice(arrays: dict[str, Any], key: str | None, path: Path) -> str:
    if key is not None:
        require([key], arrays, path, "array")
        return key
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    named = [name for name in ("X", "embedding") if name in tables]
    if not named and len(tables) != 1:
        raise ValueError(f"{path} holds {listed(arrays)}; choose one by key (--key).")
    return (named or tables)[0]


def _of_anndata(path: Path, how: Reading) -> Table:
    anndata = need("anndata", path)
    with blame(path, *_ANY):
        data = anndata.read_zarr(path)
    parts = {"X": data.X} if data.X is not None else {}
    parts |= {f"obsm/{name}": array for name, array in data.obsm.items()}
    parts |= {f"layers/{name}": array for name, array in data.layers.items()}
    key = how.key or "X"
    place = next((p for p in (key, f"obsm/{key}", f"layers/{key}") if p in parts), key)
    require([place], parts, path, "array")
    values = _matrix(parts[place], place, path)
    in_genes = place == "X" or place.startswith("layers/")
    columns = tuple(map(str, data.var_names)) if in_genes else default_names(values)
    extra = {str(data.obs.index.name or "index"): objects(list(map(str, data.obs_names)))}
    extra |= {str(name): _column(data.obs[name]) for name in data.obs}
    categorical = [str(name) for name in data.obs if data.obs[name].dtype == "category"]
    categorical = [name for name in categorical if name not in how.ids]
    label = categorical[0] if categorical else choose_label(extra, how.ids)
    return Table(values, columns, extra, label, str(path))


def _matrix(values: Any, place: str, path: Path) -> Any:
    """Return points as floats; anndata builds sparse ones without a look at their indices."""
    if not sparse.issparse(values):
        return as_float(np.asarray(values), f"{place} in {path}")
    layout, shape = values.format, np.array(values.shape)
    return as_csr(values.data, values.indices, values.indptr, shape, layout, path)


def _column(column: Any) -> Array:
    if column.dtype.kind in "biuf" and isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    return objects(
        [None if missing else v for v, missing in zip(column, column.isna(), strict=True)]
    )
