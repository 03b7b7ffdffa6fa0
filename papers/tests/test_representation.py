"""The two examples of *Diffusion representation*."""

import csv
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from heatsketch import MixtureKernel, TaylorMap
from papers.representation import printed, run, stationary, truncation

pytest.importorskip("matplotlib")

SMALL = {
    "mgc-1": {"points": (200, 2000), "draws": 1, "max_components": 2, "grid": 12},
    "mgc-2": {
        "points": 300,
        "pairs": 400,
        "max_components": 2,
        "log2_epsilons": (-4, -2, 0, 3),
        "orders": 7,
    },
    "mgc-2-printed": {"points": 200, "pairs": 300, "log2_epsilons": (0, 3, 5), "terms": 14},
}
FILES = {
    "mgc-1": {"mgc-1.csv", "mgc-1.png"},
    "mgc-2": {"mgc-2.csv", "mgc-2-histograms.png", "mgc-2-bounds.png"},
    "mgc-2-printed": {f"mgc-2-printed{end}" for end in (".csv", "-6.2.png", "-6.3.png")},
}


@pytest.fixture(scope="module")
def stationary_run():
    return stationary.stationary_example(0, **SMALL["mgc-1"])


@pytest.fixture(scope="module")
def truncation_run():
    return truncation.truncation_example(0, **SMALL["mgc-2"])


@pytest.fixture(scope="module")
def by_epsilon(truncation_run):
    """The rows of each ε, by order."""
    rows, _ = truncation_run
    epsilons = dict.fromkeys(row.epsilon for row in rows)
    return {epsilon: [row for row in rows if row.epsilon == epsilon] for epsilon in epsilons}


@pytest.fixture(scope="module")
def tied():
    """Points in the unit ball and a kernel of two components with one covariance."""
    sample = truncation.in_unit_ball(stationary.two_squares(200, np.random.default_rng(0)))
    covariance = [[0.02, 0.01], [0.01, 0.04]]
    means = [[-0.5, -0.4], [0.5, 0.6]]
    kernel = MixtureKernel([0.3, 0.7], means, covariance, 0.5, covariance_type="tied")
    return sample, kernel


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
    sample = truncation.in_unit_ball(X)
    assert np.linalg.norm(sample.points, axis=1).max() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(sample.points.max(axis=0), -sample.points.min(axis=0), atol=1e-14)
    np.testing.assert_allclose(sample.points * sample.scale + sample.middle, X, atol=1e-14)
    assert sample.reach * sample.scale == pytest.approx(np.linalg.norm(X, axis=1).max())


def test_bounds_are_above_the_errors_and_in_order(truncation_run):
    rows, _ = truncation_run
    for row in rows:
        assert 0 <= row.median <= row.worst <= row.bound + 1e-12
        assert row.bound <= row.paper_bound * (1 + 1e-12)
        assert row.coordinates == comb(2 + row.order, 2)
        # As printed: divided by ν_min² = 1e-6.
        assert row.printed_eta == pytest.approx(row.paper_bound**2 / 4 * 1e6, rel=1e-9)


def test_errors_and_bounds_do_not_grow_with_the_order(by_epsilon):
    for rows in by_epsilon.values():
        for before, after in pairwise(rows):
            assert after.worst <= before.worst + 1e-12
            assert after.median <= before.median + 1e-12
            assert after.bound <= before.bound
            assert after.printed_eta <= before.printed_eta


def test_errors_are_those_of_the_orders_they_name(tied):
    sample, kernel = tied
    X, ends = sample.points, np.random.default_rng(7).integers(200, size=(2, 50))
    d = np.sqrt(np.diagonal(kernel.squared_distance(X[ends[0]], X[ends[1]])))
    embedded = []
    for order in range(3):
        Y = TaylorMap(order=order, radius=1).fit(kernel, points=X).transform(X)
        embedded.append(np.linalg.norm(Y[ends[0]] - Y[ends[1]], axis=1))
    for row, delta in truncation._of_epsilon(kernel, sample, ends, 2):
        np.testing.assert_allclose(delta, np.abs(d - embedded[row.order]), atol=1e-12)
        first_terms = embedded[row.order - 1]  # l terms are orders 0, ..., l - 1
        assert row.printed == pytest.approx(np.square(d**2 - first_terms).max(), rel=1e-9)
        assert row.largest_distance == pytest.approx(d.max(), rel=1e-12)


def test_the_printed_error_stays_while_the_error_vanishes(by_epsilon):
    for epsilon in (1.0, 8.0):
        *_, before, last = by_epsilon[epsilon]
        d = last.largest_distance
        assert last.printed >= (abs(d - d**2) - before.worst) ** 2
        assert last.printed >= 0.99 * (d - d**2) ** 2 > 1e10 * last.worst**2


def test_the_needed_order_is_the_first_whose_bound_is_small(tied):
    sample, kernel = tied
    any_map = TaylorMap(order=1, radius=1).fit(kernel, points=sample.points)
    order, *_ = truncation.needed_orders(kernel, sample, any_map, 0.01)
    bounds = [
        TaylorMap(order=n, radius=1).fit(kernel, points=sample.points).error_bound
        for n in (order - 1, order)
    ]
    assert bounds[0] > 0.01 >= bounds[1]


def test_reach_from_the_coordinates_is_the_maximum_over_their_ball(tied):
    sample, kernel = tied
    # In the coordinates as they came, where lengths and √ε are `scale` times as large.
    covariance = kernel.covariances[0] * sample.scale**2
    half = kernel.epsilon / 2 * sample.scale**2
    C = covariance @ np.linalg.inv(covariance + half * np.eye(2))
    D = half * (np.eye(2) + C)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    x = sample.reach * sample.scale * np.column_stack([np.cos(angle), np.sin(angle)])
    found = truncation.as_printed(kernel, sample, order=1).reach_
    for s, mean in zip(found, kernel.means * sample.scale + sample.middle, strict=True):
        c = mean + (x - mean) @ C.T
        lengths = np.einsum("na,ab,nb->n", c, np.linalg.inv(2 * D), c)
        assert s == pytest.approx(lengths.max(), rel=1e-6)
        assert s >= lengths.max() * (1 - 1e-12)


def test_moving_the_coordinates_away_costs_orders_only_where_the_origin_is_theirs(tied):
    sample, kernel = tied
    features = TaylorMap(order=1, radius=1).fit(kernel, points=sample.points)
    here = truncation.needed_orders(kernel, sample._replace(middle=np.zeros(2)), features, 0.01)
    far = truncation.needed_orders(kernel, sample._replace(middle=np.full(2, 9.0)), features, 0.01)
    assert far[0] == here[0]
    assert far[1] > here[1] + 1
    assert far[2] > here[2] + 1


@pytest.mark.parametrize("name", run.EXAMPLES)
def test_the_table_holds_the_rows_and_the_same_seed_gives_the_same(tmp_path, name):
    rows = run.run_example(name, tmp_path, seed=3, **SMALL[name])
    assert {path.name for path in tmp_path.iterdir()} == FILES[name]
    table = (tmp_path / f"{name}.csv").read_bytes()
    head, *lines = csv.reader(table.decode().splitlines())
    assert tuple(head) == rows[0]._fields
    assert [tuple(map(float, line)) for line in lines] == [tuple(row) for row in rows]
    run.run_example(name, tmp_path, seed=3, **SMALL[name])
    assert (tmp_path / f"{name}.csv").read_bytes() == table


def test_as_printed_the_error_stays_and_the_bound_falls_below_it():
    rows, _ = printed.printed_example(0, **SMALL["mgc-2-printed"])
    for epsilon in (1.0, 8.0, 32.0):
        first, *_, last = [row for row in rows if row.epsilon == epsilon]
        assert last.corrected < 1e-12 * last.worst  # while |d - d_l|² vanishes
        assert last.worst > first.worst
    assert rows[-1].eta < rows[-1].worst
    for row in rows:  # η with ν_min² = 1e-6 is 1e6 times a bound that holds for the corrected δ
        assert row.corrected <= 4e-6 * row.eta + 1e-24
