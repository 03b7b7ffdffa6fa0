"""Neighbourhood graphs, what joins their parts, shortest paths, and searches that are shared."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import floyd_warshall, minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer

import heatsketch as hs
from heatsketch.classical import Isomap, LocallyLinearEmbedding
from heatsketch.neighbors import NeighborIndex
from heatsketch.neighbors.graph import (
    links_of_points,
    neighborhood_graph,
    off_diagonal,
    shortest_links,
    shortest_paths,
    spread_vertices,
    symmetric,
)
from heatsketch.neighbors.search import ExactSearch
from problems.clouds import cloud
from problems.limits import set_limits

X = cloud(90, 3)
MODES = pytest.mark.parametrize("mode", [{"n_neighbors": 6}, {"radius": 1.1}], ids=["k", "radius"])


def dense(graph):
    """The lengths of edges, infinite where there is none."""
    lengths = np.full(graph.shape, np.inf)
    entries = graph.tocoo()
    lengths[entries.row, entries.col] = entries.data
    return lengths


def graph_of(X, **mode):
    """The graph without loops, and what belongs to it."""
    graph, found = neighborhood_graph(X, **mode)
    assert_array_equal(graph.diagonal(), 0.0)
    assert graph.has_sorted_indices
    return off_diagonal(graph), found


# Graphs


@MODES
def test_the_graph_is_its_definition(mode):
    graph, found = graph_of(X, **mode)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    reach = mode.get("radius", np.sort(D, axis=1)[:, 5, None])
    expected = np.where(reach >= D, D, np.inf)
    assert_allclose(dense(graph), expected, rtol=1e-14)
    both = np.minimum(expected, expected.T)  # max(G, Gᵀ): an edge where either end has one
    assert_allclose(dense(symmetric(graph)), both, rtol=1e-14)
    counts, edges = found.counts(graph), np.isfinite(expected)
    assert counts["mean_neighbors"] == edges.sum() / 90
    assert counts["duplicates"] == 0


@MODES
def test_rows_of_new_points_are_their_neighbours_among_them_points_that_equal_them(mode):
    new = np.vstack([X[:5], X[:20] + 0.05])
    found = graph_of(X, **mode)[1]
    D = cdist(new, X)
    reach = mode.get("radius", np.sort(D, axis=1)[:, 5, None])
    expected = np.where(reach >= D, D, np.inf)
    assert_allclose(dense(found.rows(new)), expected, rtol=1e-13)


def test_a_new_point_beyond_the_radius_has_its_nearest_neighbour():
    far, found = np.array([[100.0, 0, 0]]), graph_of(X, radius=1.1)[1]
    with pytest.warns(hs.ScaleWarning, match=r"rows 0.*too far from all training points"):
        lengths = dense(found.rows(far))
    assert_array_equal(np.flatnonzero(np.isfinite(lengths[0])), [cdist(far, X).argmin()])


@MODES
def test_copies_share_a_vertex(mode):
    graph, found = graph_of(np.repeat(X, 3, axis=0), **mode)
    assert_array_equal(found.vertex, np.repeat(np.arange(90), 3))
    assert_array_equal(np.unique(found.vertex, return_index=True)[1], np.arange(0, 270, 3))
    assert_array_equal(found.by_content, np.arange(90))
    assert found.counts(graph)["duplicates"] == 180
    assert_array_equal(dense(graph), dense(graph_of(X, **mode)[0]))
    assert_array_equal(found.spread(np.arange(90)), np.repeat(np.arange(90), 3))


@pytest.mark.parametrize("exponent", [150, -150])
def test_a_power_of_two_changes_no_bit(exponent):
    graph, moved = (graph_of(points, n_neighbors=6)[0] for points in (X, np.ldexp(X, exponent)))
    assert_array_equal(dense(moved), np.ldexp(dense(graph), exponent))


@MODES
def test_sparse_points_are_points(mode):
    points = np.where(np.abs(X) < 0.4, 0.0, X)
    both = (graph_of(form(points), **mode) for form in (np.asarray, sparse.csr_matrix))
    lengths, others = (dense(graph) for graph, found in both)
    assert_allclose(others, lengths, rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 is out of range"),
        ({"radius": 0.0}, "radius=0.0 is out of range"),
    ],
)
def test_what_no_graph_can_have_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        neighborhood_graph(X, **parameters)
    with pytest.raises(ValueError, match="every row of X is the same point"):
        neighborhood_graph(np.ones((9, 2)), n_neighbors=3)


@pytest.mark.parametrize(
    "make",
    [
        hs.HeatSketch,
        hs.DiffusionMap,
        lambda k=2, **options: hs.HeatSketch(k, affinity="dense", **options),
        hs.classical.Isomap,
        hs.classical.LandmarkIsomap,
        hs.classical.LocallyLinearEmbedding,
        hs.classical.LaplacianEigenmap,
    ],
)
def test_every_estimator_has_the_same_rule_for_too_many_neighbours(make):
    options = {"random_state": 0} if "random_state" in make().get_params() else {}
    expected = make(2, n_neighbors=39, **options).fit_transform(X[:40])
    with pytest.warns(UserWarning, match="but X has 40 distinct points; using n_neighbors=39"):
        found = make(2, n_neighbors=40, **options).fit_transform(X[:40])
    assert_array_equal(found, expected)


# Links


@st.composite
def labelled_points(draw):
    """Points of the plane, and labels from 0 on, each of which occurs."""
    rng, n = np.random.default_rng(draw(st.integers(0, 10**6))), draw(st.integers(2, 40))
    count = min(draw(st.integers(2, 12)), n)
    labels = np.append(np.arange(count), rng.integers(0, count, n - count))
    return rng.normal(size=(n, 2)), rng.permutation(labels), count


@given(labelled_points(), st.booleans())
def test_links_are_a_minimum_spanning_tree_between_components(labelled, large):
    points, labels, count = labelled
    with pytest.MonkeyPatch.context() as patch:
        if large:
            set_limits(patch, small_component=0)
        i, j, d = shortest_links(points, labels)
    D = cdist(points, points)
    assert_allclose(d, D[i, j], rtol=1e-12)
    between = np.array(
        [[D[np.ix_(labels == a, labels == b)].min() for b in range(count)] for a in range(count)]
    )
    tree = minimum_spanning_tree(between)
    # In general position there is one minimum spanning tree, whose edges are found once or twice.
    assert_allclose(np.unique(d), np.sort(tree.data), rtol=1e-12)


@given(labelled_points())
def test_links_of_pairs_are_the_shortest_between_every_two_components(labelled):
    points, labels, count = labelled
    i, j, d = links_of_points(points, labels)
    D = cdist(points, points)
    assert_allclose(d, D[i, j], rtol=1e-12)
    found = {frozenset(pair): length for *pair, length in zip(labels[i], labels[j], d, strict=True)}
    assert len(d) == len(found) == count * (count - 1) // 2
    for a, b in itertools.combinations(range(count), 2):
        shortest = D[np.ix_(labels == a, labels == b)].min()
        assert_allclose(found[frozenset((a, b))], shortest, rtol=1e-12)


def test_one_component_needs_no_links():
    assert all(len(side) == 0 for side in shortest_links(X, np.zeros(90, int)))


@pytest.mark.parametrize("fit", [hs.diffusion, LocallyLinearEmbedding(radius=5).fit, Isomap().fit])
def test_sizes_of_components_count_equal_points(fit):
    clouds = np.vstack([np.repeat(X, 3, axis=0), X[:40] + np.array([1e3, 0, 0])])
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 270, 40\)"):
        fit(clouds)


def test_two_clouds_are_joined_by_the_shortest_link():
    clouds = np.vstack([X, X + np.array([30, 0, 0])])
    graph, found = graph_of(clouds, n_neighbors=6)
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 90, 90\)"):
        lengths = dense(found.connected(graph))
    lengths = lengths[np.ix_(found.vertex, found.vertex)]
    assert found.counts(graph)["components"] == 2
    across = cdist(clouds[:90], clouds[90:])
    i, j = np.nonzero(np.isfinite(lengths[:90, 90:]))
    assert (i, j) == np.unravel_index(across.argmin(), across.shape)
    assert_allclose(lengths[i, 90 + j], across.min(), rtol=1e-14)
    assert_array_equal(lengths, lengths.T)
    inside = dense(symmetric(graph))[np.ix_(found.vertex, found.vertex)]
    assert_array_equal(lengths[:90, :90], inside[:90, :90])


# Paths


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 120))
def test_paths_are_those_over_all_intermediate_vertices(seed, n, edges):
    """In a graph of one component or more, with lengths that are no metric."""
    rng = np.random.default_rng(seed)
    graph = sparse.csr_matrix((rng.exponential(size=edges), rng.integers(0, n, (2, edges))), (n, n))
    graph = off_diagonal(sparse.csr_matrix(graph.maximum(graph.T)))
    lengths = shortest_paths(graph, np.arange(n))
    # The sums are taken from the other end or in the same order: rounding, n times at most.
    assert_allclose(lengths, floyd_warshall(graph, directed=False), rtol=1e-13)


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_spread_vertices_are_max_min(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    graph, found = graph_of(points, n_neighbors=min(4, n - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DisconnectedWarning)
        graph = found.connected(graph)
    D, start = shortest_paths(graph, np.arange(n)), seed % n
    chosen = spread_vertices(graph, n, start)
    assert sorted(chosen) == list(range(n))
    assert D[start, chosen[0]] == D[start].max()
    for m in range(1, n):
        nearest = D[:, chosen[:m]].min(axis=1)
        assert nearest[chosen[m]] >= nearest.max() * (1 - 1e-12)
    assert_array_equal(spread_vertices(graph, n // 2, start), chosen[: n // 2])


def test_vertices_at_distance_zero_are_chosen_once():
    graph = sparse.csr_matrix(np.full((5, 5), np.finfo(float).tiny))
    graph.data[:] = 0.0
    assert sorted(spread_vertices(graph, 5)) == [0, 1, 2, 3, 4]


# Searches that are shared


def test_one_search_serves_all_who_are_given_the_index(monkeypatch):
    index = NeighborIndex(X, n_neighbors=10)
    searches = []
    search = ExactSearch.nearest

    def counted(self, k, x=None):
        searches.append(k)
        return search(self, k, x)

    monkeypatch.setattr(ExactSearch, "nearest", counted)
    for k in (10, 4, 7):
        shared = graph_of(X.copy(), n_neighbors=k, neighbors=index)[0]
        assert searches == [11]
        own = graph_of(X, n_neighbors=k)[0]
        searches.pop()
        assert_array_equal(dense(shared), dense(own))
    graph_of(X, n_neighbors=11, neighbors=index)
    assert searches == [11, 12]


@pytest.mark.parametrize("dim", [3, 20, 40], ids=["tree", "blocks", "lists"])
def test_fewer_neighbours_are_a_prefix_of_more_also_for_equal_queries(dim, limits):
    if dim == 40:
        limits(exact_points=100, cell_points=10)
    points = np.random.default_rng(dim).normal(size=(400, dim))
    index = NeighborIndex(points, n_neighbors=12)
    assert index.approximate == (dim == 40)
    most = index.query(None, 13)
    for x in (None, points, points.copy()):
        for k in (1, 4, 13):
            for some, all_of_them in zip(index.query(x, k), most, strict=True):
                assert_array_equal(some, all_of_them[:, :k])
        assert (index.within(None, 2.0) - index.within(x, 2.0)).nnz == 0


def test_what_a_caller_does_to_a_list_does_not_reach_the_next_one():
    index = NeighborIndex(X, n_neighbors=5)
    first = index.query(None, 4)
    expected = first.distances.copy()
    first.distances[:] = -1.0
    assert_array_equal(index.query(None, 4).distances, expected)


@pytest.mark.parametrize("other", [X[:50], X + 1e-9, X[::-1], X[:, :2]])
def test_an_index_of_other_points_is_refused(other):
    with pytest.raises(ValueError, match="neighbors is an index of"):
        neighborhood_graph(other, n_neighbors=5, neighbors=NeighborIndex(X))


@MODES
def test_transformers_and_graphs_give_the_same_graph(mode):
    graph, own = graph_of(X, **mode)
    if "radius" in mode:
        transformer = RadiusNeighborsTransformer(radius=1.1)
    else:
        transformer = KNeighborsTransformer(n_neighbors=6)
    D = sparse.csr_matrix(cdist(X, X))
    for neighbors in (transformer, D, sparse.coo_matrix(D)):
        assert_allclose(dense(graph_of(X, **mode, neighbors=neighbors)[0]), dense(graph), rtol=1e-7)
    new = graph_of(X, **mode, neighbors=transformer)[1].rows(X[:9] + 0.05)
    assert_allclose(dense(new), dense(own.rows(X[:9] + 0.05)), rtol=1e-7)
