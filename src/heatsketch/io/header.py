"""The test whether the first row of a table holds the names of its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from heatsketch.io.columns import kind_of, number_of
from heatsketch.io.table import Names, is_id, is_label

Rows = list[list[str]]

_NAMES = ("name", "names", "sample", "samples", "country", "city", "species", "gene", "subject")
_FEWEST_ROWS = 5  # below the first, to compare it with
_MANY = 8  # numbers in even steps, too many for chance


def column_names(header: list[str], rows: Rows) -> Names:
    """Return names for all columns; rows one cell longer begin with a row name, as R writes."""
    if rows and all(len(cells) == len(header) + 1 for cells in rows):
        ends_empty = all(cells[-1] == "" for cells in rows)
        header = [*header, ""] if ends_empty else ["", *header]
    return tuple(name or (f"column {j + 1}" if j else "") for j, name in enumerate(header))


def is_header(rows: Rows, decimal: str, path: Path, *, untitled: bool = True) -> bool:
    """Return whether the first row holds names: no numbers, or numbers that look like names.

    Numbers are a header with two pieces of evidence and data with none. One raises an error, unless
    the table has titles elsewhere (not `untitled`).

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
    is_text = [kind not in ("number", "missing") for kind in kinds]
    numbers = [j for j, kind in enumerate(kinds) if kind == "number"]
    texts = [j for j, cell in enumerate(first) if is_text[j] and re.search(r"\w", cell)]
    if not numbers:
        return True
    below = [[cells[j] for cells in rest if len(cells) > j] for j in range(len(first))]
    filled = [first[j] for j in numbers + texts]
    if len(set(filled)) < len(filled) or any(_is_alike(first[j], below[j]) for j in texts):
        return False
    words = [first[j].lower() for j in texts]
    if any(is_id(word) or is_label(word) or word in _NAMES for word in words):
        return True
    corner = below[0] if not first[0] and all(below[0]) else []
    if corner and corner[0].isdigit():  # an empty cell above row numbers
        if corner == [str(int(corner[0]) + j) for j in range(len(corner))]:
            return True
    elif corner and all(kind_of(cell, decimal) != "number" for cell in corner):
        return True
    evidence = int(any(_stands_out(first[j], below[j], decimal) for j in texts))
    columns = [[cell for cell in below[j] if kind_of(cell, decimal) == "number"] for j in numbers]
    if min(map(len, columns)) >= 2:
        evidence += _of_numbers([first[j] for j in numbers], columns)
    if len(rest) < _FEWEST_ROWS:
        evidence = min(evidence, 1)
    if evidence == 1 and untitled:
        raise question(first, "data", path)
    return evidence >= 2


def question(first: list[str], other: str, path: Path) -> ValueError:
    """Return the error that asks whether a first row is a header or something else."""
    shown = ", ".join(first[:6]) + (", …" if len(first) > 6 else "")
    do = "pass header=True (--read header=yes) or header=False (--read header=no)"
    return ValueError(f"the first row of {path} ({shown}) may be a header or {other}; {do}.")


def _is_alike(cell: str, column: list[str]) -> bool:
    """Return whether a text occurs below, or has digits and the form of a cell below (p0, p1)."""
    return cell in column or (bool(re.search(r"\d", cell)) and _form(cell) in map(_form, column))


def _form(cell: str) -> str:
    """Return a cell with 9 for all digits in a row, A for capitals, a for small letters."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_A-Z]+", "a", re.sub(r"[A-Z]+", "A", cell)))


def _stands_out(cell: str, column: list[str], decimal: str) -> bool:
    """Return whether a text beside numbers is above numbers, categories or another form of cell."""
    if {kind_of(c, decimal) for c in column if c} == {"number"}:
        return True
    if len(column) >= 10 and 2 * len(set(column)) <= len(column):
        return True
    return len(column) >= _FEWEST_ROWS and _form(cell) not in map(_form, column)


def _of_numbers(cells: list[str], columns: Rows) -> int:
    """Count the evidence in numbers: even steps, fewer digits, another scale than below them."""
    values, below = [*map(number_of, cells)], [[*map(number_of, column)] for column in columns]
    is_even = _step(values) not in {None, *map(_step, zip(*below, strict=False))}
    is_shorter = all(map(_has_fewer_digits, cells, columns))
    is_far = all(map(_is_far, values, below))
    return is_even * (1 + (len(values) >= _MANY)) + is_shorter + is_far


def _step(values: Sequence[float]) -> float | None:
    """Return the step between three or more evenly spaced numbers, None if it is uneven or 0."""
    steps = {round(b - a, 9) for a, b in pairwise(values)}
    return steps.pop() or None if len(values) > 2 and len(steps) == 1 else None


def _has_fewer_digits(cell: str, column: list[str]) -> bool:
    """Return whether a number has fewer digits after the point than nearly all below it."""
    digits = [len(re.split("[eE]", re.sub("^[^.,]*[.,]?", "", c))[0]) for c in (cell, *column)]
    return sum(d > digits[0] for d in digits) >= 0.95 * len(column)


def _is_far(value: float, column: list[float]) -> bool:
    """Return whether a number has another scale than a column: beyond three times its range."""
    low, high = min(column), max(column)
    return not low - 3 * (high - low) <= value <= high + 3 * (high - low)
