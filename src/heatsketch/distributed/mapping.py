"""Blocks of a source mapped by a fitted model, one run of them after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heatsketch._progress import Stage
from heatsketch._typing import Array
from heatsketch.distributed.caught import caught_warnings
from heatsketch.distributed.output import writer_of
from heatsketch.distributed.state import State
from heatsketch.distributed.warned import tell, told
from heatsketch.io.blocks import Blocks
from heatsketch.io.models import read_model
from heatsketch.io.reading import Reading
from heatsketch.io.refine import Learned, refined
from heatsketch.io.table import Table


@dataclass(frozen=True, eq=False)
class Mapping:
    """A source and its model, open in this process."""

    points: Blocks
    model: Any
    learned: Learned
    how: Reading
    state: State
    block_rows: int

    def missing(self) -> list[int]:
        """Return the numbers of the blocks that are not kept yet."""
        return self.state.missing(math.ceil(self.points.n / self.block_rows))

    def keep(self, start: int, stop: int) -> Iterator[int]:
        """Keep the blocks from number `start` up to `stop`, read in one pass; yield their rows."""
        tables = self.points.tables(self.block_rows, start * self.block_rows)
        for number, raw in zip(range(start, stop), tables, strict=False):
            yield self.keep_block(number, raw)

    def keep_block(self, number: int, raw: Table) -> int:
        """Map a block as it was read and keep it, if it is not kept yet; return its rows."""
        count: int = raw.values.shape[0]
        if self.state.part(number).exists():
            return count
        rows = np.arange(count) + number * self.block_rows
        try:
            table, rows = _refined(raw, self.how, self.learned, rows)
            names = tuple(str(name) for name in self.model.get_feature_names_out())
            Y, caught = _transformed(self.model, table, len(names))
            self.state.keep_warned(number, told(caught, rows))
            self.state.keep_part(number, writer_of(self.state.suffix, Y, names, table))
        except Exception as error:
            start = number * self.block_rows
            error.add_note(f"(in block {number}: {count:,} rows of {raw.source} from {start:,} on)")
            raise
        return count


def _refined(raw: Table, how: Reading, learned: Learned, rows: Array) -> tuple[Table, Array]:
    """Return a block like the sample, and the numbers of its rows, which it has if some are lost.

    A column of that name keeps it.
    """
    name = "row" if "row" not in raw.extra else "row_in_source"
    table = refined(
        replace(raw, extra={name: rows} | raw.extra), how, learned, first_row=int(rows[0])
    )
    if how.missing == "drop":
        return table, table.extra[name]
    return replace(table, extra=raw.extra), rows


def _transformed(model: Any, table: Table, width: int) -> tuple[Array, list[Any]]:
    """Map a block to rows of some width; return what was warned of, too."""
    if not table.values.shape[0]:  # all had gaps
        return np.empty((0, width), table.values.dtype), []
    with caught_warnings() as caught:
        Y = np.asarray(model.transform(table.values))
    return Y, caught


def here(mapping: Mapping) -> None:
    """Map the blocks that are missing, one after the other in this process."""
    missing = mapping.missing()
    done = (count for run in runs(missing, len(missing)) for count in mapping.keep(*run))
    follow(done, missing, mapping)


def runs(numbers: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Cut increasing numbers into runs (start, stop) without gaps, of at most so many."""
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or i - start == most or numbers[i] != numbers[i - 1] + 1:
            yield numbers[start], numbers[i - 1] + 1
            start = i


def follow(done: Iterable[int], missing: list[int], mapping: Mapping) -> None:
    """Report how far the mapping is, and at its end what the blocks of the run warn of."""
    n, size = mapping.points.n, mapping.block_rows
    total = sum(min(n, (i + 1) * size) - i * size for i in missing)
    with Stage("mapping", total, "points") as progress:
        for count in done:
            progress.advance(count)
    tell(mapping.state.warned, stacklevel=5)


def stored(state: State) -> tuple[Any, Learned]:
    """Return the model that a run has kept, and what was learned of the columns."""
    kept = read_model(state.model)
    known = kept.reading
    return kept.model, Learned(
        tuple(known["columns"]), known["medians"], known["mean"], known["scale"]
    )
