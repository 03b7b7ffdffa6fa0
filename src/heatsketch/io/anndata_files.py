"""AnnData in .h5ad files and .zarr folders, and plain arrays in .zarr, by the library anndata.

Groups of h5py and of zarr have the same methods, so that one code reads both.
"""

import io
import shutil
import warnings
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array
from heatsketch.io.blocks import BLOCK_BYTES, Blocks, rows_in, stamp
from heatsketch.io.files import blame, listed, need
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.table import (
    Names,
    Reading,
    Table,
    as_csr,
    as_float,
    choose_array,
    choose_label,
    default_names,
    is_id,
    objects,
    refuse_key,
    require,
)

DEFAULT_KEY = "X_heat"
_COMPONENTS, _MOST_GENES = "X_pca", 50  # up to so many genes scanpy uses X itself
_ZARR_METADATA = (".zarray", ".zmetadata", "zarr.json")


def default_array(n_genes: int, obsm: Container[str], what: str, do: str) -> str:
    """Return the name of the array that scanpy searches neighbours in: "X" or "X_pca"."""
    if n_genes <= _MOST_GENES:
        return "X"
    if _COMPONENTS in obsm:
        return _COMPONENTS
    warnings.warn(
        f"{what} has no {_COMPONENTS}, so that distances are those of all {n_genes} genes in X; "
        f"run scanpy.pp.pca(adata) first, or pass {do} if that is what you mean.",
        stacklevel=6,
    )
    return "X"


def read(path: Path, how: Reading) -> Table:
    """Read the array that `how.key` means; the columns of obs are the ids and labels."""
    with _opened(path) as store:
        place = _place(store, how.key, path)
        values, names = _matrix(_read(store, place), place, path)
        columns = names or _genes(store, place) or default_names(values)
        table = Table(values, columns, {}, None, str(path))
        frame = _obs(store, values.shape[0], path)
        if frame is None:
            return table
        extra = _columns_of(frame)
        categories = [str(n) for n in frame if frame[n].dtype == "category" and n not in how.ids]
        label = categories[0] if categories else choose_label(extra, how.ids)
        note = f"uns/{KEY}/{place.removeprefix('obsm/')}"
        has_note = place.startswith("obsm/") and note in store
        metadata = decoded(_read(store, note)) if has_note else {}
        return Table(values, columns, extra, label, str(path), metadata)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of rows, those of AnnData with ids and labels.

    The table obs is in memory as a whole.
    """
    with _opened(path) as store:
        place = _place(store, how.key, path)
        points = _by_rows(store, place, path)
        n, d = points.shape
        frame = _obs(store, n, path)
        first, names = _matrix(points[:0], place, path)
        columns = names or _genes(store, place) or default_names(first)
        stored = int(points.group["data"].shape[0]) if sparse.issparse(first) else None
        chunk = (getattr(points, "chunks", None) or (1,))[0]  # chunks are read whole
        step = max(1, rows_in(BLOCK_BYTES, d) // chunk) * int(chunk)
        if stored is not None:
            step = rows_in(BLOCK_BYTES, 1 + 2 * stored // n)

    def tables(start: int) -> Iterator[Table]:
        with _opened(path) as store:
            points = _by_rows(store, place, path)
            while start < n:
                rows = slice(start, min(n, (start // step + 1) * step))
                values, _ = _matrix(points[rows], place, path)
                extra = {} if frame is None else _columns_of(frame.iloc[rows])
                yield Table(values, columns, extra, None, str(path))
                start = rows.stop

    return Blocks(n, columns, first.dtype, str(path), partial(stamp, path), tables, stored)


@contextmanager
def _opened(path: Path, mode: str = "r") -> Iterator[Any]:
    """Open a group of h5py or zarr (or an array of zarr); errors name the file."""
    anndata = need("anndata", path)
    if path.suffix.lower() == ".zarr":
        for file in path.rglob("*"):
            if file.name in _ZARR_METADATA and b"pickle" in file.read_bytes():
                raise ValueError(f"{path} holds pickled objects ({file.name}); save it as numbers.")
        with blame(path, Exception):
            yield need("zarr", path).open(str(path), mode="r")
        return
    h5py = need("h5py", path)
    with blame(path, Exception), h5py.File(path, mode) as file:
        if not _is_old(file):
            yield file
            return
        with h5py.File(io.BytesIO(), "w") as converted:
            anndata.io.write_elem(converted, "/", _read_old(path))
            yield converted


def _is_old(file: Any) -> bool:
    """Say whether a file is in the format before anndata 0.7, which keeps frames as records."""
    return any(hasattr(file.get(name), "shape") for name in ("obs", "obsm"))


def _read_old(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # entries have other places now
        return need("anndata", path).read_h5ad(path)


def _place(store: Any, key: str | None, path: Path) -> str:
    """Return where in a store the array is that `key` means; "" where the store is the array."""
    if hasattr(store, "shape"):
        refuse_key(key, path)
        return ""
    if "obs" not in store:
        arrays = {name: store[name] for name in sorted(store) if hasattr(store[name], "shape")}
        return choose_array({name: node.shape for name, node in arrays.items()}, key, path)
    parts = ["X"] if "X" in store else []
    parts += [f"{part}/{name}" for part in ("obsm", "layers") for name in store.get(part, ())]
    if key is None:
        n_genes = _MOST_GENES + 1
        if "X" in store:
            X = store["X"]
            n_genes = int((X.shape if hasattr(X, "shape") else X.attrs["shape"])[1])
        key = default_array(n_genes, store.get("obsm", ()), str(path), "key='X' (--read key=X)")
    if key.startswith("obsp/"):  # by its full name only: it holds graphs, not points
        parts = [f"obsp/{name}" for name in store.get("obsp", ())]
    place = next((p for p in (key, f"obsm/{key}", f"layers/{key}") if p in parts), key)
    require([place], parts, path, "array")
    return place


def _read(store: Any, place: str) -> Any:
    import anndata

    return anndata.io.read_elem(store[place] if place else store)


def _matrix(values: Any, place: str, path: Path) -> tuple[Any, Names | None]:
    """Return points as a float array or CSR, and the names of the columns of a frame."""
    what = f"{place} in {path}" if place else str(path)
    if sparse.issparse(values):
        return as_csr(values, path), None
    if hasattr(values, "columns"):
        return as_float(values.to_numpy(), what), tuple(map(str, values.columns))
    return as_float(np.asarray(values), what), None


def _by_rows(store: Any, place: str, path: Path) -> Any:
    """Return an array of which rows can be read: dense, a frame, or sparse and stored by rows."""
    import anndata

    node = store[place] if place else store
    if hasattr(node, "shape"):
        return node
    if not str(node.attrs.get("encoding-type", "")).endswith("_matrix"):
        return anndata.io.read_elem(node)
    points = anndata.io.sparse_dataset(node)
    if points.format != "csr":
        raise ValueError(
            f"{place} in {path} is sparse and stored by columns (csc), so that no rows can be "
            "read alone; store it by rows (X = X.tocsr(), with anndata), or choose obsm/X_pca or "
            "another by key (--read key=NAME)."
        )
    return points


def _genes(store: Any, place: str) -> Names | None:
    """Return the names of the features, if they are those of var."""
    if not place.startswith(("X", "layers/")) or "var" not in store:
        return None
    return tuple(map(str, _read(store, "var").index))


def _obs(store: Any, n: int, path: Path) -> Any:
    """Return the table obs, of n rows; None of a store that is no AnnData."""
    if hasattr(store, "shape") or "obs" not in store:
        return None
    frame = _read(store, "obs")
    if len(frame) != n:
        raise ValueError(
            f"{path} is damaged: it has {n} points but {len(frame)} rows in obs; save it again."
        )
    return frame


def _columns_of(frame: Any) -> dict[str, Array]:
    """Return the index and the columns, each (n,); numbers, or objects with None for gaps."""
    index = str(frame.index.name or ("_index" if "index" in frame else "index"))
    columns = {index: objects(list(map(str, frame.index)))}
    for name, column in frame.items():
        is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        items = column if is_plain else column.astype(object).where(column.notna(), None)
        columns[str(name)] = items.to_numpy()
    return columns


def has_entry(path: Path, key: str) -> bool:
    """Say whether obsm has an entry of this name."""
    with _opened(path) as store:
        return "obsm" in store and _entry(key) in store["obsm"]


def key_of_embedding(path: Path) -> str:
    """Return the name of the embedding that this library has written to a file."""
    with _opened(path) as store:
        made = [name for name in store.get(f"uns/{KEY}", ()) if f"obsm/{name}" in store]
    if len(made) > 1 and DEFAULT_KEY not in made:
        raise ValueError(f"{path} has the embeddings {listed(made)}; choose one by its key.")
    return made[0] if len(made) == 1 else DEFAULT_KEY


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding as the entry `key` of obsm, into a copy of the input if that is .h5ad.

    Columns that the table has and obs has not are added to obs. The note has the same key in
    uns["heatsketch"].
    """
    source = Path(table.source)
    if source.suffix.lower() == ".h5ad" and source.is_file():
        write_copy(draft, embedding, source, key, note, table.extra)
        return
    _as_anndata(table, draft).write_h5ad(draft)
    with _opened(draft, "r+") as file:
        _put(file, embedding, key, note)


def write_copy(
    draft: Path,
    embedding: Array,
    source: Path,
    key: str,
    note: str,
    extra: dict[str, Array] | None = None,
) -> None:
    """Write a copy of a .h5ad file with an entry of obsm, and new numbers as columns of obs."""
    h5py, anndata = need("h5py", source), need("anndata", source)
    shutil.copyfile(source, draft)
    with blame(source, Exception), h5py.File(draft, "r") as file:
        is_old = _is_old(file)
    if is_old:
        _read_old(source).write_h5ad(draft)
    with blame(source, Exception), h5py.File(draft, "r+") as file:
        frame = anndata.io.read_elem(file["obs"])
        if len(frame) != len(embedding):
            raise ValueError(
                f"{source} has {len(frame)} points but the embedding {len(embedding)} rows, since "
                "others were left out; use missing='median' (--missing) or another format."
            )
        known = {name: column.tolist() for name, column in _columns_of(frame).items()}
        new = {
            name: column
            for name, column in (extra or {}).items()
            if name not in known or (column.dtype.kind == "f" and column.tolist() != known[name])
        }
        if new:
            anndata.io.write_elem(file, "obs", frame.assign(**new))
        _put(file, embedding, key, note)


def _put(file: Any, embedding: Array, key: str, note: str) -> None:
    """Write an entry of obsm, and write or remove what says how it was made."""
    from anndata.io import write_elem

    name = _entry(key)
    for group in ("obsm", "uns", f"uns/{KEY}"):
        if group not in file or hasattr(file[group], "shape"):
            write_elem(file, group, {})
    write_elem(file["obsm"], name, embedding)
    notes = file[f"uns/{KEY}"]
    if note:
        write_elem(notes, name, note)
    elif name in notes:
        del notes[name]


def _entry(key: str) -> str:
    """Return the name in obsm that a key means."""
    name = key.removeprefix("obsm/")
    if not name or "/" in name:
        raise ValueError(f"key={key!r} is not a name in obsm; pass one without a slash.")
    return name


def _as_anndata(table: Table, path: Path) -> Any:
    """Return the points as an AnnData; the first ids without a gap or repetition are the index."""
    anndata, pd = need("anndata", path), need("pandas", path)
    n = table.values.shape[0]
    unique = [
        name
        for name, column in table.extra.items()
        if is_id(name) and None not in column.tolist() and len(set(column.tolist())) == n
    ]
    extra = dict(table.extra)
    rows = extra.pop(unique[0]) if unique else np.arange(n)
    named = unique[0] if unique and unique[0] not in ("", "index", "_index") else None
    obs = pd.DataFrame(index=pd.Index(rows.astype(str), name=named, dtype=object))
    for name, column in extra.items():
        if column.dtype.kind not in "biuf":
            texts = objects([None if item is None else str(item) for item in column])
            repeats = len(set(texts.tolist()) - {None}) < n
            column = pd.Categorical(texts) if repeats or name == table.label else texts
        obs[name.replace("/", "_") or "rownames"] = column
    var = pd.DataFrame(index=pd.Index(table.columns, dtype=object))
    return anndata.AnnData(table.values, obs=obs, var=var)
