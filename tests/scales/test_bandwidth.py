import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from scipy.special import erf, i0e, i1e

from heatsketch import ksum, nearest_epsilon
from heatsketch.scales import rule_epsilon
from problems.clouds import cloud, even_circle, on_torus
from problems.matrices import kernel_matrix


def slope_of(squares, epsilon):
    """d log S / d log ε for the sum S of the kernel over these squared distances."""
    E = squares / epsilon
    return (np.exp(-E) * E).sum() / np.exp(-E).sum()


def test_slopes_are_the_derivative_of_the_mean_kernel():
    X, h = cloud(60, 3), 1e-4
    result = ksum(X)
    for epsilon, slope in zip(result.epsilons, result.slopes, strict=True):
        low, high = (kernel_matrix(X, epsilon * np.exp(step)).mean() for step in (-h, h))
        # Central difference: h²/6 times the third derivative, which is of order 1; rounding 1e-12.
        assert slope == pytest.approx(np.log(high / low) / (2 * h), abs=1e-7)


def test_sums_are_the_mean_of_the_kernel_with_weights_as_with_copies():
    X, weights = cloud(40, 3), np.random.default_rng(0).integers(0, 4, 40)
    for copies, found in ((X, ksum(X)), (np.repeat(X, weights, axis=0), None)):
        found = found or ksum(X, sample_weight=weights)
        want = [np.log(kernel_matrix(copies, epsilon).mean()) for epsilon in found.epsilons]
        np.testing.assert_allclose(found.log_sums, want, atol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**500])
def test_the_unit_of_weights_changes_no_bit(unit):
    X, weights = cloud(40, 3), np.random.default_rng(0).uniform(0, 2, 40)
    results = (ksum(X, sample_weight=w) for w in (unit * weights, weights))
    for found, want in zip(*results, strict=True):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_answer_is_the_steepest_bandwidth(d):
    X = cloud(150, d)
    result, d2 = ksum(X), cdist(X, X, "sqeuclidean")
    about = np.log(result.epsilon) + np.linspace(-0.4, 0.4, 801)
    slopes = np.array([slope_of(d2, np.exp(x)) for x in about])
    # A step of √2 in ε alone would leave the place uncertain by 0.17.
    assert np.log(result.epsilon) == pytest.approx(about[slopes.argmax()], abs=0.03)
    assert result.dimension == pytest.approx(2 * slopes.max(), rel=1e-3)
    assert result.dimension >= 2 * result.slopes.max()
    np.testing.assert_allclose(result.epsilons[1:] / result.epsilons[:-1], np.sqrt(2))


def test_bandwidths_reach_from_identity_to_constant():
    result = ksum(cloud(200, 3))
    # K = I has slope 0, and so has K = 1: the maximum lies between the ends.
    assert max(result.slopes[0], result.slopes[-1]) < 0.1
    assert result.epsilons[0] < pdist(cloud(200, 3)).min() ** 2
    assert result.epsilons[-1] > pdist(cloud(200, 3)).max() ** 2


@pytest.mark.parametrize("sampled", [False, True])
def test_circle_has_the_slopes_of_the_bessel_function(sampled, limits):
    # Every row of the circle has the same distances, so that some rows against all columns, with
    # the diagonal put back, must give the closed form exactly.
    if sampled:
        limits(bandwidth_points=100, bandwidth_rows=40)
    result = ksum(even_circle(400), rng=3)
    known = 400**2 * result.epsilons / 4 > 40  # n points are the circle: aliasing is below e^-40
    assert known.sum() > 10
    z = 2 / result.epsilons[known]  # d log S / d log ε for S = e^(-2/ε) I₀(2/ε)
    np.testing.assert_allclose(result.slopes[known], z * (1 - i1e(z) / i0e(z)), atol=1e-11)
    np.testing.assert_allclose(result.log_sums[known], np.log(i0e(z)), atol=1e-11)


@pytest.mark.statistical
def test_a_sample_of_columns_is_close(limits):
    # 200 rows against 400 of 1,000 columns. At the smallest ε about 160 pairs of adjacent points
    # carry the slope 0.4 (standard deviation 0.03), elsewhere it is better known: 0.2 is exceeded
    # with probability below 1e-6. Without the 1/(n-1) of the diagonal the slope there is 2.
    limits(bandwidth_points=300, bandwidth_rows=200, bandwidth_columns=400)
    X = even_circle(1000)
    result = ksum(X, rng=0)
    row = cdist(X[:1], X, "sqeuclidean")
    exact, undiagonal = (
        np.array([slope_of(squares, e) for e in result.epsilons]) for squares in (row, row[:, 1:])
    )
    np.testing.assert_allclose(result.slopes, exact, atol=0.2)
    assert np.abs(result.slopes - undiagonal).max() > 1


def sphere(n, rng):
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


SHAPES = {
    "circle": (lambda n, rng: even_circle(n), 400, 1),
    "torus": (lambda n, rng: on_torus(*2 * np.pi * rng.random((2, n))), 900, 2),
    "sphere": (sphere, 900, 2),
    "cube": (lambda n, rng: rng.random((n, 3)), 4000, 3),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_dimension_rounds_to_that_of_the_shape(shape, limits):
    draw, n, dimension = shape
    limits(bandwidth_points=500, bandwidth_rows=200)
    assert round(ksum(draw(n, np.random.default_rng(0))).dimension) == dimension


def test_copies_of_all_points_change_nothing():
    # The mean of K over all ordered pairs, diagonal included, is the same for r copies.
    ours, want = ksum(np.repeat(cloud(60, 3), 3, axis=0)), ksum(cloud(60, 3))
    np.testing.assert_allclose(ours.epsilons, want.epsilons, rtol=1e-12)
    np.testing.assert_allclose(ours.slopes, want.slopes, atol=1e-12)


def segment_slope(epsilon):
    """d log S / d log ε of the uniform segment of length 1, by erf.

    The difference of two points has the density 2 (1 - u), so that with a = 1/√ε
    S = √π erf(a)/a - (1 - e^(-a²))/a², and d/d log ε = -a/2 d/da.
    """
    a = 1 / np.sqrt(epsilon)
    gone = -np.expm1(-(a**2))
    S = np.sqrt(np.pi) * erf(a) / a - gone / a**2
    derivative = -np.sqrt(np.pi) * erf(a) / a**2 + 2 * gone / a**3
    return -a / 2 * derivative / S


@pytest.mark.parametrize("d", [1, 2])
def test_even_segment_and_square_have_the_slopes_of_the_error_function(d):
    # The kernel of the square is a product, so that its slope is twice that of the segment. n
    # midpoints on an axis are off by some 1/n² times the second derivatives, of order 1/ε.
    n = 400 if d == 1 else 40
    axis = (np.arange(n) + 0.5) / n
    X = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    result = ksum(X)
    for least in (40, 400):
        known = (n**2 * result.epsilons > least) & (result.epsilons < 100)
        assert known.sum() > 10
        want = d * segment_slope(result.epsilons[known])
        np.testing.assert_allclose(result.slopes[known], want, atol=2 / least)
        a = 1 / np.sqrt(result.epsilons[known])
        segment = np.sqrt(np.pi) * erf(a) / a + np.expm1(-(a**2)) / a**2
        np.testing.assert_allclose(result.log_sums[known], d * np.log(segment), atol=2 / least)


def test_two_points_are_enough():
    result = ksum([[0.0], [3.0]])
    # S = (1 + e^{-9/ε}) / 2.
    x = 9 / result.epsilons
    np.testing.assert_allclose(result.slopes, x * np.exp(-x) / (1 + np.exp(-x)), atol=1e-14)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="'mean' is unknown; pass one of 'ksum'"):
        rule_epsilon(cloud(200, 3), "mean")


every_rule = pytest.mark.parametrize("rule", ["ksum", "median", "nearest"])


@every_rule
@pytest.mark.parametrize(
    ("change", "factor"),
    [
        *((lambda X, scale=scale: scale * X, scale**2) for scale in (2.0**-40, 0.3, 1e6)),
        *((lambda X, shift=shift: X + shift, 1.0) for shift in (2.0**13, 2.0**27)),
        (lambda X: X[::-1], 1.0),
        (sparse.csr_matrix, 1.0),
    ],
    ids=["tiny", "smaller", "large", "offset", "far offset", "order", "sparse"],
)
def test_epsilon_scales_with_the_square_of_the_data_and_sees_nothing_else(rule, change, factor):
    # A grid of 2^-20 survives an offset of 2^27 without rounding.
    X = np.round(cloud(200, 3) * (cloud(200, 3, seed=1) > 0) * 2**20) / 2**20
    assert rule_epsilon(change(X), rule) == pytest.approx(factor * rule_epsilon(X, rule), rel=1e-9)


def test_median_and_nearest_are_of_squared_distances():
    X = cloud(200, 3)
    nearest = 2 * np.mean(np.sort(cdist(X, X))[:, 1] ** 2)
    assert rule_epsilon(X, "nearest") == pytest.approx(nearest, rel=1e-12)
    assert rule_epsilon(X, "median") == pytest.approx(np.median(pdist(X) ** 2), rel=1e-12)


@pytest.mark.parametrize("factor", [0.5, 2.0, 7.0])
def test_the_factor_of_the_nearest_rule_is_a_factor(factor):
    X = np.random.default_rng(0).standard_normal((50, 3))
    squares = cdist(X, X, "sqeuclidean") + np.diag(np.full(50, np.inf))
    assert nearest_epsilon(X, factor) == pytest.approx(factor * squares.min(axis=1).mean())
    assert nearest_epsilon(X) == rule_epsilon(X, "nearest")
    with pytest.raises(ValueError, match="factor=0"):
        nearest_epsilon(X, 0)
