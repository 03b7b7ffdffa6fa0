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
    np.testing.assert_allclose(facts["shares"], model.time_curve_.shares)
    np.testing.assert_allclose(facts["effective_rank"], trace.effective_rank)
    pytest.importorskip("matplotlib")
    picture = tmp_path / "scales.png"
    assert exit_code("scales", roll, "--plot", picture, "--share", 0.7, "--n-neighbors", 12) == 0
    printed = capsys.readouterr().out
    assert "<- chosen" in printed
    assert "70 % of the distances" in printed
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


def test_shares_belong_to_diffusion_maps(roll, tmp_path, capsys):
    assert exit_code("embed", roll, "-o", tmp_path / "out.csv", "--n-components", 0.9) == 2
    assert "shares belong to diffusion-map" in capsys.readouterr().err
