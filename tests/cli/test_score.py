"""heatsketch score: it confirms what `embed` printed, and takes from the file what was recorded."""

import json

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import io
from problems.clouds import cloud, even_circle

pytest.importorskip("pyarrow")

GRAPHS = {
    "knn": (),
    "dense": ("--affinity", "dense", "--epsilon", 1.0, "--normalization", "symmetric"),
    "radius": ("--affinity", "radius", "--epsilon", 0.5),
    "cosine": ("--metric", "cosine"),
    "heat": ("--filter", "heat", "--time", 2.5),
    "bistochastic": ("--normalization", "bistochastic", "--time", 3, "--n-neighbors", 7),
}


@pytest.fixture
def score(run):
    """Run `score --json` and return its facts."""
    return lambda *words: json.loads(run("score", *words, "--json").out)


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, cloud(90, 3, seed=1))
    return path


@pytest.mark.parametrize(
    ("graph", "suffix"), [*((graph, ".npz") for graph in GRAPHS), ("knn", ".npy"), ("knn", ".csv")]
)
def test_score_confirms_what_embed_printed(points, tmp_path, run, graph, suffix):
    out = tmp_path / f"map{suffix}"
    made = () if suffix == ".npz" else ("--metadata", tmp_path / "made.json")
    said = run("embed", points, "-o", out, *GRAPHS[graph], *made).lines
    found = run("score", points, out, *made)
    assert said["distances"].startswith(found.lines["distances"])
    assert "; log L " in found.lines["distances"]
    assert "recorded in the file of the embedding" in found.lines["time"]
    assert found.err == ""


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: np.vstack([cloud(90, 3, seed=1)[:20], cloud(90, 3, seed=1)]), ()),
        (
            lambda: hs.gaussian_affinity(cloud(60, 2, seed=1), epsilon=1.0),
            ("--affinity", "precomputed", "--alpha", 0.5),
        ),
    ],
    ids=["duplicates", "affinity"],
)
def test_score_confirms_what_embed_printed_of_other_inputs(tmp_path, run, make, given):
    files = tmp_path / "points.npy", tmp_path / "map.npz"
    np.save(files[0], make())
    said = run("embed", files[0], "-o", files[1], *given).lines
    found = run("score", *files).lines
    assert said["distances"].startswith(found["distances"])
    assert found["pairs"].endswith(f"among all {len(make())} points")


@pytest.mark.slow
@pytest.mark.parametrize(("time", "sample"), [(1, "points"), (4, "pairs"), (500, "pairs")])
def test_score_confirms_what_embed_printed_of_many_points(tmp_path, run, time, sample):
    files = tmp_path / "points.npy", tmp_path / "map.csv"
    np.save(files[0], hs.datasets.swiss_roll(2500, rng=0)[0])
    said = run("embed", files[0], "-o", files[1], "--time", time).lines
    found = run("score", *files, "--time", time).lines
    assert said["distances"].startswith(found["distances"])
    assert f"random {sample} + the 64" in found["pairs"]


def test_score_of_time_0_needs_a_time_that_is_given(points, tmp_path, run):
    """Eigenvectors alone: at time 0 itself no distance says anything of the data."""
    out = tmp_path / "map.npz"
    run("embed", points, "-o", out, "--method", "diffusion-map", "--time", 0)
    (line,) = run("score", points, out, code=1).err.splitlines()
    assert "was made at time 0" in line
    assert "pass --time" in line
    said = run("score", points, out, "--time", 4)
    assert said.lines["time"] == "4 (given)"
    assert "time 4 instead of 0" in said.err


def test_score_of_float32_in_text_is_that_in_an_array(tmp_path, run, score):
    points, made = tmp_path / "points.npy", ("--metadata", tmp_path / "made.json")
    np.save(points, cloud(90, 3, seed=1).astype(np.float32))
    run("embed", points, "-o", tmp_path / "map.npz")
    run("embed", points, "-o", tmp_path / "map.csv", *made)
    found = score(points, tmp_path / "map.npz")
    assert found == score(points, tmp_path / "map.csv", *made)


def test_embed_records_what_was_done(points, tmp_path, run):
    out = tmp_path / "map.npz"
    run("embed", points, "-o", out, "--n-neighbors", 9, "--random-state", 3)
    metadata = io.read_table(out).metadata
    model = hs.HeatEmbedding(n_neighbors=9, random_state=3).fit(np.load(points))
    assert metadata["method"] == "heat-embedding"
    assert metadata["version"] == hs.__version__
    assert metadata["time"] == model.time_
    assert metadata["parameters"] == model.get_params()
    assert metadata["data"] == io.data_hash(np.load(points))


def test_given_options_win_and_are_named(points, tmp_path, run):
    out, plain = tmp_path / "map.npz", tmp_path / "plain.npy"
    run("embed", points, "-o", out, "--time", 4)
    found = run("score", points, out, "--time", 8, "--n-neighbors", 15)
    assert found.lines["time"] == "8 (given)"
    assert "time 8 instead of 4" in found.err
    assert "n_neighbors" not in found.err  # the same as recorded
    np.save(plain, io.read_table(out).values)
    expected = run("score", points, plain, "--time", 8)
    assert expected.err == ""
    assert found.lines["distances"] == expected.lines["distances"]


def test_score_without_a_recorded_time_takes_that_of_heat_embedding(points, tmp_path, run):
    time = hs.HeatEmbedding(random_state=0).fit(np.load(points)).time_
    run("embed", points, "-o", tmp_path / "map.npz", "--method", "pca")
    for embedding in (points, tmp_path / "map.npz"):  # of unknown making; without a diffusion
        said = run("score", points, embedding).lines["time"]
        assert said == f"{time:g} (chosen as heat-embedding does)"


def test_score_notices_other_points_and_several_times(points, circle, tmp_path, run):
    out = tmp_path / "map.npz"
    run("embed", points, "-o", out, "--method", "heat-sketch", "--time", "2,4")
    assert "coordinates of 2 times" in run("score", points, out, code=1).err
    run("embed", points, "-o", out, "--time", 2, "--force")
    np.save(tmp_path / "other.npy", cloud(90, 3, seed=2))
    said = run("score", tmp_path / "other.npy", out)
    assert "was not made from the numbers in" in said.err
    assert "has 90 rows but" in run("score", circle, out, code=1).err


@pytest.mark.parametrize("time", ["soon", True, [1], -1, 1e400, None])
def test_recorded_times_are_not_believed(points, tmp_path, run, time):
    made = {"parameters": {"affinity": "knn"}, "time": time}
    table = io.read_table(points)
    io.write_table(tmp_path / "map.npz", np.load(points), "abc", table, metadata=made)
    assert "Traceback" not in run("score", points, tmp_path / "map.npz", code=1).err


def test_score_of_a_complete_diffusion_map_finds_no_distortion(circle, tmp_path, run, score):
    out = tmp_path / "out.npy"
    graph = ("--affinity", "dense", "--epsilon", 0.1, "--filter", "power", "--time")
    options = ("--method", "diffusion-map", "--n-components", 40)
    run("embed", circle, "-o", out, *options, *graph, 4)
    facts = score(circle, out, *graph, 4)
    # Eigenvalues are about exp(-0.025 m²), m = 1, 2, ...: of what m > 20 adds nothing is left.
    assert facts["log_L"] < 1e-4
    assert facts["pairs"] == 80 * 79 // 2
    assert facts["all_pairs"]
    assert score(circle, out, *graph, 40)["log_L"] > 0.01


def test_score_of_an_affinity_is_that_of_its_points_at_any_scale(circle, tmp_path, score):
    X, K, large = np.load(circle), tmp_path / "K.npy", tmp_path / "large.npy"
    np.save(K, hs.gaussian_affinity(X, epsilon=0.1))
    np.save(large, 100 * X)
    made = score(circle, circle, "--affinity", "dense", "--epsilon", 0.1)
    assert made["log_L"] > 0
    given = score(K, circle, "--affinity", "precomputed")
    assert given["log_L"] == pytest.approx(made["log_L"], rel=1e-6)
    scaled = score(circle, large, "--affinity", "dense", "--epsilon", 0.1)
    assert scaled["log_L"] == pytest.approx(made["log_L"], rel=1e-9)


def test_score_ignores_id_and_label_columns_of_the_embedding(clouds, tmp_path, run, score):
    found = []
    for name in ("out.csv", "out.npy"):
        run("embed", clouds, "-o", tmp_path / name, "--label", "z")
        found.append(score(clouds, tmp_path / name, "--label", "z")["log_L"])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_score_finds_an_embedding_in_h5ad_by_its_key(circle, tmp_path, run, score):
    pytest.importorskip("anndata")
    made = ("--metadata", tmp_path / "made.json")
    run("embed", circle, "-o", tmp_path / "a.npy", *made)
    run("embed", circle, "-o", tmp_path / "a.h5ad")
    run("embed", circle, "-o", tmp_path / "b.h5ad", "--output-key", "mine")
    expected = score(circle, tmp_path / "a.npy", *made)
    assert score(circle, tmp_path / "a.h5ad") == expected
    assert score(circle, tmp_path / "b.h5ad", "--embedding-key", "obsm/mine") == expected


def test_score_of_many_points_finds_a_collision_and_says_where_it_looked(tmp_path, run, score):
    X = even_circle(2100)
    Y = X.copy()
    Y[3] = Y[1053]  # an opposite one in the same place
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    given = (tmp_path / "X.npy", tmp_path / "Y.npy", "--time", 4, "--pairs", 5000)
    facts = score(*given)
    assert facts["log_L"] is None  # infinite
    assert sorted(facts["worst_pairs"]["contraction"][0]) == [3, 1053]
    assert 5000 + 32 < facts["pairs"] <= 5000 + 64  # random pairs, and extremes
    assert not facts["all_pairs"]
    assert "10,500 nearest in the embedding" in facts["looked_at"]
    assert run("score", *given).lines["pairs"] == f"{facts['looked_at']} (seed 0)"


def test_score_names_worst_pairs_by_their_ids(clouds, tmp_path, run, score):
    out = tmp_path / "out.csv"
    run("embed", clouds, "-o", out)
    facts, said = score(clouds, out), run("score", clouds, out).lines
    for end in ("expansion", "contraction"):
        i, j = facts["worst_pairs"][end][0]
        assert said[end] == f"{facts[end]:.4g} (points p{i} and p{j})"
