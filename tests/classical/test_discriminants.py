"""Discriminants: the generalised eigenproblem, what J is blind to, and what must be refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, solve

from heatsketch.classical import FisherDiscriminant, MultipleDiscriminant

EVERY = {"fisher": FisherDiscriminant, "multiple": MultipleDiscriminant}
every_discriminant = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def clouds(sizes, d, seed=0):
    """Points of classes of these sizes about random means, with a common covariance."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = 2 * rng.normal(size=(len(sizes), d))[labels] + rng.normal(size=(len(labels), d))
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return X * rng.uniform(1, 5, size=d) @ Q, labels


def scatters(X, y):
    """S_w and S_b, written out."""
    m = X.mean(axis=0)
    S_w, S_b = np.zeros((2, X.shape[1], X.shape[1]))
    for label in np.unique(y):
        own = X[y == label]
        S_w += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
        S_b += len(own) * np.outer(own.mean(axis=0) - m, own.mean(axis=0) - m)
    return S_w, S_b


def means_of(X, y):
    return np.array([X[y == label].mean(axis=0) for label in np.unique(y)])


# The eigenproblem


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 6))
def test_directions_solve_the_generalised_eigenproblem(seed, c, d):
    X, y = clouds(range(8, 8 + c), d, seed)
    S_w, S_b = scatters(X, y)
    found = MultipleDiscriminant().fit(X, y)
    k = min(c - 1, d)
    assert found.components_.shape == (k, d)
    values = eigh(S_b, S_w, eigvals_only=True)[::-1]
    assert_allclose(found.eigenvalues_, values[:k], rtol=1e-8)
    W = found.components_.T
    error = S_b @ W - S_w @ W * found.eigenvalues_
    assert np.abs(error).max() <= 1e-9 * np.abs(S_b).max() * np.abs(W).max()
    assert_allclose(found.explained_ratio_.sum(), 1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_fisher_is_the_formula_of_the_notes(seed, d):
    X, y = clouds([9, 12], d, seed)
    S_w, _ = scatters(X, y)
    m_1, m_2 = means_of(X, y)
    w = solve(S_w, m_2 - m_1)
    fisher = FisherDiscriminant().fit(X, y)
    assert_allclose(fisher.components_[0], w / np.linalg.norm(w), atol=1e-7)
    # J(w) = Δᵀ S_w⁻¹ Δ at its maximum
    assert_allclose(fisher.objective_, (m_2 - m_1) @ w, rtol=1e-8)


def test_scores_have_covariance_one_within_classes_and_mean_zero():
    X, y = clouds([20, 30, 40], 5)
    found = MultipleDiscriminant().fit(X, y)
    S_w, S_b = scatters(found.embedding_, y)
    assert_allclose(S_w / len(X), np.eye(2), atol=1e-12)
    assert_allclose(S_b / len(X), np.diag(found.eigenvalues_), atol=1e-11)
    assert_allclose(found.embedding_.mean(axis=0), 0, atol=1e-12)
    assert_allclose((X - found.mean_) @ found.components_.T, found.embedding_, atol=1e-10)


def test_means_on_a_line_leave_one_direction():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(60, 3))
    y = np.repeat([0, 1, 2], 20)
    noise -= means_of(noise, y)[y]
    X = noise + np.outer(y, [1.0, 2.0, 3.0])
    found = MultipleDiscriminant().fit(X, y)
    assert found.diagnostics_ == {"classes": 3, "discriminants": 1}
    assert found.embedding_.shape == (60, 1)
    with pytest.raises(ValueError, match=r"3 classes differ in 1 direction.s.; .* <= 1"):
        MultipleDiscriminant(2).fit(X, y)


# What J does not see


@given(st.integers(0, 2**32 - 1))
def test_scores_do_not_depend_on_the_coordinates_of_the_points(seed):
    X, y = clouds([12, 15, 9], 4, seed % 1000)
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, size=(4, 4)) + 5 * np.eye(4)  # strictly diagonally dominant
    moved, X_new = X @ A + rng.normal(size=4), 3 * rng.normal(size=(5, 4))
    plain, other = MultipleDiscriminant().fit(X, y), MultipleDiscriminant().fit(moved, y)
    assert_allclose(other.embedding_, plain.embedding_, atol=1e-7)
    shift = moved[0] - X[0] @ A
    assert_allclose(other.transform(X_new @ A + shift), plain.transform(X_new), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_constant_and_dependent_features_change_nothing(dtype, offset):
    X, y = clouds([12, 15, 9], 3)
    X = X + offset
    more = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2], np.full(len(X), 7.7e5)]).astype(dtype)
    found = MultipleDiscriminant().fit(more, y)
    expected = MultipleDiscriminant().fit_transform(X, y)
    assert_allclose(found.embedding_, expected, atol=1e-10 if dtype == np.float64 else 2e-2)
    assert np.abs(found.components_).max() < 1e3  # nothing that is rounding is blown up


# S_w singular


def test_shrinkage_solves_the_problem_it_states():
    X, y = clouds([6, 7, 8], 40)  # more features than points
    gamma = 0.1
    S_w, S_b = scatters(X, y)
    S_w = (1 - gamma) * S_w + gamma * np.diag(np.diag(S_w + S_b))
    found = MultipleDiscriminant(shrinkage=gamma).fit(X, y)
    assert_allclose(found.eigenvalues_, eigh(S_b, S_w, eigvals_only=True)[:-3:-1], rtol=1e-9)
    W = found.components_.T
    assert_allclose(S_b @ W, S_w @ W * found.eigenvalues_, atol=1e-8 * np.abs(S_b @ W).max())
    assert_allclose(W.T @ S_w @ W, len(X) * np.eye(2), atol=1e-8)


@every_discriminant
@pytest.mark.parametrize("kind", ["wide", "constant in classes", "single points"])
def test_infinite_objective_is_an_error_that_names_the_way_out(make, kind):
    X, y = clouds([8, 9], 30 if kind == "wide" else 3)
    if kind == "constant in classes":
        X[:, 1] = 0.1 + 0.2 * y
    if kind == "single points":
        X, y = X[:2], np.array([0, 1])
    with pytest.raises(ValueError, match=r"S_w is singular: in 1 direction.* shrinkage"):
        make().fit(X, y)
    first, second = means_of(make(shrinkage=0.01).fit_transform(X, y), y)
    assert second > first


@every_discriminant
@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], "means of the classes coincide"),
        (np.full((4, 2), 3.3), "do not differ beyond rounding"),
    ],
)
def test_what_does_not_differ_is_an_error(make, X, match):
    with pytest.raises(ValueError, match=match):
        make().fit(X, [0, 0, 1, 1])


# Labels


@every_discriminant
def test_labels_may_be_text_or_categories(make):
    X, y = clouds([12, 15], 3)
    expected = make().fit_transform(X, y)
    for labels in (np.array(["a", "b"])[y], pd.Series(["a", "b"]).iloc[y].astype("category")):
        found = make().fit(X, labels)
        assert_array_equal(found.embedding_, expected)
        assert_array_equal(found.classes_, ["a", "b"])


@every_discriminant
@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "requires y"),
        (np.zeros(27), "one class"),
        (np.linspace(0, 1, 27), "continuous"),
        (np.array(["a", "b", None] * 9, dtype=object), r"no label in 9 row\(s\) \(2, 5"),
        (
            np.ma.masked_array(np.arange(27) % 2, np.arange(27) == 3),
            r"no label in 1 row\(s\) \(3\)",
        ),
        (["a", float("nan"), "b"] * 9, r"no label in 9 row\(s\)"),
        (np.arange(26) % 2, "inconsistent numbers of samples"),
        (np.zeros((27, 2)), "1d array"),
    ],
)
def test_labels_that_are_none_are_refused(make, y, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make().fit(clouds([12, 15], 3)[0], y)
