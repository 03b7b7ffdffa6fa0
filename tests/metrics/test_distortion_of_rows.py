"""The distortion of rows, and of diffusion distances, over all pairs or some."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from scipy.stats import binom, norm

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance, distortion
from heatsketch.markov import coordinates
from heatsketch.metrics import diffusion_distortion, row_distortion
from heatsketch.metrics import distortions as metrics
from problems.clouds import cloud

ALARM = 1e-6


def symmetric(n=40, epsilon=0.5):
    return hs.symmetric_normalize(hs.gaussian_affinity(cloud(n, 2), epsilon))


# The distortion of rows


def same(one, other):
    """Assert that two distortions agree."""
    for name in ("log_L", "expansion", "contraction", "median", "worst_factor"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)
    assert one.within == other.within
    for level, value in one.quantiles.items():
        assert value == pytest.approx(other.quantiles[level], rel=1e-12)
    assert one.n_pairs == other.n_pairs
    for end, worst in one.worst_pairs.items():
        np.testing.assert_array_equal(worst, other.worst_pairs[end])


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
def many(monkeypatch):
    """Six hundred points that count as many, and neighbours looked for around all of them."""
    monkeypatch.setattr(metrics, "ALL_PAIRS_UP_TO", 100)
    return cloud(600, 3)


@pytest.mark.parametrize("columns", [3, 20])
def test_a_collision_is_found_in_any_number_of_dimensions(many, columns):
    Y = np.hstack([many, np.zeros((600, columns - 3))])
    far = np.argmax(np.linalg.norm(many - many[7], axis=1))
    Y[7] = Y[far]
    assert row_distortion(Y, many, n_pairs=10).log_L == math.inf


def test_near_points_that_are_torn_apart_are_found(many):
    F = many.copy()
    F[7] = F[3] + 1e-6
    found = row_distortion(many, F, n_pairs=10)
    assert sorted(found.worst_pairs["expansion"][0]) == [3, 7]
    ratio = np.linalg.norm(many[7] - many[3]) / np.linalg.norm(F[7] - F[3])
    assert found.expansion == pytest.approx(ratio, rel=1e-6)


def test_pairs_used_are_looked_at_and_do_not_change_what_is_typical(many):
    Y = many.copy()
    Y[7] *= 50  # neither before nor after among the neighbours of point 3
    plain = row_distortion(Y, many, n_pairs=10)
    with_it = row_distortion(Y, many, n_pairs=10, used=(np.array([3]), np.array([7])))
    assert with_it.expansion >= np.linalg.norm(Y[7] - Y[3]) / np.linalg.norm(many[7] - many[3])
    assert with_it.quantiles == plain.quantiles
    assert with_it.within == plain.within
    assert with_it.looked_at.endswith(" + 1 used for fitting")
    with pytest.raises(ValueError, match="out of range"):
        row_distortion(Y, many, used=(np.array([3]), np.array([600])))


def test_it_says_which_pairs_it_looked_at(many):
    found = row_distortion(2 * many, many, n_pairs=1234)
    assert found.looked_at == (
        "1,234 random pairs + the 64 of most extreme ratio from 1,234 random pairs + 3,000 nearest "
        "in the input + 3,000 nearest in the embedding"
    )
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


def test_rows_must_fit():
    with pytest.raises(ValueError, match="Y has 3 rows and F has 4"):
        row_distortion(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="finite embedding"):
        row_distortion(np.full((3, 2), np.nan), np.eye(3))
    with pytest.raises(ValueError, match="No pair has a distance"):
        row_distortion(np.ones((3, 2)), np.ones((3, 2)))
    for scale in (1e-200, 1e200):  # squares would be 0, or infinite
        with pytest.raises(ValueError, match=r"size [12]e[+-]200; pass them divided"):
            row_distortion(np.eye(3), scale * np.eye(3))


# The distortion of diffusion distances


def test_of_few_points_all_diffusion_distances_are_looked_at():
    A, F = symmetric(), cloud(40, 2, seed=1)
    found = diffusion_distortion(F, A, 4)
    same(found, distortion(F, diffusion_distance(A, 4)))
    assert found.looked_at == "all pairs"
    heat = diffusion_distortion(F, A, 2.5, filter="heat")
    same(heat, distortion(F, diffusion_distance(A, 2.5, filter="heat")))
    same(diffusion_distortion(F, A, 4, n_pairs=5), found)


@pytest.fixture(scope="module")
def roll():
    """A curve of 400 points, its diffusion, a faithful embedding, and all distances."""
    s = np.linspace(0, 1, 400)
    X = np.column_stack([np.cos(3 * s), np.sin(3 * s), s**2])
    A = Diffusion.from_points(X, n_neighbors=12)
    F = hs.DiffusionMap(30, 4, n_neighbors=12).fit(X).embedding_
    return A, F, squareform(diffusion_distance(A, 4))


def sampled(F, A, n_pairs=50, time=4, error=0.0, **options):
    """Take more than 200 points for too many for all pairs, and for all eigenpairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "ALL_PAIRS_UP_TO", 200)
        patch.setattr(metrics, "_NEGLIGIBLE", error)
        for limit in ("FEW_VERTICES", "SPECTRAL_LIMIT"):
            patch.setattr(coordinates, limit, 20)
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


def test_a_planted_collision_of_diffusion_is_found(roll):
    A, F, D = roll
    far = int(D[7].argmax())
    F = F.copy()
    F[7] = F[far] + 1e-7 * D[7, far]
    found = sampled(F, A)
    assert sorted(found.worst_pairs["contraction"][0]) == sorted([7, far])
    want = np.linalg.norm(F[7] - F[far]) / D[7, far]
    assert found.contraction == pytest.approx(want, rel=1e-9)
    F[7] = F[far]
    assert sampled(F, A).log_L == math.inf


def test_a_planted_tear_of_diffusion_is_found(roll):
    A, F, D = roll
    near = int(np.where(D[7] > 0, D[7], np.inf).argmin())
    F = F.copy()
    F[7] += 100 * D.max()
    found = sampled(F, A)
    assert sorted(found.worst_pairs["expansion"][0]) == sorted([7, near])
    want = np.linalg.norm(F[7] - F[near]) / D[7, near]
    assert found.expansion == pytest.approx(want, rel=1e-9)


def test_extremes_do_not_change_what_is_typical(roll):
    A, F, _ = roll
    torn = F.copy()
    drawn = np.random.default_rng(0).permutation(400)[:11]  # the points of 50 pairs
    torn[np.setdiff1d(np.arange(400), drawn)[0]] += 1e3 * np.ptp(F)
    assert sampled(torn, A).quantiles == pytest.approx(sampled(F, A).quantiles, rel=1e-6)
    assert sampled(torn, A).log_L > sampled(F, A).log_L + 1


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
    assert min(hits.values()) >= binom.ppf(ALARM, trials, 0.95)


def test_independent_pairs_have_binomial_intervals(many):
    found = row_distortion(many[:, :2], many, n_pairs=1000)
    n, p = 1000, found.within[1.5]
    z = norm.isf(0.025)
    half = np.sqrt(p * (1 - p) * z**2 / n + z**4 / (4 * n**2)) / (1 + z**2 / n)
    low, high = found.within_interval[1.5]
    assert high - low == pytest.approx(2 * half, rel=1e-3)
    whole = distortion(many[:30, :2], pdist(many[:30]))
    assert whole.within_interval[1.5] == (whole.within[1.5], whole.within[1.5])


def test_at_long_times_distances_are_those_of_eigenpairs(roll):
    A, F, _ = roll
    found = sampled(F, A, 20_000, time=4000, error=0.01)
    assert found.looked_at.startswith("20,000 random pairs + ")
    assert found.within[1.5] == pytest.approx(
        diffusion_distortion(F, A, 4000).within[1.5], abs=0.02
    )


def test_walks_that_alternate_have_no_leading_eigenpairs():
    """A path has the eigenvalues ±cos: those near -1 count as much as those near 1."""
    path = sparse.diags([1.0, 1.0], [-1, 1], (600, 600), format="csr")
    A, F = Diffusion.from_graph(path), cloud(600, 2, seed=1)
    found = sampled(F, A, 10, time=1000, error=0.01)
    assert found.looked_at.startswith("all 10 pairs of 5 random points")  # exactly
    (i, j), ratio = found.worst_pairs["contraction"][0], found.contraction
    want = diffusion_distance(A, 1000, pairs=([i], [j]))[0]
    assert np.linalg.norm(F[i] - F[j]) / want == pytest.approx(ratio, rel=1e-8)


def test_it_says_which_diffusion_distances_it_looked_at(roll):
    A, F, _ = roll
    found = sampled(F, A)
    assert found.looked_at == (
        "all 55 pairs of 11 random points + the 64 of most extreme ratio from 50 random pairs + "
        "4,800 nearest in diffusion + 2,000 nearest in the embedding"
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


def test_an_embedding_of_other_points_is_refused():
    with pytest.raises(ValueError, match="F has 39 rows but A has 40 points"):
        diffusion_distortion(cloud(39, 2), symmetric(), 2)
    with pytest.raises(ValueError, match="n_pairs=0 is out of range"):
        diffusion_distortion(cloud(40, 2), symmetric(), 2, n_pairs=0)
