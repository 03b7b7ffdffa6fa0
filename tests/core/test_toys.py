"""The recipes for an operator and a filter in CONTRIBUTING, followed: one class each, everywhere.

Both, in files of their own, have only what they must have, and are compared with the dense matrix.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import circulant
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch._random import random_block
from heatsketch.core.operators import Operator
from heatsketch.spectral.filters import FILTERS
from problems.toy_filter import Resolvent
from problems.toy_operator import Circulant

N = 90
DISTANCE = np.minimum(np.arange(N), N - np.arange(N))
COLUMN = np.exp(-((DISTANCE / 3.0) ** 2))
OPERATOR, MATRIX = Circulant(COLUMN), circulant(COLUMN)


@pytest.fixture
def resolvent(monkeypatch):
    monkeypatch.setitem(FILTERS, "resolvent", Resolvent)


@pytest.fixture(scope="module")
def diffusions():
    return hs.Diffusion.from_affinity(OPERATOR), hs.Diffusion.from_affinity(MATRIX)


@pytest.mark.parametrize("f", [hs.Power(3), hs.Power(200), hs.Heat(7.5), Resolvent(3.0)])
@pytest.mark.parametrize("deflate", [True, False])
def test_the_operator_is_sketched(f, deflate):
    G = np.random.default_rng(0).normal(size=(N, 5))
    found, expected = (
        hs.sketch(hs.symmetric_normalize(K), f, G=G, deflate=deflate) for K in (OPERATOR, MATRIX)
    )
    assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_its_eigenvalues_and_distances_are_those_of_the_matrix(diffusions):
    toy, dense = diffusions
    expected = np.sort(np.linalg.eigvalsh(dense.operator @ np.eye(N)))[::-1][:7]
    assert_allclose(hs.eigh(toy.operator, 7, rng=0).values, expected, atol=1e-12)
    D = [hs.diffusion_distance(d, time=6) for d in diffusions]
    assert_allclose(*D, rtol=1e-8)


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
def test_it_is_normalised_and_certified(normalization):
    d, dense = (
        hs.Diffusion.from_affinity(K, normalization=normalization) for K in (OPERATOR, MATRIX)
    )
    assert_allclose(d.operator @ np.eye(N), dense.operator @ np.eye(N), atol=1e-8)
    assert_allclose(d.measure, 1 / N, rtol=1e-8)


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.DiffusionMap])
def test_estimators_take_its_diffusion(make, diffusions):
    fits = (make(4, 5, affinity="precomputed", random_state=0).fit(d) for d in diffusions)
    # Eigenvalues are double: coordinates of the map agree up to rotations, distances agree.
    assert_allclose(*(pdist(fit.embedding_) for fit in fits), rtol=1e-6)


@pytest.fixture
def rows(resolvent, diffusions):
    """The rows of f(A) - f(0) less the trivial direction, in the Markov form."""
    d = diffusions[1]
    lam, V = np.linalg.eigh(d.operator @ np.eye(N))
    f = np.where(lam > 1 - 1e-12, 0.0, Resolvent(5.0)(lam) - Resolvent(5.0)(0.0))
    return d, f, V / np.sqrt(d.measure)[:, None], V


def test_the_sketch_takes_the_filter_by_its_name(rows):
    d, f, R, V = rows
    sketch = hs.HeatSketch(6, 5, filter="resolvent", affinity="precomputed", random_state=0).fit(d)
    G = random_block(N, 6, "gaussian", 0) / np.sqrt(6)
    assert_allclose(sketch.embedding_, (R * f) @ (V.T @ G), atol=1e-9)
    assert_allclose(sketch.transform(MATRIX[:3]), sketch.embedding_[:3], rtol=1e-9)


def test_the_map_takes_the_filter_by_its_name(rows):
    d, f, R, _ = rows
    fitted = hs.DiffusionMap(4, 5, filter="resolvent", affinity="precomputed").fit(d)
    largest = np.argsort(-f)[:4]
    assert_allclose(pdist(fitted.embedding_), pdist(R[:, largest] * f[largest]), rtol=1e-7)


@pytest.mark.parametrize(("filter", "toy"), [("resolvent", False), ("power", True)])
def test_the_heat_embedding_takes_both(filter, toy, rows, diffusions):
    d, f, R, _ = rows
    fitted = hs.HeatEmbedding(2, 5, filter=filter, affinity="precomputed", random_state=0)
    Y = fitted.fit_transform(diffusions[0] if toy else d)
    D = hs.diffusion_distance(d, 5, deflate=True) if toy else pdist(R * f)
    assert hs.distortion(Y, D).log_L == pytest.approx(fitted.distortion_.log_L, abs=1e-6)


def test_distances_of_the_filter_are_compared(resolvent):
    """Two filters of the class are never equal: nothing may depend on that."""
    X, Y = np.random.default_rng(0).normal(size=(2, N, 2))
    d = hs.diffusion(X)
    D = hs.diffusion_distance(d, 5, filter="resolvent")
    found = hs.metrics.diffusion_distortion(Y, d, 5, filter="resolvent")
    assert found.log_L == pytest.approx(hs.distortion(Y, D).log_L, rel=1e-9)


def test_times_of_the_filter_follow_from_its_values(resolvent, diffusions):
    map_ = hs.DiffusionMap(2, "auto", filter="resolvent", affinity="precomputed", delta=0.4)
    t, lam = map_.fit(diffusions[1]).time_, np.array([map_.eigenvalues_[0], 0.0])
    lam[1] = hs.eigh(diffusions[1].operator, 4, rng=0).values[3]
    high, low = Resolvent(t)(lam) - Resolvent(t)(np.zeros(2))  # what coordinates are weighed by
    assert low / high == pytest.approx(0.4, rel=1e-9)
    gap = hs.DiffusionMap(2, "gap", filter="resolvent", affinity="precomputed")
    t = gap.fit(diffusions[1]).time_
    first, last = gap.eigenvalues_[1], lam[1]
    # The largest difference of 1 / (1 + ta) and 1 / (1 + tb) is at t = 1 / √(ab).
    assert t == pytest.approx(1 / np.sqrt((1 - first) * (1 - last)), rel=1e-3)


class Foreign(Operator):
    """A symmetric matrix whose products come as `given` makes them."""

    def __init__(self, dtype, given):
        self.n, self.dtype, self.spectrum, self.given = N, np.dtype(dtype), (-N, N), given

    def _matmul(self, X):
        return self.given(MATRIX @ X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float64, np.float32, np.ndarray.tolist])
@pytest.mark.parametrize("f", [hs.Power(3), hs.Heat(2.0)], ids=str)
def test_products_of_any_form_are_taken_in_the_precision_of_the_operator(dtype, given, f):
    found = hs.sketch(Foreign(dtype, given), f, 4, rng=0)
    expected = hs.sketch(hs.Dense(MATRIX.astype(dtype), (-N, N)), f, 4, rng=0)
    assert found.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 and given is not np.float32 else 1e-5
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_products_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"A product of Foreign has shape \(89, .*a row for each"):
        hs.eigh(hs.Deflated(Foreign(float, lambda Y: Y[1:]), np.eye(N, 1)), 2)
