""".npy files: a single array, mapped into memory rather than loaded."""

import math
import tokenize
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, default_names, refuse_key
from heatsketch.io.values import as_float

KEEPS_METADATA = False


def read(path: Path, how: Reading) -> Table:
    """Read the points; the file has no names, ids or labels."""
    refuse_key(how.key, path)
    with path.open("rb") as stream:
        size = claimed_size(stream, path)
    held = path.stat().st_size
    if size > held:
        raise ValueError(f"{path} claims {size:,} bytes but holds {held:,}; it is truncated.")
    values = as_float(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
    return Table(values, default_names(values), {}, None, str(path))


def write(draft: Path, embedding: Array, names: Names, table: Table, key: str, note: str) -> None:
    """Write the embedding alone."""
    with draft.open("wb") as stream:
        np.lib.format.write_array(stream, embedding, allow_pickle=False)


def read_header(stream: Any, what: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Read shape and dtype without the data; version 3 is only for structured dtypes."""
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    try:
        version = form.read_magic(stream)
        shape, _, dtype = readers[version](stream)
    except (ValueError, KeyError, TypeError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{what} has no valid .npy header; save it with numpy.save.") from error
    if min(shape, default=0) < 0:
        raise ValueError(f"{what} claims the shape {shape}; it is damaged.")
    return shape, dtype


def claimed_size(stream: Any, what: Any) -> int:
    """Return the bytes that the header claims for itself and the data; refuse object arrays."""
    shape, dtype = read_header(stream, what)
    if dtype.hasobject:
        raise ValueError(
            f"{what} is an object array, which only pickle can read; save it as numbers or as "
            "strings of dtype str."
        )
    return stream.tell() + math.prod(shape) * dtype.itemsize
