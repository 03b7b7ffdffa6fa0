"""Built-in sets lie where their formulas say; IDX files are read whole or refused by name."""

import gzip
import inspect
import struct
import sys

import numpy as np
import pytest
from scipy.integrate import trapezoid

from heatsketch import datasets
from heatsketch.datasets import pictures

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
    assert X.dtype == (np.float32 if name == "rotated_picture" else np.float64)
    assert len(coordinates) == len(X)
    assert coordinates.reshape(len(X), -1).shape[1] == len(datasets.COORDINATES[name])


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_bad_number_of_points_is_named(name, n):
    with pytest.raises((TypeError, ValueError), match=r"^n(_images)?="):
        datasets.DATASETS[name](n)


def test_circle_points_are_at_their_angles():
    X, angle = datasets.circle(200, rng=0)
    np.testing.assert_allclose(X[:, 0] + 1j * X[:, 1], np.exp(1j * angle), atol=1e-15)
    assert angle.min() >= 0
    assert angle.max() < 2 * np.pi


def test_equispaced_circle_has_equal_gaps():
    X, _ = datasets.circle(7, equispaced=True)
    gaps = np.linalg.norm(X - np.roll(X, 1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 2 * np.sin(np.pi / 7), rtol=1e-13)


def test_stretched_torus_is_a_product_of_two_circles():
    X, uv = datasets.stretched_torus(100, r=2.5, rng=0)
    u, v = uv.T
    np.testing.assert_allclose(X[:, 0] + 1j * X[:, 1], np.exp(1j * u), atol=1e-14)
    np.testing.assert_allclose(X[:, 2] + 1j * X[:, 3], 2.5 * np.exp(1j * v), atol=1e-14)


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


def test_clouds_need_a_dimension_each():
    with pytest.raises(ValueError, match="n_labels=4 but dim=3"):
        datasets.gaussian_clouds(10, n_labels=4, dim=3)


def test_roll_points_are_at_their_flat_coordinates():
    X, flat = datasets.swiss_roll(300, rng=0)
    x = np.hypot(X[:, 0], X[:, 2])  # the radius of the spiral is its angle
    np.testing.assert_allclose(X[:, 0] + 1j * X[:, 2], x * np.exp(1j * x), atol=1e-12)
    steps = np.linspace(6, x, 20_001, axis=1)
    lengths = trapezoid(np.sqrt(1 + steps**2), steps, axis=1)
    np.testing.assert_allclose(flat[:, 0], lengths, rtol=1e-7)
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
    length = 144.5  # of the spiral from 6 to 18
    assert 0 <= arcs[0] <= arcs[-1] <= length
    assert 6 <= heights[0] <= heights[-1] <= 12


def test_uniform_roll_inverts_the_arc_length():
    X, flat = datasets.swiss_roll(500, mesh="uniform")
    x = np.hypot(X[:, 0], X[:, 2])
    length = (x * np.sqrt(1 + x**2) + np.log(x + np.sqrt(1 + x**2))) / 2
    start = (6 * np.sqrt(37) + np.log(6 + np.sqrt(37))) / 2
    np.testing.assert_allclose(length - start, flat[:, 0], atol=1e-11)


def test_roll_noise_has_its_standard_deviation():
    noisy, flat = datasets.swiss_roll(20_000, noise=0.5, mesh="uniform", rng=0)
    clean, _ = datasets.swiss_roll(20_000, mesh="uniform")
    deviation = noisy - clean
    # Relative error of the deviation of 60,000 normal numbers: 0.003; six of them.
    assert abs(deviation.std() / 0.5 - 1) < 0.018
    np.testing.assert_array_equal(flat[:, 1], clean[:, 1])


def test_unknown_mesh_is_refused():
    with pytest.raises(ValueError, match="mesh='hexagonal'"):
        datasets.swiss_roll(10, mesh="hexagonal")


def test_digits_are_grey_values_of_all_ten_digits():
    X, label = datasets.digits()
    assert X.shape == (1797, 64)
    assert (X.min(), X.max()) == (0, 16)
    assert set(label.tolist()) == set(range(10))


# Pictures that turn


def squared_distances(X):
    return np.square(X[:, None] - X).sum(axis=2)


@pytest.mark.parametrize(("n", "size"), [(4, 9), (20, 65), (24, 64), (200, 33)])
def test_pacman_after_a_quarter_turn_is_the_turned_image(n, size):
    X, _ = datasets.pacman(n, size)
    images = X.reshape(n, size, size)
    turned = np.rot90(images, axes=(1, 2))
    np.testing.assert_array_equal(np.roll(images, -n // 4, axis=0), turned)


def test_pacman_is_a_closed_loop():
    # The first and the last image differ like any two that follow each other, and distances do not
    # change under quarter turns.
    D = squared_distances(datasets.pacman(40, 33)[0])
    np.testing.assert_array_equal(D, np.roll(D, (10, 10), axis=(0, 1)))
    steps = np.diagonal(np.roll(D, 1, axis=1))
    swept = (0.4 * 33) ** 2 * np.pi / 20  # two edges of the mouth, r²θ/2 each
    assert abs(steps.mean() / 255**2 / swept - 1) < 0.1
    assert D[0, 1:].min() == min(D[0, 1], D[0, -1])


@pytest.mark.parametrize("size", [64, 65])
def test_pacman_is_a_disc_less_a_wedge_in_his_direction(size):
    X, angle = datasets.pacman(7, size)
    assert set(np.unique(X)) == {0, 255}
    ticks = np.arange(size) - (size - 1) / 2
    z = ticks[None, :] - 1j * ticks[:, None]
    for image, direction in zip(X.reshape(7, size, size), angle, strict=True):
        inside = np.abs(z) <= 0.4 * size
        mouth = np.abs(np.angle(z * np.exp(-1j * direction))) < np.pi / 6
        off_edge = np.abs(np.abs(np.angle(z * np.exp(-1j * direction))) - np.pi / 6) > 1e-9
        expected = 255 * (inside & ~mouth)
        np.testing.assert_array_equal(image[off_edge & (z != 0)], expected[off_edge & (z != 0)])


def test_pacman_has_the_area_of_his_formula():
    X, _ = datasets.pacman(3, 401)
    area = 5 / 6 * np.pi * (0.4 * 401) ** 2
    np.testing.assert_allclose(X.sum(axis=1) / 255, area, rtol=0.01)


def blob(size, angle):
    """A smooth picture that is known everywhere: two bells, one off the centre, turned."""
    ticks = np.arange(size) - (size - 1) / 2
    z = (ticks[None, :] - 1j * ticks[:, None]) * np.exp(-1j * angle) / size
    return np.exp(-120 * np.abs(z - 0.15 - 0.05j) ** 2) + np.exp(-90 * np.abs(z + 0.1j) ** 2)


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 2.0, np.pi, 5.0])
def test_a_turned_picture_is_the_picture_at_turned_places(angle):
    turned = pictures._turned(blob(61, 0), [angle]).reshape(61, 61)
    ticks = np.arange(61) - 30
    disc = ticks**2 + ticks[:, None] ** 2 <= 30**2
    # Cubic splines: an error of h⁴ f⁗ / 384 in each direction and some; 7e-8 × 12 × 120² / 384,
    # 3e-5, here with h = 1/61.
    np.testing.assert_allclose(turned[disc], blob(61, angle)[disc], atol=2e-4)
    assert not turned[~disc].any()


def test_half_a_turn_more_is_the_picture_upside_down():
    angles = np.array([0.4, 1.9])
    once = pictures._turned(pictures._temple(40), angles)
    more = pictures._turned(pictures._temple(40), angles + np.pi)
    np.testing.assert_allclose(more, once[:, ::-1], atol=1e-3)


def test_turning_keeps_the_norm_of_the_picture():
    X, angle = datasets.rotated_picture(60, 80, rng=0)
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() < 1.01 * norms.min()
    assert angle.min() >= 0
    assert angle.max() < 2 * np.pi
    np.testing.assert_array_equal(X, pictures._turned(pictures._temple(80), angle))


def test_half_a_turn_brings_the_picture_nearer_than_a_third():
    X = pictures._turned(pictures._temple(64), np.deg2rad([0, 75, 105, 120, 180, 240]))
    distances = np.linalg.norm(X - X[0], axis=1)
    assert distances[4] < 0.95 * distances[[1, 2, 3, 5]].min()


def test_sizes_of_pictures_are_checked(monkeypatch):
    with pytest.raises(ValueError, match="size=2 is out of range"):
        datasets.pacman(4, 2)
    with pytest.raises(ValueError, match="size=501 is out of range"):
        datasets.rotated_picture(4, 501)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        datasets.rotated_picture(4)


# MNIST


def idx(magic, shape, content):
    return struct.pack(f">I{len(shape)}I", magic, *shape) + bytes(content)


def images(n, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (n, 28, 28), dtype=np.uint8)
    return pixels, idx(0x803, (n, 28, 28), pixels.tobytes())


def write_pair(folder, prefix="t10k", n=3, packed=False, seed=0):
    pixels, content = images(n, seed)
    label = np.arange(n, dtype=np.uint8) + seed
    files = {"images-idx3": content, "labels-idx1": idx(0x801, (n,), label.tobytes())}
    for kind, data in files.items():
        path = folder / f"{prefix}-{kind}-ubyte{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data) if packed else data)
    return pixels.reshape(n, 784), label


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_reads_what_was_written(tmp_path, packed):
    pixels, label = write_pair(tmp_path, packed=packed)
    X, y = datasets.mnist(tmp_path)
    assert (X.dtype, y.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(X, pixels)
    np.testing.assert_array_equal(y, label)


def test_mnist_all_is_train_then_test(tmp_path):
    test, _ = write_pair(tmp_path, "t10k", n=2)
    train, _ = write_pair(tmp_path, "train", n=3, packed=True, seed=5)
    X, y = datasets.mnist(tmp_path, part="all")
    np.testing.assert_array_equal(X, np.vstack([train, test]))
    assert y.tolist() == [5, 6, 7, 0, 1]
    np.testing.assert_array_equal(datasets.mnist(tmp_path, part="train")[0], train)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        datasets.mnist(tmp_path, part="train")
    with pytest.raises(ValueError, match="part='valid'"):
        datasets.mnist(tmp_path, part="valid")


WHOLE = images(3)[1]
DAMAGED = {
    "empty": b"",
    "other magic number": b"\x00\x00\x0d\x03" + WHOLE[4:],
    "cut in the header": WHOLE[:10],
    "cut in the pixels": WHOLE[:-1],
    "longer than declared": WHOLE + b"\x00",
    "claims terabytes": idx(0x803, (2**31, 28, 28), WHOLE[16:]),
    "claims more than integers hold": idx(0x803, (2**32 - 1,) * 3, b""),
    "other picture size": idx(0x803, (3, 28, 27), WHOLE[16 : 16 + 3 * 28 * 27]),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_images_are_refused_by_name(tmp_path, damage, packed):
    write_pair(tmp_path, packed=packed)
    path = tmp_path / f"t10k-images-idx3-ubyte{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(DAMAGED[damage]) if packed else DAMAGED[damage])
    with pytest.raises(ValueError, match="t10k-images-idx3-ubyte"):
        datasets.mnist(tmp_path)


def test_damaged_gzip_is_refused_by_name(tmp_path):
    write_pair(tmp_path, packed=True)
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for content in (whole[:-20], b"no gzip file", whole[:40] + b"\xff" * 40 + whole[80:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte\.gz"):
            datasets.mnist(tmp_path)


def test_images_and_labels_must_agree_in_number(tmp_path):
    write_pair(tmp_path, n=3)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(0x801, (2,), [1, 2]))
    with pytest.raises(ValueError, match=r"3 images.*2 labels"):
        datasets.mnist(tmp_path)
