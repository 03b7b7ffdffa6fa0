"""Affinities given by the caller."""

import warnings
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
    BAD_AFFINITIES,
    NORMALIZERS,
    PATHS,
    STAR,
    K,
    X,
    altered,
    embed,
    every_affinity,
    every_estimator,
    matrix_of,
)


@pytest.mark.parametrize("door", NORMALIZERS.values(), ids=NORMALIZERS)
@pytest.mark.parametrize("case", BAD_AFFINITIES.values(), ids=BAD_AFFINITIES)
def test_affinities_that_are_none(case: Case, door: Any) -> None:
    case.check(door)


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
