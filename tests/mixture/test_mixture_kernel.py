"""The closed-form diffusion of a Gaussian mixture: quadrature, 60 digits, identities, bad input."""

from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm, ortho_group
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from heatsketch.classical import ClassicalMDS
from heatsketch.mixture import CholeskyMap, MixtureKernel
from problems.mixtures import WEIGHTS, agree, cloud, covariances_of, means_of, mixture_of

EPSILON = 0.8


def parts_of(x, weights, means, covariances):
    """a_j g(x; θ_j, Σ_j), a list over the components."""
    components = zip(weights, means, covariances, strict=True)
    return [a * multivariate_normal.pdf(x, t, c) for a, t, c in components]


# Quadrature: trapezoid sums of Gaussians of width σ on a grid of step h err by exp(-2 π² σ² / h²),
# below 1e-30 for σ = 0.35 and h = 0.18 (the narrowest product here); the grid ends at 13 widths.


def grid_of(m):
    step = 0.18
    line = np.arange(-16, 16, step)
    return np.stack(np.meshgrid(*[line] * m, indexing="ij"), -1).reshape(-1, m), step**m


@pytest.mark.parametrize("m", [1, 2])
def test_kernel_is_the_integral_that_defines_it(m):
    kernel, x, y = mixture_of(m), cloud(m), cloud(m, seed=3)
    r, cell = grid_of(m)
    q = sum(parts_of(r, kernel.weights, kernel.means, kernel.covariances))
    of_x, of_y = (
        np.array([multivariate_normal.pdf(r, p, EPSILON / 2 * np.eye(m)) for p in points])
        for points in (x, y)
    )
    agree(kernel.kernel(x, y), cell * (of_x * q) @ of_y.T, 1e-12)
    agree(kernel.stationary(x), cell * of_x @ q, 1e-12)
    agree(np.exp(kernel.log_kernel(x, y)), kernel.kernel(x, y), 1e-14)


@pytest.mark.parametrize("m", [1, 2])
def test_densities_integrate_to_one_and_the_stationary_one_stays(m):
    kernel, x = mixture_of(m), cloud(m)
    r, cell = grid_of(m)
    nu = kernel.stationary(r)
    assert cell * nu.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(cell * kernel.transition_density(x, r).sum(axis=1), 1, rtol=1e-12)
    agree(cell * nu @ kernel.transition_density(r, x), kernel.stationary(x), 1e-12)
    agree(cell * kernel.kernel(x, r).sum(axis=1), kernel.stationary(x), 1e-12)


@pytest.mark.parametrize("m", [1, 2])
def test_distances_are_those_of_the_transition_densities(m):
    kernel, x = mixture_of(m), cloud(m)
    r, cell = grid_of(m)
    p, nu = kernel.transition_density(x, r), kernel.stationary(r)
    d2 = cell * np.square(p[:, None] - p[None]).sum(axis=2)
    agree(kernel.squared_distance(x, x), d2, 1e-12)
    agree(kernel.squared_distance(x, x[::-1], pairwise=False), np.diag(d2[:, ::-1]), 1e-12)
    agree(kernel.squared_norm(x), cell * np.square(p).sum(axis=1), 1e-12)
    to_nu = cell * np.square(p - nu).sum(axis=1)
    agree(kernel.anomaly_score(x, kind="distance") ** 2, to_nu, 1e-12)


@pytest.mark.parametrize("m", [1, 2])
def test_steps_of_the_standard_kernel_are_its_quotients(m):
    kernel, x = mixture_of(m), cloud(m)
    r, cell = grid_of(m)
    q = sum(parts_of(r, kernel.weights, kernel.means, kernel.covariances))
    half = EPSILON / 2 * np.eye(m)
    k = np.array([multivariate_normal.pdf(r, point, half) for point in x])  # of points
    p = kernel.transition_density(x, r, kind="gaussian")
    agree(p, k * q / (cell * k @ q)[:, None], 1e-12)
    d2 = cell * np.square(p[:, None] - p[None]).sum(axis=2)
    agree(kernel.squared_distance(x, x, kind="gaussian"), d2, 1e-12)
    rows = kernel.squared_distance(x, x[::-1], pairwise=False, kind="gaussian")
    agree(rows, np.diag(d2[:, ::-1]), 1e-12)
    # Noise that follows the step makes one of the MGC kernel.
    noise = np.array([multivariate_normal.pdf(r, point, half) for point in x])
    agree(cell * p @ noise.T, kernel.transition_density(x, x), 1e-12)
    # In L²(q), of densities with respect to q, the inner products are k_ε / (ν ν).
    nu = kernel.stationary(x)
    q_inverse = np.divide(1, q, out=np.zeros_like(q), where=q > 1e-200)
    agree(cell * (p * q_inverse) @ p.T, kernel.kernel(x, x) / np.outer(nu, nu), 1e-12)


def test_distances_of_a_sample_tend_to_those_of_the_standard_kernel():
    # In L²(q): n |row_x - row_z|² of the row-stochastic matrix of n points of q.
    kernel, n = MixtureKernel([1.0], [[0.0]], [1.0], 1.0), 4000
    X = norm.ppf((np.arange(n) + 0.5) / n)[:, None]  # quantiles, in place of draws
    P = np.exp(-np.square(X - X.T) / kernel.epsilon)
    P /= P.sum(axis=1, keepdims=True)
    rows = [n // 10, n // 2, n - 5]
    found = n * np.square(P[rows][:, None] - P[rows][None]).sum(axis=2)
    K = kernel.kernel(X[rows], X[rows]) / np.outer(*2 * [kernel.stationary(X[rows])])
    want = np.diag(K)[:, None] + np.diag(K) - 2 * K
    np.testing.assert_allclose(found, want, rtol=1e-2, atol=1e-12)


def test_the_standard_kernel_needs_a_density():
    kernel = MixtureKernel([0.5, 0.5], [[0.0], [1.0]], [0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match=r"singular.*pass kind='mgc', or positive definite"):
        kernel.squared_distance([[0.0]], [[1.0]], kind="gaussian")


def test_points_as_components_are_the_empirical_measure():
    measure, x = cloud(2, 30, seed=4), cloud(2)  # of these the measure, those are analysed
    kernel = MixtureKernel(np.full(30, 1 / 30), measure, np.zeros(30), EPSILON)
    g = [[multivariate_normal.pdf(r, p, EPSILON / 2 * np.eye(2)) for r in measure] for p in x]
    agree(kernel.kernel(x, x), np.array(g) @ np.array(g).T / 30, 1e-13)
    agree(kernel.stationary(x), np.mean(g, axis=1), 1e-13)
    p = kernel.transition_density(x, x)
    agree(p, kernel.kernel(x, x) / kernel.stationary(x)[:, None], 1e-13)


def test_map_scaling_and_pivots_describe_the_same_distances():
    kernel, x = mixture_of(2), cloud(2, 60)
    D = np.sqrt(kernel.squared_distance(x, x))
    features = CholeskyMap().fit(kernel, tolerance=1e-3, points=x)
    y = features.transform(x)
    scaled = ClassicalMDS(y.shape[1], metric="precomputed").fit_transform(D)
    leading = slice(0, 3)  # distinct eigenvalues: the same axes, up to sign
    signs = np.sign((y * scaled).sum(axis=0))
    np.testing.assert_allclose(y[:, leading], (scaled * signs)[:, leading], atol=5e-3)
    # The dictionary: every point is within the tolerance of the span of the pivots.
    assert features.residual(x).max() <= 5e-4
    assert {tuple(p) for p in features.pivots} <= {tuple(p) for p in x}


# 60 digits: METHODS as they stand, with matrices and determinants


def exact_squared_distances(kernel, xs, zs, digits):
    """W_xx / ν_x² + W_zz / ν_z² - 2 W_xz / (ν_x ν_z), row by row."""

    def matrix(values):
        return mpmath.matrix(values.tolist())

    def form(A):
        """A⁻¹, and |2πA|^-1/2."""
        return A**-1, 1 / mpmath.sqrt((2 * mpmath.pi) ** A.rows * mpmath.det(A))

    def gaussian(v, form):
        return form[1] * mpmath.exp(-(v.T * form[0] * v)[0] / 2)

    def step(x):
        a = map(mpmath.mpf, kernel.weights)
        h = [a * gaussian(x - t, f) for a, t, f in zip(a, theta, forms, strict=True)]
        return [v / sum(h) for v in h], [t + c * (x - t) for t, c in zip(theta, C, strict=True)]

    def inner(p, r):
        return sum(
            p[0][j] * r[0][i] * gaussian(p[1][j] - r[1][i], both) for (j, i), both in pairs.items()
        )

    with mpmath.workdps(digits):
        half = mpmath.mpf(kernel.epsilon) / 2 * mpmath.eye(kernel.n_features)
        theta, sigma = ([matrix(v) for v in given] for given in (kernel.means, kernel.covariances))
        forms = [form(c + half) for c in sigma]
        C = [c * inverse for c, (inverse, _) in zip(sigma, forms, strict=True)]
        D = [c + half - gain * c for c, gain in zip(sigma, C, strict=True)]
        pairs = {(j, i): form(a + b) for j, a in enumerate(D) for i, b in enumerate(D)}
        steps = [(step(matrix(x)), step(matrix(z))) for x, z in zip(xs, zs, strict=True)]
        return np.array([float(inner(p, p) + inner(r, r) - 2 * inner(p, r)) for p, r in steps])


@pytest.mark.parametrize("mean", [14.0, 15.0, 16.0])
def test_what_hardly_counts_does_not_cost_digits(mean):
    # p hardly moves with the first component, and far with the second, of weight 1e-7 and less.
    kernel = MixtureKernel([0.5, 0.5], [[0.0], [mean]], [1e-12, 1.0], 2.0**-17)
    x, z = np.array([[0.025], [0.027]]), np.zeros((2, 1))
    want = exact_squared_distances(kernel, x, z, 60)
    assert max(want) < 1e-5 * kernel.squared_norm(x).min()
    for got in (kernel.squared_distance(x, z)[:, 0], kernel.squared_distance(x, z, pairwise=False)):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_distances_have_eight_digits_whatever_the_mixture(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 4, 2)
    scales = 10 ** rng.uniform(-4, 2, (n, 1, 1))
    theta = means_of(m, n, seed) * 10 ** rng.uniform(-1, 1)
    epsilon = 2 ** rng.uniform(-20, 20)
    kernel = MixtureKernel(
        rng.dirichlet(np.ones(n)), theta, covariances_of(m, n, seed) * scales, epsilon
    )
    x = theta[rng.integers(n, size=4)] + rng.standard_normal((4, m)) * 10 ** rng.uniform(-3, 1)
    z = x + rng.standard_normal((4, m)) * 10 ** rng.uniform(-10, 1, (4, 1))
    want = exact_squared_distances(kernel, x, z, 80)
    negligible = 1e-60 * kernel.squared_norm(x)  # of weights below 2^-100
    rows, pairs = kernel.squared_distance(x, z, pairwise=False), kernel.squared_distance(x, z)
    for got in (rows, np.diag(pairs)):
        assert (np.abs(got - want) <= 1e-8 * want + negligible).all()


# Symmetry, order, and what a metric is


def test_responsibilities_sum_to_one_and_are_bayes():
    kernel, x = mixture_of(2), cloud(2, 50)
    w = kernel.responsibilities(x)
    np.testing.assert_allclose(w.sum(axis=1), 1, rtol=1e-15)
    noisy = kernel.covariances + EPSILON / 2 * np.eye(2)
    parts = np.transpose(parts_of(x, kernel.weights, kernel.means, noisy))
    agree(w, parts / parts.sum(axis=1, keepdims=True), 1e-13)
    np.testing.assert_allclose(kernel.responsibilities(100 * x).sum(axis=1), 1, rtol=1e-15)


# Invariances


MOVES = {  # a matrix, a shift, and the factor of lengths
    "rotated": (ortho_group.rvs(3, random_state=4), 5.0, 1.0),
    "tiny": (2.0**-20 * np.eye(3), 0.0, 2.0**-20),
    "smaller": (1e-3 * np.eye(3), 0.0, 1e-3),
    "huge": (2.0**30 * np.eye(3), 0.0, 2.0**30),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_units_rotations_and_translations_do_not_matter(move):
    A, shift, factor = move
    kernel, x = mixture_of(3), cloud(3)
    means, covariances = kernel.means @ A.T + shift, A @ kernel.covariances @ A.T
    other = MixtureKernel(kernel.weights, means, covariances, kernel.epsilon * factor**2)
    y, density = x @ A.T + shift, factor**-3.0
    agree(other.squared_distance(y, y), density * kernel.squared_distance(x, x), 1e-12)
    agree(other.stationary(y), density * kernel.stationary(x), 1e-12)
    agree(other.kernel(y, y), density**2 * kernel.kernel(x, x), 1e-12)
    agree(other.transition_density(y, y), density * kernel.transition_density(x, x), 1e-12)
    agree(other.responsibilities(y), kernel.responsibilities(x), 1e-12)


CHANGES = {  # components, and factors of their weights
    "halves": ([0, 0, 1, 2], [0.25, 0.75, 1, 1]),
    "permuted": ([2, 0, 1], [1, 1, 1]),
    "with nothing": ([0, 1, 2, 0], [1, 1, 1, 0]),
}


@pytest.mark.parametrize(("j", "factors"), CHANGES.values(), ids=CHANGES)
def test_the_mixture_matters_not_how_it_is_written(j, factors):
    kernel, x = mixture_of(2), cloud(2)
    weights = kernel.weights[j] * factors
    other = MixtureKernel(weights, kernel.means[j], kernel.covariances[j], EPSILON)
    agree(other.squared_distance(x, x), kernel.squared_distance(x, x), 1e-12)
    agree(other.kernel(x, x), kernel.kernel(x, x), 1e-13)
    agree(other.anomaly_score(x), kernel.anomaly_score(x), 1e-13)
    assert other.n_components == np.count_nonzero(factors)


def test_rows_do_not_depend_on_the_others():
    kernel, x, z = mixture_of(3), cloud(3, 1500), cloud(3, 7, seed=5)
    whole = kernel.squared_distance(x, z)
    some = [0, 1, 700, 1023, 1024, 1499]
    for i in some:
        np.testing.assert_allclose(kernel.squared_distance(x[[i]], z)[0], whole[i], rtol=1e-11)
        for method in (kernel.log_stationary, kernel.squared_norm):
            np.testing.assert_allclose(method(x[[i]]), method(x)[[i]], rtol=1e-13)
    starts, ends = np.repeat(x[some], 7, 0), np.tile(z, (6, 1))
    row_by_row = kernel.squared_distance(starts, ends, pairwise=False)
    np.testing.assert_allclose(row_by_row.reshape(6, 7), whole[some], rtol=1e-11)


# One component: an AR(1) process


@pytest.mark.parametrize("time", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_one_component_is_an_autoregression(time, epsilon):
    sigma, theta = covariances_of(3)[0], means_of(3)[0]
    kernel = MixtureKernel([1.0], theta[None], sigma[None], epsilon, time=time)
    S = sigma + epsilon / 2 * np.eye(3)
    C = sigma @ np.linalg.inv(S)
    x, mean, cov = cloud(3), cloud(3), np.zeros((3, 3))
    for _ in range(time):  # each step is x -> θ + C (x - θ) + noise of covariance S - C Σ
        mean, cov = theta + (mean - theta) @ C.T, C @ cov @ C.T + S - C @ sigma
    gains = np.linalg.matrix_power(C, time)
    np.testing.assert_allclose(cov, S - gains @ S @ gains.T, atol=1e-13 * S.max())
    z = mean + 0.3 * np.sqrt(np.diag(cov))
    want = np.array([multivariate_normal.pdf(z, c, cov) for c in mean])
    agree(kernel.transition_density(x, z), want, 1e-11)
    agree(kernel.kernel(x, z), kernel.stationary(x)[:, None] * want, 1e-11)
    agree(kernel.kernel(x, z), kernel.kernel(z, x).T, 1e-11)
    apart = (mean[:, None] - mean) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    peak = multivariate_normal.pdf(theta, theta, 2 * cov)
    want = -2 * peak * np.expm1(-np.square(apart).sum(axis=2) / 4)
    np.testing.assert_allclose(kernel.squared_distance(x, x), want, rtol=1e-9, atol=0)


# Far from the data


@pytest.mark.parametrize("far", [1e3, 1e4, 1e6])
def test_one_component_far_away_is_its_closed_form(far):
    sigma, epsilon = 1.0, 2.0  # S = 2, C = 1/2, D = 3/2
    kernel = MixtureKernel([1.0], [[0.0]], [sigma], epsilon)
    x = np.array([[far], [far + 1.0]])
    np.testing.assert_allclose(
        kernel.log_stationary(x), -0.25 * x[:, 0] ** 2 - 0.5 * np.log(4 * np.pi), rtol=1e-14
    )
    assert kernel.stationary(x).max() == 0
    z = x / 2 + [[-0.7], [1.1]]
    want = np.exp(-((z[:, 0] - x / 2) ** 2) / 3) / np.sqrt(3 * np.pi)
    np.testing.assert_allclose(kernel.transition_density(x, z), want, rtol=1e-15 * far + 1e-13)
    d2 = -2 * np.expm1(-1 / 24) / np.sqrt(6 * np.pi)  # means 1/2 apart
    np.testing.assert_allclose(kernel.squared_distance(x[:1], x[1:]), d2, rtol=1e-15 * far + 1e-13)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_far_away_the_widest_component_is_all_there_is(far):
    kernel = mixture_of(2)
    widths = [np.linalg.eigvalsh(c)[-1] for c in kernel.covariances]
    j = int(np.argmax(widths))
    x = far * np.linalg.eigh(kernel.covariances[j])[1][:, -1]
    S = kernel.covariances[j] + EPSILON / 2 * np.eye(2)
    want = np.log(kernel.weights[j]) + multivariate_normal.logpdf(x, kernel.means[j], S)
    np.testing.assert_allclose(kernel.log_stationary(x[None]), want, rtol=1e-13)
    assert kernel.responsibilities(x[None])[0, j] == 1
    alone = MixtureKernel([1.0], kernel.means[[j]], kernel.covariances[[j]], EPSILON)
    z = x[None] + np.array([0.5, -1.0])
    np.testing.assert_allclose(
        kernel.squared_distance(x[None], z), alone.squared_distance(x[None], z), rtol=1e-14 * far
    )


# Where the distance vanishes

numbers = st.floats(-3, 3, allow_subnormal=False)
points = st.lists(numbers, min_size=2, max_size=2).map(np.array)


@given(points, points, points, points, st.floats(0.1, 0.9), st.floats(-10, 10))
def test_distance_is_positive_where_a_covariance_is_not_singular(x, z, t, s, a, log_epsilon):
    assume(np.linalg.norm(x - z) > 1e-12)
    flat = np.array([[1.0, 0.0], [0.0, 0.0]])
    kernel = MixtureKernel([a, 1 - a], [t, s], [flat, covariances_of(2)[0]], 2.0**log_epsilon)
    assume(kernel.responsibilities([x, z])[:, 1].min() > 1e-12)
    assert kernel.squared_distance([x], [z]).item() > 0
    assert kernel.squared_distance([x], [z], pairwise=False).item() > 0


@given(points, st.floats(-3, 3), st.floats(-3, 3), st.floats(-10, 10))
def test_distance_vanishes_along_what_no_component_varies_in(x, move, angle, log_epsilon):
    along, across = np.array([np.cos(angle), np.sin(angle)]), [-np.sin(angle), np.cos(angle)]
    flat = np.outer(along, along)
    means = np.outer([-1.0, 0.5], along)  # no difference across
    kernel = MixtureKernel([0.5, 0.5], means, [flat, 0.3 * flat], 2.0**log_epsilon)
    z = x + move * np.array(across)
    # Rounding moves z along by some 1e-15: by 1e-15 / √ε of the width of a step, squared.
    allowed = kernel.squared_norm([x]).item() * 1e-26 * (1 + 1 / kernel.epsilon) ** 2
    assert kernel.squared_distance([x], [z]).item() <= allowed


# Gradients and scores


def differences(value, x, h=2e-3):
    """Central differences of fourth order, (n, m)."""
    columns = []
    for e in h * np.eye(x.shape[1]):
        near, next_ = value(x + e) - value(x - e), value(x + 2 * e) - value(x - 2 * e)
        columns.append((8 * near - next_) / (12 * h))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("m", [1, 3])
def test_gradients_are_slopes(m):
    kernel, x, z = mixture_of(m), cloud(m), cloud(m, seed=7)

    def distance_to(z):
        ends = np.broadcast_to(z, x.shape)
        return lambda x: np.sqrt(kernel.squared_distance(x, ends, pairwise=False))

    to_bulk = partial(kernel.anomaly_score, kind="distance")
    agree(kernel.gradient(x, z), differences(distance_to(z), x), 1e-8)
    agree(kernel.gradient(x, z[:1]), differences(distance_to(z[:1]), x), 1e-8)
    agree(kernel.gradient(x), differences(to_bulk, x), 1e-8)
    agree(kernel.gradient(x, kind="density"), differences(kernel.anomaly_score, x), 1e-8)


def test_distance_has_no_gradient_where_it_vanishes():
    kernel, x = mixture_of(2), cloud(2, 3)
    z = x + np.outer([0, 1, 0], [1, 0])
    found = kernel.gradient(x, z)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [True, False, True])
    assert np.isfinite(found[1]).all()


def test_scores_grow_away_from_one_component():
    kernel = MixtureKernel([1.0], [[1.0, -1.0]], covariances_of(2)[:1], EPSILON)
    x = kernel.means + np.outer(np.linspace(0, 9, 40), [0.6, 0.8])
    for kind in ("density", "distance"):
        assert (np.diff(kernel.anomaly_score(x, kind=kind)) > 0).all()
    np.testing.assert_array_equal(kernel.anomaly_score(x), -kernel.log_stationary(x))


# Forms of a mixture


def test_form_is_told_by_the_shape_where_it_can_be():
    tied, diagonals = covariances_of(3)[0], np.array([[0.5, 1.0, 2.0], [1.0, 0.3, 0.7]])
    with pytest.raises(ValueError, match="covariance_type"):
        MixtureKernel(WEIGHTS, means_of(3), tied, EPSILON)
    wanted = (tied, tied), (diagonals, np.diag(diagonals[0])), ([0.5, 1.0], 0.5 * np.eye(3))
    for short, want in wanted:
        found = MixtureKernel([0.5, 0.5], means_of(3, 2), short, EPSILON).covariances[0]
        np.testing.assert_allclose(found, want, atol=1e-15)
    assert MixtureKernel([1.0], [[0.0]], [[2.0]], EPSILON).covariances.item() == 2


@pytest.mark.parametrize("model", [GaussianMixture, BayesianGaussianMixture])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_from_sklearn_is_the_mixture_with_noise(model, kind):
    X = np.concatenate([cloud(3, 60), 4 + 0.3 * cloud(3, 60, seed=6)])
    fitted = model(n_components=3, covariance_type=kind, random_state=0).fit(X)
    kernel = MixtureKernel.from_sklearn(fitted, EPSILON)
    given_ = fitted.covariances_
    full = {"full": given_, "tied": [given_] * 3}.get(kind)
    full = [np.eye(3) * c for c in given_] if full is None else full
    noisy = np.array(full) + EPSILON / 2 * np.eye(3)
    density = sum(parts_of(X, fitted.weights_, fitted.means_, noisy))
    agree(kernel.stationary(X), density, 1e-8)  # the Bayesian weights sum to 1 up to 1e-9
    if model is GaussianMixture:
        small = MixtureKernel.from_sklearn(fitted, 1e-12)
        np.testing.assert_allclose(small.log_stationary(X), fitted.score_samples(X), atol=1e-6)


# Bad input

ONE = ([1.0], [[0.0, 0.0]], [np.eye(2)])
TWO = ([0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]], [np.eye(2), np.eye(2)])
WIDE = MixtureKernel(*ONE, 1.0)


def scaled(m, unit):
    return MixtureKernel([1.0], np.zeros((1, m)), [unit**2], unit**2)


BAD = {
    "epsilon 0": (lambda: MixtureKernel(*ONE, 0.0), "epsilon=.*pass a number > 0"),
    "time 0": (lambda: MixtureKernel(*ONE, 1.0, time=0), "time=0.*pass an integer >= 1"),
    "time of several": (lambda: MixtureKernel(*TWO, 1.0, time=2), "MixtureDiffusion"),
    "weights short": (lambda: MixtureKernel([1.0], *TWO[1:], 1.0), r"weights of shape \(1,\)"),
    "weights < 0": (lambda: MixtureKernel([1.5, -0.5], *TWO[1:], 1.0), "numbers >= 0"),
    "shape": (lambda: MixtureKernel(*TWO[:2], np.ones(3), 1.0), r"\(2, 2, 2\) \(full\)"),
    "kind": (lambda: MixtureKernel(*ONE, 1.0, covariance_type="round"), "covariance_type='round'"),
    "eigenvalue": (
        lambda: MixtureKernel(*ONE[:2], [[[1.0, 2.0], [2.0, 1.0]]], 1.0),
        "covariance 0 is not .*semidefinite",
    ),
    "skew": (
        lambda: MixtureKernel(*ONE[:2], [[[1.0, 0.5], [0.0, 1.0]]], 1.0),
        "not a finite symmetric",
    ),
    "covariance NaN": (lambda: MixtureKernel([1.0], [[0.0]], [np.nan], 1.0), "finite"),
    "tiny units": (lambda: scaled(50, 1e-10), "rescale the data"),
    "huge units": (lambda: scaled(50, 1e10), "rescale the data"),
    "not fitted": (lambda: MixtureKernel.from_sklearn(GaussianMixture(2), 1.0), "pass a fitted"),
    "rows of z": (
        lambda: WIDE.squared_distance(np.zeros((2, 2)), np.zeros((3, 2)), pairwise=False),
        "2 rows and z has 3; pass as many rows",
    ),
    "ends": (
        lambda: WIDE.gradient(np.zeros((3, 2)), np.zeros((2, 2))),
        "pass one row, or as many as x",
    ),
    "ends of density": (
        lambda: WIDE.gradient([[0.0, 0.0]], [[0.0, 0.0]], kind="density"),
        "takes no z",
    ),
    "score": (lambda: WIDE.anomaly_score([[0.0, 0.0]], kind="knn"), "pass one of"),
    "bulk reached": (
        lambda: MixtureKernel(*TWO, 1e12).anomaly_score([[0.0, 0.0]], kind="distance"),
        "smaller epsilon",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_told_what_to_do(case):
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()
