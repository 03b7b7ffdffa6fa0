"""Affinities given by the caller."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from bad_inputs.cases import (
    Case,
    K,
    X,
    embed,
    every_estimator,
    refused,
    rows_match,
    strictly,
)
from problems.spectra import path_graph, star_graph

STAR, PATH = star_graph(6).toarray(), path_graph(5).toarray()
DISTANCES = cdist(X, X)
DOORS = {
    "symmetric": hs.symmetric_normalize,
    "bistochastic": hs.bistochastic_normalize,
    "markov": hs.markov_normalize,
    "from_affinity": hs.Diffusion.from_affinity,
    "HeatSketch": lambda K: hs.HeatSketch(2, affinity="precomputed").fit(K),
    "DiffusionMap": lambda K: hs.DiffusionMap(2, affinity="precomputed").fit(K),
    "HeatEmbedding": lambda K: hs.HeatEmbedding(2, affinity="precomputed").fit(K),
}
every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


def altered(i, j, value, mirrored=True):
    changed = K.copy()
    changed[i, j] = value
    if mirrored:
        changed[j, i] = value
    return changed


def gaussian_without_diagonal(points):
    affinity = np.exp(-cdist(points, points, "sqeuclidean") / 2.0)
    np.fill_diagonal(affinity, 0)
    return affinity


def bistochastic(max_iter):
    chosen = {"normalization": "bistochastic", "max_iter": max_iter}
    return hs.HeatSketch(2, affinity="dense", **chosen).fit(X)


ALONE = np.pad(np.delete(np.delete(K, 4, 0), 4, 1), (0, 1))  # the last row is zero
BAD = {  # what is passed, and words of the message
    "masked entries": (np.ma.masked_less(K, 0.1), ("masked entries", "fill or drop")),
    "negative entries": (altered(2, 3, -0.1), ("down to -0.1", "non-negative")),
    "not symmetric": (altered(2, 3, 2.0, False), ("not symmetric", "(K + K.T) / 2")),
    "NaN": (altered(2, 3, np.nan), ("contains NaN", "drop or impute")),
    "infinity": (altered(2, 3, np.inf), ("infinity", "drop or impute")),
    "not square": (K[:, :-1], ("(60, 59)", "square")),
    "a row of zeros": (ALONE, ("1 point(s)", "no affinity to anything", "rows 59")),
}
MATRICES = [
    *(
        Case(title, lambda bad=bad: hs.Diffusion.from_affinity(bad), words)
        for title, (bad, words) in BAD.items()
        if title not in ("masked entries", "infinity", "not square")
    ),
    Case(
        "a star, `normalization='bistochastic'`",
        lambda: hs.bistochastic_normalize(STAR),
        ("No bistochastic scaling exists", "total support", "K_ii > 0"),
    ),
    Case(
        "distances, or their squares",
        lambda: hs.Diffusion.from_affinity(DISTANCES),
        ("looks like distances, not affinities",),
        UserWarning,
    ),
    Case(
        "bistochastic scaling stopped, off by less than 1e-3",
        lambda: bistochastic(max_iter=6),
        ("in 6 iter", "raise max_iter"),
        hs.ConvergenceWarning,
    ),
    Case(
        "bistochastic scaling stopped, off by more",
        lambda: bistochastic(max_iter=1),
        ("after 1 iterations", "worst at rows", "raise max_iter"),
    ),
]


@every_door
def test_affinities_that_are_none(door):
    for bad, words in BAD.values():
        with refused(ValueError, *words):
            door(bad)
        if bad.shape == K.shape and not np.ma.isMaskedArray(bad):
            with refused(ValueError, words[0]):
                door(sparse.csr_matrix(bad))


@pytest.mark.parametrize("door", list(DOORS.values())[:4], ids=list(DOORS)[:4])
def test_other_things_that_are_no_affinity(door):
    for given, words in (
        (K[:0, :0], ("(0, 0)", "square")),
        (K[0], ("(60,)", "square")),
        (K + 0j, ("complex128", "real numbers")),
        (K.astype(str), ("dtype", "real numbers")),
    ):
        with refused(ValueError, *words):
            door(given)


def test_matrices_for_sketches_and_eigenpairs():
    for bad, word in ((altered(2, 3, np.nan), "NaN"), (np.ma.masked_less(K, 0.1), "masked")):
        for door in (lambda A: hs.sketch(A, hs.Power(2), 3), lambda A: hs.eigh(A, 2)):
            with refused(ValueError, word):
                door(bad)
    links = K > 0.5
    assert_array_equal(hs.eigh(links, 2).values, hs.eigh(links.astype(float), 2).values)


FORMS = (sparse.csr_matrix, sparse.coo_array, np.asfortranarray, np.ndarray.tolist, pd.DataFrame)


@every_estimator
def test_forms_of_an_affinity(make):
    want = embed(make, K, affinity="precomputed")
    rounded = altered(2, 3, K[2, 3] * (1 + 1e-12), mirrored=False)
    for given in (rounded, *(form(K) for form in FORMS)):
        found = strictly(lambda g=given: embed(make, g, affinity="precomputed"))
        rows_match(found, want, 1e-9)


@pytest.mark.parametrize("scale", [1e50, 1e-50])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@every_estimator
def test_an_affinity_has_no_unit(make, normalization, scale):
    kind = {"affinity": "precomputed", "normalization": normalization, "tol": 1e-13}
    given = strictly(lambda: embed(make, K * scale, **kind))
    rows_match(given, embed(make, K, **kind), 1e-9)


@pytest.mark.parametrize("far", [6.0, 10.0, 20.0, 30.0])
def test_an_outlier_and_no_diagonal(far):
    """The outlier's weights fall to e^-450, its scale grows to e^450; a scaling exists still."""
    bad = gaussian_without_diagonal(np.r_[X[:, :2], [[far, 0.0]]])
    B = strictly(lambda: hs.bistochastic_normalize(bad))
    assert_allclose(B.sum(axis=0), 1, atol=2e-8)
    assert_allclose(B.sum(axis=1), 1, atol=2e-8)
    assert_array_equal(np.diagonal(B), 0)


@every_door
def test_an_outlier_whose_weights_underflow_is_named(door):
    bad = gaussian_without_diagonal(np.r_[X[:, :2], [[60.0, 0.0]]])
    with warnings.catch_warnings(), refused(ValueError, "1 point(s)", "rows 60", "K_ii > 0"):
        warnings.simplefilter("ignore", hs.DisconnectedWarning)
        door(bad)


@pytest.mark.parametrize("door", list(DOORS.values())[3:], ids=list(DOORS)[3:])
def test_distances_are_told_from_affinities(door):
    for given in (DISTANCES, DISTANCES**2, DISTANCES.tolist(), sparse.csr_matrix(DISTANCES)):
        with pytest.warns(UserWarning, match=r"looks like distances, not affinities; pass exp\("):
            door(given)
    for given in (K, gaussian_without_diagonal(X), STAR, PATH, sparse.csr_matrix(STAR)):
        strictly(lambda g=given: hs.Diffusion.from_affinity(g))
