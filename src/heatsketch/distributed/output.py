"""The output of a stream: parts put together in one file, or a folder of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._typing import Array
from heatsketch.distributed.run import Run
from heatsketch.io import anndata_files, parquet
from heatsketch.io.files import check_target, need, suffix_of, write_atomically
from heatsketch.io.formats import check_key
from heatsketch.io.metadata import encoded
from heatsketch.io.table import Names, Table

SUFFIXES = (".npy", ".parquet", ".h5ad", "")  # the last of a folder


def check_output(
    output: Path, source: Path | None, key: str, missing: str, *, force: bool, is_own: bool
) -> str:
    """Return the suffix of the parts of an output, or raise if it could not be written.

    `is_own` says that it was written by the run that goes on.
    """
    suffix = suffix_of(output)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{output} cannot be written by blocks; name a .npy or .parquet file, or a folder "
            "(without a suffix)."
        )
    if not suffix and output.exists() and not is_own:
        raise FileExistsError(f"{output} exists; name a folder that does not exist yet.")
    if not is_own:
        check_target(output, force=force, source=source or "")
    if suffix == ".parquet":
        need("pyarrow", output)
        return suffix
    if suffix == ".h5ad":
        if source is None or suffix_of(source) != ".h5ad":
            raise ValueError(
                f"{output} cannot be written by blocks of {source or 'an array'}, since it would "
                "hold all points; only a .h5ad source becomes one. Name a .npy or .parquet file."
            )
        if missing == "drop":
            raise ValueError(
                f"missing='drop' leaves out rows, but {output} is a copy of {source} with all of "
                "them; pass missing='median' (--missing median), or name a .npy or .parquet file."
            )
        check_key(output, source, key, force=force or is_own)
    return ".npy"


def writer_of(suffix: str, Y: Array, names: Names, table: Table) -> Callable[[Path], None]:
    """Return what writes a part, in .parquet with the ids and labels."""

    def write(draft: Path) -> None:
        if suffix == ".parquet":
            parquet.write(draft, Y, names, table, "", "")
        else:
            np.save(draft, Y, allow_pickle=False)

    return write


def assemble(
    run: Run, output: Path, source: Path | None, key: str, metadata: dict[str, Any]
) -> None:
    """Put the parts together in the folder of the run, and then in the place of the output.

    One part at a time is held; for a .h5ad output they are first put together in a .npy file.
    """
    suffix = suffix_of(output)
    whole = run.folder / f"whole{suffix}" if suffix else run.parts
    if "whole" not in run.facts:
        parts = sorted(run.parts.glob(f"part-*{run.suffix}"))
        if suffix == ".parquet":
            held = [part for part in parts if parquet.n_rows(part)]
            write_atomically(
                whole, lambda draft: parquet.write_parts(draft, held, encoded(metadata)), force=True
            )
        elif suffix:
            _write_npy(whole.with_suffix(".npy"), parts)
        if suffix == ".h5ad" and source is not None:
            Y = np.asarray(np.load(whole.with_suffix(".npy"), mmap_mode="r"))  # not read yet
            write_atomically(
                whole,
                lambda draft: anndata_files.write_copy(draft, Y, source, key, encoded(metadata)),
                force=True,
            )
        run.update(whole=True)
    if whole.exists():
        whole.replace(output)


def _write_npy(path: Path, parts: list[Path]) -> None:
    """Write .npy files, one after the other, as one."""
    blocks = [np.load(part, mmap_mode="r") for part in parts]
    shape = sum(len(block) for block in blocks), blocks[0].shape[1]
    header = {"descr": np.lib.format.dtype_to_descr(blocks[0].dtype), "fortran_order": False}

    def write(draft: Path) -> None:
        with draft.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, header | {"shape": shape})
            for part in parts:
                stream.write(np.load(part).data)

    write_atomically(path, write, force=True)
