import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import chi2

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance, distortion
from heatsketch.metrics import diffusion_distortion, row_distortion, share_within
from heatsketch.metrics import distortions as metrics
from heatsketch.metrics.distances import compared_rows
from heatsketch.metrics.some_pairs import sampled_distances
from problems.clouds import cloud, even_circle
from problems.spectra import circle_distances, log_L_of_first_pair


def symmetric(n=40, epsilon=0.5):
    return hs.symmetric_normalize(hs.gaussian_affinity(cloud(n, 2), epsilon))


def rows_apart(M):
    """|row_i - row_j| for all pairs, the slow way."""
    i, j = np.triu_indices(len(M), 1)
    return np.sqrt(((M[i] - M[j]) ** 2).sum(axis=1))


# Diffusion distance


@pytest.mark.parametrize("time", [0, 1, 2, 8, 33])
def test_distance_is_that_of_the_rows_of_the_power(time):
    A = symmetric()
    want = rows_apart(np.linalg.matrix_power(A, time))
    np.testing.assert_allclose(diffusion_distance(A, time), want, rtol=1e-10)


@pytest.mark.parametrize("time", [0.0, 0.5, 4.0, 20.0])
def test_heat_distance_is_that_of_the_rows_of_the_heat_kernel(time):
    A = symmetric()
    want = rows_apart(expm(-time * (np.eye(40) - A)))
    np.testing.assert_allclose(diffusion_distance(A, time, filter="heat"), want, rtol=1e-9)


def test_the_default_is_eight_steps():
    np.testing.assert_array_equal(
        diffusion_distance(symmetric()), diffusion_distance(symmetric(), 8, filter="power")
    )


def any_symmetric(seed=3):
    M = np.random.default_rng(seed).normal(size=(12, 12))
    return (M + M.T) / 10  # positive and negative eigenvalues, no Markov matrix behind it


FORMS = {
    "array": lambda A: A,
    "sparse": sparse.csr_matrix,
    "operator": hs.Dense,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("time", [1, 2, 5])
def test_any_symmetric_matrix_has_distances(form, time):
    A = any_symmetric()
    want = rows_apart(np.linalg.matrix_power(A, time))
    np.testing.assert_allclose(diffusion_distance(form(A), time), want, rtol=1e-9)


def test_disconnected_groups_have_distances():
    A = np.kron(np.eye(3), np.full((4, 4), 0.25))
    D = squareform(diffusion_distance(A, 5))
    same = np.kron(np.eye(3), np.ones((4, 4))) > 0
    np.testing.assert_allclose(D[same], 0, atol=1e-12)
    np.testing.assert_allclose(D[~same], np.sqrt(2 / 4), rtol=1e-12)  # disjoint rows of four ¼


def test_pairs_are_those_asked_for_in_their_order():
    A = symmetric()
    i, j = np.triu_indices(40, 1)
    order = np.random.default_rng(0).permutation(len(i))[:200]
    pairs = (np.r_[j[order], 3], np.r_[i[order], 3])  # turned round, and a point with itself
    found = diffusion_distance(A, 4, pairs=pairs)
    np.testing.assert_allclose(found[:-1], diffusion_distance(A, 4)[order], rtol=1e-12)
    assert found[-1] == 0


@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_a_diffusion_has_the_distances_of_its_operator_without_the_trivial_direction(normalization):
    d = Diffusion.from_points(
        cloud(40, 2), affinity="dense", epsilon=0.5, normalization=normalization, tol=1e-13
    )
    whole = np.linalg.matrix_power(d.operator @ np.eye(40), 4)
    want = rows_apart(whole - np.outer(np.sqrt(d.measure), np.sqrt(d.measure)))
    np.testing.assert_allclose(diffusion_distance(d, 4), want, rtol=1e-9)
    np.testing.assert_allclose(diffusion_distance(d.operator, 4, deflate=True), want, rtol=1e-9)
    np.testing.assert_allclose(diffusion_distance(d.operator, 4), rows_apart(whole), rtol=1e-10)


def test_the_trivial_direction_never_counts_in_a_diffusion():
    d = Diffusion.from_points(cloud(40, 2), affinity="dense", normalization="symmetric")
    with pytest.raises(ValueError, match=r"deflate=False, .*pass diffusion\.operator"):
        diffusion_distance(d, 4, deflate=False)
    np.testing.assert_array_equal(diffusion_distance(d, 4, deflate=True), diffusion_distance(d, 4))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("time", [1, 6])
def test_the_markov_form_weighs_by_the_inverse_of_the_measure(alpha, time):
    d = Diffusion.from_points(cloud(40, 2), affinity="dense", epsilon=0.5, alpha=alpha)
    K = hs.gaussian_affinity(cloud(40, 2), 0.5)
    K = K / np.outer(K.sum(axis=1), K.sum(axis=1)) ** alpha
    pi = K.sum(axis=1) / K.sum()
    p = np.linalg.matrix_power(K / K.sum(axis=1, keepdims=True), time)
    np.testing.assert_allclose(diffusion_distance(d, time), rows_apart(p / np.sqrt(pi)), rtol=1e-9)


def test_duplicates_that_share_a_vertex_are_at_distance_zero():
    X = np.vstack([cloud(40, 2), cloud(40, 2)[:3]])
    d = Diffusion.from_points(X, n_neighbors=8)
    D = squareform(diffusion_distance(d, 4))
    assert D.shape == (43, 43)
    assert (D[np.arange(3), 40 + np.arange(3)] == 0).all()
    once = Diffusion.from_points(cloud(40, 2), n_neighbors=8)
    np.testing.assert_allclose(D[:40, :40], squareform(diffusion_distance(once, 4)), rtol=1e-10)
    twins, others = diffusion_distance(d, 4, pairs=([0, 41], [40, 5]))
    assert twins == 0
    assert others == pytest.approx(D[41, 5], rel=1e-12)


def test_duplicates_of_a_dense_kernel_are_at_distance_zero():
    A = hs.symmetric_normalize(hs.gaussian_affinity(np.repeat(cloud(20, 2), 2, axis=0), 0.5))
    twins = np.arange(0, 40, 2)
    D = diffusion_distance(A, 3, pairs=(twins, twins + 1))
    assert D.max() < 1e-14


# λ₁ = 0.935: the smallest D are about 4e-3, 4e-5, 1e-10 and 1e-58.
@pytest.mark.parametrize("time", [8, 64, 256, 1900])
@pytest.mark.parametrize("form", ["array", "diffusion", "kernel"])
def test_small_distances_on_the_circle_keep_their_digits(form, time):
    n, epsilon = 200, 0.25
    if form == "array":
        A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(n), epsilon))
    elif form == "diffusion":
        A = Diffusion.from_points(
            even_circle(n),
            affinity="dense",
            epsilon=epsilon,
            normalization="bistochastic",
            tol=1e-13,
        )
    else:
        A = hs.symmetric_normalize(hs.Kernel(even_circle(n), epsilon))
    steps = np.arange(1, n // 2 + 1)
    D = diffusion_distance(A, time, pairs=(np.zeros_like(steps), steps))
    np.testing.assert_allclose(D, circle_distances(steps, n, epsilon, time), rtol=1e-8)


def test_small_distances_of_uneven_data_keep_their_digits():
    # In the Markov form rows of A^12 are less than 1e-6 apart and about 1 long.
    A = symmetric(30, 20.0)
    lam, V = np.linalg.eigh(A)
    i, j = np.triu_indices(30, 1)
    rest = lam[:-1].clip(1e-300) ** 12 * (V[i, :-1] - V[j, :-1])
    root = V[i, -1] - V[j, -1]
    want = np.sqrt((rest**2).sum(axis=1) + root**2)
    np.testing.assert_allclose(diffusion_distance(A, 12), want, rtol=1e-9)
    B = Diffusion.from_affinity(hs.gaussian_affinity(cloud(30, 2), 20.0))
    weight = 1 / np.sqrt(B.measure)
    modes = V[:, :-1] * weight[:, None]
    markov = np.sqrt(((lam[:-1].clip(1e-300) ** 12 * (modes[i] - modes[j])) ** 2).sum(axis=1))
    assert markov.max() < 1e-6
    np.testing.assert_allclose(diffusion_distance(B, 12), markov, rtol=1e-7)


def test_distances_that_underflow_are_refused():
    A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(50), 0.25))
    with pytest.raises(ValueError, match="time is too large"):
        diffusion_distance(A, 100_000)


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        (([0, 40], [1, 2]), "out of range; pass 0 <= index < 40"),
        (([0, -1], [1, 2]), "out of range"),
        (([0, 1], [1]), r"shapes \(2,\) and \(1,\)"),
        (([0.0, 1.0], [1, 2]), "two index arrays"),
    ],
    ids=["too large", "negative", "unequal", "not whole"],
)
def test_bad_pairs_are_refused(pairs, match):
    with pytest.raises(ValueError, match=match):
        diffusion_distance(symmetric(), 2, pairs=pairs)
    with pytest.raises(ValueError, match=match):
        distortion(cloud(40, 2), np.ones(2), pairs=pairs)


def test_bad_filters_are_refused():
    with pytest.raises(ValueError, match="filter='Power' is unknown"):
        diffusion_distance(symmetric(), 2, filter="Power")
    with pytest.raises(ValueError, match=r"p=1\.5\).*eigenvalues >= 0"):
        diffusion_distance(symmetric() - np.eye(40), 1.5)
    with pytest.raises(ValueError, match="not symmetric"):
        diffusion_distance(np.triu(np.ones((3, 3))), 2)


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


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_similarity_has_no_distortion(seed, k):
    F = cloud(12, k, seed=seed)
    assert distortion(F, 7.0 * pdist(F)).log_L == pytest.approx(0, abs=1e-13)


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


def test_one_column_may_be_flat():
    D = [1.0, 2.0, 3.0]
    flat, column = (distortion(F, D) for F in ([0.0, 1.0, 4.0], [[0.0], [1.0], [4.0]]))
    assert (flat.log_L, flat.expansion, flat.n_pairs) == (math.log(2), 2.0, 3)
    assert flat[:4] == column[:4]


def test_two_diffusion_coordinates_of_the_circle_have_the_distortion_of_its_eigenvalues():
    n, epsilon, time = 300, 0.25, 8
    want = log_L_of_first_pair(n, epsilon, time)
    assert want == pytest.approx(0.0770, abs=5e-5)  # Figure 1a at k = 2

    A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(n), epsilon))
    F = even_circle(n)  # but for a factor
    assert distortion(F, diffusion_distance(A, time)).log_L == pytest.approx(want, rel=1e-8)


def test_distortion_does_not_depend_on_the_scale_of_either_side():
    rng = np.random.default_rng(0)
    F, X = rng.normal(size=(30, 3)), rng.normal(size=(30, 5))
    D = pdist(X)
    plain = hs.distortion(F, D)
    for f, d in ((2.0**-600, 1.0), (2.0**600, 1.0), (1.0, 2.0**-600), (2.0**-700, 2.0**-650)):
        scaled = hs.distortion(f * F, d * D)
        assert scaled.log_L == plain.log_L
        assert scaled.expansion == plain.expansion * (f / d)


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


def test_a_collision_of_far_points_is_found(many):
    Y = many.copy()
    far = np.argmax(np.linalg.norm(many - many[7], axis=1))
    Y[7] = Y[far] + 1e-7
    found = row_distortion(Y, many, n_pairs=10)
    assert sorted(found.worst_pairs["contraction"][0]) == sorted([7, far])
    ratio = np.linalg.norm(Y[7] - Y[far]) / np.linalg.norm(many[7] - many[far])
    assert found.contraction == pytest.approx(ratio, rel=1e-6)
    Y[7] = Y[far]
    assert row_distortion(Y, many, n_pairs=10).log_L == math.inf


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
    assert with_it.n_pairs == plain.n_pairs + 1
    assert with_it.expansion >= np.linalg.norm(Y[7] - Y[3]) / np.linalg.norm(many[7] - many[3])
    assert with_it.quantiles == plain.quantiles
    assert with_it.within == plain.within
    assert with_it.looked_at.endswith(" + 1 used for fitting")
    with pytest.raises(ValueError, match="out of range"):
        row_distortion(Y, many, used=(np.array([3]), np.array([600])))


def test_it_says_which_pairs_it_looked_at(many):
    found = row_distortion(2 * many, many, n_pairs=1234)
    assert found.looked_at == (
        "1,234 random pairs + 3,000 nearest in the input + 3,000 nearest in the embedding"
    )
    assert found.n_pairs == 7234
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


def test_random_pairs_come_from_the_seed(many):
    Y = many[:, :2]
    one, again, other = (row_distortion(Y, many, n_pairs=100, rng=rng) for rng in (0, 0, 1))
    assert one.quantiles == again.quantiles
    assert one.quantiles != other.quantiles


def test_where_random_pairs_are_all_equal_points_others_say_what_is_typical(many):
    F = np.zeros((600, 2))
    F[300] = 3.0, 4.0
    found = row_distortion(2 * F, F, n_pairs=1)
    assert (found.log_L, found.median, found.within[1.05]) == (0, 2, 1)


@pytest.mark.parametrize("limit", [100, 1000], ids=["some pairs", "all pairs"])
@pytest.mark.parametrize(("f", "y"), [(1e150, 1e-150), (1e-150, 1e150), (1e300, 1), (1e-300, 1)])
def test_rows_may_have_any_scale(many, monkeypatch, limit, f, y):
    monkeypatch.setattr(metrics, "ALL_PAIRS_UP_TO", limit)
    F, Y = many[:200], many[:200, :2]
    plain, scaled = row_distortion(Y, F), row_distortion(y * Y, f * F)
    assert scaled.log_L == pytest.approx(plain.log_L, rel=1e-12)
    assert scaled.expansion == pytest.approx(plain.expansion * (y / f), rel=1e-12)
    assert scaled.within == pytest.approx(plain.within)


def test_rows_must_fit():
    with pytest.raises(ValueError, match="Y has 3 rows and F has 4"):
        row_distortion(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="finite embedding"):
        row_distortion(np.full((3, 2), np.nan), np.eye(3))
    with pytest.raises(ValueError, match="No pair has a distance"):
        row_distortion(np.ones((3, 2)), np.ones((3, 2)))


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


def sampled(F, A, n_pairs=50, **options):
    """Take more than 200 points for too many for all pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "ALL_PAIRS_UP_TO", 200)
        return diffusion_distortion(F, A, 4, n_pairs=n_pairs, **options)


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
    i, j = drawn_pairs(A, F, 50)
    others = np.setdiff1d(np.arange(400), np.concatenate([i, j]))
    torn[others[0]] += 1e3 * np.ptp(F)
    assert sampled(torn, A).quantiles == pytest.approx(sampled(F, A).quantiles, rel=1e-6)
    assert sampled(torn, A).log_L > sampled(F, A).log_L + 1


def drawn_pairs(A, F, n_pairs):
    """The random pairs of the sample of seed 0."""
    rows = compared_rows(A, 4, "power")
    i, j, *_ = sampled_distances(F, rows, n_pairs, np.random.default_rng(0))
    return i[:n_pairs], j[:n_pairs]


@pytest.mark.statistical
def test_random_pairs_have_distances_within_the_error_of_the_sketch(roll):
    """128 D_sketch² / D² is chi-square of 128 degrees: the bounds fail with probability 1e-6."""
    A, F, D = roll
    i, j, distances, _ = sampled_distances(
        F, compared_rows(A, 4, "power"), 300, np.random.default_rng(0)
    )
    found, want = distances.unscaled(), D[i, j]
    low, high = np.sqrt(chi2.ppf([5e-7 / 300, 1 - 5e-7 / 300], 128) / 128)
    ratio = found[:300] / want[:300]
    assert low < ratio.min()
    assert ratio.max() < high
    np.testing.assert_allclose(found[300:], want[300:], rtol=1e-9)
    assert 32 < len(found) - 300 <= 64


def test_at_long_times_distances_are_those_of_eigenpairs(roll):
    A, F, _ = roll
    D = squareform(diffusion_distance(A, 4000))
    i, j, distances, looked_at = sampled_distances(
        F, compared_rows(A, 4000, "power"), 300, np.random.default_rng(0)
    )
    assert looked_at.startswith("300 random pairs by 64 eigenpairs + the 64 of most extreme ratio")
    np.testing.assert_allclose(distances.unscaled(), D[i, j], rtol=1e-4)


def test_walks_that_alternate_have_no_leading_eigenpairs():
    """A path has the eigenvalues ±cos: those near -1 count as much as those near 1."""
    path = sparse.diags([1.0, 1.0], [-1, 1], (400, 400), format="csr")
    A, F = Diffusion.from_graph(path), cloud(400, 2, seed=1)
    i, j, distances, looked_at = sampled_distances(
        F, compared_rows(A, 1000, "power"), 10, np.random.default_rng(0)
    )
    assert "in a sketch of 128 columns" in looked_at
    want = diffusion_distance(A, 1000, pairs=(i, j))[10:]
    np.testing.assert_allclose(distances.unscaled()[10:], want, rtol=1e-8)


def test_it_says_which_diffusion_distances_it_looked_at(roll):
    A, F, _ = roll
    found = sampled(F, A)
    assert found.looked_at == (
        "50 random pairs in a sketch of 128 columns + the 64 of most extreme ratio, exactly, "
        "chosen from 50 random pairs + 4,800 nearest in diffusion + 2,000 nearest in the embedding"
    )
    assert found.n_pairs == 114
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
