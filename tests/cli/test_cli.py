import runpy
import sys
from functools import partial

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.cli.arguments import parser_of
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
        (["--time", "2,8", "-p", "kind=rademacher"], {"time": [2, 8], "kind": "rademacher"}),
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
    assert exit_code("embed", circle, "-o", out, "--plot", picture) == 0
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
        (["-p", "factor=1.1", "-p", "n_sketch=32"], {"factor": 1.1, "n_sketch": 32}),
        (["-p", "n_sketch=9", "--time", "3"], {"n_sketch": 9, "time": 3}),
        (["--n-components", "3", "--filter", "heat"], {"n_components": 3, "filter": "heat"}),
        (["-p", "objective=worst", "-p", "n_init=2"], {"objective": "worst", "n_init": 2}),
    ],
)
def test_options_reach_the_heat_embedding(clouds, tmp_path, monkeypatch, capsys, given, expected):
    from heatsketch.estimators import heat_embedding
    from heatsketch.markov import coordinates

    for limit in ("SPECTRAL_LIMIT", "FEW_VERTICES"):  # so that the sketch is used
        monkeypatch.setattr(coordinates, limit, 30)
    monkeypatch.setattr(heat_embedding, "N_LEADING", 3)
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
    tmp_path, capsys
):
    circle = tmp_path / "circle.npy"
    np.save(circle, hs.datasets.circle(600, rng=0)[0])  # of fewer points all are learned from
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


@pytest.mark.parametrize(
    "given", [{"time": "auto", "delta": 0.3}, {"n_components": "auto", "time": 2, "delta": 0.1}]
)
def test_diffusion_map_takes_automatic_time_or_size(circle, tmp_path, given):
    out = tmp_path / "out.npy"
    options = [text for name, value in given.items() for text in ("-p", f"{name}={value}")]
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


def test_embeds_a_built_in_set_by_name(tmp_path):
    assert exit_code("embed", "circle", "-o", tmp_path / "out.npy", "--n-components", 3) == 0
    assert np.load(tmp_path / "out.npy").shape == (300, 3)


@pytest.mark.parametrize("command", cli.VERBS)
def test_help_begins_with_what_must_be_given_and_ends_with_an_example(command, capsys):
    assert exit_code(command, "--help") == 0
    text, _, example = " ".join(capsys.readouterr().out.split()).partition("Example: heatsketch ")
    usage = text[: text.index(" options: ")]
    assert not any(f"[--{option}" in usage for option in ("label", "missing", "force", "debug"))
    words = example.split()
    assert words[0] == command
    assert parser_of().parse_args(words).verb == command


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
        ("landmark-mds", ["-p", "n_landmarks=20", "-p", "landmarks=random"], 2),
        ("multiple-discriminant", ["-p", "shrinkage=0.1"], 2),
        ("isomap", ["-p", "radius=4"], 2),
        ("landmark-isomap", ["-p", "n_landmarks=30", "--n-neighbors", "12"], 2),
        ("lle", ["-p", "reg=0.01"], 2),
        ("laplacian-eigenmap", ["-p", "weights=binary"], 2),
        ("diffusion-map", ["--time", "gap", "--affinity", "radius", "--epsilon", "9"], 2),
        ("tsne", ["-p", "perplexity=8"], 2),
        ("sne", ["-p", "learning_rate=10"], 2),
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
    assert all(f"\n    {verb}" in told for verb in cli.VERBS)


def test_far_points_are_at_the_edge_of_a_picture_unless_the_whole_is_asked_for(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    X = np.random.default_rng(0).normal(size=(500, 2))
    X[:4] *= 1_000
    np.save(tmp_path / "far.npy", X)
    out = ("-o", tmp_path / "out.npy", "--force", "--method", "pca", "-q", "--plot")
    for name, given in (("central.png", []), ("whole.png", ["--whole"])):
        assert exit_code("embed", tmp_path / "far.npy", *out, tmp_path / name, *given) == 0
    pictures = [image.imread(tmp_path / name) for name in ("central.png", "whole.png")]
    inked = [np.mean(picture[..., :3].min(axis=-1) < 0.9) for picture in pictures]
    assert inked[0] > 2 * inked[1]  # the cloud fills the picture, or is a dot in it
