"""Whether the first row of a table holds the names of its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

from heatsketch.io.columns import kind_of, number_of
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
    counted = first[first[0] == "" :]  # the index of a pandas frame has no name
    if counted == [str(j) for j in range(len(counted))] and (len(counted) > 2 or counted != first):
        return True
    if rest and all(len(cells) == len(first) + 1 for cells in rest):
        return True  # as R writes names of rows
    kinds = [kind_of(cell, decimal) for cell in first]
    numbers = [j for j, kind in enumerate(kinds) if kind == "number"]
    texts = [
        j
        for j, kind in enumerate(kinds)
        if kind not in ("number", "missing") and re.search(r"\w", first[j])
    ]
    if not numbers:
        return True
    below = [[cells[j] for cells in rest if len(cells) > j] for j in range(len(first))]
    filled = [first[j] for j in numbers + texts]
    if len(set(filled)) < len(filled) or any(_is_alike(first[j], below[j]) for j in texts):
        return False
    values = [number_of(first[j]) for j in numbers]
    columns = [[cell for cell in below[j] if kind_of(cell, decimal) == "number"] for j in numbers]
    of_texts = 2 * _names_rows(first[0], below[0], decimal) or max(
        (_of_text(first[j], below[j], values, decimal) for j in texts), default=0
    )
    of_numbers = _of_numbers([first[j] for j in numbers], values, columns)
    if texts and (all(map(float.is_integer, values)) or len(values) > 2):
        of_numbers += _is_sorted(values)
    few = len(rest) < _FEWEST_ROWS
    evidence = max(of_texts, min(of_numbers, 1)) if few else of_texts + of_numbers
    if evidence == 1 and untitled:
        shown = ", ".join(first[:6]) + (", …" if len(first) > 6 else "")
        do = "pass header=True (--read header=yes) or header=False (--read header=no)"
        raise ValueError(f"the first row of {path} ({shown}) may be a header or data; {do}.")
    return evidence >= 2


def _is_alike(cell: str, column: list[str]) -> bool:
    """Say whether a text is also below, or has digits, as p0, and the form of one below, as p1."""
    return cell in column or (bool(re.search(r"\d", cell)) and _form(cell) in map(_form, column))


def _form(cell: str) -> str:
    """Return a cell with 9 for all digits in a row, A for capitals, a for small letters."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_A-Z]+", "a", re.sub(r"[A-Z]+", "A", cell)))


def _names_rows(corner: str, column: list[str], decimal: str) -> bool:
    """Say whether an empty corner is above cells that all are text, or that count the rows."""
    if corner or not column or not all(column):
        return False
    if column[0].isdigit():
        return column == [str(int(column[0]) + j) for j in range(len(column))]
    return all(kind_of(cell, decimal) != "number" for cell in column)


def _of_text(cell: str, column: list[str], values: list[float], decimal: str) -> int:
    """Return the evidence in a text beside numbers: a known word, or another kind than below."""
    if is_id(cell) or is_label(cell) or cell.lower() in _NAMES:
        return 2
    kinds = {kind_of(c, decimal) for c in column if c}
    if kinds == {"number"} or (len(column) >= 10 and 2 * len(set(column)) <= len(column)):
        return 1 + (all(map(float.is_integer, values)) and _increases(values))
    return int(len(column) >= _FEWEST_ROWS and _form(cell) not in map(_form, column))


def _of_numbers(cells: list[str], values: list[float], columns: Rows) -> int:
    """Return the evidence in numbers: even steps, fewer digits, another scale than below them."""
    if min(map(len, columns)) < 2:
        return 0
    numbers = [list(map(number_of, column)) for column in columns]
    rows = list(zip(*numbers, strict=False))
    found = 0
    if len(values) > 2 and _is_even(values) and not any(map(_is_even, rows)):
        found = 1 + (prod(len(set(column)) for column in numbers[2:]) >= _LEAST_CHOICE)
    elif len(values) > 4 and _is_sorted(values) and not any(map(_is_sorted, rows)):
        found = 1
    found += all(map(_has_fewer_digits, cells, columns))
    return found + all(map(_is_far, values, numbers))


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
    digits = [len(re.split("[eE]", re.sub("^[^.,]*[.,]?", "", c))[0]) for c in (cell, *column)]
    return sum(d > digits[0] for d in digits) >= 0.95 * len(column)


def _is_far(value: float, column: list[float]) -> bool:
    """Say whether a number has another scale than a column: beyond three times its range."""
    low, high = min(column), max(column)
    return not low - 3 * (high - low) <= value <= high + 3 * (high - low)
