"""heatsketch scales, and shares as the number of coordinates."""

import json

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.io import read_table

pytest.importorskip("pyarrow")


@pytest.fixture
def roll(tmp_path):
    path = tmp_path / "roll.npy"
    np.save(path, hs.datasets.swiss_roll(300, rng=0)[0])
    return path


def exit_code(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_scales_print_and_draw_what_the_estimator_chose(roll, tmp_path, capsys):
    assert exit_code("scales", roll, "--json", "-q") == 0
    facts = json.loads(capsys.readouterr().out)
    model = hs.HeatEmbedding(2, random_state=0).fit(read_table(roll).values)
    trace = hs.heat_trace(model.diffusion_, model.time_curve_.times)
    assert facts["time"] == model.time_
    np.testing.assert_allclose(facts["directions"], model.time_curve_.directions)
    np.testing.assert_allclose(facts["effective_rank"], trace.effective_rank)
    pytest.importorskip("matplotlib")
    picture = tmp_path / "scales.png"
    assert exit_code("scales", roll, "--plot", picture, "--n-neighbors", 12) == 0
    printed = capsys.readouterr().out
    assert "<- chosen" in printed
    assert "at most 8 directions" in printed
    assert picture.exists()


def test_scales_of_points_that_do_not_differ_are_an_error(tmp_path, capsys):
    path = tmp_path / "ones.npy"
    np.save(path, np.ones((12, 12)))
    assert exit_code("scales", path, "--affinity", "precomputed", "-q") == 1
    assert "points that differ" in capsys.readouterr().err


def test_a_share_keeps_as_many_coordinates_as_needed(roll, tmp_path, capsys):
    out = tmp_path / "out.npz"
    given = ("--method", "diffusion-map", "--n-components", 0.9, "--time", 64)
    assert exit_code("embed", roll, "-o", out, *given) == 0
    assert "of the diffusion variance" in capsys.readouterr().out
    model = hs.DiffusionMap(0.9, 64).fit(read_table(roll).values)
    assert read_table(out).values.shape == model.embedding_.shape


def test_scales_find_the_dimension_of_a_circle(circle, tmp_path, capsys):
    assert exit_code("scales", circle, "--json", "-q") == 0
    facts = json.loads(capsys.readouterr().out)
    test, nearest = facts["ksum"], facts["nearest_neighbors"]
    assert round(test["dimension"]) == 1
    result = hs.ksum(read_table(circle).values)
    assert (test["epsilon"], test["dimension"]) == (result.epsilon, result.dimension)
    assert round(nearest["dimension"]) == 1
    assert nearest["n_neighbors"] == 15
    pytest.importorskip("matplotlib")
    assert exit_code("scales", circle, "--plot", tmp_path / "slopes.pdf", "-q") == 0
    words = capsys.readouterr().out
    assert f"{test['epsilon']:.6g}" in words
    (largest,) = [line for line in words.splitlines() if line.endswith("<- largest")]
    assert f"{max(test['slopes']):.3f} " in largest
    assert f"{nearest['dimension']:.3g} ± " in words
    assert (tmp_path / "slopes.pdf").read_bytes().startswith(b"%PDF")


def test_scales_say_why_there_is_no_dimension(tmp_path, capsys):
    points = tmp_path / "two.csv"
    points.write_text("x,y\n0,0\n3,4\n0,0\n")
    given = ("--n-components", 1, "--affinity", "dense", "--epsilon", 9, "-q")
    assert exit_code("scales", points, *given, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["nearest_neighbors"] is None
    assert exit_code("scales", points, *given) == 0
    words = capsys.readouterr().out
    assert "dimension 2  none by nearest neighbours: " in words
    assert "nan" not in words


def test_the_ksum_test_sums_as_many_rows_as_asked_for(circle, capsys):
    assert exit_code("scales", circle, "-p", "n_rows=20", "--json", "-q") == 0
    rng = hs.HeatEmbedding().random_state
    want = hs.ksum(read_table(circle).values, n_rows=20, rng=rng)
    assert json.loads(capsys.readouterr().out)["ksum"]["dimension"] == want.dimension
