"""Neighbourhood graphs, what joins their parts, shortest paths, and searches that are shared."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, floyd_warshall, minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from threadpoolctl import threadpool_limits

import heatsketch as hs
from heatsketch._array import Frame
from heatsketch.graphs import shortest_paths as paths
from heatsketch.graphs.links import shortest_links
from heatsketch.graphs.neighborhoods import neighborhoods
from heatsketch.graphs.shortest_paths import shortest_paths, spread_vertices
from heatsketch.neighbors import NeighborIndex
from heatsketch.neighbors.sources import search_of

X = np.random.default_rng(0).normal(size=(90, 3))
MODES = pytest.mark.parametrize("mode", [{"n_neighbors": 6}, {"radius": 1.1}], ids=["k", "radius"])


def edges_of(X, n_neighbors=None, radius=None):
    """The distances from each point to its neighbours, infinite elsewhere, by the definition."""
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    if radius is not None:
        return np.where(radius >= D, D, np.inf)
    last = np.sort(D, axis=1)[:, n_neighbors - 1, None]
    return np.where(last >= D, D, np.inf)


def dense(graph, exponent=0):
    """The lengths of edges, infinite where there is none."""
    lengths = np.full(graph.shape, np.inf)
    entries = graph.tocoo()
    lengths[entries.row, entries.col] = np.ldexp(entries.data, exponent)
    return lengths


def random_graph(n, edges, rng):
    """A symmetric graph, of one piece or not, with lengths that are no metric."""
    i, j = rng.integers(0, n, (2, edges))
    lengths = rng.exponential(size=edges)
    keep = i != j
    graph = sparse.csr_matrix((lengths[keep], (i[keep], j[keep])), shape=(n, n))
    return sparse.csr_matrix(graph.maximum(graph.T))


# Graphs


@MODES
def test_the_graph_is_its_definition(mode):
    hoods = neighborhoods(X, **mode)
    expected = edges_of(X, **mode)
    assert_allclose(dense(hoods.graph, hoods.frame.exponent), expected, rtol=1e-14)
    symmetric = np.minimum(expected, expected.T)  # max(G, Gᵀ): an edge where either end has one
    assert_allclose(dense(hoods.symmetric(), hoods.frame.exponent), symmetric, rtol=1e-14)
    edges = np.isfinite(expected)
    assert hoods.diagnostics["mean_neighbors"] == edges.sum() / 90
    assert hoods.diagnostics["duplicates"] == 0


@MODES
def test_rows_of_new_points_are_their_neighbours(mode):
    new = X[:20] + 0.05
    hoods = neighborhoods(X, **mode)
    D = cdist(new, X)
    reach = mode.get("radius", np.sort(D, axis=1)[:, 5, None])
    expected = np.where(reach >= D, D, np.inf)
    assert_allclose(dense(hoods.rows(new), hoods.frame.exponent), expected, rtol=1e-13)


@MODES
def test_training_points_are_their_own_neighbours_when_new(mode):
    far = np.vstack([X[:5], [[100.0, 0, 0]]]) if "radius" in mode else X[:5]
    hoods = neighborhoods(X, **mode)
    with (
        pytest.warns(hs.ScaleWarning, match=r"rows 5.*no training point")
        if len(far) > 5
        else nullcontext()
    ):
        lengths = dense(hoods.rows(far))
    assert_array_equal(lengths[np.arange(5), np.arange(5)], 0.0)
    if len(far) > 5:
        assert_array_equal(np.flatnonzero(np.isfinite(lengths[5])), [cdist(far[5:], X).argmin()])


@MODES
def test_copies_share_a_vertex(mode):
    hoods, single = neighborhoods(np.repeat(X, 3, axis=0), **mode), neighborhoods(X, **mode)
    assert_array_equal(hoods.vertex, np.repeat(np.arange(90), 3))
    assert hoods.diagnostics["duplicates"] == 180
    assert_array_equal(dense(hoods.graph), dense(single.graph))
    assert_array_equal(hoods.spread(np.arange(90)), np.repeat(np.arange(90), 3))


@pytest.mark.parametrize("exponent", [600, -600])
def test_a_power_of_two_changes_no_bit(exponent):
    hoods, moved = (neighborhoods(x, n_neighbors=6) for x in (X, np.ldexp(X, exponent)))
    assert moved.frame.exponent == hoods.frame.exponent + exponent
    assert_array_equal(dense(moved.graph), dense(hoods.graph))


@MODES
def test_sparse_points_are_points(mode):
    points = np.where(np.abs(X) < 0.4, 0.0, X)
    hoods, other = neighborhoods(points, **mode), neighborhoods(sparse.csr_matrix(points), **mode)
    lengths, others = (dense(h.graph, h.frame.exponent) for h in (hoods, other))
    assert_allclose(others, lengths, rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_neighbors": 90},
            "n_neighbors=90 but X has 90 distinct points; pass n_neighbors <= 89",
        ),
        ({"n_neighbors": 0}, "n_neighbors=0 is out of range"),
        ({"radius": 0.0}, "radius=0.0 is out of range"),
    ],
)
def test_what_no_graph_can_have_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        neighborhoods(X, **parameters)
    with pytest.raises(ValueError, match="every row of X is the same point"):
        neighborhoods(np.ones((9, 2)), n_neighbors=3)


# Links


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(2, 12), st.booleans())
def test_links_are_a_minimum_spanning_tree_between_components(seed, n, count, large):
    rng = np.random.default_rng(seed)
    count = min(count, n)
    labels = rng.permutation(np.append(np.arange(count), rng.integers(0, count, n - count)))
    points = rng.normal(size=(n, 2))
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr("heatsketch.graphs.links._SMALL", 0)
        i, j, d = shortest_links(points, labels)
    D = cdist(points, points)
    assert_allclose(d, D[i, j], rtol=1e-12)
    between = np.array(
        [[D[np.ix_(labels == a, labels == b)].min() for b in range(count)] for a in range(count)]
    )
    tree = minimum_spanning_tree(between)
    # In general position there is one minimum spanning tree, whose edges are found once or twice.
    assert_allclose(np.unique(d), np.sort(tree.data), rtol=1e-12)


def test_one_component_needs_no_links():
    assert all(len(side) == 0 for side in shortest_links(X, np.zeros(90, int)))


def test_two_clouds_are_joined_by_the_shortest_link():
    clouds = np.vstack([X, X + np.array([30, 0, 0])])
    hoods = neighborhoods(clouds, n_neighbors=6)
    with pytest.warns(hs.DisconnectedWarning, match=r"2 components \(sizes 90, 90\)"):
        lengths = dense(hoods.connected(), hoods.frame.exponent)
    assert hoods.diagnostics["components"] == 2
    across = cdist(clouds[:90], clouds[90:])
    i, j = np.nonzero(np.isfinite(lengths[:90, 90:]))
    assert (i, j) == np.unravel_index(across.argmin(), across.shape)
    assert_allclose(lengths[i, 90 + j], across.min(), rtol=1e-14)
    assert_array_equal(lengths, lengths.T)
    inside = dense(hoods.symmetric(), hoods.frame.exponent)
    assert_array_equal(lengths[:90, :90], inside[:90, :90])


# Paths


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 120))
def test_paths_are_those_of_scipy_and_of_all_intermediate_vertices(seed, n, edges):
    graph = random_graph(n, edges, np.random.default_rng(seed))
    lengths = shortest_paths(graph, np.arange(n))
    # The sums are taken from the other end or in the same order: rounding, n times at most.
    assert_allclose(lengths, dijkstra(graph, directed=False), rtol=1e-13)
    assert_allclose(lengths, floyd_warshall(graph, directed=False), rtol=1e-13)


def test_paths_from_some_vertices_are_rows_of_all():
    graph = neighborhoods(X, n_neighbors=6).symmetric()
    rows = np.array([7, 3, 80, 3])
    assert_array_equal(shortest_paths(graph, rows), shortest_paths(graph, np.arange(90))[rows])


@pytest.mark.parametrize("threads", [1, 3])
def test_paths_are_the_same_for_any_number_of_threads_and_blocks(threads, monkeypatch):
    graph = neighborhoods(X, n_neighbors=6).symmetric()
    expected = shortest_paths(graph, np.arange(90))
    monkeypatch.setattr(paths, "_SOURCES", 17)
    with threadpool_limits(threads):
        assert_array_equal(shortest_paths(graph, np.arange(90)), expected)


def test_vertices_without_a_path_are_infinitely_far():
    graph = sparse.block_diag([random_graph(9, 60, np.random.default_rng(1))] * 2, format="csr")
    lengths = shortest_paths(graph, np.array([0]))
    assert_array_equal(np.isfinite(lengths[0]), np.arange(18) < 9)


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_spread_vertices_are_max_min(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    hoods = neighborhoods(points, n_neighbors=min(4, n - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DisconnectedWarning)
        graph = hoods.connected()
    D = shortest_paths(graph, np.arange(n))
    chosen = spread_vertices(graph, n)
    assert sorted(chosen) == list(range(n))
    assert D[0, chosen[0]] == D[0].max()
    for m in range(1, n):
        nearest = D[:, chosen[:m]].min(axis=1)
        assert nearest[chosen[m]] >= nearest.max() * (1 - 1e-12)
    assert_array_equal(spread_vertices(graph, n // 2), chosen[: n // 2])


def test_vertices_at_distance_zero_are_chosen_once():
    graph = sparse.csr_matrix(np.full((5, 5), np.finfo(float).tiny))
    graph.data[:] = 0.0
    assert sorted(spread_vertices(graph, 5)) == [0, 1, 2, 3, 4]


# Searches that are shared


@pytest.mark.parametrize("dim", [3, 20], ids=["tree", "blocks"])
@pytest.mark.parametrize("k", [1, 5, 8])
def test_lists_shared_are_lists_searched_anew(dim, k):
    points = np.random.default_rng(dim).normal(size=(200, dim))
    points[50:60] = points[:10]  # ties, and points of equal coordinates
    shared, alone = NeighborIndex(points, n_neighbors=8), NeighborIndex(points)
    for index in (shared, shared.in_frame(Frame.of(points))):
        own = alone if index is shared else NeighborIndex(points, frame=Frame.of(points))
        for mine, fresh in zip(index.query(points, k + 1), own.query(points, k + 1), strict=True):
            assert_array_equal(mine, fresh)


@pytest.mark.parametrize("lists", [False, True], ids=["exact", "approximate"])
def test_fewer_neighbours_are_a_prefix_of_more(lists, monkeypatch):
    if lists:
        monkeypatch.setattr("heatsketch.neighbors.index.EXACT_POINTS", 100)
        monkeypatch.setattr("heatsketch.neighbors.inverted_lists._CELL", 10)
    points = np.random.default_rng(2).normal(size=(400, 20))
    index = NeighborIndex(points, n_neighbors=12)
    assert index.approximate == lists
    most = index.query(points, 13)
    for k in (1, 4, 13):
        for some, all_of_them in zip(index.query(points, k), most, strict=True):
            assert_array_equal(some, all_of_them[:, :k])


def test_one_search_serves_all_who_are_given_the_index(monkeypatch):
    index = NeighborIndex(X, n_neighbors=10)
    searches = []
    search = NeighborIndex._search

    def counted(self, x, k, any_tie=False):
        searches.append(k)
        return search(self, x, k, any_tie)

    monkeypatch.setattr(NeighborIndex, "_search", counted)
    for k in (10, 4, 7):
        given_index = neighborhoods(X.copy(), n_neighbors=k, neighbors=index)
        assert searches == [11]
        own = neighborhoods(X, n_neighbors=k)
        searches.pop()
        assert_array_equal(dense(given_index.graph), dense(own.graph))
    neighborhoods(X, n_neighbors=11, neighbors=index)
    assert searches == [11, 12]


def test_what_a_caller_does_to_a_list_does_not_reach_the_next_one():
    index = NeighborIndex(X, n_neighbors=5)
    first = index.query(X, 4)
    expected = first.distances.copy()
    first.distances[:] = -1.0
    assert_array_equal(index.query(X, 4).distances, expected)


@pytest.mark.parametrize("other", [X[:50], X + 1e-9, X[::-1], X[:, :2]])
def test_an_index_of_other_points_is_refused(other):
    with pytest.raises(ValueError, match="neighbors is an index of"):
        neighborhoods(other, n_neighbors=5, neighbors=NeighborIndex(X))


@pytest.mark.parametrize("form", [np.float32, sparse.csr_matrix])
def test_an_index_of_the_same_points_in_another_form(form):
    points = np.round(X * 4) / 4  # the same numbers in half the digits
    points = np.unique(points, axis=0)
    index = NeighborIndex(form(points))
    if form is sparse.csr_matrix:
        with pytest.raises(ValueError, match="index of other points"):
            search_of(index, points, Frame.of(points))
    else:
        shared = neighborhoods(points, n_neighbors=5, neighbors=index)
        assert_array_equal(dense(shared.graph), dense(neighborhoods(points, n_neighbors=5).graph))


def test_whole_numbers_without_a_sign_have_distances():
    pixels = np.random.default_rng(3).integers(0, 255, (60, 30)).astype(np.uint8)
    found = NeighborIndex(pixels).query(pixels, 60)
    D = cdist(pixels.astype(float), pixels.astype(float))
    assert_allclose(found.distances, np.sort(D, axis=1), rtol=1e-13)


@MODES
def test_transformers_and_graphs_give_the_same_graph(mode):
    own = neighborhoods(X, **mode)
    if "radius" in mode:
        transformer = RadiusNeighborsTransformer(radius=1.1)
    else:
        transformer = KNeighborsTransformer(n_neighbors=6)
    for neighbors in (transformer, sparse.csr_matrix(cdist(X, X))):
        hoods = neighborhoods(X, **mode, neighbors=neighbors)
        assert_allclose(dense(hoods.graph), dense(own.graph), rtol=1e-7)
    new = neighborhoods(X, **mode, neighbors=transformer).rows(X[:9] + 0.05)
    assert_allclose(dense(new), dense(own.rows(X[:9] + 0.05)), rtol=1e-7)
