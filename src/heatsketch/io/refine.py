"""What happens to a table after it is read: choice of features, missing numbers, scales."""

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._array import row_tiles
from heatsketch._checks import check_finite, name_rows
from heatsketch._typing import Array
from heatsketch._words import did_you_mean
from heatsketch.io.files import listed
from heatsketch.io.reading import Reading
from heatsketch.io.table import Names, Table, require

_FEWEST_COUNTED = 10  # rows; in fewer, numbers follow each other by chance
_SAME_STEP = 1e-6  # relative; times are written with some digits
_ID_AT_THE_END = re.compile(r"[\W_](id|ID|Id)$|[a-z](ID|Id)$")  # patient_id, patientId


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from a table, for other rows of the same kind: they never change it.

    Attributes
    ----------
    columns : names of the d features
    medians : array (d,) or None
        With which gaps are filled, if that was asked for.
    mean, scale : array (d,) or None
        Of the columns, if they were standardised; sparse ones have no mean.
    """

    columns: Names
    medians: Array | None = None
    mean: Array | None = None
    scale: Array | None = None


def refined(
    table: Table, how: Reading, known: Learned | None = None, *, first_row: int | None = None
) -> Table:
    """Return the table with the features that are asked for, without gaps, and standardised.

    Medians, means and scales are those `known` from another table, if there is one. A table that
    is a block of a larger one says the number of its first row, and may lose all rows.
    """
    table = _with_features(table, how)
    medians = None if known is None else known.medians
    if how.missing == "median" and known is None:
        medians = _medians(table)
    if how.missing != "keep":
        table = _without_gaps(table, how.missing, medians, first_row or 0)
        if not table.values.shape[0] and first_row is None:
            raise ValueError(
                f"every row of {table.source} has a gap; pass missing='median' (--missing)."
            )
    mean = scale = None
    if known is not None:
        mean, scale = known.mean, known.scale
    elif how.standardize:
        mean, scale = _mean_and_scale(table.values)
    if scale is not None:
        values = _standardized(table.values, mean, scale)
        table = replace(table, values=values, notes=(*table.notes, "columns standardised"))
    return replace(table, learned=Learned(table.columns, medians, mean, scale))


def warn_of_counts(table: Table, how: Reading) -> None:
    """Warn of features that number the rows, an index, a time or ids, unless they are asked for."""
    if how.features or not how.strict or len(table.values) < _FEWEST_COUNTED:
        return
    for name, column in zip(table.columns, table.values.T, strict=True):
        found = _numbering(name, column)
        if found:
            warnings.warn(
                f"column {name!r} of {table.source} {found} and is used as a feature; if it is an "
                "index, an id or a time, name it with ids (--id) or exclude (--exclude).",
                stacklevel=5,
            )


def _numbering(name: str, column: Array) -> str:
    """Say how a column numbers the rows; "" if it does not."""
    if _is_even(column[:_FEWEST_COUNTED]) and _is_even(column):  # few columns get past the first
        return "counts the rows" if _is_whole(column) else "grows by the same step from row to row"
    named = _ID_AT_THE_END.search(name)
    if named and _is_whole(column) and len(np.unique(column)) == len(column):
        return "has the name of an id and another integer in every row"
    return ""


def _is_even(column: Array) -> bool:
    steps = np.diff(column)
    return bool(steps[0] != 0 and np.allclose(steps, steps[0], rtol=_SAME_STEP, atol=0))


def _is_whole(column: Array) -> bool:
    return bool((column == np.floor(column)).all())


def check_others(table: Table, how: Reading) -> None:
    """Raise for an id or label that is not a column."""
    for name in how.label + how.ids:
        if name not in table.extra:
            names = [*table.extra, *table.columns]
            raise ValueError(
                f"{table.source} has no id or label column {name!r}; choose from {listed(names)}"
                f"{did_you_mean(name, names)}"
            )


def reading_record(table: Table, suffix: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return what other tables need to be read like this one, to be kept with a model of it."""
    learned = table.learned
    return {
        "columns": list(learned.columns),
        "medians": learned.medians,
        "mean": learned.mean,
        "scale": learned.scale,
        "suffix": suffix,
        "options": options,
    }


def standardized(values: Any) -> Any:
    """Return columns of mean 0 and variance 1; sparse ones are scaled, but not centred.

    Constant columns become 0 (sparse: stay). A mean has no influence on distances.
    """
    return _standardized(values, *_mean_and_scale(values))


def _mean_and_scale(values: Any) -> tuple[Array | None, Array]:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sparse.issparse(values)).fit(values)
    return (scaler.mean_ if scaler.with_mean else None), scaler.scale_


def in_units_of_source(table: Table) -> Any:
    """Return the values (n, d) as they were before they were standardised."""
    learned, values = table.learned, table.values
    if learned is None or learned.scale is None or sparse.issparse(values):
        return values
    return values * learned.scale + (0 if learned.mean is None else learned.mean)


def _standardized(values: Any, mean: Array | None, scale: Array) -> Any:
    values = values.copy() if sparse.issparse(values) else np.array(values)
    if sparse.issparse(values):
        values.data *= (1 / scale)[values.indices]
        return values
    if mean is not None:
        values -= mean
    values /= scale
    return values


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


def _without_gaps(table: Table, missing: str, medians: Array | None, first_row: int) -> Table:
    """Leave out the rows with gaps, or put medians in their place, or raise for the first gap."""
    values, n = table.values, table.values.shape[0]
    found = rows_with_gaps(values) if missing != "error" else np.zeros(n, dtype=bool)
    remedy = "for gaps pass missing='drop' or 'median' (--missing), or exclude it (--exclude)"
    whole = _zeros_for_gaps(values) if found.any() else values
    check_finite(whole, f"from {table.source}", table.columns, remedy, first_row)
    if not found.any():
        return table
    note = note_of_gaps(missing, np.flatnonzero(found), n)
    if missing == "drop":
        table = _rows_of(table, np.flatnonzero(~found))
    else:
        table = replace(table, values=_with_medians(values, medians, table, first_row))
    return replace(table, notes=(*table.notes, note))


def note_of_gaps(missing: str, rows: Array, n: int, count: int | None = None) -> str:
    """Say what was done about gaps in rows of n: these are all of them, or the first of `count`."""
    count = len(rows) if count is None else count
    where = name_rows(rows, count=count)
    if missing == "drop":
        return f"{count} of {n} rows left out, for they have gaps: {where}"
    return f"gaps filled with medians in {count} of {n} rows: {where}"


def _zeros_for_gaps(values: Any) -> Any:
    if not sparse.issparse(values):
        return np.where(np.isnan(values), 0, values)
    filled = values.copy()
    filled.data[np.isnan(filled.data)] = 0
    return filled


def rows_with_gaps(values: Any) -> Array:
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
    extra = {name: column[rows] for name, column in table.extra.items()}
    return replace(table, values=table.values[rows], extra=extra)


def _medians(table: Table) -> Array | None:
    """Return the median of each column (d,); None for sparse tables."""
    values = table.values
    if sparse.issparse(values):
        return None
    empty = np.flatnonzero(np.isnan(values).all(axis=0))
    if len(empty):
        raise ValueError(
            f"column {table.columns[empty[0]]!r} of {table.source} holds no number, so that there "
            "is no median; exclude it (--exclude)."
        )
    medians: Array = np.nanmedian(values, axis=0)
    return medians


def _with_medians(values: Any, medians: Array | None, table: Table, first_row: int) -> Any:
    if sparse.issparse(values):
        raise ValueError(f"{table.source} is sparse and has gaps; pass missing='drop'.")
    if medians is None:
        raise ValueError(
            f"{table.source} has gaps, but the model was not fitted with medians to fill them; "
            "pass --missing drop, or make it again with embed --missing median --save-model."
        )
    gaps = np.isnan(values)
    lost = first_row + np.flatnonzero(gaps.all(axis=1))
    if len(lost):
        raise ValueError(
            f"row(s) {name_rows(lost)} of {table.source} hold no number, so that medians would "
            "make points of nothing; delete them, or pass missing='drop' (--missing drop)."
        )
    return np.where(gaps, medians, values).astype(values.dtype)
