"""Scalings that are bistochastic with respect to weights, such as 1/q."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs


def cloud(n=80, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 2)) * [2, 0.5]


def weights_of(kind, K):
    n = len(K)
    return {
        "1/q": 1 / K.sum(axis=1),
        "random": np.exp(np.random.default_rng(3).normal(size=n)),
        "ones": np.ones(n),
    }[kind]


@pytest.mark.parametrize("kind", ["1/q", "random", "ones"])
def test_it_is_bistochastic_with_respect_to_the_weights(kind):
    K = hs.gaussian_affinity(cloud(), 0.5)
    w = weights_of(kind, K)
    A = hs.bistochastic_normalize(K, tol=1e-13, weights=w)
    B = A / np.sqrt(np.outer(w, w))
    assert_allclose(B @ w, 1, rtol=1e-12)
    assert_allclose(A @ np.sqrt(w), np.sqrt(w), rtol=1e-12)
    assert_array_equal(A, A.T)
    ratio = B / K  # a scaling of K: of rank one
    assert_allclose(ratio * ratio[0, 0], np.outer(ratio[0], ratio[0]), rtol=1e-9)
    lam = np.linalg.eigvalsh(A)
    assert lam[-1] == pytest.approx(1, abs=1e-12)
    assert lam[0] > -1e-12


def test_the_name_stands_for_the_reciprocal_row_sums():
    K = hs.gaussian_affinity(cloud(), 0.5)
    named = hs.bistochastic_normalize(K, weights="1/q")
    assert_allclose(named, hs.bistochastic_normalize(K, weights=1 / K.sum(axis=1)), rtol=1e-12)


def test_equal_weights_change_nothing_and_their_unit_does_not_matter():
    K = hs.gaussian_affinity(cloud(), 0.5)
    w = weights_of("random", K)
    assert_array_equal(
        hs.bistochastic_normalize(K, weights=np.full(80, 4.0)), hs.bistochastic_normalize(K)
    )
    one, other = (hs.bistochastic_normalize(K, tol=1e-12, weights=c * w) for c in (1, 1e6))
    assert_allclose(one, other, rtol=1e-10)


def test_all_kinds_of_matrices_agree():
    X = cloud()
    K = hs.gaussian_affinity(X, 0.5)
    A = hs.bistochastic_normalize(K, weights="1/q")
    of_csr = hs.bistochastic_normalize(sparse.csr_matrix(K), weights="1/q")
    of_kernel = hs.bistochastic_normalize(hs.Kernel(X, 0.5), weights="1/q")
    assert_allclose(of_csr.toarray(), A, rtol=1e-10)
    assert_allclose(of_kernel @ np.eye(80), A, rtol=1e-7, atol=1e-12)


def test_a_point_counted_twice_is_a_point_of_twice_the_weight():
    """B of points with copies, on the first of each, is bistochastic with respect to counts."""
    X = cloud(30)
    counts = np.random.default_rng(1).integers(1, 4, 30)
    place = np.repeat(np.arange(30), counts)
    B = hs.bistochastic_normalize(hs.gaussian_affinity(X[place], 0.5), tol=1e-13)
    first = np.unique(place, return_index=True)[1]
    A = hs.bistochastic_normalize(hs.gaussian_affinity(X, 0.5), tol=1e-13, weights=counts)
    assert_allclose(A, B[np.ix_(first, first)] * np.sqrt(np.outer(counts, counts)), rtol=1e-9)


def uneven_circle(n):
    """Points at equal steps of the distribution (t + .7 sin t) / 2π: no sampling error."""
    angle = np.linspace(0, 2 * np.pi, 20_001)
    t = np.interp((np.arange(n) + 0.5) / n, (angle + 0.7 * np.sin(angle)) / (2 * np.pi), angle)
    return np.c_[np.cos(t), np.sin(t)]


def test_with_one_over_q_the_density_has_no_effect():
    """(1 - λ) 4/ε -> m² on the circle, for any density; B alone has that of Langevin dynamics."""
    epsilon = 0.01
    K = hs.gaussian_affinity(uneven_circle(1000), epsilon)
    exact = np.array([1, 1, 4, 4, 9, 9])

    def generator(A):
        return (1 - np.linalg.eigvalsh(A)[::-1][1:7]) * 4 / epsilon

    assert_allclose(generator(hs.bistochastic_normalize(K, weights="1/q")), exact, rtol=0.02)
    plain = generator(hs.bistochastic_normalize(K))
    assert np.abs(plain / exact - 1).max() > 0.1
    langevin = generator(hs.Diffusion.from_affinity(K, alpha=0.5).operator @ np.eye(1000))
    assert_allclose(plain, langevin, rtol=0.02)


def test_the_diffusion_of_the_docstring():
    X, K = cloud(), hs.gaussian_affinity(cloud(), 0.5)
    A = hs.bistochastic_normalize(K, tol=1e-12, weights="1/q")
    r = 1 / np.sqrt(K.sum(axis=1))
    d = hs.Diffusion.from_affinity(r[:, None] * A * r, alpha=0)
    assert_allclose(d.operator @ np.eye(80), A, atol=1e-11)
    assert_allclose(d.measure, r**2 / (r @ r), rtol=1e-10)
    assert hs.DiffusionMap(2, affinity="precomputed").fit(d).embedding_.shape == (len(X), 2)


@pytest.mark.parametrize(
    "weights", [np.ones(79), np.zeros(80), np.full(80, np.nan), -np.ones(80), np.ones((80, 1))]
)
def test_weights_are_positive_numbers_one_each(weights):
    K = hs.gaussian_affinity(cloud(), 0.5)
    with pytest.raises(ValueError, match="weights are not 80 positive numbers"):
        hs.bistochastic_normalize(K, weights=weights)
    with pytest.raises(ValueError, match="weights='q' is unknown"):
        hs.bistochastic_normalize(K, weights="q")
