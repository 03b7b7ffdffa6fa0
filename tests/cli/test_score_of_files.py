"""`score` of files in all formats, of few points and many."""

import json

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from problems.clouds import even_circle

# Ours become lines, which tests read.
pytestmark = pytest.mark.filterwarnings("default::UserWarning")

pytest.importorskip("pyarrow")


def exit_code(*arguments):
    return cli.main([str(argument) for argument in arguments])


def score(capsys, *arguments):
    capsys.readouterr()
    assert exit_code("score", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_complete_diffusion_map_has_no_distortion(circle, tmp_path, capsys):
    out = tmp_path / "out.npy"
    graph = ("--affinity", "dense", "--epsilon", 0.1, "--filter", "power", "--time", 4)
    options = ("--method", "diffusion-map", "--n-components", 40)
    assert exit_code("embed", circle, "-o", out, *options, *graph) == 0
    facts = score(capsys, circle, out, *graph)
    # Eigenvalues are about exp(-0.025 m²), m = 1, 2, ...: of what m > 20 adds nothing is left.
    assert facts["log_L"] < 1e-4
    assert facts["pairs"] == 80 * 79 // 2
    assert facts["all_pairs"]
    other_time = score(capsys, circle, out, *graph[:6], "--time", 40)
    assert other_time["log_L"] > 0.01


def test_a_precomputed_affinity_scores_like_its_points(circle, tmp_path, capsys):
    X = np.load(circle)
    np.save(tmp_path / "K.npy", hs.gaussian_affinity(X, epsilon=0.1))
    given = score(capsys, tmp_path / "K.npy", circle, "--affinity", "precomputed")
    made = score(capsys, circle, circle, "--affinity", "dense", "--epsilon", 0.1)
    assert given["log_L"] == pytest.approx(made["log_L"], rel=1e-6)


def test_score_does_not_depend_on_the_scale_of_the_embedding(circle, tmp_path, capsys):
    X = np.load(circle)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", 100 * X)
    first, second = (score(capsys, circle, tmp_path / f"{name}.npy") for name in "ab")
    assert first["log_L"] == pytest.approx(second["log_L"], rel=1e-9)
    assert second["log_L"] > 0


def test_score_ignores_id_and_label_columns_of_the_embedding(clouds, tmp_path, capsys):
    exit_code("embed", clouds, "-o", tmp_path / "out.csv", "--label", "z", "-q")
    exit_code("embed", clouds, "-o", tmp_path / "out.npy", "--label", "z", "-q")
    with_columns = score(capsys, clouds, tmp_path / "out.csv", "--label", "z", "-q")
    without = score(capsys, clouds, tmp_path / "out.npy", "--label", "z", "-q")
    assert with_columns["log_L"] == pytest.approx(without["log_L"], rel=1e-6)


def test_an_embedding_in_h5ad_is_found_by_its_key(circle, tmp_path, capsys):
    pytest.importorskip("h5py")
    made = ("--metadata", tmp_path / "made.json")
    assert exit_code("embed", circle, "-o", tmp_path / "a.npy", *made) == 0
    assert exit_code("embed", circle, "-o", tmp_path / "a.h5ad") == 0
    assert exit_code("embed", circle, "-o", tmp_path / "b.h5ad", "--output-key", "mine") == 0
    expected = score(capsys, circle, tmp_path / "a.npy", *made)
    assert score(capsys, circle, tmp_path / "a.h5ad") == expected
    assert score(capsys, circle, tmp_path / "b.h5ad", "--embedding-key", "obsm/mine") == expected


def test_score_of_other_rows_is_refused(circle, clouds, capsys):
    assert exit_code("score", circle, clouds) == 1
    assert "has 60 rows but" in capsys.readouterr().err


def test_score_in_words_says_which_pairs(circle, capsys):
    assert exit_code("score", circle, circle, "--pairs", 50) == 0  # few points: all pairs anyway
    assert "3,160 pairs among all 80 points" in capsys.readouterr().out


@pytest.fixture
def torn_circle(tmp_path):
    """Files of 2,100 points on a circle, and of the same with two opposite ones in one place."""
    X = even_circle(2100)
    Y = X.copy()
    Y[3] = Y[1053]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    return tmp_path / "X.npy", tmp_path / "Y.npy"


def test_score_of_many_points_finds_a_collision_and_says_where_it_looked(torn_circle, capsys):
    facts = score(capsys, *torn_circle, "--time", 4, "--pairs", 5000)
    assert facts["log_L"] is None  # infinite
    assert sorted(facts["worst_pairs"]["contraction"][0]) == [3, 1053]
    assert 5050 + 32 < facts["pairs"] <= 5050 + 64  # all pairs of 101 points, and extremes
    assert not facts["all_pairs"]
    assert "10,500 nearest in the embedding" in facts["looked_at"]
    assert exit_code("score", *torn_circle, "--time", 4, "--pairs", 5000) == 0
    assert f"{facts['looked_at']} (seed 0)" in capsys.readouterr().out


def test_worst_pairs_are_told_of_by_their_ids(clouds, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert exit_code("embed", clouds, "-o", out) == 0
    facts = score(capsys, clouds, out)
    assert exit_code("score", clouds, out) == 0
    said = capsys.readouterr().out
    for end in ("expansion", "contraction"):
        i, j = facts["worst_pairs"][end][0]
        assert f"{end:<12} {facts[end]:.4g} (points p{i} and p{j})" in said
