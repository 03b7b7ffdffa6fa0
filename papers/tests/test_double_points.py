"""Self-intersections of sketched tori: polynomials, solutions, and their expected number."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from papers.output import random
from papers.sketching.double_points import (
    count_distinct,
    double_points_example,
    meet,
    nearest_pairs,
    polynomial,
    run_double_points,
)
from papers.sketching.periodic import Circles, derivative, grid_lags, realizations

TORUS = Circles("torus", (14, 18), (1.0, 1.5), 0.8, 3)


def test_the_polynomial_has_the_values_and_gradients_of_the_grid():
    F = realizations(TORUS, 3, random(0))
    values, slopes = polynomial(F, TORUS).at(np.column_stack(grid_lags(TORUS)))
    assert_allclose(values, F, atol=1e-9)
    for axis, order in enumerate(((1, 0), (0, 1))):
        own = TORUS.radii[axis] * derivative(F, TORUS, *order)
        assert_allclose(slopes[:, :, axis], own, atol=1e-9)


def test_pairs_meet_where_sheets_cross():
    """(cos u, sin u, cos v, sin 2v): v = π/2 and v = 3π/2 meet, for every u."""
    u, v = grid_lags(TORUS)
    F = np.column_stack([np.cos(u), np.sin(u), np.cos(v), np.sin(2 * v)])
    start = np.array([[1.0, 1.3], [2.0, 1.9]]), np.array([[1.2, 4.9], [1.7, 4.5]])
    x, y, gap = meet(polynomial(F, TORUS), *start)
    assert (gap < 1e-12).all()
    assert_allclose(x[:, 1], np.pi / 2)
    assert_allclose(y[:, 1], 3 * np.pi / 2)
    assert_allclose(x[:, 0], y[:, 0])


def test_solutions_are_counted_once_in_any_order_and_turn():
    x, y = np.array([[0.0, 1.0], [2.0, 3.0], [0.5, 0.5]]), np.array([[2.0, 3.0], [0, 1], [3, 3.0]])
    assert count_distinct(x, y) == 2
    assert count_distinct(x + 2 * np.pi, y) == 2
    assert count_distinct(x[:0], y[:0]) == 0


def test_nearest_pairs_are_no_points_twice():
    F = realizations(TORUS, 4, random(1))
    x, y = nearest_pairs(F, TORUS)
    assert len(x) > 0
    assert (np.abs(np.exp(1j * x) - np.exp(1j * y)).max(axis=1) > 0.1).all()


def test_double_points_are_as_many_as_kac_and_rice_say_and_none_in_five_dimensions():
    """32 draws, within 7 standard errors of their own: a false alarm in 1e7 by Student's law."""
    four, five = double_points_example(0, circles=TORUS, sizes=(4, 5), draws=32)
    assert four.error < 0.15 * four.expected
    assert abs(four.points - four.expected) <= 7 * four.error
    assert (five.meeting, five.points, five.expected) == (0, 0, 0)
    assert np.isfinite(five.largest)
    assert five.ratio >= 0.99 * five.grid_ratio > 1


def test_table_and_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    run_double_points(tmp_path, circles=TORUS, sizes=(3, 5), draws=2)
    assert {path.name for path in tmp_path.iterdir()} == {"double-points.csv", "double-points.png"}
