"""The rows that are fitted, and the error that their choice makes."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from heatsketch import _checks
from heatsketch._checks import check_number, logger
from heatsketch._typing import Array
from heatsketch.estimators import HeatSketch
from heatsketch.io.blocks import Blocks, joined
from heatsketch.io.refine import Learned, note_of_gaps, refined, rows_with_gaps
from heatsketch.io.table import Reading, Table
from heatsketch.spectral.filters import times_of

HELD_OUT = 1000  # rows outside of the sample, on which two halves of it are compared
LEAST_POINTS = 100  # of a sample
_STREAM = 19  # random numbers apart from those of the estimator, which has the same seed
_LEAST_HELD_OUT = 20
_NAMED = 5  # rows with gaps; further ones are counted
_GROUPS, _LEAST_COLUMNS = 32, 8  # of random columns that are left out together; for an interval


class Sample(NamedTuple):
    """Rows of a source, drawn uniformly without repetition, by n, count and seed alone."""

    rows: Array  # (N,) to be fitted, increasing
    half: Array  # (N,) which of them are in the first of two halves, drawn at random
    held_out: Array  # (m,) others, increasing

    @classmethod
    def draw(cls, n: int, count: int, seed: int) -> Sample:
        """Draw `count` of n rows by a seed, and other rows to hold out."""
        sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
        held_out = min(HELD_OUT, n - count)
        drawn = np.random.default_rng(sequence).choice(n, count + held_out, replace=False)
        order = np.argsort(drawn[:count])
        half = np.arange(count) < count // 2
        return cls(drawn[:count][order], half[order], np.sort(drawn[count:]))


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
    sample = Sample.draw(points.n, size(points, estimator, fit_points), seed_of(estimator))
    logger.info("reading %d points, of which %d are fitted", points.n, len(sample.rows))
    whole = replace(how, standardize=False)
    found: tuple[list[Table], list[Table]] = ([], [])
    start, n_gaps, first_gaps = 0, 0, np.empty(0, int)
    for raw in points.tables(block_rows):
        table = refined(replace(raw, extra={}), replace(whole, missing="keep"))
        zeros = Learned(table.columns, medians=np.zeros(len(table.columns)))
        refined(table, whole, zeros, first_row=start)  # raises for infinity and gaps
        if how.fills_gaps:
            gaps = start + np.flatnonzero(rows_with_gaps(table.values))
            n_gaps, first_gaps = n_gaps + len(gaps), np.append(first_gaps, gaps)[:_NAMED]
        stop = start + table.values.shape[0]
        for tables, rows in zip(found, (sample.rows, sample.held_out), strict=True):
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
            if len(own) or not tables:
                tables.append(replace(table, values=table.values[own]))
        start = stop
    drawn, held_out = (joined(tables) for tables in found)
    table = refined(replace(drawn, extra={"half": sample.half}), how)
    notes = []
    if n_gaps:
        note = note_of_gaps(how.missing, first_gaps, points.n, n_gaps)
        notes.append(note.replace("with medians", "with medians of the sample"))
    if how.standardize:
        notes.append("columns standardised by the sample")
    return replace(table, notes=tuple(notes)), refined(held_out, how, table.learned, first_row=0)


class Halves(NamedTuple):
    """How much distances differ between fits of two halves of a sample."""

    whole: float  # √(Σ (D - E)² / Σ (D² + E²)/2) over pairs, from 0 to √2
    of_points: tuple[float, float] | None  # without random columns: an interval of 95 %


def half_discrepancy(estimator: Any, values: Any, half: Array, held_out: Any) -> Halves | None:
    """Fit each half of a sample by itself; measure how much distances of other points differ.

    Other points are outside of both halves, with distances D and E in the two embeddings. Returns
    None if there are too few. The second half is fitted with the time that the first one chose.
    """
    if held_out.shape[0] < _LEAST_HELD_OUT:
        return None
    logger.info("fitting two halves of the sample")
    model, maps = clone(estimator), []
    for rows in (np.flatnonzero(half), np.flatnonzero(~half)):
        with warnings.catch_warnings():  # the fit of the whole sample warns already
            warnings.simplefilter("ignore")
            model.fit(values[rows])
            maps.append(np.asarray(model.transform(held_out), dtype=float))
        columns = None  # number of the random column; several times are side by side
        if isinstance(model, HeatSketch):
            width = maps[-1].shape[1]
            columns = np.arange(width) % (width // np.size(model.time))
        chosen = getattr(model, "time_", None)
        model = clone(model) if chosen is None else clone(model).set_params(time=chosen)
    Y, Z = maps
    whole = math.sqrt(_difference(pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")))
    if columns is None or len(np.unique(columns)) < _LEAST_COLUMNS:
        return Halves(whole, None)
    square, error = _without_columns(Y, Z, columns)
    low, high = (math.sqrt(max(0.0, square + side * 2 * error)) for side in (-1, 1))
    return Halves(whole, (low, high))


def _without_columns(Y: Array, Z: Array, columns: Array) -> tuple[float, float]:
    """Return the squared discrepancy for infinitely many random columns, and its error.

    With k columns it is larger by b/k, to first order (b = 1 for one time and Gaussian columns).
    The jackknife, which leaves out some columns at a time, removes b/k for any b.
    """
    D, E = pdist(Y, "sqeuclidean"), pdist(Z, "sqeuclidean")
    count = min(_GROUPS, int(columns.max()) + 1)
    without = []
    for group in range(count):
        own = columns % count == group
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
    seed = getattr(estimator, "random_state", 0)
    return int(seed) if isinstance(seed, numbers.Integral) else 0


def size(points: Blocks, estimator: Any, fit_points: int | None = None) -> int:
    """Return how many points are fitted: `fit_points`, or as many as memory holds."""
    if fit_points is not None:
        least = check_number(fit_points, "fit_points", low=LEAST_POINTS, integer=True)
        return min(least, points.n)
    stored = None if points.stored is None else points.stored // max(1, points.n)
    d = len(points.columns) if stored is None else 2 * stored
    return points_that_fit(points.n, d, estimator, points.dtype.itemsize)


def points_that_fit(n: int, d: int, estimator: Any, itemsize: int) -> int:
    """Return how many of n points half of the available memory holds with their fit.

    A point takes its coordinates three times, 100 bytes for each neighbour, and nine blocks of as
    many columns as an estimator computes, at least 64 eigenvectors and half as many again.
    """
    given = estimator.get_params(deep=False)
    wanted, neighbors = given.get("n_components"), given.get("n_neighbors")
    columns = int(wanted) if isinstance(wanted, numbers.Integral) else 64
    columns *= len(times_of(given.get("time", 1)))
    neighbors = int(neighbors) if isinstance(neighbors, numbers.Integral) else 15
    each = 3 * itemsize * d + 100 * (neighbors + 1) + 9 * 8 * max(96, columns)
    return min(n, max(LEAST_POINTS, int(_checks.available() / 2 / each)))
