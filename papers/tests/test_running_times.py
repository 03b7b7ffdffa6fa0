"""Algorithms 3, 4 and 5 as printed, which are timed, give what the library gives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist

import heatsketch as hs
from papers.sketching.running_times import (
    STYLES,
    algorithm_1,
    algorithms,
    dense,
    diffusion_map,
    interleaved,
    lanczos,
    library,
    run_running_times,
    sketch,
)


@pytest.fixture(scope="module")
def A():
    return algorithm_1(hs.datasets.circle(150, rng=0)[0], 0.25)


def test_all_ways_of_algorithm_3_give_the_same_map(A):
    maps = [diffusion_map(A, 6, 3, way) for way in (dense, lanczos, library)]
    own = hs.DiffusionMap(6, time=3, affinity="precomputed", normalization="symmetric")
    for found in maps[1:]:
        assert_allclose(np.abs(found), np.abs(maps[0]), atol=1e-6)
    assert own.n_components == maps[0].shape[1]
    values, _ = np.linalg.eigh(A)
    assert_allclose(np.linalg.norm(maps[0], axis=0), values[-2:-8:-1] ** 3, rtol=1e-10)


def test_the_power_iteration_gives_it_for_a_large_power(A):
    work = algorithms(A, 200, np.random.default_rng(0))
    exact = diffusion_map(A, 8, 200, dense)
    found = work["Algorithm 3, power iteration"]()
    assert_allclose(pdist(found), pdist(exact), rtol=1e-6, atol=1e-12 * np.abs(exact).max())


def test_algorithm_4_is_the_sketch_of_the_library(A):
    G = np.random.default_rng(1).standard_normal((150, 8))
    assert_allclose(sketch(A, G, 5), hs.sketch(A, hs.Power(5), G=G, deflate=False), atol=1e-12)


def test_work_is_done_in_turn_and_each_has_its_times():
    order = []
    work = {(name, 1): lambda name=name: order.append(name) for name in ("a", "b")}
    seconds = interleaved(work, 3)
    assert order == ["a", "b"] * 4  # the first time is not counted
    assert [len(times) for times in seconds.values()] == [3, 3]
    assert all(time >= 0 for times in seconds.values() for time in times)


def test_table_and_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    rows = run_running_times(tmp_path, counts=(200, 240), powers=(1, 2), rounds=2)
    assert len(rows) == 2 * 2 * len(STYLES)
    assert all(row.over_sketch == 1 for row in rows if row.algorithm == "Algorithm 4")
    assert {path.name for path in tmp_path.iterdir()} == {"running-times.csv", "running-times.png"}
