"""Whether what was read from a file fits together, before compiled loops run over it.

The digest of a file shows damage; these checks are for files that were made by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._typing import Array


def check_record(made: Any) -> None:
    """Raise TypeError if the fields of a record do not fit together."""
    check = _CHECKS.get(type(made).__name__)
    if check is not None:
        check(made)
    if hasattr(made, "get_params"):
        _check_estimator(made)


def check_sparse(data: Array, indices: Array, indptr: Array, shape: Any) -> None:
    """Raise TypeError unless these are the parts of a CSR matrix with entries inside it."""
    m, n = shape
    _require(all(a.ndim == 1 for a in (data, indices, indptr)), "the parts of a sparse matrix")
    integers = all(a.dtype.kind == "i" for a in (indices, indptr))
    _require(integers and data.dtype.kind in "fiub", "the types of a sparse matrix")
    _require(len(indptr) == m + 1 and len(indices) == len(data), "the sizes of a sparse matrix")
    rows = indptr[0] == 0 and indptr[-1] == len(data) and bool((np.diff(indptr) >= 0).all())
    _require(bool(rows), "the rows of a sparse matrix")
    _require(_within(indices, n), "the columns of a sparse matrix")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise TypeError(f"{what} do not fit together")


def _within(numbers: Array, n: int) -> bool:
    """Say whether all of these are numbers of n things."""
    if numbers.dtype.kind not in "iu":
        return False
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < n)


def _finite(values: Any) -> bool:
    stored = values.data if sparse.issparse(values) else np.asarray(values)
    return stored.dtype.kind in "fiub" and bool(np.isfinite(stored).all())


def _check_index(made: Any) -> None:
    points, frame = made.input_points, made._frame
    _require(points.ndim == 2 and _finite(points), "the points of an index")
    if frame is not None and frame.shift is not None:
        _require(frame.shift.shape == points.shape[1:], "points and their frame")


def _check_neighborhoods(made: Any) -> None:
    n, vertex, order = made.search.n, made.vertex, made._order
    _require(made._points.shape[0] == n, "neighbourhoods and their points")
    _require(vertex is None or _within(vertex, n), "points and vertices")
    if order is not None:
        _require(_within(order, n) and len(np.unique(order)) == len(order) == n, "an order")
    if getattr(made.search, "input_points", None) is not None:
        _require(made.search.input_points.shape == made._points.shape, "a search and its points")


def _check_neighbor_rows(made: Any) -> None:
    shape = np.shape(made.scales)
    _require(shape in ((), (made.neighborhoods.n,)) and _finite(made.scales), "local scales")


def _check_weighted_rows(made: Any) -> None:
    _require(made.weight.shape == (made.neighborhoods.n,), "weights of rows")


def _check_scaled_rows(made: Any) -> None:
    scaling, rows = made.scaling, made.affinity_rows
    n = len(scaling.s)
    vectors = [scaling.measure, scaling.row_sums]
    vectors += [] if scaling.density_weight is None else [scaling.density_weight]
    _require(all(v.shape == (n,) and _finite(v) for v in vectors), "the scaling of rows")
    found = getattr(getattr(rows, "affinity_rows", rows), "neighborhoods", None)
    _require(found is None or found.n == n, "rows and their scaling")
    if found is not None and rows.near is not None:
        _require(found._points.shape[1] == made.width, "the width of rows")


def _check_diffusion(made: Any) -> None:
    n = made.operator.n
    _require(made.measure.shape == (n,) and _finite(made.measure), "a measure and its operator")
    _require(made.vertex is None or _within(made.vertex, n), "points and vertices")
    _require(made.one_sided is None or made.one_sided.shape == (n, n), "an operator and its rows")
    scaling = getattr(made.extend, "scaling", None)
    _require(scaling is None or len(scaling.s) == n, "an operator and its rule for new points")


def _check_mixture_kernel(made: Any) -> None:
    kind: Any = type(made)
    parts = made.weights, made.means, made.covariances
    again = kind(*parts, made.epsilon, covariance_type="full", time=made.time)
    _require(again.n_components == made.n_components, "the components of a mixture")
    _require(again.n_features == made.n_features, "the features of a mixture")


def _check_cholesky_map(made: Any) -> None:
    r, m = made.pivots.shape
    arrays = made.origin, made._factor, made._mean, made._rotation
    shapes = [array.shape for array in arrays]
    _require(shapes == [(1, m), (r, r), (r,), (r, r)], "the arrays of a map")
    _require(all(_finite(array) for array in (made.pivots, *arrays)), "the arrays of a map")


def _check_estimator(made: Any) -> None:
    """Look at what rules for new points use: as many rows as vertices, as wide as the data."""
    diffusion = getattr(made, "diffusion_", None)
    if diffusion is not None:
        n, extend = diffusion.n, diffusion.extend
        _require(made._H.shape[:1] == (n,) and _finite(made._H), "coordinates and their diffusion")
        _require(made._H.shape[1] == made.embedding_.shape[1] + 1, "coordinates and embedding")
        _require(extend is None or extend.width == made.n_features_in_, "the number of features")
    found = getattr(made, "_neighborhoods", None) or getattr(made, "_rows", None)
    found = getattr(found, "neighborhoods", found)
    places = [getattr(made, name, None) for name in ("_R", "_Y")]
    places += [made._paths.T] if hasattr(made, "_paths") else []
    if found is not None:
        n = len(found._distances.indptr) - 1 if _is_sparse_given(found) else _count(found)
        _require(all(p is None or p.shape[0] == n for p in places), "places and their vertices")
        _check_width(found, made)
    near = getattr(made, "_near", None)
    if near is not None:
        n = len(near._D) if hasattr(near, "_D") else near._search.n
        _require(made.embedding_.shape[0] == n, "places and their points")
        _check_width(near, made)


def _is_sparse_given(found: Any) -> bool:
    return sparse.issparse(getattr(found, "_distances", None))


def _count(found: Any) -> int:
    """Return the number of vertices."""
    return len(found._distances) if hasattr(found, "_distances") else int(found.n)


def _check_width(found: Any, made: Any) -> None:
    """Raise unless new points are as wide as those that they are compared with."""
    for name in ("_points", "_X", "_distances", "_D"):
        compared = getattr(found, name, None)
        if compared is not None:
            _require(compared.shape[1] == made.n_features_in_, "the number of features")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "CholeskyMap": _check_cholesky_map,
    "Diffusion": _check_diffusion,
    "MixtureKernel": _check_mixture_kernel,
    "NeighborIndex": _check_index,
    "NeighborRows": _check_neighbor_rows,
    "Neighborhoods": _check_neighborhoods,
    "ScaledRows": _check_scaled_rows,
    "WeightedRows": _check_weighted_rows,
}
