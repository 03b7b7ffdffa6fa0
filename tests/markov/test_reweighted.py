"""A point of weight 2 is two points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from heatsketch.markov.diffusion import reweighted, times_columns
from problems.clouds import cloud

OPTIONS = {"affinity": "dense", "epsilon": 1.5}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("time", [1, 4])
def test_whole_weights_are_repeated_points(alpha, time):
    X, counts = cloud(20, 2), np.random.default_rng(1).integers(1, 4, 20)
    place = np.repeat(np.arange(20), counts)
    d = hs.Diffusion.from_points(X, alpha=alpha, **OPTIONS)
    many = hs.Diffusion.from_points(X[place], alpha=alpha, **OPTIONS)
    found = reweighted(d, counts.astype(float))[0]
    first = np.unique(place, return_index=True)[1]
    i, j = np.triu_indices(20, 1)
    expected = hs.diffusion_distance(many, time, pairs=(first[i], first[j]))
    assert_allclose(hs.diffusion_distance(found, time), expected, rtol=1e-9)
    assert_allclose(found.measure, many.measure[many.vertex[first]] * counts, rtol=1e-12)
    new = cloud(5, 2, seed=3)
    rows = times_columns(d.kernel_rows(new), found_columns(d, counts))
    P = rows / np.sqrt(found.measure) * found.measure
    P /= P.sum(axis=1, keepdims=True)
    other = (many.kernel_rows(new) * np.sqrt(many.measure))[:, many.vertex]
    other /= other.sum(axis=1, keepdims=True)
    merged = np.add.reduceat(other, first, axis=1)
    weighed = rows * np.sqrt(found.measure)
    assert_allclose(weighed / weighed.sum(axis=1, keepdims=True), merged, rtol=1e-9)


def found_columns(d, counts):
    return reweighted(d, counts.astype(float))[1]


@pytest.mark.parametrize(
    "options", [{"n_neighbors": 6}, {"affinity": "radius", "epsilon": 1.0}, OPTIONS]
)
def test_any_weights_give_a_diffusion_and_equal_ones_the_same(options):
    d = hs.Diffusion.from_points(cloud(40, 3), **options)
    w = np.random.default_rng(2).standard_exponential(40)
    found = reweighted(d, w)[0]
    root = np.sqrt(found.measure)
    assert_allclose(found.operator @ root, root, rtol=1e-10)
    assert found.measure.sum() == pytest.approx(1)
    assert np.abs(np.linalg.eigvalsh(found.operator @ np.eye(40))).max() < 1 + 1e-10
    D = hs.diffusion_distance(d, 3)
    assert_allclose(hs.diffusion_distance(reweighted(d, np.full(40, 7.0))[0], 3), D)
    assert np.abs(hs.diffusion_distance(found, 3) / D - 1).max() > 0.05
