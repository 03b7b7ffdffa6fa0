"""Sources that are read by blocks of rows: files, folders of parts, arrays."""

import re
from pathlib import Path
from typing import Any

from heatsketch.io import h5ad, npy, parquet, zarr
from heatsketch.io.blocks import Blocks, of_array, of_parts
from heatsketch.io.formats import suffix_of
from heatsketch.io.reading import Reading

BLOCK_FORMATS: dict[str, Any] = {".npy": npy, ".parquet": parquet, ".h5ad": h5ad, ".zarr": zarr}
PART_SUFFIXES = (".npy", ".parquet")
TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


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
        raise ValueError(f"{path} is not read by blocks; {conversion(path)}")
    how.refuse_text_options(path)
    found: Blocks = BLOCK_FORMATS[suffix].blocks(path, how)
    return found


def conversion(path: Path) -> str:
    """Say how a file becomes one that is read by blocks."""
    suffix = suffix_of(path)
    if not suffix.startswith(TEXT_SUFFIXES):
        kinds = ", ".join(BLOCK_FORMATS)
        return f"pass {kinds}, or a folder of parts ({', '.join(PART_SUFFIXES)})."
    tabs = ", parse_options=csv.ParseOptions(delimiter='\\t')" if suffix.startswith(".tsv") else ""
    return (
        'write it as .parquet, which needs little memory: python -c "from pyarrow import csv, '
        f"parquet; text = csv.open_csv('{path}'{tabs}); "
        f"file = parquet.ParquetWriter('{path.name.partition('.')[0]}.parquet', text.schema); "
        '[file.write_batch(rows) for rows in text]; file.close()"'
    )


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
