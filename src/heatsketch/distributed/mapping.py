"""Blocks of a source mapped by a fitted model, one run of them after the other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._progress import Stage
from heatsketch._typing import Array
from heatsketch.distributed.output import writer_of
from heatsketch.distributed.state import State
from heatsketch.io.blocks import Blocks
from heatsketch.io.models import read_model
from heatsketch.io.reading import Reading
from heatsketch.io.refine import Learned, refined
from heatsketch.io.table import Table


class Mapped(NamedTuple):
    """What is told of a block that is kept: no coordinates."""

    rows: int
    warnings: tuple[tuple[type[Warning], str], ...] = ()


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
        count = math.ceil(self.points.n / self.block_rows)
        return [i for i in range(count) if not self.state.part(i).exists()]

    def keep(self, start: int, stop: int) -> Iterator[Mapped]:
        """Map the blocks from number `start` up to `stop`, read in one pass, and keep each."""
        tables = self.points.tables(self.block_rows, start * self.block_rows)
        for number, raw in zip(range(start, stop), tables, strict=False):
            yield self.keep_block(number, raw)

    def keep_block(self, number: int, raw: Table) -> Mapped:
        """Map a block as it was read, and keep it, if it is not kept yet."""
        told = Mapped(raw.values.shape[0])
        if self.state.part(number).exists():
            return told
        start = number * self.block_rows
        try:
            table = refined(raw, self.how, self.learned)
            Y, caught = _transformed(self.model, table, start)
            names = tuple(str(name) for name in self.model.get_feature_names_out())
            self.state.keep_part(number, writer_of(self.state.suffix, Y, names, table))
        except Exception as error:
            error.add_note(
                f"(in block {number}: {told.rows:,} rows of {raw.source} from {start:,} on)"
            )
            raise
        return told._replace(warnings=caught)


def _transformed(
    model: Any, table: Table, start: int
) -> tuple[Array, tuple[tuple[type[Warning], str], ...]]:
    """Map a block; what it warns of says from which row on it counts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Y = np.asarray(model.transform(table.values))
    said = ((each.category, f"from row {start:,} on: {each.message}") for each in caught)
    return Y, tuple(said)


def here(mapping: Mapping) -> None:
    """Map the blocks that are missing, one after the other in this process."""
    missing = mapping.missing()
    done = (mapped for run in runs(missing, len(missing)) for mapped in mapping.keep(*run))
    follow(done, missing, mapping)


def runs(numbers: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Cut increasing numbers into runs (start, stop) without gaps, of at most so many."""
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or i - start == most or numbers[i] != numbers[i - 1] + 1:
            yield numbers[start], numbers[i - 1] + 1
            start = i


def follow(done: Iterable[Mapped], missing: list[int], mapping: Mapping) -> None:
    """Report how far the mapping is, and warn of what each block warns of."""
    n, size = mapping.points.n, mapping.block_rows
    total = sum(min(n, (i + 1) * size) - i * size for i in missing)
    with Stage("mapping", total, "points") as progress:
        for mapped in done:
            for category, text in mapped.warnings:
                warnings.warn(text, category, stacklevel=5)
            progress.advance(mapped.rows)


def stored(state: State) -> tuple[Any, Learned]:
    """Return the model that a run has kept, and what was learned of the columns."""
    kept = read_model(state.model)
    known = kept.reading
    return kept.model, Learned(tuple(known["columns"]), None, known["mean"], known["scale"])
