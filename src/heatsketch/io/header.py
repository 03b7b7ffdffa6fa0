"""Whether the first row of a table holds the names of its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

from heatsketch.io.columns import is_missing, is_number
from heatsketch.io.table import Names, is_id, is_label

Rows = list[list[str]]

_NAMES = ("name", "names", "sample", "samples", "country", "city", "species", "gene", "subject")
_FEWEST_ROWS = 5  # below the first, by which it is judged
_LEAST_CHOICE = 8000  # ways in which steps could be uneven


def column_names(header: list[str], rows: Rows) -> Names:
    """Return names for all columns; rows that are one cell longer begin with a name, as R's do."""
    if rows and all(len(cells) == len(header) + 1 for cells in rows):
        ends_empty = all(cells[-1] == "" for cells in rows)
        header = [*header, ""] if ends_empty else ["", *header]
    return tuple(name or (f"column {j + 1}" if j else "") for j, name in enumerate(header))


def is_header(rows: Rows, decimal: str, path: Path, *, untitled: bool = True) -> bool:
    """Say whether the first row holds names: if it has no number, or numbers that look like names.

    Two pieces of evidence make a header of numbers, one makes a question, unless the table has
    titles elsewhere (not `untitled`), and none makes data.

    Raises
    ------
    ValueError
        If the first row may be either.
    """
    first, rest = rows[0], rows[1:]
    numbered = first[1:] if first[0] == "" else first  # the index of a pandas frame has no name
    if numbered == [str(j) for j in range(len(numbered))] and (len(numbered) > 2 or first[0] == ""):
        return True
    if rest and all(len(cells) == len(first) + 1 for cells in rest):
        return True  # as R writes names of rows
    filled = {j: cell for j, cell in enumerate(first) if re.search(r"\w", cell)}
    filled = {j: cell for j, cell in filled.items() if not is_missing(cell)}
    numbers = {j: cell for j, cell in filled.items() if is_number(cell, decimal)}
    texts = {j: cell for j, cell in filled.items() if j not in numbers}
    if not numbers:
        return True
    below = [[cells[j] for cells in rest if len(cells) > j] for j in range(len(first))]
    repeats = len(set(filled.values())) < len(filled)
    if repeats or any(cell in below[j] or _is_alike(cell, below[j]) for j, cell in texts.items()):
        return False
    values = [_value(cell, decimal) for cell in numbers.values()]
    of_texts = _of_texts(first, texts, values, below, decimal)
    of_numbers = _of_numbers(numbers, values, below, decimal)
    if texts and (_is_whole(values) or len(values) > 2):
        of_numbers += _is_sorted(values)
    few = len(rest) < _FEWEST_ROWS
    evidence = max(of_texts, min(of_numbers, 1)) if few else of_texts + of_numbers
    if evidence >= 2 or evidence == 0 or not untitled:
        return evidence >= 2
    raise ValueError(
        f"the first row of {path} ({_shown(first)}) may be a header or data; pass header=True "
        "(--read header=yes) or header=False (--read header=no)."
    )


def _shown(cells: list[str]) -> str:
    return ", ".join(cells[:6]) + (", …" if len(cells) > 6 else "")


def _is_alike(cell: str, column: list[str]) -> bool:
    """Say whether a text with digits, like p0, has the form of another below, like p1."""
    return bool(re.search(r"\d", cell)) and _form(cell) in map(_form, column)


def _form(cell: str) -> str:
    """Return a cell with 9 for all digits in a row, A for capitals, a for small letters."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_A-Z]+", "a", re.sub(r"[A-Z]+", "A", cell)))


def _of_texts(
    first: list[str], texts: dict[int, str], values: list[float], below: Rows, decimal: str
) -> int:
    """Return the evidence in names beside numbers, and in an empty cell above row names."""
    if first[0] == "" and _are_row_names(below[0], decimal):
        return 2
    known = (is_id(cell) or is_label(cell) or cell.lower() in _NAMES for cell in texts.values())
    if any(known):
        return 2
    for j, cell in texts.items():
        column = below[j]
        above_numbers = any(column) and all(is_number(c, decimal) for c in column if c)
        above_groups = len(column) >= 10 and 2 * len(set(column)) <= len(column)
        if above_numbers or above_groups:
            return 1 + (_is_whole(values) and _increases(values))
        if len(column) >= _FEWEST_ROWS and _form(cell) not in map(_form, column):
            return 1
    return 0


def _are_row_names(column: list[str], decimal: str) -> bool:
    """Say whether no cell is empty, and all are text or count the rows."""
    if not column or not all(column):
        return False
    if column[0].isdigit():
        return column == [str(int(column[0]) + j) for j in range(len(column))]
    return not any(is_number(cell, decimal) for cell in column)


def _of_numbers(numbers: dict[int, str], values: list[float], below: Rows, decimal: str) -> int:
    """Return the evidence in numbers: even steps, fewer digits, another scale than below them."""
    cells = [[c for c in below[j] if is_number(c, decimal)] for j in numbers]
    if min(map(len, cells)) < 2:
        return 0
    columns = [[_value(c, decimal) for c in column] for column in cells]
    rows = list(zip(*columns, strict=False))
    found = 0
    if len(values) > 2 and _is_even(values) and not any(map(_is_even, rows)):
        by_chance = prod(len(set(column)) for column in columns[2:])
        found += 2 if by_chance >= _LEAST_CHOICE else 1
    elif len(values) > 4 and _is_sorted(values) and not any(map(_is_sorted, rows)):
        found += 1
    found += all(map(_has_fewer_digits, numbers.values(), cells))
    return found + all(map(_is_far, values, columns))


def _value(cell: str, decimal: str) -> float:
    return float(cell.replace(decimal, "."))


def _is_whole(values: list[float]) -> bool:
    return all(value.is_integer() for value in values)


def _increases(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _is_sorted(values: Sequence[float]) -> bool:
    return _increases(values) or _increases(values[::-1])


def _is_even(values: Sequence[float]) -> bool:
    """Say whether numbers go on by the same step, which is not 0."""
    step = values[1] - values[0]
    return step != 0 and all(abs(b - a - step) <= 1e-9 * abs(step) for a, b in pairwise(values))


def _has_fewer_digits(cell: str, column: list[str]) -> bool:
    """Say whether a number has fewer digits after the point than nearly all below it."""
    digits = _digits(cell)
    return sum(_digits(c) > digits for c in column) >= 0.95 * len(column)


def _digits(cell: str) -> int:
    return len(re.split("[eE]", re.sub("^[^.,]*[.,]?", "", cell))[0])


def _is_far(value: float, column: list[float]) -> bool:
    """Say whether a number has another scale than a column: beyond three times its range."""
    low, high = min(column), max(column)
    return not low - 3 * (high - low) <= value <= high + 3 * (high - low)
