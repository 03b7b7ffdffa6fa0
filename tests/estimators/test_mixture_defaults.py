"""MixtureDiffusion() as it is: small models of any data, whatever the units, and densities of x."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.stats import binomtest, multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.mixture import GaussianMixture

import heatsketch as hs
from heatsketch._messages import ConvergenceWarning, ScaleWarning
from problems.clouds import noisy_tree

KILOBYTE = 1024


DATA = {
    "iris": lambda: load_iris()["data"],
    "wine": lambda: load_wine()["data"],
    "cancer": lambda: load_breast_cancer()["data"],
    "digits": lambda: hs.datasets.digits()[0][::2],
    "roll": lambda: hs.datasets.swiss_roll(700, rng=0)[0],
    "tree": lambda: noisy_tree(700, branches=10, d=60),
    # Nothing here is of low dimension, or in few directions.
    "noise": lambda: np.random.default_rng(0).normal(size=(700, 60)),
    "outliers": lambda: np.random.default_rng(0).standard_t(3, size=(700, 10)),
}


@pytest.mark.parametrize("name", DATA)
def test_default_models_are_small_and_their_distances_those_of_the_closed_form(name, tmp_path):
    """What the README says of the size; errors are looked for in all pairs of other points."""
    X = np.random.default_rng(0).permutation(DATA[name]())
    old, new = X[: 2 * len(X) // 3], X[2 * len(X) // 3 :]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("ignore", ScaleWarning)  # of tables in several units, of outliers
        model = hs.MixtureDiffusion(random_state=0).fit(old)
        Y = model.transform(new)
    hs.save_model(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 100 * KILOBYTE
    assert 0.9 < model.diagnostics_["typical_distance"] < 1.1
    assert model.diagnostics_["distance_error"] <= 0.11
    z = model.whitening_(new)
    d = np.sqrt(model.kernel_.squared_distance(z, z))[np.triu_indices(len(z), 1)]
    left = model.distance_error(new)
    off = d - pdist(Y)
    assert off.min() > -1e-6
    assert (off <= (left[:, None] + left)[np.triu_indices(len(z), 1)] + 1e-6).all()
    assert off.mean() < 0.02


# Units


@pytest.mark.parametrize("count", [1, 2])
def test_units_and_linear_maps_of_the_features_change_nothing(count):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)) + 5 * rng.integers(2, size=(300, 1))
    model = hs.MixtureDiffusion(mixture=count, tolerance=0.01, random_state=0)
    d = pdist(model.fit_transform(X))
    for A in (np.diag([1.0, 1e3, 1e-3]), rng.normal(size=(3, 3)), 2.0**-150 * np.eye(3)):
        assert_allclose(pdist(model.fit_transform(X @ A + 7 * A[0])), d, atol=0.01)


def test_a_number_a_rule_or_a_mixture_of_your_own_are_of_the_data_as_they_are():
    X = load_iris()["data"]
    mixture = GaussianMixture(2, random_state=0)
    for options in ({"epsilon": 1.0}, {"epsilon": "ksum"}, {"mixture": mixture}):
        model = hs.MixtureDiffusion(random_state=0, **options).fit(X)
        assert model.whitening_ is None
        assert model.kernel_.n_features == 4
    assert_allclose(model.epsilon_, np.median(pdist(X, "sqeuclidean")) / 2, rtol=0.05)


def test_one_feature_that_chooses_the_components_is_warned_of():
    X = np.random.default_rng(0).normal(size=(100, 12)) * np.where(np.arange(12) == 3, 1e3, 1.0)
    model = hs.MixtureDiffusion(mixture=1, random_state=0)
    with pytest.warns(ScaleWarning, match="Feature 3 carries"):
        model.fit(X)
    with pytest.warns(ScaleWarning, match="Feature 'column 3' carries"):
        model.fit(pd.DataFrame(X).add_prefix("column "))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:, :10])  # none is left out


# Densities


def test_density_of_one_component_is_a_normal_density_of_the_data():
    """In the coordinates of all directions the noise has the covariance (q ε/2 / trace) of X."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
    model = hs.MixtureDiffusion(mixture=1, random_state=0).fit(X)
    C = np.cov(X.T, bias=True)
    z = model.whitening_(X)
    noise = model.epsilon_ / 2 / z.var(axis=0)
    assert_allclose(noise, noise[0])
    expected = multivariate_normal(X.mean(axis=0), (1 + noise[0]) * C).logpdf(X)
    assert_allclose(model.score_samples(X), expected, rtol=1e-4)
    assert_allclose(model.stationary_, np.exp(model.kernel_.log_stationary(z)))


def test_components_left_out_have_the_normal_density_of_their_mean_variance():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 16)) * np.linspace(3, 0.5, 16)
    model = hs.MixtureDiffusion(mixture=1, random_state=0).fit(X)
    values, axes = np.linalg.eigh(np.cov(X.T))
    noise = model.epsilon_ / 2 / model.whitening_(X).var(axis=0)[0]
    values[-10:] *= 1 + noise
    values[:6] = values[:6].mean()
    expected = multivariate_normal(X.mean(axis=0), (axes * values) @ axes.T).logpdf(X)
    assert_allclose(model.score_samples(X), expected, rtol=1e-3)


def test_points_off_the_components_are_new():
    """Their coordinates are those of training points; only what is left out tells them apart."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 40)) * np.where(np.arange(40) < 10, 5.0, 1.0)
    model = hs.MixtureDiffusion(2, mixture=1, random_state=0).fit(X)
    off = X[:20].copy()
    direction = np.eye(40)[39] - model.whitening_.axes @ model.whitening_.axes[39]
    off += 20 * direction
    assert_allclose(model.whitening_(off), model.whitening_(X[:20]), atol=1e-9)
    assert_array_equal(model.novelty(off), 1.0)
    with pytest.warns(ScaleWarning, match=r"20 new point\(s\)"):
        model.transform(off)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("m", [4, 40, 400])
def test_new_points_of_the_same_law_are_not_new(m):
    """10 % above 0.9; quantiles of 200 points vary, hence the mean of 12 fits and ± 5 %."""
    counts = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, new = (rng.normal(size=(n, m)) * np.linspace(2, 1, m) for n in (200, 200))
        model = hs.MixtureDiffusion(2, mixture=1, random_state=0).fit(X)
        counts += int((model.novelty(new) > 0.9).sum())
    assert binomtest(counts, 2400, 0.05, "less").pvalue > 1e-6
    assert binomtest(counts, 2400, 0.15, "greater").pvalue > 1e-6


# What cannot be small, and shapes


def test_what_cannot_be_small_is_said_once():
    X = np.random.default_rng(0).standard_t(1, size=(900, 8))
    with pytest.warns(ConvergenceWarning) as found:
        hs.MixtureDiffusion(mixture=2, random_state=0).fit(X)
    said = [str(w.message) for w in found if issubclass(w.category, ConvergenceWarning)]
    assert len(said) == 1
    assert "pass a larger tolerance, max_features or epsilon, or drop outliers" in said[0]


def test_wide_and_flat_data_are_embedded():
    rng = np.random.default_rng(0)
    for X in (
        rng.normal(size=(30, 200)),
        np.column_stack([rng.normal(size=(80, 2)), np.ones(80)]),
        np.repeat(rng.normal(size=(40, 1)), 3, axis=1),
    ):
        model = hs.MixtureDiffusion(random_state=0).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert (model.novelty(X[:5] + 100 * X.std() * rng.normal(size=X.shape[1])) == 1).all()
    with pytest.raises(ValueError, match="All 9 points are equal"):
        hs.MixtureDiffusion().fit(np.ones((9, 2)))
