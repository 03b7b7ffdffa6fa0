"""What happens to a table after it is read: choice of features, missing numbers, scales."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import row_tiles
from heatsketch._checks import check_finite, name_rows
from heatsketch._typing import Array
from heatsketch.io.reading import Reading
from heatsketch.io.table import Table, require


def refined(table: Table, how: Reading) -> Table:
    """Return the table with the features that are asked for, without gaps, and standardised."""
    table = _with_features(table, how)
    if how.missing != "keep":
        table = _without_gaps(table, how.missing)
    if how.standardize:
        values = standardized(table.values)
        table = replace(table, values=values, notes=(*table.notes, "columns standardised"))
    return table


def standardized(values: Any) -> Any:
    """Return columns of mean 0 and variance 1; sparse ones are scaled, but not centred.

    Constant columns become 0 (sparse: stay). A mean has no influence on distances.
    """
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not sparse.issparse(values)).fit_transform(values)


def _with_features(table: Table, how: Reading) -> Table:
    """Choose among the columns of an array; tables of named columns have chosen already."""
    if how.features and how.features != table.columns:
        require(how.features, table.columns, table.source)
        kept = list(how.features)
    else:
        kept = [name for name in table.columns if name not in how.exclude]
        require(how.exclude, [*table.columns, *table.extra], table.source)
    if len(kept) == len(table.columns) and kept == list(table.columns):
        return table
    if not kept:
        raise ValueError(f"all columns of {table.source} are excluded; leave one as a feature.")
    position = {name: j for j, name in enumerate(table.columns)}
    values = table.values[:, [position[name] for name in kept]]
    return replace(table, values=values, columns=tuple(kept))


def _without_gaps(table: Table, missing: str) -> Table:
    """Leave out the rows with gaps, or put medians in their place, or raise for the first gap."""
    values, what = table.values, f"from {table.source}"
    rows = np.flatnonzero(_has_gap(values))
    if missing != "error" and len(rows):
        n, where = values.shape[0], name_rows(rows)
        if missing == "drop":
            table = _rows_of(table, np.setdiff1d(np.arange(n), rows))
            note = f"{len(rows)} of {n} rows left out, for they have gaps: {where}"
        else:
            values = _with_medians(values, table)
            note = f"gaps filled with medians in {len(rows)} of {n} rows: {where}"
            table = replace(table, values=values)
        table = replace(table, notes=(*table.notes, note))
    remedy = "for gaps pass missing='drop' or 'median' (--missing), or exclude it (--exclude)"
    check_finite(table.values, what, table.columns, remedy)
    return table


def _has_gap(values: Any) -> Array:
    """Say of each row whether a number is missing, (n,)."""
    found = np.zeros(values.shape[0], dtype=bool)
    for rows in row_tiles(len(found)):
        if sparse.issparse(values):
            tile = values[rows].tocoo()
            found[rows.start + tile.row[np.isnan(tile.data)]] = True
        else:
            found[rows] = np.isnan(values[rows]).any(axis=1)
    return found


def _rows_of(table: Table, rows: Array) -> Table:
    if not len(rows):
        raise ValueError(
            f"every row of {table.source} has a gap; pass missing='median' (--missing)."
        )
    extra = {name: column[rows] for name, column in table.extra.items()}
    return replace(table, values=table.values[rows], extra=extra)


def _with_medians(values: Any, table: Table) -> Any:
    if sparse.issparse(values):
        raise ValueError(f"{table.source} is sparse and has gaps; pass missing='drop'.")
    gaps = np.isnan(values)
    empty = np.flatnonzero(gaps.all(axis=0))
    if len(empty):
        raise ValueError(
            f"column {table.columns[empty[0]]!r} of {table.source} holds no number, so that there "
            "is no median; exclude it (--exclude)."
        )
    lost = np.flatnonzero(gaps.all(axis=1))
    if len(lost):
        raise ValueError(
            f"row(s) {name_rows(lost)} of {table.source} hold no number, so that medians would "
            "make points of nothing; delete them, or pass missing='drop' (--missing drop)."
        )
    return np.where(gaps, np.nanmedian(values, axis=0), values).astype(values.dtype)
