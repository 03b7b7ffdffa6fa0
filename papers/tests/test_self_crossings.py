"""Crossings of sketches: distances of edges, and the formula of Kac and Rice."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist

import heatsketch as hs
from papers.output import random
from papers.sketching import self_crossings
from papers.sketching.crossings import crossings
from papers.sketching.periodic import Circles, covariance, realizations
from papers.sketching.self_crossings import (
    EVEN,
    FAR,
    edge_distances,
    expected_pairs,
    log_L,
    measure,
    outlier_rows,
    run_self_crossings,
)


def test_distances_of_edges_are_those_of_their_points():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        Y = rng.standard_normal((9, k))
        s = np.linspace(0, 1, 201)
        edges = Y[:, None] + s[:, None] * (np.roll(Y, -1, axis=0) - Y)[:, None]
        found = edge_distances(Y)
        assert_allclose(found, found.T, atol=1e-12)
        for i in range(9):
            for j in range(9):
                between = np.linalg.norm(edges[i][:, None] - edges[j][None], axis=2).min()
                assert found[i, j] <= between + 1e-12
                assert between <= found[i, j] + 0.04  # half a step of the points of each


def test_edges_at_no_distance_are_those_that_cross():
    Y = np.random.default_rng(1).standard_normal((40, 2))
    n = len(Y)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    met = (edge_distances(Y) < 1e-12) & (apart > 1) & (apart < n - 1)
    assert np.count_nonzero(met) == 2 * crossings(Y) > 0


@pytest.mark.parametrize(("count", "k", "mean"), [(2, 2, 1), (2, 3, 2), (2, 7, 6), (4, 4, 3)])
def test_mean_contents_are_known(count, k, mean):
    assert self_crossings._mean_content(count, k) == pytest.approx(mean)


@pytest.mark.parametrize("power", [2, 8])
def test_crossings_are_as_many_as_kac_and_rice_say(power):
    """1,500 draws, within 6 standard errors: a false alarm in 5e8; they see a quarter too many."""
    circles, draws = EVEN._replace(shape=(100,), power=power), 1500
    F = realizations(circles, 2 * draws, random(2, power))
    counts = np.array([crossings(Y) for Y in np.split(F, draws, axis=1)])
    error = counts.std() / np.sqrt(draws)
    want = expected_pairs(circles, 2)
    assert error < 0.045 * want
    assert abs(counts.mean() - want) <= 6 * error


def test_in_three_dimensions_the_share_of_near_passes_is_the_one_expected():
    """The mean number is 54 of 2,000: 6 standard deviations are 44, a false alarm in 1e7."""
    circles, draws, near = EVEN._replace(shape=(60,)), 2000, 0.04
    radius = np.sqrt(covariance(circles, [0.0]) - 1)
    angles = 2 * np.pi * np.arange(60) / 60
    far = np.abs(np.angle(np.exp(1j * np.subtract.outer(angles, angles)))) >= FAR
    F = realizations(circles, 3 * draws, random(3)) / np.sqrt(3)
    gaps = [edge_distances(Y)[far].min() / radius for Y in np.split(F, draws, axis=1)]
    expected = draws * expected_pairs(circles, 3, near * radius, FAR)
    assert min(gaps) > 0
    assert abs(np.count_nonzero(np.array(gaps) < near) - expected) <= 6 * np.sqrt(expected)


def test_near_passes_are_rarer_by_a_factor_of_their_distance_for_each_dimension():
    for k in (3, 4, 6):
        one, two = (expected_pairs(EVEN, k, distance, FAR) for distance in (0.01, 0.02))
        assert two / one == pytest.approx(2 ** (k - 2))


def test_an_ellipse_does_not_cross():
    """At large times only the first wave is left."""
    assert expected_pairs(EVEN._replace(power=100), 2) < 2e-3 < expected_pairs(EVEN, 2) / 100


def test_the_number_depends_neither_on_units_nor_on_the_lags_of_the_sum():
    larger = Circles("circle", (150,), (3.0,), 9 * EVEN.epsilon, EVEN.power)
    assert expected_pairs(larger, 2) == pytest.approx(expected_pairs(EVEN, 2), rel=1e-9)
    assert expected_pairs(EVEN, 2, fine=400) == pytest.approx(expected_pairs(EVEN, 2), rel=1e-3)


def test_a_measured_curve_has_its_numbers():
    angles = 2 * np.pi * np.arange(64) / 64
    Y = np.column_stack([np.cos(angles), np.sin(angles)])
    curve = measure(Y, angles, pdist(Y))
    assert curve.crossings == 0
    assert curve.log_L == pytest.approx(0, abs=1e-9)
    # Edges whose starts are 45 degrees apart are an edge less apart.
    assert curve.gap == pytest.approx(2 * np.sin(7 / 64 * np.pi), rel=0.02)
    X = np.random.default_rng(0).standard_normal((64, 2))
    assert log_L(pdist(X), pdist(Y)) == pytest.approx(hs.distortion(X, pdist(Y)).log_L)


def test_the_circle_alone_is_no_worse_than_with_its_outliers():
    for row in outlier_rows(0, 3):
        assert row.circle <= row.all_points + 1e-9
        assert row.low <= row.circle <= row.high or row.deviation > 0


def test_tables_and_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    sizes = {"draws": 2, "even_draws": 3, "draws_of_powers": 3, "draws_with_outliers": 1}
    rows = run_self_crossings(tmp_path, 0, **sizes)
    assert [row.k for row in rows if row.points == "even"] == list(range(2, 9))
    assert all(row.crossing == 0 and row.smallest_gap > 0 for row in rows if row.k > 2)
    assert len(list(tmp_path.iterdir())) == 4
