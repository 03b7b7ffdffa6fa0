"""Pseudotime: sums over all later times, their intervals, and what they are invariant to."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag
from scipy.stats import kstest, norm

import heatsketch as hs
from heatsketch._messages import ScaleWarning
from heatsketch.spectral.filters import GreensFilter
from heatsketch.spectral.functions import chebyshev_coefficients
from heatsketch.uncertainty import pseudotimes
from heatsketch.uncertainty.pseudotimes import (
    coordinates_from,
    rows_of_component,
    sketched_distances,
)
from problems.chance import ALARM, in_band
from problems.clouds import cloud, even_angles
from problems.spectra import cycle_graph, path_graph


def with_duplicates(n=90):
    X = cloud(n, 3, seed=3)
    return np.vstack([X, X[:5]])


@pytest.fixture(scope="module")
def model():
    return hs.DiffusionMap().fit(with_duplicates())


def summed_rows(d, time, filter="power"):
    """Return the rows of Σ M A^(s-1) of the points, or those of heat, by all eigenvectors."""
    A, root = d.operator @ np.eye(d.n), np.sqrt(d.measure)
    lam, V = np.linalg.eigh(A - np.outer(root, root))
    kept = np.abs(V.T @ root) < 0.5
    lam, V = lam[kept], V[:, kept]
    if filter == "power":
        f = lam ** (time - 1)
    else:  # without the walks that have not moved
        f = (np.exp(-time * (1 - lam)) - np.exp(-time)) / lam
    M = A if d.directed_step is None else d.directed_step.toarray()
    rows = M @ (V * (f / (1 - lam))) @ V.T
    return d.expand(rows / (M @ root)[:, None] if d.normalization == "markov" else rows)


def relative(rows, root=7):
    """Return the distances of rows from the mean of some, next to the largest."""
    distance = np.linalg.norm(rows - rows[np.atleast_1d(root)].mean(axis=0), axis=1)
    return distance / distance.max()


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize(("filter", "time"), [("power", 1), ("power", 8), ("heat", 2.5)])
def test_it_is_the_distance_of_the_summed_rows(normalization, filter, time):
    d = hs.diffusion(with_duplicates(), n_neighbors=8, normalization=normalization)
    options = {"affinity": "precomputed", "normalization": normalization, "filter": filter}
    found = hs.HeatSketch(**options, random_state=0).fit(d).pseudotime(7, time=time)
    assert_allclose(found.value, relative(summed_rows(d, time, filter)), atol=1e-9)
    assert_array_equal(found.low, found.value)
    assert_array_equal(found.high, found.value)


def test_it_has_the_closed_form_of_a_ring():
    """Neighbours on a ring, half of the walks stay: λ_m = (1 + cos 2πm/n) / 2."""
    n, time = 41, 3
    ring = hs.Diffusion.from_graph(cycle_graph(n) + 2 * sparse.identity(n))
    model = hs.DiffusionMap(affinity="precomputed", alpha=0).fit(ring)
    angle, m = even_angles(n), np.arange(1, n)
    lam = (1 + np.cos(2 * np.pi * m / n)) / 2
    weight = (lam**time / (1 - lam)) ** 2
    square = (1 - np.cos(np.outer(angle, m))) @ weight
    assert_allclose(model.pseudotime(0, time=time).value, np.sqrt(square / square.max()), atol=1e-9)


def test_it_grows_along_a_path_where_a_distance_of_one_time_does_not():
    n = 200
    d = hs.Diffusion.from_graph(path_graph(n) + 2 * sparse.identity(n))
    model = hs.HeatSketch(affinity="precomputed", alpha=0, random_state=0).fit(d)
    assert (np.diff(model.pseudotime(0).value) > 0).all()
    one_time = hs.diffusion_distance(d, 8, pairs=(np.zeros(n, int), np.arange(n)))
    assert not (np.diff(one_time) > 0).all()


@pytest.mark.parametrize(
    "estimator", [hs.HeatSketch(time=[2, 4]), hs.HeatEmbedding(random_state=1), hs.DiffusionMap(5)]
)
def test_roots_may_be_an_index_indices_or_a_mask(estimator):
    model, some = estimator.fit(with_duplicates()), [3, 20, 41]
    want = relative(summed_rows(model.diffusion_, 8), some)
    for root in (some, np.array(some), np.isin(np.arange(95), some)):
        assert_allclose(model.pseudotime(root).value, want, atol=1e-9)
    assert_array_equal(model.pseudotime([3]).value, model.pseudotime(3).value)
    assert model.pseudotime(3).value[3] == 0


def test_neither_order_nor_unit_of_the_points_matters(model):
    order = np.random.default_rng(5).permutation(95)
    moved = hs.DiffusionMap().fit(1e6 * with_duplicates()[order]).pseudotime(order == 7)
    assert_allclose(moved.value, model.pseudotime(7).value[order], atol=1e-8)


def one_by_one(limits, n_leading=4):
    """Let few points take the way of many: few eigenpairs, and a sketch of the rest."""
    limits(all_eigenpairs=0, pseudotime_pairs=n_leading)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_other_components_are_infinitely_late(many, given, limits):
    """Within the component of the root it is that of the component by itself."""
    parts = [cloud(n, 2, seed) + 1e3 * seed for seed, n in enumerate((70, 90, 50))]
    K = [hs.gaussian_affinity(part, epsilon=1.0) for part in parts]
    joint = block_diag(*K)
    if given:
        joint, K = sparse.csr_matrix(joint), [sparse.csr_matrix(part) for part in K]
    alone = hs.DiffusionMap(affinity="precomputed").fit(K[1]).pseudotime(5)
    if many:
        one_by_one(limits, n_leading=60)
    model = hs.DiffusionMap(affinity="precomputed")
    with pytest.warns(UserWarning, match="components"):
        model.fit(joint)
    found = model.pseudotime(75)
    assert np.isinf(np.array(found)[:, np.r_[:70, 160:210]]).all()
    # What is left to the sketch of 32 columns has hardly any weight.
    assert_allclose(found.value[70:160], alone.value, atol=1e-3 if many else 1e-9)
    with pytest.raises(ValueError, match="root has points of 2 components"):
        model.pseudotime([0, 75])


def test_intervals_hold_as_often_as_they_say_by_the_law_of_chi_square(limits):
    d = hs.diffusion(with_duplicates(), n_neighbors=8)
    moved = summed_rows(d, 1)
    moved -= moved[7]
    exact = np.linalg.norm(moved, axis=1)
    leading = np.linalg.eigh(d.deflated @ np.eye(d.n))[1][:, -4:]
    left = exact**2 - np.square(moved @ leading).sum(axis=1)  # of which there is a sketch
    one_by_one(limits)
    trials, level = 100, 0.9
    rows, roots, _ = rows_of_component(d, 7, 1, "power")
    drawn = [coordinates_from(rows, roots, seed)[:2] for seed in range(trials)]
    ends = [sketched_distances(*coordinates, level) for coordinates in drawn]
    value, low, high = np.array(ends).transpose(1, 0, 2)
    others = np.flatnonzero(exact > 1e-9)
    hits = ((low <= exact) & (exact <= high))[:, others].sum(axis=0)
    assert in_band(hits, trials, level, alarm=ALARM / len(others))
    ratio = ((value**2 - exact**2 + left) / np.where(left > 1e-9, left, 1.0))[:, others]
    for x in (11, 30, 60):
        assert kstest(32 * ratio[:, x], "chi2", args=(32,)).pvalue > ALARM / 3
        assert kstest(32 * ratio[:, x], "chi2", args=(16,)).pvalue < ALARM


def test_the_farthest_points_have_their_exact_distances(limits):
    d = hs.diffusion(with_duplicates(), n_neighbors=8)
    want = relative(summed_rows(d, 3), [7, 8])
    one_by_one(limits)
    limits(pseudotime_tips=1000, pseudotime_same_place=0.0)  # all of them
    found = pseudotimes.pseudotime(d, [7, 8], 3)
    assert_allclose(found.value, want, rtol=1e-4)  # of duplicates, too
    assert_array_equal(found.low, found.high)


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_of_the_ratio_to_the_largest_hold_as_often_as_they_say(limits):
    """False alarm 1e-6, detects 0.87 in place of 0.95: the sketched largest as the unit had it."""
    d = hs.DiffusionMap(n_neighbors=8).fit(cloud(200, 5)).diffusion_
    exact = pseudotimes.pseudotime(d, 7).value
    one_by_one(limits)
    trials, level = 60, 0.95
    found = [pseudotimes.pseudotime(d, 7, level=level, rng=seed) for seed in range(trials)]
    value, low, high = np.array(found).transpose(1, 0, 2)
    hits = ((low <= exact + 1e-6) & (exact <= high + 1e-6))[:, exact > 0]
    # Errors of different points in one sketch are correlated: one mean for each trial.
    rates = hits.mean(axis=1)
    assert rates.mean() > level + norm.ppf(ALARM) * 0.12 / np.sqrt(trials)
    assert_allclose(value.max(axis=1), 1.0)


def test_many_points_agree_with_all_eigenpairs(limits):
    model = hs.HeatSketch(random_state=0).fit(with_duplicates(400))
    exact = model.pseudotime(0)
    one_by_one(limits, n_leading=20)
    found = model.pseudotime(0)
    assert_array_equal(np.array(model.pseudotime(0)), np.array(found))  # the seed decides
    assert_allclose(found.value, exact.value, atol=0.02)
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    assert 1e-6 < np.median(found.high - found.low) < 0.02


def test_at_a_late_time_only_the_slowest_direction_is_left(model):
    late = relative(model.embedding_[:, :1])
    assert_allclose(model.pseudotime(7, time=1000).value, late, atol=1e-6)


def test_an_isolated_root_reaches_itself_alone():
    K = np.eye(40)
    K[:39, :39] = hs.gaussian_affinity(cloud(39, 2), epsilon=1.0)
    with pytest.warns(UserWarning, match="components"):
        model = hs.DiffusionMap(affinity="precomputed").fit(K)
    assert_array_equal(model.pseudotime(39).value, np.where(np.arange(40) == 39, 0.0, np.inf))


def test_points_without_any_difference_are_all_at_the_root():
    with pytest.warns(ScaleWarning, match="same affinities"):
        model = hs.DiffusionMap(1, affinity="precomputed").fit(np.ones((5, 5)))
    assert_array_equal(np.array(model.pseudotime(0)), np.zeros((3, 5)))


@pytest.mark.parametrize(
    ("root", "options", "words"),
    [
        (95, {}, r"pass 0 <= index < 95"),
        (-1, {}, r"pass 0 <= index < 95"),
        ([], {}, "shape .0,.; pass the index of a point"),
        (np.zeros(95, bool), {}, "at least one point"),
        (np.zeros(9, bool), {}, r"shape \(9,\); .* a mask \(95,\)"),
        ([[1, 2]], {}, "root"),
        (0.5, {}, "pass the index of a point"),
        ("cell", {}, "pass the index of a point"),
        (0, {"time": 0}, "time"),
        (0, {"time": 0.5}, "time"),
        (0, {"level": 1.0}, "level"),
    ],
)
def test_a_wrong_root_time_or_level_is_named(model, root, options, words):
    with pytest.raises(ValueError, match=words):
        model.pseudotime(root, **options)


@pytest.mark.parametrize("high", [0.5, 0.99, 0.9999])
def test_the_series_of_the_sum_is_as_long_as_estimated(high):
    f = GreensFilter(hs.Power(8))
    lam = np.linspace(-0.8, high, 1001)
    c = chebyshev_coefficients(f, (-0.8, high), 1e-6)
    x = (2 * lam - (high - 0.8)) / (high + 0.8)
    series = np.polynomial.chebyshev.chebval(x, c)
    assert_allclose(series, f(lam), atol=4e-6 * f(lam).max())
    assert_allclose(f(lam), lam**8 / (1 - lam), rtol=1e-9)
    assert 0.5 < len(c) / f.degree((-0.8, high), 1e-6) < 1.5
