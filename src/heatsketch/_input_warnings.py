"""Warnings of points that are probably not what was meant.

Few features decide all distances, one counts the rows, the matrix is one of distances, or the rows
of the table have names of genes, as in a table whose rows should be its columns.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from heatsketch._exceptions import ScaleWarning, warn
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array

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
    few = np.argsort(-shares, kind="stable")[: round(effective)]
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
