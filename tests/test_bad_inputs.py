"""Bad inputs: each is refused with a reason, or warned of, or gives what clean data give.

The number that starts an id is the row of the table in docs/bad-inputs.md.
"""

import hashlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from problems.clouds import cloud
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


def strictly(function: Callable[[], Any]) -> Any:
    """Call with every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function()


def fingerprint(data: Any) -> str:
    if sparse.issparse(data):
        parts = [
            vars(data)[name]
            for name in ("data", "indices", "indptr", "row", "col", "rows")
            if name in vars(data)
        ]
    elif isinstance(data, pd.DataFrame):
        parts = [pd.util.hash_pandas_object(data)]
    else:
        parts = [data]
    digest = hashlib.sha256()
    for part in map(np.asarray, parts):
        digest.update(repr(part.tolist()).encode() if part.dtype == object else part.tobytes())
    return digest.hexdigest()


def refused(error: Any, *words: str) -> Any:
    """Expect an error whose message has all the words."""
    return pytest.raises(error, match="(?s)" + "".join(f"(?=.*{re.escape(w)})" for w in words))


def rows_match(given: np.ndarray, clean: np.ndarray, tolerance: float) -> None:
    if tolerance == 0:
        assert_array_equal(given, clean)
    else:
        assert_allclose(given, clean, rtol=0, atol=tolerance * np.abs(clean).max())


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

UNUSABLE: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "1-no-rows": (X[:0], ValueError, ("0 sample(s)", "(0, 4)", "minimum of 2")),
    "2-no-columns": (X[:, :0], ValueError, ("0 feature(s)", "(60, 0)", "minimum of 1")),
    "3-one-row": (X[:1], ValueError, ("1 sample(s)", "(1, 4)", "minimum of 2")),
    "6-scalar": (3.0, ValueError, ("Expected 2D array", "reshape(-1, 1)")),
    "6-1d": (X[:, 0], ValueError, ("Expected 2D array", "1D array", "reshape(-1, 1)")),
    "6-3d": (X[None], ValueError, ("3", "2")),
    "7-complex": (X + 1j, ValueError, ("Complex data not supported", "complex128")),
    "7-complex-sparse": (sparse.csr_matrix(X + 1j), ValueError, ("Complex data not supported",)),
    "8-text": (X.astype(str), ValueError, ("X holds text or dates", "pass numbers")),
    "8-words": ([["a", "b"]] * 5, ValueError, ("X holds text or dates", "pass numbers")),
    "8-text-objects": (X.astype(str).astype(object), ValueError, ("text", "pass numbers")),
    "8-dates": (np.full((9, 2), "2020-01-01", "datetime64[D]"), ValueError, ("dates", "numbers")),
    "8-ragged": ([[1.0, 2.0], [3.0]], ValueError, ("X cannot be read as numbers", "pass a num")),
    "8-dicts": ([[{}, {}]] * 5, TypeError, ("X cannot be read as numbers", "pass a numeric")),
    "14-masked": (np.ma.masked_less(X, -1), ValueError, ("masked entries", "fill or drop")),
    "22-other-device": (Unreadable(), TypeError, ("cuda:0", "Tensor.cpu()")),
    "26-nan": (spoilt(np.nan, (7, 2), (9, 0)), ValueError, ("NaN: 2 value", "row 7, column 2")),
    "26-inf": (spoilt(np.inf, (7, 2)), ValueError, ("infinity: 1 value", "row 7, column 2")),
    "26-minus-inf": (spoilt(-np.inf, (59, 3)), ValueError, ("infinity", "row 59, column 3")),
    "26-both-signs": (both_signs, ValueError, ("infinity: 2 value", "row 7, column 2")),
    "26-nan-float32": (
        spoilt(np.nan, (7, 2)).astype(np.float32),
        ValueError,
        ("NaN: 1 value", "row 7, column 2", "drop or impute"),
    ),
    "26-nan-sparse": (
        sparse.csr_matrix(spoilt(np.nan, (7, 2))),
        ValueError,
        ("NaN: 1 value", "row 7, column 2", "drop or impute"),
    ),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(("data", "error", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_data(data: Any, error: Any, words: tuple[str, ...], door: Any) -> None:
    with refused(error, *words):
        strictly(lambda: door(data))


FRAME = pd.DataFrame(X, columns=list("abcd"))
missing = FRAME.astype("Float64")
missing.loc[3, "b"] = pd.NA
UNUSABLE_FRAMES = {
    "8-text": (FRAME.assign(c="x"), ("'c'", "not numeric")),
    "8-text-numbers": (FRAME.assign(c="1"), ("'c'", "not numeric")),
    "15-missing": (missing, ("'b'", "drop")),
    "15-categories": (FRAME.assign(c=pd.Categorical(["u", "v"] * 30)), ("'c'", "encode")),
    "15-number-categories": (FRAME.assign(d=pd.Categorical([1, 2] * 30)), ("'d'", "encode")),
    "15-dates": (FRAME.assign(a=pd.Timestamp("2020-01-01")), ("'a'", "not numeric")),
    "26-nan": (FRAME.replace(X[7, 2], np.nan), ("NaN", "row 7", "column 'c'")),
}


@every_estimator
@pytest.mark.parametrize(("frame", "words"), UNUSABLE_FRAMES.values(), ids=UNUSABLE_FRAMES)
def test_unusable_frames_are_refused_by_column(frame: Any, words: Any, make: Any) -> None:
    with refused(ValueError, *words):
        strictly(lambda: embed(make, frame))


@every_estimator
@or_variable
def test_unusable_new_points(affinity: Any, make: Any) -> None:
    model = make(2, random_state=0, **affinity).fit(X)
    for bad, words in (
        (X[:0], ("0 sample(s)", "minimum of 1")),
        (X[:, :3], ("3 features", "4 features")),
        (X[0], ("Expected 2D array",)),
        (spoilt(np.nan, (5, 1)), ("NaN", "row 5, column 1")),
    ):
        with refused(ValueError, *words):
            model.transform(bad)


@every_estimator
def test_23_columns_in_another_order_or_renamed(make: Any) -> None:
    model = make(2, random_state=0).fit(FRAME)
    for bad in (FRAME[list("badc")], FRAME.rename(columns={"a": "z"})):
        with refused(ValueError, "feature names should match"):
            model.transform(bad)


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


# id -> (data, the clean data they must agree with, tolerance; 0 means bitwise)
HARMLESS: dict[str, tuple[Any, Any, float]] = {
    "9-objects": (X.astype(object), X, 0),
    **{f"10-{t}": (*integers(t), 0) for t in ("int8", "int16", "int32", "int64", "uint8")},
    "11-bool": (X > 0, (X > 0).astype(float), 0),
    "13-big-endian": (X.astype(">f8"), X, 0),
    "13-big-endian-single": (X.astype(">f4"), X.astype(np.float32), 0),
    "14-nothing-masked": (np.ma.masked_array(X, mask=np.zeros_like(X, bool)), X, 0),
    "15-frame": (FRAME, X, 0),
    "15-nullable-frame": (FRAME.astype("Float64"), X, 0),
    "16-csr": (sparse.csr_matrix(X), X, 1e-10),
    "16-csc": (sparse.csc_matrix(X), X, 1e-10),
    "16-coo-array": (sparse.coo_array(X), X, 1e-10),
    "16-lil": (sparse.lil_matrix(X), X, 1e-10),
    "16-int64-indices": (long_indices(), X, 1e-10),
    "17-duplicate-entries": (doubled(), X, 1e-10),
    "17-unsorted-indices": (unsorted(), X, 1e-10),
    "18-fortran": (np.asfortranarray(X), X, 0),
    "18-negative-strides": (np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1], X, 0),
    "18-slices": (sliced(), X, 0),
    "19-read-only": (read_only(), X, 0),
    "20-lists": (X.tolist(), X, 0),
    "20-array-protocol": (ArrayLike(), X, 0),
    "30-constant-column": (np.c_[X, np.full(60, 3.7)], X, 0),
    "30-zero-column": (np.c_[X, np.zeros(60)], X, 0),
    "30-huge-constant-column": (np.c_[X, np.full(60, 1e300)], X, 0),
    "34-offset-exact": (GRID + 1e8, GRID, 0),
    "34-offset-rounded": (X + 1e8, (X + 1e8) - 1e8, 0),
    "34-offset-float32": ((GRID + 1e4).astype(np.float32), GRID.astype(np.float32), 0),
    "36-minus-zero": (np.where(X > 1, -0.0, X), np.where(X > 1, 0.0, X), 0),
}


@every_estimator
@or_variable
@pytest.mark.parametrize(("data", "clean", "tolerance"), HARMLESS.values(), ids=HARMLESS)
def test_harmless(data: Any, clean: Any, tolerance: float, affinity: Any, make: Any) -> None:
    before = fingerprint(data)
    given = strictly(lambda: embed(make, data, **affinity))
    expected = embed(make, clean, **affinity)
    assert given.dtype == expected.dtype
    rows_match(given, expected, tolerance)
    assert fingerprint(data) == before


@every_estimator
@or_variable
def test_12_half_precision_is_computed_in_single(affinity: Any, make: Any) -> None:
    half = X.astype(np.float16)
    given = strictly(lambda: embed(make, half, **affinity))
    assert given.dtype == np.float32
    assert_array_equal(given, embed(make, half.astype(np.float32), **affinity))


def test_16_a_sparse_offset_that_would_cost_digits_is_refused() -> None:
    with refused(ValueError, "exponent of sparse points", "X.toarray()"):
        hs.gaussian_affinity(sparse.csr_matrix(X + 1e8), epsilon=4.0)


@every_estimator
@or_variable
def test_19_memory_maps(affinity: Any, make: Any, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_array_equal(
        strictly(lambda: embed(make, mapped, **affinity)), embed(make, X, **affinity)
    )


SCALES = {
    "31-2^500": (2.0**500, 0),
    "31-1e150": (1e150, 1e-10),
    "32-2^-500": (2.0**-500, 0),
    "32-1e-150": (1e-150, 1e-10),
}
EXTREME_SCALES = {
    "31-2^600": (2.0**600, 0),
    "31-1e200": (1e200, 1e-10),
    "31-1e307": (1e307, 1e-10),
    "32-2^-600": (2.0**-600, 0),
    "32-1e-200": (1e-200, 1e-10),
}


@every_estimator
@or_variable
@pytest.mark.parametrize(("scale", "tolerance"), SCALES.values(), ids=SCALES)
def test_squares_of_any_scale(scale: float, tolerance: float, affinity: Any, make: Any) -> None:
    scaled = affinity | ({"epsilon": 4.0 * scale**2} if "epsilon" in affinity else {})
    given = strictly(lambda: embed(make, X * scale, **scaled))
    rows_match(given, embed(make, X, **affinity), tolerance)


@every_estimator
@self_tuning
@pytest.mark.parametrize(("scale", "tolerance"), EXTREME_SCALES.values(), ids=EXTREME_SCALES)
def test_scales_beyond_squares(scale: float, tolerance: float, affinity: Any, make: Any) -> None:
    given = strictly(lambda: embed(make, X * scale, **affinity))
    rows_match(given, embed(make, X, **affinity), tolerance)


@every_estimator
@pytest.mark.parametrize(
    ("affinity", "smallest"),
    [("knn", 2.0**-1074), ("dense", 2.0**-1022)],
    ids=["36-subnormal-knn", "36-smallest-normal-dense"],  # dense keeps scales in data units
)
def test_the_smallest_numbers(affinity: str, smallest: float, make: Any) -> None:
    whole = np.round(X * 1000)
    given = strictly(lambda: embed(make, whole * smallest, affinity=affinity))
    assert_array_equal(given, embed(make, whole, affinity=affinity))


@pytest.mark.parametrize("scale", [1e200, 1e-200], ids=["31-1e200", "32-1e-200"])
def test_a_bandwidth_that_is_no_number_is_refused(scale: float) -> None:
    for affinity in ("knn", "dense", "radius"):
        for epsilon in ("ksum", "median", "nearest", 1.0):
            with refused(ValueError, "outside the range of float64", "rescale", "self-tuning"):
                strictly(
                    lambda a=affinity, e=epsilon: hs.diffusion(X * scale, affinity=a, epsilon=e)
                )


def test_34_35_kernel_entries_far_from_the_origin() -> None:
    """Two clusters at ±1e6, of unit width, in float32: the exponent keeps 8 digits."""
    data = np.r_[GRID + 1e6, GRID - 1e6].astype(np.float32)
    exact = np.exp(-cdist(data.astype(float), data.astype(float), "sqeuclidean") / 4.0)
    assert_allclose(hs.gaussian_affinity(data, 4.0), exact, rtol=1e-7, atol=0)


# Row 10, 33: facts about scales that change the answer are warned of.


@every_estimator
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_10_integers_beyond_float64(form: Any, dtype: Any, make: Any) -> None:
    whole = np.round(X * 1e6).astype(np.int64).astype(dtype) + dtype(2**53 + 2**30)
    with pytest.warns(hs.ScaleWarning, match=r"integers up to 9.0e\+15, beyond the 2\^53"):
        make(2, random_state=0).fit(form(whole))


@every_estimator
@self_tuning
def test_33_one_feature_decides(affinity: Any, make: Any) -> None:
    data = X * [1, 1, 1e12, 1]
    with pytest.warns(hs.ScaleWarning, match="Feature 2 carries 100 % .* scale the features"):
        given = embed(make, data, **affinity)
    rows_match(given, embed(make, X[:, 2:3], **affinity), 1e-9)


@every_estimator
def test_33_the_feature_is_named_as_its_column(make: Any) -> None:
    data = pd.DataFrame(X * [1, 1, 1e12, 1], columns=["length", "width", "mass", "age"])
    with pytest.warns(hs.ScaleWarning, match="Feature 'mass' carries 100 %"):
        make(2, random_state=0).fit(data)
    with pytest.warns(hs.ScaleWarning, match="Feature 2 carries 100 %"):
        make(2, random_state=0).fit(data.to_numpy())


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_33_the_warning_is_for_unequal_scales_only(form: Any, scale: float) -> None:
    strictly(lambda: hs.diffusion(form(X * scale)))
    strictly(lambda: hs.diffusion(form(X * scale * [1, 1, 1e-12, 1])))
    with pytest.warns(hs.ScaleWarning, match="Feature 1 carries"):
        hs.diffusion(form(X * scale * [1e-5, 1, 1e-5, 1e-5]))


# Rows 27-29: duplicates.

SAME = np.full((20, 3), 0.1)


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("time", [1, 8, 100])
def test_27_one_point_many_times(time: int, normalization: str, affinity: str, make: Any) -> None:
    with pytest.warns(hs.ScaleWarning, match=r"same affinities.*no information.*smaller epsilon"):
        model = make(2, time, affinity=affinity, epsilon=1.0, normalization=normalization).fit(SAME)
    assert_array_equal(model.embedding_, 0)
    assert_array_equal(model.transform(SAME[:3]), 0)


@pytest.mark.parametrize(
    ("affinity", "rule"),
    [(a, r) for a in ("knn", "dense", "radius") for r in ("ksum", "median", "nearest")]
    + [("knn", "self-tuning"), ("dense", "self-tuning")],
)
def test_27_one_point_has_no_scale(affinity: str, rule: str) -> None:
    with refused(ValueError, "distances are zero", "pass distinct points"):
        hs.diffusion(SAME, affinity=affinity, epsilon=rule)


@every_estimator
def test_28_duplicates_leave_a_neighbour_graph_as_it_is(make: Any) -> None:
    twice = strictly(lambda: embed(make, np.r_[X, X, X[:7]]))
    assert_array_equal(twice[60:120], twice[:60])
    assert_array_equal(twice[120:], twice[:7])
    rows_match(twice[:60], embed(make, X), 1e-10)


@every_estimator
@pytest.mark.parametrize("affinity", [AFFINITIES["dense"], AFFINITIES["radius"]])
def test_28_duplicates_share_a_row(affinity: Any, make: Any) -> None:
    twice = strictly(lambda: embed(make, np.r_[X, X], **affinity))
    rows_match(twice[60:], twice[:60], 1e-12)
    # A sample taken twice has the density of the sample: the same diffusion, the same functions.
    if make is hs.DiffusionMap:
        rows_match(twice[:60], embed(make, X, **affinity), 1e-10)


def test_29_rules_for_epsilon_look_at_distances_that_are_not_zero() -> None:
    heap = np.r_[np.repeat(X[:1], 100, axis=0), X]
    d2 = cdist(heap, heap, "sqeuclidean")
    chosen = hs.diffusion(heap, affinity="dense", epsilon="median").epsilon
    assert chosen == pytest.approx(np.median(d2[d2 > 0]), rel=1e-12)
    d2[d2 == 0] = np.inf
    chosen = hs.diffusion(heap, affinity="dense", epsilon="nearest").epsilon
    alone = d2[101:].min(axis=1)  # the copies have a neighbour at distance 0, which does not count
    assert chosen == pytest.approx(2 * alone.mean(), rel=1e-12)


@every_estimator
def test_29_a_heap_of_duplicates_leaves_a_neighbour_graph_as_it_is(make: Any) -> None:
    heap = np.r_[X, np.repeat(X[:1], 100, axis=0)]
    given = strictly(lambda: embed(make, heap))
    rows_match(given[:60], embed(make, X), 1e-10)
    assert_array_equal(given[60:], np.repeat(given[:1], 100, axis=0))


# Rows 37-40: points too far apart, too close together.


def matrix_of(diffusion: hs.Diffusion) -> np.ndarray:
    return diffusion.operator @ np.eye(diffusion.n)


@every_affinity
def test_37_groups_far_apart_diffuse_on_their_own(affinity: Any) -> None:
    Z = cloud(40, 4, seed=1)
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 60, 40\)"):
        together = hs.diffusion(np.r_[X, Z + 1e3], **affinity)
    assert together.diagnostics["components"] == 2
    assert together.diagnostics["isolated"] == 0
    A = matrix_of(together)
    assert_array_equal(A[:60, 60:], 0)
    assert_allclose(A[:60, :60], matrix_of(hs.diffusion(X, **affinity)), rtol=1e-9, atol=1e-12)
    assert_allclose(A[60:, 60:], matrix_of(hs.diffusion(Z, **affinity)), rtol=1e-9, atol=1e-12)


@or_variable
def test_37_the_map_keeps_the_component_among_its_coordinates(affinity: Any) -> None:
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.DiffusionMap(1, **affinity).fit(np.r_[X, cloud(40, 4, seed=1) + 1e3])
    assert model.eigenvalues_[0] == pytest.approx(1, abs=1e-10)
    one, other = model.embedding_[:60], model.embedding_[60:]
    assert np.ptp(one) < 1e-7
    assert np.ptp(other) < 1e-7
    assert abs(one.mean() - other.mean()) > 1


@pytest.mark.parametrize(
    "chosen",
    [
        *AFFINITIES.values(),
        {"affinity": "knn", "epsilon": 4.0},
        {"affinity": "dense", "epsilon": 4.0},
    ],
    ids=["knn", "dense", "radius", "knn-number", "dense-number"],
)
@pytest.mark.parametrize("far", [1e3, 1e20], ids=["38-far", "38-1e20"])
def test_isolated_points_stand_alone(far: float, chosen: dict[str, Any]) -> None:
    with pytest.warns(hs.DisconnectedWarning, match=r"sizes 60, 1\).*points 60 stand alone"):
        d = hs.diffusion(np.r_[X, np.full((1, 4), far)], **chosen)
    assert d.diagnostics["isolated"] == 1
    A = matrix_of(d)
    assert_allclose(A[60], np.eye(61)[60], rtol=0, atol=1e-12)
    assert_allclose(A[:60, :60], matrix_of(hs.diffusion(X, **chosen)), rtol=1e-9, atol=1e-12)
    G = np.random.default_rng(2).normal(size=(61, 5))
    Y = hs.sketch(d.operator, hs.Power(8), G=G, deflate=False)
    assert_allclose(Y[60], G[60] / np.sqrt(5), rtol=1e-12)


@self_tuning
@every_estimator
def test_38_a_point_so_far_off_that_the_others_are_one(make: Any, affinity: Any) -> None:
    with refused(ValueError, "Around point(s) 0, 1", "too small for float64", "leave out"):
        embed(make, np.r_[X, np.full((1, 4), 1e200)], **affinity)


@every_estimator
@every_affinity
def test_38_most_points_isolated(affinity: Any, make: Any) -> None:
    spread = np.r_[X[:20] * 0.1, X[20:] * 1e4]
    with refused(ValueError, "40 of 60 points", "bandwidth is too small", "larger epsilon", "ksum"):
        embed(make, spread, **(affinity | {"epsilon": 1.0}))


@every_estimator
@every_affinity
@pytest.mark.parametrize("epsilon", [1e-9, 1e-300])
def test_39_all_points_isolated(epsilon: float, affinity: Any, make: Any) -> None:
    with refused(ValueError, "60 of 60 points", "bandwidth is too small", "larger epsilon"):
        embed(make, X, **(affinity | {"epsilon": epsilon}))


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
@pytest.mark.parametrize("epsilon", [1e18, 1e30, 1e300])
def test_40_epsilon_so_large_that_all_affinities_are_one(
    epsilon: float, affinity: str, make: Any
) -> None:
    with pytest.warns(hs.ScaleWarning, match="no information.* smaller epsilon"):
        given = embed(make, X, affinity=affinity, epsilon=epsilon)
    assert_array_equal(given, 0)


@every_estimator
@pytest.mark.parametrize("affinity", ["dense", "radius"])
def test_40_a_large_epsilon_that_still_says_something(affinity: str, make: Any) -> None:
    assert np.ptp(strictly(lambda: embed(make, X, affinity=affinity, epsilon=1e10, time=1))) > 0


@every_estimator
def test_40_a_neighbour_graph_has_a_shape_at_any_epsilon(make: Any) -> None:
    assert np.ptp(strictly(lambda: embed(make, X, epsilon=1e300))) > 0


@or_variable
def test_38_new_points_out_of_reach(affinity: Any) -> None:
    model = hs.HeatSketch(3, random_state=0, **affinity).fit(X)
    far = np.array([[1e4] * 4, [1e150] * 4, [-1.7e308] * 4, X[5]])
    with pytest.warns(hs.ScaleWarning, match=r"rows 0, 1, 2\) are too far") as caught:
        Y = model.transform(far)
    assert not any(issubclass(w.category, RuntimeWarning) for w in caught)
    assert np.isfinite(Y).all()
    assert_allclose(Y[3], model.embedding_[5], rtol=1e-9, atol=1e-12)
    with pytest.warns(hs.ScaleWarning):
        rows = model.diffusion_.extend(far[:1])
    assert np.nonzero(np.asarray(rows @ np.eye(60))[0])[0] == [cdist(far[:1], X).argmin()]


@every_affinity
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_38_new_points_on_the_way_out(affinity: Any) -> None:
    """Where affinities fade from 1 to 1e-320 and to 0, no number overflows."""
    model = hs.HeatSketch(3, random_state=0, **affinity).fit(X)
    away = np.linspace(1, 3000, 2000)[:, None] * [[0.5, 0.5, 0.5, 0.5]]
    with pytest.warns(hs.ScaleWarning, match="too far") as caught:
        Y = model.transform(away)
    assert {w.category for w in caught} == {hs.ScaleWarning}
    assert np.abs(Y).max() < 100 * np.abs(model.embedding_).max()


# Rows 41-43: parameters.

BAD_PARAMETERS: dict[str, tuple[dict[str, Any], Any, tuple[str, ...]]] = {
    "41-zero": ({"epsilon": 0}, ValueError, ("epsilon=0", "out of range", "> 0")),
    "41-negative": ({"epsilon": -1.0}, ValueError, ("epsilon=-1.0", "out of range", "> 0")),
    "41-nan": ({"epsilon": np.nan}, ValueError, ("epsilon=nan", "not finite", "> 0")),
    "41-inf": ({"epsilon": np.inf}, ValueError, ("epsilon=inf", "not finite", "> 0")),
    "41-typo": ({"epsilon": "ksmu"}, ValueError, ("epsilon='ksmu'", "'self-tuning', 'ksum'")),
    "41-none": ({"epsilon": None}, TypeError, ("epsilon=None", "NoneType", "a number > 0")),
    "41-bool": ({"epsilon": True}, TypeError, ("epsilon=True", "bool", "a number > 0")),
    "41-list": ({"epsilon": [1.0]}, TypeError, ("epsilon=[1.0]", "list", "a number > 0")),
    "42-zero": ({"time": 0}, ValueError, ("time=0", "1")),
    "42-negative": ({"time": -1}, ValueError, ("time=-1", ">= 1")),
    "42-nan": ({"time": np.nan}, ValueError, ("time=nan", ">= 1")),
    "42-inf": ({"time": np.inf}, ValueError, ("time=inf", ">= 1")),
    "42-text": ({"time": "long"}, TypeError, ("time='long'", ">= 1")),
    "42-empty": ({"time": []}, ValueError, ("time is an empty sequence", "one or more")),
    "42-one-of-two": ({"time": [1, -2]}, ValueError, ("time=-2", ">= 1")),
    "42-heat-zero": ({"time": 0, "filter": "heat"}, ValueError, ("time=0", "> 0")),
    "42-heat-negative": ({"time": -1, "filter": "heat"}, ValueError, ("time=-1", "> 0")),
    "43-zero": ({"n_components": 0}, ValueError, ("n_components=0", ">= 1")),
    "43-negative": ({"n_components": -3}, ValueError, ("n_components=-3", ">= 1")),
    "43-huge": ({"n_components": 10**6 + 1}, ValueError, ("n_components=1000001", "pass")),
    "43-float": ({"n_components": 2.0}, TypeError, ("n_components=2.0", "an integer")),
    "n_neighbors-zero": ({"n_neighbors": 0}, ValueError, ("n_neighbors=0", ">= 1")),
    "n_neighbors-float": ({"n_neighbors": 1.5}, TypeError, ("n_neighbors=1.5", "integer")),
    "alpha-nan": ({"alpha": np.nan}, ValueError, ("alpha=nan", "a number")),
}


@every_estimator
@every_affinity
@pytest.mark.parametrize(("changes", "error", "words"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameters(
    changes: dict[str, Any], error: Any, words: tuple[str, ...], affinity: Any, make: Any
) -> None:
    if make is hs.DiffusionMap and "filter" not in changes and "time" in changes:
        if changes["time"] == 0:  # the eigenvectors themselves: tests/estimators
            return
        words = tuple(word.replace(">= 1", ">= 0") for word in words)
    with refused(error, *words):
        strictly(lambda: make(**({"n_components": 2} | affinity | changes)).fit(X))


def test_41_43_parameters_of_the_functions() -> None:
    for epsilon, error in ((0, ValueError), (np.nan, ValueError), (None, TypeError)):
        with refused(error, f"epsilon={epsilon}", "> 0"):
            hs.gaussian_affinity(X, epsilon)
    for epsilon in ("ksmu", "self-tuning"):  # local scales make no `epsilon`
        with refused(ValueError, f"epsilon='{epsilon}'", "'ksum', 'median', 'nearest'"):
            hs.gaussian_affinity(X, epsilon)
    for k in (0, 10**6 + 1, 10**12):
        with refused(ValueError, f"n_components={k}", ">= 1 and <= 1000000"):
            hs.sketch(K, hs.Power(1), k)


def test_42_whole_powers_of_the_sketch() -> None:
    with refused((TypeError, ValueError), "time=1.5", "whole", "filter='heat'"):
        hs.HeatSketch(2, 1.5).fit(X)
    assert_array_equal(embed(hs.HeatSketch, X, time=2.0), embed(hs.HeatSketch, X, time=2))


@pytest.mark.parametrize("affinity", [AFFINITIES["dense"], AFFINITIES["radius"]])
def test_42_broken_powers_of_the_map(affinity: Any) -> None:
    model = hs.DiffusionMap(2, 1.5, **affinity).fit(X)
    assert_allclose(
        model.embedding_, model.eigenvectors_ * model.eigenvalues_**1.5, rtol=0, atol=1e-9
    )


def test_42_no_time_at_all() -> None:
    G = np.random.default_rng(3).normal(size=(60, 4))
    A = hs.symmetric_normalize(K)
    assert_allclose(hs.sketch(A, hs.Power(0), G=G, deflate=False), G / 2, rtol=1e-14)


def late(make: Any, time: float, affinity: Any) -> tuple[np.ndarray, float]:
    """Return the first column at a time far below float64, and the logarithm of its size."""
    with pytest.warns(hs.ScaleWarning, match="beyond float64.*log_scale"):
        model = make(2, time, random_state=0, **affinity).fit(X)
    column = model.embedding_[:, 0]
    size = np.abs(column).max()
    return column / size, np.log(size) + model.diagnostics_["log_scale"]


@every_estimator
@every_affinity
def test_42_a_million_steps(affinity: Any, make: Any) -> None:
    """Only λ_1^p r_1 is left, given divided by e^log_scale: always of one shape, λ_1 a step."""
    column, size = late(make, 1e6, affinity)
    earlier, earlier_size = late(make, 10**6 - 1000, affinity)
    assert_allclose(column, earlier, rtol=0, atol=1e-9)
    lam = hs.DiffusionMap(1, **affinity).fit(X).eigenvalues_[0]
    assert size - earlier_size == pytest.approx(1000 * np.log(lam), rel=1e-9)
    if "knn" not in affinity.values():  # whose last step is one-sided
        r = hs.DiffusionMap(1, **affinity).fit(X).eigenvectors_[:, 0]
        assert_allclose(column / column[0], r / r[0], rtol=0, atol=1e-8 * np.abs(r / r[0]).max())
        if make is hs.DiffusionMap:
            assert size == pytest.approx(1e6 * np.log(lam) + np.log(np.abs(r).max()), rel=1e-9)


@or_variable
def test_54_embeddings_whose_squares_underflow(affinity: Any) -> None:
    """At sizes of 1e-200 the numbers would do, their distances would be zero: given scaled."""
    lam = hs.DiffusionMap(1, **affinity).fit(X).eigenvalues_[0]
    time = round(np.log(1e-200) / np.log(lam))
    for make in ESTIMATORS.values():
        models = []
        for t in (time, time + 1):
            with pytest.warns(hs.ScaleWarning, match="divided by"):
                models.append(make(1, t, random_state=0, **affinity).fit(X))
        scales = [m.diagnostics_["log_scale"] for m in models]
        sizes = [
            np.log(np.abs(m.embedding_).max()) + scale
            for m, scale in zip(models, scales, strict=True)
        ]
        assert abs(sizes[0] - np.log(1e-200)) < np.log(1e5)
        assert (pdist(models[0].embedding_) > 0).any()
        ratio = models[1].embedding_ / models[0].embedding_ * np.exp(scales[1] - scales[0])
        assert_allclose(ratio, lam, rtol=1e-8)


# Rows 4, 5 and few points.


@every_affinity
def test_4_two_points(affinity: Any) -> None:
    """K = [[1, c], [c, 1]], c = 1/e: λ = (1 - c)/(1 + c), coordinates ±λ^t."""
    lam = (1 - np.exp(-1)) / (1 + np.exp(-1))
    model = hs.DiffusionMap(1, 3, **(affinity | {"epsilon": 1.0, "n_neighbors": 1}))
    Y = strictly(lambda: model.fit_transform([[5.0], [6.0]]))
    assert_allclose(np.sort(Y.ravel()), [-(lam**3), lam**3], rtol=1e-12)
    Y = embed(hs.HeatSketch, [[5.0], [6.0]], 7, **(affinity | {"n_neighbors": 1}))
    assert Y.shape == (2, 7)
    assert_allclose(Y[0], -Y[1], rtol=1e-9)


@every_affinity
def test_4_three_points(affinity: Any) -> None:
    """Equilateral, c = 1/e: λ = (1 - c)/(1 + 2c) twice; Σ (r(i) - r(j))² = 1/π_i + 1/π_j = 6."""
    corners = np.eye(3) / np.sqrt(2)
    lam = (1 - np.exp(-1)) / (1 + 2 * np.exp(-1))
    Y = embed(hs.DiffusionMap, corners, **(affinity | {"epsilon": 1.0, "n_neighbors": 2}))
    assert_allclose(cdist(Y, Y)[np.triu_indices(3, 1)], lam * np.sqrt(6), rtol=1e-12)


@or_variable
@pytest.mark.parametrize("k", [60, 61, 1000])
def test_5_more_components_than_there_are(k: int, affinity: Any) -> None:
    with refused(ValueError, f"n_components={k}", f"{k + 1} distinct", "got 60", "<= 59"):
        hs.DiffusionMap(k, **affinity).fit(X)
    assert hs.DiffusionMap(59, **affinity).fit_transform(X).shape == (60, 59)
    assert embed(hs.HeatSketch, X, k, **affinity).shape == (60, k)


def test_5_duplicates_do_not_count_as_distinct() -> None:
    with refused(ValueError, "n_components=5", "6 distinct", "got 5", "<= 4"):
        hs.DiffusionMap(5, n_neighbors=4).fit(np.r_[X[:5], X[:5]])


@every_estimator
@self_tuning
def test_more_neighbours_than_points(affinity: Any, make: Any) -> None:
    few = X[:8]
    with pytest.warns(UserWarning, match="n_neighbors=15 but X has 8 distinct .* n_neighbors=7"):
        given = embed(make, few, **affinity)
    assert_array_equal(given, strictly(lambda: embed(make, few, n_neighbors=7, **affinity)))


@every_estimator
@or_variable
def test_a_single_row_and_a_single_feature(affinity: Any, make: Any) -> None:
    line = np.sort(cloud(60, 1, seed=4), axis=0)
    model = make(2, random_state=0, **affinity)
    Y = strictly(lambda: model.fit_transform(line))
    for i in (0, 30, 59):
        row = strictly(lambda i=i: model.transform(line[i : i + 1]))
        assert_allclose(row, Y[i : i + 1], rtol=0, atol=1e-12 * np.abs(Y).max())


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


BAD_AFFINITIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "14-masked": (np.ma.masked_less(K, 0.1), ("masked entries", "fill or drop")),
    "46-negative": (altered(2, 3, -0.1), ("down to -0.1", "non-negative")),
    "46-negative-sparse": (sparse.csr_matrix(altered(2, 3, -0.1)), ("down to -0.1",)),
    "46-asymmetric": (altered(2, 3, 2.0, mirrored=False), ("not symmetric", "(K + K.T) / 2")),
    "46-asymmetric-sparse": (sparse.csr_matrix(altered(2, 3, 2.0, False)), ("not symmetric",)),
    "46-nan": (altered(2, 3, np.nan), ("contains NaN", "drop or impute")),
    "46-inf": (altered(2, 3, np.inf), ("infinity", "drop or impute")),
    "46-nan-sparse": (sparse.csr_matrix(altered(2, 3, np.nan)), ("contains NaN",)),
    "46-not-square": (K[:, :-1], ("(60, 59)", "square")),
    "46-zero-row": (without(4), ("1 point(s)", "no affinity to anything", "rows 4")),
    "46-zero-row-sparse": (sparse.csr_matrix(without(4)), ("no affinity", "rows 4")),
}


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("door", NORMALIZERS.values(), ids=NORMALIZERS)
@pytest.mark.parametrize(("given", "words"), BAD_AFFINITIES.values(), ids=BAD_AFFINITIES)
def test_affinities_that_are_none(given: Any, words: tuple[str, ...], door: Any) -> None:
    with refused(ValueError, *words):
        door(given)


@pytest.mark.parametrize("door", list(NORMALIZERS.values())[:4], ids=list(NORMALIZERS)[:4])
def test_46_other_things_that_are_no_affinity(door: Any) -> None:
    for given, words in (
        (K[:0, :0], ("(0, 0)", "square")),
        (K[0], ("(60,)", "square")),
        (K + 0j, ("complex128", "real numbers")),
        (K.astype(str), ("dtype", "real numbers")),
    ):
        with refused(ValueError, *words):
            door(given)


def test_46_matrices_for_sketches_and_eigenpairs() -> None:
    for bad, word in (
        (K[:, :-1], "square"),
        (K[:0, :0], "square"),
        (altered(2, 3, 2.0, mirrored=False), "not symmetric"),
        (altered(2, 3, np.nan), "NaN"),
        (np.ma.masked_less(K, 0.1), "masked"),
        (K + 0j, "real numbers"),
    ):
        with refused(ValueError, word):
            hs.sketch(bad, hs.Power(2), 3)
        with refused(ValueError, word):
            hs.eigh(bad, 2)
    links = K > 0.5
    assert_array_equal(hs.eigh(links, 2).values, hs.eigh(links.astype(float), 2).values)
    assert_array_equal(
        hs.sketch(links, hs.Power(2), 3, rng=0),
        hs.sketch(links.astype(float), hs.Power(2), 3, rng=0),
    )


@every_estimator
def test_46_asymmetry_of_rounding_is_accepted(make: Any) -> None:
    rounded = altered(2, 3, K[2, 3] * (1 + 1e-12), mirrored=False)
    given = strictly(lambda: embed(make, rounded, affinity="precomputed"))
    rows_match(given, embed(make, K, affinity="precomputed"), 1e-9)


@every_estimator
@pytest.mark.parametrize(
    "form",
    [sparse.csr_matrix, sparse.coo_array, np.asfortranarray, np.ndarray.tolist, pd.DataFrame],
)
def test_46_forms_of_an_affinity(form: Any, make: Any) -> None:
    given = strictly(lambda: embed(make, form(K), affinity="precomputed"))
    rows_match(given, embed(make, K, affinity="precomputed"), 1e-9)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@every_estimator
def test_46_an_affinity_has_no_unit(make: Any, normalization: str, scale: float) -> None:
    kind = {"affinity": "precomputed", "normalization": normalization, "tol": 1e-13}
    given = strictly(lambda: embed(make, K * scale, **kind))
    rows_match(given, embed(make, K, **kind), 1e-9)


def gaussian_without_diagonal(points: np.ndarray) -> np.ndarray:
    affinity = np.exp(-cdist(points, points, "sqeuclidean") / 2.0)
    np.fill_diagonal(affinity, 0)
    return affinity


@pytest.mark.parametrize("far", [6.0, 10.0, 20.0, 30.0], ids=lambda far: f"44-{far:g}")
def test_an_outlier_and_no_diagonal(far: float) -> None:
    """The outlier's weights fall to e^-450, its scale grows to e^450; a scaling exists still."""
    bad = gaussian_without_diagonal(np.r_[X[:, :2], [[far, 0.0]]])
    B = strictly(lambda: hs.bistochastic_normalize(bad))
    assert_allclose(B.sum(axis=0), 1, atol=2e-8)
    assert_allclose(B.sum(axis=1), 1, atol=2e-8)
    assert_array_equal(np.diagonal(B), 0)


def test_44_an_outlier_whose_weights_underflow_is_named() -> None:
    bad = gaussian_without_diagonal(np.r_[X[:, :2], [[60.0, 0.0]]])
    for door in NORMALIZERS.values():
        with warnings.catch_warnings(), refused(ValueError, "1 point(s)", "rows 60", "K_ii > 0"):
            warnings.simplefilter("ignore", hs.DisconnectedWarning)
            door(bad)


STAR = star_graph(6).toarray()
PATHS = {n: path_graph(n).toarray() for n in (4, 5)}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "graph", [STAR, PATHS[5], PATHS[4]], ids=["45-star", "45-odd-path", "45-even-path"]
)
def test_graphs_without_total_support(graph: np.ndarray, form: Any) -> None:
    with refused(ValueError, "No bistochastic scaling exists", "total support", "K_ii > 0"):
        strictly(lambda: hs.bistochastic_normalize(form(graph)))
    lazy = hs.bistochastic_normalize(form(graph + np.eye(len(graph))))
    assert_allclose(np.asarray(lazy.sum(axis=1)).ravel(), 1, atol=1e-8)
    assert_allclose(np.asarray(hs.markov_normalize(form(graph)).sum(axis=1)).ravel(), 1)


def test_45_the_two_point_path_can_be_scaled() -> None:
    assert_allclose(
        hs.bistochastic_normalize([[0.0, 3.0], [3.0, 0.0]]), [[0, 1], [1, 0]], atol=1e-8
    )


DISTANCES = cdist(X, X)


@pytest.mark.parametrize(
    "given",
    [DISTANCES, DISTANCES**2, DISTANCES.tolist(), sparse.csr_matrix(DISTANCES)],
    ids=["47-distances", "47-squared", "47-list", "47-sparse"],
)
@pytest.mark.parametrize("door", list(NORMALIZERS.values())[3:], ids=list(NORMALIZERS)[3:])
def test_distances_instead_of_affinities(given: Any, door: Any) -> None:
    with pytest.warns(UserWarning, match=r"looks like distances, not affinities; pass exp\("):
        door(given)


@pytest.mark.parametrize(
    "given",
    [K, gaussian_without_diagonal(X), STAR, PATHS[5], sparse.csr_matrix(STAR)],
    ids=["kernel", "no-diagonal", "star", "path", "sparse-star"],
)
def test_47_affinities_are_not_taken_for_distances(given: Any) -> None:
    strictly(lambda: hs.Diffusion.from_affinity(given))


# Row 49: the bistochastic scaling stops short.


@every_estimator
@every_affinity
def test_49_too_few_iterations(affinity: Any, make: Any) -> None:
    kind = affinity | {"normalization": "bistochastic"}
    with refused(ValueError, "after 1 iterations", "worst at rows", "raise max_iter"):
        make(2, max_iter=1, **kind).fit(X)
    with pytest.warns(hs.ConvergenceWarning, match="in 6 iter.* worst at rows .* raise max_iter"):
        model = make(2, max_iter=6, **kind).fit(X)
    A = matrix_of(model.diffusion_)
    off = np.abs(A.sum(axis=1) - 1).max()
    assert 1e-8 < off <= 1e-3
    assert model.diagnostics_["scaling_residual"] == pytest.approx(off, rel=1e-6)
