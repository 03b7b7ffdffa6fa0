"""Sources that are read by blocks of rows: files, folders of parts, arrays."""

import re
from pathlib import Path
from typing import Any

from heatsketch.io import anndata_files, numpy_files, parquet, text
from heatsketch.io.blocks import Blocks, of_array, of_parts
from heatsketch.io.files import suffix_of
from heatsketch.io.reading import Reading

BLOCK_FORMATS: dict[str, Any] = {
    ".npy": numpy_files,
    ".parquet": parquet,
    ".h5ad": anndata_files,
    ".zarr": anndata_files,
    **dict.fromkeys(text.SUFFIXES, text),
}
PART_SUFFIXES = (".npy", ".parquet", ".csv")


def open_blocks(source: Any, how: Reading) -> Blocks:
    """Return the points of a file, a folder of parts or an array by blocks.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is of a format that is read whole; what `read_table` raises.
    """
    if not isinstance(source, str | Path):
        return of_array(source)
    path = Path(source)
    parts = parts_of(path)
    if parts:
        return of_parts([open_blocks(part, how) for part in parts], path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; name a file, or a folder of parts.")
    suffix = suffix_of(path)
    if suffix not in BLOCK_FORMATS:
        raise ValueError(
            f"{path} is not read by blocks; pass {', '.join(BLOCK_FORMATS)}, or a folder of parts "
            f"({', '.join(PART_SUFFIXES)})."
        )
    if suffix not in text.SUFFIXES:
        how.refuse_text_options(path)
    found: Blocks = BLOCK_FORMATS[suffix].blocks(path, how)
    return found


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in a folder of points, in the order of their names and numbers."""
    if not folder.is_dir() or suffix_of(folder) in BLOCK_FORMATS:
        return []
    for suffix in PART_SUFFIXES:
        parts = [file for file in folder.iterdir() if suffix_of(file) == suffix]
        if parts:
            return sorted(parts, key=_number_after_number)
    return []


def _number_after_number(path: Path) -> list[tuple[int, str]]:
    """Return a key by which part-10 comes after part-2."""
    return [
        (int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", path.name)
    ]
