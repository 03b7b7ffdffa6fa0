"""Graph and normalisation on a device: the matrices of SciPy, the components, the copies."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import heatsketch as hs
from heatsketch._arrays import landed
from heatsketch._messages import device_memory
from heatsketch.core.blocks import HOST
from heatsketch.device.blocks import blocks_on, device_csr
from heatsketch.device.operators import TorchSparse, on_device
from problems.clouds import cloud
from problems.devices import Traffic, every_device, refuse_arrays

torch = pytest.importorskip("torch")

N = 300


def directed(n=N, degree=4, seed=0):
    """Return a random matrix (n, n), CSR, with rows of different lengths, none of them empty."""
    rng = np.random.default_rng(seed)
    rows = np.append(rng.integers(0, n, n * (degree - 1)), np.arange(n))
    columns = rng.integers(0, n, n * degree)
    M = sparse.csr_matrix((rng.uniform(0.1, 1, len(rows)), (rows, columns)), shape=(n, n))
    M.sum_duplicates()
    return M


def assert_same_matrix(found, expected):
    expected.sort_indices()
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(found, name).cpu().numpy(), getattr(expected, name))


@every_device
def test_a_matrix_on_a_device_is_that_of_scipy(device):
    M = directed()
    there, blocks = device_csr(M, device), blocks_on(device)
    for kind in ("max", "sum"):
        assert_same_matrix(blocks.both_ways(there, kind), HOST.both_ways(M, kind))
    assert_same_matrix(there.T, M.T.tocsr())
    X = np.random.default_rng(1).normal(size=(N, 3))
    assert_allclose(there @ X, M @ X, rtol=1e-12)
    assert isinstance(there @ blocks.native(X), torch.Tensor)
    assert_allclose(there.T @ X, M.T @ X)
    assert_allclose(there[:5] @ X, M[:5] @ X)
    for kind in ("sum", "min"):
        found = blocks.over_rows(kind, there.data, there.indptr)
        assert_allclose(found.cpu(), HOST.over_rows(kind, M.data, M.indptr), rtol=1e-12)
    assert_array_equal(
        blocks.repeated(blocks.native(np.arange(N)), there).cpu(), HOST.repeated(np.arange(N), M)
    )
    some = M.copy()
    some.data[::3] = 0
    there = device_csr(some, device)
    there.eliminate_zeros()
    some.eliminate_zeros()
    assert_same_matrix(there, some)


@every_device
def test_entries_of_a_row_are_sorted_by_column(device):
    M = directed()
    shuffled = M.copy()
    shuffled.indices = shuffled.indices.copy()
    for i in range(N):
        row = slice(*M.indptr[i : i + 2])
        shuffled.indices[row], shuffled.data[row] = M.indices[row][::-1], M.data[row][::-1]
    there = device_csr(shuffled, device)
    there.sort_indices()
    assert_same_matrix(there, M)


@every_device
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_components_are_those_of_scipy(degree, device):
    M = directed(2000, degree)
    M = M.maximum(M.T)
    found = on_device(hs.Sparse(M), device).components()
    count, labels = connected_components(M, directed=False)
    assert found.max() + 1 == count
    assert len(np.unique(np.stack([found, labels]), axis=1).T) == count  # the same, renamed


@every_device
def test_a_long_path_is_one_component_and_negligible_links_join_nothing(device):
    n = 3000
    order = np.random.default_rng(0).permutation(n)
    ends = order[:-1], order[1:]
    weights = np.ones(n - 1)
    path = sparse.csr_matrix((weights, ends), shape=(n, n))
    assert on_device(hs.Sparse(path + path.T), device).components().max() == 0
    weights[n // 2] = 1e-16
    path = sparse.csr_matrix((weights, ends), shape=(n, n))
    labels = on_device(hs.Sparse(path + path.T), device).components()
    assert_array_equal(np.unique(labels[order[: n // 2 + 1]]), labels[order[:1]])
    assert labels.max() == 1


@every_device
def test_what_a_stored_matrix_says_of_itself(device):
    M = directed()
    M = M.maximum(M.T)
    A, B = TorchSparse(device_csr(M, device)), hs.Sparse(M)
    assert A.spectrum == pytest.approx(B.spectrum)
    assert_array_equal(landed(A.diagonal()), B.diagonal())
    s = np.random.default_rng(0).uniform(1, 2, N)
    scaled, own = (one.scaled_both_sides(s, (-9, 9), s) for one in (A, B))
    assert_allclose((scaled.matrix - own.matrix).data, 0, atol=1e-15)
    assert A.is_non_negative()
    assert A.blocks == blocks_on(device)
    assert on_device(A, device) is A
    assert_same_matrix(device_csr(on_device(A, None).matrix, device), M)


@every_device
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
def test_a_diffusion_on_a_device_is_that_of_the_host(normalization, alpha, device, monkeypatch):
    X = np.concatenate([cloud(N, 4), cloud(N, 4)[:9]])
    refuse_arrays(monkeypatch)
    options = {"normalization": normalization, "alpha": alpha}
    d, own = hs.diffusion(X, device=device, **options), hs.diffusion(X, **options)
    for name in ("measure", "vertex", "epsilon", "by_content"):
        assert_allclose(getattr(d, name), getattr(own, name), rtol=1e-12)
    G = np.random.default_rng(0).normal(size=(N, 3))
    assert_allclose(d.operator @ G, own.operator @ G, atol=1e-12)
    assert_allclose(d.step() @ G, own.step() @ G, atol=1e-12)
    assert_allclose(d.kernel_rows(X[:7]) @ G, own.kernel_rows(X[:7]) @ G, atol=1e-12)
    expected = hs.diffusion_distance(own, 4)
    assert_allclose(hs.diffusion_distance(d, 4), expected, atol=1e-10 * expected.max())
    assert d.operator.device.type == device
    back = d.landed()
    assert back.operator.device is None
    assert sparse.issparse(back.directed_step)


@every_device
def test_bipartite_graphs_and_lone_points_are_seen(device):
    """A cycle of even length without loops; then a point so far that nothing reaches it."""
    cycle = sparse.csr_matrix((np.ones(6), (np.arange(6), np.arange(1, 7) % 6)), shape=(6, 6))
    d = hs.Diffusion.from_affinity(cycle + cycle.T, alpha=0, device=device)
    assert d.diagnostics["bipartite"] == 1
    X = np.concatenate([cloud(60, 2), cloud(60, 2) + 1e6])
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 60, 60\)"):
        hs.diffusion(X, device=device)


@every_device
def test_nothing_of_the_graph_comes_to_the_host_before_it_ends(device, monkeypatch):
    """Afterwards vectors alone do: the matrices stay until the model is complete."""
    made = importlib.import_module("heatsketch.markov.diffusion")
    traffic = Traffic(monkeypatch)
    refuse_arrays(monkeypatch)
    before = []

    def last(value, done):
        before.append(traffic.large(N)[0])
        return landed(value, done)

    monkeypatch.setattr(made, "landed", last)
    hs.diffusion(cloud(N, 4), device=device)
    assert before[0] == 0
    # Measure, s, row sums, density, scales, by_content, vertex, the numbers of the points of the
    # search, and these (N, 4).
    assert traffic.large(N)[0] == 9
    assert sorted(traffic.to_host)[-2] <= N
    assert max(traffic.to_host) == 4 * N


def test_a_lack_of_memory_says_what_to_pass(monkeypatch):
    def fail(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has")

    says = r"CUDA out of memory\); pass points in float32, a smaller n_neighbors"
    with pytest.raises(MemoryError, match=says), device_memory():
        fail()
    with pytest.raises(RuntimeError, match="something else"), device_memory():
        raise RuntimeError("something else")
    monkeypatch.setattr(
        importlib.import_module("heatsketch.markov.affinity"), "neighborhood_graph", fail
    )
    with pytest.raises(MemoryError, match="device=None"):
        hs.HeatSketch(2, device="cpu").fit(cloud(50, 2))
