import csv
import json
import os
import runpy
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli, memory
from heatsketch.cli import arguments, files
from heatsketch.io import read_table
from problems.clouds import even_circle

# Ours become lines, which tests read.
pytestmark = pytest.mark.filterwarnings("default::UserWarning")

pytest.importorskip("pyarrow")


@pytest.fixture
def clouds(tmp_path):
    """A CSV file of three well separated groups of 20 points, with an id and a group column."""
    rng = np.random.default_rng(0)
    path = tmp_path / "clouds.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "x", "y", "z", "group"])
        for row in range(60):
            centre = 4 * np.eye(3)[row % 3]
            writer.writerow([f"p{row}", *(centre + rng.normal(size=3)), "abc"[row % 3]])
    return path


@pytest.fixture
def circle(tmp_path):
    """A file of 80 points on a circle, so that the graph is connected."""
    path = tmp_path / "circle.npy"
    np.save(path, even_circle(80))
    return path


def points_of(path):
    return np.asarray(read_table(path).values)


def exit_code(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_embed_writes_what_the_estimator_computes(clouds, tmp_path, capsys):
    out = tmp_path / "out.csv"
    given = ("--method", "heat-sketch", "--n-components", 5, "--time", 3)
    assert exit_code("embed", clouds, "-o", out, *given) == 0
    table = read_table(out)
    Y = hs.HeatSketch(5, 3, random_state=0).fit_transform(points_of(clouds))
    np.testing.assert_allclose(table.values, Y, rtol=1e-12)
    assert list(table.extra) == ["id", "group"]
    assert list(table.extra["id"]) == [f"p{row}" for row in range(60)]
    summary = capsys.readouterr().out
    for text in ("60 points, 3 features", "heat-sketch", "time=3", "self-tuning", str(out)):
        assert text in summary


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--epsilon", "2.5", "--affinity", "dense"], {"epsilon": 2.5, "affinity": "dense"}),
        (["--affinity", "variable"], {"affinity": "variable"}),
        (["--filter", "heat", "--time", "2.5"], {"filter": "heat", "time": 2.5}),
        (["--time", "2,8", "--kind", "rademacher"], {"time": [2, 8], "kind": "rademacher"}),
        (["--normalization", "bistochastic", "--n-neighbors", "9"],
         {"normalization": "bistochastic", "n_neighbors": 9}),
        (["--alpha", "0.5", "--random-state", "7"], {"alpha": 0.5, "random_state": 7}),
    ],
)  # fmt: skip
def test_options_reach_the_estimator(clouds, tmp_path, given, expected):
    out = tmp_path / "out.npy"
    common = ("--method", "heat-sketch", "--n-components", 4)
    assert exit_code("embed", clouds, "-o", out, *common, *given) == 0
    Y = hs.HeatSketch(4, **{"random_state": 0, **expected}).fit_transform(points_of(clouds))
    np.testing.assert_allclose(np.load(out), Y, rtol=1e-12)


def test_the_default_method_is_the_heat_embedding(circle, tmp_path, capsys):
    out, picture = tmp_path / "out.npy", tmp_path / "time.png"
    assert exit_code("embed", circle, "-o", out, "--plot-time", picture) == 0
    estimator = hs.HeatEmbedding(random_state=0)
    np.testing.assert_allclose(np.load(out), estimator.fit_transform(np.load(circle)), rtol=1e-12)
    assert picture.stat().st_size > 0
    summary = capsys.readouterr().out
    assert estimator.distortion_.describe().removeprefix("distances ") in summary
    assert f"time={'auto'!r}" in summary
    assert str(estimator.time_) in next(li for li in summary.splitlines() if li.startswith("time"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--share", "0.98"], {"share": 0.98}),
        (["--factor", "1.1", "--share", "0.5"], {"factor": 1.1, "share": 0.5}),
        (["--n-sketch", "9", "--time", "3"], {"n_sketch": 9, "time": 3}),
        (["--n-components", "3", "--filter", "heat"], {"n_components": 3, "filter": "heat"}),
        (["--objective", "worst", "--n-init", "2"], {"objective": "worst", "n_init": 2}),
    ],
)
def test_options_reach_the_heat_embedding(clouds, tmp_path, monkeypatch, capsys, given, expected):
    from heatsketch.markov import coordinates

    monkeypatch.setattr(coordinates, "SPECTRAL_LIMIT", 30)  # so that the sketch is used
    monkeypatch.setattr(coordinates, "N_LEADING", 3)
    out = tmp_path / "out.npy"
    common = ("--affinity", "dense", "--epsilon", 2)
    assert exit_code("embed", clouds, "-o", out, *common, *given) == 0
    make = partial(hs.HeatEmbedding, affinity="dense", epsilon=2.0, random_state=0)
    Y = make(**expected).fit_transform(points_of(clouds))
    np.testing.assert_allclose(np.load(out), Y, rtol=1e-12)
    default = make().fit_transform(points_of(clouds))
    assert default.shape != Y.shape or np.abs(default - Y).max() > 1e-3 * np.abs(Y).max()
    summary = capsys.readouterr().out
    for name, value in expected.items():
        assert f"{name}={value!r}" in summary


def test_the_summary_says_how_distances_are_kept_here_and_for_points_not_learned_from(
    circle, tmp_path, capsys
):
    assert exit_code("embed", circle, "-o", tmp_path / "out.npy", "--time", 8) == 0
    (line,) = [li for li in capsys.readouterr().out.splitlines() if li.startswith("distances")]
    kept = hs.HeatEmbedding(time=8, random_state=0).fit(np.load(circle)).distortion_
    assert kept.describe().removeprefix("distances ") in line
    assert f"log L {kept.log_L:.2f}" in line
    assert f"{kept.held_out_log_L:.2f} for points not learned from" in line


@pytest.mark.parametrize("method", ["heat-sketch", "diffusion-map"])
def test_other_methods_say_nothing_of_distances(method, circle, tmp_path, capsys):
    assert exit_code("embed", circle, "-o", tmp_path / "out.npy", "--method", method) == 0
    assert "distances" not in capsys.readouterr().out


def test_of_three_points_none_is_left_out_of_learning(tmp_path, capsys):
    np.save(tmp_path / "three.npy", np.array([[0.0, 0], [1, 0], [0, 2]]))
    given = ("--affinity", "dense", "--epsilon", 2, "--time", 2)
    assert exit_code("embed", tmp_path / "three.npy", "-o", tmp_path / "out.npy", *given) == 0
    (line,) = [li for li in capsys.readouterr().out.splitlines() if li.startswith("distances")]
    assert "log L 0.00" in line
    assert "nan" not in line


def test_points_with_the_same_affinities_have_no_distances_to_speak_of(tmp_path, capsys):
    np.save(tmp_path / "flat.npy", np.ones((6, 6)))
    given = ("--affinity", "precomputed", "--force")
    arguments = ("embed", tmp_path / "flat.npy", "-o", tmp_path / "out.npy", *given)
    assert exit_code(*arguments) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), 0)
    assert "distances" not in capsys.readouterr().out
    assert exit_code(*arguments, "--plot-time", tmp_path / "time.png") == 1
    assert "no time was chosen" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [{"time": "auto", "delta": 0.3}, {"n_components": "auto", "time": 2, "delta": 0.1}]
)
def test_diffusion_map_takes_automatic_time_or_size(circle, tmp_path, given):
    out = tmp_path / "out.npy"
    options = [text for name, value in given.items() for text in (arguments.flag(name), value)]
    assert exit_code("embed", circle, "-o", out, "--method", "diffusion-map", *options) == 0
    expected = hs.DiffusionMap(random_state=0, **given).fit_transform(np.load(circle))
    np.testing.assert_allclose(np.load(out), expected, rtol=1e-12)


def test_labels_of_separate_groups_agree_completely(clouds, tmp_path, capsys):
    exit_code("embed", clouds, "-o", tmp_path / "out.csv", "-q")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "leave one out" in line]
    assert "group" in line
    X = points_of(clouds)
    votes = np.linalg.norm(X[:, None] - X[None], axis=2).argsort(axis=1)[:, 1:11] % 3
    counts = np.array([(votes == label).sum(axis=1) for label in range(3)])
    share = np.mean(counts.argmax(axis=0) == np.arange(60) % 3)
    assert f"input {share:.3f}" in line


def test_plot_is_written_beside_the_embedding(clouds, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "out.npz", tmp_path / "out.png"
    assert exit_code("embed", clouds, "-o", out, "--plot", picture) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in capsys.readouterr().out


@pytest.fixture
def no_computing(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("computed before checking")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", refuse)


@pytest.mark.usefixtures("no_computing")
def test_existing_files_stop_the_run_before_it_computes(clouds, tmp_path, capsys):
    out, picture = tmp_path / "out.csv", tmp_path / "out.png"
    out.write_text("old")
    assert exit_code("embed", clouds, "-o", out) == 1
    assert "--force" in capsys.readouterr().err
    picture.write_text("old")
    assert exit_code("embed", clouds, "-o", tmp_path / "new.csv", "--plot", picture) == 1
    assert out.read_text() == picture.read_text() == "old"


@pytest.mark.usefixtures("no_computing")
@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("missing/out.csv", "does not exist; create it"),
        ("clouds.csv", "is also the input"),
        ("folder.csv", "is a folder"),
    ],
)
def test_places_that_cannot_be_written_stop_the_run(clouds, tmp_path, output, message, capsys):
    (tmp_path / "folder.csv").mkdir()
    before = clouds.read_bytes()
    assert exit_code("embed", clouds, "-o", tmp_path / output, "--force") == 1
    assert message in capsys.readouterr().err
    assert clouds.read_bytes() == before


@pytest.mark.usefixtures("no_computing")
def test_a_missing_writer_stops_the_run(clouds, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(files.WRITERS, ".h5ad", "no_such_module")
    assert exit_code("embed", clouds, "-o", tmp_path / "out.h5ad") == 1
    assert 'pip install "heatsketch[io]"' in capsys.readouterr().err


@pytest.mark.usefixtures("no_computing")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--kind", "gaussian", "--method", "diffusion-map"], "belongs to heat-sketch"),
        (["--delta", "0.1"], "belongs to diffusion-map"),
        (["--method", "heat-sketch", "--time", "auto"], "--time auto belongs to heat-embedding"),
        (["--n-components", "auto"], "--n-components auto belongs to diffusion-map"),
        (["--plot-time", "t.png", "--time", "8"], "belongs to heat-embedding --time auto"),
        (["--time", "1,auto"], "auto cannot be combined"),
        (["--time", "soon"], "'soon' is neither a number nor auto"),
        (["--epsilon", "auto"], "--epsilon auto belongs to mixture-diffusion"),
        (["--epsilon", "edges"], "--epsilon edges belongs to laplacian-eigenmap"),
        (["--epsilon", "wide"], "'wide' is neither a number nor self-tuning"),
        (["--plot", "out.jpg"], "out.jpg"),
        (["-o", "out.xlsx"], "out.xlsx has no known suffix"),
        (["--method", "heat-skech"], "did you mean 'heat-sketch'?"),
        (["--n-neighbours", "5"], "--n-neighbours 5; did you mean '--n-neighbors'?"),
        (["--in-place"], "leave out --output"),
        (["--affinity", "precomputed", "--standardize"], "INPUT is precomputed"),
        (["--normalization", "row"], "invalid choice"),
    ],
)
def test_wrong_usage_is_named(clouds, tmp_path, given, message, capsys):
    assert exit_code("embed", clouds, "-o", tmp_path / "out.csv", *given) == 2
    (line,) = capsys.readouterr().err.splitlines()  # the usage would hide it
    assert line.startswith("heatsketch: error: ")
    assert message in line


def test_errors_are_one_line_and_debug_adds_the_place(tmp_path, capsys):
    path = tmp_path / "holes.csv"
    path.write_text("a,b\n1,2\n3,nan\n4,5\n" + "6,7\n" * 20)
    assert exit_code("embed", path, "-o", tmp_path / "out.csv") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("heatsketch: error: ")
    assert "NaN" in line
    assert exit_code("embed", path, "-o", tmp_path / "out.csv", "--debug") == 1
    assert "Traceback" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("arguments", [["embed", "--help"], ["datasets"], ["ksum", "digits"]])
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_letters_that_a_pipe_cannot_hold_stop_nothing(arguments, encoding):
    """Windows gives pipes its own encoding, which lacks λ."""
    done = subprocess.run(
        [sys.executable, "-m", "heatsketch", *arguments],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_unexpected_errors_are_named_with_their_type(clouds, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise KeyError("left")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", fail)
    assert exit_code("embed", clouds, "-o", tmp_path / "out.csv") == 1
    assert "KeyError: 'left' (--debug" in capsys.readouterr().err


def test_interrupting_leaves_nothing_half_written(clouds, tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", stop)
    assert exit_code("embed", clouds, "-o", tmp_path / "out.csv") == 130
    assert capsys.readouterr().err.startswith("heatsketch: interrupted")
    assert list(tmp_path.iterdir()) == [clouds]


@pytest.fixture
def warned(monkeypatch):
    def compute(self, X):
        warnings.warn("two\n groups", hs.DisconnectedWarning, stacklevel=2)
        raise ValueError("stop here")

    monkeypatch.setattr(hs.HeatEmbedding, "fit_transform", compute)


@pytest.mark.usefixtures("warned")
def test_warnings_are_lines_and_quiet_drops_them_but_not_errors(clouds, tmp_path, capsys):
    exit_code("embed", clouds, "-o", tmp_path / "out.csv")
    error = "heatsketch: error: stop here\n"
    assert capsys.readouterr().err == "heatsketch: warning: two groups\n" + error
    exit_code("embed", clouds, "-o", tmp_path / "out.csv", "-q")
    assert capsys.readouterr().err == error


def score(capsys, *arguments):
    capsys.readouterr()
    assert exit_code("score", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_complete_diffusion_map_has_no_distortion(circle, tmp_path, capsys):
    out = tmp_path / "out.npy"
    graph = ("--affinity", "dense", "--epsilon", 0.1, "--time", 4)
    options = ("--method", "diffusion-map", "--n-components", 40)
    assert exit_code("embed", circle, "-o", out, *options, *graph) == 0
    facts = score(capsys, circle, out, *graph)
    # Eigenvalues are about exp(-0.025 m²), m = 1, 2, ...: of what m > 20 adds nothing is left.
    assert facts["log_L"] < 1e-4
    assert facts["pairs"] == 80 * 79 // 2
    assert facts["all_pairs"]
    other_time = score(capsys, circle, out, *graph[:4], "--time", 40)
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
    assert exit_code("embed", circle, "-o", tmp_path / "a.npy") == 0
    assert exit_code("embed", circle, "-o", tmp_path / "a.h5ad") == 0
    assert exit_code("embed", circle, "-o", tmp_path / "b.h5ad", "--output-key", "mine") == 0
    expected = score(capsys, circle, tmp_path / "a.npy")
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
    assert 5032 < facts["pairs"] <= 5064
    assert not facts["all_pairs"]
    assert "10,500 nearest in the embedding" in facts["looked_at"]
    assert exit_code("score", *torn_circle, "--time", 4, "--pairs", 5000) == 0
    assert f"{facts['looked_at']} (seed 0)" in capsys.readouterr().out


@pytest.fixture
def huge(tmp_path):
    """A file of 400 MB by its header, which takes no room on the disk."""
    path = tmp_path / "huge.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(10**6, 100)).flush()
    return path


def test_a_dry_run_prints_the_memory_of_each_stage_and_does_nothing(huge, tmp_path, capsys):
    size = ("--memory-budget", 1000)
    assert exit_code("embed", huge, "--dry-run", "-o", tmp_path / "out.npy", *size) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["input"] == f"{huge}: 1,000,000 points, 100 features, float32"
    shape = {"dtype": "f4", "method": "heat-embedding", "n_components": 2, "time": "auto"}
    predicted = memory.predict(10**6, 100, **shape)
    for stage, size in predicted.stages.items():
        assert lines[stage] == f"{memory.in_words(size)} at its peak"
    assert lines["peak"] == f"{memory.in_words(predicted.peak)} beyond the input"
    assert lines["available"] == "1,000.0 GB: enough"
    assert "instead" not in lines
    assert not (tmp_path / "out.npy").exists()


def test_what_is_beyond_the_budget_is_refused_before_it_begins(huge, tmp_path, capsys):
    out, size = tmp_path / "out.npy", ("--memory-budget", 1, "--method", "heat-sketch")
    assert exit_code("embed", huge, "--dry-run", *size) == 0
    said = capsys.readouterr().out
    assert "1.0 GB: too little" in said
    less = memory.less_memory(
        10**6, 100, method="heat-sketch", n_components=32, n_neighbors=15, dtype="f4"
    )
    assert less in said
    assert exit_code("embed", huge, "-o", out, *size) == 1
    said = capsys.readouterr().err
    assert f"but only 1.0 GB is available; {less}" in said
    assert not out.exists()


def test_a_dry_run_needs_a_shape_that_tells(circle, capsys):
    assert exit_code("embed", circle, "--dry-run", "--affinity", "radius", "--epsilon", 1) == 2
    assert "--dry-run cannot tell" in capsys.readouterr().err
    assert exit_code("embed", circle) == 2
    assert "required: -o/--output" in capsys.readouterr().err
    assert exit_code("embed", circle, "--dry-run", "--memory-budget", 0) == 2
    assert "not a size in GB" in capsys.readouterr().err


def test_ksum_finds_the_dimension_of_a_circle(circle, tmp_path, capsys):
    assert exit_code("ksum", circle, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert round(facts["dimension"]) == 1
    result = hs.ksum(read_table(circle).values)
    assert (facts["epsilon"], facts["plateau"]) == (result.epsilon, list(result.plateau))
    assert facts["dimension_interval"] == list(result.dimension_interval)
    assert round(facts["nearest_neighbors"]["dimension"]) == 1
    assert facts["nearest_neighbors"]["n_neighbors"] == 15
    pytest.importorskip("matplotlib")
    assert exit_code("ksum", circle, "--plot", tmp_path / "slopes.pdf") == 0
    words = capsys.readouterr().out
    assert f"{facts['epsilon']:.6g}" in words
    (largest,) = [line for line in words.splitlines() if line.endswith("<- largest")]
    assert f"{max(facts['slopes']):.3f} ± " in largest
    assert f"{facts['nearest_neighbors']['dimension']:.3g} ± " in words
    low, high = facts["dimension_interval"]
    assert f"(95 %: {low:.3g} to {high:.3g})" in words
    assert (tmp_path / "slopes.pdf").read_bytes().startswith(b"%PDF")


def test_ksum_says_what_it_cannot_know(tmp_path, capsys):
    points = tmp_path / "two.csv"
    points.write_text("x,y\n0,0\n3,4\n0,0\n")
    assert exit_code("ksum", points, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["epsilon_interval"] == [None, None]
    assert facts["nearest_neighbors"] is None
    assert exit_code("ksum", points) == 0
    words = capsys.readouterr().out
    assert "X has 2 distinct point(s); pass at least 3" in words
    assert "nan" not in words
    assert exit_code("ksum", points, "--n-rows", 5) == 1


def test_ksum_sums_as_many_rows_as_asked_for(circle, capsys):
    assert exit_code("ksum", circle, "--n-rows", 20) == 0
    assert "from some rows only" in capsys.readouterr().out


def test_datasets_are_listed_and_written(tmp_path, capsys):
    assert exit_code("datasets") == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"digits", "circle", "swiss_roll"} <= set(listed)
    out = tmp_path / "clouds.csv"
    assert exit_code("datasets", "gaussian_clouds", "-o", out) == 0
    assert read_table(out).values.shape == (300, 10)
    assert exit_code("datasets", "gaussian_clouds", "-o", out) == 1
    assert exit_code("datasets", "no_such_set", "-o", out) == 2
    assert exit_code("datasets", "digits") == 2


def test_embeds_a_built_in_set_by_name(tmp_path):
    assert exit_code("embed", "circle", "-o", tmp_path / "out.npy", "--n-components", 3) == 0
    assert np.load(tmp_path / "out.npy").shape == (300, 3)


def test_help_states_the_defaults_of_the_methods(capsys):
    assert exit_code("embed", "--help") == 0
    text = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    params = hs.HeatSketch().get_params()
    assert f"heat-sketch: default {params['time']}" in text
    assert f"diffusion-map, laplacian-eigenmap: default {params['n_neighbors']}, isomap" in text
    assert "(heat-sketch, mixture-diffusion: default 0.1)" in text


def test_runs_as_a_module_with_a_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["heatsketch", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("heatsketch", run_name="__main__")
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"heatsketch {hs.__version__}"


def test_no_command_is_wrong_usage(capsys):
    assert exit_code() == 2
    assert "COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "options", "columns"),
    [
        ("pca", [], 2),
        ("classical-mds", ["--n-components", "3"], 3),
        ("landmark-mds", ["--n-landmarks", "20", "--landmarks", "random"], 2),
        ("multiple-discriminant", ["--shrinkage", "0.1"], 2),
        ("isomap", ["--radius", "4"], 2),
        ("landmark-isomap", ["--n-landmarks", "30", "--n-neighbors", "12"], 2),
        ("lle", ["--reg", "0.01"], 2),
        ("laplacian-eigenmap", ["--weights", "binary"], 2),
        ("diffusion-map", ["--time", "gap", "--affinity", "radius", "--epsilon", "9"], 2),
        ("tsne", ["--perplexity", "8"], 2),
        ("sne", ["--learning-rate", "10"], 2),
    ],
)
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_classical_methods_have_names_and_their_options(method, options, columns, clouds, tmp_path):
    out = tmp_path / "out.csv"
    assert exit_code("embed", clouds, "-o", out, "--method", method, *options) == 0
    table = read_table(out)
    assert table.values.shape == (60, columns)
    assert np.isfinite(table.values).all()
    assert np.ptp(table.values, axis=0).min() > 0


def test_fitting_to_classes_needs_them(circle, clouds, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert exit_code("embed", circle, "-o", out, "--method", "multiple-discriminant") == 1
    assert "is fitted to classes" in capsys.readouterr().err
    assert exit_code("embed", clouds, "-o", out, "--method", "fisher-discriminant") == 1
    assert "three" in (text := capsys.readouterr().err) or "3 classes" in text
    assert not out.exists()
