import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from scipy.special import i0e, i1e

from heatsketch import bandwidth, ksum
from heatsketch.bandwidth import rule_epsilon

TAU = 2 * np.pi


def cloud(n=200, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def circle(n):
    angle = TAU * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def circle_slope(epsilon):
    """d log S / d log ε for S = e^{-2/ε} I₀(2/ε), the mean of the kernel on the unit circle."""
    z = 2 / epsilon
    return z * (1 - i1e(z) / i0e(z))


def resolved(epsilons, n):
    """Bandwidths at which n equispaced points are the circle: aliasing is below e^-40."""
    return n**2 * epsilons / 4 > 40


def log_mean_kernel(X, epsilon):
    return np.log(np.exp(-cdist(X, X, "sqeuclidean") / epsilon).mean())


def test_slopes_are_the_derivative_of_the_mean_kernel():
    X, h = cloud(60), 1e-4
    result = ksum(X)
    for epsilon, slope in zip(result.epsilons, result.slopes, strict=True):
        rise = log_mean_kernel(X, epsilon * np.exp(h)) - log_mean_kernel(X, epsilon * np.exp(-h))
        # Central difference: h²/6 times the third derivative, which is of order 1; rounding 1e-12.
        assert slope == pytest.approx(rise / (2 * h), abs=1e-7)


def test_the_answer_is_the_steepest_bandwidth():
    result = ksum(cloud())
    best = result.slopes.argmax()
    assert result.epsilon == result.epsilons[best]
    assert result.dimension == 2 * result.slopes[best]
    np.testing.assert_allclose(result.epsilons[1:] / result.epsilons[:-1], np.sqrt(2))


def test_bandwidths_reach_from_identity_to_constant():
    result = ksum(cloud())
    # K = I has slope 0, and so has K = 1: the maximum lies between the ends.
    assert max(result.slopes[0], result.slopes[-1]) < 0.1
    assert result.epsilons[0] < pdist(cloud()).min() ** 2
    assert result.epsilons[-1] > pdist(cloud()).max() ** 2


def test_circle_has_the_slopes_of_the_bessel_function():
    result = ksum(circle(400))
    known = resolved(result.epsilons, 400)
    assert known.sum() > 10
    np.testing.assert_allclose(
        result.slopes[known], circle_slope(result.epsilons[known]), atol=1e-11
    )


def test_a_sample_of_rows_gives_the_exact_slopes_where_all_points_look_alike(monkeypatch):
    # Every row of the circle has the same distances, so that rows against all columns, with the
    # diagonal put back, must give the closed form exactly.
    monkeypatch.setattr(bandwidth, "_EXACT_POINTS", 100)
    monkeypatch.setattr(bandwidth, "_SAMPLE_ROWS", 40)
    result = ksum(circle(400), rng=3)
    known = resolved(result.epsilons, 400)
    assert known.sum() > 10
    np.testing.assert_allclose(
        result.slopes[known], circle_slope(result.epsilons[known]), atol=1e-11
    )


@pytest.mark.statistical
def test_a_sample_of_columns_is_close(monkeypatch):
    # 200 rows against 400 of 1,000 columns. At the smallest ε about 160 pairs of adjacent points
    # carry the slope 0.4 (standard deviation 0.03), elsewhere it is better known: 0.2 is exceeded
    # with probability below 1e-6. Without the 1/(n-1) of the diagonal the slope there is 2.
    monkeypatch.setattr(bandwidth, "_EXACT_POINTS", 300)
    monkeypatch.setattr(bandwidth, "_SAMPLE_ROWS", 200)
    monkeypatch.setattr(bandwidth, "_SAMPLE_COLUMNS", 400)
    X = circle(1000)
    result = ksum(X, rng=0)
    row = cdist(X[:1], X, "sqeuclidean") / result.epsilons[:, None]
    exact = (np.exp(-row) * row).sum(axis=1) / np.exp(-row).sum(axis=1)
    np.testing.assert_allclose(result.slopes, exact, atol=0.2)
    undiagonal = (np.exp(-row) * row).sum(axis=1) / np.exp(-row)[:, 1:].sum(axis=1)
    assert np.abs(result.slopes - undiagonal).max() > 1


def test_sampling_follows_its_seed(monkeypatch):
    monkeypatch.setattr(bandwidth, "_EXACT_POINTS", 100)
    monkeypatch.setattr(bandwidth, "_SAMPLE_ROWS", 50)
    X = cloud(300)
    np.testing.assert_array_equal(ksum(X, rng=1).slopes, ksum(X, rng=1).slopes)
    assert ksum(X, rng=1).dimension != ksum(X, rng=2).dimension


def torus(n, rng):
    u, v = TAU * rng.random((2, n))
    return np.column_stack([np.cos(u), np.sin(u), np.cos(v), np.sin(v)])


def sphere(n, rng):
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


SHAPES = {
    "circle": (lambda n, rng: circle(n), 400, 1),
    "torus": (torus, 900, 2),
    "sphere": (sphere, 900, 2),
    "cube": (lambda n, rng: rng.random((n, 3)), 4000, 3),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_dimension_rounds_to_that_of_the_shape(shape, monkeypatch):
    draw, n, dimension = shape
    monkeypatch.setattr(bandwidth, "_EXACT_POINTS", 500)
    monkeypatch.setattr(bandwidth, "_SAMPLE_ROWS", 200)
    assert round(ksum(draw(n, np.random.default_rng(0))).dimension) == dimension


@pytest.mark.parametrize("exponent", [-40, 3, 40])
def test_powers_of_two_scale_the_answer_exactly(exponent):
    ours, want = ksum(np.ldexp(cloud(), exponent)), ksum(cloud())
    np.testing.assert_array_equal(ours.slopes, want.slopes)
    np.testing.assert_array_equal(ours.epsilons, np.ldexp(want.epsilons, 2 * exponent))


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1e6])
@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
def test_epsilon_scales_with_the_square_of_the_data(rule, scale):
    assert rule_epsilon(scale * cloud(), rule) == pytest.approx(
        scale**2 * rule_epsilon(cloud(), rule), rel=1e-10
    )


@pytest.mark.parametrize("offset", [2.0**13, 2.0**27])
@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
def test_epsilon_does_not_see_an_offset(rule, offset):
    # A grid of 2^-20 survives an offset of 2^27 without rounding.
    X = np.round(np.ldexp(cloud(), 20)) / 2**20
    assert rule_epsilon(X + offset, rule) == pytest.approx(rule_epsilon(X, rule), rel=1e-10)


def test_copies_of_all_points_change_nothing():
    # The mean of K over all ordered pairs, diagonal included, is the same for r copies.
    ours, want = ksum(np.repeat(cloud(60), 3, axis=0)), ksum(cloud(60))
    np.testing.assert_allclose(ours.epsilons, want.epsilons, rtol=1e-12)
    np.testing.assert_allclose(ours.slopes, want.slopes, atol=1e-12)


def test_median_rule():
    X = cloud()
    assert rule_epsilon(X, "median") == pytest.approx(np.median(pdist(X) ** 2), rel=1e-12)


def test_nearest_rule():
    d2 = cdist(cloud(), cloud(), "sqeuclidean")
    np.fill_diagonal(d2, np.inf)
    want = 2 * d2.min(axis=1).mean()
    assert rule_epsilon(cloud(), "nearest") == pytest.approx(want, rel=1e-12)


def test_distances_of_duplicates_do_not_count():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [3.0]])
    # Positive squared distances: 1 three times, 9 three times, 4 once.
    assert rule_epsilon(X, "median") == pytest.approx(4.0)
    # Nearest others at a positive distance: 1 (of 1.0) and 2 (of 3.0).
    assert rule_epsilon(X, "nearest") == pytest.approx(2 * (1 + 4) / 2)


@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
def test_sparse_points_give_the_epsilon_of_dense_ones(rule):
    X = cloud() * (cloud(seed=1) > 0)
    assert rule_epsilon(sparse.csr_matrix(X), rule) == pytest.approx(
        rule_epsilon(X, rule), rel=1e-10
    )


def test_two_points_are_enough():
    result = ksum([[0.0], [3.0]])
    # S = (1 + e^{-9/ε}) / 2.
    x = 9 / result.epsilons
    np.testing.assert_allclose(result.slopes, x * np.exp(-x) / (1 + np.exp(-x)), atol=1e-14)


@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
def test_equal_points_have_no_epsilon(rule):
    with pytest.raises(ValueError, match="All distances are zero"):
        rule_epsilon(np.full((5, 2), 0.1), rule)


@pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_an_epsilon_beyond_float64_is_refused(rule, scale):
    with pytest.raises(ValueError, match="beyond float64"):
        rule_epsilon(scale * cloud(), rule)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="'mean' is unknown; pass one of 'ksum'"):
        rule_epsilon(cloud(), "mean")
