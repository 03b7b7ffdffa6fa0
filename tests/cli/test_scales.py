"""heatsketch scales: times, bandwidth and dimension, printed, drawn and as JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.layout import maps


@pytest.mark.parametrize(
    ("make", "metric", "suffix"),
    [(hs.datasets.swiss_roll, "cosine", ".png"), (hs.datasets.circle, "euclidean", ".pdf")],
)
def test_scales_print_and_draw_what_the_library_finds(make, metric, suffix, run):
    X, picture = make(120, rng=0)[0], Path(f"scales{suffix}")
    np.save("X.npy", X)
    given = ("scales", "X.npy", "--metric", metric)
    facts = json.loads(run(*given, "--json").out)
    model = hs.HeatEmbedding(layout="linear", metric=metric, random_state=0).fit(X)
    assert facts["time"] == model.time_
    np.testing.assert_allclose(facts["directions"], model.time_curve_.directions)
    trace = hs.heat_trace(model.diffusion_, model.time_curve_.times)
    np.testing.assert_allclose(facts["heat_trace"]["entropy"], trace.entropy)
    test, nearest = facts["ksum"], facts["nearest_neighbors"]
    wanted = hs.ksum(X, metric=metric)
    assert (test["epsilon"], test["dimension"]) == (wanted.epsilon, wanted.dimension)
    wanted = hs.intrinsic_dimension(X, metric=metric)
    assert nearest["dimension"] == pytest.approx(wanted.dimension)
    assert nearest["n_neighbors"][-1] == 15
    if make is hs.datasets.circle:
        assert round(test["dimension"]) == round(nearest["dimension"]) == 1
    words = run(*given, "--plot", picture).out
    found = (f"{test['epsilon']:.6g}", f"{nearest['dimension']:.3g} ± ")
    assert all(text in words for text in (*found, "<- chosen", "at most 8 directions"))
    assert picture.read_bytes().startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])


def test_scales_lay_out_no_free_picture(run, monkeypatch):
    X = hs.datasets.circle(60, rng=0)[0]
    np.save("X.npy", X)
    model = hs.HeatEmbedding(layout="linear", random_state=0).fit(X)
    monkeypatch.setattr(maps, "free_layout", None)
    facts = json.loads(run("scales", "X.npy", "--json").out)
    held = model.explained_diffusion_variance().cumulative
    np.testing.assert_allclose(facts["explained"]["cumulative"], held)


def test_scales_of_points_that_do_not_differ_are_an_error(run):
    np.save("ones.npy", np.ones((12, 12)))
    said = run("scales", "ones.npy", "--affinity", "precomputed", code=1)
    assert "points that differ" in said.err


def test_scales_say_why_there_is_no_dimension(run):
    Path("two.csv").write_text("x,y\n0,0\n3,4\n0,0\n")
    given = ("--n-components", 1, "--affinity", "dense", "--epsilon", 9)
    facts = json.loads(run("scales", "two.csv", *given, "--json").out)
    words = run("scales", "two.csv", *given).out
    assert f"dimension    none by nearest neighbours: {facts['nearest_neighbors']}" in words
    assert "nan" not in words
