"""Graphs of other libraries: the same matrix, whatever they come in, and names that stay."""

import warnings
from types import SimpleNamespace

import igraph
import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import squareform
from sklearn.base import clone

import heatsketch as hs
from heatsketch._checks import check_points

EDGES = [("a", "b", 2.0), ("b", "c", 0.5), ("c", "a", 1.0), ("d", "b", 3.0), ("d", "d", 4.0)]
NAMES = ["a", "b", "c", "d"]
W = np.array([[0, 2, 1, 0], [2, 0, 0.5, 3], [1, 0.5, 0, 0], [0, 3, 0, 4.0]])
ENDS = np.array([[NAMES.index(e[i]) for e in EDGES] for i in (0, 1)])
WEIGHTS = np.array([e[2] for e in EDGES])


def of_networkx(kind=nx.Graph, edges=EDGES):
    G = kind()
    G.add_nodes_from(NAMES)
    G.add_weighted_edges_from(edges)
    return G


def of_igraph(edges=EDGES, directed=False):
    numbered = [(NAMES.index(a), NAMES.index(b)) for a, b, _ in edges]
    G = igraph.Graph(4, numbered, directed=directed, vertex_attrs={"name": NAMES})
    G.es["weight"] = [w for _, _, w in edges]
    return G


class Data(SimpleNamespace):
    """A graph of PyG, without PyG."""

    __module__ = "torch_geometric.data.data"


BOTH_WAYS = np.hstack([ENDS, ENDS[::-1, :4]])
TWICE = np.r_[WEIGHTS, WEIGHTS[:4]]
FORMS = {
    "networkx": of_networkx(),
    "networkx-directed": of_networkx(nx.DiGraph),
    "networkx-multi": of_networkx(nx.MultiGraph),
    "igraph": of_igraph(),
    "igraph-directed": of_igraph(directed=True),
    "pyg": Data(edge_index=BOTH_WAYS, edge_weight=TWICE, num_nodes=4),
    "pyg-attr": Data(edge_index=BOTH_WAYS, edge_attr=TWICE[:, None], num_nodes=4),
    "dense": W,
    "one-direction": np.triu(W),
    **{form: sparse.csr_matrix(W).asformat(form) for form in ("csr", "dok", "lil")},
    **{form: sparse.csr_array(W).asformat(form) for form in ("csc", "coo", "bsr", "dia")},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_matrix(form):
    found = hs.graph(FORMS[form])
    assert_array_equal(found.matrix.toarray(), W)
    assert found.matrix.format == "csr"
    assert found.matrix.dtype == np.float64
    expected = NAMES if form.startswith(("networkx", "igraph")) else None
    assert (None if found.names is None else found.names.tolist()) == expected


def of_torch(values):
    return pytest.importorskip("torch").tensor(values)


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_sparse_matrices_of_every_kind_are_the_same_operator(kind):
    found = hs.eigh(sparse.csr_matrix(W).asformat(kind), 2)
    assert_allclose(found.values, np.linalg.eigvalsh(W)[:-3:-1], rtol=1e-12)


@pytest.mark.parametrize("wrapped", [np.asarray, of_torch])
def test_an_edge_index_and_weights(wrapped):
    assert_array_equal(hs.graph(wrapped(ENDS), weight=wrapped(WEIGHTS)).matrix.toarray(), W)
    assert_array_equal(hs.graph(wrapped(BOTH_WAYS), weight=wrapped(TWICE)).matrix.toarray(), W)
    assert_array_equal(hs.graph(wrapped(BOTH_WAYS)).matrix.toarray(), W > 0)


def test_two_edges_are_told_from_a_matrix_of_two_nodes_by_what_is_said():
    given = np.array([[0, 1], [1, 0]])
    assert_array_equal(hs.graph(given).matrix.toarray(), [[0, 1], [1, 0]])
    edges = hs.graph(given, n_nodes=3).matrix.toarray()
    assert_array_equal(edges, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_weights_may_have_another_name_or_none():
    G = nx.Graph()
    G.add_edge(1, 2, strength=3.0)
    G.add_edge(2, 3)
    assert_array_equal(hs.graph(G, weight="strength").matrix.data, [3, 3, 1, 1])
    assert_array_equal(hs.graph(G).matrix.data, 1)
    for form in ("networkx", "igraph", "dense"):
        assert_array_equal(hs.graph(FORMS[form], weight=None).matrix.toarray(), W > 0)
    for G in (of_networkx(), of_igraph(), FORMS["pyg"]):
        with pytest.raises(ValueError, match="No edge has an attribute 'wait'; pass weight=None"):
            hs.graph(G, weight="wait")


def test_names_of_any_kind_stay():
    G = nx.grid_2d_graph(2, 3)
    assert hs.graph(G).names.tolist() == list(G.nodes)
    assert hs.graph(W, names="wxyz").names.tolist() == list("wxyz")
    assert hs.graph(hs.graph(G), names=range(6)).names.tolist() == list(range(6))
    with pytest.raises(ValueError, match="names has 3 entries for 4 nodes"):
        hs.graph(W, names="abc")
    for made in (hs.Diffusion.from_graph(G), hs.Diffusion.from_affinity(G)):
        assert made.names.tolist() == list(G.nodes)
    est = hs.DiffusionMap(2, filter="heat", affinity="precomputed").fit(G)
    assert est.diffusion_.names.tolist() == list(G.nodes)
    assert hs.DiffusionMap(2, affinity="precomputed").fit(W + W.T).diffusion_.names is None


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.DiffusionMap])
def test_estimators_take_a_graph_as_its_matrix(make):
    G = nx.les_miserables_graph()
    matrix = nx.to_scipy_sparse_array(G)
    model = make(2, 3, affinity="precomputed", random_state=0)
    expected = model.fit_transform(matrix)
    for given in (G, igraph.Graph.from_networkx(G), hs.graph(G), hs.graph(matrix)):
        assert_array_equal(model.fit_transform(given), expected)
    loops = matrix + sparse.eye_array(77) * 0.5
    expected = model.fit(loops).transform(loops)
    assert_array_equal(model.fit(hs.graph(loops)).transform(loops), expected)


def test_every_door_takes_a_graph_as_its_matrix():
    G, H = of_networkx(), of_igraph()
    given = [G, H, hs.graph(W), sparse.coo_array(W)]
    for door in (
        lambda A: hs.sketch(A, hs.Power(2), 3, rng=0),
        lambda A: hs.eigh(A, 3).values,
        lambda A: hs.diffusion_distance(A, 2),
        lambda A: hs.heat_trace(A, [1.0]).values,
        lambda A: np.asarray(hs.symmetric_normalize(A) @ np.eye(4)),
        lambda A: np.asarray(hs.markov_normalize(A) @ np.eye(4)),
        lambda A: hs.Diffusion.from_affinity(A).measure,
        lambda A: hs.Diffusion.from_graph(A).measure,
    ):
        for A in given:
            assert_allclose(door(A), door(W), rtol=1e-12, atol=1e-14)
    K = W + 5 * np.eye(4)
    found = hs.bistochastic_normalize(hs.graph(K)).toarray()
    assert_allclose(found, hs.bistochastic_normalize(K), rtol=1e-12)


def test_a_directed_graph_is_refused_in_place_of_a_symmetric_matrix():
    G = of_networkx(nx.DiGraph)
    for door in (
        lambda A: hs.eigh(A, 2),
        hs.Diffusion.from_affinity,
        hs.DiffusionMap(2, affinity="precomputed").fit,
    ):
        with pytest.raises(ValueError, match=r"is a directed graph; pass heatsketch\.graph\("):
            door(G)
    both = nx.DiGraph(of_networkx())
    assert_array_equal(
        hs.Diffusion.from_affinity(both).measure, hs.Diffusion.from_affinity(W).measure
    )


def test_a_graph_needs_affinity_precomputed():
    with pytest.raises(ValueError, match="of type Graph but the estimator has affinity='knn'"):
        hs.HeatSketch().fit(of_networkx())


def test_larger_of_both_directions_and_parallel_edges_added():
    directed = of_networkx(nx.MultiDiGraph, [("a", "b", 1.0), ("a", "b", 2.0), ("b", "a", 2.5)])
    assert hs.graph(directed).matrix[0, 1] == 3.0
    undirected = of_networkx(nx.MultiGraph, [("a", "b", 1.0), ("b", "a", 2.0), ("d", "d", 1.0)])
    undirected.add_edge("d", "d", weight=0.5)
    assert hs.graph(undirected).matrix[0, 1] == 3.0
    assert hs.graph(undirected).matrix[3, 3] == 1.5  # a self-loop counts once


def random_graph(seed=0, n=40):
    G = nx.gnm_random_graph(n, 3 * n, seed=seed)
    rng = np.random.default_rng(seed)
    for u, v in G.edges:
        G[u][v]["weight"] = rng.uniform(0.5, 2)
    return G


def distances(G):
    return squareform(hs.diffusion_distance(hs.Diffusion.from_graph(G), 4))


def test_the_order_of_nodes_and_edges_does_not_matter():
    G = random_graph()
    order = np.random.default_rng(1).permutation(40)
    H = nx.Graph()
    H.add_nodes_from(order.tolist())
    H.add_edges_from(list(G.edges(data=True))[::-1])
    assert hs.Diffusion.from_graph(H).names.tolist() == order.tolist()
    assert_allclose(distances(H), distances(G)[np.ix_(order, order)], rtol=1e-10)


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_a_node_without_edges_changes_nothing_between_the_others():
    G = random_graph()
    H = G.copy()
    H.add_node("alone")
    expected, found = distances(G), distances(H)[:40, :40]
    # Distances are weighted by 1 / π, and π is now shared with one more.
    ratio = expected[0, 1:] / found[0, 1:]
    assert_allclose(found * ratio[0], expected, rtol=1e-10, atol=1e-12)
    d = hs.Diffusion.from_graph(H)
    assert d.diagnostics["components"] == 2
    assert d.diagnostics["isolated"] == 1
    degrees = hs.graph(G).matrix.sum(axis=1)
    assert d.measure[-1] == pytest.approx(degrees.mean() / (degrees.sum() + degrees.mean()))
    Y = hs.HeatEmbedding(2, 4, affinity="precomputed", random_state=0).fit_transform(H)
    assert np.isfinite(Y).all()
    with pytest.raises(ValueError, match="no affinity to anything"):
        hs.Diffusion.from_affinity(hs.graph(H).matrix)  # a matrix may have it by mistake


def test_halves_that_never_meet_are_warned_of():
    grid, odd = nx.grid_2d_graph(4, 5), nx.cycle_graph(7)
    model = hs.DiffusionMap(2, affinity="precomputed")
    with pytest.warns(UserWarning, match=r"1 component\(s\).* bipartite.*Pass filter='heat'"):
        model.fit(grid)
    assert model.diffusion_.diagnostics["bipartite"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(filter="heat").fit(grid)
        for G in (odd, nx.to_numpy_array(grid) + np.eye(20)):
            assert "bipartite" not in model.fit(G).diffusion_.diagnostics
    looped = odd.copy()
    looped.add_edge(0, 0)
    for parts, count in (([grid, odd, nx.star_graph(4)], 2), ([looped, grid, looped], 1)):
        with pytest.warns(hs.DisconnectedWarning):
            d = hs.Diffusion.from_graph(nx.disjoint_union_all(parts))
        assert d.diagnostics["bipartite"] == count


def with_weight(value):
    G = of_networkx()
    G["a"]["b"]["weight"] = value
    return G


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        *((with_weight(w), {}, rf"edge \('a', 'b'\) is {w:g}") for w in (-1.0, np.nan, np.inf)),
        (with_weight("two"), {}, r"edge \('a', 'b'\) is 'two'; pass a number"),
        (of_igraph([("a", "b", "x"), ("b", "c", 1)]), {}, r"edge \('a', 'b'\) is 'x'; pass a num"),
        (-W, {}, r"edge \(0, 1\) is -2; pass finite"),
        (W * np.nan, {}, r"edge \(0, 0\) is nan"),
        (W[:3], {}, r"shape \(3, 4\).*pass a matrix \(n, n\), edges"),
        (W + 0j, {}, "complex128; pass a matrix of real numbers"),
        (ENDS, {"weight": WEIGHTS[:3]}, r"5 edges but weights of .*3,\)"),
        (ENDS, {"n_nodes": 3}, "0 to 3, but there are 3.*n_nodes >= 4"),
        (ENDS - 1, {}, "nodes -1 to 2.*numbers from 0"),
        (ENDS * 1.0, {"n_nodes": 4}, "float64.*pass integers"),
        (np.empty((0, 0)), {}, "no nodes"),
        (of_networkx(), {"weight": WEIGHTS}, "weights of its own; pass"),
        ("karate", {}, r"shape \(\).*a graph of networkx or igraph"),
    ],
)
def test_what_is_no_graph_is_refused(given, options, message):
    wrong_type = "complex128" in message or "of its own" in message
    with pytest.raises(TypeError if wrong_type else ValueError, match=message):
        hs.graph(given, **options)


def in_small_numbers(values):
    values = np.array(values)
    ends = (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    return sparse.coo_array((np.tile(values, 2), ends), shape=(2, 2))


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")  # of 2^63, beyond float64
@pytest.mark.parametrize(
    ("values", "total"),
    [
        (np.array([200, 100], np.uint8), 300),
        (np.array([100, 100], np.int8), 200),
        (np.array([True, True]), 2),
        (np.array([2**63, 2**60], np.uint64), 2**63 + 2**60),
        (np.array([2**24, 1], np.float32), 2**24 + 1),
    ],
)
def test_parallel_edges_are_added_in_more_than_their_own_precision(values, total):
    matrix = in_small_numbers(values)
    assert hs.graph(matrix).matrix[0, 1] == total
    if values.dtype.kind != "f":  # elsewhere the precision of floats is that of the caller
        assert hs.eigh(matrix, 1, rng=0).values == pytest.approx([total])
        points = sparse.coo_array(([*values], ([0, 0], [1, 1])), shape=(2, 2), dtype=values.dtype)
        assert check_points(points)[0, 1] == total


def test_parallel_edges_of_igraph_are_added_as_numbers():
    G = igraph.Graph(2, [(0, 1), (1, 0), (0, 0), (0, 0)])
    assert_array_equal(hs.graph(G).matrix.toarray(), [[2, 2], [2, 0]])
    G.es["weight"] = [True, True, False, True]
    assert_array_equal(hs.graph(G).matrix.toarray(), [[1, 2], [2, 0]])


def test_an_edge_of_igraph_without_a_weight_has_1_as_in_networkx():
    H = igraph.Graph(3, [(0, 1)])
    H.es["weight"] = 2.0
    H.add_edge(1, 2)
    assert H.es["weight"] == [2.0, None]
    assert_array_equal(hs.graph(H).matrix.toarray(), [[0, 2, 0], [2, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("make", [nx.Graph, nx.MultiDiGraph, igraph.Graph])
def test_graphs_with_nodes_and_no_edges_or_without_nodes(make):
    G = make()
    with pytest.raises(ValueError, match=r"^The graph has no nodes; pass one with at least 2\.$"):
        hs.graph(G)
    for name in "abc":
        G.add_vertex(name=name) if make is igraph.Graph else G.add_node(name)
    found = hs.graph(G)
    assert_array_equal(found.matrix.toarray(), np.zeros((3, 3)))
    assert found.names.tolist() == ["a", "b", "c"]
    with pytest.raises(
        ValueError, match=r"3 of 3 points have no affinity.* a graph has too few edges"
    ):
        hs.DiffusionMap(2, affinity="precomputed").fit(G)
