"""Feature maps by series: their bases and bounds, and the largest value in a ball."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.special import gammainc

from heatsketch import ConvergenceWarning, MixtureKernel
from heatsketch.mixture import HermiteMap, TaylorMap, TensorSketch
from heatsketch.mixture.series import SeriesMap, largest_in_ball

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


def distances(features: SeriesMap, x: np.ndarray, z: np.ndarray) -> np.ndarray:
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
        lengths = np.linalg.norm(features.transform(x), axis=1)
        np.testing.assert_allclose(lengths, np.linalg.norm(f, axis=1), rtol=1e-10)


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
        y = features.transform(x)
        # A difference of numbers of the size of the norms.
        missing = norms - np.square(y).sum(axis=1)
        assert missing.max() <= (features.error_bound / 2) ** 2 + 1e-13 * norms.max()
        error = np.abs(np.linalg.norm(y - y[::-1], axis=1) - d)
        assert error.max() <= features.error_bound + 1e-14 * np.sqrt(norms.max())


@pytest.mark.parametrize("time", [1, 3])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_bound_is_reached_by_one_component(radius: float, time: int) -> None:
    kernel = MixtureKernel([1.0], [[0.4]], [0.8], 0.5, time=time)
    features = TaylorMap(2, radius=radius).fit(kernel, points=ends(1))
    at_ends = ends(1, radius)
    missing = kernel.squared_norm(at_ends) - np.square(features.transform(at_ends)).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(missing), features.error_bound / 2, rtol=1e-6)
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
        bounds = features.printed_bounds(order)
        assert bounds.G_b2 <= bounds.G_b1 * (1 + 1e-12)
        assert (features.error_bound / 2) ** 2 <= bounds.eta * (1 + 1e-12)
        assert features.printed_bounds(order, nu_min=0.1).eta == pytest.approx(100 * bounds.eta)


def test_bounds_of_the_paper_are_its_sums() -> None:
    kernel = MixtureKernel([0.5, 0.5], [[0.0], [2.0]], [0.6, 0.6], 0.7)
    features = TaylorMap(3).fit(kernel, points=ends(1, 1.5))
    C, D = (v.item() for v in step_of(kernel))
    centres = (1 - C) * kernel.means[:, 0]  # of x = 0; the origin is their middle
    s = (np.abs(centres - centres.mean()) + 1.5 * C) ** 2 / (2 * D)
    np.testing.assert_allclose(features.reach_, s, rtol=1e-12)
    for order in (0, 1, 5):
        left_out = [
            1 - math.exp(-v) * sum(v**i / math.factorial(i) for i in range(order + 1)) for v in s
        ]
        bounds = features.printed_bounds(order)
        assert bounds.G_b1 == pytest.approx((s ** (order + 1)).sum() / math.factorial(order + 1))
        assert bounds.G_b2 == pytest.approx(sum(left_out), rel=1e-9)
        peak = 1 / math.sqrt(2 * np.pi * 2 * D)
        assert bounds.eta == pytest.approx(peak * min(bounds.G_b1, bounds.G_b2))


@pytest.mark.parametrize(("m", "tolerance"), [(1, 3.0), (1, 0.3), (1, 1e-5), (2, 1e-2)])
def test_orders_are_the_smallest_that_meet_the_tolerance(m: int, tolerance: float) -> None:
    kernel, x = mixture(m, 0.5, tied=True), cloud(m)
    features = TaylorMap().fit(kernel, tolerance, x)
    of_paper = features.l_max(tolerance)
    assert features.printed_bounds(of_paper).eta <= tolerance**2 / 4
    assert of_paper == 1 or features.printed_bounds(of_paper - 1).eta > tolerance**2 / 4
    for kind in (TaylorMap, HermiteMap):
        features = kind().fit(kernel, tolerance, x)
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


# Values at points: derivatives, what is missing, the map as printed


@pytest.mark.parametrize("kind", [TaylorMap, HermiteMap])
@pytest.mark.parametrize("m", [1, 3])
def test_gradients_are_slopes(kind: type, m: int) -> None:
    kernel, x = mixture(m, 0.7, tied=kind is TaylorMap), cloud(m, 5)
    features, step = kind(4).fit(kernel, points=x), 1e-6
    found = features.gradient(x)
    assert found.shape == (5, features.n_features, m)
    for a, e in enumerate(np.eye(m)):
        slope = features.transform(x + step * e) - features.transform(x - step * e)
        np.testing.assert_allclose(found[:, :, a], slope / (2 * step), atol=1e-8)


def test_gradients_of_distances_tend_to_those_in_closed_form() -> None:
    kernel, x = mixture(2, 1.0, tied=True), cloud(2, 10)
    features = TaylorMap(24).fit(kernel, points=x)
    y, slopes = features.transform(x), features.gradient(x)
    off = y - features.transform(x[::-1])
    d = np.linalg.norm(off, axis=1)
    found = np.einsum("nr,nra->na", off / d[:, None], slopes)
    np.testing.assert_allclose(found, kernel.gradient(x, x[::-1]), rtol=1e-8)


@pytest.mark.parametrize("kind", [TaylorMap, HermiteMap])
@pytest.mark.parametrize("m", [1, 2])
def test_residuals_bound_what_points_miss_also_outside_the_ball(kind: type, m: int) -> None:
    kernel, x = mixture(m, 0.5, tied=kind is TaylorMap), cloud(m, 200, size=3.0)
    for order in (0, 3, 9):
        features = kind(order, radius=1.0).fit(kernel, points=ends(m))
        missing = kernel.squared_norm(x) - np.square(features.transform(x)).sum(axis=1)
        assert (missing <= features.residual(x) ** 2 + 1e-13).all()
    one = MixtureKernel([1.0], np.zeros((1, m)), [0.5], 0.5)
    features = kind(3).fit(one, points=x)
    missing = one.squared_norm(x) - np.square(features.transform(x)).sum(axis=1)
    np.testing.assert_allclose(features.residual(x) ** 2, missing, atol=1e-12)


def test_not_centred_it_is_the_map_in_print() -> None:
    kernel, x = mixture(2, 0.7, tied=True), cloud(2) + 2
    features = TaylorMap(3, centred=False).fit(kernel, points=x)
    assert features.radius_ == pytest.approx(np.linalg.norm(x, axis=1).max())
    C, D = step_of(kernel)
    values, axes = np.linalg.eigh(2 * D)
    root = (axes / np.sqrt(values)) @ axes.T
    on_circle = [[math.cos(t), math.sin(t)] for t in np.linspace(0, 2 * np.pi, 5001)]
    rim = features.radius_ * np.array(on_circle)
    for s, theta in zip(features.reach_, kernel.means, strict=True):
        lengths = np.square((theta + (rim - theta) @ C.T) @ root).sum(axis=1)
        assert s == pytest.approx(lengths.max(), rel=1e-5)
    w = kernel.responsibilities(x)
    peak = (2 * np.pi) ** -0.5 * np.linalg.det(2 * D) ** -0.25
    constant = sum(
        w[:, j] * np.exp(-0.5 * np.square((theta + (x - theta) @ C.T) @ root).sum(axis=1))
        for j, theta in enumerate(kernel.means)  # order 0, about the origin of the coordinates
    )
    np.testing.assert_allclose(features.transform(x)[:, 0], peak * constant, rtol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_lengths_are_counted_in_both_bases(m: int) -> None:
    kernel, x = mixture(m, 2.0, tied=True), cloud(m, 9)
    middle = (x.min(axis=0) + x.max(axis=0)) / 2
    for order in (0, 1, 3):
        features = TaylorMap(order).fit(kernel, points=x)
        assert features.transform(x).shape == (9, features.n_features)
        assert kronecker(kernel, x, middle, order).shape == (9, features.n_kronecker)


def test_an_order_out_of_reach_is_told_and_the_bound_holds() -> None:
    kernel, x = mixture(3, 0.05, tied=True), cloud(3)
    with pytest.warns(ConvergenceWarning, match="hold orders 0 to 2: .* up to"):
        features = TaylorMap(max_features=19).fit(kernel, 1e-6, x)
    assert (features.order_, features.n_features) == (2, 10)
    error = np.abs(distances(features, x, x) - true_distances(kernel, x, x))
    assert 1e-6 < error.max() <= features.error_bound


def test_covariances_that_differ_are_told_what_to_do() -> None:
    with pytest.raises(ValueError, match="covariance_type='tied', or use CholeskyMap or Hermite"):
        TaylorMap().fit(mixture(2, 0.5))


# Random projections


@pytest.mark.statistical
def test_sketches_of_the_kronecker_features_keep_distances_on_average() -> None:
    """Means of 600 seeds, 10 pairs: six standard errors are false alarms of 2e-8 in all.

    A factor of 1.3 in the smallest k is found in nearly all runs; the bound on the variance holds
    with a margin of three standard errors of the variance of heavy tails.
    """
    kernel, x = mixture(3, 2.0, tied=True), cloud(3, 20, size=2.0)
    taylor = TaylorMap(4).fit(kernel, points=x)
    y = taylor.transform(x)
    want = np.square(y[::2] - y[1::2]).sum(axis=1)
    found = []
    for seed in range(600):
        sketched = TensorSketch(32, order=4, random_state=seed).fit(kernel, points=x)
        z = sketched.transform(x)
        found.append(np.square(z[::2] - z[1::2]).sum(axis=1) / want)
    ratios = np.array(found)
    errors = ratios.std(axis=0) / math.sqrt(len(ratios))
    assert (np.abs(ratios.mean(axis=0) - 1) <= 6 * errors).all()
    assert sketched.relative_error_ == math.sqrt((2 + 3**4) / 32)
    assert (ratios.std(axis=0) <= sketched.relative_error_).all()


def test_more_columns_than_entries_give_nearly_the_map_itself() -> None:
    kernel, x = mixture(2, 2.0, tied=True), cloud(2, 20)
    features = TensorSketch(2**14, order=5, random_state=0)
    y = features.fit(kernel, points=x).transform(x)
    want = features.taylor_.transform(x)
    assert features.taylor_.order_ == 5
    np.testing.assert_allclose(cdist(y, y), cdist(want, want), rtol=0.1, atol=1e-12)
