"""Arrays and tensors: names of their types, and the way from one to the other.

`device` computes with tensors.
"""

import sys
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
Points: TypeAlias = Any  # array (n, d), or CSR matrix (n, d) from SciPy, which has no types
Rng: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


@runtime_checkable
class Landing(Protocol):
    """An object that says by itself what it is on the host."""

    def landed(self) -> Any:
        """Return the same on the host."""


def is_tensor(X: Any) -> bool:
    """Return whether X is a tensor of torch, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def on_host(X: Any) -> Any:
    """Return a tensor as a NumPy array, a sparse tensor as a CSR matrix, anything else as it is.

    Tensors are detached, so no gradients flow through.
    """
    if not is_tensor(X):
        return X
    torch = sys.modules["torch"]
    X = X.detach().cpu()
    X = X.float() if X.dtype == torch.bfloat16 else X
    if X.layout == torch.strided:
        return X.numpy()
    X = X.to_sparse_csr()
    parts = (X.values(), X.col_indices(), X.crow_indices())
    return sparse.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(X.shape))


def landed(value: Any, done: dict[int, Any] | None = None) -> Any:
    """Return a record whose tensors, also in records within, are arrays.

    A `Landing` says by itself what it is there. A record without any is returned as it is. What is
    in `done`, by its id, is not copied again.
    """
    done = {} if done is None else done
    if id(value) in done:
        return done[id(value)]
    found = value
    if is_tensor(value):
        found = on_host(value)
    elif isinstance(value, Landing):
        found = value.landed()
    elif is_dataclass(value) and not isinstance(value, type):
        old = {one.name: getattr(value, one.name) for one in fields(value)}
        new = {name: landed(part, done) for name, part in old.items()}
        if any(new[name] is not old[name] for name in old):
            found = replace(value, **new)
    done[id(value)] = found
    return found


def commonest(sizes: Array) -> int:
    """Return the commonest of some sizes, the first of equally common ones; 0 without any."""
    return next((size for size, _ in Counter(sizes.tolist()).most_common(1)), 0)


def stacked_lists(column: Any, width: int = 0) -> tuple[Array, Array]:
    """Return an Arrow column of lists as an array (n, d), and the rows with lists of other sizes.

    It is float32 (from float32 or float16) or float64, NaN where a list or an entry is missing, and
    shares the memory of Arrow where that is one piece. The size d is `width` if that is known, else
    that of most lists. With rows of other sizes the array is empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    kind = column.type
    lengths = pc.list_value_length(column)
    d = width or getattr(kind, "list_size", 0) or commonest(lengths.drop_null().to_numpy())
    others = np.flatnonzero(lengths.fill_null(d).to_numpy() != d)
    is_single = pa.types.is_float32(kind.value_type) or pa.types.is_float16(kind.value_type)
    dtype = np.float32 if is_single else np.float64
    if len(others) or not d:
        return np.empty((0, d), dtype), others

    def entries(chunk: Any) -> Array:  # flatten, but not values, knows of slices and missing lists
        numbers: Array = chunk.flatten().to_numpy(zero_copy_only=False)
        return numbers.astype(dtype, copy=False).reshape(-1, d)

    if len(chunks) == 1 and not column.null_count:
        return entries(chunks[0]), others
    found = np.full((len(column), d), np.nan, dtype)
    at = 0
    for chunk in chunks:
        there = chunk.is_valid().to_numpy(zero_copy_only=False)
        found[at : at + len(chunk)][there] = entries(chunk)
        at += len(chunk)
    return found, others


def device_of(X: Any) -> Any:
    """Return the device of a tensor that is not on the CPU, else None."""
    return X.device if is_tensor(X) and X.device.type != "cpu" else None


def to_device(values: Any, device: Any) -> Any:
    """Return an array as a tensor of the same precision on a device, copied once."""
    entries = np.require(np.ravel(values), requirements="W")
    tensor = sys.modules["torch"].from_numpy(entries).to(device, copy=True)
    return tensor.view(np.shape(values))


def returned_for(Y: Any, X: Any) -> Any:
    """Return Y as a tensor if X is one, on its device and, if it holds floats, in its precision."""
    if not is_tensor(X):
        return Y
    Y = to_device(np.asarray(Y), X.device)
    return Y.to(X.dtype) if X.is_floating_point() else Y.double()
