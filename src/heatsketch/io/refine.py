"""Steps after a table is read: choice of features, missing numbers, scales."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._exceptions import name_rows
from heatsketch._typing import Array
from heatsketch._validation import check_finite
from heatsketch.estimators.table_encoder import TableEncoder
from heatsketch.io.files import listed
from heatsketch.io.table import Reading, Table, check_names

_TOLD = 30  # columns in a note

# Features, medians and scales of a table, for other rows of the same kind: "columns" (names of the
# features), "medians" (d,), which fill gaps if this was requested, "mean" and "scale" (d,) of
# columns that were standardised (sparse ones keep their mean: 0), and the "encoder" that makes the
# d numbers of columns of all types. Files of models hold it with the "suffix" of the source and the
# "options" of reading it.
Learned = dict[str, Any]


def refined(
    table: Table, how: Reading, given: Learned | None = None, *, first_row: int | None = None
) -> Table:
    """Return the table with the requested features, without gaps, and standardised, as requested.

    Medians, means and scales come from `given`, those of another table, if given. For a block of a
    larger table `first_row` is the number of its first row, and it may lose all rows.
    """
    learned = given or {}
    if "encoder" in table.learned:  # a block of encoded rows
        learned = learned | table.learned
    else:
        table = _with_features(table, how)
        learned = learned | {"columns": table.columns}
        table = in_numbers(table, learned, first_row or 0) if how.encode else table
    values, is_sparse = table.values, sparse.issparse(table.values)
    if given is None and how.missing == "median" and not is_sparse:
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(empty):
            what = f"column {table.columns[empty[0]]!r} of {table.source} holds no number"
            raise ValueError(f"{what}, so that there is no median; exclude it (--exclude).")
        encoder = learned.get("encoder")
        learned["medians"] = (
            np.nanmedian(values, axis=0) if encoder is None else encoder._middle(values)
        )
    if how.missing != "keep":
        table = _without_gaps(table, how, learned.get("medians"), first_row or 0)
        values = table.values
        if not values.shape[0] and first_row is None:
            what = f"every row of {table.source} has a gap"
            raise ValueError(f"{what}; pass missing='median' (--missing median).")
    if given is None and how.standardize:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=not is_sparse).fit(values)
        learned |= {"mean": 0.0 if is_sparse else scaler.mean_, "scale": scaler.scale_}
    if "scale" in learned:  # constant columns become 0; sparse ones are not centred
        mean, scale = learned["mean"], learned["scale"]
        if is_sparse and np.any(mean):
            what = f"{table.source} is sparse, but its columns are to be centred as in the fit"
            raise ValueError(f"{what}; store it as a dense array.")
        scaled = values.multiply(1 / scale).tocsr() if is_sparse else (values - mean) / scale
        values = scaled.astype(values.dtype, copy=False)
        table = replace(table, values=values, notes=(*table.notes, "columns standardised"))
    return replace(table, learned=learned)


def _with_features(table: Table, how: Reading) -> Table:
    """Return the table with the requested features."""
    check_names(how.features, table.columns, table.source)
    check_names(how.exclude, [*table.columns, *table.extra], table.source)
    columns = how.features or tuple(name for name in table.columns if name not in how.exclude)
    if not columns:
        raise ValueError(f"all columns of {table.source} are excluded; leave one as a feature.")
    if columns == table.columns:  # readers of named columns have chosen already
        return table
    position = {name: j for j, name in enumerate(table.columns)}
    values = table.values[:, [position[name] for name in columns]]
    return replace(table, values=values, columns=columns)


@contextmanager
def encoding(source: str, first_row: int = 0) -> Iterator[None]:
    """Name the file in errors of the encoder; rows of a block are counted from `first_row` on."""
    try:
        yield
    except (TypeError, ValueError) as error:
        where = f"{source}, from row {first_row} on" if first_row else source
        raise ValueError(f"{where}: {error}") from error


def in_numbers(table: Table, learned: Learned, first_row: int = 0) -> Table:
    """Return the table with the numbers that columns of all types become, by the encoder learned.

    If there is none, the table makes one, which is put there.
    """
    columns = table.mixed
    if columns is None:
        if sparse.issparse(table.values):
            what = f"{table.source} is sparse; leave out encode=True (--encode)"
            raise ValueError(f"{what}, or store it as a dense array.")
        columns = dict(zip(table.columns, table.values.T, strict=True))
    with encoding(table.source, first_row):
        if "encoder" not in learned:
            learned["encoder"] = TableEncoder().fit(columns)
        encoder = learned["encoder"]
        values = encoder.transform(columns)
    names = tuple(encoder.get_feature_names_out())
    without = [f"{n} ({one.why})" for n, one in encoder.columns_.items() if one.kind == "left out"]
    note = f"{len(names)} features of {len(columns) - len(without)} columns"
    note += f"; left out: {listed(without, _TOLD)}" if without else ""
    return replace(table, values=values, columns=names, notes=(*table.notes, note), mixed=None)


def in_units_of_source(table: Table) -> Any:
    """Return the values (n, d) as they were before they were standardised."""
    if "scale" not in table.learned or sparse.issparse(table.values):
        return table.values
    return table.values * table.learned["scale"] + table.learned["mean"]


def with_label(table: Table, how: Reading) -> Table:
    """Return the table with the label that the user named; raise if an id or label is no column."""
    lost = [name for name in how.label + how.ids if name not in table.extra]
    for name in lost:
        if name not in table.columns and Path(name).is_file():
            what = f"{name} is a file, but labels and ids are columns of {table.source}"
            do = "write its entries to a column, or in Python pass them to hs.report as labels"
            raise ValueError(f"{what}; {do}.")
    check_names(lost, [*table.extra, *table.columns], table.source, "id or label column")
    if lost:
        what = f"column {lost[0]!r} of {table.source} is a feature, and no id or label"
        raise ValueError(f"{what}; choose from {listed(table.extra)}.")
    return replace(table, label=how.label[0]) if how.label else table


def rows_with_gaps(values: Any) -> Array:
    """Return for each row whether a number is missing, (n,)."""
    return np.asarray((values != values).sum(axis=1)).ravel() > 0  # NaN differs from itself


def note_of_gaps(missing: str, rows: Array, n: int, count: int | None = None) -> str:
    """Return a note about gaps in `rows` of n, which are all such rows or the first of `count`."""
    count = len(rows) if count is None else count
    where = name_rows(rows, count=count)
    if missing == "drop":
        return f"{count} of {n} rows left out, for they have gaps: {where}"
    return f"gaps filled with medians in {count} of {n} rows: {where}"


def _without_gaps(table: Table, how: Reading, medians: Array | None, first_row: int) -> Table:
    """Leave out the rows with gaps, fill them with medians, or raise for the first gap."""
    values, source = table.values, table.source
    gaps = rows_with_gaps(values) if how.fills_gaps else np.zeros(values.shape[0], dtype=bool)
    finite = values
    if gaps.any():  # infinities are refused
        finite = values.copy()
        numbers = finite.data if sparse.issparse(values) else finite
        numbers[np.isnan(numbers)] = 0
    remedy = (
        "for gaps pass missing='keep' (--missing keep), so that the nearest rows fill them, or "
        "median or drop; or exclude it (--exclude)"
    )
    if table.passed_over:
        others = f"columns of other types are passed over ({listed(table.passed_over, 5)})"
        remedy += f"; {others}, which encode=True (--encode) makes features of"
    check_finite(finite, f"from {source}", table.columns, remedy, first_row)
    if not gaps.any():
        return table
    note = note_of_gaps(how.missing, np.flatnonzero(gaps), len(gaps))
    table = replace(table, notes=(*table.notes, note))
    if how.missing == "drop":
        return replace(table.take(~gaps), rows=np.flatnonzero(~gaps))
    if sparse.issparse(values):
        raise ValueError(f"{source} is sparse and has gaps; pass missing='drop' (--missing drop).")
    if medians is None:
        what = f"{source} has gaps, but the model has no medians to fill them"
        raise ValueError(f"{what}; pass --missing drop, or make the model with --missing median.")
    empty = first_row + np.flatnonzero(np.isnan(values).all(axis=1))
    if len(empty):
        what = f"row(s) {name_rows(empty)} of {source} hold no number at all"
        raise ValueError(f"{what}; delete them, or pass missing='drop' (--missing drop).")
    filled = np.where(np.isnan(values), medians, values).astype(values.dtype)
    return replace(table, values=filled)
