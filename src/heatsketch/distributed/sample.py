"""The rows that are fitted, and how much it matters that it was these."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from heatsketch._checks import check_finite
from heatsketch._typing import Array
from heatsketch.estimators._sample import HELD_OUT as HELD_OUT
from heatsketch.estimators._sample import Sample as Sample
from heatsketch.io.blocks import Blocks, joined
from heatsketch.io.reading import Reading
from heatsketch.io.refine import refined
from heatsketch.io.table import Table

_LEAST_HELD_OUT = 20


def gather(points: Blocks, how: Reading, wanted: list[Array], block_rows: int) -> list[Table]:
    """Return tables of these rows (each increasing), in one pass that looks at every number.

    Raises
    ------
    ValueError
        For NaN or infinity, with the number of the row in the source.
    """
    whole = replace(how, missing="keep", standardize=False)
    found: list[list[Table]] = [[] for _ in wanted]
    start = 0
    for raw in points.tables(block_rows):
        table = refined(replace(raw, extra={}), whole)
        stop = start + table.values.shape[0]
        check_finite(
            table.values,
            f"from {points.source}",
            table.columns,
            "points that are read by blocks may have no gaps: drop or impute them",
            first_row=start,
        )
        for tables, rows in zip(found, wanted, strict=True):
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
            if len(own) or not tables:
                tables.append(replace(table, values=table.values[own]))
        start = stop
    return [joined(tables) for tables in found]


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
