"""The figures of *Linear and nonlinear dimensionality reduction*."""

import csv
import gzip
import math
import struct

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.special import rel_entr
from threadpoolctl import threadpool_limits

from heatsketch import datasets
from papers.notes import data, diffusion, graphs, measures
from papers.notes.figures import NOTES, run_notes
from papers.output import random

pytest.importorskip("matplotlib")

SMALL = {
    "notes-1": {"points": 200},
    "notes-2": {"points": 120},
    "notes-3": {"points": 200},
    "notes-4": {"points": 100},
    "notes-5": {"digits": 120, "perplexity": 10},
    "notes-6": {"points": 200},
    "notes-7": {"points": 200},
    "notes-8": {"points": 150},
    "notes-9": {"images": 60, "size": 33},
    "notes-10": {"images": 80, "size": 60},
    "notes-crowding": {"digits": 60, "perplexity": 10},
}


@pytest.fixture(autouse=True)
def one_thread():
    """As `run_notes` runs them; small problems are also faster so."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def mnist_folder(tmp_path_factory):
    """Ten kinds of noisy images in place of the digits."""
    folder = tmp_path_factory.mktemp("mnist")
    rng = np.random.default_rng(0)
    label = rng.integers(10, size=150).astype(np.uint8)
    means = rng.integers(0, 200, (10, 28, 28))
    images = (means[label] + rng.integers(0, 50, (150, 28, 28))).astype(np.uint8)
    for kind, magic, content in (("images-idx3", 0x803, images), ("labels-idx1", 0x801, label)):
        head = struct.pack(f">{1 + content.ndim}I", magic, *content.shape)
        path = folder / f"t10k-{kind}-ubyte.gz"
        path.write_bytes(gzip.compress(head + content.tobytes()))
    X, y = data.mnist(folder)
    assert (X.dtype, y.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(X, images.reshape(150, 784))
    np.testing.assert_array_equal(y, label)
    return folder


@pytest.fixture
def small(monkeypatch):
    """All figures with few points."""
    for name, sizes in SMALL.items():
        figure = NOTES[name]
        monkeypatch.setitem(NOTES, name, figure._replace(sizes=figure.sizes | sizes))


def by_name(rows):
    return {row.quantity: row.value for row in rows}


# Measures


@pytest.mark.parametrize("turns", [1, -1, 2, -3])
def test_a_curve_that_winds_k_times_has_winding_number_k(turns):
    rng = np.random.default_rng(1)
    angle = rng.permutation(200) / 200 * 2 * np.pi
    radius = 1 + 0.3 * np.cos(3 * angle)
    Y = np.column_stack([radius * np.cos(turns * angle), radius * np.sin(turns * angle)])
    assert measures.winding(Y, angle) == (turns, 1.0)


def test_steps_back_are_counted():
    # Every fourth point lies two places behind: two of its four steps go back.
    angle = np.arange(400) / 400 * 2 * np.pi
    place = angle - np.where(np.arange(400) % 4 == 3, 2.5 * angle[1], 0)
    number, forward = measures.winding(np.column_stack([np.cos(place), np.sin(place)]), angle)
    assert (number, forward) == (1, 0.75)


def test_pieces_are_counted_and_strays_are_not():
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    Y = np.vstack([grid, grid + np.array([20, 0]), grid + np.array([0, 40]), [[100, 100]]])
    assert measures.pieces(Y) == 3
    assert measures.pieces(7e5 * Y) == 3
    assert measures.pieces(Y, widths=17) == 2


def test_a_quarter_of_an_even_disc_is_in_the_middle_and_more_of_a_normal_law():
    # Points at the quantiles of the radius, the angle turned by the golden section.
    shares, turn = (np.arange(4000) + 0.5) / 4000, np.pi * (3 - 5**0.5) * np.arange(4000)
    direction = np.column_stack([np.cos(turn), np.sin(turn)])
    disc = np.sqrt(shares)[:, None] * direction
    normal = np.sqrt(-2 * np.log1p(-shares))[:, None] * direction
    assert measures.middle_share(disc + np.array([3, -7])) == pytest.approx(1 / 4, abs=1e-3)
    assert measures.middle_share(9 * normal) == pytest.approx(1 - math.exp(-1 / 2), abs=1e-3)


def test_distances_of_groups_are_those_of_a_rectangle():
    corners = np.array([[0.0, 0.0], [0, 1], [10, 0], [10, 1]])
    rows = measures.crowding_rows(corners, np.array([2, 2, 5, 5]), "corners")
    found = list(by_name(rows).values())[1:]
    assert found == pytest.approx([(10 + math.sqrt(101)) / 2, 10])


# Isomap, LLE and t-SNE


def test_a_clean_roll_has_no_shortcuts_and_a_noisy_one_has():
    clean, _ = graphs.isomap(0, points=900, noise=0.0, n_neighbors=8)
    noisy, _ = graphs.isomap(0, points=400, noise=1.5, n_neighbors=8)
    clean, noisy = by_name(clean), by_name(noisy)
    assert clean["edges between windings"] == 0 < noisy["edges between windings"]
    # Chords are shorter than arcs: at 6 and 900 points edges span some 3 of arc at most, and a
    # chord of the innermost winding is then 1 % shorter.
    assert clean["graph over strip distance, smallest"] > 0.97
    assert noisy["graph over strip distance, smallest"] < 0.5
    assert clean["coordinate 1, |Spearman| with arc length"] > 0.99


def test_t_sne_is_exact_from_a_random_start():
    """Its divergence is (18) to rounding, over all pairs; another seed is another start."""
    X = np.random.default_rng(7).normal(size=(100, 3))
    places = []
    for seed in (0, 1):
        model = graphs.printed_t_sne(5, seed).fit(X)
        squares = pdist(model.embedding_, "sqeuclidean")
        q = squareform(1 / (1 + squares))
        p = model.affinities_.toarray()
        assert model.kl_divergence_ == pytest.approx(rel_entr(p, q / q.sum()).sum(), rel=1e-9)
        places.append(squares)
    assert np.abs(places[0] - places[1]).max() > 0.1 * places[0].max()


def test_votes_are_of_the_other_points():
    # Two clusters of one label each, and two points of the other label within each.
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [50, 0]], 30, axis=0)
    label = np.repeat([3, 7], 30)
    label[[0, 1]], label[[30, 31]] = 7, 3
    assert measures.neighbor_accuracy(X, label) == pytest.approx(56 / 60)


# Diffusion maps


def test_the_walk_is_that_of_the_formulas():
    X, _ = datasets.swiss_roll(90, rng=5)
    walk = diffusion.random_walk(X, 0.2)
    squares = np.square(X[:, None] - X).sum(axis=2)
    nearest = np.sort(squares, axis=1)[:, 1]
    assert walk.epsilon == pytest.approx(2 * nearest.mean(), rel=1e-12)
    K = np.exp(-squares / walk.epsilon)
    P = K / K.sum(axis=1, keepdims=True)
    power = np.linalg.matrix_power(P, walk.time)
    np.testing.assert_allclose(walk.power(), power, atol=1e-10)
    pi = K.sum(axis=1) / K.sum()
    diffusion_distances = np.square((power[:, None] - power) / np.sqrt(pi)).sum(axis=2)  # (23)
    all_coordinates = walk.right[:, 1:] * walk.eigenvalues[1:] ** walk.time  # (24)
    found = np.square(all_coordinates[:, None] - all_coordinates).sum(axis=2)
    np.testing.assert_allclose(found, diffusion_distances, atol=1e-9)
    signs = np.sign((walk.embedding * all_coordinates[:, :3]).sum(axis=0))
    np.testing.assert_allclose(walk.embedding, signs * all_coordinates[:, :3], atol=1e-7)


def test_time_is_the_least_that_drops_the_fourth_coordinate():
    X, _ = datasets.swiss_roll(90, rng=6)
    walk = diffusion.random_walk(X, 0.3)
    lam = walk.eigenvalues
    for time, following in ((walk.time, 4), (walk.printed_time, 3)):
        ratio = lam[following] / lam[1]
        assert ratio**time <= 0.3 < ratio ** (time - 1)


def test_another_time_changes_nothing_but_the_lengths_of_the_axes():
    X, _ = datasets.swiss_roll(90, rng=5)
    walk = diffusion.random_walk(X, 0.2)
    later = walk.at(2 * walk.time, alike=walk)
    factors = walk.eigenvalues[1:4] ** walk.time
    np.testing.assert_allclose(later.embedding, walk.embedding * factors, atol=1e-7)
    np.testing.assert_allclose(later.power(), walk.power() @ walk.power(), atol=1e-10)
    turned = walk.at(walk.time, alike=walk._replace(embedding=-walk.embedding))
    np.testing.assert_allclose(turned.embedding, -walk.embedding, atol=1e-7)
    assert later.kept(0.2**2) == walk.kept(0.2) == 3  # (ratio^t)^2 against δ²


def test_a_long_strip_is_mapped_to_cosines_of_its_length():
    rows, _ = diffusion.roll(0, points=600, mesh="uniform", noise=0.0, epsilon=0.77, time=147)
    found = by_name(rows)
    assert found["coordinate 1, |Spearman| with arc length"] > 0.999
    assert found["coordinate 1, |correlation| with cos(1 pi s / L)"] > 0.999
    for m in (1, 2, 3):
        assert found[f"coordinate {m}, |Spearman| with height"] < 0.01
    # The mesh is about 130 long and 6 high: its first function of height has the frequency of
    # cos(22 pi s / 130). Edges are blurred by a spacing of 1.2: 130 / 7.2 to 130 / 4.8.
    assert 18 <= found["eigenvector that follows height most"] <= 30
    assert found["its |Spearman| with height"] > 0.9


def test_pacman_is_mapped_to_a_closed_loop_around_which_the_angle_is_monotone():
    X, angle = data.pacman()
    walk = diffusion.random_walk(X, 0.5)
    number, forward = measures.winding(walk.embedding[:, :2], angle)
    assert abs(number) == 1
    assert forward == 1
    Y = walk.embedding[:, :2]
    steps = np.linalg.norm(Y - np.roll(Y, 1, axis=0), axis=1)
    assert steps[0] < 2 * np.median(steps)  # from the last image to the first as everywhere


def test_the_turned_picture_is_mapped_to_a_double_loop(small):
    rows, _ = diffusion.turning_picture(0, **NOTES["notes-10"].sizes)
    found = by_name(rows)
    assert found["diffusion map, winding number"] == 2
    assert found["half a turn over 30° to 150°, d²"] < 1
    # All principal components have the distances of the images.
    X, _ = data.rotated_picture(80, 60, random(0, diffusion.PICTURE))
    walk = diffusion.random_walk(X.astype(float), 0.2)
    assert walk.epsilon == pytest.approx(found["epsilon"], rel=1e-4)
    for m in range(1, 5):
        assert walk.eigenvalues[m] == pytest.approx(found[f"lambda {m}"], abs=1e-5)


@pytest.mark.parametrize("name", NOTES)
def test_the_table_holds_the_rows(small, tmp_path, name, mnist_folder):
    rows = run_notes(name, tmp_path, mnist=mnist_folder, seed=3)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.csv", f"{name}.png"}
    with (tmp_path / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        head, *lines = csv.reader(stream)
    assert head == ["quantity", "value", "notes"]
    assert [line[0] for line in lines] == [row.quantity for row in rows]
    assert len(by_name(rows)) == len(rows)
    np.testing.assert_array_equal([float(line[1]) for line in lines], [row.value for row in rows])
    np.testing.assert_array_equal([float(line[2]) for line in lines], [row.notes for row in rows])
    assert all(math.isfinite(row.value) for row in rows)
    if name in ("notes-2", "notes-8", "notes-10"):
        assert rows == run_notes(name, tmp_path, seed=3)
