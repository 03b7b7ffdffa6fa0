""".npy files: a single array, mapped into memory rather than loaded."""

import math
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.io.blocks import PIECE_BYTES, Blocks, rows_in, stamp
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, default_names, refuse_key
from heatsketch.io.values import as_float

KEEPS_METADATA = False


def read(path: Path, how: Reading) -> Table:
    """Read the points; the file has no names, ids or labels."""
    refuse_key(how.key, path)
    # As a plain array, which estimators fit whole: of a map they may take a sample.
    values = np.asarray(as_float(_mapped(path), str(path)))
    return Table(values, default_names(values), {}, None, str(path))


def blocks(path: Path, how: Reading) -> Blocks:
    """Return the points by blocks, read rather than mapped: pages of a map count as memory."""
    refuse_key(how.key, path)
    whole = _mapped(path)
    first = as_float(whole[:0], str(path))
    columns, in_rows = default_names(whole), whole.flags.c_contiguous
    row, rows = whole.dtype.itemsize * whole.shape[1], rows_in(PIECE_BYTES, whole.shape[1])

    def pieces(start: int) -> Iterator[Table]:
        with path.open("rb") as stream:
            for at in range(start, len(whole), rows):
                count = min(rows, len(whole) - at)
                if in_rows:
                    stream.seek(whole.offset + at * row)
                    values = np.frombuffer(stream.read(count * row), whole.dtype)
                    values = values.reshape(count, whole.shape[1])
                else:
                    values = np.array(whole[at : at + count])
                yield Table(as_float(values, str(path)), columns, {}, None, str(path))

    return Blocks(len(whole), columns, first.dtype, str(path), lambda: stamp(path), pieces)


def _mapped(path: Path) -> Any:
    with path.open("rb") as stream:
        size = claimed_size(stream, path)
    held = path.stat().st_size
    if size > held:
        raise ValueError(
            f"{path} claims {size:,} bytes but holds {held:,}; it is truncated, save it again."
        )
    return np.load(path, mmap_mode="r", allow_pickle=False)


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
        raise ValueError(f"{what} claims the shape {shape}; it is damaged, save it again.")
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
