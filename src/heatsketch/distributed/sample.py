"""The rows that are fitted, and how much it matters that it was these."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
_GROUPS, _LEAST_COLUMNS = 32, 8  # of random columns: left out together, and fewer tell nothing


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


class Halves(NamedTuple):
    """How much distances differ between fits of two halves of a sample."""

    whole: float  # √(Σ (D - E)² / Σ (D² + E²)/2) over pairs, from 0 to √2
    of_points: tuple[float, float] | None  # what is not due to random columns: an interval of 95 %


def half_discrepancy(estimator: Any, values: Any, half: Array, held_out: Any) -> Halves | None:
    """Fit each half of a sample by itself; say how much distances of other points then differ.

    Of points x, y outside of both, with distances D and E in the two embeddings. None if there are
    too few other points. A time that the first half chooses is that of the second.
    """
    if held_out.shape[0] < _LEAST_HELD_OUT:
        return None
    model, maps = clone(estimator), []
    for rows in (np.flatnonzero(half), np.flatnonzero(~half)):
        with warnings.catch_warnings():  # those of the whole sample are enough
            warnings.simplefilter("ignore")
            model.fit(values[rows])
            maps.append(np.asarray(model.transform(held_out), dtype=float))
        columns = _random_columns(model, maps[-1].shape[1])
        chosen = getattr(model, "time_", None)
        model = clone(model) if chosen is None else clone(model).set_params(time=chosen)
    Y, Z = maps
    whole = math.sqrt(_difference(_squares(Y), _squares(Z)))
    few = columns is None or len(np.unique(columns)) < _LEAST_COLUMNS
    return Halves(whole, None if columns is None or few else _of_points(Y, Z, columns))


def _random_columns(model: Any, width: int) -> Array | None:
    """Return for each coordinate the random column it is of (width,); None if there are none."""
    if getattr(model, "_method", None) != "heat-sketch":
        return None
    return np.arange(width) % (width // np.size(model.time))  # times are side by side


def _of_points(Y: Array, Z: Array, columns: Array) -> tuple[float, float]:
    """Return the discrepancy without random columns, two standard errors to both sides."""
    square, error = _without_columns(Y, Z, columns)
    low, high = (math.sqrt(max(0.0, square + side * 2 * error)) for side in (-1, 1))
    return low, high


def _without_columns(Y: Array, Z: Array, columns: Array) -> tuple[float, float]:
    """Return the squared discrepancy that random columns without end would leave, and its error.

    That of k columns is larger by b/k, to first order (b = 1 for one time and Gaussian columns).
    The jackknife, which leaves out some columns at a time, takes b/k away whatever b is.
    """
    D, E = _squares(Y), _squares(Z)
    count = min(_GROUPS, int(columns.max()) + 1)
    without = []
    for group in range(count):
        own = columns % count == group
        without.append(_difference(D - _squares(Y[:, own]), E - _squares(Z[:, own])))
    pseudo = count * _difference(D, E) - (count - 1) * np.array(without)
    return float(pseudo.mean()), float(pseudo.std(ddof=1)) / math.sqrt(count)


def _squares(Y: Array) -> Array:
    return pdist(Y, "sqeuclidean")


def _difference(D: Array, E: Array) -> float:
    """Return the squared discrepancy of two vectors of squared distances."""
    D, E = np.maximum(D, 0), np.maximum(E, 0)  # what is left of a difference may be rounding
    size = float(D.sum() + E.sum()) / 2
    return float(np.sum((np.sqrt(D) - np.sqrt(E)) ** 2)) / size if size > 0 else 0.0
