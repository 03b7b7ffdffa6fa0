""".xlsx files: one sheet, by openpyxl; they are read, not written."""

import zipfile
from pathlib import Path
from typing import Any

from heatsketch.io.arrow import extra_column, features
from heatsketch.io.files import DAMAGE, blame, check_budget, need
from heatsketch.io.layout import column_names, is_header
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, choose_label, require

KEEPS_METADATA = True  # none are written


def read(path: Path, how: Reading) -> Table:
    """Read the numeric columns of a sheet as features and keep the others."""
    rows, empty = _rows(path, how.key)
    if not rows:
        raise ValueError(f"{path} is empty; pass a table with at least one row.")
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    header = is_header(texts, ".", path) if how.header is None else how.header
    width = len(rows[0])
    names = column_names(texts[0], texts[1:]) if header else tuple(f"x{j}" for j in range(width))
    rows = rows[header:]
    table = _arrow_table(names, rows, path)

    def place(row: int) -> str:
        return f"row {row} (line {row + 1 + header + empty} of the sheet)"

    values, chosen, notes = features(table, how, path, place)
    used = set(chosen)
    others = [name for name in names if name not in used]
    extra = {name: extra_column(table[name], f"{name} in {path}") for name in others}
    label = choose_label(extra, how.ids + how.exclude)
    return Table(values, chosen, extra, label, str(path), notes=notes)


def _rows(path: Path, key: str | None) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of a sheet without empty edges, and the number of empty rows above."""
    openpyxl = need("openpyxl", path)
    with blame(path, *DAMAGE, AttributeError, IndexError, SyntaxError, ValueError):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            check_budget(size, path.stat().st_size, str(path))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        names = [sheet.title for sheet in book.worksheets]
        if key is not None:
            require([key], names, path, "sheet")
        found = list(book[key or names[0]].iter_rows(values_only=True))
        book.close()
    filled = [j for j, row in enumerate(found) if any(cell is not None for cell in row)]
    if not filled:
        return [], 0
    found = found[filled[0] : filled[-1] + 1]
    width = max(j + 1 for row in found for j, cell in enumerate(row) if cell is not None)
    return [(*row, *[None] * width)[:width] for row in found], filled[0]


def _arrow_table(names: tuple[str, ...], rows: list[tuple[Any, ...]], path: Path) -> Any:
    pa = need("pyarrow", path)
    columns = []
    for j in range(len(names)):
        items = [row[j] for row in rows]
        if not all(item is None or isinstance(item, int | float) for item in items):
            items = [None if item is None else str(item) for item in items]
        try:
            columns.append(pa.array(items))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # truth values among numbers
            columns.append(pa.array([None if item is None else str(item) for item in items]))
    return pa.Table.from_arrays(columns, names=list(names))
