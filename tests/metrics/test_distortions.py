import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist, squareform

import heatsketch as hs
from heatsketch import diffusion_distance, distortion
from heatsketch.metrics import share_within
from problems.clouds import cloud, even_circle
from problems.spectra import log_L_of_first_pair


def rows_apart(M):
    """|row_i - row_j| for all pairs, the slow way."""
    i, j = np.triu_indices(len(M), 1)
    return np.sqrt(((M[i] - M[j]) ** 2).sum(axis=1))


# Distortion


def test_log_L_is_formula_32():
    F, D = cloud(30, 3), pdist(cloud(30, 4, seed=1))
    ratio = rows_apart(F) / D
    q = distortion(F, D)
    assert q.expansion == pytest.approx(ratio.max())
    assert q.contraction == pytest.approx(ratio.min())
    assert q.log_L == pytest.approx(np.log(ratio.max() / ratio.min()))
    assert q.n_pairs == 30 * 29 // 2
    for level, value in q.quantiles.items():
        assert value == pytest.approx(np.quantile(ratio, level) / np.median(ratio))
    assert set(q.quantiles) >= {0.0, 0.5, 1.0}
    assert q.quantiles[0.5] == 1


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
    for level, value in want.quantiles.items():
        assert got.quantiles[level] == pytest.approx(value, rel=1e-9)


def test_condensed_square_and_pairs_agree():
    F, D = cloud(20, 3), pdist(cloud(20, 4, seed=1))
    i, j = np.triu_indices(20, 1)
    one = distortion(F, D)
    for other in (distortion(F, squareform(D)), distortion(F, D, pairs=(j, i))):
        assert other.log_L == pytest.approx(one.log_L, rel=1e-12)
        assert other.n_pairs == one.n_pairs
        for end in ("expansion", "contraction"):
            ours = np.sort(other.worst_pairs[end], axis=1)
            np.testing.assert_array_equal(ours, one.worst_pairs[end])


def test_only_the_pairs_given_count():
    F, D = cloud(10, 2), pdist(cloud(10, 2))
    D[0] *= 100  # pair (0, 1)
    i, j = np.triu_indices(10, 1)
    assert distortion(F, D[1:], pairs=(i[1:], j[1:])).log_L == pytest.approx(0, abs=1e-13)
    assert distortion(F, D).log_L == pytest.approx(math.log(100))


def test_worst_pairs_are_named_worst_first():
    F = cloud(10, 2)
    D = squareform(pdist(F))
    for i, j, factor in [(2, 7, 5.0), (1, 3, 3.0), (0, 9, 1 / 4), (4, 5, 1 / 2)]:
        D[i, j] = D[j, i] = D[i, j] * factor
    worst = distortion(F, D).worst_pairs
    np.testing.assert_array_equal(worst["contraction"][:2], [[2, 7], [1, 3]])
    np.testing.assert_array_equal(worst["expansion"][:2], [[0, 9], [4, 5]])
    assert worst["expansion"].shape == (5, 2)


def test_points_that_coincide_but_should_not_are_infinitely_distorted():
    q = distortion([[0.0], [0.0], [1.0]], [1.0, 1.0, 1.0])
    assert (q.log_L, q.contraction, q.expansion) == (math.inf, 0.0, 1.0)
    np.testing.assert_array_equal(q.worst_pairs["contraction"][0], [0, 1])


def test_points_that_differ_but_should_not_are_infinitely_distorted():
    q = distortion([[0.0], [1.0], [3.0]], [0.0, 2.0, 1.0])
    assert (q.log_L, q.contraction, q.expansion) == (math.inf, 1.5, math.inf)
    np.testing.assert_array_equal(q.worst_pairs["expansion"][0], [0, 1])
    assert q.quantiles[1.0] == pytest.approx(2 / 1.75)  # of the finite ratios 1.5 and 2


@pytest.mark.parametrize(("F", "D"), [([[0.0], [1.0]], [0.0]), ([[1.0], [1.0]], [2.0])])
def test_everything_wrong_is_infinite_too(F, D):
    q = distortion(F, D)
    assert q.log_L == q.worst_factor == math.inf
    assert set(q.within.values()) == {0.0}
    assert q.describe() == "distances kept within a factor 2 for 0 % of pairs; worst inf"


def test_pairs_at_distance_zero_on_both_sides_say_nothing():
    q = distortion([[0.0], [0.0], [1.0]], [0.0, 2.0, 2.0])
    assert (q.log_L, q.n_pairs) == (0.0, 2)
    with pytest.raises(ValueError, match="No pair has a distance"):
        distortion(np.ones((3, 2)), np.zeros(3))


def test_differences_are_explicit():
    # A gap of 2^-40 next to an offset of 1: the Gram form would lose it.
    F = 1.0 + np.array([[0.0], [2.0**-40], [1.0]])
    assert distortion(F, [2.0**-40, 1.0, 1.0 - 2.0**-40]).log_L == 0


@pytest.mark.parametrize(
    ("F", "D", "match"),
    [
        (np.ones((3, 2)), np.ones(4), "D has shape"),
        (np.ones((3, 2)), np.ones((4, 4)), "D has shape"),
        (np.ones((3, 2)), np.ones((2, 2)), "D has shape"),
        (np.ones((3, 2)), [1.0, -1.0, 1.0], "negative or non-finite"),
        (np.ones((3, 2)), [1.0, np.nan, 1.0], "negative or non-finite"),
        (np.ones((3, 2)), [1.0, np.inf, 1.0], "negative or non-finite"),
        (np.full((3, 2), np.nan), np.ones(3), "finite embedding"),
        (np.ones((1, 2)), [], "n >= 2 points"),
        (np.ones((3, 2, 1)), np.ones(3), "finite embedding"),
    ],
    ids=["long", "large", "small", "negative", "nan", "inf", "F nan", "one point", "3-d"],
)
def test_what_cannot_be_compared_is_refused(F, D, match):
    with pytest.raises(ValueError, match=match):
        distortion(F, D)


def test_two_diffusion_coordinates_of_the_circle_have_the_distortion_of_its_eigenvalues():
    n, epsilon, time = 300, 0.25, 8
    want = log_L_of_first_pair(n, epsilon, time)
    assert want == pytest.approx(0.0770, abs=5e-5)  # Figure 1a at k = 2

    A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(n), epsilon))
    F = even_circle(n)  # but for a factor
    assert distortion(F, diffusion_distance(A, time)).log_L == pytest.approx(want, rel=1e-8)


def test_the_trivial_direction_counts_in_a_distance_unless_deflated():
    """D² = D_deflated² + λ_0^2p (u_i - u_j)²; a sketch has the second in expectation."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    A = hs.symmetric_normalize(hs.gaussian_affinity(X, 0.5))
    values, vectors = np.linalg.eigh(A)
    u = vectors[:, -1]
    whole, rest = (hs.diffusion_distance(A, 16, deflate=deflate) for deflate in (False, True))
    np.testing.assert_allclose(whole**2, rest**2 + pdist(u[:, None]) ** 2, rtol=1e-9)
    Y = vectors[:, :-1] * values[:-1] ** 16
    np.testing.assert_allclose(rest, pdist(Y), rtol=1e-6)


def test_pairs_as_one_array_are_refused_rather_than_misread():
    with pytest.raises(ValueError, match=r"tuple\(pairs.T\)"):
        hs.diffusion_distance(np.diag([1.0, 0.5, 0.2]), 1, pairs=np.array([[0, 1], [0, 2]]))


# How many pairs are kept


def test_shares_are_those_of_ratios_near_the_median():
    F, D = cloud(30, 3), pdist(cloud(30, 4, seed=1))
    off = pdist(F) / D
    off = off / np.median(off)
    q = distortion(2.0 * F, D)
    assert q.median == pytest.approx(2 * np.median(pdist(F) / D), rel=1e-12)
    for factor, share in q.within.items():
        assert share == np.mean(np.maximum(off, 1 / off) <= factor)
    assert q.worst_factor == pytest.approx(np.maximum(off, 1 / off).max(), rel=1e-12)
    assert sorted(q.within.values()) == list(q.within.values())
    assert q.looked_at == "all pairs"


@given(st.integers(0, 10**6), st.floats(1, 20))
def test_share_within_is_that_of_a_distortion(seed, factor):
    F, Y = cloud(15, 3, seed=seed), cloud(15, 2, seed=seed + 1)
    off = pdist(Y) / pdist(F)
    off = off / np.median(off)
    assert share_within(Y, F, factor) == np.mean(np.maximum(off, 1 / off) <= factor)
    q = distortion(Y, pdist(F))
    for known, share in q.within.items():
        assert share_within(Y, F, known) == share


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
        ([1.0, 1.0, 0.0], "within a factor 2 for 66 % of pairs; worst inf"),
    ],
    ids=["none", "a hundredth", "three", "43 %", "to the rim", "a collision"],
)
def test_one_line_says_how_well_distances_are_kept(ratios, text):
    assert with_ratios(ratios).describe() == "distances kept " + text


def test_a_distortion_prints_on_a_few_lines():
    X = cloud(60, 3)
    shown = repr(hs.HeatEmbedding(time=4, random_state=0).fit(X).distortion_)
    assert shown.startswith("Distortion(log_L=")
    assert "looked_at='all pairs'" in shown
    assert len(shown) < 400
