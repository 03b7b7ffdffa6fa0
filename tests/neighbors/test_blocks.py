"""The search by blocks in float32: what it proves is exact, and it proves nearly everything."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from heatsketch.neighbors import NeighborIndex, blocks
from heatsketch.neighbors.blocks import Blocks

RNG = np.random.default_rng(0)
CLOUD = RNG.normal(size=(1500, 30))
CASES = {
    "cloud": CLOUD,
    "far from zero": CLOUD + 1e6,
    "one outlier": np.vstack([CLOUD[:300], np.full((1, 30), 1e7)]),
    "copies": np.repeat(CLOUD[:40], 20, axis=0),
    "grid": RNG.integers(0, 2, (600, 20)).astype(float),
    "differences lost in float32": 1 + 1e-9 * CLOUD[:300],
    "squares below float32": 1e-25 * CLOUD[:300],
    "squares above float32": 1e25 * CLOUD[:300],
    "few points": CLOUD[:12],
    "wide": RNG.normal(size=(200, 3000)),
}


def nearest(x, points, k):
    """Return the k nearest points by all distances; of equally distant ones the lowest first."""
    squares = np.stack([((row - points) ** 2).sum(axis=1) for row in x])
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(squares, order, axis=1)), order


@pytest.mark.parametrize("name", CASES)
def test_proved_rows_are_exact(name):
    points = CASES[name]
    x, k = np.vstack([points[::7], points[::11] + 2.0**-10]), 8
    found = Blocks(points).nearest(x, k)
    distances, indices = nearest(x, points, k)
    proved = np.setdiff1d(np.arange(len(x)), found.unproved)
    np.testing.assert_allclose(found.distances[proved], distances[proved], rtol=1e-12)
    assert np.array_equal(found.indices[proved], indices[proved])


@pytest.mark.parametrize("name", CASES)
def test_index_is_exact_where_nothing_is_proved(name):
    points = CASES[name]
    distances, indices = nearest(points, points, 6)
    found = NeighborIndex(points).of_points(6)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    if name != "differences lost in float32":  # the order of rounding decides there
        assert np.array_equal(found.indices, indices)


def test_nearly_all_rows_of_a_cloud_are_proved():
    assert len(Blocks(CLOUD).nearest(CLOUD, 16).unproved) < 0.02 * len(CLOUD)


@pytest.mark.parametrize("name", ["copies", "differences lost in float32", "squares above float32"])
def test_rows_that_float32_cannot_tell_apart_are_not_proved(name):
    points = CASES[name]
    assert len(Blocks(points).nearest(points, 8).unproved) == len(points)


def test_all_points_need_no_proof():
    found = Blocks(CASES["few points"]).nearest(np.full((1, 30), 1e30), 12)
    assert len(found.unproved) == 0
    assert sorted(found.indices[0]) == list(range(12))


def test_rows_do_not_depend_on_the_tiles(monkeypatch):
    whole = NeighborIndex(CLOUD).of_points(9)
    monkeypatch.setattr(blocks, "_TILE_ENTRIES", 1)
    tiled = NeighborIndex(CLOUD).of_points(9)
    assert np.array_equal(whole.indices, tiled.indices)
    assert np.array_equal(whole.distances, tiled.distances)
    one = NeighborIndex(CLOUD).query(CLOUD[700:701], 9)
    assert np.array_equal(one.distances[0], whole.distances[700])


def test_error_bound_holds_for_sums_that_cancel():
    # Large coordinates cancel in 2xy - |x|² - |y|², so that float32 errs by far more than the gaps.
    points = 300 + CLOUD[:400]
    block = Blocks(points)
    found = block.nearest(points, 3)
    proved = np.setdiff1d(np.arange(400), found.unproved)
    exact = np.sort(cdist(points, points), axis=1)[:, :3]
    np.testing.assert_allclose(found.distances[proved], exact[proved], atol=1e-6)
