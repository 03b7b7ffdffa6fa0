"""Checks of what users pass: numbers, choices, points, labels; warnings of likely slips.

Few features decide all distances, one counts the rows, the matrix is one of distances, or the rows
of the table have names of genes, as in a table whose rows should be its columns.
"""

import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_array, validate_data

from heatsketch._arrays import Array, Points, commonest, on_host, stacked_lists
from heatsketch._messages import ScaleWarning, name_rows, warn
from heatsketch._random import data_hash
from heatsketch._threads import row_tiles
from heatsketch._words import did_you_mean, no_parameter

_LISTS = ("list", "large_list", "fixed_size_list", "List", "Array")  # how Arrow, polars name them
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


_FARTHEST = 1e100  # place, whose square is a number


def check_places(places: Any, k: int) -> Array:
    """Return places (n, k) of some points, rows of NaN where there is none, or raise."""
    if hasattr(places, "to_numpy"):  # of a frame; NA is NaN
        places = places.to_numpy(dtype=np.float64, na_value=np.nan)
    P = np.ma.filled(np.ma.asarray(places, dtype=None), np.nan)
    if P.dtype.kind not in "iuf":
        raise TypeError(f"places is no table of numbers but of {P.dtype}; pass (n_samples, {k}).")
    P = P.astype(np.float64)
    if P.ndim != 2 or P.shape[1] != k:
        raise ValueError(f"places has shape {P.shape} but n_components={k}; pass (n_samples, {k}).")
    if (np.abs(P) > _FARTHEST).any():
        raise ValueError(
            f"places has infinite entries, or some beyond {_FARTHEST:g}; pass other numbers, NaN "
            "where a point had no place."
        )
    gaps = np.isnan(P)
    if (partly := np.flatnonzero(gaps.any(axis=1) & ~gaps.all(axis=1))).size:
        raise ValueError(
            f"places is known in part at rows {name_rows(partly)}; pass all coordinates, or NaN "
            "for all."
        )
    return P


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
    if not math.isfinite(w.sum()):
        raise ValueError(
            "sample_weight sums up to infinity; divide it by its largest entry, or pass "
            "np.exp(V - V.max()) for np.exp(V)."
        )
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


class Checked(NamedTuple):
    """Points that `check_points` has returned, and that nobody changes later."""

    points: Points


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
    keeps the points asks for a `copy`, because X may be changed in place later. Those that are
    `Checked` are returned as they are.
    """
    if isinstance(X, Checked):
        return X.points
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
    estimator: Any,
    X: Any,
    reset: bool,
    *,
    accept_sparse: bool = False,
    allow_nan: bool = False,
    copy: bool = False,
) -> Any:
    """Return the points X (n, d) as `check_points` does, or raise.

    X is an array, a data frame or, with `accept_sparse`, a sparse matrix. With `reset` the
    estimator gets the number and names of the features; otherwise X must have the same.
    """
    names = names_of_columns(X)
    if names is not None and (column := column_of_vectors(X)) is not X:
        X, names = column, None
    points = check_points(
        X if names is None else _read_frame(X, names),
        min_rows=2 if reset else 1,
        accept_sparse=accept_sparse,
        columns=names,
        allow_nan=allow_nan,
        copy=copy,
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
    X = as_csr(X) if sparse.issparse(X) else _stacked(X, name)
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
        raise kind(f"{name} cannot be read as numbers: {reason}; pass a numeric array.") from error


def holds_vectors(column: Any) -> bool:
    """Return whether a column, as an array or of pandas, polars or Arrow, has arrays as entries."""
    kind = str(getattr(column, "type", getattr(column, "dtype", "")))
    if kind != "object":
        return kind.startswith(_LISTS)
    there = (x for x in np.asarray(column).ravel() if not isinstance(x, float | None))
    return isinstance(next(there, None), np.ndarray | list | tuple)


def column_of_vectors(X: Any) -> Any:
    """Return the only column of a data frame, if its entries are arrays; anything else as it is."""
    names = names_of_columns(X) or ()
    return X[names[0]] if len(names) == 1 and holds_vectors(X[names[0]]) else X


def _stacked(X: Any, name: str) -> Array:
    """Return np.asarray(X), a column whose entries are arrays of one size as (n, d)."""
    X = column_of_vectors(X)
    do = "pass a one-dimensional array of numbers for each row, all of one size."
    is_column = hasattr(X, "to_numpy") and not hasattr(X, "columns")
    if is_column and not len(X):
        raise ValueError(f"{name} is a column without rows; {do}")
    if not holds_vectors(X) or getattr(X, "ndim", 1) != 1:
        return read_array(X, name)
    if type(X).__module__.startswith("polars"):
        with suppress(ImportError):  # of pyarrow, which takes less memory
            X = X.to_arrow()
    if hasattr(X, "type"):
        if str(X.type.value_type).startswith((*_LISTS, "string", "large_string")):
            raise ValueError(f"{name} holds lists of {X.type.value_type}; {do}")
        found, others = stacked_lists(X)
    else:
        X = np.asarray(X)
        dims = np.array([np.ndim(x) for x in X])
        if (deep := np.flatnonzero(dims > 1)).size:
            what = f"row {deep[0]} (rows count from 0) has {dims[deep[0]]} dimensions"
            raise ValueError(f"{name} holds arrays, but {what}; {do}")
        sizes = np.array([len(x) if np.ndim(x) == 1 else -1 for x in X])
        others = np.flatnonzero(sizes != commonest(sizes[dims == 1]))
        found = X if len(others) else np.concatenate(X).reshape(len(X), -1)
    if len(others):
        raise ValueError(
            f"{name} holds arrays, but not of one size: row {others[0]} differs from most (rows "
            f"count from 0); {do}"
        )
    return found


def names_of_columns(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None for what is none."""
    if type(X).__name__ == "LazyFrame":  # of polars
        raise TypeError("X is a LazyFrame, which holds no numbers yet; pass X.collect().")
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
    if vectors := [name for name in names if holds_vectors(X[name])]:
        raise ValueError(
            f"Column {str(vectors[0])!r} holds arrays, which are points by themselves; pass "
            f"X[{vectors[0]!r}]."
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


# Parts of the variance with which one feature may decide distances (a question), decides all (a
# warning), and is warned of if it only counts the rows.
MOST_OF_VARIANCE, _DOMINANT, _COUNTED = 0.8, 0.95, 0.5
_FEW, _FEW_OF = 4, 4  # features: fewer decide all, if they are less than one of so many
_LEAST_COUNTED = 20  # rows; 20 of 20 whole numbers are all different with probability 2e-8

feature_names: ContextVar[Sequence[Any] | None] = ContextVar("feature_names", default=None)


@contextmanager
def features_named(names: Sequence[Any] | None) -> Iterator[None]:
    """Let warnings within the block name features, if names are known."""
    token = feature_names.set(feature_names.get() if names is None else names)
    try:
        yield
    finally:
        feature_names.reset(token)


def warn_of_scales(X: Any, names: Sequence[Any] | None = None) -> None:
    """Warn when few features hold so much of the variance that they decide all distances.

    The mean squared distance of two rows is twice the sum of the variances of the columns. Without
    `names` the names of `features_named` are used. A counter of the rows is nearly always an id,
    and warned of if it has most of the variance.
    """
    shares = variance_shares(X)
    top, d = int(shares.argmax()), len(shares)
    few = deciding(shares)
    is_counted = False
    if shares[top] >= _COUNTED and (shares > 0).sum() >= 2:
        is_counted = is_counter(X[:, [top]].toarray().ravel() if sparse.issparse(X) else X[:, top])
    if not is_counted and not len(few):
        return
    few = np.array([top]) if is_counted else few
    names = feature_names.get() if names is None else names
    has_names = names is not None and len(names) == d
    named = ", ".join(repr(str(names[j])) if has_names else str(j) for j in few)  # type: ignore[index]
    part = f"{100 * shares[few].sum():.4g} % of the variance of the {d} features"
    if is_counted:
        message = (
            f"Feature {named} counts the rows, and carries {part}; leave it out (--exclude), "
            "unless these whole numbers in equal steps are a measurement."
        )
    else:
        many = len(few) > 1
        message = (
            f"Feature{'s' * many} {named} {'carry' if many else 'carries'} {part}, so that "
            f"distances are differences in {'these' if many else 'it'} alone; unless all are in "
            "the same unit, scale the features (StandardScaler; for a table standardize=True or "
            "--standardize)."
        )
    warn(ScaleWarning, message)


def deciding(shares: Array) -> Array:
    """Return the features that decide all distances, by their parts of the variance (d,); or none.

    1 / Σ share² is the effective number of features: k where k of them have the same part and the
    others none. It is small where few decide. Parts that fall from the first to the last are those
    of principal components, which are in one unit; one of them may decide all.
    """
    varying = np.count_nonzero(shares)
    effective = 1 / np.square(shares).sum() if varying else 0.0
    are_components = bool((np.diff(shares) <= 0).all())
    are_few = effective < min(_FEW, varying / _FEW_OF) and not are_components
    largest = np.argsort(-shares, kind="stable")
    few = largest[: round(effective)]
    if len(few) < effective and shares[few].sum() < MOST_OF_VARIANCE:
        few = largest[: len(few) + 1]
    decide = are_few and shares[few].sum() >= MOST_OF_VARIANCE  # not beside many small ones
    return few if varying >= 2 and (decide or shares.max() >= _DOMINANT) else few[:0]


def variance_shares(X: Any) -> Array:
    """Return the part of each feature in the sum of variances (d,); 0 exactly for constants."""
    if sparse.issparse(X):
        variances = mean_variance_axis(X.astype(np.float64, copy=False), 0)[1]
    else:  # an offset costs no digits
        tiles = (X[rows] - X[0].astype(np.float64) for rows in row_tiles(len(X)))
        sums = [(tile.sum(axis=0), np.square(tile).sum(axis=0)) for tile in tiles]
        mean, square = np.sum(sums, axis=0) / len(X)
        variances = square - mean**2
        gaps = np.isnan(variances)
        if gaps.any():
            variances[gaps] = np.nanvar(X[:, gaps].astype(np.float64), axis=0)
    return variances / (variances.sum() or 1.0)  # type: ignore[no-any-return]


def is_counter(column: Array) -> bool:
    """Return whether a column (n,) holds whole numbers, all different and in equal steps."""
    is_whole = len(column) >= _LEAST_COUNTED and np.isfinite(column).all()
    if not is_whole or (column != np.round(column)).any():
        return False
    steps = np.diff(np.sort(column))
    return bool(steps[0] > 0 and (steps == steps[0]).all())


def warn_if_distances(X: Array) -> None:
    """Warn if points (n, d) look like a matrix of distances."""
    n, d = X.shape
    if n == d > 2 and not X.diagonal().any() and X.min() == 0 < X.max() and (X == X.T).all():
        warn(
            UserWarning,
            f"X {X.shape} is symmetric with zeros on its diagonal: it looks like a matrix of "
            "distances, but its rows are taken as points; if they are distances, pass "
            "metric='precomputed' to a method that has it (affinity='precomputed' for the weights "
            "of a graph).",
        )


_CELL = re.compile(r"(.*[_:#-])?[ACGT]{10,}([_-].*)?")  # barcodes
_GENE = re.compile(r"ENS[A-Z]*G[0-9]{11}([.][0-9]+)?")  # of Ensembl
_USUAL_GENES = {
    *("ACTB", "GAPDH", "B2M", "MALAT1", "RPLP0", "EEF1A1", "TP53", "MT-CO1", "MT-ND1", "VIM"),
    *("CD3E", "CD4", "CD8A", "MKI67", "HPRT1", "RPL13A"),
}


def warn_if_transposed(rows: Iterable[Any], columns: Iterable[Any]) -> None:
    """Warn if names of rows are those of genes, or names of columns the barcodes of cells."""
    row_names = dict.fromkeys(name for name in rows if isinstance(name, str))
    column_names = [*map(str, columns)]
    usual = [name for name in row_names if name.upper() in _USUAL_GENES]
    genes = [name for name in row_names if _GENE.fullmatch(name)]
    cells = [name for name in column_names if _CELL.fullmatch(name)]
    if len(usual) > 2 or 2 * len(genes) > len(row_names) > 2:
        what = f"rows have names of genes ({(usual + genes)[0]}, ...)"
    elif 2 * len(cells) > len(column_names) > 2:
        what = f"columns have names of cells ({cells[0]}, ...)"
    else:
        return
    warn(
        UserWarning,
        f"The {what}, and each row is a point; transpose the table if cells are to be the points.",
    )
