""".zarr folders: a single array, a group of arrays, or a store of AnnData; they are read only."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io import obs
from heatsketch.io.blocks import (
    PIECE_BYTES,
    Blocks,
    check_by_rows,
    csr_slabs,
    rows_in,
    stamp_of_folder,
)
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
    """Return the points of one array by blocks, those of AnnData with ids and labels."""
    node = _node_of(path, how)
    with blame(path, *_ANY):
        place, layout, shape, nodes = _by_rows(node, how, path)
        frame = None if not place or "obs" not in node else node["obs"]
        if frame is not None:
            obs.check_length(frame, shape[0], path)
        in_genes = place == "X" or place.startswith("layers/")
        named = frame is not None and in_genes
        first = as_float(np.empty((0, *shape[1:]), nodes[0].dtype), str(path))
        columns = obs.names_of(node["var"], path, _items) if named else default_names(first)

    def pieces(start: int) -> Iterator[Table]:
        with blame(path, *_ANY):
            for values in _slabs(nodes, shape, start, path):
                rows = slice(start, start + values.shape[0])
                extra = {} if frame is None else obs.frame(frame, path, _items, rows)
                yield Table(values, columns, extra, None, str(path))
                start = rows.stop

    stored = None if layout == "dense" else int(nodes[0].shape[0])
    changed = partial(stamp_of_folder, path)
    return Blocks(shape[0], columns, first.dtype, str(path), changed, pieces, stored)


def _node_of(path: Path, how: Reading) -> Any:
    """Open an array or a group."""
    zarr = need("zarr", path)
    _refuse_pickles(path)
    with blame(path, *_ANY):
        node = zarr.open(str(path), mode="r")
    if isinstance(node, zarr.Array):
        refuse_key(how.key, path)
    return node


def _by_rows(node: Any, how: Reading, path: Path) -> tuple[str, str, tuple[int, ...], list[Any]]:
    """Return place, layout and shape of an array, and the arrays that hold it, row after row."""
    zarr = need("zarr", path)
    place = ""
    if not isinstance(node, zarr.Array):
        arrays = _arrays(node, zarr.Array)
        place = _place(node, how, path) if "obs" in node else _choice(arrays, how.key, path)
        node = node[place]
    if isinstance(node, zarr.Array):
        return place, "dense", node.shape, [node]
    layout = str(node.attrs.get("encoding-type", "")).removesuffix("_matrix")
    parts = [node[name] for name in ("data", "indices", "indptr")]
    shape = tuple(int(size) for size in node.attrs["shape"])
    check_by_rows(layout, shape, parts, f"{place} in {path}")
    return place, layout, shape, parts


def _place(store: Any, how: Reading, path: Path) -> str:
    """Return the place in a store of AnnData of the array that a key means."""
    parts = [name for name in ("X",) if name in store]
    parts += [
        f"{part}/{name}" for part in ("obsm", "layers") if part in store for name in store[part]
    ]
    key = how.key or "X"
    place = next((p for p in (key, f"obsm/{key}", f"layers/{key}") if p in parts), key)
    require([place], parts, path, "array")
    return place


def _slabs(nodes: list[Any], shape: tuple[int, ...], start: int, path: Path) -> Iterator[Any]:
    """Yield the rows from one on, in whole chunks but for the first."""
    if len(nodes) > 1:
        for data, indices, indptr in csr_slabs(nodes, start):
            size = np.array([len(indptr) - 1, shape[1]])
            yield as_csr(data, indices, indptr, size, "csr", path)
        return
    (array,) = nodes
    chunk = max(1, int(array.chunks[0]))
    rows = max(1, rows_in(PIECE_BYTES, shape[1]) // chunk) * chunk
    while start < shape[0]:
        stop = (start // rows + 1) * rows
        values = as_float(np.asarray(array[start:stop]), str(path))
        yield values
        start += len(values)


def _items(node: Any, what: str, rows: slice) -> Array:
    """Read some items of a column, text as objects."""
    items = np.asarray(node[rows])
    return items.astype(object) if items.dtype.kind in "TU" else items


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
