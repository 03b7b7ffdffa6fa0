"""Coordinates of diffusion distances: exact with all eigenpairs, a chi-square law with some."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.stats import chi2

import heatsketch as hs
from heatsketch.markov import coordinates as module
from heatsketch.markov.coordinates import Coordinates
from heatsketch.spectral.filters import make_filter
from problems.clouds import cloud
from problems.spectra import cycle_graph

AFFINITIES = {
    "knn": {"n_neighbors": 6},
    "variable": {"affinity": "variable", "n_neighbors": 6},
    "dense": {"affinity": "dense", "epsilon": 0.8},
    "radius": {"affinity": "radius", "epsilon": 0.5},
}
NORMALIZATIONS = ("symmetric", "bistochastic", "markov")
FILTERS = [("power", 1), ("power", 2), ("power", 9), ("heat", 2.5)]

every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)
every_filter = pytest.mark.parametrize(("filter", "time"), FILTERS)


def quotient(filter, time):
    return make_filter(filter, time).quotient()


def made(X, normalization="markov", **options):
    return hs.Diffusion.from_points(X, normalization=normalization, tol=1e-13, **options)


def stepped(d, H):
    """The last step: M, over M √π in the Markov form."""
    return (d.rows(1) @ H).unscaled()


def rows(d, c, f):
    """Coordinates of the eigenpairs, and of the rest."""
    weights, log_scale = c.weights(f)
    of_pairs = stepped(d, c.vectors * weights) * np.exp(log_scale)
    blocks = [stepped(d, block) for _, (block,) in c.rest_of(f)]
    of_rest = np.hstack([np.zeros((d.n, 0)), *blocks]) * np.exp(log_scale)
    return of_pairs, of_rest


@pytest.fixture
def few_pairs(monkeypatch):
    """Compute 8 eigenpairs of more than 20 points."""
    monkeypatch.setattr(module, "SPECTRAL_LIMIT", 20)
    monkeypatch.setattr(module, "N_LEADING", 8)


# All pairs


@every_filter
@every_normalization
@every_affinity
def test_with_all_pairs_distances_are_those_of_the_rows(affinity, normalization, filter, time):
    d = made(cloud(40, 3, seed=1), normalization, **affinity)
    c = Coordinates.of(d, 2, 16, 0)
    of_pairs, of_rest = rows(d, c, quotient(filter, time))
    D = pdist(d.rows(time, filter=filter).of(np.arange(40)))
    assert_allclose(pdist(of_pairs), D, rtol=1e-9, atol=1e-12 * D.max())
    assert of_rest.shape == (40, 0)
    assert c.values.shape == (39,)
    assert (np.diff(np.abs(c.values)) <= 0).all()


def test_times_beyond_the_range_of_numbers_keep_the_scale_apart():
    d = made(cloud(30, 3, seed=1), affinity="dense", epsilon=1.0)
    c = Coordinates.of(d, 2, 16, 0)
    weights, log_scale = c.weights(quotient("power", 10**7))
    assert np.isfinite(weights).all()
    found = np.log(np.abs(weights).max()) + log_scale
    assert found == pytest.approx((10**7 - 1) * np.log(c.values[0]), rel=1e-12)


def test_weights_that_are_rounding_are_zero():
    d = made(cloud(30, 3, seed=1), affinity="dense", epsilon=4.0)
    c = Coordinates.of(d, 2, 16, 0)
    weights, _ = c.weights(quotient("power", 9))
    kept = np.abs(c.values / c.values[0]) ** 8 > 1e-12
    assert_array_equal(weights != 0, kept)
    assert not kept.all()


# Some pairs


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize(("filter", "time"), [("power", 200), ("heat", 400.0)])
@every_normalization
def test_at_long_times_some_pairs_are_all_that_counts(normalization, filter, time):
    d = made(cloud(80, 1, seed=1), normalization, n_neighbors=6)
    c, f = Coordinates.of(d, 2, 16, 0), quotient(filter, time)
    assert c.values.shape == (8,)
    assert c.is_complete(f)
    assert list(c.rest_of(f)) == []
    of_pairs, _ = rows(d, c, f)
    D = pdist(d.rows(time, filter=filter).of(np.arange(80)))
    # What is left out is at most 1e-2 of the first in a coordinate; of 71 together 1e-3 here.
    assert_allclose(pdist(of_pairs), D, rtol=0, atol=1e-2 * D.max())


@pytest.mark.usefixtures("few_pairs")
def test_more_pairs_are_computed_if_more_dimensions_are_wanted():
    c = Coordinates.of(made(cloud(80, 3, seed=1)), 11, 16, 0)
    assert c.values.shape == (11,)
    assert (np.diff(c.values) <= 0).all()


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
    c = Coordinates.of(d, 2, r, 3)
    f = quotient(filter, time)
    assert not c.is_complete(f)
    of_pairs, of_rest = rows(d, c, f)
    assert of_rest.shape == (40, r)
    D = pdist(d.rows(time, filter=filter).of(np.arange(40)))
    left = D**2 - pdist(of_pairs) ** 2
    counted = left > 1e-9 * D**2
    assert counted.mean() > 0.9
    ratio = (pdist(of_rest) ** 2)[counted] / left[counted]
    low, high = chi2.ppf([5e-7 / 780, 1 - 5e-7 / 780], r) / r
    assert low < ratio.min()
    assert ratio.max() < high


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize(("filter", "time"), FILTERS[:2] + FILTERS[3:])
def test_pairs_and_rest_are_orthogonal(filter, time):
    d, f = made(cloud(40, 3, seed=1)), quotient(filter, time)
    c = Coordinates.of(d, 2, 16, 3)
    (columns, (block,)), *_ = c.rest_of(f)
    assert (columns.start, columns.stop) == (0, 16)
    size = np.abs(block).max()
    assert_allclose(c.vectors.T @ block, 0, atol=1e-9 * size)
    assert_allclose(np.sqrt(d.measure) @ block, 0, atol=1e-9 * size)


# What the rest does not depend on


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("columns", [5, 32, 70])
def test_each_iteration_gives_the_same_blocks_remembered_or_not(columns, monkeypatch):
    d = made(cloud(40, 3, seed=1))
    filters = [quotient("power", 2), quotient("power", 5)]
    c = Coordinates.of(d, 2, columns, 3)

    def iterate(rest):
        return [(at, *map(np.copy, blocks)) for at, blocks in rest]

    remembered = c.rest_of(*filters)
    first, second = iterate(remembered), iterate(remembered)
    monkeypatch.setattr(module, "REMEMBERED_ENTRIES", 0)
    forgotten = c.rest_of(*filters)
    again, last = iterate(forgotten), iterate(forgotten)
    ends = [(at.start, at.stop) for at, *_ in first]
    assert [start for start, _ in ends] == list(range(0, columns, 32))
    assert ends[-1][1] == columns
    for other in (second, again, last):
        for (at, *blocks), (same, *as_before) in zip(other, first, strict=True):
            assert at == same
            for one, before in zip(blocks, as_before, strict=True):
                assert_array_equal(one, before)


@pytest.mark.usefixtures("few_pairs")
def test_blocks_are_computed_once_if_they_are_remembered(monkeypatch):
    calls = []
    apply = module.apply
    monkeypatch.setattr(module, "apply", lambda *args: calls.append(1) or apply(*args))
    c = Coordinates.of(made(cloud(40, 3, seed=1)), 2, 70, 3)
    for limit, expected in ((10**6, 3), (0, 6)):
        monkeypatch.setattr(module, "REMEMBERED_ENTRIES", limit)
        calls.clear()
        rest = c.rest_of(quotient("power", 2))
        assert [len(list(rest)) for _ in range(2)] == [3, 3]
        assert len(calls) == expected


@pytest.mark.usefixtures("few_pairs")
def test_many_filters_in_one_pass_are_each_on_its_own():
    c = Coordinates.of(made(cloud(40, 3, seed=1)), 2, 40, 3)
    filters = [quotient("power", 1), quotient("power", 2), quotient("heat", 1.5)]
    together = list(c.rest_of(*filters))
    for number, f in enumerate(filters):
        for (_, blocks), (_, (alone,)) in zip(together, c.rest_of(f), strict=True):
            atol = 1e-9 * np.abs(alone).max()
            assert_allclose(blocks[number], alone, rtol=0, atol=atol)


@pytest.mark.usefixtures("few_pairs")
def test_the_seed_decides_the_rest_and_nothing_else():
    d, f = made(cloud(40, 3, seed=1)), quotient("power", 2)
    first, same, other = (Coordinates.of(d, 2, 16, seed) for seed in (0, 0, 1))
    assert_array_equal(other.vectors, first.vectors)
    (_, (one,)), (_, (again,)), (_, (another,)) = (
        next(iter(c.rest_of(f))) for c in (first, same, other)
    )
    assert_array_equal(again, one)
    assert np.abs(another - one).max() > 1e-3 * np.abs(one).max()


# When it is complete


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("filter", ["power", "heat"])
def test_complete_means_that_all_others_weigh_little(filter):
    d = made(cloud(60, 2, seed=1))
    c, every = Coordinates.of(d, 2, 16, 0), np.linalg.eigvalsh(d.deflated() @ np.eye(d.n))
    others = np.sort(every)[: d.n - 1 - 8]
    seen = set()
    for time in 2 ** np.arange(12):
        f = quotient(filter, int(time))
        weights = np.abs(f.scaled(np.append(c.values, others))[0])
        share = weights[8:].max() / weights.max()
        seen.add(c.is_complete(f))
        if c.is_complete(f):
            assert share <= 1e-2
        assert c.is_complete(f) or share > 1e-5
    assert seen == {True, False}


@pytest.mark.usefixtures("few_pairs")
def test_negative_eigenvalues_are_not_overlooked():
    # On an even cycle λ = -1 is as large as 1: no time makes it negligible, but by the heat filter.
    d = hs.Diffusion.from_graph(cycle_graph(40), alpha=0)
    c = Coordinates.of(d, 2, 16, 0)
    assert c.lowest <= -1 + 1e-9
    assert not c.is_complete(quotient("power", 2001))
    assert c.is_complete(quotient("heat", 2001.0))
