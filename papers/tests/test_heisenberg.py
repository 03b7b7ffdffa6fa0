"""The Heisenberg group: its metric, its lattice, and what bounds every embedding of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from papers.sketching.heisenberg import (
    ball,
    gauge,
    heisenberg_distance,
    heisenberg_example,
    lattice,
    lower_bounds,
    product_distance,
    run_heisenberg,
    smallest_energy,
)


def product(g, h):
    twist = (g[:, 0] * h[:, 1] - g[:, 1] * h[:, 0]) / 2
    return g + h + np.outer(twist, [0, 0, 1])


def test_both_distances_are_metrics_and_that_of_the_group_does_not_depend_on_where():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((40, 3))
    for distance in (heisenberg_distance, product_distance):
        d = distance(P)
        assert_allclose(d, d.T, atol=1e-12)
        assert (d[:, None] <= d[:, :, None] + d.T[None] + 1e-12).all()
    moved = product(np.tile(rng.standard_normal(3), (40, 1)), P)
    assert_allclose(heisenberg_distance(moved), heisenberg_distance(P), atol=1e-6)
    assert np.abs(product_distance(moved) - product_distance(P)).max() > 0.1


def test_products_of_elements_of_the_lattice_are_in_it():
    P = lattice(2)
    there = {tuple(row) for row in np.round(2 * lattice(4)).astype(int).tolist()}
    g, h = np.repeat(P, len(P), axis=0), np.tile(P, (len(P), 1))
    assert {tuple(row) for row in np.round(2 * product(g, h)).astype(int).tolist()} <= there
    assert gauge(*P.T).max() <= 2


def test_balls_have_the_volume_of_their_dimension():
    """π²R⁴/8 for |·|⁴ = (x² + y²)² + 16 t², 4πR³/3 in R³."""
    assert len(lattice(8)) == pytest.approx(np.pi**2 * 8**4 / 8, rel=0.03)
    assert len(ball(8)) == pytest.approx(4 * np.pi * 8**3 / 3, rel=0.03)


def test_commutators_cost_a_root():
    """a^m b^m a^-m b^-m = c^(m²), of length 2m, and no path of d-length 4m says otherwise."""
    e = np.zeros((1, 3))
    for m in (1, 2, 5):
        a, b = np.array([[m, 0, 0.0]]), np.array([[0, m, 0.0]])
        c = product(product(a, b), product(-a, -b))
        assert_allclose(c, [[0, 0, m**2]])
        assert heisenberg_distance(np.vstack([e, c]))[0, 1] == pytest.approx(2 * m)


def test_energies_of_known_angles():
    assert smallest_energy(0, 1) == pytest.approx(0)
    assert smallest_energy(1, 2) == pytest.approx(4 - 2 * np.sqrt(2))
    assert smallest_energy(1, 3) == pytest.approx(4 - (1 + np.sqrt(3)))
    assert smallest_energy(1, 4) == pytest.approx(4 - 2 * np.sqrt(2))
    small = 2 * np.pi / 200  # the lowest Landau level: θ, to first order
    assert smallest_energy(1, 200) == pytest.approx(small, rel=0.01)


def test_no_mixture_of_representations_is_below_the_bound():
    """Of each: ψ(c^j) = Σ m |1 - e^{ijθ}|², and the smaller ψ(a) + ψ(b) can be, Σ m μ(θ)."""
    K, q = 16, 101
    [bound] = lower_bounds([K], fractions=101, checked=157)
    assert 1 < bound.square < 4
    numerators, j = np.arange(1, 51), np.arange(1, K + 1)
    mu = np.array([smallest_energy(p, q) for p in numerators])
    turned = 2 - 2 * np.cos(2 * np.pi / q * np.outer(numerators, j))
    rng, best = np.random.default_rng(0), np.inf
    for _ in range(2000):
        masses = rng.exponential(size=50) ** rng.integers(1, 5) * numerators ** -rng.uniform(0, 3)
        L2 = np.max(4 * j / (masses @ turned)) * (masses @ mu) / 2
        best = min(best, L2)
    assert bound.square <= best
    assert best < 2 * bound.square  # and it is not far below


def test_the_bound_grows_by_the_same_for_each_doubling():
    """L² grows like log K: the distortion of a ball is the root of a logarithm."""
    squares = [row.square for row in lower_bounds([2, 4, 8, 16, 32], fractions=201, checked=151)]
    steps = np.diff(squares)
    assert (steps > 0.35).all()
    assert (steps < 0.5).all()


def test_distortion_of_the_metric_grows_with_resolution_and_that_of_diffusion_does_not():
    rows = heisenberg_example(0, radii=(2, 4), sizes=(8,), draws=1)
    found = {(row.space, row.radius, row.method): row for row in rows}
    for space in ("Heisenberg", "plane × √line"):
        growth = found[space, 4, "all"].metric - found[space, 2, "all"].metric
        assert growth > 0.5 > found["R³", 4, "all"].metric - found["R³", 2, "all"].metric
    assert all(row.diffusion == 0 for row in rows if row.method == "all")
    assert len(rows) == 3 * 2 * 3


def test_tables_and_picture_are_written(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    few = lower_bounds([2, 4], fractions=21, checked=31)
    monkeypatch.setattr("papers.sketching.heisenberg.lower_bounds", lambda: few)
    run_heisenberg(tmp_path, radii=(2, 3), sizes=(3, 8), draws=1)
    assert len(list(tmp_path.iterdir())) == 3
