"""Searches of other libraries, by their names."""

import sys
import types

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from problems.clouds import cloud


class PyNNDescentTransformer(KNeighborsTransformer):
    """A stand-in that finds all neighbours, with the parameters that are passed."""

    def __init__(self, n_neighbors=5, random_state=None):
        super().__init__(n_neighbors=n_neighbors)
        self.random_state = random_state


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("pynndescent")
    module.PyNNDescentTransformer = PyNNDescentTransformer
    monkeypatch.setitem(sys.modules, "pynndescent", module)


def embedded(X, **options):
    return hs.HeatSketch(8, random_state=0, **options).fit(X)


def test_a_search_by_name_is_that_of_its_transformer(library):
    X, new = cloud(1_200, 5), cloud(20, 5, seed=1)
    named, passed = embedded(X, neighbors="pynndescent"), embedded(X)
    assert np.allclose(named.embedding_, passed.embedding_, rtol=1e-9, atol=1e-12)
    assert np.allclose(named.transform(new), passed.transform(new), rtol=1e-9, atol=1e-12)
    assert "recall" not in named.diagnostics_


def test_few_points_are_all_compared(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)  # it is not asked for
    X = cloud(60, 5)
    assert np.array_equal(embedded(X, neighbors="pynndescent").embedding_, embedded(X).embedding_)


def test_a_name_without_its_library_and_another_name_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(
        ImportError, match=r'needs that library; pip install "heatsketch\[pynndescent\]"'
    ):
        embedded(cloud(1_200, 5), neighbors="pynndescent")
    with pytest.raises(ValueError, match="neighbors='faiss' is unknown"):
        embedded(cloud(60, 5), neighbors="faiss")


def test_the_library_itself_finds_nearly_all(monkeypatch):
    pytest.importorskip("pynndescent")
    X = cloud(1_500, 10)
    named, exact = hs.diffusion(X, neighbors="pynndescent"), hs.diffusion(X)
    difference = named.operator.sparse_matrix() - exact.operator.sparse_matrix()
    assert abs(difference).sum() < 0.05 * abs(exact.operator.sparse_matrix()).sum()
