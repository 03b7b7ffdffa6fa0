"""The distortion of distances, of rows, and of diffusion distances, over all pairs or some."""

import math
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import norm

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance, distortion
from heatsketch.markov import rows as coordinates
from heatsketch.metrics import diffusion_distortion, distances, row_distortion
from problems.chance import in_band
from problems.clouds import cloud, even_circle
from problems.filtered import symmetric
from problems.limits import set_limits
from problems.spectra import circle, log_L_of_first_pair


def same(one, other):
    """Assert that two distortions agree."""
    for name in ("log_L", "expansion", "contraction", "median", "worst_factor", "quantiles"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)
    assert (one.within, one.n_pairs) == (other.within, other.n_pairs)
    for end, worst in one.worst_pairs.items():
        np.testing.assert_array_equal(worst, other.worst_pairs[end])


# Distortion


def test_log_L_is_formula_32_and_fractions_are_those_of_ratios_near_the_median():
    F, D = cloud(30, 3), pdist(cloud(30, 4, seed=1))
    i, j = np.triu_indices(30, 1)
    ratio = np.sqrt(((F[i] - F[j]) ** 2).sum(axis=1)) / D
    off = np.maximum(ratio / np.median(ratio), np.median(ratio) / ratio)
    q = distortion(F, D)
    assert q.expansion == pytest.approx(ratio.max())
    assert q.contraction == pytest.approx(ratio.min())
    assert q.log_L == pytest.approx(np.log(ratio.max() / ratio.min()))
    assert q.median == pytest.approx(np.median(ratio), rel=1e-12)
    assert q.worst_factor == pytest.approx(off.max(), rel=1e-12)
    assert (q.n_pairs, q.looked_at) == (30 * 29 // 2, "all pairs")
    for level, value in q.quantiles.items():
        assert value == pytest.approx(np.quantile(ratio, level) / np.median(ratio))
    assert set(q.quantiles) >= {0.0, 0.5, 1.0}
    for factor, fraction in q.within.items():
        assert fraction == np.mean(off <= factor)
    assert sorted(q.within.values()) == list(q.within.values())


@given(
    st.integers(0, 10**6),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
    st.floats(-100, 100),
)
def test_log_L_sees_neither_unit_nor_place_nor_direction_nor_order(seed, a, b, shift):
    F, D = cloud(15, 3, seed=seed), cdist(cloud(15, 4, seed=seed + 1), cloud(15, 4, seed=seed + 1))
    want = distortion(F, D)
    rng = np.random.default_rng(seed)
    turn, order = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.permutation(15)
    got = distortion((a * (F + shift) @ turn)[order], b * D[np.ix_(order, order)])
    assert got.log_L == pytest.approx(want.log_L, rel=1e-9)
    assert got.expansion == pytest.approx(want.expansion * a / b, rel=1e-9)
    assert got.quantiles == pytest.approx(want.quantiles, rel=1e-9)


def test_condensed_square_and_pairs_agree():
    F, D = cloud(20, 3), pdist(cloud(20, 4, seed=1))
    i, j = np.triu_indices(20, 1)
    same(distortion(F, squareform(D)), distortion(F, D))
    same(distortion(F, D, pairs=(i, j)), distortion(F, D))


def test_worst_pairs_are_named_worst_first():
    F = cloud(10, 2)
    D = squareform(pdist(F))
    for i, j, factor in [(2, 7, 5.0), (1, 3, 3.0), (0, 9, 1 / 4), (4, 5, 1 / 2)]:
        D[i, j] = D[j, i] = D[i, j] * factor
    worst = distortion(F, D).worst_pairs
    np.testing.assert_array_equal(worst["contraction"][:2], [[2, 7], [1, 3]])
    np.testing.assert_array_equal(worst["expansion"][:2], [[0, 9], [4, 5]])
    assert worst["expansion"].shape == (5, 2)


def test_pairs_at_distance_zero_on_one_side_are_infinitely_distorted():
    joined = distortion([[0.0], [0.0], [1.0]], [1.0, 1.0, 1.0])
    assert (joined.log_L, joined.contraction, joined.expansion) == (math.inf, 0.0, 1.0)
    np.testing.assert_array_equal(joined.worst_pairs["contraction"][0], [0, 1])
    parted = distortion([[0.0], [1.0], [3.0]], [0.0, 2.0, 1.0])
    assert (parted.log_L, parted.contraction, parted.expansion) == (math.inf, 1.5, math.inf)
    np.testing.assert_array_equal(parted.worst_pairs["expansion"][0], [0, 1])
    assert parted.quantiles[1.0] == pytest.approx(2 / 1.75)  # of the finite ratios 1.5 and 2


@pytest.mark.parametrize(
    ("F", "D", "where"),
    [([[0.0], [1.0]], [0.0], "truth"), ([[1.0], [1.0]], [2.0], "the picture")],
)
def test_everything_wrong_is_infinite_too(F, D, where):
    q = distortion(F, D)
    assert q.log_L == q.worst_factor == math.inf
    assert set(q.within.values()) == {0.0}
    line = "distances kept within a factor 2 for 0 % of pairs; some points coincide only in "
    assert q.describe() == line + where


def test_the_worst_pairs_are_different_ones_however_often_they_were_drawn():
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 8, (2, 500))
    i, j = i[i != j], j[i != j]
    F, D = rng.normal(size=(8, 2)), rng.random((8, 8))
    D += D.T
    all_pairs = np.triu_indices(8, 1)
    found, expected = (distortion(F, D[pairs], pairs=pairs) for pairs in ((i, j), all_pairs))
    for end, worst in expected.worst_pairs.items():
        np.testing.assert_array_equal(np.sort(found.worst_pairs[end], axis=1), worst)


def test_pairs_at_distance_zero_on_both_sides_say_nothing():
    q = distortion([[0.0], [0.0], [1.0]], [0.0, 2.0, 2.0])
    assert (q.log_L, q.n_pairs) == (0.0, 2)
    with pytest.raises(ValueError, match="No pair has a distance"):
        distortion(np.ones((3, 2)), np.zeros(3))


def test_differences_are_explicit():
    # A gap of 2^-40 next to an offset of 1: the Gram form would lose it.
    F = 1.0 + np.array([[0.0], [2.0**-40], [1.0]])
    assert distortion(F, [2.0**-40, 1.0, 1.0 - 2.0**-40]).log_L == 0


THREE = np.ones((3, 2))


@pytest.mark.parametrize(
    ("function", "given", "match"),
    [
        *((distortion, (THREE, np.ones(m)), "D has shape") for m in (4, (4, 4), (2, 2))),
        (distortion, (THREE, [1.0, -1.0, 1.0]), "negative or non-finite"),
        (distortion, (THREE, [1.0, np.nan, 1.0]), "negative or non-finite"),
        (distortion, (THREE, [1.0, np.inf, 1.0]), "negative or non-finite"),
        (distortion, (np.full((3, 2), np.nan), np.ones(3)), "finite embedding"),
        (distortion, (np.ones((1, 2)), []), "n >= 2 points"),
        (distortion, (np.ones((3, 2, 1)), np.ones(3)), "finite embedding"),
        (row_distortion, (np.eye(3), np.eye(4)), "Y has 3 rows and F has 4"),
        (row_distortion, (np.eye(3) * np.nan, np.eye(3)), r"Y has shape \(3, 3\) and NaN"),
        # Squares of these would be 0, or infinite.
        (row_distortion, (np.eye(3), 1e-200 * np.eye(3)), "size [12]e-200; pass them divided"),
        (row_distortion, (np.eye(3), 1e200 * np.eye(3)), r"size [12]e\+200; pass them divided"),
        (diffusion_distortion, (np.eye(3), np.eye(4)), "F has 3 rows but A has 4 points"),
    ],
)
def test_what_cannot_be_compared_is_refused(function, given, match):
    with pytest.raises(ValueError, match=match):
        function(*given)


def test_two_diffusion_coordinates_of_the_circle_have_the_distortion_of_its_eigenvalues():
    n, epsilon, time = 300, 0.25, 8
    want = log_L_of_first_pair(n, epsilon, time)
    assert want == pytest.approx(0.0770, abs=5e-5)  # Figure 1a at k = 2

    D = diffusion_distance(circle(n, epsilon).operator, time)
    assert distortion(even_circle(n), D).log_L == pytest.approx(want, rel=1e-8)  # but for a factor


# How many pairs are kept


def with_ratios(ratios):
    """Two points a pair, a unit apart: the ratios are those of their distances."""
    m = len(ratios)
    F = np.zeros((2 * m, 1))
    F[1::2, 0] = ratios
    return distortion(F, np.ones(m), pairs=(np.arange(0, 2 * m, 2), np.arange(1, 2 * m, 2)))


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ([1.0] * 200, "within a factor 1.05 for 100 % of pairs; worst 1"),
        ([1.0] * 198 + [4.0] * 2, "within a factor 1.05 for 99 % of pairs; worst 4"),
        ([1.0] * 197 + [1 / 4.5] * 3, "within a factor 5 for 100 % of pairs; worst 4.5"),
        ([1.0] * 57 + [30.0] * 43, "within a factor 2 for 57 % of pairs; worst 30"),
        ([2.0, 3.0, 6.0], "within a factor 2 for 100 % of pairs; worst 2"),
        (
            [1.0, 1.0, 0.0],
            "within a factor 2 for 66 % of pairs; some points coincide only in the picture",
        ),
    ],
    ids=["none", "a hundredth", "three", "43 %", "to the rim", "a collision"],
)
def test_one_line_says_how_well_distances_are_kept(ratios, text):
    assert with_ratios(ratios).describe() == "distances kept " + text


def test_a_distortion_prints_on_a_few_lines():
    shown = repr(distortion(cloud(60, 2), pdist(cloud(60, 3))))
    assert shown.startswith("Distortion(log_L=")
    assert "looked_at='all pairs'" in shown
    assert len(shown) < 400


# The distortion of rows


def test_of_few_rows_all_pairs_are_looked_at():
    F, Y = cloud(30, 4), cloud(30, 2, seed=1)
    same(row_distortion(Y, F), distortion(Y, pdist(F)))
    assert row_distortion(Y, F).looked_at == "all pairs"
    same(row_distortion(Y[:, :1], F), row_distortion(Y[:, 0], F))


def test_rounding_of_equal_rows_says_nothing():
    F = cloud(30, 4)
    Y = F[:, :3]
    clean = row_distortion(Y, F)
    noise = 1e-16 * np.random.default_rng(3).normal(size=(10, 4))
    twice = row_distortion(np.vstack([Y, Y[:10]]), np.vstack([F, F[:10] + noise]))
    assert twice.log_L == pytest.approx(clean.log_L, rel=1e-12)
    assert twice.n_pairs == 40 * 39 // 2 - 10
    # What the embedding parts counts, and what it joins.
    assert row_distortion([[0.0], [1.0], [3.0]], [[0.0], [0.0], [1.0]]).log_L == math.inf
    assert row_distortion([[0.0], [0.0], [3.0]], [[0.0], [1.0], [3.0]]).log_L == math.inf


@pytest.fixture
def many(limits):
    """Six hundred points that count as many, and neighbours looked for around all of them."""
    limits(all_pairs=100)
    return cloud(600, 3)


def check_planted(F, D, measure):
    """Join point 7 nearly to the farthest one, tear it away, and join it: all are found."""
    far, near = D[7].argmax(), np.where(D[7] > 0, D[7], np.inf).argmin()
    for end, other, place in (
        ("contraction", far, F[far] + 1e-7 * D[7, far]),
        ("expansion", near, F[7] + 100 * D.max()),
        ("contraction", far, F[far]),
    ):
        moved = F.copy()
        moved[7] = place
        found = measure(moved)
        assert sorted(found.worst_pairs[end][0]) == sorted([7, other])
        want = np.linalg.norm(moved[7] - moved[other]) / D[7, other]
        assert getattr(found, end) == pytest.approx(want, rel=1e-9)
    assert found.log_L == math.inf


@pytest.mark.parametrize("columns", [3, 20])
def test_planted_collisions_and_tears_are_found_in_any_number_of_dimensions(many, columns):
    Y = np.hstack([many, np.zeros((600, columns - 3))])
    check_planted(Y, cdist(many, many), lambda Y: row_distortion(Y, many, n_pairs=10))


def test_a_factor_is_no_distortion_of_any_pair(many):
    found = row_distortion(2 * many, many, n_pairs=1234)
    assert "64 of most extreme ratio from 3,000 nearest in the input + 3,000" in found.looked_at
    assert found.n_pairs == 1298
    assert found.log_L < 1e-12
    assert found.median == pytest.approx(2, rel=1e-14)


@pytest.mark.statistical
def test_random_pairs_stand_for_all(many):
    """The share of 20,000 random pairs is within 5 standard deviations: 1.8 % at most.

    False alarm 6e-7 a share. Neighbours, were they to count among them, would move shares by more.
    """
    scale = np.array([1.0, 0.2, 0.1])
    Y = many * scale
    whole = distortion(Y, pdist(many))
    found = row_distortion(Y, many, n_pairs=20_000)
    for factor, share in whole.within.items():
        assert found.within[factor] == pytest.approx(share, abs=0.018)
    rounding = 1 + 1e-14  # the same pair, summed in another order
    assert whole.contraction <= found.contraction * rounding
    assert found.expansion <= whole.expansion * rounding


# The distortion of diffusion distances


def test_of_few_points_all_diffusion_distances_are_looked_at():
    A, F = symmetric(40), cloud(40, 2, seed=1)
    for options in ({"time": 4}, {"time": 2.5, "filter": "heat"}):
        found = diffusion_distortion(F, A, **options)
        same(found, distortion(F, diffusion_distance(A, **options)))
        same(found, diffusion_distortion(F, A, **options, n_pairs=5))
        with pytest.raises(ValueError, match="n_pairs=0 is out of range"):
            diffusion_distortion(F, A, **options, n_pairs=0)
        assert found.looked_at == "all pairs"


@pytest.fixture(scope="module")
def roll():
    """A curve of 400 points, its diffusion, a faithful embedding, and all distances."""
    s = np.linspace(0, 1, 400)
    X = np.column_stack([np.cos(3 * s), np.sin(3 * s), s**2])
    A = Diffusion.from_points(X, n_neighbors=12)
    F = hs.DiffusionMap(30, 4, n_neighbors=12).fit(X).embedding_
    return A, F, squareform(diffusion_distance(A, 4))


@contextmanager
def many_from_200_on(error=0.0):
    """Take more than 200 points for too many for all pairs, and for all eigenpairs."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, all_pairs=200, negligible_error=error)
        set_limits(patch, all_eigenpairs=20, few_vertices=20)
        yield patch


def sampled(F, A, n_pairs=50, time=4, error=0.0, **options):
    with many_from_200_on(error):
        return diffusion_distortion(F, A, time, n_pairs=n_pairs, **options)


@pytest.mark.parametrize("seed", range(3))
def test_extremes_of_a_sample_lie_within_the_true_ones(roll, seed):
    A, _, D = roll
    F = cloud(400, 3, seed=seed)
    whole, found = diffusion_distortion(F, A, 4), sampled(F, A, rng=seed)
    tiny = 1e-9
    assert whole.contraction * (1 - tiny) <= found.contraction < found.median
    assert found.median < found.expansion <= whole.expansion * (1 + tiny)
    for end, value in (("contraction", found.contraction), ("expansion", found.expansion)):
        i, j = found.worst_pairs[end][0]
        assert np.linalg.norm(F[i] - F[j]) / D[i, j] == pytest.approx(value, rel=1e-9)


def test_planted_collisions_and_tears_of_diffusion_are_found(roll):
    A, F, D = roll
    check_planted(F, D, lambda F: sampled(F, A))


def test_extremes_do_not_change_what_is_typical(roll):
    A, F, _ = roll
    torn = F.copy()
    drawn = np.random.default_rng(0).permutation(400)[:11]  # the points of 50 pairs
    torn[np.setdiff1d(np.arange(400), drawn)[0]] += 1e3 * np.ptp(F)
    assert sampled(torn, A).quantiles == pytest.approx(sampled(F, A).quantiles, rel=1e-6)
    assert sampled(torn, A).log_L > sampled(F, A).log_L + 1


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("in_components", [False, True])
def test_intervals_of_fractions_hold_as_often_as_they_say(in_components):
    """False alarm 1e-6 for each factor, detects 0.8 in place of 0.95.

    One sketch of 128 columns for all pairs had a standard deviation of .02 over its seeds.
    """
    X = cloud(300, 3)
    X = np.vstack([X[:200], X[200:] + 100]) if in_components else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DisconnectedWarning)
        A = Diffusion.from_points(X)
    F = hs.HeatSketch(6, 4, affinity="precomputed", random_state=0).fit(A).embedding_
    true = diffusion_distortion(F, A, 4).within
    trials, hits = 60, dict.fromkeys((1.1, 1.25, 1.5, 2.0), 0)
    for seed in range(trials):
        found = sampled(F, A, 60 * 59 // 2, rng=seed)
        for factor in hits:
            low, high = found.within_interval[factor]
            assert low <= found.within[factor] <= high
            hits[factor] += low <= true[factor] <= high
    assert in_band(min(hits.values()), trials, 0.95, upper=1, alarm=2e-6)


def test_independent_pairs_have_binomial_intervals(many):
    found = row_distortion(many[:, :2], many, n_pairs=1000)
    n, p = 1000, found.within[1.5]
    z = norm.isf(0.025)
    half = np.sqrt(p * (1 - p) * z**2 / n + z**4 / (4 * n**2)) / (1 + z**2 / n)
    low, high = found.within_interval[1.5]
    assert high - low == pytest.approx(2 * half, rel=1e-3)
    whole = distortion(many[:30, :2], pdist(many[:30]))
    assert whole.within_interval[1.5] == (whole.within[1.5], whole.within[1.5])


def test_where_eigenpairs_miss_most_there_are_none_and_fit_finds_the_same(short_search):
    X, time = cloud(400, 3), 1
    with many_from_200_on(0.01) as patch:
        model = hs.HeatEmbedding(2, time, filter="power", random_state=0).fit(X)
        for t, spread_out in ((time, True), (64, False)):
            wanted = distances.DiffusionDistances.from_operator(model.diffusion_, t, "power")
            assert wanted.is_spread_out() == spread_out
        own = model.distortion_
        patch.delattr(coordinates, "leading_eigenpairs")
        again = diffusion_distortion(model.embedding_, model.diffusion_, time)
    assert again.log_L == pytest.approx(own.log_L, rel=1e-9)
    assert again.within == own.within
    assert "points + the 64 of most extreme" in again.looked_at


def test_the_fraction_beyond_leading_eigenvalues_is_that_of_all_of_them():
    A = Diffusion.from_points(cloud(700, 3)).deflated
    squares = np.sort(np.linalg.eigvalsh(A @ np.eye(700)))[::-1] ** 8
    found = distances.spectral_density(A).fraction_beyond(64, hs.Power(4))
    assert found == pytest.approx(squares[64:].sum() / squares.sum(), abs=0.05)


def test_at_long_times_distances_are_those_of_eigenpairs(roll):
    A, F, _ = roll
    found = sampled(F, A, 20_000, time=4000, error=0.01)
    assert found.looked_at.startswith("20,000 random pairs + ")
    assert found.within[1.5] == pytest.approx(
        diffusion_distortion(F, A, 4000).within[1.5], abs=0.02
    )


def test_walks_that_alternate_have_no_leading_eigenpairs():
    """A path has the eigenvalues ±cos: those near -1 count as much as those near 1."""
    path = sparse.diags([1.0, 1.0], [-1, 1], (300, 300), format="csr")
    A, F = Diffusion.from_graph(path), cloud(300, 2, seed=1)
    found = sampled(F, A, 10, time=1000, error=0.01)
    assert found.looked_at.startswith("all 10 pairs of 5 random points")  # exactly
    (i, j), ratio = found.worst_pairs["contraction"][0], found.contraction
    want = diffusion_distance(A, 1000, pairs=([i], [j]))[0]
    assert np.linalg.norm(F[i] - F[j]) / want == pytest.approx(ratio, rel=1e-8)


def test_it_says_which_diffusion_distances_it_looked_at(roll):
    A, F, _ = roll
    found = sampled(F, A)
    assert found.looked_at == (
        "all 55 pairs of 11 random points + the 64 of most extreme ratio from 4,800 nearest in "
        "diffusion + 2,000 nearest in the embedding + 50 random pairs"
    )
    assert found.n_pairs == 119
    assert sampled(F, A).contraction == found.contraction
    assert sampled(F, A, rng=1).quantiles != found.quantiles


def test_duplicates_in_place_say_nothing_and_apart_everything():
    s = np.linspace(0, 1, 300)
    X = np.column_stack([np.cos(3 * s), np.sin(3 * s)])
    X = np.vstack([X, X[:4]])
    A, F = Diffusion.from_points(X, n_neighbors=12), X.copy()
    assert np.isfinite(sampled(F, A).log_L)
    F[301] += 0.1
    found = sampled(F, A)
    assert found.expansion == math.inf
    assert sorted(found.worst_pairs["expansion"][0]) == [1, 301]


def test_the_histogram_counts_every_pair():
    ratios = np.array([0.001, 0.9, 1.0, 1.0, 1.1, 5.0, 100.0])
    edges, counts = with_ratios(ratios).histogram
    assert counts.sum() == 7
    assert counts[0] == counts[-1] == 1
    inside = np.histogram(ratios, edges)[0]
    np.testing.assert_array_equal(counts[1:-1], inside[1:-1])
