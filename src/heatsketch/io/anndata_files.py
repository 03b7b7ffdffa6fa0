"""AnnData in .h5ad files and .zarr folders, and plain arrays in .zarr, by the library anndata.

Groups of h5py and of zarr have the same methods, so one code reads both.
"""

import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._arrays import Array
from heatsketch._messages import warn
from heatsketch.io.files import blame, listed, need, suffix_of
from heatsketch.io.metadata import KEY, decoded
from heatsketch.io.table import (
    BLOCK_BYTES,
    Blocks,
    Names,
    Reading,
    Table,
    as_float,
    check_names,
    default_names,
    is_id,
    rows_in,
)

DEFAULT_KEY = "X_heat"
_COMPONENTS, _MOST_GENES = "X_pca", 50  # up to 50 genes scanpy uses X itself
_ZARR_METADATA = (".zarray", ".zmetadata", "zarr.json")


def default_array(n_genes: int, obsm: Container[str], what: str, do: str) -> str:
    """Return the name of the array in which scanpy searches neighbours: "X" or "X_pca"."""
    if n_genes <= _MOST_GENES:
        if _COMPONENTS in obsm:
            warn(
                UserWarning,
                f"{what} has {_COMPONENTS} but only {n_genes} genes, so that distances are those "
                f"of X, as in scanpy; name {_COMPONENTS} if you mean it, or pass {do}.",
            )
        return "X"
    if _COMPONENTS in obsm:
        return _COMPONENTS
    warn(
        UserWarning,
        f"{what} has no {_COMPONENTS}, so that distances are those of all {n_genes} genes in X; "
        f"run scanpy.pp.pca(adata) first, or pass {do} if that is what you mean.",
    )
    return "X"


def read(path: Path, how: Reading) -> Table:
    """Read the array named by `how.key`; the columns of obs are the ids and labels."""
    with _opened(path) as store:
        place, points, columns, frame = _contents(store, how, path)
        table = _table(points[:], columns, place, frame, path)
        if frame is None:
            return table
        categories = [str(n) for n in frame if frame[n].dtype == "category" and n not in how.ids]
        label = categories[0] if categories else how.choose_label(table.extra)
        note = place.replace("obsm/", f"uns/{KEY}/")
        made = _element(store, note) if note != place and note in store else ""
        notes = _note_of_choice(place, how)
        return replace(table, label=label, metadata=decoded(made), notes=notes)


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks of rows, those of AnnData with ids and labels.

    The table obs is in memory as a whole.
    """
    with _opened(path) as store:
        place, points, columns, frame = _contents(store, how, path)
        if getattr(points, "format", "csr") != "csr":
            what = f"{place} in {path} is stored by columns (csc), not by rows"
            raise ValueError(
                f"{what}; store X.tocsr(), or choose another by key (--read key=NAME)."
            )
        n, d = points.shape
        empty = _table(points[:0], columns, place, None, path).values
        if sparse.issparse(empty):
            stored = int(points.group["data"].shape[0])
            block_rows = rows_in(BLOCK_BYTES, 1 + 2 * stored // n)
        else:
            stored, chunk = None, (getattr(points, "chunks", None) or (1,))[0]
            # Chunks are read whole.
            block_rows = max(1, rows_in(BLOCK_BYTES, d) // chunk) * int(chunk)

    def tables(start: int) -> Iterator[Table]:
        with _opened(path) as store:
            points = _element(store, place)
            while start < n:
                rows = slice(start, min(n, (start // block_rows + 1) * block_rows))
                obs = None if frame is None else frame.iloc[rows]
                yield _table(points[rows], columns, place, obs, path)
                start = rows.stop

    notes = _note_of_choice(place, how)
    return Blocks(n, columns, empty.dtype, str(path), tables, stored, notes)


def _note_of_choice(place: str, how: Reading) -> tuple[str, ...]:
    """Return a note where the principal components stand for the genes."""
    words = f"distances are those of {_COMPONENTS}, as in scanpy (of all genes: --read key=X)"
    return (words,) if how.key is None and place == f"obsm/{_COMPONENTS}" else ()


def _table(points: Any, columns: Names, place: str, frame: Any, path: Path) -> Table:
    """Return points as floats or CSR, with the columns of obs."""
    values = as_float(points, f"{place} in {path}" if place else path, path)
    return Table(values, columns, {} if frame is None else _frame_columns(frame), None, str(path))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a group of h5py or zarr (or an array of zarr)."""
    need("anndata", path)
    if path.suffix.lower() == ".zarr":
        for file in path.rglob("*"):
            if file.name in _ZARR_METADATA and b"pickle" in file.read_bytes():
                raise ValueError(f"{path} holds pickled objects ({file.name}); save it as numbers.")
        yield need("zarr", path).open(str(path), mode="r")
        return
    with need("h5py", path).File(path) as file:
        if any(hasattr(file.get(name), "shape") for name in ("obs", "obsm")):
            what = "is in the format before anndata 0.7; convert it to the present one"
            raise ValueError(f"{path} {what}: anndata.read_h5ad(path).write_h5ad(path).")
        yield file


def _contents(store: Any, how: Reading, path: Path) -> tuple[str, Any, Names, Any]:
    """Return the place of the array named by `how.key`, the array, its column names, and obs.

    The place is "" where the store is the array. The names are those of a frame, or of var, or x0,
    x1, … obs is None unless the store is an AnnData.
    """
    if hasattr(store, "shape"):
        how.refuse_key(path)
        return "", store, default_names(store), None
    if "obs" not in store:
        nodes = {name: store[name] for name in sorted(store) if hasattr(store[name], "shape")}
        place = how.choose_array({name: node.shape for name, node in nodes.items()}, path)
        return place, nodes[place], default_names(nodes[place]), None
    key = how.key
    if key is None:
        n_genes = _element(store, "X").shape[1] if "X" in store else _MOST_GENES + 1
        key = default_array(n_genes, store.get("obsm", ()), str(path), "key='X' (--read key=X)")
    # An entry of obsp needs its full name, because obsp holds graphs, not points.
    parts = ("obsp",) if key.startswith("obsp/") else ("obsm", "layers")
    places = [f"{part}/{name}" for part in parts for name in store.get(part, ())]
    places = ["X", *places] if "X" in store and "obsp" not in parts else places
    place = next((p for p in (key, f"obsm/{key}", f"layers/{key}") if p in places), key)
    check_names([place], places, path, "array")
    points, frame = _element(store, place), _element(store, "obs")
    if len(frame) != points.shape[0]:
        what = f"it has {points.shape[0]} points but {len(frame)} rows in obs"
        raise ValueError(f"{path} is damaged: {what}; save it again.")
    if place == "X" or place.startswith("layers/"):
        return place, points, tuple(map(str, _element(store, "var").index)), frame
    names = getattr(points, "columns", default_names(points))
    return place, points, tuple(map(str, names)), frame


def _element(store: Any, place: str) -> Any:
    """Return an element of AnnData: an array or sparse matrix in the file, others in memory."""
    import anndata

    node = store[place] if place else store
    if getattr(node, "shape", ()):  # text has none
        return node
    is_sparse = str(node.attrs.get("encoding-type", "")).endswith("_matrix")
    return anndata.io.sparse_dataset(node) if is_sparse else anndata.io.read_elem(node)


def _frame_columns(frame: Any) -> dict[str, Array]:
    """Return the index and the columns, each (n,); numbers, or objects with None for gaps."""
    index = str(frame.index.name or ("_index" if "index" in frame else "index"))
    columns = {index: np.array([*map(str, frame.index)], dtype=object)}
    for name, column in frame.items():
        is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        items = column if is_plain else column.astype(object).where(column.notna(), None)
        columns[str(name)] = items.to_numpy()
    return columns


def check_key(path: Path, source: str | Path, key: str, *, force: bool) -> None:
    """Raise if the copy of a .h5ad file would already have an entry `key`."""
    source = Path(source)
    if force or {suffix_of(path), suffix_of(source)} != {".h5ad"} or not source.is_file():
        return
    with _opened(source) as store:
        if _entry(key) in store.get("obsm", ()):
            raise FileExistsError(
                f"{source} has an entry {key!r} in obsm already; pass force=True (--force) to "
                "replace it, or choose another name with key (--output-key)."
            )


def key_of_embedding(path: Path) -> str:
    """Return the name of the embedding that this library has written to a file."""
    with _opened(path) as store:
        made = [name for name in store.get(f"uns/{KEY}", ()) if f"obsm/{name}" in store]
    if len(made) > 1 and DEFAULT_KEY not in made:
        raise ValueError(f"{path} has the embeddings {listed(made)}; choose one by its key.")
    return made[0] if len(made) == 1 else DEFAULT_KEY


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding as the entry `key` of obsm, into a copy of the input if that is .h5ad.

    Columns of the table that obs lacks, or has with other entries, are written to obs. The note has
    the same key in uns["heatsketch"]. Without a copy, the first ids without a gap or repetition
    become the index of obs.
    """
    source, name = Path(table.source), _entry(key)
    if suffix_of(source) == ".h5ad" and source.is_file():
        write_copy(draft, embedding, source, key, note, table.extra)
        return
    anndata, pd = need("anndata", draft), need("pandas", draft)
    n, extra = len(embedding), dict(table.extra)
    own = next((x for x in extra if is_id(x) and len({*extra[x], None}) == n + 1), None)
    index = pd.Index((np.arange(n) if own is None else extra.pop(own)).astype(str), dtype=object)
    obs = pd.DataFrame(index=index.rename(None if own in ("", "index", "_index") else own))
    for column, items in extra.items():
        if items.dtype.kind not in "biuf":
            items = np.array([x if x is None else str(x) for x in items], dtype=object)
            # As text anndata cannot write a column without any.
            items = pd.Categorical(items) if column == table.label or not items.any() else items
        own = column.replace("/", "_") or "rownames"
        while own in obs or own == "_index":  # which anndata keeps to itself
            own += "_input"
        obs[own] = items
    var = pd.DataFrame(index=pd.Index(table.columns, dtype=object))
    data = anndata.AnnData(table.values, obs=obs, var=var, obsm={name: embedding})
    data.uns[KEY] = {name: note}
    data.write_h5ad(draft)


def write_copy(
    draft: Path, embedding: Array, source: Path, key: str, note: str, extra: dict[str, Array]
) -> None:
    """Write a copy of a .h5ad file with an entry of obsm, and new numbers as columns of obs."""
    write_elem = need("anndata.io", source).write_elem
    shutil.copyfile(source, draft)
    with blame(source), need("h5py", source).File(draft, "r+") as file:
        frame, name = _element(file, "obs"), _entry(key)
        if len(frame) != len(embedding):
            what = f"{source} has {len(frame)} points but the embedding {len(embedding)} rows"
            raise ValueError(f"{what}; use missing='median' (--missing) or another format.")
        known = {column: items.tolist() for column, items in _frame_columns(frame).items()}
        new = {column: x for column, x in extra.items() if x.tolist() != known.get(column)}
        if new:
            write_elem(file, "obs", frame.assign(**new))
        for group in ("obsm", "uns", f"uns/{KEY}"):
            if group not in file:
                write_elem(file, group, {})
        write_elem(file["obsm"], name, embedding)
        write_elem(file[f"uns/{KEY}"], name, note)


def _entry(key: str) -> str:
    """Return the name in obsm for a key, with or without "obsm/"."""
    name = key.removeprefix("obsm/")
    if not name or "/" in name:
        raise ValueError(f"key={key!r} is not a name in obsm; pass one without a slash.")
    return name
