"""Blocks of coordinates, and their output: one file, or a folder of .npy parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.distributed.state import State
from heatsketch.io import h5ad, parquet
from heatsketch.io.files import check_target, need
from heatsketch.io.formats import DEFAULT_KEY, check_key, suffix_of
from heatsketch.io.metadata import encoded, write_beside
from heatsketch.io.table import Names, Table

SUFFIXES = (".npy", ".parquet", ".h5ad", "")  # the last of a folder


@dataclass(frozen=True)
class Output:
    """Where blocks of coordinates go, and of what source."""

    path: Path
    source: Path | None  # None: an array
    key: str = DEFAULT_KEY  # of an entry of obsm

    @property
    def suffix(self) -> str:
        """The suffix of the file; "" of a folder."""
        return suffix_of(self.path)


def check_output(output: Output, missing: str, *, force: bool, is_own: bool = False) -> str:
    """Return the suffix of the blocks of an output, or raise if it could not be written.

    `is_own` says that it was written by the run that goes on.
    """
    path, suffix, source = output.path, output.suffix, output.source
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} cannot be written by blocks; name a .npy or .parquet file, or a folder "
            "(without a suffix)."
        )
    if not suffix and path.exists() and not is_own:
        raise FileExistsError(f"{path} exists; name a folder that does not exist yet.")
    if not is_own:
        check_target(path, force=force, source=source or "")
    if suffix == ".parquet":
        need("pyarrow", path)
    if suffix == ".h5ad":
        _check_copy(output, missing, force=force or is_own)
    return suffix if suffix == ".parquet" else ".npy"


def _check_copy(output: Output, missing: str, *, force: bool) -> None:
    """Raise unless an output can be a copy of its source with an entry more in obsm."""
    source = output.source
    if source is None or suffix_of(source) != ".h5ad":
        raise ValueError(
            f"{output.path} cannot be written by blocks of {source or 'an array'}, since it would "
            "hold all points; only a .h5ad source becomes one. Name a .npy or .parquet file."
        )
    if missing == "drop":
        raise ValueError(
            f"missing='drop' leaves out rows, but {output.path} is a copy of {source} with all of "
            "them; pass missing='median' (--missing), or name a .npy or .parquet file."
        )
    check_key(output.path, source, output.key, force=force)


def writer_of(suffix: str, Y: Array, names: Names, table: Table) -> Callable[[Path], None]:
    """Return what writes a block of coordinates, in .parquet with the ids and labels."""

    def write(draft: Path) -> None:
        if suffix == ".parquet":
            parquet.write(draft, Y, names, table, "", "")
        else:
            np.save(draft, Y, allow_pickle=False)

    return write


def assemble(output: Output, state: State, metadata: dict[str, Any]) -> None:
    """Write the output from all blocks (n, k), of which one at a time is held."""
    parts, suffix = sorted(state.parts.glob(f"part-*{state.suffix}")), output.suffix
    held = [part for part in parts if _length(part)] if suffix and not state.is_whole else []
    whole = state.whole(suffix) if suffix else state.parts

    def write(draft: Path) -> None:
        if suffix == ".parquet":
            parquet.write_parts(draft, held, encoded(metadata))
        elif suffix == ".h5ad" and output.source is not None:
            h5ad.write_parts(draft, held, output.source, output.key, encoded(metadata))
        else:
            _write_npy(draft, held)

    if suffix and not state.is_whole:
        state.keep(whole, write)
    state.tell_whole()
    if whole.exists():
        whole.replace(output.path)
    if suffix == ".npy":
        write_beside(output.path, metadata)


def _length(part: Path) -> int:
    """Return the rows of a block, of which there are none if all had gaps."""
    if part.suffix == ".parquet":
        return parquet.n_rows(part)
    return len(np.load(part, mmap_mode="r"))


def _write_npy(draft: Path, parts: list[Path]) -> None:
    blocks = [np.load(part, mmap_mode="r") for part in parts]
    shape = sum(len(block) for block in blocks), blocks[0].shape[1]
    header = {"descr": np.lib.format.dtype_to_descr(blocks[0].dtype), "fortran_order": False}
    with draft.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header | {"shape": shape})
        for part in parts:
            stream.write(np.load(part).data)
