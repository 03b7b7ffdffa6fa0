"""The experiments of *Diffusion representation*."""

import csv
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import binom

from heatsketch import MixtureKernel, TaylorMap
from papers.output import random
from papers.representation import components, printed, rivals, run, stationary, truncation
from papers.representation import segmentation as segments

pytest.importorskip("matplotlib")

SMALL = {
    "mgc-1": {"points": (200, 2000), "draws": 1, "max_components": 2, "grid": 12},
    "mgc-2": {
        "points": 300,
        "paired": 40,
        "max_components": 2,
        "log2_epsilons": (-4, -2, 0, 3),
        "orders": 7,
    },
    "mgc-2-printed": {"points": 200, "paired": 30, "log2_epsilons": (0, 3, 5), "terms": 14},
    "mgc-components": {"counts": (1, 8), "points": 400, "draws": 1, "held_out": 10},
    "mgc-rivals": {"draws": 1, "sample": 60, "squares_orders": (1, 3), "clouds_orders": (1,)},
    "mgc-image": {"shrink": 8, "sample": 150, "clustered": 300},
}
FILES = {
    "mgc-1": {"mgc-1.csv", "mgc-1.png"},
    "mgc-2": {"mgc-2.csv", "mgc-2-histograms.png", "mgc-2-bounds.png"},
    "mgc-2-printed": {f"mgc-2-printed{end}" for end in (".csv", "-6.2.png", "-6.3.png")},
    "mgc-components": {"mgc-components.csv", "mgc-components.png"},
    "mgc-rivals": {"mgc-rivals.csv", "mgc-rivals.png"},
    "mgc-image": {"mgc-image.csv", "mgc-image.png"},
}
SECONDS = {"fit_seconds", "map_seconds"}  # differ from run to run


@pytest.fixture(scope="module")
def stationary_run():
    return stationary.stationary_example(0, **SMALL["mgc-1"])


@pytest.fixture(scope="module")
def truncation_run():
    return truncation.truncation_example(0, **SMALL["mgc-2"])


@pytest.fixture(scope="module")
def printed_run():
    return printed.printed_example(0, **SMALL["mgc-2-printed"])


@pytest.fixture(scope="module")
def by_epsilon(truncation_run):
    """The rows of each ε, by order."""
    rows, _ = truncation_run
    epsilons = dict.fromkeys(row.epsilon for row in rows)
    return {epsilon: [row for row in rows if row.epsilon == epsilon] for epsilon in epsilons}


@pytest.fixture(scope="module")
def tied():
    """Points in the unit ball and a kernel of two components with one covariance."""
    X, _ = truncation.in_unit_ball(stationary.two_squares(200, np.random.default_rng(0)))
    covariance = [[0.02, 0.01], [0.01, 0.04]]
    means = [[-0.5, -0.4], [0.5, 0.6]]
    kernel = MixtureKernel([0.3, 0.7], means, covariance, 0.5, covariance_type="tied")
    return X, kernel


def quadrature_of_stationary(x, epsilon):
    """∫ g(r; x, ε/2 I) q(r) dr by Gauss-Legendre nodes on each square."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = (nodes + 1) / 2, weights / 2
    r = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    w = np.outer(weights, weights).ravel()
    total = 0.0
    for share, corner in ((0.2, 0.0), (0.8, 3.0)):
        squared = np.square(x[:, None] - (r + corner)).sum(axis=2)
        total = total + share * np.exp(-squared / epsilon) @ w / (np.pi * epsilon)
    return total


# Example I


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_analytic_stationary_density_is_the_integral(epsilon):
    x = np.random.default_rng(1).uniform(-2, 6, (40, 2))
    found = stationary.analytic_stationary(x, epsilon)
    np.testing.assert_allclose(found, quadrature_of_stationary(x, epsilon), rtol=1e-9, atol=1e-14)


@pytest.mark.statistical
def test_points_fill_the_two_squares():
    # Counts are binomial. False alarms: 6e-7 in all, two sides of three counts at 1e-7 each;
    # a share or a side wrong by 0.02 is found in nearly all runs.
    n = 20_000
    X = stationary.two_squares(n, np.random.default_rng(5))
    upper, lower = (X >= 3).all(axis=1), (X < 1).all(axis=1)
    assert (upper | lower).all()
    assert (X < 4).all()
    assert (X >= 0).all()
    left, below = X[:, 0] % 1 < 0.5, X[:, 1] % 1 < 0.5
    for count, p in ((upper.sum(), 0.8), (left.sum(), 0.5), (below.sum(), 0.5)):
        assert binom.ppf(1e-7, n, p) <= count <= binom.isf(1e-7, n, p)


def test_the_pictured_row_has_the_errors_of_the_panels(stationary_run):
    rows, panels = stationary_run
    row, top = rows[0], panels.analytic.max()
    error = np.abs(panels.closed_form - panels.analytic) / top
    assert (row.points, row.draws) == (2000, 1)
    assert row.largest == pytest.approx(error.max(), rel=1e-12)
    assert row.rms == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)


# Example II


def test_points_are_moved_into_the_unit_ball_and_back():
    X = stationary.two_squares(100, np.random.default_rng(4))
    points, scale = truncation.in_unit_ball(X)
    assert np.linalg.norm(points, axis=1).max() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(points.max(axis=0), -points.min(axis=0), atol=1e-14)
    np.testing.assert_allclose(pdist(points) * scale, pdist(X), rtol=1e-12)


def test_all_pairs_have_the_closed_form_and_the_distances_of_each_order(tied):
    X, kernel = tied
    i, j = np.triu_indices(130, 1)  # more than a block
    d2 = kernel.squared_distance(X[i], X[j], pairwise=False)
    np.testing.assert_allclose(truncation.squared_distances(kernel, X[:130]), d2, rtol=1e-7)
    features = TaylorMap(order=3, radius=1).fit(kernel, points=X)
    for order, found in enumerate(truncation.distances_by_order(features, X[:20])):
        own = TaylorMap(order=order, radius=1).fit(kernel, points=X)
        np.testing.assert_allclose(found, pdist(own.transform(X[:20])), rtol=1e-12, atol=1e-15)
    assert order == 3


def test_every_pair_is_counted_once():
    shares = truncation.shares(np.array([0.0, 1e-30, 1e-3, 1.0, 1e5]))
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == shares[-1] * 2 == pytest.approx(0.4)


def test_bounds_are_above_the_errors_and_in_order(truncation_run):
    rows, _ = truncation_run
    for row in rows:
        assert 0 <= row.median <= row.worst <= row.bound + 1e-12
        assert row.bound <= row.paper_bound * (1 + 1e-12)
        assert row.coordinates == comb(2 + row.order, 2)


def test_errors_and_bounds_do_not_grow_with_the_order(by_epsilon):
    for rows in by_epsilon.values():
        for before, after in pairwise(rows):
            assert after.worst <= before.worst + 1e-12
            assert after.median <= before.median + 1e-12
            assert after.bound <= before.bound


def test_errors_are_those_of_the_orders_they_name(tied):
    X, kernel = tied
    pairs = X[:12]
    d = np.sqrt(truncation.squared_distances(kernel, pairs))
    for row, delta in truncation._of_epsilon(kernel, X, 12, 1.0, 2):
        features = TaylorMap(order=row.order, radius=1).fit(kernel, points=X)
        off = np.abs(d - pdist(features.transform(pairs)))
        np.testing.assert_allclose(delta, off, atol=1e-12)
        assert row.bound == pytest.approx(features.error_bound, rel=1e-9)
        assert row.worst == pytest.approx(off.max(), rel=1e-9)
        assert row.largest_distance == pytest.approx(d.max(), rel=1e-12)


def test_an_error_above_its_bound_is_raised(truncation_run):
    rows, _ = truncation_run
    row = rows[0]._replace(worst=2 * rows[0].bound)
    with pytest.raises(AssertionError, match="error_bound"):
        truncation.check_bounds(row, 0.0)


def test_the_needed_order_is_the_first_whose_bound_is_small(tied):
    X, kernel = tied
    row, _ = next(truncation._of_epsilon(kernel, X, 50, 1.0, 1))
    tolerance = 0.01 * row.largest_distance
    bounds = [
        TaylorMap(order=n, radius=1).fit(kernel, points=X).error_bound
        for n in (row.needed - 1, row.needed)
    ]
    assert bounds[0] > tolerance >= bounds[1]


# As printed


def test_the_printed_error_stays_while_the_error_vanishes(printed_run):
    rows, _ = printed_run
    for epsilon in (1.0, 8.0, 32.0):
        *_, last = [row for row in rows if row.epsilon == epsilon]
        d = last.largest_distance
        assert last.worst >= 0.99 * (d - d**2) ** 2 > 1e10 * last.corrected


def test_as_printed_the_error_stays_and_the_bound_falls_below_it(printed_run):
    rows, _ = printed_run
    for epsilon in (1.0, 8.0, 32.0):
        first, *_, last = [row for row in rows if row.epsilon == epsilon]
        assert last.corrected < 1e-12 * last.worst  # while |d - d_l|² vanishes
        assert last.worst > first.worst
    assert rows[-1].eta < rows[-1].worst
    for row in rows:  # η with ν_min² = 1e-6 is 1e6 times a bound that holds for the corrected δ
        assert row.corrected <= 4e-6 * row.eta + 1e-24


def test_l_max_is_the_first_order_of_the_printed_bound(printed_run):
    rows, _ = printed_run
    for epsilon in (1.0, 8.0, 32.0):
        own = [row for row in rows if row.epsilon == epsilon]
        l_max, zeta = own[0].l_max, 0.01 * own[0].largest_distance
        assert own[l_max - 1].terms == l_max
        assert own[l_max - 1].eta <= zeta**2 / 4 < own[l_max - 2].eta
        assert own[0].needed < l_max


def test_points_as_printed_are_divided_by_their_largest_length(printed_run):
    X = stationary.two_squares(200, random(0, stationary.TRUNCATION))
    rows, _ = printed_run
    assert rows[0].scale == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-12)


# The number of components


@pytest.mark.parametrize("epsilon", [1.0, 0.2])
def test_distances_of_the_squares_are_those_of_a_fine_grid_of_points(epsilon):
    """Gauss-Legendre nodes as components without a spread."""
    nodes, weights = np.polynomial.legendre.leggauss(14)
    nodes, weights = (nodes + 1) / 2, weights / 2
    r = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    w = np.outer(weights, weights).ravel()
    means = np.concatenate([r + a for _, a, _ in stationary.SQUARES])
    shares = np.concatenate([share * w for share, _, _ in stationary.SQUARES])
    kernel = MixtureKernel(shares, means, np.zeros((len(means), 2, 2)), epsilon)
    rng = np.random.default_rng(2)
    x = stationary.two_squares(6, rng) + 0.3 * rng.standard_normal((6, 2))
    found = components.analytic_squared_distance(x, epsilon)
    np.testing.assert_allclose(found, kernel.squared_distance(x, x), rtol=1e-6, atol=1e-10)


def test_distances_of_a_sample_are_those_of_components_without_a_spread():
    X = stationary.two_squares(40, np.random.default_rng(3))
    kernel = MixtureKernel(np.full(40, 1 / 40), X, np.zeros((40, 2, 2)), 0.5)
    x = stationary.two_squares(7, np.random.default_rng(4))
    found = components.squared_distance_of_sample(X, x, 0.5)
    np.testing.assert_allclose(found, kernel.squared_distance(x, x), atol=1e-12)


def test_too_few_components_cost_more_than_too_many():
    """One component joins the squares; 8 of 400 points have the error of the sample."""
    rows = components.components_example(0, **SMALL["mgc-components"])
    sample, one, eight = (row for row in rows if row.epsilon == 1.0)
    assert (sample.components, one.components, eight.components) == (0, 1, 8)
    for name in ("nu_largest", "nu_rms", "distance_worst", "distance_median"):
        assert getattr(one, name) > 3 * getattr(eight, name)
    assert eight.nu_largest < 1.5 * sample.nu_largest
    assert sum(row.smallest_bic for row in rows if row.epsilon == 1.0) == 1


# Other maps


@pytest.fixture(scope="module")
def unequal():
    """A kernel of two components with covariances of their own, and points."""
    covariances = [[[0.5, 0.2], [0.2, 0.3]], [[0.1, 0.0], [0.0, 1.0]]]
    kernel = MixtureKernel([0.4, 0.6], [[0.0, 0.0], [1.5, -1.0]], covariances, 0.8)
    return kernel, rivals.drawn(kernel, 60, np.random.default_rng(5))


@pytest.mark.statistical
def test_random_fourier_features_tend_to_the_inner_products(unequal):
    """Within eight standard errors of 30 maps.

    False alarms: 8e-8, from Student's t of 29 degrees and 9 entries. The standard error is 0.3 % of
    the norms, so that an error of 6 % is found in nearly all runs.
    """
    kernel, points = unequal
    x = points[:3]
    norms = kernel.squared_norm(x)
    want = (norms[:, None] + norms - kernel.squared_distance(x, x)) / 2
    rng = np.random.default_rng(6)
    found = []
    for _ in range(30):
        Y = rivals.fourier(kernel, 2000, rng)(x)
        found.append(Y @ Y.T)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(np.mean(found, axis=0) - want) <= 8 * error).all()
    assert (error < 0.005 * norms.max()).all()


def test_nystroem_features_are_exact_at_their_points_and_short_elsewhere(unequal):
    kernel, points = unequal
    near = points[:8]
    features = rivals.nystroem(kernel, near, 8, np.random.default_rng(7))
    d = np.sqrt(kernel.squared_distance(near, near)[np.triu_indices(8, 1)])
    np.testing.assert_allclose(pdist(features(near)), d, rtol=1e-4)
    others = points[8:]
    d = np.sqrt(kernel.squared_distance(others, others)[np.triu_indices(len(others), 1)])
    assert (pdist(features(others)) <= d * (1 + 1e-4)).all()


@pytest.mark.statistical
def test_the_sampled_map_tends_to_the_closed_form(unequal):
    """Its error over 40 seeds is 1.4 % ± 0.5 % of the largest distance, without the noise 9 %.

    False alarms: the bound is 7 standard deviations above the mean.
    """
    kernel, points = unequal
    d = np.sqrt(kernel.squared_distance(points, points)[np.triu_indices(len(points), 1)])
    Y = rivals.sampled(kernel, 600, 100, np.random.default_rng(8))(points)
    assert np.median(np.abs(pdist(Y) - d)) < 0.05 * d.max()


def test_the_series_and_cholesky_maps_meet_the_closed_form(unequal):
    kernel, points = unequal
    d = np.sqrt(kernel.squared_distance(points, points)[np.triu_indices(len(points), 1)])
    case = rivals.Case("", kernel, points, points, (8,))
    maps = dict(rivals.exact_maps(case, 8, comb(10, 8)))
    assert set(maps) == {"series", "CholeskyMap"}
    for transform in maps.values():
        assert np.abs(pdist(transform(points)) - d).max() < 0.02 * d.max()


# Segments of an image


def test_pixels_have_their_places_and_colours():
    image = segments.photograph(8)
    h, w, _ = image.shape
    pixels = segments.features_of(image)
    assert pixels.shape == (h * w, 5)
    np.testing.assert_array_equal(pixels[:, 2:].reshape(image.shape), image)
    row, column = 3, 7
    place = pixels[row * w + column, :2] * w / segments.POSITION
    np.testing.assert_allclose(place, [row, column])
    # Shrinking keeps the mean of the pixels that are kept.
    fine = segments.photograph(1)[: 8 * h, : 8 * w]
    np.testing.assert_allclose(image.mean(axis=(0, 1)), fine.mean(axis=(0, 1)))


def test_segments_are_alike_by_closed_form_and_by_a_sample():
    """At the larger ε; unrelated segments have an adjusted Rand index near 0."""
    rows, image, shown = segments.segmentation_example(0, **SMALL["mgc-image"])
    large = [row for row in rows if row.epsilon == max(segments.EPSILONS)]
    assert [row.method for row in large] == list(segments.METHODS)
    for row in large:
        assert row.agreement > 0.6
        assert row.difference < 0.05
    for labels in shown.values():
        assert labels.shape == image.shape[:2]
        assert set(np.unique(labels)) == set(range(segments.SEGMENTS))


# All


@pytest.mark.parametrize("name", run.EXAMPLES)
def test_the_table_holds_the_rows_and_the_same_seed_gives_the_same(tmp_path, name):
    experiment = run.EXAMPLES[name].run
    rows = experiment(tmp_path, seed=3, **SMALL[name])
    assert {path.name for path in tmp_path.iterdir()} == FILES[name]
    table = read(tmp_path / f"{name}.csv")
    assert tuple(table[0]) == rows[0]._fields
    assert [tuple(line.values()) for line in table] == [tuple(map(str, row)) for row in rows]
    experiment(tmp_path, seed=3, **SMALL[name])
    again = read(tmp_path / f"{name}.csv")
    for before, after in zip(map(numbers, table), map(numbers, again), strict=True):
        assert before == pytest.approx(after, rel=1e-6, abs=1e-9)  # LAPACK rounds as memory lies


def numbers(line):
    """The numbers of a line that do not differ from run to run."""
    return {k: float(v) for k, v in line.items() if k not in SECONDS | {"data", "method"}}


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
