"""The data, affinities and parameters that are no good, or look so, and the doors they go to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from bad_inputs.cases import Case, Refused, Same
from problems.clouds import cloud
from problems.matrices import of_points
from problems.spectra import path_graph, star_graph

SELF_TUNING = {"knn": {"affinity": "knn"}, "dense": {"affinity": "dense"}}
AFFINITIES = {**SELF_TUNING, "radius": {"affinity": "radius", "epsilon": 4.0}}
# Without a number as epsilon, and whose last step differs from those before:
WITH_VARIABLE = {**AFFINITIES, "variable": {"affinity": "variable"}}
ESTIMATORS = {"HeatSketch": hs.HeatSketch, "DiffusionMap": hs.DiffusionMap}

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
or_variable = pytest.mark.parametrize("affinity", WITH_VARIABLE.values(), ids=WITH_VARIABLE)
self_tuning = pytest.mark.parametrize("affinity", SELF_TUNING.values(), ids=SELF_TUNING)


X = cloud(60, 4)
K = np.exp(-cdist(X, X, "sqeuclidean") / 4.0)
GRID = np.round(X * 256) / 256  # survives an offset of 1e4 in float32, of 1e8 in float64


def embed(make: Any, data: Any, n_components: int = 2, **parameters: Any) -> np.ndarray:
    return make(n_components, random_state=0, **parameters).fit_transform(data)


def matrix_of(diffusion: hs.Diffusion) -> np.ndarray:
    return of_points(diffusion)


def fitted_with(changes: dict[str, Any], make: Any = hs.HeatSketch, **affinity: Any) -> Any:
    return make(**({"n_components": 2} | affinity | changes)).fit(X)


# Rows 1-26: what is not a table of finite numbers is refused, at every door for points.

DOORS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda data, make=make: embed(make, data) for name, make in ESTIMATORS.items()},
    "diffusion": hs.diffusion,
    "gaussian_affinity": hs.gaussian_affinity,
    "ksum": hs.ksum,
}


def spoilt(value: Any, *places: tuple[int, int]) -> np.ndarray:
    data = X.copy()
    for place in places:
        data[place] = value
    return data


class Unreadable:
    """What a tensor on another device does when asked for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")


both_signs = spoilt(np.inf, (7, 2))
both_signs[7, 3] = -np.inf

UNUSABLE: dict[str, Case] = {
    "1-no-rows": Case("no rows", X[:0], Refused("0 sample(s)", "(0, 4)", "minimum of 2")),
    "2-no-columns": Case(
        "no columns", X[:, :0], Refused("0 feature(s)", "(60, 0)", "minimum of 1")
    ),
    "3-one-row": Case(
        "one row in `fit`; `transform` takes one",
        X[:1],
        Refused("1 sample(s)", "(1, 4)", "minimum of 2"),
    ),
    "6-path": Case(
        "a path", "table.csv", Refused("'table.csv'", "read the file first", error=TypeError)
    ),
    "6-scalar": Case("a number", 3.0, Refused("Expected 2D array", "reshape(-1, 1)")),
    "6-1d": Case(
        "one dimension", X[:, 0], Refused("Expected 2D array", "1D array", "reshape(-1, 1)")
    ),
    "6-3d": Case("three dimensions", X[None], Refused("3", "2")),
    "7-complex": Case(
        "complex numbers", X + 1j, Refused("Complex data not supported", "complex128")
    ),
    "7-complex-sparse": Case(
        "complex numbers, sparse", sparse.csr_matrix(X + 1j), Refused("Complex data not supported")
    ),
    "8-text": Case(
        "numbers in words", X.astype(str), Refused("X holds text or dates", "pass numbers")
    ),
    "8-words": Case("text", [["a", "b"]] * 5, Refused("X holds text or dates", "pass numbers")),
    "8-text-objects": Case(
        "numbers in words, as objects",
        X.astype(str).astype(object),
        Refused("text", "pass numbers"),
    ),
    "8-dates": Case(
        "dates", np.full((9, 2), "2020-01-01", "datetime64[D]"), Refused("dates", "numbers")
    ),
    "8-ragged": Case(
        "lists of different length",
        [[1.0, 2.0], [3.0]],
        Refused("X cannot be read as numbers", "pass a num"),
    ),
    "8-dicts": Case(
        "objects that are no numbers",
        [[{}, {}]] * 5,
        Refused("X cannot be read as numbers", "pass a numeric", error=TypeError),
    ),
    "14-masked": Case(
        "a masked array with masked entries",
        np.ma.masked_less(X, -1),
        Refused("masked entries", "fill or drop"),
    ),
    "22-other-device": Case(
        "a tensor on another device",
        Unreadable(),
        Refused("cuda:0", "Tensor.cpu()", error=TypeError),
    ),
    "26-nan": Case(
        "NaN", spoilt(np.nan, (7, 2), (9, 0)), Refused("NaN: 2 value", "row 7, column 2")
    ),
    "26-inf": Case(
        "infinity", spoilt(np.inf, (7, 2)), Refused("infinity: 1 value", "row 7, column 2")
    ),
    "26-minus-inf": Case(
        "minus infinity", spoilt(-np.inf, (59, 3)), Refused("infinity", "row 59, column 3")
    ),
    "26-both-signs": Case(
        "infinity of both signs", both_signs, Refused("infinity: 2 value", "row 7, column 2")
    ),
    "26-nan-float32": Case(
        "NaN in float32",
        spoilt(np.nan, (7, 2)).astype(np.float32),
        Refused("NaN: 1 value", "row 7, column 2", "drop or impute"),
    ),
    "26-nan-sparse": Case(
        "NaN in sparse points",
        sparse.csr_matrix(spoilt(np.nan, (7, 2))),
        Refused("NaN: 1 value", "row 7, column 2", "drop or impute"),
    ),
}


FRAME = pd.DataFrame(X, columns=list("abcd"))
missing = FRAME.astype("Float64")
missing.loc[3, "b"] = pd.NA
UNUSABLE_FRAMES: dict[str, Case] = {
    "8-text": Case(
        "data frame: a column of text", FRAME.assign(c="x"), Refused("'c'", "not numeric")
    ),
    "8-text-numbers": Case(
        "data frame: a column of numbers in words",
        FRAME.assign(c="1"),
        Refused("'c'", "not numeric"),
    ),
    "15-missing": Case("data frame: missing values", missing, Refused("'b'", "drop")),
    "15-categories": Case(
        "data frame: categories",
        FRAME.assign(c=pd.Categorical(["u", "v"] * 30)),
        Refused("'c'", "encode"),
    ),
    "15-number-categories": Case(
        "data frame: categories of numbers",
        FRAME.assign(d=pd.Categorical([1, 2] * 30)),
        Refused("'d'", "encode"),
    ),
    "15-dates": Case(
        "data frame: dates",
        FRAME.assign(a=pd.Timestamp("2020-01-01")),
        Refused("'a'", "not numeric"),
    ),
    "26-nan": Case(
        "data frame: NaN", FRAME.replace(X[7, 2], np.nan), Refused("NaN", "row 7", "column 'c'")
    ),
}


# Rows 9-36: odd forms and scales of good data give what the plain data give.


class ArrayLike:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(X, dtype=dtype)


def doubled() -> sparse.coo_matrix:
    """Return X with every entry in two halves, and a stored zero."""
    c = sparse.coo_matrix(X)
    entries = np.r_[c.data / 2, c.data / 2, 0.0]
    return sparse.coo_matrix((entries, (np.r_[c.row, c.row, 0], np.r_[c.col, c.col, 0])))


def unsorted() -> sparse.csr_matrix:
    columns = np.tile([3, 1, 0, 2], 60)
    entries = np.take_along_axis(X, columns.reshape(60, 4), axis=1).ravel()
    return sparse.csr_matrix((entries, columns, np.arange(0, 241, 4)), shape=X.shape)


def long_indices() -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


def read_only() -> np.ndarray:
    data = X.copy()
    data.flags.writeable = False
    return data


def sliced() -> np.ndarray:
    padded = np.zeros((120, 8))
    padded[::2, ::2] = X
    return padded[::2, ::2]


def integers(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    whole = np.round(X * 1.5) + (40 if np.dtype(dtype).kind == "u" else 0)
    return whole.astype(dtype), whole


HARMLESS: dict[str, Case] = {
    "9-objects": Case("objects that are numbers", X.astype(object), Same(X)),
    **{
        f"10-{t}": Case(t, data, Same(clean))
        for t in ("int8", "int16", "int32", "int64", "uint8")
        for data, clean in [integers(t)]
    },
    "11-bool": Case("booleans: as 0 and 1", X > 0, Same((X > 0).astype(float))),
    "13-big-endian": Case("the other byte order", X.astype(">f8"), Same(X)),
    "13-big-endian-single": Case(
        "the other byte order, float32", X.astype(">f4"), Same(X.astype(np.float32))
    ),
    "14-nothing-masked": Case(
        "a masked array with nothing masked",
        np.ma.masked_array(X, mask=np.zeros_like(X, bool)),
        Same(X),
    ),
    "15-frame": Case("data frame", FRAME, Same(X)),
    "15-nullable-frame": Case("data frame: nullable numbers", FRAME.astype("Float64"), Same(X)),
    "16-csr": Case("sparse, CSR", sparse.csr_matrix(X), Same(X, 1e-10)),
    "16-csc": Case("sparse, CSC", sparse.csc_matrix(X), Same(X, 1e-10)),
    "16-coo-array": Case("sparse, COO array", sparse.coo_array(X), Same(X, 1e-10)),
    "16-lil": Case("sparse, LIL", sparse.lil_matrix(X), Same(X, 1e-10)),
    "16-int64-indices": Case("sparse, indices of 64 bits", long_indices(), Same(X, 1e-10)),
    "17-duplicate-entries": Case(
        "sparse: duplicate entries and a stored zero", doubled(), Same(X, 1e-10)
    ),
    "17-unsorted-indices": Case("sparse: unsorted indices", unsorted(), Same(X, 1e-10)),
    "18-fortran": Case("Fortran order", np.asfortranarray(X), Same(X)),
    "18-negative-strides": Case(
        "negative strides", np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1], Same(X)
    ),
    "18-slices": Case("slices", sliced(), Same(X)),
    "19-read-only": Case("a read-only array", read_only(), Same(X)),
    "20-lists": Case("lists", X.tolist(), Same(X)),
    "20-array-protocol": Case("an object with `__array__`", ArrayLike(), Same(X)),
    "30-constant-column": Case("a constant column", np.c_[X, np.full(60, 3.7)], Same(X, 1e-12)),
    "30-zero-column": Case("a column of zeros", np.c_[X, np.zeros(60)], Same(X)),
    "30-huge-constant-column": Case(
        "a constant column of 1e300", np.c_[X, np.full(60, 1e300)], Same(X, 1e-12)
    ),
    "34-offset-exact": Case("data + 1e8, exactly", GRID + 1e8, Same(GRID, 1e-12)),
    "34-offset-rounded": Case(
        "data + 1e8: as data rounded by the addition", X + 1e8, Same((X + 1e8) - 1e8, 1e-12)
    ),
    "34-offset-float32": Case(
        "data + 1e4, exactly, float32",
        (GRID + 1e4).astype(np.float32),
        Same(GRID.astype(np.float32), 1e-6),
    ),
    "36-minus-zero": Case("-0.0", np.where(X > 1, -0.0, X), Same(np.where(X > 1, 0.0, X))),
}


# Rows 41-43: parameters.

BAD_PARAMETERS: dict[str, Case] = {
    "41-zero": Case("epsilon 0", {"epsilon": 0}, Refused("epsilon=0", "out of range", "> 0")),
    "41-negative": Case(
        "epsilon negative", {"epsilon": -1.0}, Refused("epsilon=-1.0", "out of range", "> 0")
    ),
    "41-nan": Case("epsilon NaN", {"epsilon": np.nan}, Refused("epsilon=nan", "not finite", "> 0")),
    "41-inf": Case(
        "epsilon infinite", {"epsilon": np.inf}, Refused("epsilon=inf", "not finite", "> 0")
    ),
    "41-typo": Case(
        "epsilon misspelt", {"epsilon": "ksmu"}, Refused("epsilon='ksmu'", "'self-tuning', 'ksum'")
    ),
    "41-none": Case(
        "epsilon `None`",
        {"epsilon": None},
        Refused("epsilon=None", "NoneType", "a number > 0", error=TypeError),
    ),
    "41-bool": Case(
        "epsilon `True`",
        {"epsilon": True},
        Refused("epsilon=True", "bool", "a number > 0", error=TypeError),
    ),
    "41-list": Case(
        "epsilon in a list",
        {"epsilon": [1.0]},
        Refused("epsilon=[1.0]", "list", "a number > 0", error=TypeError),
    ),
    "42-zero": Case(
        "time 0 (of `DiffusionMap`: the eigenvectors themselves)",
        {"time": 0},
        Refused("time=0", "1"),
    ),
    "42-negative": Case("time negative", {"time": -1}, Refused("time=-1", ">= 1")),
    "42-nan": Case("time NaN", {"time": np.nan}, Refused("time=nan", ">= 1")),
    "42-inf": Case("time infinite", {"time": np.inf}, Refused("time=inf", ">= 1")),
    "42-text": Case(
        "time a word that is not the rule",
        {"time": "long"},
        Refused("time='long'", ">= 1", error=TypeError),
    ),
    "42-empty": Case("no times", {"time": []}, Refused("time is an empty sequence", "one or more")),
    "42-one-of-two": Case(
        "one of several times negative", {"time": [1, -2]}, Refused("time=-2", ">= 1")
    ),
    "42-heat-zero": Case(
        "time 0 of the heat filter", {"time": 0, "filter": "heat"}, Refused("time=0", "> 0")
    ),
    "42-heat-negative": Case(
        "time negative, of the heat filter",
        {"time": -1, "filter": "heat"},
        Refused("time=-1", "> 0"),
    ),
    "43-zero": Case("n_components 0", {"n_components": 0}, Refused("n_components=0", ">= 1")),
    "43-negative": Case(
        "n_components negative", {"n_components": -3}, Refused("n_components=-3", ">= 1")
    ),
    "43-huge": Case(
        "n_components beyond 10^6",
        {"n_components": 10**6 + 1},
        Refused("n_components=1000001", "pass"),
    ),
    "43-float": Case(
        "n_components 2.0",
        {"n_components": 2.0},
        Refused("n_components=2.0", "an integer", error=TypeError),
    ),
    "n_neighbors-zero": Case(
        "n_neighbors 0, also where it is not used",
        {"n_neighbors": 0},
        Refused("n_neighbors=0", ">= 1"),
    ),
    "n_neighbors-float": Case(
        "n_neighbors 1.5",
        {"n_neighbors": 1.5},
        Refused("n_neighbors=1.5", "integer", error=TypeError),
    ),
    "alpha-nan": Case("alpha NaN", {"alpha": np.nan}, Refused("alpha=nan", "a number")),
}


# Rows 44-47: affinities given by the caller.

NORMALIZERS: dict[str, Callable[[Any], Any]] = {
    "symmetric": hs.symmetric_normalize,
    "bistochastic": hs.bistochastic_normalize,
    "markov": hs.markov_normalize,
    "from_affinity": hs.Diffusion.from_affinity,
    "HeatSketch": lambda K: hs.HeatSketch(2, affinity="precomputed").fit(K),
    "DiffusionMap": lambda K: hs.DiffusionMap(2, affinity="precomputed").fit(K),
}


def altered(i: int, j: int, value: float, mirrored: bool = True) -> np.ndarray:
    changed = K.copy()
    changed[i, j] = value
    if mirrored:
        changed[j, i] = value
    return changed


def without(i: int) -> np.ndarray:
    changed = K.copy()
    changed[i] = changed[:, i] = 0
    return changed


BAD_AFFINITIES: dict[str, Case] = {
    "14-masked": Case(
        "a masked array with masked entries",
        np.ma.masked_less(K, 0.1),
        Refused("masked entries", "fill or drop"),
    ),
    "46-negative": Case(
        "negative entries", altered(2, 3, -0.1), Refused("down to -0.1", "non-negative")
    ),
    "46-negative-sparse": Case(
        "negative entries, sparse", sparse.csr_matrix(altered(2, 3, -0.1)), Refused("down to -0.1")
    ),
    "46-asymmetric": Case(
        "not symmetric",
        altered(2, 3, 2.0, mirrored=False),
        Refused("not symmetric", "(K + K.T) / 2"),
    ),
    "46-asymmetric-sparse": Case(
        "not symmetric, sparse",
        sparse.csr_matrix(altered(2, 3, 2.0, False)),
        Refused("not symmetric"),
    ),
    "46-nan": Case("NaN", altered(2, 3, np.nan), Refused("contains NaN", "drop or impute")),
    "46-inf": Case("infinity", altered(2, 3, np.inf), Refused("infinity", "drop or impute")),
    "46-nan-sparse": Case(
        "NaN, sparse", sparse.csr_matrix(altered(2, 3, np.nan)), Refused("contains NaN")
    ),
    "46-not-square": Case("not square", K[:, :-1], Refused("(60, 59)", "square")),
    "46-zero-row": Case(
        "a row of zeros", without(4), Refused("1 point(s)", "no affinity to anything", "rows 4")
    ),
    "46-zero-row-sparse": Case(
        "a row of zeros, sparse", sparse.csr_matrix(without(4)), Refused("no affinity", "rows 4")
    ),
}

STAR = star_graph(6).toarray()
PATHS = {n: path_graph(n).toarray() for n in (4, 5)}
