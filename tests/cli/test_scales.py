"""heatsketch scales: times, bandwidth and dimension, printed, drawn and as JSON."""

import json

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.io import read_table

pytest.importorskip("pyarrow")


@pytest.fixture
def roll(tmp_path):
    path = tmp_path / "roll.npy"
    np.save(path, hs.datasets.swiss_roll(300, rng=0)[0])
    return path


def test_scales_measure_by_the_metric_that_is_given(roll, run):
    X = read_table(roll).values
    facts = json.loads(run("scales", roll, "--metric", "cosine", "--json").out)
    assert facts["time"] == hs.HeatEmbedding(metric="cosine", random_state=0).fit(X).time_
    assert facts["ksum"]["epsilon"] == pytest.approx(hs.ksum(X, metric="cosine").epsilon)
    assert facts["ksum"]["epsilon"] != pytest.approx(hs.ksum(X).epsilon)
    wanted = hs.intrinsic_dimension(X, metric="cosine").dimension
    assert facts["nearest_neighbors"]["dimension"] == pytest.approx(wanted)


def test_scales_print_and_draw_what_the_estimator_chose(roll, tmp_path, run):
    facts = json.loads(run("scales", roll, "--json").out)
    model = hs.HeatEmbedding(2, random_state=0).fit(read_table(roll).values)
    trace = hs.heat_trace(model.diffusion_, model.time_curve_.times)
    assert facts["time"] == model.time_
    np.testing.assert_allclose(facts["directions"], model.time_curve_.directions)
    np.testing.assert_allclose(facts["heat_trace"]["entropy"], trace.entropy)
    picture = tmp_path / "scales.png"
    printed = run("scales", roll, "--plot", picture, "--n-neighbors", 12).out
    assert "<- chosen" in printed
    assert "at most 8 directions" in printed
    assert picture.exists()


def test_scales_of_points_that_do_not_differ_are_an_error(tmp_path, run):
    path = tmp_path / "ones.npy"
    np.save(path, np.ones((12, 12)))
    said = run("scales", path, "--affinity", "precomputed", code=1)
    assert "points that differ" in said.err


def test_scales_find_the_dimension_of_a_circle(circle, tmp_path, run):
    facts = json.loads(run("scales", circle, "--json").out)
    test, nearest = facts["ksum"], facts["nearest_neighbors"]
    assert round(test["dimension"]) == 1
    result = hs.ksum(read_table(circle).values)
    assert (test["epsilon"], test["dimension"]) == (result.epsilon, result.dimension)
    assert round(nearest["dimension"]) == 1
    assert nearest["n_neighbors"][-1] == 15
    words = run("scales", circle, "--plot", tmp_path / "slopes.pdf").out
    assert f"{test['epsilon']:.6g}" in words
    assert f"{nearest['dimension']:.3g} ± " in words
    assert (tmp_path / "slopes.pdf").read_bytes().startswith(b"%PDF")


def test_scales_say_why_there_is_no_dimension(tmp_path, run):
    points = tmp_path / "two.csv"
    points.write_text("x,y\n0,0\n3,4\n0,0\n")
    given = ("--n-components", 1, "--affinity", "dense", "--epsilon", 9)
    facts = json.loads(run("scales", points, *given, "--json").out)
    words = run("scales", points, *given).out
    assert f"dimension 2  none by nearest neighbours: {facts['nearest_neighbors']}" in words
    assert "nan" not in words
