"""Neighbours found on a device of torch, here the processor, are those found by arrays."""

import numpy as np
import pytest

from heatsketch.neighbors import NeighborIndex, exact, torch_blocks
from problems.clouds import cloud

torch = pytest.importorskip("torch")


def both(points, **options):
    return NeighborIndex(points, device="cpu", **options), NeighborIndex(points, **options)


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(torch_blocks, "TILE_ENTRIES", 2**12)
    monkeypatch.setattr(torch_blocks, "_TILE_COLUMNS", 100)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.usefixtures("small_tiles")
def test_the_same_neighbors_bit_for_bit(d, k):
    points = cloud(450, d)
    found, expected = both(points)
    assert_equal(found.of_points(k), expected.of_points(k))
    new = cloud(60, d, seed=1)
    assert_equal(found.query(torch.from_numpy(new), k), expected.query(new, k))


@pytest.mark.usefixtures("small_tiles")
def test_ties_offsets_and_copies_of_points():
    grid = np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), axis=-1).reshape(-1, 2)
    wide = np.hstack([grid, np.zeros((len(grid), 18))])  # too many features for a tree
    for points in (grid, wide, wide + 1e7, np.repeat(wide, 3, axis=0)):
        assert_equal(*(one.of_points(6) for one in both(points)))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_points_beyond_float32(scale):
    points = cloud(200, 20) * scale
    assert_equal(*(one.of_points(5) for one in both(points)))


@pytest.mark.usefixtures("small_tiles")
def test_many_points_are_compared_on_the_device_alone(monkeypatch):
    """With more points than the host compares, rows that float32 cannot decide go to float64."""
    monkeypatch.setattr(exact, "EXACT_POINTS", 100)
    points = cloud(400, 20)
    points[:200] += 1e6  # float32 has no digits left for these
    found = NeighborIndex(points, device="cpu")
    assert not found.approximate
    monkeypatch.setattr(exact.ExactSearch, "_block_search", None)
    monkeypatch.setattr(exact.ExactSearch, "_ball_tree", None)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    nearest = found.of_points(5)
    np.testing.assert_allclose(nearest.distances, np.sort(distances, axis=1)[:, :5], rtol=1e-12)
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 4), axis=-1).reshape(-1, 4)
    found = NeighborIndex(grid, device="cpu").of_points(9)
    np.testing.assert_array_equal(np.sort(found.distances, axis=1), found.distances)
    expected = np.sort(np.linalg.norm(grid[:, None] - grid, axis=2), axis=1)[:, :9]
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)


def test_no_more_than_a_block_of_distances_is_made(monkeypatch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            parts = made if isinstance(made, tuple) else (made,)
            sizes = [part.numel() for part in parts if isinstance(part, torch.Tensor)]
            self.most = max(self.most, *sizes, 0)
            return made

    monkeypatch.setattr(torch_blocks, "TILE_ENTRIES", 2**14)
    with Watch() as watch:
        NeighborIndex(cloud(600, 9), device="cpu").of_points(4)
    assert watch.most <= 2**14 < 600**2


def test_a_device_without_float64_is_refused():
    with pytest.raises(ValueError, match=r"mps.*no float64"):
        NeighborIndex(cloud(50, 3), device="mps").of_points(2)


def test_an_index_keeps_its_device_for_its_frame_and_its_distinct_points():
    points = np.repeat(cloud(50, 3), 2, axis=0)
    found = NeighborIndex(torch.from_numpy(points), device="cpu")
    assert isinstance(found.input_points, np.ndarray)
    assert found.distinct().search.device == "cpu"
    assert NeighborIndex(torch.from_numpy(points)).device is None
