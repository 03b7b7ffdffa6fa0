"""Points: refused unless a table of finite numbers, and of any form the same."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import heatsketch as hs
from bad_inputs.cases import (
    Case,
    X,
    embed,
    every_estimator,
    or_variable,
    refused,
    rows_match,
    strictly,
)
from heatsketch.comparison.run import ESTIMATORS

GRID = np.round(X * 256) / 256  # survives an offset of 1e4 in float32, of 1e8 in float64
FRAME = pd.DataFrame(X, columns=list("abcd"))


def spoilt(value, *places):
    data = X.copy()
    for place in places:
        data[place] = value
    return data


class Unreadable:
    """What a tensor on another device does when asked for an array."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")


def missing():
    frame = FRAME.astype("Float64")
    frame.loc[3, "b"] = pd.NA
    return frame


def points(title, data, *words, kind=ValueError):
    return Case(title, lambda: hs.HeatSketch(2).fit(data), words, kind)


def gaps(title, data, *words):
    """Of a method that does not fill them."""
    return Case(title, lambda: hs.classical.PCA(2).fit(data), words)


UNUSABLE = [
    points("no rows", X[:0], "0 sample(s)", "(0, 4)", "minimum of 2"),
    points("a path", "t.csv", "'t.csv'", "read the file first", kind=TypeError),
    points("one dimension", X[:, 0], "Expected 2D array", "1D array", "reshape(-1, 1)"),
    points("text, numbers in words", X.astype(str), "text or dates", "pass numbers"),
    points("masked entries", np.ma.masked_less(X, -1), "masked entries", "fill or drop"),
    points(
        "an array of a device that NumPy cannot read",
        Unreadable(),
        "cuda:0",
        "Tensor.cpu()",
        kind=TypeError,
    ),
    gaps(
        "NaN, but for methods that fill it (`HeatEmbedding`, `HeatSketch`, `DiffusionMap`)",
        spoilt(np.nan, (7, 2), (9, 0)),
        *("NaN: 2 value", "row 7, column 2", "impute"),
    ),
    points(
        "a row, or a column, of NaN alone", spoilt(np.nan, (7, slice(None))), "row(s) without any"
    ),
    points("numbers beyond 1e60", X * 1e70, "numbers up to", "multiply it", "1e-60 and 1e+60"),
    gaps("missing values, as NaN", missing(), "NaN: 1 value", "row 3, column 'b'"),
    Case(
        "other columns in `transform`",
        lambda: hs.HeatSketch(2).fit(FRAME).transform(FRAME[list("badc")]),
        ("feature names should match",),
    ),
    Case(
        "other number of columns in `transform`",
        lambda: hs.HeatSketch(2).fit(X).transform(X[:, :3]),
        ("3 features", "4 features"),
    ),
]
OTHER_FORMS = [  # which the page does not list
    Case(
        "no rows in `transform`",
        lambda: hs.HeatSketch(2).fit(X).transform(X[:0]),
        ("0 sample(s)", "minimum of 1"),
    ),
    points("a column of text", FRAME.assign(c="x"), "'c'", "not numeric", "encode them"),
    points("dates", np.full((9, 2), "2020-01-01", "M8[D]"), "dates", "pass numbers"),
    points("lists of different length", [[1.0], [2.0, 3.0]], "cannot be read as numbers"),
    points("objects", [[{}, {}]] * 5, "cannot be read as numbers", kind=TypeError),
    points("infinity", spoilt(-np.inf, (59, 3)), "infinity: 1 value", "row 59, column 3"),
    points("sparse complex numbers", sparse.csr_matrix(X + 1j), "Complex data not supported"),
    points("words as objects", X.astype(str).astype(object), "text", "pass numbers"),
    points("a number", 3.0, "Expected 2D array"),
    points("both signs", spoilt(np.inf, (7, 2)) - spoilt(np.inf, (8, 2)), "not finite", "row 7"),
    gaps("float32", spoilt(np.nan, (7, 2)).astype(np.float32), "NaN: 1 value", "row 7, column 2"),
    points("sparse", sparse.csr_matrix(spoilt(np.nan, (7, 2))), "NaN: 1 value", "row 7, column 2"),
    points("tiny", X * 1e-70, "multiply it by a constant"),
    points("sparse and large", sparse.csr_matrix(X * 1e70), "multiply it by a constant"),
    points("digits", FRAME.assign(c="1"), "'c'", "not numeric"),
    points("categories", FRAME.assign(d=pd.Categorical([1, 2] * 30)), "'d'", "encode"),
    points("a column of dates", FRAME.assign(a=pd.Timestamp("2020-01-01")), "'a'", "not numeric"),
    points("a column of NaN", spoilt(np.nan, (slice(None), 1)), "column(s) without any", "drop"),
    gaps("NaN in a frame", FRAME.replace(X[7, 2], np.nan), "NaN", "row 7, column 'c'"),
]


DOORS = {
    **{name: lambda X, make=make: make(1).fit(X, y=[0, 1]) for name, make in ESTIMATORS.items()},
    "connecting_epsilon": hs.connecting_epsilon,
    "compare": hs.compare,
    "density_estimate": lambda X: hs.density_estimate(X, 1.0, 1.0),
    "diffusion": hs.diffusion,
    "distance_interval": lambda X: hs.uncertainty.distance_interval(X, 0, 1),
    "gaussian_affinity": hs.gaussian_affinity,
    "intrinsic_dimension": hs.intrinsic_dimension,
    "Kernel": lambda X: hs.Kernel(X, 1.0),
    "knn_accuracy": lambda X: hs.metrics.knn_accuracy(X, [0, 1]),
    "ksum": hs.ksum,
    "MixtureKernel": lambda X: hs.MixtureKernel([0.5, 0.5], X, [1.0, 1.0], epsilon=1.0),
    "NearIsometricProjection": lambda X: hs.NearIsometricProjection(1).fit(X),
    "NeighborIndex": hs.neighbors.NeighborIndex,
    "sample_discrepancy": lambda X: hs.uncertainty.sample_discrepancy(X, X),
    "scatter": hs.plot.scatter,
    "stability": lambda X: hs.metrics.stability([X, X]),
    "trustworthiness": lambda X: hs.metrics.trustworthiness(X, X),
}


FILLING = {"heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion"}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([[np.nan, np.nan], [2.0, 3.0], [4.0, 5.0]], "row(s) without any entry"),
        ([[np.nan, 1.0], [np.nan, 3.0], [np.nan, 5.0]], "column(s) without any entry"),
        ([["a", "b"]] * 3, "text or dates"),
    ],
    ids=["a row of nan", "a column of nan", "text"],
)
def test_all_points_come_in_by_the_same_door(door, bad, words):
    if "entry" in words and door not in FILLING:
        words = "NaN"
    with refused(ValueError, words):
        DOORS[door](bad)


# Odd forms of good data give what the plain data give; orders in memory, files mapped into it,
# sparse points and single precision: tests/estimators/test_estimators.py.


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array(X, dtype=dtype)


def doubled():
    """Return X with every entry in two halves, and a stored zero."""
    c = sparse.coo_matrix(X)
    entries = np.r_[c.data / 2, c.data / 2, 0.0]
    return sparse.coo_matrix((entries, (np.r_[c.row, c.row, 0], np.r_[c.col, c.col, 0])))


def unsorted():
    """Return X as CSR with unsorted columns, in indices of 64 bits."""
    columns = np.tile([3, 1, 0, 2], 60)
    entries = np.take_along_axis(X, columns.reshape(60, 4), axis=1).ravel()
    matrix = sparse.csr_matrix((entries, columns, np.arange(0, 241, 4)), shape=X.shape)
    matrix.indices = matrix.indices.astype(np.int64)
    return matrix


WHOLE = np.round(X * 1.5) + 40
FORMS = {  # given, the plain array, and the tolerance; 0 asks for the same bits
    "objects": (X.astype(object), X, 0),
    "int8": (WHOLE.astype(np.int8), WHOLE, 0),
    "half precision": (X.astype(np.float16), X.astype(np.float16).astype(np.float32), 0),
    "other byte order, single": (X.astype(">f4"), X.astype(np.float32), 0),
    "nothing masked": (np.ma.masked_array(X, mask=np.zeros_like(X, bool)), X, 0),
    "nullable frame": (FRAME.astype("Float64"), X, 0),
    "negative strides": (np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1], X, 0),
    "__array__": (ArrayLike(), X, 0),
    "minus zero": (np.where(X > 1, -0.0, X), np.where(X > 1, 0.0, X), 0),
    "a column of zeros": (np.c_[X, np.zeros(60)], X, 0),
    "LIL": (sparse.lil_matrix(X), X, 1e-10),
    "duplicate entries, a stored zero": (doubled(), X, 1e-10),
    "unsorted indices of 64 bits": (unsorted(), X, 1e-10),
    "a constant column": (np.c_[X, np.full(60, 3.7e20)], X, 1e-12),
    "an exact offset": (GRID + 1e8, GRID, 1e-12),
    "an offset that rounds": (X + 1e8, (X + 1e8) - 1e8, 1e-12),
    "float32": ((GRID + 1e4).astype(np.float32), GRID.astype(np.float32), 1e-6),
}


def fingerprint(data):
    """Hash the numbers of points in any form."""
    if sparse.issparse(data):
        names = ("data", "indices", "indptr", "row", "col", "rows")
        parts = [vars(data)[name] for name in names if name in vars(data)]
    else:
        parts = [data]
    digest = hashlib.sha256()
    for part in map(np.asarray, parts):
        digest.update(repr(part.tolist()).encode() if part.dtype == object else part.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize(("given", "clean", "tolerance"), FORMS.values(), ids=FORMS)
def test_harmless_forms(given, clean, tolerance):
    before = fingerprint(given)
    found = strictly(lambda: embed(hs.HeatSketch, given))
    rows_match(found, embed(hs.HeatSketch, clean), tolerance)
    assert fingerprint(given) == before


@every_estimator
@or_variable
@pytest.mark.parametrize(
    ("scale", "tolerance"), [(2.0**190, 0), (1e59, 1e-10), (2.0**-190, 0), (1e-59, 1e-10)]
)
def test_points_have_no_unit(scale, tolerance, affinity, make):
    scaled = affinity | ({"epsilon": 4.0 * scale**2} if "epsilon" in affinity else {})
    given = strictly(lambda: embed(make, X * scale, **scaled))
    rows_match(given, embed(make, X, **affinity), tolerance)


def fitted(make, unit=0, **options):
    """Return a function of points that returns coordinates, and the same of new points."""

    def numbers(P, scale):
        model = make(**options).fit(P)
        quality = list(getattr(model, "quality_", None) or [0.0])
        rows = model.transform(P[:9] * P.dtype.type(1.25)) if hasattr(model, "transform") else 0.0
        return [*(np.float64(found) / scale**unit for found in (model.embedding_, rows)), quality]

    return numbers


def gappy(P):
    return np.where(np.arange(P.size).reshape(P.shape) % 11 == 3, np.nan, P)


def inverse_and_slopes(P, scale):
    model = hs.HeatEmbedding(random_state=0).fit(P)
    points, slopes = model.inverse_transform(model.embedding_), model.sensitivity(P[:9])
    return [np.float64(points) / scale, np.float64(slopes) * scale]


def scales(P, scale):
    found = hs.ksum(P), hs.nearest_epsilon(P), hs.connecting_epsilon(P)
    lengths = np.array([found[0].epsilon, *found[1:]]) / scale**2
    kernel = hs.gaussian_affinity(P, epsilon=4.0 * scale**2)
    return [lengths, found[0].dimension, hs.intrinsic_dimension(P).dimension, kernel]


def marked(P, scale):
    found = hs.markers(P, np.arange(20))
    return [found.area, found.p_value, np.array([found.median, found.median_against]) / scale]


SEED = {"random_state": 0}
METRICS = hs.metrics
NUMBERS = {
    "free": fitted(hs.HeatEmbedding, **SEED),
    "free, of gaps": lambda P, scale: fitted(hs.HeatEmbedding, **SEED)(gappy(P), scale)[:2],
    "linear": fitted(hs.HeatEmbedding, layout="linear", **SEED),
    "dense": fitted(hs.HeatEmbedding, affinity="dense", epsilon="median", **SEED),
    "radius": fitted(hs.HeatEmbedding, affinity="radius", epsilon="ksum", **SEED),
    "variable": fitted(hs.HeatEmbedding, affinity="variable", **SEED),
    "manhattan": fitted(hs.HeatEmbedding, metric="manhattan", **SEED),
    "HeatSketch": fitted(hs.HeatSketch, **SEED),
    "DiffusionMap": fitted(hs.DiffusionMap),
    "MixtureDiffusion": fitted(hs.MixtureDiffusion, mixture=2, **SEED),
    "NearIsometricProjection": fitted(hs.NearIsometricProjection, 1, **SEED),
    "PCA": fitted(hs.classical.PCA, 1, n_components=2),
    "ClassicalMDS": fitted(hs.classical.ClassicalMDS, 1),
    "LandmarkMDS": fitted(hs.classical.LandmarkMDS, 1, landmarks=np.arange(0, 60, 3)),
    "MetricMDS": fitted(hs.classical.MetricMDS, 1),
    "NonmetricMDS": fitted(hs.classical.NonmetricMDS, 1),
    "Isomap": fitted(hs.classical.Isomap, 1),
    "LLE": fitted(hs.classical.LocallyLinearEmbedding),
    "LaplacianEigenmap": fitted(hs.classical.LaplacianEigenmap),
    "TSNE by scikit-learn": fitted(hs.classical.TSNE, perplexity=8, n_iter=300, **SEED),
    "TSNE": fitted(hs.classical.TSNE, method="exact", perplexity=8, n_iter=300, **SEED),
    "inverse_transform, sensitivity": inverse_and_slopes,
    "scales": scales,
    "markers": marked,
    "metrics": lambda P, scale: [
        METRICS.trustworthiness(P, X[:, :2], 5),
        METRICS.trustworthiness(X, P[:, :2], 5),
        METRICS.continuity(P, X[:, :2], 5),
    ],
    "audit of data": lambda P, scale: [hs.audit(P, X[:, :2], **SEED).trust],
    "audit of a picture": lambda P, scale: [hs.audit(X, P[:, :2], **SEED).trust],
    "compare": lambda P, scale: [
        [row.trustworthiness, row.log_L_geodesic, row.spearman, row.distances]
        for row in hs.compare(P, ["pca", "isomap", "heat-embedding"], seeds=1).rows
    ],
}


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(
    ("dtype", "exponents"), [(np.float32, (80, -80)), (np.float64, (80, 190, -190))]
)
def test_all_numbers_are_the_same_in_any_unit(dtype, exponents, numbers):
    """Up to the unit; squares of these are beyond float32, fourth powers beyond float64."""
    points = X.astype(dtype)
    expected = numbers(points, 1.0)
    for exponent in exponents:
        scale = 2.0**exponent
        found = numbers(points * dtype(scale), scale)
        for one, same in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-6, atol=1e-9 * np.nanmax(np.abs(same)))
