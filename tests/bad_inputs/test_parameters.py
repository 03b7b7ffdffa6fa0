"""Parameters that are no good, and few points."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from bad_inputs.cases import Case, refused, strictly
from bad_inputs.inputs import (
    AFFINITIES,
    BAD_PARAMETERS,
    ESTIMATORS,
    K,
    X,
    embed,
    every_affinity,
    every_estimator,
    fitted_with,
    or_variable,
    self_tuning,
)
from problems.clouds import cloud


@every_estimator
@every_affinity
@pytest.mark.parametrize("case", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameters(case: Case, affinity: Any, make: Any) -> None:
    words, changes = case.expected.words, case.given
    if make is hs.DiffusionMap and "filter" not in changes and "time" in changes:
        if changes["time"] == 0:  # the eigenvectors themselves: tests/estimators
            return
        words = tuple(word.replace(">= 1", ">= 0") for word in words)
    with refused(case.expected.error, *words):
        strictly(lambda: fitted_with(changes, make, **affinity))


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
