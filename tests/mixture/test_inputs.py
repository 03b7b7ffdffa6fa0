"""What a mixture kernel is made from: forms of covariances, fitted models, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from heatsketch.mixture import MixtureKernel

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.random.default_rng(1).uniform(-2, 2, (3, 3))
EPSILON = 0.8


def cloud(n: int = 8, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3, 3, (n, 3))


def agree(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Differences relative to the largest value."""
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


# Forms of a mixture


SHORT = {
    "tied": np.array([[1.0, 0.3, 0.0], [0.3, 0.6, -0.2], [0.0, -0.2, 1.5]]),
    "diag": np.array([[0.5, 1.0, 2.0], [1.0, 0.3, 0.7], [0.4, 0.4, 1.5]]),
    "spherical": np.array([0.5, 1.0, 2.0]),
}


def test_form_is_told_by_the_shape_where_it_can_be() -> None:
    with pytest.raises(ValueError, match="covariance_type"):
        MixtureKernel(WEIGHTS, MEANS, SHORT["tied"], EPSILON)
    weights, means = [0.5, 0.5], MEANS[:2]
    for given_, want in [
        (SHORT["tied"], SHORT["tied"]),
        (SHORT["diag"][:2], np.diag(SHORT["diag"][0])),
        (SHORT["spherical"][:2], 0.5 * np.eye(3)),
    ]:
        np.testing.assert_allclose(
            MixtureKernel(weights, means, given_, EPSILON).covariances[0], want, atol=1e-15
        )
    assert MixtureKernel([1.0], [[0.0]], [[2.0]], EPSILON).covariances.item() == 2


@pytest.mark.parametrize("model", [GaussianMixture, BayesianGaussianMixture])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_from_sklearn_is_the_mixture_with_noise(model: type, kind: str) -> None:
    X = np.concatenate([cloud(60), 4 + 0.3 * cloud(60, seed=6)])
    fitted = model(n_components=3, covariance_type=kind, random_state=0).fit(X)
    kernel = MixtureKernel.from_sklearn(fitted, EPSILON)
    given_ = fitted.covariances_
    full = {"full": given_, "tied": [given_] * 3}.get(kind)
    full = [np.eye(3) * c for c in given_] if full is None else full
    density = sum(
        a * multivariate_normal.pdf(X, t, c + EPSILON / 2 * np.eye(3))
        for a, t, c in zip(fitted.weights_, fitted.means_, full, strict=True)
    )
    agree(kernel.stationary(X), density, 1e-8)  # the Bayesian weights sum to 1 up to 1e-9
    if model is GaussianMixture:
        small = MixtureKernel.from_sklearn(fitted, 1e-12)
        np.testing.assert_allclose(small.log_stationary(X), fitted.score_samples(X), atol=1e-6)


# Bad input

ONE = ([1.0], [[0.0, 0.0]], [np.eye(2)])
TWO = ([0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]], [np.eye(2), np.eye(2)])
WIDE = MixtureKernel(*ONE, 1.0)


def scaled(m: int, unit: float) -> MixtureKernel:
    return MixtureKernel([1.0], np.zeros((1, m)), [unit**2], unit**2)


BAD = {
    "epsilon 0": (lambda: MixtureKernel(*ONE, 0.0), "epsilon=.*pass a number > 0"),
    "time 0": (lambda: MixtureKernel(*ONE, 1.0, time=0), "time=0.*pass an integer >= 1"),
    "time of several": (lambda: MixtureKernel(*TWO, 1.0, time=2), "MixtureDiffusion"),
    "weights short": (lambda: MixtureKernel([1.0], *TWO[1:], 1.0), r"weights of shape \(1,\)"),
    "weights sum": (lambda: MixtureKernel([0.5, 0.6], *TWO[1:], 1.0), "sum to 1"),
    "weights < 0": (lambda: MixtureKernel([1.5, -0.5], *TWO[1:], 1.0), "numbers >= 0"),
    "shape": (lambda: MixtureKernel(*TWO[:2], np.ones(3), 1.0), r"\(2, 2, 2\) \(full\)"),
    "shape of kind": (
        lambda: MixtureKernel(*TWO[:2], [np.eye(2)], 1.0, covariance_type="diag"),
        r"\(2, 2\) \(diag\)",
    ),
    "kind": (lambda: MixtureKernel(*ONE, 1.0, covariance_type="round"), "covariance_type='round'"),
    "eigenvalue": (
        lambda: MixtureKernel(*ONE[:2], [[[1.0, 2.0], [2.0, 1.0]]], 1.0),
        "covariance 0 is not .*semidefinite",
    ),
    "skew": (
        lambda: MixtureKernel(*ONE[:2], [[[1.0, 0.5], [0.0, 1.0]]], 1.0),
        "not a finite symmetric",
    ),
    "covariance NaN": (lambda: MixtureKernel([1.0], [[0.0]], [np.nan], 1.0), "finite"),
    "tiny units": (lambda: scaled(50, 1e-10), "rescale the data"),
    "huge units": (lambda: scaled(50, 1e10), "rescale the data"),
    "not fitted": (lambda: MixtureKernel.from_sklearn(GaussianMixture(2), 1.0), "pass a fitted"),
    "columns": (lambda: WIDE.stationary([[0.0]]), "1 columns.*2 features.*pass points"),
    "rows of z": (
        lambda: WIDE.squared_distance(np.zeros((2, 2)), np.zeros((3, 2)), pairwise=False),
        "2 rows and z has 3; pass as many rows",
    ),
    "ends": (
        lambda: WIDE.gradient(np.zeros((3, 2)), np.zeros((2, 2))),
        "pass one row, or as many as x",
    ),
    "ends of density": (
        lambda: WIDE.gradient([[0.0, 0.0]], [[0.0, 0.0]], kind="density"),
        "takes no z",
    ),
    "score": (lambda: WIDE.anomaly_score([[0.0, 0.0]], kind="knn"), "pass one of"),
    "bulk reached": (
        lambda: MixtureKernel(*TWO, 1e12).anomaly_score([[0.0, 0.0]], kind="distance"),
        "smaller epsilon",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_told_what_to_do(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()
