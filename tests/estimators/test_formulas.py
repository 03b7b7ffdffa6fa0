"""Estimators against the formulas of the papers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm

import heatsketch as hs
from heatsketch._random import random_block
from problems.estimators import affinity_of, every_normalization, operator_of


def walk_of(K, alpha):
    """P, written out: rows that sum to 1."""
    q = K.sum(axis=1) ** alpha
    K = K / np.outer(q, q)
    return K / K.sum(axis=1, keepdims=True)


def row_weights(pi, normalization):
    return 1 / np.sqrt(pi) if normalization == "markov" else np.ones(len(pi))


def assert_equal_up_to_signs(F, expected, atol):
    assert F.shape == expected.shape
    assert_allclose(F * np.sign((F * expected).sum(axis=0)), expected, rtol=0, atol=atol)


# The formulas of the papers


SKETCHES = [("power", t, kind) for t in (1, 2, 5) for kind in ("gaussian", "rademacher")]


@pytest.mark.parametrize(
    ("filter", "time", "kind"), [*SKETCHES, *(("heat", t, "gaussian") for t in (0.3, 2.0, 20.0))]
)
@every_normalization
def test_heat_sketch_is_a_filter_of_the_operator(normalization, filter, time, kind, X):
    k, n = 6, len(X)
    A, pi = operator_of(affinity_of(X, 1.0), normalization)
    off = np.eye(n) - np.sqrt(np.outer(pi, pi))
    if filter == "power":
        f = np.linalg.matrix_power(A, time)
    else:
        f = expm(time * (A - np.eye(n))) - np.exp(-time) * np.eye(n)
    expected = off @ f @ off @ random_block(n, k, kind, 5) / np.sqrt(k)
    expected *= row_weights(pi, normalization)[:, None]
    options = {"affinity": "dense", "epsilon": 1.0, "tol": 1e-13, "random_state": 5}
    model = hs.HeatSketch(k, time, filter=filter, kind=kind, normalization=normalization, **options)
    atol = (1e-11 if filter == "power" else 1e-10) * np.abs(expected).max()
    assert_allclose(model.fit_transform(X), expected, rtol=0, atol=atol)


def test_a_whole_float_is_a_whole_time(X):
    three, also_three = (hs.HeatSketch(time=t, random_state=0).fit(X) for t in (3, 3.0))
    assert_array_equal(three.embedding_, also_three.embedding_)


@pytest.mark.statistical
@every_normalization
def test_squared_distances_are_diffusion_distances_on_average(normalization):
    """For each pair, k |y_i - y_j|² / D² is chi-square with k degrees of freedom.

    k = 100,000: standard deviation of the ratio 0.0045; three times 15 pairs at 5.6 deviations
    each give an alarm by chance in fewer than 1e-6 of all seeds. Sees a factor off by 2.5 %, so the
    power t + 1 in place of t, and any other power of k.
    """
    X, k, time = np.random.default_rng(4).normal(size=(6, 2)), 100_000, 2
    A, pi = operator_of(affinity_of(X, 1.5), normalization)
    weights = row_weights(pi, normalization)[:, None]
    i, j = np.triu_indices(6, 1)

    def squared(power):
        # D of rows of A^t less the trivial direction, which sketches leave out.
        rows = np.linalg.matrix_power(A - np.sqrt(np.outer(pi, pi)), power) * weights
        return ((rows[i] - rows[j]) ** 2).sum(axis=1)

    Y = hs.HeatSketch(
        k, time, affinity="dense", epsilon=1.5, normalization=normalization, random_state=0
    ).fit_transform(X)
    found, bound = ((Y[i] - Y[j]) ** 2).sum(axis=1), 5.6 * np.sqrt(2 / k)
    assert np.abs(found / squared(time) - 1).max() < bound
    assert np.abs(found / squared(time + 1) - 1).max() > bound


@pytest.mark.parametrize("time", [1, 3, 10])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_diffusion_map_is_algorithm_3(normalization, time, X):
    A, _ = operator_of(affinity_of(X, 1.0), normalization)
    values, vectors = np.linalg.eigh(A)
    expected = (values**time * vectors)[:, ::-1][:, 1:5]
    model = hs.DiffusionMap(
        4, time, affinity="dense", epsilon=1.0, normalization=normalization, tol=1e-13
    ).fit(X)
    assert_equal_up_to_signs(model.embedding_, expected, 1e-10)
    assert_allclose(model.eigenvalues_, values[::-1][1:5], rtol=1e-10)
    assert_allclose(A @ model.eigenvectors_, model.eigenvectors_ * model.eigenvalues_, atol=1e-10)
    assert (model.residuals_ < 1e-12).all()


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 0.3])
def test_markov_form_holds_the_right_eigenvectors_of_the_walk(alpha, X):
    n = len(X)
    P = walk_of(affinity_of(X, 1.0), alpha)
    model = hs.DiffusionMap(n - 1, affinity="dense", epsilon=1.0, alpha=alpha).fit(X)
    d, R, lam = model.diffusion_, model.eigenvectors_, model.eigenvalues_
    pi = d.expand(d.measure)
    assert_allclose(pi @ P, pi, rtol=1e-12)
    assert_allclose(R.T @ (pi[:, None] * R), np.eye(n - 1), rtol=0, atol=1e-10)
    assert_allclose(P @ R, lam * R, rtol=0, atol=1e-10 * np.abs(R).max())
    assert_allclose(pi @ R, 0, rtol=0, atol=1e-11)
    assert_allclose(model.embedding_, lam * R, rtol=0, atol=1e-10)


def test_automatic_time_is_at_least_one():
    clouds, _ = hs.datasets.gaussian_clouds(90, separation=6.0, rng=0)
    model = hs.DiffusionMap(2, "auto", affinity="dense", epsilon=60.0, delta=0.9).fit(clouds)
    assert model.time_ == 1


def test_automatic_components_serve_every_time(X):
    common = {"delta": 0.1, "affinity": "dense", "epsilon": 2.0}
    alone = [hs.DiffusionMap("auto", t, **common).fit(X).eigenvalues_ for t in (3, 1, 2)]
    model = hs.DiffusionMap("auto", [3, 1, 2], **common).fit(X)
    assert len(model.eigenvalues_) == max(map(len, alone)) > min(map(len, alone))


def test_heat_and_power_filters_weigh_the_same_eigenvectors(X):
    common = {"affinity": "dense", "epsilon": 1.0}
    power = hs.DiffusionMap(4, 3, **common).fit(X)
    heat = hs.DiffusionMap(4, 3.5, filter="heat", **common).fit(X)
    lam = power.eigenvalues_
    assert_array_equal(heat.eigenvectors_, power.eigenvectors_)
    assert_allclose(power.embedding_, lam**3 * power.eigenvectors_, atol=1e-12)
    weights = np.exp(-3.5 * (1 - lam)) - np.exp(-3.5)
    assert_allclose(heat.embedding_, weights * power.eigenvectors_, atol=1e-12)
