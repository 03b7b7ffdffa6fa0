"""heatsketch score: it confirms what `embed` printed, and takes from the file what was recorded."""

import json
from pathlib import Path

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli, io
from problems.clouds import cloud, even_circle

X = cloud(90, 3, seed=1)
CASES = {  # points or affinities, and options
    "knn": (X, ""),
    "dense": (X, "--affinity dense --epsilon 1 --normalization symmetric"),
    "radius": (X, "--affinity radius --epsilon 0.5"),
    "cosine": (X, "--metric cosine"),
    "heat": (X, "--filter heat --time 2.5"),
    "bistochastic": (X, "--normalization bistochastic --time 3 --n-neighbors 7"),
    "duplicates": (np.vstack([X[:20], X]), ""),
    "gaps": (np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X), "--missing keep"),
    "given": (hs.gaussian_affinity(X, epsilon=1.0), "--affinity precomputed --alpha 0.5"),
}


@pytest.fixture
def score(run):
    """Run `score --json` and return its facts."""
    return lambda *words: json.loads(run("score", *words, "--json").out)


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, X)
    return path


@pytest.mark.parametrize("case", CASES)
def test_score_confirms_what_embed_printed(run, case):
    values, given = CASES[case]
    np.save("points.npy", values)
    said = run("embed", "points.npy", "-o", "map.npz", *given.split()).lines
    found = run("score", "points.npy", "map.npz")
    if said.get("layout") == "free":  # whose worst pairs are not put first
        assert found.lines["distances"].startswith(said["distances"] + ";")
    else:
        assert said["distances"].startswith(found.lines["distances"])
    assert "; log L " in found.lines["distances"]
    assert "recorded in the file of the embedding" in found.lines["time"]
    assert found.lines["pairs"].endswith(": all pairs (seed 0)")
    assert found.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(("time", "sample"), [(1, "points"), (500, "pairs")])
def test_score_confirms_what_embed_printed_of_many_points(run, time, sample):
    np.save("points.npy", hs.datasets.swiss_roll(2500, rng=0)[0])
    said = run("embed", "points.npy", "-o", "map.csv", "--time", time).lines
    found = run("score", "points.npy", "map.csv", "--time", time).lines
    assert found["distances"].startswith(said["distances"])
    assert f"random {sample} + the 64" in found["pairs"]


def test_score_of_time_0_needs_a_time_that_is_given(points, run):
    """Eigenvectors alone: at time 0 itself no distance says anything of the data."""
    run("embed", points, "-o", "map.npz", "--method", "diffusion-map", "--time", 0)
    (line,) = run("score", points, "map.npz", code=1).err.splitlines()
    assert "was made at time 0" in line
    assert "pass --time" in line
    said = run("score", points, "map.npz", "--time", 4)
    assert said.lines["time"] == "4 (given)"
    assert "time 4 instead of 0" in said.err


def test_embed_records_what_was_done(points, run):
    run("embed", points, "-o", "map.npz", "--n-neighbors", 9, "--random-state", 3)
    metadata = io.read_table("map.npz").metadata
    model = hs.HeatEmbedding(n_neighbors=9, random_state=3).fit(np.load(points))
    assert metadata["method"] == "heat-embedding"
    assert metadata["version"] == hs.__version__
    assert metadata["time"] == model.time_
    assert metadata["parameters"] == model.get_params()
    assert metadata["data"] == io.data_hash(np.load(points))


def test_given_options_win_and_are_named(points, run):
    out, plain = "map.npz", "plain.npy"
    run("embed", points, "-o", out, "--time", 4)
    found = run("score", points, out, "--time", 8, "--n-neighbors", 15)
    assert found.lines["time"] == "8 (given)"
    assert "time 8 instead of 4" in found.err
    assert "n_neighbors" not in found.err  # the same as recorded
    np.save(plain, io.read_table(out).values)
    expected = run("score", points, plain, "--time", 8)
    assert expected.err == ""
    assert found.lines["distances"] == expected.lines["distances"]


def test_score_without_a_recorded_time_takes_that_of_heat_embedding(points, run):
    time = hs.HeatEmbedding().fit(np.load(points)).time_
    run("embed", points, "-o", "map.npz", "--method", "pca")
    for embedding in (points, "map.npz"):  # of unknown making; without a diffusion
        said = run("score", points, embedding).lines["time"]
        assert said == f"{time:g} (that of heat-embedding in 2 and 3 dimensions)"


def test_score_notices_other_points_and_several_times(points, circle, run):
    run("embed", points, "-o", "map.npz", "--method", "heat-sketch", "--time", "2,4")
    assert "coordinates of 2 times" in run("score", points, "map.npz", code=1).err
    run("embed", points, "-o", "map.npz", "--time", 2, "--force")
    np.save("other.npy", cloud(90, 3, seed=2))
    said = run("score", "other.npy", "map.npz")
    assert "was made from other numbers than those in" in said.err
    assert "has 90 rows but" in run("score", circle, "map.npz", code=1).err


@pytest.mark.parametrize(
    "recorded",
    [
        *({"time": time} for time in ("soon", True, [1], -1, 1e400, None)),
        *({"reading": x} for x in (5, [], {"features": 5}, {"sep": []}, {"missing": [1]})),
        *({"reading": {name: "x"}, "columns": 5} for name in ("key", "header", "a")),
    ],
)
def test_what_is_recorded_is_not_believed(points, tmp_path, capsys, recorded):
    made = {"parameters": {"affinity": "knn"}, "time": 4} | recorded
    table = io.read_table(points)
    io.write_table(tmp_path / "map.npz", np.load(points), "abc", table, metadata=made)
    code = cli.main(["score", str(points), str(tmp_path / "map.npz")])
    assert code == 1 or (code == 0 and "reading" in recorded)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_score_of_any_file_of_the_embedding_is_the_same(run, score, dtype):
    points, made = "points.npy", ("--metadata", "made.json")
    np.save(points, cloud(90, 3, seed=1).astype(dtype))
    run("embed", points, "-o", "a.npz")
    expected = score(points, "a.npz")
    assert (expected["looked_at"], expected["n_pairs"]) == ("all pairs", 90 * 89 // 2)
    for name, key, given in (
        ("a.csv", (), made),
        ("a.npy", (), made),
        ("a.h5ad", (), ()),
        ("b.h5ad", ("--output-key", "mine"), ("--embedding-key", "obsm/mine")),
    ):
        run("embed", points, "-o", name, *made, *key, "--force")
        assert score(points, name, *given) == expected


def test_score_joins_points_by_their_ids_and_names_the_worst_by_them(clouds, run, score):
    out, moved = "out.csv", "moved.csv"
    made = ("--label", "z", "--metadata", "made.json")
    run("embed", clouds, "-o", out, *made)
    header, *rows = Path(out).read_text().splitlines()
    Path(moved).write_text("\n".join([header, *rows[::-1]]))
    facts, said = score(clouds, out, *made), run("score", clouds, out, *made).lines
    assert score(clouds, moved, *made) == facts
    for end in ("expansion", "contraction"):
        i, j = facts["worst_pairs"][end][0]
        assert said[end] == f"{facts[end]:.4g} (points p{i} and p{j})"
    for kept, message in (([*rows, rows[1]], "several points 'p1'"), (rows[1:], "no point 'p0'")):
        Path(moved).write_text("\n".join([header, *kept]))
        assert f"has {message}" in run("score", clouds, moved, code=1).err


def test_score_of_many_points_says_where_it_looked(run, score, limits):
    limits(all_pairs=500)
    X = even_circle(600)
    Y = X.copy()
    Y[3] = Y[303]  # an opposite one in the same place
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    given = ("X.npy", "Y.npy", "--time", 4, "--pairs", 5000)
    facts = score(*given)
    assert facts["log_L"] is None  # infinite
    assert sorted(facts["worst_pairs"]["contraction"][0]) == [3, 303]
    assert facts["looked_at"] != "all pairs"
    assert run("score", *given).lines["pairs"].endswith(f": {facts['looked_at']} (seed 0)")
