"""Shortest paths on a device: the bits of SciPy and of the host."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from heatsketch.neighbors import pair_distances
from heatsketch.neighbors.graph import shortest_paths
from problems.devices import every_device, refuse_arrays

torch = pytest.importorskip("torch")

from heatsketch.device.blocks import DeviceBlocks, device_csr  # noqa: E402

LENGTHS = {
    "random": lambda rng, m: rng.exponential(size=m),
    "ties": lambda rng, m: rng.integers(1, 4, m).astype(float),
    "zeros": lambda rng, m: rng.integers(0, 3, m) * 0.1,  # of which sums are rounded
    "any size": lambda rng, m: 10.0 ** rng.uniform(-100, 100, m),
    "all zero": lambda rng, m: np.zeros(m),
}
every_kind = pytest.mark.parametrize("kind", LENGTHS)


@pytest.fixture(autouse=True)
def _no_arrays(monkeypatch):
    refuse_arrays(monkeypatch)


def random_graph(seed, n, m, kind):
    """Return a symmetric graph of at most m edges, perhaps of several components."""
    rng = np.random.default_rng(seed)
    i, j = np.sort(rng.integers(0, n, (2, m)), axis=0)
    i, j = np.divmod(np.unique(i * n + j), n)
    values = LENGTHS[kind](rng, len(i))
    parts = np.append(values, values), (np.append(i, j), np.append(j, i))
    whole = sparse.coo_matrix(parts, (n, n))
    whole.has_canonical_format = True  # loops twice, of the same length
    return whole.tocsr()


@every_device
@every_kind
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # they stay
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 120), st.integers(1, 5))
def test_paths_have_the_bits_of_scipy_in_every_place(kind, device, limits, seed, n, m, s):
    limits(few_steps=0)
    graph = random_graph(seed, n, m, kind)
    sources = np.random.default_rng(seed).integers(0, n, s)  # some of them equal
    expected = dijkstra(graph, directed=False, indices=sources)
    assert_array_equal(shortest_paths(graph, sources), expected)
    assert_array_equal(shortest_paths(device_csr(graph, device), sources), expected)


@every_device
def test_paths_along_a_line_are_sums_from_the_source_on(device):
    lengths = np.random.default_rng(0).exponential(size=2_000)
    ends = np.arange(2_000)
    graph = sparse.csr_matrix((lengths, (ends, ends + 1)), (2_001, 2_001))
    found = shortest_paths(device_csr(graph + graph.T, device), np.array([0, 2_000]))
    assert_array_equal(found[0], np.append(0, np.cumsum(lengths)))
    assert_array_equal(found[1], np.append(0, np.cumsum(lengths[::-1]))[::-1])


@every_device
def test_paths_do_not_depend_on_numbers_units_blocks_or_detours(device, monkeypatch):
    graph = random_graph(0, 300, 900, "random")
    sources = np.arange(5)
    expected = shortest_paths(device_csr(graph, device), sources)
    order = np.random.default_rng(1).permutation(300)
    place = np.argsort(order)
    found = shortest_paths(device_csr(graph[order][:, order], device), place[sources])
    assert_array_equal(found[:, place], expected)
    assert_array_equal(shortest_paths(device_csr(4 * graph, device), sources), 4 * expected)
    assert expected[np.isfinite(expected)].max() < 100
    dense = graph.toarray()
    detours = np.where((dense == 0) & (dense @ dense > 0), 100.0, dense)
    found = shortest_paths(device_csr(sparse.csr_matrix(detours), device), sources)
    assert_array_equal(found, expected)
    two = device_csr(sparse.block_diag([graph, 3 * graph], format="csr"), device)
    assert_array_equal(shortest_paths(two, sources)[:, :300], expected)
    assert np.isinf(shortest_paths(two, sources)[:, 300:]).all()
    monkeypatch.setattr(DeviceBlocks, "step_bytes", 1_000.0)
    assert_array_equal(shortest_paths(device_csr(graph, device), sources), expected)


@every_device
@pytest.mark.parametrize("how", ["float64", "float32", "sparse", "by features"])
def test_lengths_of_edges_are_distances(how, device, monkeypatch):
    X = 1e3 + np.random.default_rng(0).normal(size=(60, 7))
    if how == "by features":
        monkeypatch.setattr(DeviceBlocks, "step_bytes", 60 * 16 * 2.0)
    if how == "float32":
        X = X.astype(np.float32)
    graph = device_csr(sparse.random(60, 60, 0.3, "csr", rng=1), device)
    points = sparse.csr_matrix(X) if how == "sparse" else X
    found = pair_distances(points, points, *graph.places())
    rows, columns = graph.host.nonzero()
    assert_allclose(found.cpu().numpy(), cdist(X, X)[rows, columns], rtol=1e-13)
