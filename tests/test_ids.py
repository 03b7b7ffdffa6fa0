"""Random rows that belong to points: the same whatever the order, the company and the place."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch._random import numbers_at
from heatsketch.markov.rows import Coordinates
from problems.clouds import cloud


def shuffled(n, seed=0):
    return np.random.default_rng(seed).permutation(n)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_a_shuffled_matrix_has_the_shuffled_sketch(kind):
    X, order = cloud(40, 3, seed=1), shuffled(40)
    A = hs.symmetric_normalize(hs.gaussian_affinity(X, epsilon=2.0))
    names = np.array([f"p{i}" for i in range(40)])
    F = hs.sketch(A, hs.Power(3), 6, kind=kind, ids=names, rng=2)
    moved = A[np.ix_(order, order)]
    again = hs.sketch(moved, hs.Power(3), 6, kind=kind, ids=names[order], rng=2)
    assert_allclose(again, F[order], rtol=0, atol=1e-12 * np.abs(F).max())
    assert not np.allclose(hs.sketch(moved, hs.Power(3), 6, kind=kind, rng=2), F[order])


def test_a_part_of_a_graph_keeps_its_rows_of_G():
    """Of two separate graphs, each part sketched by itself is the part of the whole."""
    parts = [hs.gaussian_affinity(cloud(n, 2, seed=n), epsilon=1.0) for n in (9, 14)]
    whole = sparse.block_diag(parts, format="csr")
    F = hs.sketch(whole, hs.Power(2), 5, deflate=False, ids=np.arange(23), rng=0)
    for A, rows in zip(parts, (slice(0, 9), slice(9, 23)), strict=True):
        own = hs.sketch(A, hs.Power(2), 5, deflate=False, ids=np.arange(23)[rows], rng=0)
        assert_allclose(own, F[rows], rtol=1e-12)


def test_the_coordinates_of_a_heat_embedding_do_not_depend_on_the_order():
    """Beyond 2,048 points a part of them is random, and the eigenpairs are those of an iteration.

    (The map to few dimensions is a search that rounding may send to another, equally good end.)
    """
    X = np.random.default_rng(6).uniform(size=(2100, 2)) * [4, 1]
    order = shuffled(len(X))
    D = pdist(coordinates(X, np.arange(len(X)))[order[:200]])
    assert np.abs(pdist(coordinates(X[order], order)[:200]) / D - 1).max() < 1e-3
    assert np.abs(pdist(coordinates(X[order], None)[:200]) / D - 1).max() > 0.2


def coordinates(X, ids):
    d = hs.diffusion(X)
    numbers = None if ids is None else numbers_at(ids, d.vertex, d.n)
    found = Coordinates.from_operator(d.deflated, 64)
    (F,) = found.under([hs.Power(2)], 64, seed=0, numbers=numbers)
    return d.expand(F)


def test_a_heat_embedding_takes_ids():
    X, ids = hs.datasets.circle(60, rng=0)[0], np.arange(60)
    model = hs.HeatEmbedding(2, 4, random_state=0)
    Y = model.fit_transform(X, ids=ids)
    assert_array_equal(model.ids_, ids)
    assert_allclose(model.fit_transform(X), Y)  # of so few points nothing is random
    assert model.ids_ is None


def test_resamples_of_the_data_keep_the_rows_of_the_ids():
    X, ids = cloud(40, 2, seed=7), np.arange(40)[::-1]
    model = hs.HeatSketch(6, 4, random_state=1).fit(X, ids=ids)
    assert_allclose(model._under_weights(X)(np.ones(40)), model.embedding_, atol=1e-12)


def test_ids_are_metadata_of_scikit_learn():
    X, ids = cloud(50, 3, seed=8), np.arange(50)[::-1]
    model = hs.HeatSketch(4, 3, random_state=0)
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), clone(model).set_fit_request(ids=True))
        Y = pipe.fit_transform(X, ids=ids)
        assert hs.HeatEmbedding().set_fit_request(ids=True) is not None
    Z = StandardScaler().fit_transform(X)
    assert_array_equal(Y, model.fit_transform(Z, ids=ids))


def test_ids_of_both_signs_and_text_beside_bytes():
    X = cloud(120, 3)

    def sketch(ids):
        return hs.HeatSketch(5, random_state=3).fit(X[:100], ids=ids)

    signed, unsigned = (sketch(np.arange(100, dtype=kind)) for kind in ("i8", "u8"))
    assert hs.diffusion_discrepancy(signed, unsigned, rng=0).value == 0
    assert len(signed.update(X[100:], ids=np.arange(100, 120, dtype="u8")).ids_) == 120
    text = [f"é{i}" for i in range(100)]
    both = sketch(text), sketch([one.encode() for one in text])
    assert hs.diffusion_discrepancy(*both, rng=0).value == 0
