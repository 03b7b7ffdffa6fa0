"""Built-in sets lie where their formulas say."""

import inspect

import numpy as np
import pytest

from heatsketch import datasets
from problems.clouds import even_circle, on_circle, on_torus

SYNTHETIC = sorted(set(datasets.DATASETS) - {"digits"})
RANDOM = [
    name for name in SYNTHETIC if "rng" in inspect.signature(datasets.DATASETS[name]).parameters
]


@pytest.mark.parametrize("name", RANDOM)
def test_same_seed_same_points_other_seed_other_points(name):
    make = datasets.DATASETS[name]
    first, again, other = make(40, rng=1), make(40, rng=np.random.default_rng(1)), make(40, rng=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("name", sorted(datasets.DATASETS))
def test_coordinates_have_a_row_per_point_and_a_name_per_column(name):
    X, coordinates = datasets.DATASETS[name]()
    assert X.dtype == np.float64
    assert len(coordinates) == len(X)
    assert coordinates.reshape(len(X), -1).shape[1] == len(datasets.COORDINATES[name])


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_bad_number_of_points_is_named(name, n):
    with pytest.raises((TypeError, ValueError), match=r"^n="):
        datasets.DATASETS[name](n)


def test_circle_points_are_at_their_angles():
    X, angle = datasets.circle(200, rng=0)
    np.testing.assert_allclose(X, on_circle(angle), atol=1e-15)
    assert angle.min() >= 0
    assert angle.max() < 2 * np.pi


def test_equispaced_circle_has_equal_gaps():
    np.testing.assert_allclose(datasets.circle(7, equispaced=True)[0], even_circle(7), atol=1e-15)


def test_stretched_torus_is_a_product_of_two_circles():
    X, uv = datasets.stretched_torus(100, r=2.5, rng=0)
    np.testing.assert_allclose(X, on_torus(*uv.T, radius=2.5), atol=1e-14)


def test_klein_bottle_satisfies_its_equations():
    X, uv = datasets.klein_bottle(100, a=7, b=2, rng=0)
    u, v = uv.T
    ring = np.hypot(X[:, 0], X[:, 1])
    np.testing.assert_allclose((ring - 7) ** 2 + X[:, 2] ** 2 + X[:, 3] ** 2, 4, rtol=1e-12)
    np.testing.assert_allclose(X[:, 0] + 1j * X[:, 1], ring * np.exp(1j * u), atol=1e-12)
    np.testing.assert_allclose(X[:, 2] * np.sin(u / 2), X[:, 3] * np.cos(u / 2), atol=1e-12)
    np.testing.assert_allclose(ring - 7, 2 * np.cos(v), atol=1e-12)


def test_outliers_come_last_and_have_no_angle():
    X, angle = datasets.circle_with_outliers(12, rng=0)
    np.testing.assert_array_equal(X[-2:], [[0, 3], [3, 0]])
    np.testing.assert_allclose(np.linalg.norm(X[:-2], axis=1), 1, rtol=1e-14)
    assert np.isnan(angle).tolist() == [False] * 10 + [True] * 2


def test_clouds_are_balanced_and_centred_at_separated_unit_vectors():
    X, label = datasets.gaussian_clouds(30_001, n_labels=4, dim=5, separation=6, rng=0)
    counts = np.bincount(label)
    assert counts.max() - counts.min() == 1
    means = np.array([X[label == j].mean(axis=0) for j in range(4)])
    # Six standard errors of 20 means: false alarm below 1e-7.
    np.testing.assert_allclose(means, 6 * np.eye(4, 5), atol=6 / np.sqrt(counts.min()))


def arc_length(x):
    """The length of the spiral of radius x at angle x, from its centre on."""
    return (x * np.sqrt(1 + x**2) + np.arcsinh(x)) / 2


@pytest.mark.parametrize("mesh", ["random", "uniform"])
def test_roll_points_are_at_their_flat_coordinates(mesh):
    X, flat = datasets.swiss_roll(500, mesh=mesh, rng=0)
    x = np.hypot(X[:, 0], X[:, 2])  # the radius of the spiral is its angle
    np.testing.assert_allclose(X[:, 0] + 1j * X[:, 2], x * np.exp(1j * x), atol=1e-12)
    np.testing.assert_allclose(flat[:, 0], arc_length(x) - arc_length(6), atol=1e-11)
    np.testing.assert_array_equal(flat[:, 1], X[:, 1])
    assert x.min() >= 6 - 1e-12
    assert x.max() <= 18 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 30, 100, 777, 2000])
def test_uniform_roll_is_a_square_grid_of_about_n_points(n):
    X, flat = datasets.swiss_roll(n, mesh="uniform")
    arcs, heights = (np.unique(flat[:, j].round(9)) for j in (0, 1))
    rows = len(heights)
    assert len(X) == len(arcs) * rows
    assert abs(len(X) - n) <= rows / 2
    gaps = np.concatenate([np.diff(arcs), np.diff(heights)])
    np.testing.assert_allclose(gaps, gaps[0] if len(gaps) else 0, rtol=1e-6)
    assert 0 <= arcs[0] <= arcs[-1] <= arc_length(18) - arc_length(6)
    assert 6 <= heights[0] <= heights[-1] <= 12


def test_roll_noise_has_its_standard_deviation():
    noisy, flat = datasets.swiss_roll(20_000, noise=0.5, mesh="uniform", rng=0)
    clean, _ = datasets.swiss_roll(20_000, mesh="uniform")
    deviation = noisy - clean
    # Relative error of the deviation of 60,000 normal numbers: 0.003; six of them.
    assert abs(deviation.std() / 0.5 - 1) < 0.018
    np.testing.assert_array_equal(flat[:, 1], clean[:, 1])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="n_labels=4 but dim=3"):
        datasets.gaussian_clouds(10, n_labels=4, dim=3)
    with pytest.raises(ValueError, match="mesh='hexagonal'"):
        datasets.swiss_roll(10, mesh="hexagonal")
    with pytest.raises(ValueError, match="noise=nan is not finite"):
        datasets.swiss_roll(10, noise=float("nan"))
    with pytest.raises(ValueError, match="r=-1"):
        datasets.stretched_torus(10, r=-1)
    with pytest.raises(ValueError, match="b=nan is not finite"):
        datasets.klein_bottle(10, b=float("nan"))
    with pytest.raises(ValueError, match="separation=-1"):
        datasets.gaussian_clouds(10, separation=-1)


def test_digits_are_grey_values_of_all_ten_digits():
    X, label = datasets.digits()
    assert X.shape == (1797, 64)
    assert (X.min(), X.max()) == (0, 16)
    assert set(label.tolist()) == set(range(10))
