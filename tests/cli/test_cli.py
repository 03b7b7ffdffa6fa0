import json
import runpy
import sys
from functools import partial

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli, memory
from heatsketch.cli import arguments
from heatsketch.io import read_table

# Ours become lines, which tests read.
pytestmark = pytest.mark.filterwarnings("default::UserWarning")

pytest.importorskip("pyarrow")


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


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_begins_with_what_must_be_given_and_ends_with_an_example(command, capsys):
    assert exit_code(command, "--help") == 0
    text, _, example = " ".join(capsys.readouterr().out.split()).partition("Example: heatsketch ")
    usage = text[: text.index(" options: ")]
    assert not any(f"[--{option}" in usage for option in ("label", "missing", "force", "debug"))
    words = example.split()
    assert words[0] == command
    assert callable(cli._parser(words).parse_args(words).run)


def test_help_of_a_command_without_methods_has_its_own_defaults(capsys):
    for command in ("scales", "score", "distances", "compare-data"):
        assert exit_code(command, "--help") == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "(default self-tuning)" in text
        assert "tsne" not in text


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


def test_without_arguments_the_commands_are_told(capsys):
    assert exit_code() == 2
    told = capsys.readouterr().err
    assert all(f"\n    {command} " in told for command in cli.COMMANDS if len(command) < 11)
