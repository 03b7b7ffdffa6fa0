"""The search on a device: the neighbours of the host where it is exact, else a measured recall."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context

from heatsketch._arrays import on_host
from heatsketch._random import distinct_rows
from heatsketch.core.blocks import HOST
from heatsketch.device.blocks import DeviceBlocks
from heatsketch.neighbors import NeighborIndex, in_metric, ordered_search
from problems.clouds import cloud
from problems.devices import Traffic, every_device, refuse_arrays

torch = pytest.importorskip("torch")

K = 9
GRID = np.stack(np.meshgrid(*[np.arange(7.0)] * 3), -1).reshape(-1, 3)  # ties everywhere
CORNERS = np.eye(60)  # all pairs equally far
CLOUDS = {
    "cloud": cloud(700, 12),
    "float32": cloud(700, 12).astype(np.float32) + np.float32(1e3),
    "grid": GRID,
    "corners": CORNERS,
    "wide": cloud(500, 3) * np.array([1.0, 1e-6, 1e6]),
}
every_cloud = pytest.mark.parametrize("X", CLOUDS.values(), ids=CLOUDS)


@pytest.fixture(autouse=True)
def _no_arrays(monkeypatch):
    refuse_arrays(monkeypatch)


@pytest.fixture
def cells(limits):
    """Search in cells from 300 points on, 40 in each."""
    limits(exact_points=300, device_cell_points=40)


def brute_force(x, y, k):
    """Return distances and numbers (m, k) by all differences, ties by lowest number."""
    D = np.sqrt(np.square(x[:, None].astype(float) - y).sum(-1))
    order = np.lexsort((np.broadcast_to(np.arange(len(y)), D.shape), D), axis=1)[:, :k]
    return np.take_along_axis(D, order, axis=1), order


@every_device
@every_cloud
def test_up_to_some_number_of_points_it_is_exact_with_ties_by_lowest_number(X, device):
    index = NeighborIndex(X, device=device)
    assert not index.approximate
    for x in (None, X[:40], X[:40] + np.asarray(0.25, X.dtype)):
        found = index.query(x, K)
        distances, indices = brute_force(X if x is None else x, X, K)
        assert_array_equal(found.indices, indices)
        assert_allclose(found.distances, distances, rtol=1e-12)
    assert index.order() is None


def test_blocks_of_any_size_give_the_same():
    X, device = CLOUDS["cloud"], "cpu"
    with config_context(working_memory=0.05):  # some rows at a time
        small = NeighborIndex(X, device=device).query(None, K)
    for one, other in zip(small, NeighborIndex(X, device=device).query(None, K), strict=True):
        assert_allclose(one, other, rtol=1e-14)


@every_device
@every_cloud
def test_equal_points_and_their_order_are_those_of_the_host(X, device):
    X = np.concatenate([X, X[::3], -0.0 * X[:2]]) * np.asarray(2.0**90, X.dtype)
    blocks = DeviceBlocks(torch.device(device))
    rows, place = blocks.distinct_rows(torch.from_numpy(X).to(device))
    first, vertex = distinct_rows(X)
    assert_array_equal(rows.cpu().numpy(), first)
    assert_array_equal(place.cpu().numpy(), vertex)


# Cells


@every_device
@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.98])
def test_the_recall_asked_for_is_measured_and_found(recall, device):
    """All points, not only those of the sample; 5 standard errors of the sample are 1e-6."""
    X = cloud(3000, 10)
    index = NeighborIndex(X, recall=recall, device=device)
    assert index.approximate
    found, (farthest, _) = index.query(None, K), brute_force(X, X, K)
    measured = index.diagnostics(K)
    assert measured["recall"] >= recall
    of_all = np.mean(found.distances <= farthest[:, -1:] * (1 + 1e-12))
    assert abs(of_all - measured["recall"]) <= 5 * measured["recall_error"]
    probes = index.search._engine.probes_for(K)
    assert probes.n_probe < len(probes.near) == 75  # some of the cells
    near = np.sqrt(np.square(X[:, None] - X[found.indices]).sum(-1))
    assert_allclose(found.distances, near, rtol=1e-12)
    assert_array_equal(found.indices[:, 0], np.arange(len(X)))
    assert (np.diff(found.distances) >= 0).all()


@every_device
@pytest.mark.usefixtures("cells")
def test_far_points_find_their_neighbours_and_cost_the_others_nothing(device):
    X = np.concatenate([cloud(1500, 10), 1e7 * cloud(4, 10)])
    found = NeighborIndex(X, recall=0.9, device=device).query(None, K)
    distances, indices = brute_force(X, X, K)
    assert_array_equal(found.indices[-4:], indices[-4:])
    assert np.mean(found.distances <= distances[:, -1:] * (1 + 1e-12)) > 0.85


@every_device
@pytest.mark.usefixtures("cells")
def test_points_that_float32_cannot_tell_apart_are_found_in_float64(device):
    """Tight clusters, so far from each other that squares in float32 hide the distances within."""
    rng = np.random.default_rng(0)
    X = 1e5 * rng.normal(size=(4, 10))[np.arange(800) % 4] + 1e-3 * rng.normal(size=(800, 10))
    index = NeighborIndex(X, recall=0.95, device=device)
    found, (distances, _) = index.query(None, K), brute_force(X, X, K)
    assert index.diagnostics(K)["recall"] >= 0.95
    assert np.mean(found.distances <= distances[:, -1:] * (1 + 1e-9)) > 0.9


@every_device
@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_training_point_is_found_like_a_new_one_and_tensors_stay(dtype, device):
    X = cloud(900, 10).astype(dtype)
    index = NeighborIndex(X, device=device)
    for one, other in zip(index.query(X[:80], K), index.query(None, K), strict=True):
        assert isinstance(one, np.ndarray)
        assert_allclose(one, other[:80], rtol=1e-12)
    on_host = NeighborIndex(X)  # whose search for tensors is on their device
    found = on_host.query(torch.from_numpy(X[:80]).to(device), K)
    assert found.indices.device.type == device
    assert_array_equal(found.indices.cpu().numpy(), index.query(X[:80], K).indices)
    assert pickle.loads(pickle.dumps(on_host)).search._elsewhere is None


@every_device
@pytest.mark.parametrize("recall", [1, 0.9])
def test_points_larger_than_the_memory_of_the_device_stay_on_the_host(
    recall, device, limits, monkeypatch
):
    """They are read in parts, a copy of all of them is never there; equal points are found."""
    limits(exact_points=300, device_cell_points=300)
    X = np.concatenate([cloud(3000, 10), cloud(3000, 10)[:50]])
    new = X[:40] + 0.1
    own, own_rows, own_place = ordered_search(NeighborIndex(X, recall=recall, device=device), X)
    expected = *own.query(None, K), *own.query(new, K), own_rows, own_place
    monkeypatch.setattr(DeviceBlocks, "room", X.nbytes / 2)
    traffic = Traffic(monkeypatch)
    search, rows, place = ordered_search(NeighborIndex(X, recall=recall, device=device), X)
    assert isinstance(search.points, np.ndarray)
    found = *search.query(None, K), *search.query(new, K), rows, place
    for one, other in zip(found, expected, strict=True):
        assert one.device.type == device
        assert_allclose(on_host(one), on_host(other), rtol=1e-12)
    assert search.diagnostics(K) == own.diagnostics(K)
    assert max(traffic.to_device) < X.size / 3


@pytest.mark.usefixtures("cells")
def test_recall_1_is_exact():
    X = cloud(900, 10)
    index = NeighborIndex(X, recall=1, device="cpu")
    assert not index.approximate
    assert_array_equal(index.query(None, K).indices, brute_force(X, X, K)[1])


# The index


def test_other_metrics_radii_and_sparse_points():
    X = cloud(300, 6) + 0.5
    index, own = NeighborIndex(X, metric="cosine", device="cpu"), in_metric(X, "cosine")
    assert_array_equal(index.query(None, K).indices, brute_force(own, own, K)[1])
    assert_array_equal(
        index.query(torch.from_numpy(X), K).indices.numpy(), brute_force(own, own, K)[1]
    )
    assert (index.within(None, 0.3) != NeighborIndex(X, metric="cosine").within(None, 0.3)).nnz == 0
    assert NeighborIndex(sparse.csr_matrix(X), device="cpu").device is None


def test_tensors_are_checked():
    index = NeighborIndex(cloud(50, 3), device="cpu")
    with pytest.raises(ValueError, match="NaN"):
        index.query(torch.full((2, 3), torch.nan), 2)
    with pytest.raises(ValueError, match="features"):
        index.query(torch.zeros(2, 4), 2)
    for bad in ("cuda:77", "nonsense"):
        with pytest.raises(ValueError, match="is not a device that torch can use here"):
            NeighborIndex(cloud(50, 3), device=bad)


def test_an_index_on_a_device_orders_points_as_the_host_does():
    X = np.concatenate([cloud(200, 5), cloud(200, 5)[:20]])
    index = NeighborIndex(X, device="cpu")
    search, rows, place = ordered_search(index, X)
    own, own_rows, own_place = ordered_search(None, X)
    assert_array_equal(rows.numpy(), own_rows)
    assert_array_equal(place.numpy(), own_place)
    assert_array_equal(search.query(None, K).indices.numpy(), own.query(None, K).indices)
    landed = search.landed()
    assert landed.blocks is HOST
    assert_array_equal(landed.points, own.points)
    assert (search.within(None, 1.0) != own.within(None, 1.0)).nnz == 0
