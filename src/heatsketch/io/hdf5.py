"""Arrays of HDF5 files, looked at before they are read; used in the child process."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.files import check_budget

_SLAB_BYTES = 2**24
_FREE_CHUNKS = 10_000  # that every dataset may have
_LEAST_CHUNK_BYTES = 8  # that a chunk and its entry in the index take in a file


def check_structure(file: Any, path: Path) -> None:
    """Refuse links, virtual and external data, which make HDF5 open another file."""
    import h5py

    stack, seen = [file], set()
    while stack:
        group = stack.pop()
        for name in group:
            what = f"{group.name.rstrip('/')}/{name}"
            link = group.get(name, getlink=True)
            item = group[name] if isinstance(link, h5py.HardLink) else None
            elsewhere = isinstance(item, h5py.Dataset) and (item.is_virtual or item.external)
            if isinstance(link, h5py.ExternalLink) or elsewhere:
                raise ValueError(f"{path} keeps {what} in another file; save it as one file.")
            if isinstance(item, h5py.Group):
                address = h5py.h5o.get_info(item.id).addr
                if address not in seen:
                    seen.add(address)
                    stack.append(item)


def check_array(node: Any, what: str) -> None:
    """Look at how an array is stored, before it is read.

    Raises
    ------
    ValueError
        Unless a node is an array, of a size that its storage explains, with filters that HDF5 has
        and no more chunks than the file can hold.
    """
    import h5py

    if not isinstance(node, h5py.Dataset) or node.shape is None:
        raise ValueError(f"{what} is not an array; choose another key.")
    stored = node.id.get_storage_size()
    check_budget(math.prod(node.shape) * node.dtype.itemsize, stored, what)
    plan = node.id.get_create_plist()
    for code, _, _, name in map(plan.get_filter, range(plan.get_nfilters())):
        if not h5py.h5z.filter_avail(code):
            label = name.decode("utf-8", "replace") or code
            raise ValueError(
                f"{what} is compressed by the filter {label}, which is not installed; save it with "
                "gzip."
            )
    if node.chunks:
        check_budget(math.prod(node.chunks) * node.dtype.itemsize, stored, f"a chunk of {what}")
        n_chunks = math.prod(-(-n // c) for n, c in zip(node.shape, node.chunks, strict=True))
        if n_chunks > _FREE_CHUNKS + stored // _LEAST_CHUNK_BYTES:
            raise ValueError(
                f"{what} claims {n_chunks:,} chunks in {stored:,} bytes; save it uncompressed."
            )


def array(node: Any, what: str, rows: slice = slice(None)) -> Array:
    """Read an array that passes `check_array`, or some of its rows."""
    check_array(node, what)
    return _readable(node)[rows if node.ndim else ()]


def slabs(node: Any) -> Iterator[Array]:
    """Read an array by blocks of rows that hold whole chunks."""
    if node.ndim == 0:
        yield _readable(node)[()]
    else:
        yield from row_slabs(node, 0)


def row_slabs(node: Any, first: int) -> Iterator[Array]:
    """Read the rows of an array from one on, by blocks that hold whole chunks but for the first."""
    chunk = node.chunks[0] if node.chunks else 1
    row = max(1, math.prod(node.shape[1:]) * node.dtype.itemsize)
    step = max(1, _SLAB_BYTES // (row * chunk)) * chunk
    while first < node.shape[0]:
        stop = (first // step + 1) * step
        yield _readable(node)[first:stop]
        first = stop


def gathered(items: Iterator[Array], shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Put together what `slabs` yields for an array of this shape."""
    if not shape:
        return np.asarray(next(items))
    out, filled = np.empty(shape, dtype), 0
    while filled < len(out):
        slab = next(items)
        out[filled : filled + len(slab)] = slab
        filled += len(slab)
    return out


def _readable(node: Any) -> Any:
    """Return a node whose items are numbers or str."""
    import h5py

    return node.asstr(errors="replace") if h5py.check_string_dtype(node.dtype) else node
