"""Frames of AnnData, ids and labels of points: the same in HDF5 and zarr, whole or some rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heatsketch._typing import Array
from heatsketch.io.table import Names, objects

ALL = slice(None)
_LONG = ("codes", "values", "mask")  # arrays of a column that have an item for each row
Read = Callable[[Any, str, slice], Array]  # some rows of an array, which errors call by this name


def frame(obs: Any, path: Path, read: Read, rows: slice = ALL) -> dict[str, Array]:
    """Read the index and the columns, each (n,)."""
    names = index(obs, path, read, rows)
    columns = {index_name(obs): names}
    for name in obs.attrs.get("column-order", []):
        decoded = _column(obs[name], f"obs column {name} in {path}", read, rows)
        if decoded is not None:
            columns[str(name)] = decoded
    return columns


def index(obs: Any, path: Path, read: Read, rows: slice = ALL) -> Array:
    """Read the names of the rows (n,)."""
    name = obs.attrs.get("_index")
    found = None if name is None else _column(obs[name], f"the index of {path}", read, rows)
    if found is None:
        raise old_format(path)
    return found


def old_format(path: Path) -> ValueError:
    """Return the error of a file that other readers of AnnData no longer take, either."""
    return ValueError(
        f"{path} cannot be read: it is not in the AnnData format that anndata writes since 0.7; "
        "bring it there by anndata.read_h5ad(OLD).write_h5ad(NEW)."
    )


def check_length(obs: Any, n: int, path: Path) -> None:
    """Raise unless every column has one item for each of n points."""
    for name in (*_index_of(obs), *obs.attrs.get("column-order", [])):
        node = obs[name]
        parts = [node] if hasattr(node, "shape") else [node[p] for p in _LONG if p in node]
        if any(part.shape != (n,) for part in parts):
            raise ValueError(
                f"{path} is damaged: its {n} points do not fit column {name} of obs; save it again."
            )


def _index_of(obs: Any) -> list[str]:
    return [obs.attrs["_index"]] if obs.attrs.get("_index") in obs else []


def names_of(var: Any, path: Path, read: Read) -> Names:
    """Read the names of the features."""
    return tuple(map(str, index(var, path, read)))


def index_name(obs: Any) -> str:
    """Return the name of the index, as a column."""
    name = str(obs.attrs["_index"])
    return "index" if name == "_index" and "index" not in obs else name


def is_categorical(node: Any) -> bool:
    """Say whether a column holds codes of categories."""
    return _kind(node) == "categorical"


def _kind(node: Any) -> str:
    # anndata 0.7 kept the categories in another place, with a reference to it
    old = "categories" in node.attrs
    return "categorical" if old else str(node.attrs.get("encoding-type", "array"))


def _column(node: Any, what: str, read: Read, rows: slice) -> Array | None:
    """Decode one column (n,); None for an encoding that has no plain equivalent."""
    kind = _kind(node)
    if kind in ("array", "string-array"):
        return read(node, what, rows)
    if kind == "categorical":
        return _categorical(node, what, read, rows)
    if kind.startswith("nullable"):
        values = read(node["values"], what, rows).astype(object)
        values[read(node["mask"], what, rows).astype(bool)] = None
        return values
    return None


def _categorical(node: Any, what: str, read: Read, rows: slice) -> Array:
    reference = node.attrs.get("categories")
    old = reference is not None
    codes = read(node if old else node["codes"], what, rows)
    categories = read(node.file[reference] if old else node["categories"], what, ALL)
    if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
        raise ValueError(
            f"{what} has codes that no category has; the file is damaged, save it again."
        )
    return objects([*categories.tolist(), None])[codes]
