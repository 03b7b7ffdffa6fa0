"""Neighbours that callers bring: transformers, graphs of distances, an index."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from heatsketch.neighbors import NeighborIndex
from problems.estimators import every_estimator, every_formula

X = np.random.default_rng(0).normal(size=(120, 4))


def distances(points=X, k=8):
    return KNeighborsTransformer(n_neighbors=k).fit_transform(points)


@every_formula
@pytest.mark.parametrize("more", [0, 5])
def test_a_transformer_gives_what_our_own_search_gives(make, more):
    own = make(n_neighbors=8).fit(X)
    transformer = KNeighborsTransformer(n_neighbors=8 + more)
    given = make(n_neighbors=8, neighbors=transformer).fit(X)
    assert not hasattr(transformer, "n_samples_fit_")  # it is left unfitted
    np.testing.assert_allclose(given.embedding_, own.embedding_, rtol=1e-9, atol=1e-12)
    new = X[:9] + 0.01
    np.testing.assert_allclose(given.transform(new), own.transform(new), rtol=1e-8, atol=1e-11)


@every_estimator
def test_training_points_come_out_of_a_transformer_as_they_went_in(make):
    fitted = make(n_neighbors=8, neighbors=KNeighborsTransformer(n_neighbors=8)).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)


@every_formula
def test_a_graph_of_distances_gives_what_our_own_search_gives(make):
    own, given = make(n_neighbors=8).fit(X), make(n_neighbors=8, neighbors=distances()).fit(X)
    np.testing.assert_allclose(given.embedding_, own.embedding_, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="no distances to new points; pass"):
        given.transform(X[:2])


def test_duplicates_share_a_vertex_of_a_transformers_graph():
    transformer = KNeighborsTransformer(n_neighbors=8)
    d = hs.diffusion(np.repeat(X, 2, axis=0), n_neighbors=8, neighbors=transformer)
    once = hs.Diffusion.from_points(X, n_neighbors=8)
    np.testing.assert_array_equal(d.vertex, np.repeat(once.vertex, 2))
    assert abs(d.directed_step - once.directed_step).max() < 1e-12


def test_an_index_says_how_exact_the_search_is(limits):
    limits(exact_points=50, cell_points=10)
    wide = np.random.default_rng(1).normal(size=(500, 20))
    default = hs.Diffusion.from_points(wide)
    assert 0.98 <= default.diagnostics["recall"] <= 1
    exact = hs.Diffusion.from_points(wide, neighbors=NeighborIndex(wide, recall=1))
    assert "recall" not in exact.diagnostics
    D = np.linalg.norm(wide[:, None] - wide[None], axis=-1)
    nearest = np.argsort(D, axis=1)[:, :16]
    rows = exact.first_points[exact.directed_step.indices.reshape(500, 16)][exact.vertex]
    np.testing.assert_array_equal(np.sort(rows, axis=1), np.sort(nearest, axis=1))


@pytest.mark.parametrize(
    ("neighbors", "error", "message"),
    [
        ("nearest", ValueError, "neighbors=.nearest. is unknown; pass one of .pynndescent"),
        (8.0, TypeError, "of type float; pass a NeighborIndex, a KNeighborsTransformer"),
        (distances()[:50, :50], ValueError, r"shape \(50, 50\) but X has 120 points"),
        (distances(k=4), ValueError, "only 4 neighbours for row 0, but 8 are needed; pass"),
        (-distances(), ValueError, "negative or non-finite numbers; pass distances"),
        (distances() * np.nan, ValueError, "negative or non-finite numbers; pass distances"),
        (NeighborIndex(X[:50]), ValueError, "index of 50 points but X has 120"),
        (KNeighborsTransformer(n_neighbors=3), ValueError, "only 3 neighbours for row 0, but 8"),
    ],
)
def test_what_cannot_be_used_is_refused(neighbors, error, message):
    with pytest.raises(error, match=message):
        hs.Diffusion.from_points(X, n_neighbors=8, neighbors=neighbors)


@pytest.mark.parametrize("recall", [0, -0.5, 1.5, np.nan])
def test_recall_is_a_fraction(recall):
    with pytest.raises(ValueError, match="recall"):
        NeighborIndex(X, recall=recall)
