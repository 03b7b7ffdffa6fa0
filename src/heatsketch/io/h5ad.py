""".h5ad files, the format of AnnData, read and written by h5py alone."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.io import obs
from heatsketch.io.blocks import Blocks, check_by_rows, csr_slabs, stamp
from heatsketch.io.child import from_child
from heatsketch.io.files import DAMAGE, blame, listed, need
from heatsketch.io.hdf5 import array, check_array, check_structure, gathered, row_slabs, slabs
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, choose_label, default_names, is_id, objects
from heatsketch.io.values import as_csr, as_float

KEEPS_METADATA = True
_PLAIN = {"encoding-type": "array", "encoding-version": "0.2.0"}
_ODD = (AttributeError, IndexError, ValueError)  # where one kind of node is found for another


@dataclass(frozen=True)
class _Head:
    """What a file says of an array, before its data come."""

    place: str
    columns: Names | None
    extra: dict[str, Array]
    label: str | None
    note: Any
    layout: str  # "dense", "csr" or "csc"
    shape: tuple[int, ...]
    parts: list[tuple[tuple[int, ...], np.dtype]]  # shape and dtype of each array that follows


def read(path: Path, how: Reading) -> Table:
    """Read the array that `key` means; the columns of obs are the ids and labels.

    HDF5 itself runs in a child process, which a damaged file may crash.
    """
    need("h5py", path)
    with closing(from_child(path, parts, path, how)) as items:
        head: _Head = next(items)
        arrays = [gathered(items, shape, dtype) for shape, dtype in head.parts]
    if head.layout == "dense":
        values = as_float(arrays[0], f"{head.place} in {path}")
    else:
        data, indices, indptr = arrays
        values = as_csr(data, indices, indptr, np.array(head.shape), head.layout, path)
    columns = default_names(values) if head.columns is None else head.columns
    wrong = [name for name, column in head.extra.items() if len(column) != values.shape[0]]
    if wrong or len(columns) != values.shape[1]:
        raise ValueError(
            f"{path} is damaged: {head.place} does not fit {listed(wrong) or 'var'}; save it again."
        )
    return Table(values, columns, head.extra, head.label, str(path), decoded(head.note))


def parts(path: Path, how: Reading) -> Iterator[Any]:
    """Yield a `_Head`, then its arrays, in slabs; in the child process."""
    with _opened(path) as file:
        place = _find_array(file, how.key, path)
        layout, shape, nodes = _nodes(file[place], f"{place} in {path}")
        extra = obs.frame(file["obs"], path, array) if "obs" in file else {}
        chosen = _label(file, extra, how.ids)
        columns = _columns(file, place, path)
        described = [(node.shape, node.dtype) for node in nodes]
        yield _Head(place, columns, extra, chosen, _note(file, place), layout, shape, described)
        for node in nodes:
            yield from slabs(node)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks, with ids and labels; each pass is a child process."""
    need("h5py", path)
    with closing(from_child(path, _facts, path, how.key)) as items:
        columns, shape, dtype, stored = next(items)
    first = as_float(np.empty((0, *shape[1:]), dtype), str(path))
    columns = default_names(first) if columns is None else columns

    def pieces(start: int) -> Iterator[Table]:
        with closing(from_child(path, _rows, path, how.key, start)) as items:
            for held, extra in items:
                if stored is None:
                    values = as_float(held, str(path))
                else:
                    data, indices, indptr = held
                    size = np.array([len(indptr) - 1, shape[1]])
                    values = as_csr(data, indices, indptr, size, "csr", path)
                yield Table(values, columns, extra, None, str(path))

    changed = partial(stamp, path)
    return Blocks(shape[0], columns, first.dtype, str(path), changed, pieces, stored)


def _facts(path: Path, key: str | None) -> Iterator[Any]:
    """Yield names of the columns or None, shape, dtype, entries if it is sparse; in the child."""
    with _opened(path) as file:
        place, layout, shape, nodes = _by_rows(file, key, path)
        if "obs" in file:
            obs.check_length(file["obs"], shape[0], path)
        stored = None if layout == "dense" else len(nodes[0])
        yield _columns(file, place, path), shape, nodes[0].dtype, stored


def _rows(path: Path, key: str | None, start: int) -> Iterator[Any]:
    """Yield rows of an array from one on, of CSR its three arrays, with obs; in the child."""
    with _opened(path) as file:
        _, layout, _, nodes = _by_rows(file, key, path)
        dense = layout == "dense"
        for held in row_slabs(nodes[0], start) if dense else csr_slabs(nodes, start):
            stop = start + (len(held) if dense else len(held[2]) - 1)
            rows = slice(start, stop)
            yield held, (obs.frame(file["obs"], path, array, rows) if "obs" in file else {})
            start = stop


def _by_rows(file: Any, key: str | None, path: Path) -> tuple[str, str, tuple[int, ...], list[Any]]:
    """Return place, layout and shape of an array, and the arrays that hold it, row after row."""
    place = _find_array(file, key, path)
    layout, shape, nodes = _nodes(file[place], f"{place} in {path}")
    check_by_rows(layout, shape, nodes, f"{place} in {path}")
    return place, layout, shape, nodes


def _columns(file: Any, place: str, path: Path) -> Names | None:
    """Return the names of the features, if they are those of var."""
    named = "var" in file and not place.startswith(("obsm", "obsp"))
    return obs.names_of(file["var"], path, array) if named else None


@contextmanager
def _opened(path: Path, mode: str = "r", source: Path | None = None) -> Iterator[Any]:
    """Open a file whose structure has been looked at; errors name it, or what it is a copy of."""
    import h5py

    with blame(source or path, *DAMAGE, *_ODD), h5py.File(path, mode) as file:
        check_structure(file, source or path)
        if any(name in file and isinstance(file[name], h5py.Dataset) for name in ("obs", "obsm")):
            raise obs.old_format(source or path)
        yield file


def _find_array(file: Any, key: str | None, path: Path) -> str:
    """Return the path inside the file of the array that `key` means."""
    group, _, name = (key or "X").rpartition("/")
    if (group, name) == ("", "X") and "X" in file:
        return "X"
    arrays = {part: list(file[part]) for part in ("obsm", "layers") if part in file}
    if "obsp" in file and group == "obsp":  # by its full name only: it holds graphs, not points
        arrays = {"obsp": list(file["obsp"])}
    for part in [group] if group else arrays:
        if name in arrays.get(part, []):
            return f"{part}/{name}"
    known = "; ".join(f"{part}: {listed(names)}" for part, names in arrays.items())
    hint = did_you_mean(name, [one for names in arrays.values() for one in names])
    raise ValueError(
        f"{path} has no array {key or 'X'!r}; choose one by key (--key) from {known or 'nothing'}"
        f"{hint}"
    )


def _nodes(node: Any, what: str) -> tuple[str, tuple[int, ...], list[Any]]:
    """Return layout and shape of a matrix, and the arrays that hold it."""
    kind = str(node.attrs.get("encoding-type", "")).removesuffix("_matrix")
    nodes = [node]
    if kind in ("csr", "csc"):
        nodes = [node[name] for name in ("data", "indices", "indptr")]
    for one in nodes:
        check_array(one, what)
    if kind not in ("csr", "csc"):
        return "dense", node.shape, nodes
    return kind, tuple(node.attrs["shape"].tolist()), nodes


def _label(file: Any, extra: dict[str, Array], ids: Names) -> str | None:
    """Return the first categorical column of obs, else the label chosen as for other tables."""
    if not extra:
        return None
    names = [name for name in extra if name not in (*ids, obs.index_name(file["obs"]))]
    for name in names:
        if obs.is_categorical(file["obs"][name]):
            return name
    return choose_label({name: extra[name] for name in names}, ids)


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding as the entry `key` of obsm, into a copy of the input if that is .h5ad.

    The note has the same key in uns["heatsketch"].
    """
    name = _entry(key)
    h5py, source = need("h5py", draft), Path(table.source)
    if source.suffix.lower() == ".h5ad" and source.is_file():
        shutil.copyfile(source, draft)
        _add(draft, source, name, [embedding], note)
        return
    with h5py.File(draft, "w") as file:
        _put_points(file, table)
        _put_entry(file, name, [embedding], note)


def write_parts(draft: Path, parts: Sequence[Path], source: Path, key: str, note: str) -> None:
    """Write .npy files, one after the other, as an entry of obsm in a copy of a .h5ad file."""
    shutil.copyfile(source, draft)
    _add(draft, source, _entry(key), parts, note)


def _add(draft: Path, source: Path, name: str, parts: Sequence[Array | Path], note: str) -> None:
    for _ in from_child(source, _add_entry, draft, source, name, parts, note):
        pass


def _add_entry(
    draft: Path, source: Path, name: str, parts: Sequence[Array | Path], note: str
) -> None:
    """Add the rows of an embedding, or of files of them, to a copy; in the child process."""
    held = [np.load(part, mmap_mode="r") if isinstance(part, Path) else part for part in parts]
    n = sum(map(len, held))
    with _opened(draft, "r+", source) as file:
        rows = len(obs.index(file["obs"], source, array)) if "obs" in file else n
        if rows != n:
            raise ValueError(
                f"{source} has {rows} points but the embedding {n} rows, since "
                "others were left out; use missing='median' (--missing) or another format."
            )
        _put_entry(file, name, held, note)


def _put_entry(file: Any, name: str, parts: Sequence[Array], note: str) -> None:
    obsm = file["obsm"] if "obsm" in file else _put_group(file, "obsm")
    if name in obsm:
        del obsm[name]
    shape = sum(map(len, parts)), parts[0].shape[1]
    node = obsm.create_dataset(name, shape, parts[0].dtype)
    node.attrs.update(_PLAIN)
    start = 0
    for part in parts:
        node[start : start + len(part)] = part
        start += len(part)
    _put_note(file, name, note)


def _entry(key: str) -> str:
    """Return the name in obsm that a key means."""
    name = key.removeprefix("obsm/")
    if not name or "/" in name:
        raise ValueError(f"key={key!r} is not a name in obsm; pass one without a slash.")
    return name


def has_entry(path: Path, key: str) -> bool:
    """Say whether obsm has an entry of this name."""
    need("h5py", path)
    (found,) = from_child(path, _entries, path, _entry(key))
    return bool(found)


def _entries(path: Path, name: str) -> Iterator[bool]:
    """Yield whether obsm has an entry; in the child process."""
    with _opened(path) as file:
        yield "obsm" in file and name in file["obsm"]


def _put_note(file: Any, name: str, note: str) -> None:
    """Write, or remove, what says how an entry of obsm was made."""
    if not note and f"uns/{KEY}" not in file:
        return
    uns = file["uns"] if "uns" in file else _put_group(file, "uns")
    if KEY in uns and not hasattr(uns[KEY], "keys"):
        del uns[KEY]
    notes = uns[KEY] if KEY in uns else _put_group(uns, KEY)
    if name in notes:
        del notes[name]
    if note:
        node = notes.create_dataset(name, data=note)
        node.attrs.update({"encoding-type": "string", "encoding-version": "0.2.0"})


def _note(file: Any, place: str) -> Any:
    """Return the note of an entry of obsm, "" if it has none."""
    import h5py

    group, _, name = place.rpartition("/")
    node: Any = file.get(f"uns/{KEY}/{name}") if group == "obsm" else None
    if not isinstance(node, h5py.Dataset) or node.shape != ():
        return ""
    return node.asstr(errors="replace")[()] if h5py.check_string_dtype(node.dtype) else ""


def _put_points(file: Any, table: Table) -> None:
    """Write X, obs, var, and empty groups for everything else that anndata expects."""
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
    return bool(name) and is_id(name) and None not in items and len(set(items)) == len(items)


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
    node.attrs.update(_PLAIN | ({"encoding-type": "string-array"} if text else {}))


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
    """Write text as categories if values repeat or are missing, or for the label, else as it is."""
    texts = [None if item is None else str(item) for item in items]
    categories = sorted({text for text in texts if text is not None})
    if len(categories) == len(texts) and not is_label:
        return _put(frame, name, objects(texts))
    group = _put_group(frame, name, "categorical")
    group.attrs["ordered"] = False
    code = {text: j for j, text in enumerate(categories)}
    _put(group, "codes", np.array([-1 if t is None else code[t] for t in texts], dtype=np.int32))
    return _put(group, "categories", objects(list(categories)))
