"""Points: refused unless a table of finite numbers, and of any form and scale the same."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from bad_inputs.cases import Case, refused, rows_match, strictly
from bad_inputs.inputs import (
    DOORS,
    FRAME,
    GRID,
    HARMLESS,
    UNUSABLE,
    UNUSABLE_FRAMES,
    X,
    embed,
    every_estimator,
    or_variable,
    self_tuning,
    spoilt,
)


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


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("case", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_data(case: Case, door: Any) -> None:
    case.check(door)


@every_estimator
@pytest.mark.parametrize("case", UNUSABLE_FRAMES.values(), ids=UNUSABLE_FRAMES)
def test_unusable_frames_are_refused_by_column(case: Case, make: Any) -> None:
    case.check(lambda frame: embed(make, frame))


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


@every_estimator
@or_variable
@pytest.mark.parametrize("case", HARMLESS.values(), ids=HARMLESS)
def test_harmless(case: Case, affinity: Any, make: Any) -> None:
    before = fingerprint(case.given)
    case.check(lambda data: embed(make, data, **affinity))
    assert fingerprint(case.given) == before


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
@pytest.mark.parametrize("affinity", ["knn", "dense"])  # which keep scales in data units
def test_the_smallest_normal_numbers(affinity: str, make: Any) -> None:
    whole = np.round(X * 1000)
    given = strictly(lambda: embed(make, whole * 2.0**-1022, affinity=affinity))
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
