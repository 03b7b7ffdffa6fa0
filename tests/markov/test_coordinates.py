"""Coordinates of diffusion distances: exact with all eigenpairs, a chi-square law with some."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.stats import chi2

import heatsketch as hs
from heatsketch.markov import rows as module
from heatsketch.markov.diffusion import within_component
from heatsketch.markov.rows import Coordinates
from heatsketch.spectral.filters import make_filter
from problems.clouds import cloud

AFFINITIES = {
    "knn": {"n_neighbors": 6},
    "variable": {"affinity": "variable", "n_neighbors": 6},
    "dense": {"affinity": "dense", "epsilon": 0.8},
    "radius": {"affinity": "radius", "epsilon": 0.5},
}
NORMALIZATIONS = ("symmetric", "bistochastic", "markov")
FILTERS = [("power", 1), ("power", 2), ("power", 9), ("heat", 2.5), ("accumulated", 2)]

every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)
every_filter = pytest.mark.parametrize(("filter", "time"), FILTERS)


def quotient(filter, time):
    return make_filter(filter, time).reduced()


def made(X, normalization="markov", **options):
    return hs.Diffusion.from_points(X, normalization=normalization, tol=1e-13, **options)


def stepped(d, H):
    """The last step: M, over M √π in the Markov form."""
    return d.rows(1).of(np.arange(len(d.vertex))) @ H


def under(coordinates, f, n_sketch, seed):
    return coordinates.under([f], n_sketch, seed)[0]


@pytest.fixture
def few_pairs(monkeypatch):
    """Compute 8 eigenpairs of more than 20 points."""
    monkeypatch.setattr(module, "FEW_VERTICES", 20)
    monkeypatch.setattr(module, "SPECTRAL_LIMIT", 20)


@every_filter
@every_normalization
@every_affinity
def test_with_all_pairs_distances_are_those_of_the_rows(affinity, normalization, filter, time):
    d = made(cloud(40, 3, seed=1), normalization, **affinity)
    c = Coordinates.of(d.deflated(), 8)
    F = stepped(d, under(c, quotient(filter, time), 16, 0))
    D = pdist(d.rows(time, filter=filter).of(np.arange(d.n)))
    assert_allclose(pdist(F), D, rtol=1e-7, atol=1e-9 * D.max())


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize(("filter", "time"), [("power", 200), ("heat", 400.0), ("accumulated", 99)])
@every_normalization
def test_at_long_times_some_pairs_are_all_that_counts(normalization, filter, time):
    d = made(cloud(80, 3, seed=1), normalization, n_neighbors=6)
    c, f = Coordinates.of(d.deflated(), 8), quotient(filter, time)
    assert not c.part_of_others(f)[1]
    F = under(c, f, 16, 0)
    assert F.shape == (80, 8)
    D = d.rows(time, filter=filter).of(np.arange(80))
    # What is left out weighs at most 1e-2 of the largest: 1e-4 of its square.
    assert_allclose(pdist(stepped(d, F)) ** 2, pdist(D) ** 2, atol=1e-3 * pdist(D).max() ** 2)


@pytest.mark.statistical
@pytest.mark.usefixtures("few_pairs")
@every_filter
@every_normalization
@pytest.mark.parametrize("affinity", [AFFINITIES["knn"], AFFINITIES["dense"]], ids=["knn", "dense"])
def test_the_rest_obeys_the_chi_square_law(affinity, normalization, filter, time):
    """Of r = 64 columns, r |rest_i - rest_j|² / (D² - that of the pairs) is chi-square, r degrees.

    780 pairs: the bounds are passed by chance in fewer than 1e-6 of all seeds (union bound). Sees
    a factor of 4 on all squares or on one in a hundred, as a power too many or 1/r for 1/√r.
    """
    r, d = 64, made(cloud(40, 3, seed=1), normalization, **affinity)
    c, f = Coordinates.of(d.deflated(), 8), quotient(filter, time)
    if not c.part_of_others(f)[1]:  # nothing is left to sketch
        assert (filter, time) == ("power", 9)
        return
    F = under(c, f, r, 3)
    assert F.shape == (40, 8 + r)
    F = stepped(d, F)
    D = pdist(d.rows(time, filter=filter).of(np.arange(40)))
    left = D**2 - pdist(F[:, :8]) ** 2
    counted = left > 1e-9 * D**2
    assert counted.mean() > 0.9
    ratio = (pdist(F[:, 8:]) ** 2)[counted] / left[counted]
    low, high = chi2.ppf([5e-7 / 780, 1 - 5e-7 / 780], r) / r
    assert low < ratio.min()
    assert ratio.max() < high


@pytest.mark.usefixtures("few_pairs")
@every_normalization
def test_under_several_filters_at_once_as_under_each(normalization):
    c = Coordinates.of(made(cloud(40, 3, seed=1), normalization, n_neighbors=6).deflated(), 8)
    filters = [quotient("accumulated", time) for time in (2, 8, 99)]
    for f, F in zip(filters, c.under(filters, 16, 0), strict=True):
        alone = under(c, f, 16, 0)
        assert_allclose(F, alone, atol=1e-5 * np.abs(alone).max())


@pytest.mark.usefixtures("few_pairs")
def test_pairs_and_rest_are_orthogonal():
    d = made(cloud(40, 3, seed=1))
    c = Coordinates.of(d.deflated(), 8)
    rest = under(c, quotient("power", 2), 40, 3)[:, 8:]
    size = np.abs(rest).max()
    assert_allclose(c.vectors.T @ rest, 0, atol=1e-9 * size)
    assert_allclose(np.sqrt(d.measure) @ rest, 0, atol=1e-9 * size)


@pytest.mark.usefixtures("few_pairs")
def test_the_seed_decides_the_rest_and_nothing_else():
    d, f = made(cloud(40, 3, seed=1)), quotient("power", 2)
    c = Coordinates.of(d.deflated(), 8)
    first, again, other = (under(c, f, 16, seed) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert_array_equal(first[:, :8], other[:, :8])
    assert np.abs(first - other)[:, 8:].max() > 1e-3 * np.abs(first).max()


@pytest.mark.usefixtures("few_pairs")
def test_negative_eigenvalues_are_not_overlooked():
    """Two halves that link to each other alone: -1 is an eigenvalue, and no leading one."""
    K = np.kron([[0, 1], [1, 0]], np.ones((20, 20)))
    K += 1e-3 * np.exp(-((np.arange(40)[:, None] - np.arange(40)) ** 2) / 40)
    d = hs.Diffusion.from_affinity(K)
    c = Coordinates.of(d.deflated(), 8)
    assert c.others.values.min() < -0.9
    assert c.part_of_others(quotient("power", 9))[1]


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("affinity", ["knn", "dense"])
def test_a_component_is_a_diffusion_of_its_own(affinity):
    options = {"affinity": affinity, "n_neighbors": 6, "epsilon": 1.0}
    near, far = cloud(40, 3, seed=1), cloud(30, 3, seed=2) + 100
    both = made(np.vstack([near, far]), **options)
    alone = made(near, **options)
    A = within_component(both, both.vertex[:40])
    assert_allclose(A @ np.eye(40), alone.deflated() @ np.eye(40), atol=1e-9)
