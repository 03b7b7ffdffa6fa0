"""Real powers of positive semidefinite operators: √A and the like, and what has none."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import sqrtm
from scipy.spatial.distance import pdist
from sklearn.decomposition import KernelPCA

import heatsketch as hs
from problems.checks import up_to_signs
from problems.filtered import normals
from problems.matrices import of_points

POWERS = [0.5, 0.25, 1.5, 2.75]


def semidefinite(n=50, rank=20):
    """A matrix with zero eigenvalues, which rounding moves below 0, and others from 1e-4 to 1."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((n, rank)))[0]
    A = (Q * np.geomspace(1e-4, 1, rank)) @ Q.T
    return (A + A.T) / 2


def power(A, p):
    lam, V = np.linalg.eigh(A)
    return (V * np.maximum(lam, 0) ** p) @ V.T


def test_the_root_of_a_matrix_is_that_of_scipy():
    A = semidefinite(12, 12)
    F = hs.sketch(A, hs.Power(0.5), G=math.sqrt(12) * np.eye(12), deflate=False)
    assert_allclose(F, sqrtm(A).real, atol=1e-12)


@pytest.mark.parametrize("p", POWERS)
def test_powers_of_eigenvalues_that_rounding_moves_below_zero(p):
    A = semidefinite()
    assert np.linalg.eigvalsh(A)[0] < 0
    F = hs.sketch(A, hs.Power(p), G=math.sqrt(50) * np.eye(50), deflate=False)
    # An eigenvalue of 1e-16 is 0 to rounding, and its power is not.
    assert_allclose(F, power(A, p), atol=2e-16**p * 10)


@pytest.mark.parametrize("t", [0.5, 1, 1.5, 3])
def test_the_distance_at_a_time_is_canonical_at_twice_the_power(t):
    """*Sketching the heat kernel*, Proposition 3.2: d_A^(t) = d of covariance A^(2t)."""
    A = semidefinite(20, 20)
    C = power(A, 2 * t)
    i, j = np.triu_indices(20, 1)
    canonical = np.sqrt(C[i, i] + C[j, j] - 2 * C[i, j])
    assert_allclose(hs.diffusion_distance(A, t), canonical, rtol=1e-9)


@pytest.mark.parametrize("p", POWERS)
def test_a_negative_eigenvalue_is_refused(p):
    A = semidefinite(30, 30) - 0.01 * np.eye(30)
    with pytest.raises(ValueError, match=r"down to -0\.0.*pass a whole p"):
        hs.sketch(A, hs.Power(p), 2, deflate=False)
    with pytest.raises(ValueError, match=r"pass a whole p"):
        hs.diffusion_distance(A, p)


def diagonal(n, interval):
    lam = np.linspace(0, 1, n)
    return hs.Sparse(sparse.diags(lam).tocsr(), interval), lam


@pytest.mark.parametrize(("p", "tol"), [(0.5, 1e-2), (0.75, 1e-3), (1.5, 1e-6), (2.5, 1e-8)])
def test_many_points_go_through_a_series_to_the_tolerance(p, tol):
    n = 2100
    A, lam = diagonal(n, (0.0, 1.0))
    F = hs.sketch(A, hs.Power(p), G=np.ones((n, 1)), deflate=False, tol=tol)
    assert np.abs(F[:, 0] - lam**p).max() <= tol


@pytest.mark.parametrize(
    ("low", "options", "message"),
    [(-1.0, {"tol": 1e-2}, "an operator that says so"), (0.0, {}, "products by the operator.*tol")],
)
def test_roots_of_many_points_need_an_operator_known_to_have_them_and_a_tolerance(
    low, options, message
):
    A, _ = diagonal(2100, (low, 1.0))
    with pytest.raises(ValueError, match=message):
        hs.sketch(A, hs.Power(0.5), 2, deflate=False, **options)


def test_a_real_power_in_single_precision_allows_for_its_rounding():
    A = semidefinite().astype(np.float32)
    F = hs.sketch(A, hs.Power(0.5), G=normals(50), deflate=False)
    exact = power(semidefinite(), 0.5) @ normals(50) / math.sqrt(3)
    assert_allclose(F, exact, atol=math.sqrt(1e-6))


def test_rows_at_a_time_below_one_are_refused():
    d = hs.diffusion(normals(30, 2), affinity="dense", epsilon=1.0)
    with pytest.raises(ValueError, match=r"time=0.5 is less than one step"):
        d.rows(0.5)
    rows = d.rows(1.5).array(np.arange(30))  # a dense Gaussian is positive semidefinite
    root = np.sqrt(d.expand(d.measure))
    expected = power(of_points(d), 1.5) / root[:, None]
    assert_allclose(pdist(rows), pdist(expected), rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.7, 5.0, 300.0])
def test_kernel_pca_is_the_root_of_the_centred_kernel(epsilon):
    X = np.random.default_rng(3).standard_normal((120, 3)) * [3, 1, 0.2] + 5
    centred = hs.Deflated(hs.Kernel(X, epsilon), np.full(120, 120**-0.5))
    pairs = hs.eigh(centred, 4, rng=0)
    Y = pairs.vectors * hs.Power(0.5)(pairs.values)
    theirs = KernelPCA(4, kernel="rbf", gamma=1 / epsilon, eigen_solver="dense").fit_transform(X)
    assert_allclose(Y, up_to_signs(theirs, Y), atol=1e-6 * np.abs(Y).max())


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_real_power_of_an_operator_that_is_positive_by_its_interval(n):
    lam = np.random.default_rng(0).random(n)
    A = hs.LinearMap(sparse.linalg.aslinearoperator(np.diag(lam)), (lam.min(), lam.max()))
    D = hs.diffusion_distance(A, 200.5, deflate=False, pairs=([0], [1]))
    assert_allclose(D, np.hypot(lam[0] ** 200.5, lam[1] ** 200.5), rtol=1e-9)
