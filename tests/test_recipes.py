"""The recipes for a method and an affinity in CONTRIBUTING, followed: each has one entry in a list.

Those for an operator and a filter are followed in tests/core.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch import cli
from heatsketch.classical._base import Embedding
from heatsketch.comparison.run import ESTIMATORS
from heatsketch.io import read_table
from heatsketch.markov.affinity import AFFINITIES, Affinity
from heatsketch.markov.new_points import PointKernel


class RandomProjection(Embedding):
    """A method in as few lines as there can be: X R for a random R."""

    def __init__(self, n_components=2, *, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        X = self._read(X, reset=True)
        rng = np.random.default_rng(self.random_state)
        self._R = rng.normal(size=(X.shape[1], self.n_components))
        self.embedding_ = X @ self._R
        self.diagnostics_ = {}
        return self

    def transform(self, X):
        return self._read(X, reset=False) @ self._R


def test_a_listed_method_is_compared_and_known_to_the_command_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ESTIMATORS, "random-projection", RandomProjection)
    X, _ = hs.datasets.circle(60, rng=0)
    result = hs.compare(X, ["random-projection", "pca"], n_neighbors=5, random_state=3)
    assert [row.error for row in result.rows] == ["", ""]
    expected = RandomProjection(random_state=3).fit_transform(X)
    np.testing.assert_array_equal(result.embeddings["random-projection"], expected)
    np.save(tmp_path / "points.npy", X)
    out = tmp_path / "out.csv"
    given = ["embed", str(tmp_path / "points.npy"), "-o", str(out), "--method", "random-projection"]
    assert cli.main([*given, "--n-components", "3", "--random-state", "5"]) == 0
    expected = RandomProjection(3, random_state=5).fit_transform(X)
    np.testing.assert_allclose(read_table(out).values, expected, rtol=1e-12)
    assert "random-projection" in capsys.readouterr().out


def test_a_listed_method_reads_as_the_others_do():
    with pytest.raises(ValueError, match="X contains NaN"):
        RandomProjection().fit([[0.0, np.nan], [1.0, 2.0]])


# An affinity


@dataclass(frozen=True, eq=False, kw_only=True)
class CauchyKernel(PointKernel):
    """1 / (1 + |x - y|² / ε) of new points."""

    epsilon: float

    def new_rows(self, X):
        return 1 / (1 + cdist(X, self.points, "sqeuclidean") / self.epsilon)


def cauchy_affinity(X, epsilon, n_neighbors, search, cut):
    kernel = CauchyKernel(points=X, n_neighbors=n_neighbors, epsilon=epsilon)
    return Affinity(hs.Dense(kernel.new_rows(X)), np.arange(len(X)), kernel, epsilon=epsilon)


def unweighable_affinity(X, epsilon, n_neighbors, search, cut):
    built = cauchy_affinity(X, epsilon, n_neighbors, search, cut)
    return Affinity(built.operator, built.vertex, built.kernel, weighable=False)


@pytest.fixture
def cauchy(monkeypatch):
    monkeypatch.setitem(AFFINITIES, "cauchy", cauchy_affinity)
    monkeypatch.setitem(AFFINITIES, "unweighable", unweighable_affinity)
    return {"affinity": "cauchy", "epsilon": 2.0}


POINTS, NEW = np.random.default_rng(0).normal(size=(80, 3)), np.full((1, 3), 0.5)


LINEAR = partial(hs.HeatEmbedding, layout="linear")  # a free layout also looks at distances


@pytest.mark.parametrize(
    "make", [hs.HeatSketch, LINEAR, hs.DiffusionMap], ids=["sketch", "embedding", "map"]
)
def test_estimators_take_the_affinity_by_its_name(make, cauchy):
    model = make(2, 4, random_state=0, **cauchy).fit(POINTS)
    kernel = CauchyKernel(points=POINTS, n_neighbors=15, epsilon=2.0)
    given = make(2, 4, random_state=0, affinity="precomputed").fit(kernel.new_rows(POINTS))
    assert_allclose(model.embedding_, given.embedding_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.transform(NEW), given.transform(kernel.new_rows(NEW)), rtol=1e-9)
    assert_allclose(model.transform(POINTS[:3]), model.embedding_[:3], rtol=1e-9)
    assert 0 <= model.novelty(NEW)[0] <= 1
    free = hs.HeatEmbedding(2, 4, **cauchy).fit(POINTS)
    assert_array_equal(free.transform(POINTS), free.embedding_)


def test_its_points_are_weighed_if_it_says_so(cauchy):
    def first(Y):
        return np.linalg.norm(Y[0] - Y[1])

    model = hs.HeatSketch(8, random_state=0, **cauchy).fit(POINTS)
    found = hs.data_interval(model, POINTS[:2], first, n_resamples=20, rng=0)
    assert found.low < found.value < found.high
    model = hs.HeatSketch(8, random_state=0, affinity="unweighable", epsilon=2.0).fit(POINTS)
    with pytest.raises(ValueError, match="cannot be weighed"):
        hs.data_interval(model, POINTS[:2], first, n_resamples=20, rng=0)


def test_the_command_line_knows_the_affinity(cauchy, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    out = tmp_path / "out.csv"
    given = ["embed", str(tmp_path / "points.npy"), "-o", str(out), "--method", "heat-sketch"]
    assert cli.main([*given, "--affinity", "cauchy", "--epsilon", "2"]) == 0
    expected = hs.HeatSketch(random_state=0, **cauchy).fit_transform(POINTS)
    assert_allclose(read_table(out).values, expected, rtol=1e-12, atol=1e-15)
