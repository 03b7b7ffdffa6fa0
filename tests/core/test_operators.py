"""Every operator against its dense matrix. A new operator enters all tests by one line."""

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import circulant
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch._arrays import on_host
from heatsketch.core.graph import as_operator
from heatsketch.core.kernel import EXPONENT_BOUND
from heatsketch.core.operators import Operator
from problems.matrices import kernel_matrix
from problems.toy_operator import Circulant


def without(matrix, directions):
    P = np.eye(len(matrix)) - directions @ directions.T
    return P @ matrix @ P


N = 40
RNG = np.random.default_rng(1)
POINTS = RNG.standard_normal((N, 3))
LOCAL = RNG.uniform(0.5, 1.5, N)
K, K_LOCAL = kernel_matrix(POINTS, 0.8), kernel_matrix(POINTS, LOCAL)
s = RNG.uniform(0.2, 2.0, N)
M = RNG.standard_normal((N, N))
M = M + M.T
C = sparse.random(N, N, density=0.1, random_state=2, format="csr")
C = C + C.T
TABLE = sparse.random(N, 90, density=0.1, random_state=4, format="csr")  # wider than long
F = RNG.standard_normal((N, 5))
V = np.linalg.qr(RNG.standard_normal((N, 2)))[0]
EYE = np.eye(N)
WAVE = circulant(np.cos(np.arange(N) * np.pi / N) ** 2)
FAR = POINTS + 1e6 * (np.arange(N) % 2)[:, None]  # differences are taken
M32, C32, F32 = M.astype(np.float32), C.astype(np.float32), F.astype(np.float32)


class Case(NamedTuple):
    operator: Operator
    matrix: np.ndarray  # (n, n), the same made another way
    rounding: float = 1e-12  # relative to the largest entry of the result


CASES = {
    "dense": Case(hs.Dense(M), M),
    "dense-float32": Case(hs.Dense(M32), M32.astype(float), 1e-5),
    "dense-integer": Case(hs.Dense(np.diag(np.arange(N))), np.diag(np.arange(N) * 1.0)),
    "dense-at-the-border": Case(hs.Dense(-np.ones((N, N))), -np.ones((N, N))),
    "sparse": Case(hs.Sparse(C), C.toarray()),
    "sparse-float32": Case(hs.Sparse(C32), C32.toarray().astype(float), 1e-5),
    "sparse-integer": Case(hs.Sparse((C > 0.5).astype(int).tocoo()), (C > 0.5).toarray() * 1.0),
    "kernel": Case(hs.Kernel(POINTS, 0.8), K),
    "kernel-wide": Case(hs.Kernel(POINTS, 1e6), kernel_matrix(POINTS, 1e6)),
    "kernel-local": Case(hs.Kernel(POINTS, LOCAL), K_LOCAL),
    "kernel-equal-points": Case(hs.Kernel(np.ones((N, 2)), 0.1), np.ones((N, N))),
    "lowrank": Case(hs.LowRank(F), F @ F.T),
    "lowrank-float32": Case(hs.LowRank(F32), F32.astype(float) @ F32.T.astype(float), 1e-5),
    "lowrank-sparse": Case(hs.LowRank(TABLE), TABLE.toarray() @ TABLE.toarray().T),
    "linear-map": Case(hs.LinearMap(aslinearoperator(M)), M),
    "linear-map-float32": Case(hs.LinearMap(aslinearoperator(M32)), M32.astype(float), 1e-5),
    "linear-map-given-interval": Case(hs.LinearMap(aslinearoperator(EYE), (1.0, 1.0)), EYE),
    "scaled-lowrank-sparse": Case(
        hs.Scaled(hs.LowRank(TABLE), s), s[:, None] * (TABLE @ TABLE.T).toarray() * s
    ),
    "scaled": Case(hs.Scaled(hs.Dense(M), s), s[:, None] * M * s),
    "scaled-signed": Case(hs.Scaled(hs.Dense(M), s - 1), (s - 1)[:, None] * M * (s - 1)),
    "scaled-float32": Case(hs.Scaled(hs.Dense(M32), s), s[:, None] * M32 * s, 1e-5),
    "scaled-kernel": Case(hs.Scaled(hs.Kernel(POINTS, 0.8), s), s[:, None] * K * s),
    "affine": Case(hs.Affine(hs.Dense(M), 0.5, -3.0), M / 2 - 3 * EYE),
    "affine-laplacian": Case(hs.Affine(hs.Kernel(POINTS, 0.8), -1.0, 1.0), EYE - K),
    "toy": Case(Circulant(np.cos(np.arange(N) * np.pi / N) ** 2), WAVE),
    "deflated": Case(hs.Deflated(hs.Dense(M), V), without(M, V)),
    "deflated-vector": Case(hs.Deflated(hs.Sparse(C), V[:, 0]), without(C.toarray(), V[:, :1])),
    "deflated-negative": Case(hs.Deflated(hs.Dense(-EYE, (-1.0, -1.0)), V), V @ V.T - EYE),
    "deflated-float32": Case(
        hs.Deflated(hs.Dense(M32), V.astype(np.float32)), without(M32.astype(float), V), 2e-5
    ),
    "all-wrappers": Case(
        hs.Deflated(hs.Affine(hs.Scaled(hs.LowRank(F), s), 0.5, 0.5), V),
        without(s[:, None] * (F @ F.T) * s / 2 + EYE / 2, V),
    ),
}


if find_spec("torch"):  # else test_torch says that it is missing
    KERNEL_32 = hs.TorchKernel(POINTS.astype(np.float32), 0.8)
    CASES |= {
        "torch-dense": Case(hs.TorchDense(M), M),
        "torch-dense-float32": Case(hs.TorchDense(M32), M32.astype(float), 1e-5),
        "torch-sparse": Case(hs.TorchSparse(C), C.toarray()),
        "torch-sparse-float32": Case(hs.TorchSparse(C32), C32.toarray().astype(float), 1e-5),
        "torch-kernel": Case(hs.TorchKernel(POINTS, 0.8), K),
        "torch-kernel-float32": Case(KERNEL_32, K, 1e-5),
        "torch-kernel-local": Case(hs.TorchKernel(POINTS, LOCAL), K_LOCAL),
        "torch-kernel-equal-points": Case(hs.TorchKernel(np.ones((N, 2)), 0.1), np.ones((N, N))),
        "torch-kernel-far": Case(
            hs.TorchKernel(FAR, 1.0), hs.Kernel(FAR, 1.0).matrix_rows(slice(N))
        ),
        "torch-deflated": Case(hs.Deflated(hs.TorchSparse(C), V), without(C.toarray(), V)),
    }


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


def assert_close(actual, expected, rounding):
    assert_allclose(actual, expected, rtol=0, atol=rounding * np.abs(expected).max())


# The contract


@pytest.mark.parametrize("k", [None, 1, 7], ids=["vector", "one-column", "block"])
def test_product_is_that_of_the_matrix_for_any_layout_and_leaves_the_block_alone(case, k):
    X = np.random.default_rng(6).standard_normal(N if k is None else (N, k))
    strided = np.repeat(X, 2, axis=-1)[..., ::2]
    for block in (X, X.astype(case.operator.dtype), np.asfortranarray(X), strided):
        before = block.copy()
        block.flags.writeable = False
        Y = case.operator @ block
        assert Y.shape == X.shape
        assert Y.dtype == case.operator.dtype == (np.float32 if case.rounding > 1e-6 else float)
        assert_close(Y, case.matrix @ X, case.rounding)
        assert not np.shares_memory(block, Y)
        assert_array_equal(block, before)


def test_what_an_operator_says_of_itself_is_true_of_its_matrix(case):
    diagonal = case.operator.diagonal()
    if diagonal is not None:
        assert_close(diagonal, case.matrix.diagonal(), case.rounding)
    assert not case.operator.is_non_negative() or case.matrix.min() >= 0
    known = case.operator.matrix
    if known is not None:
        known = known.toarray() if sparse.issparse(known) else known
        assert_close(known, case.matrix, case.rounding)


def test_any_operator_is_scaled_from_both_sides(case):
    A, X = case.operator, np.random.default_rng(7).standard_normal((N, 3))
    bounds = -1e9, 1e9
    scaled = A.scaled_both_sides(A.blocks.native(s), bounds, A.blocks.native(np.ones(N)))
    assert_close(scaled @ X, s[:, None] * (case.matrix @ (s[:, None] * X)), case.rounding)
    assert scaled.spectrum == bounds


def test_any_operator_is_restricted_to_some_points(case):
    some, X = np.arange(0, N, 3), np.random.default_rng(8).standard_normal((N, 3))
    part = case.operator.restricted(some)
    assert part.n == len(some)
    assert_close(part @ X[some], case.matrix[np.ix_(some, some)] @ X[some], case.rounding)


def test_interval_holds_every_eigenvalue(case):
    low, high = case.operator.spectrum
    eigenvalues = np.linalg.eigvalsh(case.matrix)
    slack = case.rounding * np.abs(eigenvalues).max()
    assert low <= eigenvalues[0] + slack
    assert high >= eigenvalues[-1] - slack


@pytest.mark.parametrize("shape", [(N + 1, 2), (N - 1,), (2, N), (N, 2, 2)], ids=str)
def test_a_block_of_the_wrong_shape_is_refused_with_both_numbers(shape):
    with pytest.raises(ValueError, match=rf"shape \({shape[0]},.*{N} points"):
        hs.Dense(M) @ np.ones(shape)


@given(a=st.floats(-10, 10), b=st.floats(-10, 10), name=st.sampled_from(sorted(CASES)))
def test_product_is_linear(a, b, name):
    A, _, rounding = CASES[name]
    x, y = on_host(A.asarray(np.random.default_rng(10).standard_normal((2, N)).T)).T
    number = A.dtype.type
    together = A @ (number(a) * x + number(b) * y)
    size = (abs(a) + abs(b) + 1) * N * max(map(abs, A.spectrum))
    assert np.abs(together - (a * (A @ x) + b * (A @ y))).max() <= rounding * size


# What the leaves and wrappers refuse


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hs.Dense(np.ones((2, 3))), r"\(2, 3\); pass a square"),
        (lambda: hs.Dense(np.ones(3)), r"\(3,\); pass a square"),
        (lambda: hs.Sparse(sparse.csr_matrix((2, 3))), r"\(2, 3\); pass a square"),
        (lambda: hs.LowRank(np.ones(3)), r"\(3,\); pass \(n, r\)"),
        (lambda: hs.Scaled(hs.Dense(M), np.ones(3)), r"\(3,\) but A has 40 points"),
        (lambda: hs.Deflated(hs.Dense(M), np.ones((3, 1))), r"\(3, 1\) but A has 40 points"),
        (lambda: hs.Deflated(hs.Dense(M), 2 * V), "not orthonormal"),
        (lambda: hs.Deflated(hs.Dense(M), np.full(N, np.nan)), "not orthonormal"),
        (lambda: hs.Kernel(POINTS, 0.0), r"epsilon=0.0 is out of range"),
        (lambda: hs.Kernel(POINTS, np.ones(3)), r"\(3,\); pass a positive number or 40"),
        (lambda: hs.Kernel(POINTS, LOCAL - 1), "positive local scales"),
        (lambda: hs.LinearMap(aslinearoperator(np.ones((2, 3)))), r"\(2, 3\); pass a square"),
        (lambda: hs.LinearMap(aslinearoperator(1j * EYE)), "pass one of real numbers"),
        (lambda: hs.LinearMap(aslinearoperator(np.triu(M))), r"not symmetric.*\(A \+ A.T\) / 2"),
        (lambda: hs.LinearMap(aslinearoperator(np.full((2, 2), np.nan))), "NaN or infinity"),
        (lambda: as_operator(np.triu(M)), r"not symmetric.*pass \(A \+ A.T\) / 2"),
        (lambda: as_operator(sparse.triu(C).tocsr()), "not symmetric"),
        (lambda: as_operator(np.full((2, 2), np.inf)), "NaN or infinity"),
        (lambda: as_operator(1j * EYE), "pass real numbers"),
        (lambda: as_operator(np.ones((2, 3))), r"\(2, 3\); pass a square"),
    ],
)
def test_bad_parts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_arrays_and_sparse_matrices_become_operators():
    assert isinstance(as_operator(M), hs.Dense)
    assert isinstance(as_operator(C.tocoo()), hs.Sparse)
    assert as_operator(M32).dtype == np.float32
    assert as_operator(EYE.astype(int)).dtype == np.float64


def test_a_linear_operator_is_used_by_its_products():
    calls = []

    def product(x):
        calls.append(x.shape)
        return M @ x

    A = as_operator(LinearOperator((N, N), matvec=product, matmat=product, dtype=float))
    assert isinstance(A, hs.LinearMap)
    assert len(calls) <= 42  # symmetry, and the interval
    found, expected = (hs.eigh(B, 3, rng=0).values for B in (A, M))
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_the_interval_of_a_linear_operator_is_not_much_wider_than_its_spectrum():
    values = np.sort(np.random.default_rng(15).uniform(-3, 5, 2000))
    A = hs.LinearMap(LinearOperator((2000, 2000), lambda x: values * x.ravel(), dtype=float))
    low, high = A.spectrum
    width = values[-1] - values[0]
    assert values[0] - 0.08 * width <= low <= values[0]
    assert values[-1] <= high <= values[-1] + 0.08 * width


def test_projecting_leaves_out_the_directions_alone():
    X = np.random.default_rng(11).standard_normal((N, 3))
    projected = hs.Deflated(hs.Dense(M), V).project(X)
    assert_allclose(projected + V @ (V.T @ X), X, atol=1e-14 * N)


# The kernel


@given(offset=st.floats(0, 1e5), epsilon=st.floats(0.05, 50.0))
def test_both_forms_keep_the_promised_exponent(offset, epsilon):
    X = POINTS + offset * (np.arange(N) % 2)[:, None]
    kernel = hs.Kernel(X, epsilon)
    matrix = kernel_matrix(X, epsilon)
    allowed = min(kernel.exponent_error, EXPONENT_BOUND) + 1e-15 * offset / np.sqrt(epsilon)
    # |e^-a - e^-b| <= |a - b|
    assert np.abs(kernel.matrix_rows(slice(0, N)) - matrix).max() <= allowed + 1e-14


@pytest.mark.parametrize("epsilon", [0.8, LOCAL], ids=["scalar", "local"])
def test_sparse_points_give_the_kernel_of_dense_ones(epsilon):
    X = sparse.random(N, 9, density=0.3, random_state=3, format="csr")
    X.data += 1.0
    rows = hs.Kernel(X, epsilon).matrix_rows(slice(0, N))
    assert_allclose(rows, kernel_matrix(X.toarray(), epsilon), atol=1e-13)
    assert_allclose(hs.Kernel(X, epsilon) @ EYE, rows, atol=1e-13)


def test_sparse_points_too_large_for_the_gram_form_are_refused():
    with pytest.raises(ValueError, match="larger epsilon"):
        hs.Kernel(sparse.csr_matrix(POINTS + 1e6), 1.0)


@pytest.mark.parametrize("epsilon", [0.8, LOCAL], ids=["scalar", "local"])
def test_rows_of_new_points_and_of_the_points_themselves(epsilon):
    kernel = hs.Kernel(POINTS, epsilon)
    own = kernel.matrix_rows(slice(3, 20))
    assert_allclose(own, kernel_matrix(POINTS, epsilon)[3:20], rtol=1e-12)
    local = np.ndim(epsilon) > 0
    assert_array_equal(kernel.rows(POINTS[3:20], LOCAL[3:20] if local else None), own)
    new, scale = POINTS[:5] + 0.1, 0.7 * LOCAL if local else 0.8
    rows = kernel.rows(new, np.full(5, 0.7) if local else None)
    assert_allclose(rows, np.exp(-cdist(new, POINTS, "sqeuclidean") / scale), rtol=1e-12)


def test_nearest_point():
    new = POINTS[::-1] + 1e-6
    assert_array_equal(hs.Kernel(POINTS, 0.8).nearest(new), np.arange(N)[::-1])


def test_a_sparse_operator_bounds_its_spectrum_by_row_sums_and_computes_in_floats():
    whole = hs.Sparse(sparse.coo_array(np.array([[1, -2, 0], [-2, 4, 0], [0, 0, 5]])))
    assert whole.spectrum == (-6.0, 6.0)
    assert whole.matrix.dtype == np.float64
    assert sparse.issparse(whole.matrix)
    assert whole.matrix.format == "csr"
    assert hs.Sparse(sparse.csr_matrix((0, 0))).spectrum == (0.0, 0.0)
