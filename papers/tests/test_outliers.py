"""Outliers of manifolds: where they are, and what they cost a diffusion map."""

import numpy as np
import pytest

import heatsketch as hs
from papers.output import random
from papers.sketching.manifolds import MANIFOLDS
from papers.sketching.outliers import (
    OutlierSetting,
    outliers_example,
    outliers_trial,
    run_outliers,
    with_outliers,
)

CIRCLE = OutlierSetting(100, 0.5, 4, 4)


def distance_from(name, Y):
    if name == "torus":
        circles = [np.linalg.norm(Y[:, :2], axis=1) - 1, np.linalg.norm(Y[:, 2:], axis=1) - 3.5]
        return np.hypot(*circles)
    return np.abs(np.linalg.norm(Y, axis=1) - 1)


@pytest.mark.parametrize("name", MANIFOLDS)
def test_outliers_have_the_distance_from_the_manifold_and_others_stay(name):
    X = MANIFOLDS[name](50, np.random.default_rng(0))
    Y = with_outliers(X, 3, 0.7)
    assert np.array_equal(Y[:-3], X[:-3])
    np.testing.assert_allclose(distance_from(name, Y), [0.0] * 47 + [0.7] * 3, atol=1e-12)


def test_points_of_the_sphere_are_uniform():
    """Archimedes: each coordinate is uniform on [-1, 1]. 300 times E x² = 1/3 within 6 errors."""
    X = MANIFOLDS["sphere"](20_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-14)
    error = np.sqrt(4 / 45 / 20_000)  # of the mean of x²; a false alarm in 5e8 for each
    assert np.abs(np.mean(X**2, axis=0) - 1 / 3).max() < 6 * error


@pytest.mark.parametrize("count", [1, 2, 3])
def test_isolated_outliers_take_one_eigenvector_each(count):
    """The eigenvectors of eigenvalue 1 of m far points and a manifold are constant on each.

    v_0 is the root of the degrees; the m others are spanned by the roots on the parts, and what
    they have at the outliers is m less the share of the degrees there.
    """
    distance = 4.0  # affinity e^-16
    found = outliers_trial("circle", CIRCLE, 0, 0, (count,), (distance,))
    X = MANIFOLDS["circle"](CIRCLE.n, random(0, 0, 0))
    K = hs.gaussian_affinity(with_outliers(X, count, distance * np.sqrt(0.5)), 0.5)
    q = K.sum(axis=1)
    degrees = (K / np.outer(q, q)).sum(axis=1)
    expected = count - degrees[-count:].sum() / degrees.sum()
    assert found[0, 0, 2] == pytest.approx(expected, abs=1e-3)


def test_without_a_distance_there_are_no_outliers_and_all_counts_agree():
    found = outliers_trial("circle", CIRCLE, 0, 1, (1, 2, 4), (0.0, 2.0))
    assert np.ptp(found[:, 0, :2], axis=0).max() == 0
    assert np.ptp(found[:, 1, :2], axis=0).min() > 0


def test_a_diffusion_map_loses_when_fewer_than_two_directions_are_left_for_the_circle():
    """k = 4: two outliers leave two eigenvectors for the circle, four leave none."""
    rows = outliers_example(
        0, trials=2, counts=(2, 4), distances=(3.0,), settings={"circle": CIRCLE}, jobs=1
    )
    two, four = rows
    assert (two.sketch_better, four.sketch_better) == (0, 1)
    assert two.DMS < 0.5
    assert four.DMS > four.GPS + 2


def test_the_table_and_the_picture_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    small = {name: OutlierSetting(40, 1.0, 2, 3) for name in MANIFOLDS}
    rows = run_outliers(tmp_path, 0, trials=2, distances=(0.0, 2.0), settings=small, jobs=1)
    assert {path.name for path in tmp_path.iterdir()} == {"outliers.csv", "outliers.png"}
    assert len(rows) == 3 * 4 * 2
    assert (tmp_path / "outliers.csv").read_text().count("\n") == len(rows) + 1
