"""What `embed` records, and that `score` takes it from there."""

import json

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import io
from heatsketch.cli import main
from problems.clouds import cloud

# Ours become lines, which tests read.
pytestmark = pytest.mark.filterwarnings("default::UserWarning")

GRAPHS = {
    "knn": (),
    "dense": ("--affinity", "dense", "--epsilon", 1.0, "--normalization", "symmetric"),
    "radius": ("--affinity", "radius", "--epsilon", 0.5),
    "cosine": ("--metric", "cosine"),
    "heat": ("--filter", "heat", "--time", 2.5),
    "bistochastic": ("--normalization", "bistochastic", "--time", 3, "--n-neighbors", 7),
}


def run(*arguments):
    return main([str(argument) for argument in arguments])


def printed(capsys, *arguments):
    """Return the lines that a command prints, by name, and what it writes to stderr."""
    capsys.readouterr()
    assert run(*arguments) == 0
    out, err = capsys.readouterr()
    return {line[:12].strip(): line[13:] for line in out.splitlines()}, err


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, cloud(90, 3, seed=1))
    return path


@pytest.mark.parametrize(
    ("graph", "suffix"), [*((graph, ".npz") for graph in GRAPHS), ("knn", ".npy"), ("knn", ".csv")]
)
def test_score_confirms_what_embed_printed(points, tmp_path, capsys, graph, suffix):
    out = tmp_path / f"map{suffix}"
    made = () if suffix == ".npz" else ("--metadata", tmp_path / "made.json")
    said, _ = printed(capsys, "embed", points, "-o", out, *GRAPHS[graph], *made)
    found, warned = printed(capsys, "score", points, out, *made)
    assert said["distances"].startswith(found["distances"])
    assert "; log L " in found["distances"]
    assert "recorded in the file of the embedding" in found["time"]
    assert warned == ""


def test_embeddings_of_time_0_are_scored_at_a_time_that_is_given(points, tmp_path, capsys):
    """Eigenvectors alone: at time 0 itself no distance says anything of the data."""
    out = tmp_path / "map.npz"
    printed(capsys, "embed", points, "-o", out, "--method", "diffusion-map", "--time", 0)
    assert run("score", points, out) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "was made at time 0" in line
    assert "pass --time" in line
    found, warned = printed(capsys, "score", points, out, "--time", 4)
    assert found["time"] == "4 (given)"
    assert "time 4 instead of 0" in warned


def test_score_confirms_what_embed_printed_of_points_with_duplicates(tmp_path, capsys):
    X = cloud(90, 3, seed=1)
    np.save(tmp_path / "points.npy", np.vstack([X[:20], X]))
    said, _ = printed(capsys, "embed", tmp_path / "points.npy", "-o", tmp_path / "map.npz")
    found, _ = printed(capsys, "score", tmp_path / "points.npy", tmp_path / "map.npz")
    assert said["distances"].startswith(found["distances"])
    assert found["pairs"].endswith("among all 110 points")


@pytest.mark.slow
@pytest.mark.parametrize("time", [4, 500])
def test_score_confirms_what_embed_printed_of_many_points(tmp_path, capsys, time):
    np.save(tmp_path / "points.npy", hs.datasets.swiss_roll(2500, rng=0)[0])
    files = tmp_path / "points.npy", tmp_path / "map.csv"
    said, _ = printed(capsys, "embed", files[0], "-o", files[1], "--time", time)
    found, _ = printed(capsys, "score", *files, "--time", time)
    assert said["distances"].startswith(found["distances"])
    assert ("random pairs" if time == 500 else "random points") in found["pairs"]


def test_score_confirms_the_embedding_of_a_given_affinity(tmp_path, capsys):
    X = cloud(60, 2, seed=1)
    np.save(tmp_path / "K.npy", hs.gaussian_affinity(X, epsilon=1.0))
    files = tmp_path / "K.npy", tmp_path / "map.npz"
    said, _ = printed(
        capsys, "embed", files[0], "-o", files[1], "--affinity", "precomputed", "--alpha", 0.5
    )
    found, _ = printed(capsys, "score", *files)
    assert said["distances"].startswith(found["distances"])


def test_float32_coordinates_in_text_score_as_those_in_an_array(tmp_path, capsys):
    np.save(tmp_path / "points.npy", cloud(90, 3, seed=1).astype(np.float32))
    scores = []
    for name, made in (("map.npz", ()), ("map.csv", ("--metadata", tmp_path / "made.json"))):
        assert run("embed", tmp_path / "points.npy", "-o", tmp_path / name, *made) == 0
        capsys.readouterr()
        assert run("score", tmp_path / "points.npy", tmp_path / name, "--json", *made) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0] == scores[1]


def test_what_is_recorded_is_what_was_done(points, tmp_path):
    out = tmp_path / "map.npz"
    assert run("embed", points, "-o", out, "--n-neighbors", 9, "--random-state", 3) == 0
    metadata = io.read_table(out).metadata
    model = hs.HeatEmbedding(n_neighbors=9, random_state=3).fit(np.load(points))
    assert metadata["method"] == "heat-embedding"
    assert metadata["version"] == hs.__version__
    assert metadata["time"] == model.time_
    assert metadata["parameters"] == model.get_params()
    assert metadata["data"] == io.data_hash(np.load(points))


def test_given_options_win_and_are_named(points, tmp_path, capsys):
    out = tmp_path / "map.npz"
    printed(capsys, "embed", points, "-o", out, "--time", 4)
    found, warned = printed(capsys, "score", points, out, "--time", 8, "--n-neighbors", 15)
    assert found["time"] == "8 (given)"
    assert "time 8 instead of 4" in warned
    assert "n_neighbors" not in warned  # the same as recorded
    plain = tmp_path / "plain.npy"
    np.save(plain, io.read_table(out).values)
    expected, warned = printed(capsys, "score", points, plain, "--time", 8)
    assert warned == ""
    assert found["distances"] == expected["distances"]


def test_an_embedding_of_unknown_making_is_measured_at_the_time_heat_embedding_chooses(
    points, capsys
):
    found, _ = printed(capsys, "score", points, points)
    time = hs.HeatEmbedding(random_state=0).fit(np.load(points)).time_
    assert found["time"] == f"{time:g} (chosen as heat-embedding does)"


def test_methods_without_a_diffusion_leave_the_time_to_choose(points, tmp_path, capsys):
    printed(capsys, "embed", points, "-o", tmp_path / "map.npz", "--method", "pca")
    found, _ = printed(capsys, "score", points, tmp_path / "map.npz")
    assert "chosen as heat-embedding does" in found["time"]


def test_other_points_are_noticed(points, tmp_path, capsys):
    printed(capsys, "embed", points, "-o", tmp_path / "map.npz", "--time", 2)
    np.save(tmp_path / "other.npy", cloud(90, 3, seed=2))
    _, warned = printed(capsys, "score", tmp_path / "other.npy", tmp_path / "map.npz")
    assert "was not made from the numbers in" in warned


def test_several_times_are_refused(points, tmp_path, capsys):
    out = tmp_path / "map.npz"
    printed(capsys, "embed", points, "-o", out, "--method", "heat-sketch", "--time", "2,4")
    assert run("score", points, out) == 1
    assert "coordinates of 2 times side by side" in capsys.readouterr().err


@pytest.mark.parametrize("time", ["soon", True, [1], -1, 1e400, None])
def test_recorded_times_are_not_believed(points, tmp_path, capsys, time):
    Y = np.load(points)
    table = io.read_table(points)
    made = {"parameters": {"affinity": "knn"}, "time": time}
    io.write_table(tmp_path / "map.npz", Y, "abc", table, metadata=made)
    assert run("score", points, tmp_path / "map.npz") == 1
    assert "Traceback" not in capsys.readouterr().err
