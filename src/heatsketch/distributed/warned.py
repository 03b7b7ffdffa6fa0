"""Rows that are told of once in a run, though they are in many blocks."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch import _checks
from heatsketch._checks import said_of_rows
from heatsketch._typing import Array

_NAMED = 5  # rows


@dataclass(frozen=True)
class Rows:
    """The number of some rows of a source, and the first of them."""

    count: int = 0
    first: tuple[int, ...] = ()

    def and_of(self, rows: Iterable[int] | Array, count: int | None = None) -> Rows:
        """Return these, and later ones, or the first of `count` later ones."""
        rows = [int(row) for row in rows]
        first = self.first + tuple(rows[: _NAMED - len(self.first)])
        return Rows(self.count + (len(rows) if count is None else count), first)


def told(caught: Iterable[Any], numbers: Array) -> list[dict[str, Any]]:
    """Return the warnings about a block, whose rows have these numbers, as JSON."""
    found = []
    for warning in caught:
        about = getattr(warning.message, "about", None)
        rows, matter = about if about is not None else (np.empty(0, int), str(warning.message))
        first = [int(numbers[row]) for row in rows[:_NAMED]]
        kind = warning.category.__name__
        found.append({"kind": kind, "matter": matter, "count": len(rows), "first": first})
    return found


def tell(found: Iterable[dict[str, Any]], stacklevel: int) -> None:
    """Warn once of each matter, with the number of all rows and the first of them.

    `found` is what `told` returns of all blocks, in their order.
    """
    matters: dict[tuple[str, str], Rows] = {}
    for one in found:
        known = matters.get((one["kind"], one["matter"]), Rows())
        matters[one["kind"], one["matter"]] = known.and_of(one["first"], one["count"])
    for (kind, matter), rows in matters.items():
        category = getattr(_checks, kind, getattr(builtins, kind, UserWarning))
        text = said_of_rows(rows.first, matter, rows.count) if rows.count else matter
        warnings.warn(text, category, stacklevel=stacklevel + 1)
