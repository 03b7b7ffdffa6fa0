"""A start for UMAP and others: the slowest directions, without an eigen-solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.sparse import block_diag

import heatsketch as hs
from problems.clouds import cloud, even_circle
from problems.counting import Counting


def test_on_a_circle_it_is_the_circle():
    """The slowest two directions are cos and sin; the next decay e^-3.5 times as much."""
    X = even_circle(200)
    Y = hs.initialization(X, 2, affinity="dense", epsilon=0.1, rng=0)
    assert np.rad2deg(subspace_angles(X, Y.astype(float)).max()) < 1
    angle = np.unwrap(np.arctan2(Y[:, 1], Y[:, 0]))
    assert abs(abs(angle[-1] - angle[0]) - 2 * np.pi * 199 / 200) < 0.05  # once around


def test_its_axes_are_the_slowest_of_a_graph():
    X = np.random.default_rng(0).uniform(size=(1500, 2)) * [3, 1]
    d = hs.diffusion(X)
    slow = hs.eigh(d.deflated, 2, rng=0).vectors / np.sqrt(d.measure)[:, None]
    slow = d.expand(slow)
    near, far = (
        subspace_angles(slow, hs.initialization(d, 2, time=t, rng=0).astype(float)).max()
        for t in (4096, 8)
    )
    assert np.rad2deg(near) < 6 < np.rad2deg(far)


def test_its_scale_is_that_of_opentsne_and_no_points_coincide():
    X = cloud(100, 4, seed=1)
    Y = hs.initialization(np.vstack([X, X]), 3, rng=0)
    assert Y.shape == (200, 3)
    assert Y.dtype == np.float32
    assert_allclose(Y.std(axis=0), 1e-4, rtol=1e-2)
    assert_allclose(Y.mean(axis=0), 0, atol=1e-7)
    assert len(np.unique(Y, axis=0)) == 200


def test_the_seed_decides():
    X = cloud(60, 3, seed=2)
    first, again, other = (hs.initialization(X, rng=seed) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_where_all_mixes_fast_it_takes_a_small_time():
    """Eigenvalues 1/2 and 1/4: of A^1024 one direction would be left."""
    Q = np.linalg.qr(np.column_stack([np.ones(60), cloud(60, 2, seed=5)]))[0]
    A = Q @ np.diag([1, 0.5, 0.25]) @ Q.T
    d = hs.Diffusion(hs.Dense(A), np.full(60, 1 / 60), np.arange(60))
    Y = hs.initialization(d, 2, rng=0)
    assert np.rad2deg(subspace_angles(Q[:, 1:], Y.astype(float)).max()) < 1


def test_it_calls_no_eigen_solver_and_a_number_of_products_known_beforehand():
    d = hs.diffusion(cloud(300, 3, seed=3))
    counted = Counting(d.operator, least_columns=2)
    object.__setattr__(d, "operator", counted)
    for time in (64, 1024):
        counted.products = 0
        hs.initialization(d, 2, time=time, rng=0)
        assert 1 < counted.products <= max(64, np.sqrt(20 * time) + 4)


def test_of_components_it_says_which_one_a_point_is_in():
    A = block_diag([np.ones((n, n)) for n in (30, 40, 50)], format="csr")
    with pytest.warns(hs.DisconnectedWarning):
        Y = hs.initialization(hs.Diffusion.from_graph(A), 2, rng=0)
    centres = [Y[rows].mean(axis=0) for rows in np.split(np.arange(120), [30, 70])]
    apart = min(np.linalg.norm(a - b) for k, a in enumerate(centres) for b in centres[:k])
    within = max(Y[rows].std() for rows in np.split(np.arange(120), [30, 70]))
    assert apart > 1e-5
    assert within < 2e-4


def test_too_many_coordinates_are_refused():
    with pytest.raises(ValueError, match="n_components=5 but there are 5 different points"):
        hs.initialization(cloud(5, 2), 5, n_neighbors=3)


def test_options_beside_a_diffusion_are_refused():
    with pytest.raises(TypeError, match="X is a Diffusion, which n_neighbors cannot change"):
        hs.initialization(hs.diffusion(cloud(60, 2)), n_neighbors=5)
