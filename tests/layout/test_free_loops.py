"""Sums over all pairs by a tree, beside the sums themselves; what they do not depend on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from heatsketch._threads import in_one_thread
from heatsketch.core.blocks import OPENING
from heatsketch.core.blocks import repulsion_by_tree as repulsion
from heatsketch.core.loops import CODE_BITS, interleave

N = 2_000


def shapes():
    """Return points with all that is hard: few dots far apart, heavy tails, curves, equal ones."""
    rng = np.random.default_rng(0)
    angle, sign = 2 * np.pi * rng.random(N), np.where(rng.random(N) < 0.5, -1.0, 1.0)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return {
        "blob": 20 * rng.normal(size=(N, 2)),
        "disc": 30 * np.sqrt(rng.random((N, 1))) * circle,
        "ring": 50 * circle,
        "two dots": 1e5 * sign[:, None] + 0.3 * rng.normal(size=(N, 2)),
        "heavy tails": 3 * rng.standard_t(1, size=(N, 2)),
        "line": np.column_stack([np.linspace(0, 300, N), np.zeros(N)]),
        "lattice": np.stack(np.divmod(np.arange(N), 40), axis=1) / 2.0,
        "equal points": rng.integers(0, 3, (N, 2)) * 5.0,
        "blob, solid": 8 * rng.normal(size=(N, 3)),
        "heavy tails, solid": 3 * rng.standard_t(1, size=(N, 3)),
    }


SHAPES = shapes()
every_shape = pytest.mark.parametrize("U", SHAPES.values(), ids=SHAPES)


def sums(U):
    """Return Σ q² u and Σ q over i != j from their definition, and Σ q² |u| (n,)."""
    force, size, total = np.empty_like(U), np.empty(len(U)), 0.0
    for rows in np.array_split(np.arange(len(U)), 20):
        u = U[rows, None] - U
        squares = np.square(u).sum(axis=2)
        q = 1 / (1 + squares)
        force[rows] = np.einsum("ij,ijk->ik", q**2, u)
        size[rows] = np.sum(q**2 * np.sqrt(squares), axis=1)
        total += q.sum() - len(rows)
    return force, total, size


def error(U, theta):
    """Return the norm of the error of the forces, relative to all their parts, and that of Σ q."""
    force, total, size = sums(U)
    found, found_total = repulsion(U, theta)
    return np.linalg.norm(found - force) / np.linalg.norm(size), abs(found_total / total - 1)


@pytest.mark.parametrize("c", [2, 3])
def test_a_code_has_the_bits_of_all_coordinates_in_turn_the_highest_first(c):
    bits = CODE_BITS // c
    cells = np.random.default_rng(c).integers(0, 2**bits, (50, c)).astype(np.uint64)
    cells[0], codes = 2**bits - 1, np.empty(50, np.uint64)
    interleave(cells, codes, 0, 50)
    in_turn = [zip(*(f"{cell:0{bits}b}" for cell in row), strict=True) for row in cells.tolist()]
    assert codes.tolist() == [int("".join(map("".join, turns)), 2) for turns in in_turn]


@every_shape
def test_opening_every_node_gives_the_sums_themselves(U):
    force, total, size = sums(U)
    found, found_total = repulsion(U, 0.0)
    assert found_total == pytest.approx(total, rel=1e-11)
    assert np.abs(found - force).max() <= 1e-11 * size.max()


@every_shape
def test_the_tree_is_within_a_thousandth(U):
    forces, total = error(U, OPENING)
    assert forces <= 1e-3
    assert total <= 1e-3


@pytest.mark.parametrize("name", ["blob", "disc", "heavy tails", "blob, solid"])
def test_net_forces_are_within_a_thousandth(name):
    """Beside those of curves, on which forces from both sides cancel."""
    force, _, _ = sums(SHAPES[name])
    found, _ = repulsion(SHAPES[name])
    assert np.linalg.norm(found - force) <= 1e-3 * np.linalg.norm(force)


@pytest.mark.parametrize("name", ["ring", "blob", "blob, solid"])
def test_errors_are_of_third_order_or_more(name):
    """Nodes have their moments up to the second: half of θ leaves an eighth of the error."""
    assert error(SHAPES[name], 0.2)[0] <= error(SHAPES[name], 0.4)[0] / 8


@every_shape
def test_no_force_from_within_moves_the_whole(U):
    found, _ = repulsion(U, 0.0)
    assert_allclose(found.sum(axis=0), 0, atol=1e-9 * np.abs(found).sum())


@every_shape
def test_the_number_of_threads_and_the_order_of_points_do_not_count(U):
    found, total = repulsion(U)
    with in_one_thread():
        again, again_total = repulsion(U)
    assert_array_equal(again, found)
    assert again_total == total
    order = np.random.default_rng(1).permutation(len(U))
    moved, moved_total = repulsion(U[order])
    assert_allclose(moved, found[order], rtol=0, atol=1e-11 * np.abs(found).max())
    assert moved_total == pytest.approx(total, rel=1e-12)


def test_a_single_place_has_no_force():
    for n in (1, 2, 40):
        found, total = repulsion(np.full((n, 2), 7.0))
        assert_array_equal(found, 0)
        assert total == pytest.approx(n * (n - 1), abs=1e-12)


def test_the_forces_of_two_points_in_closed_form():
    found, total = repulsion(np.array([[0.0, 0.0], [3.0, 4.0]]))
    assert_allclose(found, [[-3 / 26**2, -4 / 26**2], [3 / 26**2, 4 / 26**2]], rtol=1e-14)
    assert total == pytest.approx(2 / 26, rel=1e-13)
