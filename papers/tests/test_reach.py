"""The reach of curves and surfaces whose reach is known, and its limit for sketches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from papers.output import random
from papers.sketching.periodic import Circles, covariance, derivative, kernel, realizations
from papers.sketching.reach import (
    Surface,
    limit_reach,
    on_sphere,
    reach,
    reach_example,
    run_reach,
    sketched,
)

CIRCLE = Circles("circle", (96,), (1.0,), 0.25, 8)
TORUS = Circles("torus", (16, 36), (1.0, 2.0), 0.5, 8)
SPACES = pytest.mark.parametrize("circles", [CIRCLE, TORUS], ids=lambda circles: circles.name)


def curve(n, x, y):
    """A plane curve by two functions that give value, first and second derivative."""
    t = 2 * np.pi * np.arange(n) / n
    columns = [np.column_stack(pair) for pair in zip(x(t), y(t), strict=True)]
    return Surface(columns[0], columns[1][:, None], columns[2][:, None, None])


def wave(a, shift, m=1):
    return lambda t: tuple(a * m**j * np.cos(m * t - shift + j * np.pi / 2) for j in range(3))


def test_of_a_circle_it_is_the_radius():
    assert_allclose(reach(curve(60, wave(3, 0), wave(3, np.pi / 2))), 3, rtol=1e-9)


@pytest.mark.parametrize("b", [0.9, 0.5, 0.2])
def test_of_an_ellipse_it_is_the_curvature_at_its_ends(b):
    found = reach(curve(2000, wave(1, 0), wave(b, np.pi / 2)))
    assert found.curvature == pytest.approx(b**2, rel=1e-9)
    assert b**2 - 1e-7 <= found.pairs <= b**2 * 1.001


def test_of_a_curve_with_a_waist_it_is_half_of_the_waist():
    """Cassini's way: y = sin t (1 - c + c cos 2t) has a waist of 2 (1 - 2c) at x = 0."""
    c = 0.35

    def y(t):
        # sin t cos 2t = (sin 3t - sin t) / 2
        parts = wave(1 - c - c / 2, np.pi / 2)(t), wave(c / 2, np.pi / 2, 3)(t)
        return tuple(a + b for a, b in zip(*parts, strict=True))

    found = reach(curve(400, wave(2, 0), y))
    assert found.pairs == pytest.approx(1 - 2 * c, rel=1e-6)
    assert found.curvature > found.pairs


def test_of_a_flat_torus_it_is_the_smaller_radius():
    u, v = (c.ravel() for c in np.meshgrid(*[2 * np.pi * np.arange(24) / 24] * 2, indexing="ij"))
    one, other = curve(24, wave(1.5, 0), wave(1.5, np.pi / 2)), 24
    i, j = (np.rint(angle / (2 * np.pi) * other).astype(int) for angle in (u, v))
    zero = np.zeros((576, 2))
    X = np.hstack([one.points[i], 2 * one.points[j]])
    first = np.stack(
        [np.hstack([one.first[i, 0], zero]), np.hstack([zero, 2 * one.first[j, 0]])], axis=1
    )
    second = np.zeros((576, 2, 2, 4))
    second[:, 0, 0, :2], second[:, 1, 1, 2:] = one.second[i, 0, 0], 2 * one.second[j, 0, 0]
    assert_allclose(reach(Surface(X, first, second)), 1.5, rtol=1e-9)


@SPACES
def test_the_limit_is_the_reach_of_the_sketch_by_all_unit_vectors(circles):
    """Its rows are those of A^p; all are of one length, so that normalised it is the same."""
    identity = np.sqrt(circles.size) * np.eye(circles.size)
    A_p = hs.sketch(kernel(circles), hs.Power(circles.power), G=identity, deflate=False)
    surface = sketched(circles.size * A_p, circles)
    assert_allclose(reach(surface), limit_reach(circles), rtol=2e-5)
    assert_allclose(reach(on_sphere(surface)), limit_reach(circles), rtol=2e-5)


def test_the_limit_of_the_circle_is_g_over_the_root_of_the_fourth_derivative():
    variance, second, fourth = (covariance(CIRCLE, [0.0], [order]) for order in (0, 2, 4))
    found = limit_reach(CIRCLE)
    assert found.curvature == pytest.approx(-second / np.sqrt(fourth * variance), rel=1e-12)
    assert found.pairs == pytest.approx(found.curvature, rel=1e-3)


def test_at_small_times_the_limit_is_the_root_of_a_third():
    """That of a Gaussian covariance, e^{-τ²/(2s²)}: g = 1/s², C'''' = 3/s⁴."""
    for circles in (
        Circles("circle", (300,), (1.0,), 0.01, 1),
        Circles("torus", (90, 90), (1.0, 1.0), 0.04, 1),
    ):
        assert limit_reach(circles).curvature == pytest.approx(1 / np.sqrt(3), rel=0.03)


@SPACES
def test_derivatives_on_the_sphere_are_those_of_the_quotient(circles):
    surface = sketched(realizations(circles, 12, random(4)), circles)
    U, first, second = on_sphere(surface)
    assert_allclose(np.linalg.norm(U, axis=1), 1)
    assert_allclose(np.einsum("nak,nk->na", first, U), 0, atol=1e-12)
    if circles.dimension == 1:  # the quotient has few waves there, too
        assert_allclose(derivative(U, circles, 1), first[:, 0], atol=1e-6)
        assert_allclose(derivative(U, circles, 2), second[:, 0, 0], atol=1e-5)


def test_reaches_of_sketches_approach_the_limit():
    few, many = reach_example(0, spaces=(CIRCLE,), sizes=(4, 512), columns=2048)
    assert few.mean < many.mean <= few.limit * 1.1
    assert many.mean > 0.75 * many.limit
    assert many.mean_normalised > 0.75 * many.limit


def test_table_and_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    found = run_reach(tmp_path, spaces=(CIRCLE, TORUS), sizes=(8,), columns=16)
    assert [row.draws for row in found] == [2, 2]
    assert {path.name for path in tmp_path.iterdir()} == {"reach.csv", "reach.png"}
