"""Checks of arguments (got / want / do): numbers, choices, indices, points and labels."""

import inspect
import math
import numbers
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from heatsketch._exceptions import ScaleWarning, warn
from heatsketch._input_warnings import warn_if_distances, warn_if_transposed
from heatsketch._random import data_hash
from heatsketch._tensors import on_host
from heatsketch._typing import Array
from heatsketch._words import did_you_mean, no_parameter

_SMALLEST, _LARGEST = 1e-60, 1e60  # so that no ratio of squares leaves float64


def check_number(
    value: Any,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    open_high: bool = False,
    integer: bool = False,
    rules: Sequence[str] = (),
) -> Any:
    """Return `value` as int or float if it is a finite number in the stated range, else raise.

    A word among `rules`, the name of a rule that finds the number, is returned as it is.
    """
    if isinstance(value, str) and value in rules:
        return value
    kind: Any = numbers.Integral if integer else numbers.Real
    bounds = ((">" if open_low else ">=", low), ("<" if open_high else "<=", high))
    ranges = " and ".join(f"{sign} {end}" for sign, end in bounds if end is not None)
    want = f"{'an integer' if integer else 'a number'} {ranges}".rstrip()
    want += "".join(f", or {rule!r}" for rule in rules)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}; pass {want}.")
    size = math.inf
    with suppress(OverflowError):  # an integer beyond float64
        size = float(value)
    too_low = low is not None and (size < low or (open_low and size == low))
    too_high = high is not None and (size > high or (open_high and size == high))
    if too_low or too_high or not math.isfinite(size):
        problem = "out of range" if math.isfinite(size) else "not finite"
        raise ValueError(f"{name}={value!r} is {problem}; pass {want}.")
    return int(value) if integer else size


def check_weights(weights: Any, n: int, **bounds: Any) -> Array:
    """Return how often n points count (n,), some of them > 0, or raise; bounds of `check_number`.

    The sum must not leave float64.
    """
    w = np.asarray(on_host(weights))
    if w.dtype.kind not in "biuf" or w.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {w.shape} and dtype {w.dtype}, but there are {n} points; "
            "pass one number for each."
        )
    w = w.astype(float)
    check_number(float(w.min()), "sample_weight", **bounds)  # the sum is NaN where one is
    if not w.any():
        raise ValueError("sample_weight is zero for all points; pass some weights > 0.")
    check_number(float(w.sum()), "the sum of sample_weight", low=0)
    return w


def check_n_components(k: Any, most: int, why: str) -> int:
    """Return the number of coordinates, or raise where it is above `most`; `why` says what is."""
    k = check_number(k, "n_components", low=1, integer=True)
    if k > most:
        do = f"n_components <= {most}" if most else "more points"
        raise ValueError(f"n_components={k} but {why}; pass {do}.")
    return int(k)


def read_rows(rows: Any, n: int) -> Array:
    """Return rows of n, given as a mask or by numbers, as an array of one of these forms.

    0 and 1 for each of all rows are a mask: as numbers they would name two rows over and over.
    """
    rows = np.asarray(rows)
    if rows.dtype.kind in "iu" and rows.shape == (n,) and n > 2 and np.isin(rows, (0, 1)).all():
        rows = rows.astype(bool)
    return rows


def check_in_range(indices: Any, name: str, n: int) -> None:
    """Raise unless all integers of an array are indices of n points."""
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise ValueError(f"{name} has indices out of range; pass 0 <= index < {n}.")


def check_level(level: Any) -> float:
    """Return a confidence level, or raise."""
    return float(check_number(level, "level", low=0, high=1, open_low=True, open_high=True))


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of the named choices, else raise."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name}={value!r} is unknown; pass one of {', '.join(map(repr, choices))}"
            f"{did_you_mean(value, choices)}"
        )
    return value


def check_parameters(
    owner: str, given: Iterable[str], *takers: Callable[..., Any], also: Sequence[str] = ()
) -> None:
    """Raise for a name that is neither in `also` nor a parameter of one of the takers; suggest one.

    The last taker gets what is left; if it takes any name, none is refused.
    """
    own = [one for taker in takers for one in inspect.signature(taker).parameters.values()]
    if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:  # always the last parameter
        return
    names = dict.fromkeys([*also, *(one.name for one in own if one.kind is not one.VAR_KEYWORD)])
    unknown = [name for name in given if name not in names]
    if unknown:
        raise TypeError(no_parameter(owner, unknown[0], names))


# Points


def check_points(
    X: Any,
    name: str = "X",
    *,
    min_rows: int = 2,
    accept_sparse: bool = True,
    columns: Sequence[str] | None = None,
    allow_nan: bool = False,
    copy: bool = False,
) -> Any:
    """Return X (n, d) as a finite array, or CSR matrix, of float32 or float64, or raise.

    Arrays are in C order, because sums in Fortran order round differently. Squares of the numbers
    must not leave float64. With `allow_nan` an array may have NaN, but no row of them alone. What
    keeps the points asks for a `copy`, because X may be changed in place later.
    """
    X = check_array(
        as_floats(X, name),
        accept_sparse=accept_sparse,
        dtype=[np.float64, np.float32],
        order="C",
        copy=copy,
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
        input_name=name,
    )
    values = X.data if sparse.issparse(X) else X
    largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
    if math.isnan(largest) and allow_nan and not sparse.issparse(X):
        gaps = np.isnan(X)
        check_finite(np.where(gaps, 0.0, X), name, columns)
        for line, axis in (("row", 1), ("column", 0)):
            empty = np.flatnonzero(gaps.all(axis=axis))
            if len(empty) and (line == "row" or min_rows >= 2):  # a fit needs some in each column
                raise ValueError(
                    f"{name} has {len(empty)} {line}(s) without any entry, the first is {line} "
                    f"{empty[0]} ({line}s count from 0); drop them."
                )
        largest = float(np.nanmax(np.abs(X)))
    if not math.isfinite(largest):
        check_finite(X, name, columns)
    if largest > _LARGEST or (0 < largest < _SMALLEST and min_rows >= 2):
        raise ValueError(
            f"{name} has numbers up to {largest:.1e}; multiply it by a constant, to between "
            f"{_SMALLEST:.0e} and {_LARGEST:.0e}."
        )
    return X


def read_points(
    estimator: Any, X: Any, reset: bool, *, accept_sparse: bool = False, allow_nan: bool = False
) -> Any:
    """Return the points X (n, d) as `check_points` does, or raise.

    X is an array, a data frame or, with `accept_sparse`, a sparse matrix. With `reset` the
    estimator gets the number and names of the features; otherwise X must have the same.
    """
    names = names_of_columns(X)
    points = check_points(
        X if names is None else _read_frame(X, names),
        min_rows=2 if reset else 1,
        accept_sparse=accept_sparse,
        columns=names,
        allow_nan=allow_nan,
    )
    validate_data(estimator, points if names is None else X, reset=reset, skip_check_array=True)
    if reset:
        estimator._data_hash = data_hash(points)  # stored in files of the model
        parameters = estimator.get_params(deep=False)
        ways = parameters.get("metric"), parameters.get("affinity")
        if "precomputed" not in ways and not sparse.issparse(points):
            warn_if_distances(points)
        if names is not None:
            warn_if_transposed(getattr(X, "index", ()), names)
    return points


def check_new_points(X: Any, points: Any, owner: str, name: str = "X", *, min_rows: int = 0) -> Any:
    """Return rows X (m, d), or raise unless they have the features of points (n, d)."""
    X = check_points(X, name, min_rows=min_rows)
    if X.shape[1] != points.shape[1]:
        raise ValueError(
            f"{name} has {X.shape[1]} columns, but {owner} has {points.shape[1]} features; pass "
            "points with the same features."
        )
    if sparse.issparse(X) and not sparse.issparse(points):
        raise ValueError(f"{name} is sparse, but {owner} has dense points; pass {name}.toarray().")
    return X


def check_finite(
    X: Any,
    name: str,
    columns: Sequence[str] | None = None,
    remedy: str = "drop or impute them",
    first_row: int = 0,
) -> None:
    """Raise if X (n, d), dense or sparse, holds NaN or infinity; the message names row and column.

    `first_row` is the number of the first row, where X is a block of a larger table.
    """
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(np.min(values, initial=0.0)) and np.isfinite(np.max(values, initial=0.0)):
        return
    bad = ~np.isfinite(values)
    entries = X.tocoo() if sparse.issparse(X) else None
    rows, cols = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
    values = values[bad]
    what = "NaN" if np.isnan(values[0]) else "infinity"
    where = f"column {cols[0]}" if columns is None else f"column {columns[cols[0]]!r}"
    raise ValueError(
        f"Input {name} contains {what}: {len(rows)} value(s) are not finite, the first in row "
        f"{first_row + rows[0]}, {where} (rows count from 0); {remedy}."
    )


def as_floats(X: Any, name: str, *, accept_sparse: bool = True) -> Any:
    """Return X as a CSR matrix or array of float32 (from float32 or float16) or float64."""
    if type(X) is np.ndarray and X.dtype in (np.float32, np.float64):
        return X  # for speed: products check many blocks
    if sparse.issparse(X) and not accept_sparse:
        raise ValueError(f"{name} is sparse; pass an array: {name}.toarray().")
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"{name} is the path {os.fspath(X)!r}; read the file first, for example with "
            f"heatsketch.io.read_table(path).values or numpy.load(path)."
        )
    if hasattr(X, "obsm"):
        raise TypeError(
            f"{name} is an AnnData; pass it to a function of heatsketch.anndata, such as "
            f"heat_embedding({name}), or its points, such as {name}.obsm['X_pca']."
        )
    X = on_host(X)
    X = as_csr(X) if sparse.issparse(X) else read_array(X, name)
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}.")
    objects = values.flat if values.dtype.kind == "O" else ()
    if values.dtype.kind in "USmM" or any(isinstance(value, str | bytes) for value in objects):
        raise ValueError(f"{name} holds text or dates (dtype {X.dtype}); pass numbers.")
    if values.dtype.kind in "iu" and values.size:
        largest = max(int(values.max()), -int(values.min()))
        if largest > 2**53:
            warn(
                ScaleWarning,
                f"{name} holds integers up to {largest:.1e}, beyond the 2^53 up to which float64 "
                "is exact; subtract an offset first.",
            )
    dtype = precision_of(values)
    if not sparse.issparse(X):
        return read_array(X, name, dtype=dtype)
    X = X.astype(dtype, copy=False)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_csr(X: Any) -> sparse.csr_matrix:
    """Return a sparse matrix as CSR; entries in the same place are added in 64 bits."""
    if X.format == "coo" and X.dtype.kind in "biu":  # SciPy would add them in their own dtype
        X = X.astype(np.uint64 if X.dtype.kind == "u" else np.int64)
    return sparse.csr_matrix(X)


def precision_of(X: Any) -> np.dtype:
    """Return the precision in which X is computed with: float32, from float16 too, or float64."""
    single = X.dtype.kind == "f" and X.dtype.itemsize <= 4
    return np.dtype(np.float32 if single else np.float64)


def read_array(X: Any, name: str, **form: Any) -> Array:
    """Return np.asarray(X), or raise in words of our own; masked entries are refused."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):  # arithmetic would use them
        raise ValueError(f"{name} is a masked array with masked entries; fill or drop them first.")
    try:
        return np.asarray(X, **form)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        reason = str(error).rstrip(".")
        do = f"np.stack({name})" if reason.endswith("with a sequence") else "a numeric array"
        raise kind(f"{name} cannot be read as numbers: {reason}; pass {do}.") from error


def names_of_columns(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None for what is none."""
    if not hasattr(X, "columns"):
        return None
    return list(getattr(X, "column_names", X.columns))  # Arrow has its data in `columns`


def _read_frame(X: Any, names: list[Any]) -> Array:
    """Return a data frame as an array, or raise with the names of columns that are not numbers."""
    repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"X has several columns with the name {', '.join(repeated[:5])}; rename them."
        )
    columns, bad = [np.empty((X.shape[0], 0))] if not names else [], []
    for name in names:
        try:
            if str(getattr(X[name], "dtype", "")) == "category":
                raise TypeError("names, even 1 and 2")
            columns.append(as_floats(np.asarray(X[name]), str(name)))
        except (TypeError, ValueError):
            bad.append(str(name))
    if bad:
        raise ValueError(
            f"Column(s) {', '.join(map(repr, bad[:5]))} are not numeric or have missing values "
            "that are not NaN; drop, impute or encode them."
        )
    return np.column_stack(columns)


# Labels


def is_missing(value: Any) -> bool:
    """Return whether a label is missing: None, NaN, NaT, the NA of pandas, infinity, no text."""
    if isinstance(value, str | bytes):
        return not value.strip()
    if isinstance(value, float):
        return not math.isfinite(value)
    same = value == value  # False for NaN, no bool for the NA of pandas
    return value is None or not isinstance(same, bool | np.bool_) or not same


def read_labels(labels: Any, n: int | None = None) -> Array:
    """Return labels (n,) as all functions read them: missing ones are NaN in floats, else None.

    Missing are None, NaN, NaT, the NA of pandas, infinity, masked entries and empty text; only
    arrays of floats keep infinity, which are measurements. Dates become text.
    """
    values = np.asarray(on_host(labels))
    if n is not None and values.shape != (n,):
        raise ValueError(
            f"labels has shape {values.shape} but Y has {n} points; pass one for each."
        )
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
        is_date = values.dtype.kind == "M"
        values = np.datetime_as_string(values, unit="auto") if is_date else values.astype(str)
    elif values.dtype.kind in "OUS":
        if isinstance(labels, list | tuple):  # of text and NaN, NumPy makes text alone
            values = np.asarray(labels, dtype=object)
        missing = np.array([is_missing(value) for value in values.flat], bool).reshape(values.shape)
    else:
        missing = np.zeros(values.shape, bool)
    if isinstance(labels, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(labels)
    if not missing.any():
        return values
    if values.dtype.kind == "f":
        return np.where(missing, np.nan, values)
    values = values.astype(object)
    values[missing] = None
    return values


def grouped(labels: Any, n: int) -> tuple[Array, list[Any]]:
    """Return the number of the group of each point (n,), -1 without a label, and the groups."""
    values = read_labels(labels, n).tolist()
    found = {value for value in values if not is_missing(value)}
    whole = {int(x) if isinstance(x, float) and x.is_integer() else x for x in found}
    names = sorted(whole, key=str)  # "1", also where a missing label makes 1.0 of it
    numbers = {value: number for number, value in enumerate(names)}
    return np.array([numbers.get(value, -1) for value in values], dtype=int), names
