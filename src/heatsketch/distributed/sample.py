"""The rows that are fitted, and the error that their choice makes."""

import math
import numbers
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from heatsketch import _memory
from heatsketch._exceptions import logger
from heatsketch._typing import Array
from heatsketch._validation import check_number
from heatsketch.estimators import HeatSketch
from heatsketch.io.blocks import Blocks, joined
from heatsketch.io.refine import Learned, note_of_gaps, refined, rows_with_gaps
from heatsketch.io.table import Reading, Table
from heatsketch.spectral.filters import times_of
from heatsketch.uncertainty.resampling import independent_columns

HELD_OUT = 1000  # rows outside of the sample, on which two halves of it are compared
LEAST_POINTS = 100  # of a sample
_STREAM = 19  # random numbers apart from those of the estimator, which has the same seed
_LEAST_HELD_OUT = 20
_NAMED = 5  # rows with gaps; further ones are counted
_GROUPS, _LEAST_COLUMNS = 32, 8  # of random columns that are left out together; for an interval


def drawn(n: int, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Draw rows uniformly without repetition, by n, count and seed alone.

    Returns the rows to be fitted (count,), increasing; which of them are in the first of two
    halves, drawn at random; and other rows, held out, increasing.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
    held_out = min(HELD_OUT, n - count)
    rows = np.random.default_rng(sequence).choice(n, count + held_out, replace=False)
    order = np.argsort(rows[:count])
    return rows[:count][order], (order < count // 2), np.sort(rows[count:])


def gather(
    points: Blocks, estimator: Any, fit_points: int | None, how: Reading, block_rows: int
) -> tuple[Table, Table]:
    """Read a sample in one pass that checks every number; return it with the rows left out.

    The sample has the column `half`, true for rows in the first of two halves. Its `notes` name the
    changes by reading in the whole source; its `learned` comes from its own rows. With
    `missing="drop"` it has no rows with gaps.

    Raises
    ------
    ValueError
        For infinity, and for gaps that `how` does not mend, with the number of the row in the
        source.
    """
    count = size(points, estimator, fit_points)
    rows, half, held_out = drawn(points.n, count, seed_of(estimator))
    logger.info("reading %d points, of which %d are fitted", points.n, count)
    whole = replace(how, standardize=False)
    # A gap that the model fills is no fault, but a row of gaps alone is, as for medians.
    checked = replace(whole, missing="median") if how.missing == "keep" else whole
    found: tuple[list[Table], list[Table]] = ([], [])
    start, n_gaps, first_gaps = 0, 0, np.empty(0, int)
    for raw in points.tables(block_rows):
        table = refined(replace(raw, extra={}), replace(whole, missing="keep"))
        zeros: Learned = {"medians": np.zeros(len(table.columns))}
        refined(table, checked, zeros, first_row=start)  # raises for infinity and gaps
        if how.fills_gaps:
            gaps = start + np.flatnonzero(rows_with_gaps(table.values))
            n_gaps, first_gaps = n_gaps + len(gaps), np.append(first_gaps, gaps)[:_NAMED]
        stop = start + table.values.shape[0]
        for tables, wanted in zip(found, (rows, held_out), strict=True):
            first, last = np.searchsorted(wanted, (start, stop))
            own = wanted[first:last] - start
            if len(own) or not tables:
                tables.append(replace(table, values=table.values[own]))
        start = stop
    sample, others = (joined(tables) for tables in found)
    table = refined(replace(sample, extra={"half": half}), how)
    notes = [*points.notes]
    if n_gaps:
        note = note_of_gaps(how.missing, first_gaps, points.n, n_gaps)
        notes.append(note.replace("with medians", "with medians of the sample"))
    if how.standardize:
        notes.append("columns standardised by the sample")
    return replace(table, notes=tuple(notes)), refined(others, how, table.learned, first_row=0)


def half_discrepancy(
    estimator: Any, values: Any, half: Array, held_out: Any
) -> tuple[float | None, tuple[float, float] | None]:
    """Fit each half of a sample by itself; measure how much distances of other points differ.

    Other points are outside of both halves, with distances D and E in the two embeddings. Returns
    √(Σ (D - E)² / Σ (D² + E²)/2) over pairs, from 0 to √2, and for random columns an interval of
    95 % of its value without them; None if there are too few points. The second half is fitted with
    the time that the first one chose.
    """
    if held_out.shape[0] < _LEAST_HELD_OUT:
        return None, None
    logger.info("fitting two halves of the sample")
    model, maps = clone(estimator), []
    for rows in (np.flatnonzero(half), np.flatnonzero(~half)):
        # The fit of the whole sample warns already.
        with warnings.catch_warnings(action="ignore"):
            model.fit(values[rows])
            maps.append(np.asarray(model.transform(held_out), dtype=float))
        columns = independent_columns(model)[1] if isinstance(model, HeatSketch) else None
        chosen = getattr(model, "time_", None)
        model = clone(model) if chosen is None else clone(model).set_params(time=chosen)
    Y, Z = maps
    whole = math.sqrt(_difference(pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")))
    if columns is None or columns.shape[1] < _LEAST_COLUMNS:
        return whole, None
    square, error = _without_columns(Y, Z, columns)
    low, high = (math.sqrt(max(0.0, square + side * 2 * error)) for side in (-1, 1))
    return whole, (low, high)


def _without_columns(Y: Array, Z: Array, columns: Array) -> tuple[float, float]:
    """Return the squared discrepancy for infinitely many random columns, and its error.

    `columns` (T, k) of Y and Z are those of T times with the same random numbers. With k columns it
    is larger by b/k, to first order (b = 1 for one time and Gaussian columns). The jackknife, which
    leaves out some columns at a time, removes b/k for any b.
    """
    D, E = pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")
    count = min(_GROUPS, columns.shape[1])
    without = []
    for group in range(count):
        own = columns[:, group::count].ravel()
        d, e = (pdist(each[:, own], "sqeuclidean") for each in (Y, Z))
        without.append(_difference(D - d, E - e))
    pseudo = count * _difference(D, E) - (count - 1) * np.array(without)
    return float(pseudo.mean()), float(pseudo.std(ddof=1)) / math.sqrt(count)


def _difference(D: Array, E: Array) -> float:
    """Return the squared discrepancy of two vectors of squared distances."""
    D, E = np.maximum(D, 0), np.maximum(E, 0)  # a difference may be negative by rounding
    size = float(D.sum() + E.sum()) / 2
    return float(np.sum((np.sqrt(D) - np.sqrt(E)) ** 2)) / size if size > 0 else 0.0


def seed_of(estimator: Any) -> int:
    """Return the seed for drawing rows: that of the estimator if it is an integer, else 0."""
    seed = estimator.get_params(deep=False).get("random_state", 0)
    return int(seed) if isinstance(seed, numbers.Integral) else 0


def size(points: Blocks, estimator: Any, fit_points: int | None = None) -> int:
    """Return how many points are fitted: `fit_points`, or as many as half of the memory holds.

    A point takes its coordinates three times, 100 bytes for each neighbour, and nine blocks of as
    many columns as an estimator computes, at least 64 eigenvectors and half as many again.
    """
    if fit_points is not None:
        return min(points.n, check_number(fit_points, "fit_points", low=LEAST_POINTS, integer=True))
    given = estimator.get_params(deep=False)
    wanted, neighbors = given.get("n_components"), given.get("n_neighbors")
    columns = int(wanted) if isinstance(wanted, numbers.Integral) else 64
    columns *= len(times_of(given.get("time", 1)))
    neighbors = int(neighbors) if isinstance(neighbors, numbers.Integral) else 15
    d = len(points.columns) if points.stored is None else 2 * points.stored / max(1, points.n)
    each = 3 * points.dtype.itemsize * d + 100 * (neighbors + 1) + 9 * 8 * max(96, columns)
    return min(points.n, max(LEAST_POINTS, int(_memory.available_memory() / 2 / each)))
