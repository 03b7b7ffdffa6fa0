"""Coordinates of the mixture's diffusion: bases, bounds, certificates."""

from __future__ import annotations

import logging
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.special import gammainc
from scipy.stats import norm
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from heatsketch import ConvergenceWarning
from heatsketch.mixture import (
    CholeskyMap,
    FeatureMap,
    HermiteMap,
    MixtureKernel,
    TaylorMap,
    largest_in_ball,
)
from heatsketch.mixture.maps import draw

WEIGHTS = np.array([0.5, 0.3, 0.2])


def mixture(m: int, epsilon: float, *, tied: bool = False, n: int = 3) -> MixtureKernel:
    rng = np.random.default_rng(m)
    means = rng.uniform(-1, 1, (n, m))
    roots = rng.standard_normal((n, m, m)) / np.sqrt(2 * m)
    covariances = 0.1 * np.eye(m) + roots @ roots.transpose(0, 2, 1)
    if tied:
        covariances = np.repeat(covariances[:1], n, axis=0)
    weights = WEIGHTS[:n] / WEIGHTS[:n].sum()
    return MixtureKernel(weights, means, covariances, epsilon)


def cloud(m: int, n: int = 60, seed: int = 5, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).uniform(-1, 1, (n, m))


def in_ball(m: int, radius: float, n: int, seed: int = 6) -> np.ndarray:
    """Points in the ball, every third one on its sphere."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, m))
    lengths = np.where(np.arange(n) % 3, rng.random(n) ** (1 / m), 1 - 1e-12)
    return x * (radius * lengths / np.linalg.norm(x, axis=1))[:, None]


def true_distances(kernel: MixtureKernel, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.sqrt(kernel.squared_distance(x, z))


def distances(features: FeatureMap, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return cdist(features.transform(x), features.transform(z))


def step_of(kernel: MixtureKernel, j: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """C_j and D_j, from their definitions."""
    sigma, half = kernel.covariances[j], kernel.epsilon / 2 * np.eye(kernel.n_features)
    C = sigma @ np.linalg.inv(sigma + half)
    return C, sigma + half - C @ sigma


def ends(m: int, radius: float = 1.0) -> np.ndarray:
    """Points whose middle is 0, and whose ball has the radius."""
    return radius * np.eye(m)[:1] * [[-1.0], [1.0]]


# Taylor: the paper's basis


def kronecker(kernel: MixtureKernel, x: np.ndarray, middle: np.ndarray, order: int) -> np.ndarray:
    """f(x) = (2π)^(-m/4) |2D|^(-1/4) Σ w_j exp(-|ĉ_j|²/2) (φ_0, ..., φ_l)(ĉ_j)."""
    C, D = step_of(kernel)
    values, axes = np.linalg.eigh(2 * D)
    root = (axes / np.sqrt(values)) @ axes.T
    centres = kernel.means + (middle - kernel.means) @ C.T
    origin = (centres.min(axis=0) + centres.max(axis=0)) / 2
    f = 0
    for j, theta in enumerate(kernel.means):
        c = (theta + (x - theta) @ C.T - origin) @ root
        phi, blocks = np.ones((len(x), 1)), []
        for i in range(order + 1):
            blocks.append(phi)
            phi = (phi[:, :, None] * c[:, None]).reshape(len(x), -1) / math.sqrt(i + 1)
        size = kernel.responsibilities(x)[:, j] * np.exp(-0.5 * np.square(c).sum(axis=1))
        f = f + size[:, None] * np.hstack(blocks)
    peak = (2 * np.pi) ** (-kernel.n_features / 4) * np.linalg.det(2 * D) ** -0.25
    return peak * f


@pytest.mark.parametrize("n_points", [3, 60])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_monomials_have_the_inner_products_of_the_kronecker_basis(m: int, n_points: int) -> None:
    kernel, points, x = mixture(m, 0.7, tied=True), cloud(m, n_points), cloud(m, 30, seed=7)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    for order in (0, 1, 2, 5):
        features = TaylorMap(order).fit(kernel, points=points)
        assert features.n_features == math.comb(m + order, order)
        f = kronecker(kernel, x, middle, order)
        np.testing.assert_allclose(distances(features, x, x), cdist(f, f), rtol=1e-10, atol=1e-14)
        raw = np.square(f).sum(axis=1)  # lengths are those of projections, too
        missing = np.sqrt(np.maximum(kernel.squared_norm(x) - raw, 0))
        np.testing.assert_allclose(features.residual(x), missing, atol=1e-6 * np.sqrt(raw.max()))


@pytest.mark.parametrize("kind", [TaylorMap, HermiteMap])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_distances_grow_with_the_order_up_to_the_true_one(kind: type, m: int) -> None:
    kernel, x = mixture(m, 0.5, tied=kind is TaylorMap), cloud(m, 30)
    d, below = true_distances(kernel, x, x), 0
    for order in (0, 1, 3, 8):
        found = distances(kind(order).fit(kernel, points=x), x, x)
        assert (found >= below - 1e-13).all()
        assert (found <= d + 1e-13).all()
        below = found
    assert np.abs(d - below).max() < 0.1 * d.max()


@pytest.mark.parametrize(("m", "order"), [(1, 30), (2, 26)])
def test_hermite_functions_converge_to_rounding(m: int, order: int) -> None:
    kernel, x = mixture(m, 1.0), cloud(m)
    features = HermiteMap(order).fit(kernel, points=x)
    d = true_distances(kernel, x, x)
    np.testing.assert_allclose(distances(features, x, x), d, atol=1e-12 * d.max())
    assert features.error_bound < 1e-5 * d.max()


@pytest.mark.parametrize("m", [1, 2, 3])
def test_hermite_functions_are_monomials_where_covariances_agree(m: int) -> None:
    kernel, x = mixture(m, 0.5, tied=True), cloud(m)
    for order in (1, 4):
        taylor, hermite = (kind(order).fit(kernel, points=x) for kind in (TaylorMap, HermiteMap))
        want = distances(taylor, x, x)
        np.testing.assert_allclose(distances(hermite, x, x), want, atol=1e-13 * want.max())
        assert hermite.error_bound >= taylor.error_bound * (1 - 1e-9)


# Bounds


@pytest.mark.parametrize("kind", [TaylorMap, HermiteMap])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.25, 8.0])
def test_error_stays_below_its_bound_all_over_the_ball(kind: type, m: int, epsilon: float) -> None:
    kernel, x = mixture(m, epsilon, tied=kind is TaylorMap), in_ball(m, 1.0, 10_000)
    norms = kernel.squared_norm(x)
    d = np.sqrt(kernel.squared_distance(x, x[::-1], pairwise=False))
    for order in (1, 6):
        features = kind(order).fit(kernel, points=ends(m))
        y, o = features.transform(x), features._mean @ features._rotation
        # A difference of numbers of the size of the norms.
        missing = norms - np.square(y + o).sum(axis=1)
        assert missing.max() <= (features.error_bound / 2) ** 2 + 1e-13 * norms.max()
        error = np.abs(np.linalg.norm(y - y[::-1], axis=1) - d)
        assert error.max() <= features.error_bound + 1e-14 * np.sqrt(norms.max())
        np.testing.assert_allclose(
            features.residual(x[:50]) ** 2, np.maximum(missing[:50], 0), atol=1e-13 * norms.max()
        )


@pytest.mark.parametrize("time", [1, 3])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_bound_is_reached_by_one_component(radius: float, time: int) -> None:
    kernel = MixtureKernel([1.0], [[0.4]], [0.8], 0.5, time=time)
    features = TaylorMap(2, radius=radius).fit(kernel, points=ends(1))
    at_ends = features.residual([[-radius], [radius]])
    np.testing.assert_allclose(at_ends, features.error_bound / 2, rtol=1e-6)
    S = 0.8 + 0.25
    C = (0.8 / S) ** time
    D = S - C * S * C
    s = (C * radius) ** 2 / (2 * D)  # the origin is c(0), so |c(x) - c(0)| = C |x|
    want = math.sqrt(gammainc(3, s) / math.sqrt(4 * np.pi * D))
    assert features.error_bound / 2 == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 8.0])
def test_bounds_of_the_paper_are_larger(m: int, epsilon: float) -> None:
    kernel = mixture(m, epsilon, tied=True)
    for order in range(12):
        features = TaylorMap(order).fit(kernel, points=ends(m))
        bounds = features.paper_bounds(order)
        assert bounds.G_b2 <= bounds.G_b1 * (1 + 1e-12)
        assert (features.error_bound / 2) ** 2 <= bounds.eta * (1 + 1e-12)
        assert features.paper_bounds(order, nu_min=0.1).eta == pytest.approx(100 * bounds.eta)


def test_bounds_of_the_paper_are_its_sums() -> None:
    kernel = MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [0.6, 0.6], 0.7)
    features = TaylorMap(3).fit(kernel, points=ends(1, 1.5))
    C, D = (v.item() for v in step_of(kernel))
    centres = (1 - C) * kernel.means[:, 0]  # of x = 0; the origin is their middle
    s = (np.abs(centres - centres.mean()) + 1.5 * C) ** 2 / (2 * D)
    np.testing.assert_allclose(features.reach, s, rtol=1e-12)
    for order in (0, 1, 5):
        left_out = [
            1 - math.exp(-v) * sum(v**i / math.factorial(i) for i in range(order + 1)) for v in s
        ]
        bounds = features.paper_bounds(order)
        assert bounds.G_b1 == pytest.approx((s ** (order + 1)).sum() / math.factorial(order + 1))
        assert bounds.G_b2 == pytest.approx(sum(left_out), rel=1e-9)
        peak = 1 / math.sqrt(2 * np.pi * 2 * D)
        assert bounds.eta == pytest.approx(peak * min(bounds.G_b1, bounds.G_b2))


@pytest.mark.parametrize(("m", "tolerance"), [(1, 3.0), (1, 0.3), (1, 1e-5), (2, 1e-2)])
def test_orders_are_the_smallest_that_meet_the_tolerance(m: int, tolerance: float) -> None:
    kernel, x = mixture(m, 0.5, tied=True), cloud(m)
    features = TaylorMap().fit(kernel, tolerance=tolerance, points=x)
    of_paper = features.paper_order(tolerance)
    assert features.paper_bounds(of_paper).eta <= tolerance**2 / 4
    assert of_paper == 1 or features.paper_bounds(of_paper - 1).eta > tolerance**2 / 4
    for kind in (TaylorMap, HermiteMap):
        features = kind().fit(kernel, tolerance=tolerance, points=x)
        assert features.error_bound <= tolerance
        assert features.order_ <= of_paper or kind is HermiteMap
        less = kind(features.order_ - 1).fit(kernel, points=x) if features.order_ else None
        assert less is None or less.error_bound > tolerance


# The largest value in a ball


def climbed(A: np.ndarray, b: np.ndarray, radius: float) -> float:
    """The best of many ascents: |A x + b|² is convex, so x -> radius g/|g| never descends."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, A.shape[1]))
    for _ in range(100):
        x *= radius / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
        x = (x @ A.T + b) @ A + 1e-300 * rng.standard_normal(x.shape)
    x *= radius / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
    return float(np.square(x @ A.T + b).sum(axis=1).max())


def check_largest(A: np.ndarray, b: np.ndarray, radius: float) -> None:
    found = largest_in_ball(A, b, radius)
    size = (np.linalg.norm(A, 2) * radius + np.linalg.norm(b)) ** 2
    assert np.linalg.norm(found.point) <= radius * (1 + 1e-12)
    image = A @ found.point + b
    assert image @ image == pytest.approx(found.value, abs=1e-13 * size)
    assert climbed(A, b, radius) <= found.value + 1e-12 * size
    assert b @ b <= found.value + 1e-13 * size


whole = st.integers(-2, 2).map(float)  # many singular, multiple and hard cases


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
        lambda shape: st.tuples(
            arrays(float, shape, elements=whole), arrays(float, shape[0], elements=whole)
        )
    ),
    st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0, 50.0]),
)
def test_largest_in_ball_is_what_climbing_finds(
    case: tuple[np.ndarray, np.ndarray], radius: float
) -> None:
    check_largest(*case, radius)


HARD = np.diag([2.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize("part", [0.0, 1e-16, 1e-13, 1e-12, 1e-11, 1e-8, 1e-4])
@pytest.mark.parametrize("radius", [1e-2, 1 / 3, 0.34, 1.0, 1e3])
def test_largest_in_ball_about_the_hard_case(part: float, radius: float) -> None:
    # Without the first two axes x_3 = 1/(4 - 1): shorter than the radius or not.
    check_largest(HARD, np.array([part, 0.0, 1.0, 0.5]), radius)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    check_largest(HARD @ rotation, np.array([part, 0.0, 1.0, 0.5]), radius)


def test_largest_in_ball_in_closed_form() -> None:
    # Hard: τ = λ_max, and the value is τ R² + Σ u²/(τ - λ) + |b|².
    assert largest_in_ball([[3.0, 0.0], [0.0, 1.0]], [0.0, 0.0], 2.0).value == pytest.approx(36)
    assert largest_in_ball([[-3.0]], [4.0], 2.0).value == pytest.approx(100)
    hard = largest_in_ball(HARD, [0.0, 0.0, 1.0, 0.5], 1.0).value
    assert hard == pytest.approx(4 + 1 / 3 + 1.25)


# The compact map


@pytest.mark.parametrize("m", [1, 2, 5, 10])
@pytest.mark.parametrize("log_epsilon", [-10, -2, 2, 10, 20])
@pytest.mark.parametrize("share", [0.2, 1e-3])
def test_tolerance_holds_for_all_pairs(m: int, log_epsilon: int, share: float) -> None:
    kernel, x = mixture(m, 2.0**log_epsilon), cloud(m, 60, size=2.0)
    d = true_distances(kernel, x, x)
    tolerance = share * d.max()
    features = CholeskyMap().fit(kernel, tolerance=tolerance, points=x)
    assert 0 < features.error_bound <= tolerance or features.n_features == len(x) - 1
    found = distances(features, x, x)
    assert np.abs(found - d).max() <= features.error_bound + 1e-7 * d.max()
    assert (found <= d * (1 + 1e-7) + 1e-9 * d.max()).all()
    assert 2 * features.residual(x).max() <= tolerance * (1 + 1e-6) + 1e-6 * d.max()


def test_residual_is_what_the_pivots_miss() -> None:
    kernel = mixture(1, 0.5)
    features = CholeskyMap().fit(kernel, tolerance=0.05, points=cloud(1, size=2.0))
    r = np.arange(-12, 12, 0.05)[:, None]
    o, *pivots = kernel.transition_density(np.vstack([features.origin, features.pivots]), r)
    x = cloud(1, 30, seed=8, size=4.0)
    p = kernel.transition_density(x, r) - o
    basis = np.array(pivots) - o
    missed = p - p @ np.linalg.pinv(basis) @ basis
    want = np.sqrt(0.05 * np.square(missed).sum(axis=1))
    np.testing.assert_allclose(features.residual(x), want, atol=1e-6 * want.max())
    assert want.max() > 0.05  # outside the points


@pytest.mark.parametrize("m", [2, 5])
def test_residual_completes_the_distance_from_the_origin(m: int) -> None:
    kernel = mixture(m, 0.5)
    features = CholeskyMap().fit(kernel, tolerance=0.1, points=cloud(m))
    x = cloud(m, 50, seed=9, size=3.0)
    d2 = kernel.squared_distance(x, features.origin)[:, 0]
    y, o = features.transform(x), features.transform(features.origin)
    missing = d2 - np.square(y - o).sum(axis=1)
    np.testing.assert_allclose(features.residual(x) ** 2, missing, atol=1e-12 * d2.max())
    np.testing.assert_allclose(features.residual(features.pivots), 0, atol=1e-6)


def test_points_that_the_candidates_miss_are_certified_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = np.random.default_rng(10)
    x = 0.3 * rng.standard_normal((12_000, 2))
    strays = rng.permutation(len(x))[:12]  # a third of the points are candidates
    x[strays] = 6 + 0.7 * rng.standard_normal((12, 2))
    kernel = MixtureKernel([0.9, 0.1], [[0.0, 0.0], [6.0, 6.0]], [0.1, 0.5], 0.3)
    with caplog.at_level(logging.INFO, "heatsketch"):
        features = CholeskyMap().fit(kernel, tolerance=0.05, points=x)
    assert "exceed" in caplog.text  # else the candidates have missed none
    assert 2 * features.residual(x).max() <= features.error_bound * (1 + 1e-6) <= 0.05 * (1 + 1e-6)
    z = x[np.append(strays, range(100))]
    error = np.abs(distances(features, z, z) - true_distances(kernel, z, z))
    assert error.max() <= features.error_bound + 1e-9


@pytest.mark.parametrize(
    ("most", "tolerance", "reason"),
    [
        (3, 1e-3, "max_features=3.*Pass a larger max_features"),
        (1000, 1e-9, "float64.*Pass a larger tolerance"),
    ],
)
def test_tolerance_out_of_reach_is_told_and_the_bound_holds(
    most: int, tolerance: float, reason: str
) -> None:
    kernel, x = mixture(2, 0.5), cloud(2)
    with pytest.warns(ConvergenceWarning, match=f"tolerance={tolerance:.3g} is not .*{reason}"):
        features = CholeskyMap(most).fit(kernel, tolerance=tolerance, points=x)
    assert features.n_features <= most
    assert features.error_bound > tolerance
    d = true_distances(kernel, x, x)
    error = np.abs(distances(features, x, x) - d).max()
    assert error <= features.error_bound + 1e-7 * d.max()
    assert features.error_bound <= 2.1 * features.residual(x).max() + 1e-6 * d.max()


@pytest.mark.parametrize("n", [1, 7])
def test_points_that_coincide_have_no_coordinates(n: int) -> None:
    kernel = mixture(2, 1.0)
    features = CholeskyMap().fit(kernel, points=np.full((n, 2), 0.5))
    assert features.n_features == 0
    assert features.transform(cloud(2, 5)).shape == (5, 0)
    d = true_distances(kernel, cloud(2, 5), features.origin)[:, 0]
    np.testing.assert_allclose(features.residual(cloud(2, 5)), d, rtol=1e-12)


# What all maps share


MAPS = {
    "taylor": lambda: TaylorMap(4).fit(mixture(2, 0.5, tied=True), points=cloud(2)),
    "hermite": lambda: HermiteMap(4).fit(mixture(2, 0.5), points=cloud(2)),
    "cholesky": lambda: CholeskyMap().fit(mixture(2, 0.5), points=cloud(2)),
}
each_map = pytest.mark.parametrize("name", list(MAPS))


@each_map
def test_coordinates_are_principal_axes_of_the_points(name: str) -> None:
    y = MAPS[name]().transform(cloud(2))
    products = y.T @ y
    variances = np.diag(products)
    assert np.abs(y.mean(axis=0)).max() <= 1e-13
    assert (np.diff(variances) <= 1e-13 * variances[0]).all()
    assert np.abs(products - np.diag(variances)).max() <= 1e-12 * variances[0]


@each_map
def test_coordinates_of_a_point_do_not_depend_on_the_others(name: str) -> None:
    features, x = MAPS[name](), cloud(2, 2500, seed=11)
    y = features.transform(x)
    some = [0, 3, 1023, 1024, 2499]
    alone = np.vstack([features.transform(x[[i]]) for i in some])
    np.testing.assert_allclose(alone, y[some], atol=1e-10 * np.abs(y).max())
    np.testing.assert_allclose(features.transform(x[::-1]), y[::-1], atol=1e-10 * np.abs(y).max())


@each_map
def test_fit_is_the_same_again(name: str) -> None:
    x = cloud(2, 20, seed=12)
    np.testing.assert_array_equal(MAPS[name]().transform(x), MAPS[name]().transform(x))


@each_map
def test_memory_of_transform_is_that_of_its_output(name: str) -> None:
    m = 20 if name == "cholesky" else 2  # more features than coordinates, and fewer
    kernel = mixture(m, 0.5, tied=name == "taylor")
    kinds = {"taylor": TaylorMap(20), "hermite": HermiteMap(20), "cholesky": CholeskyMap()}
    points = cloud(m, 10)
    features = kinds[name].fit(kernel, points=points)  # tiles of 1,024 or 6,000 rows

    def extra(n: int) -> int:
        x = cloud(kernel.n_features, n)
        tracemalloc.start()
        y = features.transform(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - y.nbytes

    with threadpool_limits(1):  # each thread has a tile of its own
        extra(2000)  # caches
        assert extra(21_000) - extra(7000) < 8 * 14_000  # less than one number a row


@pytest.mark.parametrize("kind", [TaylorMap, HermiteMap, CholeskyMap])
def test_map_can_be_fitted_again(kind: type) -> None:
    first, second = mixture(2, 0.5, tied=True), mixture(2, 3.0, tied=True)
    again = kind().fit(first, points=cloud(2)).fit(second, points=2 * cloud(2))
    fresh = kind().fit(second, points=2 * cloud(2))
    assert again.error_bound == fresh.error_bound
    np.testing.assert_array_equal(again.transform(cloud(2)), fresh.transform(cloud(2)))


@pytest.mark.statistical
def test_points_are_drawn_from_the_stationary_density() -> None:
    """False alarms 1e-6 (Dvoretzky-Kiefer-Wolfowitz); sees noise missing or doubled for certain."""
    kernel = MixtureKernel([0.7, 0.3], [[0.0], [3.0]], [0.3, 0.1], 1.0)
    n = 20_000
    x = np.sort(draw(kernel, n, 0)[:, 0])
    below = 0.7 * norm.cdf(x, 0, math.sqrt(0.8)) + 0.3 * norm.cdf(x, 3, math.sqrt(0.6))
    assert np.abs(below - np.arange(0.5, n) / n).max() <= math.sqrt(math.log(2e6) / (2 * n)) + 1 / n
    np.testing.assert_array_equal(np.sort(draw(kernel, n, 0)[:, 0]), x)


def test_mixture_and_points_may_be_left_to_the_map() -> None:
    fitted = GaussianMixture(2, random_state=0, covariance_type="tied").fit(cloud(2))
    features = TaylorMap(3).fit(fitted, 0.5)
    assert features.kernel.epsilon == 0.5
    given_points = TaylorMap(3).fit(features.kernel, points=draw(features.kernel, 2000, 0))
    np.testing.assert_array_equal(features.transform(cloud(2)), given_points.transform(cloud(2)))


TIED, FREE = mixture(2, 0.5, tied=True), mixture(2, 0.5)
BAD = {
    "covariances": (lambda: TaylorMap().fit(FREE), "HermiteMap or CholeskyMap"),
    "too many": (
        lambda: TaylorMap(40, max_features=50).fit(TIED),
        "pass a larger max_features or tolerance",
    ),
    "too many for it": (
        lambda: HermiteMap(max_features=50).fit(FREE, tolerance=1e-9),
        "for tolerance=1e-09, more than max_features=50",
    ),
    "tolerance": (lambda: CholeskyMap().fit(FREE, tolerance=0.0), "tolerance=.*pass a number > 0"),
    "order": (lambda: TaylorMap(-1), "order=-1.*>= 0"),
    "radius": (lambda: TaylorMap(radius=-1.0), "radius=.*>= 0"),
    "no epsilon": (lambda: TaylorMap().fit(GaussianMixture(2)), "epsilon is missing; call fit"),
    "two epsilons": (lambda: TaylorMap().fit(TIED, 2.0), "leave it out"),
    "not fitted": (lambda: TaylorMap().fit(GaussianMixture(2), 1.0), "pass a fitted"),
    "points": (lambda: CholeskyMap().fit(FREE, points=cloud(3)), "3 columns.*pass points"),
    "columns": (lambda: MAPS["cholesky"]().transform(cloud(3)), "3 columns.*pass points"),
    "residual": (lambda: MAPS["taylor"]().residual([[np.nan, 0.0]]), "contains NaN"),
    "ball": (lambda: largest_in_ball(np.eye(2), [0.0, 0.0], -1.0), "radius=.*>= 0"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_told_what_to_do(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()
