"""Pictures that turn, and the MNIST digits, as points."""

import numpy as np
import pytest

from papers.notes import data


def squared_distances(X):
    return np.square(X[:, None] - X).sum(axis=2)


@pytest.mark.parametrize(("n", "size"), [(4, 9), (20, 65), (24, 64), (200, 33)])
def test_pacman_after_a_quarter_turn_is_the_turned_image(n, size):
    X, _ = data.pacman(n, size)
    images = X.reshape(n, size, size)
    turned = np.rot90(images, axes=(1, 2))
    np.testing.assert_array_equal(np.roll(images, -n // 4, axis=0), turned)


def test_pacman_is_a_closed_loop():
    # The first and the last image differ like any two that follow each other, and distances do not
    # change under quarter turns.
    D = squared_distances(data.pacman(40, 33)[0])
    np.testing.assert_array_equal(D, np.roll(D, (10, 10), axis=(0, 1)))
    steps = np.diagonal(np.roll(D, 1, axis=1))
    swept = (0.4 * 33) ** 2 * np.pi / 20  # two edges of the mouth, r²θ/2 each
    assert abs(steps.mean() / 255**2 / swept - 1) < 0.1
    assert D[0, 1:].min() == min(D[0, 1], D[0, -1])


@pytest.mark.parametrize("size", [64, 65])
def test_pacman_is_a_disc_less_a_wedge_in_his_direction(size):
    X, angle = data.pacman(7, size)
    assert set(np.unique(X)) == {0, 255}
    ticks = np.arange(size) - (size - 1) / 2
    z = ticks[None, :] - 1j * ticks[:, None]
    for image, direction in zip(X.reshape(7, size, size), angle, strict=True):
        inside = np.abs(z) <= 0.4 * size
        mouth = np.abs(np.angle(z * np.exp(-1j * direction))) < np.pi / 6
        off_edge = np.abs(np.abs(np.angle(z * np.exp(-1j * direction))) - np.pi / 6) > 1e-9
        expected = 255 * (inside & ~mouth)
        np.testing.assert_array_equal(image[off_edge & (z != 0)], expected[off_edge & (z != 0)])


def blob(size, angle):
    """A smooth picture that is known everywhere: two bells, one off the centre, turned."""
    ticks = np.arange(size) - (size - 1) / 2
    z = (ticks[None, :] - 1j * ticks[:, None]) * np.exp(-1j * angle) / size
    return np.exp(-120 * np.abs(z - 0.15 - 0.05j) ** 2) + np.exp(-90 * np.abs(z + 0.1j) ** 2)


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 2.0, np.pi, 5.0])
def test_a_turned_picture_is_the_picture_at_turned_places(angle):
    turned = data.turned(blob(61, 0), [angle]).reshape(61, 61)
    ticks = np.arange(61) - 30
    disc = ticks**2 + ticks[:, None] ** 2 <= 30**2
    # Cubic splines: an error of h⁴ f⁗ / 384 in each direction and some; 7e-8 × 12 × 120² / 384,
    # 3e-5, here with h = 1/61.
    np.testing.assert_allclose(turned[disc], blob(61, angle)[disc], atol=2e-4)
    assert not turned[~disc].any()


def test_turning_keeps_the_norm_of_the_picture():
    X, angle = data.rotated_picture(60, 80, np.random.default_rng(0))
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() < 1.01 * norms.min()
    assert angle.min() >= 0
    assert angle.max() < 2 * np.pi
    np.testing.assert_array_equal(X, data.turned(data.temple(80), angle))
