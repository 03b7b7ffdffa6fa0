"""Crossings of closed polygons, against polygons whose number is known."""

import math

import numpy as np
import pytest

from papers.sketching.crossings import crossings

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def angles(n):
    return 2 * np.pi * np.arange(n) / n


def test_a_convex_polygon_does_not_cross_and_a_bow_tie_does_once():
    assert crossings(CORNERS) == 0
    assert crossings(CORNERS[[0, 2, 1, 3]]) == 1
    assert crossings(CORNERS[:3]) == 0


@pytest.mark.parametrize(("n", "q"), [(5, 2), (7, 2), (7, 3), (12, 5), (101, 7)])
def test_a_star_polygon_crosses_n_times_q_minus_1(n, q):
    """Edges that join every q-th of n vertices, q and n coprime: each is crossed 2(q - 1) times."""
    a = q * angles(n)
    assert math.gcd(n, q) == 1
    assert crossings(np.column_stack([np.cos(a), np.sin(a)])) == n * (q - 1)


@pytest.mark.parametrize(("p", "q"), [(1, 2), (2, 3), (3, 4), (3, 5)])
def test_a_lissajous_curve_crosses_2pq_minus_p_minus_q(p, q):
    """x = sin(pt + φ), y = sin(qt), p and q coprime, φ without symmetry: nodes of a torus knot."""
    t = angles(701)
    Y = np.column_stack([np.sin(p * t + 0.3), np.sin(q * t)])
    assert crossings(Y) == 2 * p * q - p - q


def test_the_number_is_that_of_any_affine_image_and_any_first_vertex():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((40, 2))
    found = crossings(Y)
    assert found > 0
    assert crossings(Y @ np.array([[2.0, 1.0], [0.5, -3.0]]) + 4.0) == found
    assert crossings(np.roll(Y, 13, axis=0)) == crossings(Y[::-1]) == found


def test_random_edges_cross_as_often_as_four_random_points_say():
    """Edges without a common vertex cross with one probability, that of two random chords.

    Four uniform points of a disk are in convex position with probability 1 - 35/(12 π²), and then
    one of their three pairings crosses. The mean of 600 polygons of 40 vertices has a relative
    standard error below 1.2 %: 6 of them, a false alarm in 5e8.
    """
    rng, n, polygons = np.random.default_rng(1), 40, 600
    radius, angle = np.sqrt(rng.random((polygons, n))), 2 * np.pi * rng.random((polygons, n))
    Y = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    counts = np.array([crossings(polygon) for polygon in Y])
    expected = n * (n - 3) / 2 * (1 - 35 / (12 * np.pi**2)) / 3
    error = counts.std() / np.sqrt(polygons)
    assert error < 0.012 * expected
    assert abs(counts.mean() - expected) <= 6 * error
