"""The search by blocks in float32 is exact on any scale."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from heatsketch.neighbors import NeighborIndex, exact

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
def test_the_nearest_are_exact(name):
    points = CASES[name]
    distances, indices = nearest(points, points, 6)
    found = NeighborIndex(points).of_points(6)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    if name != "differences lost in float32":  # the order of rounding decides there
        assert np.array_equal(found.indices, indices)


def test_rows_do_not_depend_on_the_tiles(monkeypatch):
    whole = NeighborIndex(CLOUD).of_points(9)
    monkeypatch.setattr(exact, "_TILE_ENTRIES", 1)
    tiled = NeighborIndex(CLOUD).of_points(9)
    assert np.array_equal(whole.indices, tiled.indices)
    assert np.array_equal(whole.distances, tiled.distances)
    one = NeighborIndex(CLOUD).query(CLOUD[700:701], 9)
    assert np.array_equal(one.distances[0], whole.distances[700])


def test_new_points_have_the_nearest_too():
    for points in CASES.values():
        x = np.vstack([points[::7], points[::11] + 2.0**-10, 1e8 * points[:2]])
        distances, _ = nearest(x, points, 8)
        found = NeighborIndex(points).query(x, 8)
        np.testing.assert_allclose(found.distances, distances, rtol=1e-8)
        near = np.take_along_axis(cdist(x, points), found.indices, axis=1)
        np.testing.assert_allclose(near, distances, rtol=1e-6)


def test_sums_that_cancel_lose_nothing():
    # Large coordinates cancel in 2xy - |x|² - |y|², so that float32 errs by far more than the gaps.
    points = 300 + CLOUD[:400]
    exact = np.sort(cdist(points, points), axis=1)[:, :3]
    np.testing.assert_allclose(NeighborIndex(points).of_points(3).distances, exact, rtol=1e-12)
