"""Affinities of the rows of a table, against the dense matrices that are never formed."""

import tracemalloc
import warnings

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch import memory
from heatsketch.operators import LowRank

RNG = np.random.default_rng(5)
N, D = 60, 45
COUNTS = RNG.poisson(0.4, (N, D)).astype(float)
COUNTS[COUNTS.sum(axis=1) == 0, 0] = 1
COUNTS[:, D - 1] = 0  # a word that does not occur
LENGTHS = np.linalg.norm(COUNTS, axis=1)


def walk():
    """Two steps of the walk on the bipartite graph of rows and columns: the block of the rows."""
    both = np.block([[np.zeros((N, N)), COUNTS], [COUNTS.T, np.zeros((D, D))]])
    sums = both.sum(axis=1)
    P = both / np.where(sums > 0, sums, 1)[:, None]
    return (P @ P)[:N, :N]


AFFINITIES = {
    "bipartite": COUNTS @ np.diag(1 / np.maximum(COUNTS.sum(axis=0), 1)) @ COUNTS.T,
    "cosine": (COUNTS @ COUNTS.T) / np.outer(LENGTHS, LENGTHS),
}
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@every_affinity
def test_it_is_the_diffusion_of_the_dense_affinity(affinity, normalization, form):
    found = hs.diffusion(form(COUNTS), affinity=affinity, normalization=normalization)
    K = AFFINITIES[affinity]
    expected = hs.Diffusion.from_affinity(K, normalization=normalization)
    assert_allclose(found.measure, expected.measure, rtol=1e-6)
    eye = np.eye(N)
    assert_allclose(found.operator @ eye, expected.operator @ eye, atol=1e-7)
    assert found.operator.spectrum == (0.0, 1.0)
    assert found.diagnostics["components"] == expected.diagnostics["components"]
    assert found.diagnostics["isolated"] == expected.diagnostics["isolated"]


def test_without_alpha_it_is_the_walk_to_a_column_and_back():
    d = hs.diffusion(COUNTS, affinity="bipartite", alpha=0)
    rows = COUNTS.sum(axis=1)
    assert_allclose(d.measure, rows / rows.sum(), rtol=1e-12)
    root = np.sqrt(d.measure)
    assert_allclose((d.operator @ np.eye(N)) / root[:, None] * root, walk(), atol=1e-13)
    found = hs.DiffusionMap(5, 1, affinity="bipartite", alpha=0).fit(COUNTS)
    values, vectors = np.linalg.eig(walk())
    order = np.argsort(-values.real)[1:6]
    assert_allclose(found.eigenvalues_, values.real[order], atol=1e-10)
    for ours, theirs in zip(found.embedding_.T, vectors.real[:, order].T, strict=True):
        cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
        assert abs(cosine) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.DiffusionMap, hs.HeatEmbedding])
@every_affinity
def test_new_rows_are_embedded_as_the_rows_of_the_table_are(make, affinity):
    model = make(3, 4, affinity=affinity, random_state=0).fit(COUNTS)
    assert_allclose(model.transform(COUNTS), model.embedding_, rtol=1e-9, atol=1e-12)
    # A row's direction counts, or (of counts) its proportions, in the Markov form.
    twice = model.transform(sparse.csr_matrix(2 * COUNTS[:5]))
    assert_allclose(twice, model.embedding_[:5], rtol=1e-9, atol=1e-12)


@every_affinity
def test_the_order_of_rows_and_columns_does_not_matter(affinity):
    rows, columns = RNG.permutation(N), RNG.permutation(D)
    options = {"time": 3, "pairs": (np.arange(N - 1), np.arange(1, N))}
    expected = hs.diffusion_distance(hs.diffusion(COUNTS, affinity=affinity), **options)
    shuffled = hs.diffusion(COUNTS[rows][:, columns], affinity=affinity)
    where = np.argsort(rows)
    options["pairs"] = tuple(where[side] for side in options["pairs"])
    assert_allclose(hs.diffusion_distance(shuffled, **options), expected, rtol=1e-9)


def test_a_column_counts_as_much_as_the_columns_it_is_split_into():
    parts = np.column_stack([COUNTS, 0.3 * COUNTS[:, 0]])
    parts[:, 0] *= 0.7
    found, expected = (hs.diffusion(X, affinity="bipartite").operator for X in (parts, COUNTS))
    assert_allclose(found @ np.eye(N), expected @ np.eye(N), atol=1e-13)


@every_affinity
def test_amounts_of_any_size(affinity):
    expected = hs.diffusion(COUNTS, affinity=affinity).operator @ np.eye(N)
    for size in (1e-200, 1e200):
        found = hs.diffusion(size * COUNTS, affinity=affinity).operator @ np.eye(N)
        assert_allclose(found, expected, atol=1e-12)


@every_affinity
def test_it_is_never_formed(affinity):
    n = 20_000
    table = sparse.random(n, 500, density=0.01, random_state=0)
    table = sparse.hstack([table, np.ones((n, 1))], format="csr")
    d = hs.diffusion(table, affinity=affinity)
    assert isinstance(d.operator.A, LowRank)
    assert d.operator.A.factor.nnz <= table.nnz
    root = np.sqrt(d.measure)
    assert_allclose(d.operator @ root, root, rtol=1e-9)


def test_groups_of_rows_without_a_common_column_are_components():
    table = np.kron(np.eye(3), np.ones((4, 2)))
    with pytest.warns(hs.DisconnectedWarning, match=r"3 components.*Rows that share columns"):
        d = hs.diffusion(table, affinity="bipartite")
    assert d.diagnostics["components"] == 3


@every_affinity
def test_what_is_refused(affinity):
    with pytest.raises(ValueError, match=r"goes down to -1.*affinity='knn' with metric='cosine'"):
        hs.diffusion(COUNTS - 1, affinity=affinity)
    empty = COUNTS.copy()
    empty[3] = 0
    with pytest.raises(ValueError, match=r"no affinity to anything.*rows 3"):
        hs.diffusion(empty, affinity=affinity)
    model = hs.HeatSketch(3, 4, affinity=affinity, random_state=0).fit(COUNTS)
    alone = np.zeros((2, D))
    alone[0, 0], alone[1, D - 1] = 1, 1
    with pytest.raises(ValueError, match=r"1 new row\(s\) have no column in common.*rows 1"):
        model.transform(alone)
    with pytest.raises(ValueError, match="Negative values"):
        model.transform(-COUNTS[:2])


@every_affinity
def test_a_frequent_column_is_no_reason_to_warn_of_units(affinity):
    table = COUNTS.copy()
    table[:, 1] *= 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.diffusion(table, affinity=affinity)


@every_affinity
def test_it_takes_the_memory_that_is_predicted(affinity):
    table = sparse.random(10_000, 1000, density=0.01, random_state=0)
    table = sparse.hstack([table, np.ones((10_000, 1))], format="csr")
    model = hs.HeatSketch(2, affinity=affinity, random_state=0).fit(table)  # compiles
    options = memory.options_of(table, "heat-sketch", model.get_params())
    tracemalloc.start()
    try:
        model.fit(table)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.8 <= memory.predict(*table.shape, **options).peak / taken <= 1.5


def test_the_southern_women_fall_into_their_two_groups():
    # Davis, Gardner and Gardner (1941): 18 women at 14 events. Freeman (2003) compares 21 analyses;
    # nearly all put women 1 to 9 (with or without 8, 9) against 10 to 18, or leave 16 out.
    G = nx.davis_southern_women_graph()
    women = G.graph["top"]
    B = nx.bipartite.biadjacency_matrix(G, women, G.graph["bottom"])
    Y = hs.DiffusionMap(1, 1, affinity="bipartite", alpha=0).fit_transform(B)[:, 0]
    first = np.sign(Y[women.index("Evelyn Jefferson")])
    group = {name for name, y in zip(women, Y, strict=True) if np.sign(y) == first}
    assert group >= {"Evelyn Jefferson", "Laura Mandeville", "Theresa Anderson", "Brenda Rogers"}
    others = {"Katherina Rogers", "Sylvia Avondale", "Nora Fayette", "Helen Lloyd", "Myra Liddel"}
    assert not group & others


def test_the_cosine_of_a_row_with_itself_is_one():
    d = hs.diffusion(COUNTS, affinity="cosine", alpha=0)
    K = d.operator.A @ np.eye(N)
    assert_allclose(np.diag(K), 1, rtol=1e-14)
    assert_array_equal(K >= 0, True)
