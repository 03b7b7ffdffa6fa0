"""Operators of tensors: a tensor in gives a tensor out, and the numbers are those of NumPy."""

import doctest
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.core.graph import as_operator
from heatsketch.device.blocks import full_precision
from heatsketch.device.operators import TILE_SIDE, on_device
from problems.clouds import cloud, even_circle
from problems.devices import Traffic, every_device
from problems.matrices import kernel_matrix
from problems.spectra import circle_eigenvalues, circle_frequencies

torch = pytest.importorskip("torch")
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

N = 90
X = cloud(N, 3)
K = hs.gaussian_affinity(X, 0.8)
A = hs.symmetric_normalize(K)
FILTERS = [hs.Power(3), hs.Power(200), hs.Heat(7.5)]
MADE = {
    "dense": lambda: torch.from_numpy(A),
    "sparse": lambda: in_csr(A),
    "coordinates": lambda: torch.from_numpy(A).to_sparse(),
    "kernel": lambda: hs.symmetric_normalize(hs.TorchKernel(torch.from_numpy(X), 0.8)),
}
every_operator = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def in_csr(matrix):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.from_numpy(matrix).to_sparse_csr()


def assert_same(tensor, array, rounding=1e-12):
    assert isinstance(tensor, torch.Tensor)
    assert_allclose(tensor.numpy(), array, rtol=0, atol=rounding * np.abs(array).max())


class OneDevice(TorchDispatchMode):
    """Refuse operations with tensors of two devices, but for copies; keep the largest size made."""

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = [*args, *(kwargs or {}).values()]
        given += [x for part in given if isinstance(part, list | tuple) for x in part]
        devices = {x.device for x in given if isinstance(x, torch.Tensor) and x.ndim}
        assert len(devices) <= 1 or "copy" in str(function), function
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.most = max(self.most, made.numel())
        return made


# Which kind of block comes out


@pytest.mark.parametrize("wrap", [lambda A: A, lambda A: hs.Scaled(A, np.full(N, 2.0))])
@every_operator
def test_a_block_comes_back_as_it_was_given(make, wrap):
    B, V = wrap(as_operator(make())), np.random.default_rng(0).normal(size=(N, 4))
    product = B @ V
    assert isinstance(product, np.ndarray)
    assert_same(B @ torch.from_numpy(V), product)
    assert (B @ torch.from_numpy(V).float()).dtype == torch.float64


def test_gradients_are_left_behind():
    V = torch.ones(N, 2, dtype=torch.float64, requires_grad=True)
    for B in (hs.TorchDense(torch.from_numpy(A).requires_grad_()), hs.TorchKernel(V, 1.0)):
        assert not (B @ V).requires_grad


def test_operators_of_the_host_take_tensors_and_give_arrays():
    V = torch.ones(N, 2, dtype=torch.float64, requires_grad=True)
    found = hs.Dense(A) @ V
    assert isinstance(found, np.ndarray)
    assert_allclose(found, A @ np.ones((N, 2)), rtol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_short_floats_are_computed_in_single_precision(dtype):
    eye = torch.eye(4, dtype=dtype)
    for B in (hs.TorchDense(eye), hs.TorchSparse(eye), hs.TorchKernel(eye, 1.0)):
        assert B.dtype == np.float32
        assert (B @ torch.ones(4)).dtype == torch.float32


def test_the_precision_of_products_does_not_depend_on_what_is_allowed_elsewhere():
    kernel = hs.TorchKernel(X.astype(np.float32), 0.8)
    before, expected = torch.get_float32_matmul_precision(), kernel @ np.eye(N)
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_array_equal(kernel @ np.eye(N), expected)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_two_threads_leave_the_precision_as_it_was():
    """The first to enter leaves first."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        first, second = full_precision("cpu"), full_precision("cpu")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(first.__enter__).result()
            second.__enter__()
            pool.submit(first.__exit__, None, None, None).result()
            inside = torch.get_float32_matmul_precision()
            second.__exit__(None, None, None)
        assert inside == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


# The same numbers as NumPy's


@pytest.mark.parametrize("d", [1, 50])
@pytest.mark.parametrize("local", [False, True])
def test_kernel_products_over_many_tiles(d, local):
    n = 2 * TILE_SIDE + 300
    points = cloud(n, d) + 3.0
    epsilon = np.random.default_rng(1).uniform(1, 2, n) * np.sqrt(d) if local else float(d)
    G = np.random.default_rng(2).normal(size=(n, 5))
    expected = kernel_matrix(points, epsilon) @ G
    assert_same(hs.TorchKernel(points, epsilon) @ torch.from_numpy(G), expected)
    single = hs.TorchKernel(torch.from_numpy(points).float(), epsilon)
    assert single.dtype == np.float32
    found = (single @ torch.from_numpy(G)).double()
    assert_same(found, expected, 1e-5)


def test_points_that_float32_cannot_tell_apart_are_computed_in_double():
    far = np.vstack([X, X + 1e4])
    kernel = hs.TorchKernel(torch.from_numpy(far).float(), 0.8)
    assert kernel.host.arithmetic == np.float64
    V = torch.ones(2 * N)
    expected = hs.Kernel(far.astype(np.float32).astype(float), 0.8) @ np.ones(2 * N)
    assert_same((kernel @ V).double(), expected, 1e-6)


def test_no_more_than_a_tile_is_made(limits):
    limits(torch_tile_side=128)
    kernel = hs.TorchKernel(cloud(3 * 128, 2), 0.3)
    ones = torch.ones(3 * 128, 4, dtype=torch.float64)
    with OneDevice() as watch:
        kernel @ ones
    assert watch.most == 128**2


@pytest.mark.parametrize("deflate", [True, False])
@every_operator
def test_sketches_are_those_of_the_matrix(make, deflate):
    G = np.random.default_rng(4).normal(size=(N, 3))
    seed, given = {"n_components": 5, "rng": 3}, {"G": G}
    for on_host, *others in ([seed], [given, {"G": torch.from_numpy(G)}]):
        expected = hs.sketch(A, FILTERS, deflate=deflate, **on_host)
        for drawn in (on_host, *others):
            found = hs.sketch(make(), FILTERS, deflate=deflate, **drawn)
            for one, other in zip(found, expected, strict=True):
                assert_same(one, other, 1e-10)


@every_operator
def test_eigenpairs_are_tensors(make):
    found, expected = hs.eigh(make(), 5, rng=0), hs.eigh(A, 5, rng=0)
    assert_same(found.values, expected.values)
    assert_same(found.vectors, expected.vectors, 1e-9)
    assert found.residuals.max() < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvalues_of_the_circle(dtype):
    """Even points of the circle: λ_m = I_m(2/ε) / I_0(2/ε), by iterations on the device."""
    n, epsilon = 1300, 0.25  # more than are solved by the dense matrix
    points = torch.from_numpy(even_circle(n)).to(dtype)
    B = hs.symmetric_normalize(hs.TorchKernel(points, epsilon))
    B = hs.Scaled(hs.TorchKernel(points, epsilon), B.s, B.spectrum)  # in their precision
    found = hs.eigh(B, 5, rng=0)
    expected = circle_eigenvalues(circle_frequencies(5), epsilon)
    assert found.vectors.dtype == dtype
    assert_same(found.values.double(), expected, 1e-12 if dtype == torch.float64 else 1e-5)
    assert found.vectors.shape == (n, 5)


# What is said of them


def test_what_operators_of_tensors_say_of_themselves():
    for B in (hs.TorchKernel(torch.from_numpy(X), 0.8), hs.TorchDense(K), hs.TorchSparse(K)):
        assert_allclose(B.diagonal(), 1)
        assert B.is_non_negative()
    twice = np.kron(np.eye(2), K)
    for B in (hs.TorchSparse(sparse.csr_matrix(twice)), hs.TorchDense(twice)):
        assert_array_equal(B.components(), np.repeat([0, 1], N))
    assert set(hs.TorchKernel(np.vstack([X, X + 1e3]), 0.8).components()) == {0, 1}


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@every_operator
def test_they_are_normalised_and_certified(make, normalization):
    given = make() if make is not MADE["kernel"] else hs.TorchKernel(torch.from_numpy(X), 0.8)
    expected = A if make is not MADE["kernel"] else K
    d, own = (hs.Diffusion.from_affinity(B, normalization=normalization) for B in (given, expected))
    assert_allclose(d.measure, own.measure, rtol=1e-9)
    assert_allclose(d.operator @ np.eye(N), own.operator @ np.eye(N), atol=1e-8)
    assert d.diagnostics["components"] == own.diagnostics["components"]


@pytest.mark.parametrize("options", [{}, {"zero_diagonal": True}], ids=str)
@pytest.mark.parametrize("normalize", [hs.symmetric_normalize, hs.bistochastic_normalize])
def test_a_normalised_tensor_is_a_tensor(normalize, options):
    normalize = partial(normalize, **options)
    expected = normalize(K)
    assert_same(normalize(torch.from_numpy(K)), expected)
    assert normalize(torch.from_numpy(K).float()).dtype == torch.float32
    graph = normalize(in_csr(K))
    assert graph.layout == torch.sparse_csr
    assert_same(graph.to_dense(), expected)


@pytest.mark.parametrize("form", [torch.from_numpy, in_csr], ids=["dense", "CSR"])
def test_tensors_without_a_diagonal_are_scaled_with_weights(form):
    given = hs.gaussian_affinity(X, 8.0)
    np.fill_diagonal(given, 0)
    found = hs.bistochastic_normalize(form(given), weights="1/q")
    assert_same(found.to_dense(), hs.bistochastic_normalize(given, weights="1/q"))


def test_operators_of_the_host_move_to_a_device():
    V = np.random.default_rng(6).normal(size=(N, 3))
    for B in (
        hs.Sparse(sparse.csr_matrix(A)),
        hs.Scaled(hs.Kernel(X, 0.8), np.full(N, 2.0)),
        hs.Deflated(hs.Affine(hs.Dense(A), 0.5, 0.5), np.ones(N) / np.sqrt(N)),
    ):
        moved = on_device(B, "cpu")
        assert moved.device == torch.device("cpu")
        assert_allclose(moved @ V, B @ V, atol=1e-12)
        assert moved.spectrum == B.spectrum
    stays = hs.Kernel(sparse.csr_matrix(X), 0.8)
    assert on_device(stays, "cpu") is stays


def test_directions_may_be_a_tensor_wherever_the_operator_is():
    v = np.ones(N) / np.sqrt(N)
    expected = hs.Deflated(hs.Dense(A), v) @ X
    for B in (hs.Dense(A), hs.TorchDense(A)):
        assert_allclose(hs.Deflated(B, torch.from_numpy(v)) @ X, expected, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hs.TorchDense(torch.ones(2, 3)), r"\(2, 3\); pass a square"),
        (lambda: hs.TorchSparse(torch.ones(2, 3)), r"\(2, 3\); pass a square"),
        (lambda: hs.TorchKernel(sparse.eye(3).tocsr(), 1.0), "use heatsketch.Kernel"),
        (lambda: hs.TorchKernel(torch.ones(3, 1), 0.0), "epsilon=0.0 is out of range"),
        (lambda: hs.TorchDense(torch.eye(2), device="mps"), "no float64"),
        (lambda: as_operator(torch.ones(3, 3).triu()), "not symmetric"),
        (lambda: as_operator(torch.full((2, 2), np.nan)), "NaN or infinity"),
        (lambda: as_operator(torch.ones(2, 3)), r"\(2, 3\); pass a square"),
        (lambda: as_operator(torch.eye(2, dtype=torch.complex64)), "pass real numbers"),
    ],
)
def test_bad_parts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [hs.TorchDense, hs.TorchKernel, hs.TorchSparse])
def test_the_examples_run(kind):
    """They are marked to be skipped, for where torch is missing."""
    text = kind.__doc__.replace("  # doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {}, kind.__name__, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


# Tensors on a device are not mixed with others: "meta", which has shapes alone, stands for one

FAR = X + 1e7 * (np.arange(N) % 2)[:, None]  # differences are taken


@pytest.fixture
def one_device(limits):
    limits(device_tile_side=128)
    with OneDevice():
        yield


@pytest.mark.parametrize("points", [X, X.astype(np.float32), FAR], ids=["f8", "f4", "far"])
@pytest.mark.parametrize("epsilon", [1.0, np.full(N, 1.3)], ids=["one", "local"])
@pytest.mark.usefixtures("one_device")
def test_products_stay_on_the_device(points, epsilon):
    K = hs.TorchKernel(points, epsilon, device="meta")
    product = K @ torch.ones((N, 4))
    assert (product.device.type, product.dtype) == ("meta", getattr(torch, K.dtype.name))
    A = hs.Deflated(hs.Scaled(hs.Affine(K, 0.5, 0.5), np.ones(N)), np.ones(N) / np.sqrt(N))
    assert A.device.type == "meta"


@pytest.mark.usefixtures("one_device")
def test_stored_matrices_stay_on_the_device():
    dense = hs.TorchDense(np.eye(N), (0.0, 1.0), device="meta")
    assert (dense @ torch.ones((N, 2))).device.type == "meta"
    graph = hs.TorchSparse(np.eye(N), (0.0, 1.0), device="meta")
    assert graph.tensor.device.type == "meta"
    assert graph.scaled_both_sides(np.ones(N), (0.0, 1.0), np.ones(N)).tensor.device.type == "meta"


def test_sums_of_a_matrix_on_a_device_are_those_of_scipy():
    matrix = sparse.random(30, 20, 0.1, "csr", rng=1)  # with empty rows and columns
    found = on_device(matrix, "cpu")
    for axis in (0, 1):
        assert_same(found.sum(axis), np.asarray(matrix.sum(axis)).ravel())


@every_device
def test_a_component_is_taken_out_on_the_device(device, monkeypatch):
    S = sparse.csr_matrix(sparse.block_diag([np.tril(A) + np.tril(A, -1).T, A[:40, :40]]))
    vertices = np.sort(np.random.default_rng(0).permutation(130)[:70])
    operator, host = on_device(hs.Sparse(S), device), hs.Sparse(S)
    traffic = Traffic(monkeypatch)
    part = operator.restricted(vertices)
    assert traffic.large(100)[0] == 0  # no entries come to the host
    monkeypatch.undo()
    assert part.spectrum == host.spectrum
    assert_array_equal(part.sparse_matrix().toarray(), host.restricted(vertices).matrix.toarray())
