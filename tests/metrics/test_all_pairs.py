"""Distances of all pairs by dense products are those by explicit differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from heatsketch.metrics import diffusion_distortion
from heatsketch.metrics.distances import compared_rows
from heatsketch.neighbors import rows
from heatsketch.spectral.dense import all_eigenpairs
from problems.clouds import cloud, even_circle
from problems.spectra import circle_distances


def found(A, time, filter="power"):
    return compared_rows(A, time, filter).all_distances()


@pytest.mark.parametrize("time", [1, 2, 7, 64, 200])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic", "markov"])
@pytest.mark.parametrize("affinity", ["knn", "variable", "dense"])
def test_they_are_the_distances_by_differences(affinity, normalization, time):
    X = cloud(300, 3, seed=1)
    X[:5] = X[5:10] + 1e-7  # rows that differ little
    X = np.vstack([X, X[20:24]])
    d = hs.Diffusion.from_points(X, affinity=affinity, normalization=normalization)
    D = hs.diffusion_distance(d, time)
    assert_allclose(found(d, time), D, rtol=1e-8, atol=1e-13 * D.max())


def test_they_are_those_of_a_matrix_with_its_trivial_direction():
    A = hs.symmetric_normalize(hs.gaussian_affinity(cloud(80, 2), 0.5))
    for time, filter in ((0, "power"), (4, "power"), (2.5, "heat")):
        D = hs.diffusion_distance(A, time, filter=filter)
        assert_allclose(found(A, time, filter), D, rtol=1e-8)


def test_the_heat_filter_has_them_too():
    d = hs.Diffusion.from_points(cloud(100, 3, seed=1), n_neighbors=8)
    assert_allclose(found(d, 6.5, "heat"), hs.diffusion_distance(d, 6.5, filter="heat"), rtol=1e-8)


@pytest.mark.parametrize("time", [8, 256, 1900])
def test_on_a_circle_they_keep_their_digits_down_to_1e_58(time):
    n, epsilon = 200, 0.25
    A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(n), epsilon))
    steps = np.arange(1, n // 2 + 1)
    D = circle_distances(steps, n, epsilon, time)
    assert_allclose(found(A, time)[: len(steps)], D, rtol=1e-7)


@pytest.mark.parametrize(("time", "filter"), [(1, "power"), (9, "power"), (3.5, "heat")])
@pytest.mark.parametrize("affinity", ["knn", "variable", "dense"])
def test_known_eigenpairs_give_the_same(affinity, time, filter):
    d = hs.Diffusion.from_points(cloud(90, 3, seed=1), affinity=affinity)
    known = all_eigenpairs(d.deflated())
    D = compared_rows(d, time, filter).all_distances(known)
    assert_allclose(D, found(d, time, filter), rtol=1e-8)
    F = cloud(90, 2, seed=2)
    plain, quick = (
        diffusion_distortion(F, d, time, filter=filter, eigenpairs=e) for e in (None, known)
    )
    assert quick.log_L == pytest.approx(plain.log_L, rel=1e-9)
    assert quick.within == plain.within


def test_products_that_cancel_come_from_differences(monkeypatch):
    d = hs.Diffusion.from_points(cloud(60, 3, seed=1), n_neighbors=8)
    products = found(d, 4)
    monkeypatch.setattr(rows, "_CANCELLED", 10.0)  # all pairs
    assert_allclose(found(d, 4), products, rtol=1e-12)


def test_tiles_of_any_size_give_the_same(monkeypatch):
    d = hs.Diffusion.from_points(cloud(60, 3, seed=1), n_neighbors=8)
    whole = found(d, 6)
    monkeypatch.setattr(rows, "_TILE", 7)
    assert_allclose(found(d, 6), whole, rtol=1e-12)
