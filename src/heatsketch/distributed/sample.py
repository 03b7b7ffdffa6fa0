"""The rows that are fitted, and how much it matters that it was these."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from heatsketch._typing import Array
from heatsketch.distributed.warned import Rows
from heatsketch.estimators._sample import HELD_OUT as HELD_OUT
from heatsketch.estimators._sample import Sample as Sample
from heatsketch.io.blocks import Blocks, joined
from heatsketch.io.reading import Reading
from heatsketch.io.refine import Learned, note_of_gaps, refined, rows_with_gaps
from heatsketch.io.table import Names, Table

_LEAST_HELD_OUT = 20


@dataclass(frozen=True, eq=False)
class Gathered:
    """A sample as it was read, by which all other rows are read."""

    table: Table  # (N, d), refined; what it `learned` is of these rows alone
    half: Array  # (N,) which of them are in the first of two halves
    held_out: Table  # (m, d)
    notes: Names  # what reading changes in the source


def gather(points: Blocks, how: Reading, sample: Sample, block_rows: int) -> Gathered:
    """Read a sample in one pass that looks at every number.

    With `missing="drop"` rows with gaps are left out of it.

    Raises
    ------
    ValueError
        For infinity, and for gaps that `how` does not mend, with the number of the row in the
        source.
    """
    whole = replace(how, standardize=False)
    found: tuple[list[Table], list[Table]] = ([], [])
    start, gaps = 0, Rows()
    for raw in points.tables(block_rows):
        table = refined(replace(raw, extra={}), replace(whole, missing="keep"))
        zeros = Learned(table.columns, medians=np.zeros(len(table.columns)))
        refined(table, whole, zeros, first_row=start)  # raises for what cannot be mended
        if how.fills_gaps:
            gaps = gaps.and_of(start + np.flatnonzero(rows_with_gaps(table.values)))
        stop = start + table.values.shape[0]
        for tables, rows in zip(found, (sample.rows, sample.held_out), strict=True):
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
            if len(own) or not tables:
                tables.append(replace(table, values=table.values[own]))
        start = stop
    drawn, held_out = (joined(tables) for tables in found)
    half = sample.half
    if how.missing == "drop":
        half = half[~rows_with_gaps(drawn.values)]
    table = refined(drawn, how)
    held_out = refined(held_out, how, table.learned, first_row=0)
    return Gathered(table, half, held_out, tuple(_notes(how, gaps, points.n)))


def _notes(how: Reading, gaps: Rows, n: int) -> Iterator[str]:
    """Say what reading changes; what is learned of columns is learned of the sample."""
    if gaps.count:
        note = note_of_gaps(how.missing, np.array(gaps.first), n, gaps.count)
        yield note.replace("with medians", "with medians of the sample")
    if how.standardize:
        yield "columns standardised by the sample"


def half_discrepancy(estimator: Any, values: Any, half: Array, held_out: Any) -> float | None:
    """Fit each half of a sample by itself; say how much distances of other points then differ.

    Of points x, y outside of both, with distances D and E in the two embeddings:
    √(Σ (D - E)² / Σ (D² + E²)/2) over all pairs, from 0 to √2. None if there are too few other
    points. A time that the first half chooses is that of the second.
    """
    if held_out.shape[0] < _LEAST_HELD_OUT:
        return None
    model, distances = clone(estimator), []
    for rows in (np.flatnonzero(half), np.flatnonzero(~half)):
        with warnings.catch_warnings():  # those of the whole sample are enough
            warnings.simplefilter("ignore")
            model.fit(values[rows])
            distances.append(pdist(np.asarray(model.transform(held_out), dtype=float)))
        chosen = getattr(model, "time_", None)
        model = clone(model) if chosen is None else clone(model).set_params(time=chosen)
    D, E = distances
    size = float(np.sum(D**2 + E**2)) / 2
    return math.sqrt(float(np.sum((D - E) ** 2)) / size) if size > 0 else 0.0
