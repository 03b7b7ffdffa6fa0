"""Points as users pass them to estimators: arrays, sparse matrices and columns of data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from heatsketch._array import data_hash
from heatsketch._checks import as_floats, check_finite, is_text, warn_of_rounding


def read_points(estimator: Any, X: Any, reset: bool, **accept: Any) -> Any:
    """Return the points X (n, d), float32 or float64 and finite, or raise.

    X is an array, a data frame or, with ``accept_sparse="csr"``, a sparse matrix. With `reset` the
    estimator gets the number and names of the features; otherwise X must have the same.
    """
    if hasattr(X, "columns"):
        _check_columns(X)  # scikit-learn converts data frames and compares names
    else:
        X = as_floats(X, "X")
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # check_finite names the place, and does not copy
        ensure_min_samples=2 if reset else 1,
        **accept,
    )
    check_finite(X, "X", getattr(estimator, "feature_names_in_", None))
    if reset:
        estimator._data_hash = data_hash(X)  # which files of the model tell
    return X


def _check_columns(X: Any) -> None:
    """Raise with the names of columns of a data frame that are equal, or are not of numbers."""
    names = list(getattr(X, "column_names", X.columns))  # the first is that of Arrow
    repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"X has several columns with the name {', '.join(repeated[:5])}; rename them."
        )
    bad = [str(name) for name in names if not _is_numeric(X[name], str(name))]
    if bad:
        raise ValueError(
            f"Column(s) {', '.join(map(repr, bad[:5]))} are not numeric or have missing values "
            "that are not NaN; drop, impute or encode them."
        )


def _is_numeric(column: Any, name: str) -> bool:
    values = np.asarray(column)
    categories = str(getattr(column, "dtype", "")) == "category"  # names, even 1 and 2
    if categories or is_text(values):
        return False
    warn_of_rounding(values, f"Column {name!r}")
    try:
        values.astype(float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
