"""Blocks of tensors stay tensors: what is copied to and from the host while a filter is applied."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from heatsketch.device.operators import on_device
from heatsketch.spectral.functions import apply
from heatsketch.spectral.recurrences import spectral_density
from problems.clouds import cloud
from problems.devices import Traffic

torch = pytest.importorskip("torch")

N, K = 1300, 4  # more points than are solved by the dense matrix
POINTS = cloud(N, 3)
GRAPH = hs.diffusion(POINTS)
DENSE = hs.symmetric_normalize(hs.gaussian_affinity(POINTS, 0.8))
ROOT = GRAPH.deflated.V
S = np.random.default_rng(0).uniform(0.7, 1.0, N)
ON_HOST = {
    "dense": hs.Dense(DENSE),
    "sparse": hs.Sparse(GRAPH.operator.matrix, (-1.0, 1.0)),
    "scaled": hs.Scaled(hs.Dense(DENSE, (-1.0, 1.0)), S),
    "deflated": hs.Deflated(hs.Affine(hs.Sparse(GRAPH.operator.matrix, (-1, 1)), 0.5, 0.5), ROOT),
}
MANY = np.random.default_rng(1).normal(size=(N, 3))
FILTERS = [hs.Power(3), hs.Heat(9.5), hs.Accumulated(2, 30)]
every_operator = pytest.mark.parametrize("A", ON_HOST.values(), ids=ON_HOST)
G = np.random.default_rng(2).normal(size=(N, K))


@pytest.fixture
def traffic(monkeypatch):
    return Traffic(monkeypatch)


def test_copies_are_counted(traffic):
    A = hs.TorchDense(DENSE)
    traffic.to_device.clear()
    np.asarray(A @ torch.ones(N, 2))
    assert traffic.large(N) == [1, 0]
    A @ np.ones((N, 2))
    assert traffic.to_host == [2 * N, 2 * N]
    assert traffic.large(N) == [2, 1]


@every_operator
@pytest.mark.parametrize("f", FILTERS, ids=str)
def test_a_filter_leaves_the_block_on_the_device(A, f, traffic):
    B, expected = on_device(A, "cpu"), apply([f], A, G)[0]
    block = torch.from_numpy(G)
    traffic.to_device.clear()
    found = apply([f], B, block)[0]
    assert traffic.large(N)[0] == 0
    assert traffic.large(N)[1] <= 4  # starts of Lanczos steps and of eigenpairs, for the range
    assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
    traffic.to_host.clear()
    assert isinstance(apply([f], B, G)[0], np.ndarray)
    assert [size for size in traffic.to_host if size >= N] == [N * K]


@every_operator
def test_a_sketch_is_made_on_the_device(A, traffic):
    B = on_device(A, "cpu")
    found = hs.sketch(B, FILTERS, K, rng=0)
    assert traffic.large(N)[0] == 0
    for tensor, array in zip(found, hs.sketch(A, FILTERS, K, rng=0), strict=True):
        assert_allclose(tensor, array, atol=1e-8 * np.abs(array).max())


def test_a_sketch_of_a_kernel_is_made_on_the_device(traffic):
    A = hs.symmetric_normalize(hs.TorchKernel(POINTS, 0.8))
    traffic.to_host.clear()
    hs.sketch(A, hs.Power(3), K, rng=0)
    assert traffic.large(N)[0] == 0


@pytest.mark.parametrize(
    "A", [*ON_HOST.values(), hs.Dense(DENSE.astype(np.float32))], ids=[*ON_HOST, "float32"]
)
def test_eigenpairs_are_found_on_the_device(A, traffic):
    found = hs.eigh(on_device(A, "cpu"), 5, tol=1e-6, rng=0)
    assert traffic.large(N)[0] == 0
    assert_allclose(found.values, hs.eigh(A, 5, tol=1e-6, rng=0).values, atol=1e-5)
    assert found.residuals.max() < 2e-6


def test_columns_that_depend_on_others_are_replaced_on_the_device(traffic):
    """The block has more columns than the matrix has rank."""
    A = hs.TorchDense(MANY @ MANY.T, (0.0, 2.0 * N))
    traffic.to_host.clear()
    values = hs.eigh(A, 5, rng=0).values
    assert traffic.large(N)[0] == 0
    exact = np.linalg.eigvalsh(MANY.T @ MANY)[::-1]
    assert_allclose(values, [*exact, 0, 0], atol=1e-8 * exact[0])


def test_no_coarser_graph_is_made_on_the_host(traffic):
    A = on_device(hs.Deflated(ON_HOST["sparse"], ROOT), "cpu")
    hs.eigh(A, 5, rng=0)
    assert traffic.large(N)[0] == 0


@every_operator
def test_densities_are_found_on_the_device(A, traffic):
    B = on_device(A, "cpu")
    found, expected = spectral_density(B), spectral_density(A)
    assert traffic.large(N)[0] == 0
    for f in (hs.Heat(2.0), hs.Heat(20.0)):
        traces = [float(d.counts @ f(d.values)) for d in (found, expected)]
        assert traces[0] == pytest.approx(traces[1], rel=1e-9)


@every_operator
def test_an_operator_that_comes_back_to_the_host_has_the_same_bits(A):
    back = on_device(on_device(A, "cpu"), None)
    assert back.device is None
    np.testing.assert_array_equal(back @ G, A @ G)
    np.testing.assert_array_equal(back.V, A.V)
