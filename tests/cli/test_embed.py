"""heatsketch embed: what the estimator computes, what is said of it, pictures and columns."""

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from heatsketch import plot
from heatsketch.comparison.run import ESTIMATORS, defaults
from heatsketch.io import read_table
from problems.clouds import cloud
from problems.tables import write_csv


def points_of(path):
    return np.asarray(read_table(path).values)


FLAGS = (
    "affinity alpha epsilon filter metric n_components n_neighbors normalization random_state time"
)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("heat-sketch", {"epsilon": 2.5, "affinity": "dense", "n_components": 4}),
        ("heat-sketch", {"time": [2, 8], "kind": "rademacher"}),
        ("heat-sketch", {"alpha": 0.5, "random_state": 7, "metric": "cosine"}),
        ("heat-sketch", {"filter": "heat", "normalization": "bistochastic", "n_neighbors": 9}),
        ("heat-embedding", {"factor": 1.1, "n_sketch": 9, "time": 3}),
        ("diffusion-map", {"time": "auto", "delta": 0.3}),
        ("mixture-diffusion", {"epsilon": "auto", "mixture": 2}),
        ("landmark-mds", {"n_landmarks": 20, "landmarks": "random"}),
    ],
)
def test_parameters_reach_the_estimator(clouds, run, method, expected):
    out, words = "out.npy", []
    for name, value in expected.items():
        text = str(value).strip("[]").replace(" ", "")
        flag = f"--{name.replace('_', '-')}"
        words += [flag, text] if name in FLAGS.split() else ["-p", f"{name}={text}"]
    said = run("embed", clouds, "-o", out, "--method", method, *words)
    Y = ESTIMATORS[method](**{"random_state": 0, **expected}).fit_transform(points_of(clouds))
    np.testing.assert_allclose(np.load(out), Y, rtol=1e-9)
    usual = defaults(ESTIMATORS[method])
    for name, value in expected.items():
        assert (f"{name}={value!r}" in said.lines["method"]) == (value != usual[name])


def test_the_default_method_is_the_heat_embedding(circle, run, monkeypatch):
    out, picture = "out.npy", "time.png"
    said = run("embed", circle, "-o", out, "--plot", picture)
    estimator = hs.HeatEmbedding(random_state=0)
    np.testing.assert_allclose(np.load(out), estimator.fit_transform(np.load(circle)), rtol=1e-12)
    assert Path(picture).read_bytes().startswith(b"\x89PNG")
    drawn = {}
    monkeypatch.setattr(plot, "scatter", lambda *_, **options: drawn.update(options))
    run("embed", circle, "-o", out, "--plot", picture, "--whole", "--force")
    assert drawn["whole"]
    assert said.lines["method"] == "heat-embedding, random_state=0"
    assert said.lines["time"] == str(estimator.time_)
    assert said.lines["written"] == f"{out}, {picture}"


@pytest.mark.parametrize("stream", [[], ["--fit-points", "100"]])
def test_the_summary_has_what_was_asked_and_records_have_all(run, stream):
    np.save("circle.npy", hs.datasets.circle(150, rng=0)[0])
    records = ("--metadata", "made.json", "--save-model", "a.model")
    given = ("--affinity", "variable", "--alpha", 1, "--n-neighbors", 9)  # the second is usual
    said = run("embed", "circle.npy", "-o", "out.npy", *records, *given, *stream).lines
    expected = hs.HeatEmbedding(affinity="variable", n_neighbors=9, random_state=0)
    assert said["method"] == "heat-embedding, affinity='variable', n_neighbors=9, random_state=0"
    chosen = hs.load_model("a.model")
    assert said["time"] == str(chosen.time_)
    assert said["bandwidth"].endswith(f"; dimension {chosen.diagnostics_['dimension']:.3g}")
    made = json.loads(Path("made.json").read_text("utf-8"))
    assert made.get("model", made)["parameters"] == expected.get_params()
    assert chosen.get_params() == expected.get_params()
    described = run("transform", "a.model", "--info").lines["parameters"]
    assert "alpha=1, " in described


def test_embed_says_what_was_found(run):
    """Of the distances also those of points not learned from, for which it takes more than 500."""
    path, X = "circle.npy", hs.datasets.circle(510, rng=0)[0]
    np.save(path, X)
    models = {
        "heat-embedding": hs.HeatEmbedding(time=8, layout="linear", random_state=0).fit(X),
        "diffusion-map": hs.DiffusionMap(time=8, random_state=0).fit(X),
        "mixture-diffusion": hs.MixtureDiffusion(mixture=2, time=8, random_state=0).fit(X),
    }
    lines = {}
    for method in models:
        given = ("--method", method, "--time", 8) + ("-p", "mixture=2") * ("mixture" in method)
        given += ("--layout", "linear") * (method == "heat-embedding")
        lines[method] = run("embed", path, "-o", "out.npy", "--force", *given).lines
    kept, facts = models["heat-embedding"].distortion_, models["mixture-diffusion"].diagnostics_
    line = lines["heat-embedding"]["distances"]
    assert line.startswith(kept.describe().removeprefix("distances "))
    assert f"log L {kept.log_L:.2f}, {kept.held_out_log_L:.2f} for points not learned" in line
    for method in ("heat-embedding", "diffusion-map"):
        words = models[method].explained_diffusion_variance().describe()
        assert lines[method]["explained"] == f"{words} (time 8), by 2 coordinates"
    line = lines["mixture-diffusion"]
    assert f"2 Gaussians, {facts['n_features']} coordinates" in line["mixture"]
    error = facts["distance_error"] / facts["typical_distance"]
    assert f"within {100 * error:.2g} %" in line["distances"]


def test_the_layout_is_an_option(run):
    X = hs.datasets.circle(150, rng=0)[0]
    np.save("circle.npy", X)
    for given in (
        {"layout": "linear"},
        {"layout": "free", "spread": 0.2, "neighbor_weight": 1.0},
        {"layout": "free", "spread": "auto", "path_weight": 0.8},
    ):
        options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
        said = run("embed", "circle.npy", "-o", "out.npy", "--force", *options)
        assert "layout" not in said.lines  # the line on parameters has it
        expected = hs.HeatEmbedding(**given).fit_transform(X)
        np.testing.assert_array_equal(np.load("out.npy"), expected)
    options = ("--layout", "free", "--n-components", 5)
    assert "layout" in run("embed", "circle.npy", "-o", "o.npy", *options, code=1).err


def test_embed_says_which_layout_was_chosen(circle, run):
    for count, layout in ((2, "free"), (5, "linear")):
        said = run("embed", circle, "-o", "out.npy", "--force", "--n-components", count)
        assert "layout" not in said.lines["method"]
        assert said.lines["layout"] == layout
        chosen = hs.HeatEmbedding(count, layout=layout, random_state=0)
        expected = chosen.fit_transform(np.load(circle))
        np.testing.assert_allclose(np.load("out.npy"), expected, rtol=1e-12)


def test_embed_of_few_or_equal_points_says_nothing_that_is_not_known(circle, run):
    np.save("three.npy", np.array([[0.0, 0], [1, 0], [0, 2]]))
    np.save("flat.npy", np.ones((6, 6)))
    out = ("-o", "out.npy", "--force")
    given = ("--affinity", "dense", "--epsilon", 2, "--time", 2)
    line = run("embed", "three.npy", *out, *given, "--layout", "linear").lines["distances"]
    assert "log L 0.00" in line
    assert "nan" not in line
    said = run("embed", "flat.npy", *out, "--affinity", "precomputed")
    assert "distances" not in said.out
    np.testing.assert_array_equal(np.load("out.npy"), 0)
    for method in ("heat-sketch", "diffusion-map"):
        assert "distances" not in run("embed", circle, *out, "--method", method).out


def test_embed_says_what_is_odd_about_the_points(clouds, run):
    X = cloud(60, 4, seed=1)
    X[:, 1], X[40:50] = 3.5, X[30]
    given, out = ("--time", 4, "--method", "heat-sketch"), ("-o", "out.csv", "--force")
    path = write_csv("t.csv", X * [1, 1, 4, 1], "abcd")
    said = run("embed", path, *out, *given).lines["noticed"]
    dominant = 16 * X[:, 2].var() / (X.var(axis=0) @ [1, 0, 16, 1])
    assert said == (
        "constant columns: b; 10 of 60 rows equal others before them; "
        f"'c' has {100 * dominant:.3g} % of the variance; is it in the unit of the others? "
        "(--standardize, --exclude)"
    )
    said = run("embed", path, *out, *given, "--standardize").lines["noticed"]
    assert said == "constant columns: b; 10 of 60 rows equal others before them"
    assert "noticed" not in run("embed", clouds, *out, *given).lines


def test_embed_says_which_column_counts_the_rows(run):
    X, number = cloud(60, 3, seed=1), np.arange(1, 61)
    path = write_csv("t.csv", np.insert(X, 1, number, axis=1), ["a", "Player No", "b", "c"])
    out = ("-o", "out.npy", "--time", 4, "--force")
    said = run("embed", path, *out)
    assert "3 features: a, b, c (passed through: Player No)" in said.lines["input"]
    assert "'Player No' is passed through as an id" in said.lines["changed"]
    np.testing.assert_array_equal(
        np.load("out.npy"), hs.HeatEmbedding(time=4, random_state=0).fit_transform(X)
    )
    said = run("embed", path, *out, "--features", "a,Player No,b")
    assert "changed" not in said.lines
    assert "Feature 'Player No' counts the rows, and carries 99." in said.err


def test_embed_says_how_labels_of_neighbours_agree(clouds, run):
    said = run("embed", clouds, "-o", "out.csv").lines
    line = said["agreement"]
    assert said["written"] == "out.csv"
    assert "60 points, 3 features" in said["input"]
    assert read_table("out.csv").extra["id"].tolist() == [f"p{row}" for row in range(60)]
    X = points_of(clouds)
    votes = np.linalg.norm(X[:, None] - X[None], axis=2).argsort(axis=1)[:, 1:11] % 3
    counts = np.array([(votes == label).sum(axis=1) for label in range(3)])
    share = np.mean(counts.argmax(axis=0) == np.arange(60) % 3)
    assert f"input {share:.3f} (group by 10 nearest" in line


def test_embed_by_classes_needs_them(circle, clouds, run):
    given = ("-o", "out.csv", "--method", "multiple-discriminant")
    said = run("embed", circle, *given, code=1)
    assert "is fitted to classes" in said.err
    said = run("embed", clouds, "-o", "out.csv", "--method", "fisher-discriminant", code=1)
    assert "3 classes" in said.err
    assert not Path("out.csv").exists()
    run("embed", clouds, *given, "-p", "shrinkage=0.1")
    assert points_of("out.csv").shape == (60, 2)


def test_intervals_add_a_column_that_is_no_coordinate(clouds, run):
    given = ("embed", clouds, "-o", "map.csv", "--n-neighbors", 6, "--intervals")
    said = run(*given, "--method", "heat-sketch")
    assert "certain, for a tenth of the points" in said.lines["neighbours"]
    model = hs.HeatSketch(n_neighbors=6, random_state=0).fit(points_of(clouds))
    found = pd.read_csv("map.csv")["neighbor_confidence"]
    np.testing.assert_allclose(found, model.neighbor_confidence_)
    assert "log L" in run("score", clouds, "map.csv").out


def test_pseudotime_adds_columns(clouds, run):
    given = ("embed", clouds, "--pseudotime", "p3", "--method", "diffusion-map")
    assert "pseudotime" in run(*given, "-o", "late.csv").lines
    wanted = hs.DiffusionMap(random_state=0).fit(points_of(clouds)).pseudotime(3)
    names = ["heat_pseudotime", "heat_pseudotime_low", "heat_pseudotime_high"]
    np.testing.assert_allclose(pd.read_csv("late.csv")[names].T, np.array(wanted))
    said = run(*given, "-o", "o.csv", "--pseudotime", "p77", code=1)
    assert "has no point 'p77'; choose from p0, p1, p2, p3, p4 and 55 more; did you" in said.err
    said = run(*given, "-o", "o.csv", "--pseudotime", "a", code=1)
    assert "no point 'a'; it is a value of 'group': pass --pseudotime group=a." in said.err
    said = run(*given, "-o", "o.csv", "--pseudotime", "group=d", code=1)
    assert "'group' has no label 'd'; choose from a, b, c" in said.err
    for root, column in (("troup=b", "troup"), ("x0=1", "x0"), ("=", "")):
        said = run(*given, "-o", "o.csv", "--pseudotime", root, code=1)
        assert f"no id or label column {column!r}; choose from id, group" in said.err
    run(*given, "-o", "several.csv", "--n-neighbors", 30, "--pseudotime", "group=b")
    equal = clouds.with_name("equal.csv")
    equal.write_text(clouds.read_text(encoding="utf-8").replace("group", "id=of"), encoding="utf-8")
    given = ("embed", equal, *given[2:], "--n-neighbors", 30, "--force")
    run(*given, "-o", "equal.late.csv", "--pseudotime", "id=of=b")
    assert pd.read_csv("equal.late.csv")[names].equals(pd.read_csv("several.csv")[names])
    given = ("embed", clouds, *given[2:])
    model = hs.DiffusionMap(n_neighbors=30, random_state=0).fit(points_of(clouds))
    wanted = model.pseudotime(np.arange(1, 60, 3))
    np.testing.assert_allclose(pd.read_csv("several.csv")[names].T, np.array(wanted))
    text = clouds.read_text(encoding="utf-8").replace("group", "heat_pseudotime")
    clouds.write_text(text, encoding="utf-8")
    said = run(*given, "-o", "o.csv", code=1)
    assert "has a column 'heat_pseudotime', which this run adds" in said.err
    assert not Path("o.csv").exists()


@pytest.fixture
def cells(tmp_path):
    """An .h5ad file of 180 cells with X_pca of more than fifty genes."""
    data = anndata.AnnData(np.random.default_rng(0).normal(size=(180, 60)))
    data.obsm["X_pca"] = data.X[:, :5] * np.arange(5, 0, -1)
    data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def test_in_place_adds_to_the_file_and_asks_before_it_replaces(cells, tmp_path, run):
    said = run("embed", cells, "--in-place", "--time", 4).lines
    assert said["written"] == str(cells)
    first = read_table(cells, key="X_heat").values
    assert read_table(cells, key="X_pca").values.shape == (180, 5)
    assert run("score", cells, cells).lines["distances"].startswith(said["distances"])
    again = ("embed", cells, "--in-place", "--time", 8)
    assert "entry 'X_heat' in obsm already" in run(*again, code=1).err
    run(*again, "--output-key", "X_pca", code=1)
    np.testing.assert_array_equal(read_table(cells, key="X_heat").values, first)
    run(*again, "--force")
    assert np.abs(read_table(cells, key="X_heat").values - first).max() > 0
    assert [path.name for path in tmp_path.iterdir()] == ["cells.h5ad"]


@pytest.mark.parametrize("stream", [[], ["--fit-points", "120"]])
def test_embed_and_python_agree_on_anndata(cells, run, stream):
    data, out = anndata.read_h5ad(cells), "out.h5ad"
    for name, key in (("heat_embedding", "X_heat"), ("heat_sketch", "X_heat_sketch")):
        method = ("--method", name.replace("_", "-"), "--n-components", 2, "--time", 4)
        said = run("embed", cells, "-o", out, "--force", *method, *stream)
        assert "60 genes" not in said.err
        assert said.lines["changed"].startswith("distances are those of X_pca, as in scanpy")
        found = anndata.read_h5ad(out)
        assert set(found.obsm) == {"X_pca", key}
        if not stream:
            getattr(hs.anndata, name)(data, 2, time=4)
            np.testing.assert_allclose(found.obsm[key], data.obsm[key], rtol=1e-6, atol=1e-12)


def test_pseudotime_is_a_column_of_h5ad(cells, run):
    data = anndata.read_h5ad(cells)
    given = ("embed", cells, "--in-place", "--method", "diffusion-map", "--pseudotime", 7)
    run(*given)
    run(*given, code=1)
    run(*given, "--force")
    hs.anndata.pseudotime(data, 7)
    obs = anndata.read_h5ad(cells).obs
    assert set(obs) == set(data.obs) == {f"heat_pseudotime{end}" for end in ("", "_low", "_high")}
    for name in obs:
        np.testing.assert_allclose(obs[name], data.obs[name], rtol=1e-6)
