"""Mixtures on the command line: what is written, said and refused."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.cli import main


@pytest.fixture
def clouds(tmp_path):
    X, _ = hs.datasets.gaussian_clouds(200, n_labels=2, dim=2, rng=0)
    np.save(tmp_path / "clouds.npy", X)
    return tmp_path / "clouds.npy"


def exit_code(*arguments):
    return main([str(argument) for argument in arguments])


def test_it_writes_what_the_estimator_gives_and_says_how_good_it_is(clouds, tmp_path, capsys):
    options = ["--method", "mixture-diffusion", "--n-components", 2, "--epsilon", "median"]
    options += ["-p", "mixture=2", "-p", "tolerance=0.05", "--time", 2]
    assert exit_code("embed", clouds, "-o", tmp_path / "out.csv", *options) == 0
    said = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    model = hs.MixtureDiffusion(2, "median", mixture=2, tolerance=0.05, time=2, random_state=0).fit(
        np.load(clouds)
    )
    found = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(found, model.embedding_, rtol=1e-12)
    assert f"2 Gaussians, {model.diagnostics_['n_features']} coordinates" in said["mixture"]
    error = model.diagnostics_["distance_error"] / model.diagnostics_["typical_distance"]
    assert f"within {100 * error:.2g} %" in said["distances"]


@pytest.mark.parametrize(
    ("method", "rule", "make"),
    [
        ("mixture-diffusion", "auto", hs.MixtureDiffusion),
        ("laplacian-eigenmap", "edges", hs.classical.LaplacianEigenmap),
    ],
)
def test_rules_of_one_method_for_epsilon(clouds, tmp_path, method, rule, make):
    """They are the defaults there, and can be given all the same."""
    options = ["--method", method, "--n-components", 2, "--epsilon", rule]
    assert exit_code("embed", clouds, "-o", tmp_path / "out.npy", *options) == 0
    expected = make(2, epsilon=rule, random_state=0).fit_transform(np.load(clouds))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_a_picture_needs_no_graph(clouds, tmp_path):
    pytest.importorskip("matplotlib")
    options = ["--method", "mixture-diffusion", "-p", "mixture=1", "--plot", tmp_path / "out.png"]
    assert exit_code("embed", clouds, "-o", tmp_path / "out.npy", *options) == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-p", "mixture=2"], "heat-embedding has no parameter 'mixture'; it belongs to mixture-"),
        (["--method", "mixture-diffusion", "--alpha", "1"], "has no parameter 'alpha'"),
        (["--method", "mixture-diffusion", "--time", "auto"], "time='auto'"),
        (["--method", "mixture-diffusion", "-p", "mixture=0"], "mixture=0"),
    ],
)
def test_options_of_other_methods_are_refused(clouds, tmp_path, capsys, options, says):
    assert exit_code("embed", clouds, "-o", tmp_path / "out.npy", *options) != 0
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out.npy").exists()
