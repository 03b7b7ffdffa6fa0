"""Compiled loops over sparse matrices against SciPy, and storage in another order unseen."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.core.blocks import multiply, permuted, scale_both_sides
from heatsketch.core.graph import on_vertices
from problems.checks import same_for_any_threads
from problems.spectra import path_graph

N = 257
RNG = np.random.default_rng(0)


@pytest.fixture
def compiled(limits):
    """Use the compiled loops, in several tiles, for matrices of any size."""
    limits(compiled_from=1, product_tile=50)


def graph(density=0.05, dtype=np.float64, seed=0):
    """A non-negative matrix with some empty rows and columns."""
    rng = np.random.default_rng(seed)
    matrix = sparse.random(N, N, density, format="csr", random_state=rng, dtype=dtype)
    keep = np.ones(N)
    keep[[0, 17, N - 1]] = 0
    return (sparse.diags(keep.astype(dtype)) @ matrix @ sparse.diags(keep.astype(dtype))).tocsr()


@pytest.mark.parametrize("density", [0.0, 0.002, 0.05, 0.7])
@pytest.mark.parametrize("k", [None, 1, 5, 32])
@pytest.mark.parametrize(("dtype", "eps"), [(np.float64, 1e-15), (np.float32, 1e-6)])
def test_products_are_those_of_scipy(compiled, density, k, dtype, eps):
    matrix = graph(density, dtype)
    X = RNG.normal(size=(N,) if k is None else (N, k)).astype(dtype)
    got = multiply(matrix, X)
    assert got.dtype == dtype
    exact = matrix.astype(float).toarray() @ X.astype(float)
    size = abs(matrix.astype(float)).toarray() @ np.abs(X.astype(float))
    assert (np.abs(got - exact) <= 20 * eps * size + 1e-300).all()


def test_products_have_the_same_bits_for_any_number_of_threads(compiled):
    matrix, X = graph(0.3), RNG.normal(size=(N, 7))
    same_for_any_threads(lambda: multiply(matrix, X))


def test_scaling_both_sides(compiled):
    matrix, left, right = graph(), RNG.uniform(1, 2, N), RNG.uniform(1, 2, N)
    got = scale_both_sides(matrix, left, right)
    assert_allclose(got.toarray(), left[:, None] * matrix.toarray() * right, rtol=1e-15, atol=0)
    assert scale_both_sides(matrix, left, right, np.float32).dtype == np.float32


def test_permuting():
    matrix, order = graph(), RNG.permutation(N)
    got = permuted(matrix, order)
    assert got.has_sorted_indices
    assert_array_equal(got.toarray(), matrix.toarray()[np.ix_(order, order)])


@pytest.mark.parametrize("rows", [1, 10**9], ids=["large", "small"])
def test_doors_give_rows_in_the_given_order(limits, rows):
    limits(compiled_from=rows)
    matrix, G = (graph() + graph().T).tocsr(), RNG.normal(size=(N, 4))
    A, order = on_vertices(matrix)
    assert np.array_equal(order, np.arange(N)) == (rows > 1)
    assert_array_equal(A.matrix.toarray()[np.ix_(order, order)], matrix.toarray())
    F = hs.sketch(matrix, hs.Power(3), G=G, deflate=False)
    exact = np.linalg.matrix_power(matrix.toarray(), 3)
    assert_allclose(F, exact @ G / 2, rtol=1e-11)
    values, V, _ = hs.eigh(matrix, 3, rng=0)
    assert_allclose(matrix @ V, V * values, atol=1e-6 * values[0])
    i, j = np.triu_indices(N, 1)
    D = hs.diffusion_distance(matrix, time=3, pairs=(i, j))
    assert_allclose(D, np.linalg.norm(exact[i] - exact[j], axis=1), 1e-9, 1e-30)


def test_the_vertices_of_a_shuffled_path_follow_the_path(compiled):
    inner = on_vertices(permuted(path_graph(N), RNG.permutation(N)))[0].matrix.tocoo()
    assert np.abs(inner.row - inner.col).max() == 1


@pytest.fixture
def large(limits, compiled):
    """Build every graph as a large one."""
    limits(exact_points=10)


def points(dtype=float):
    X = np.random.default_rng(3).normal(size=(600, 3)) * [3.0, 2.0, 1.0]
    X[300] = X[200]  # one point twice
    return X.astype(dtype)


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("affinity", ["knn", "radius"])
def test_a_large_graph_gives_what_a_small_one_gives(limits, normalization, affinity):
    X = points()
    options = {"affinity": affinity, "epsilon": 0.1, "normalization": normalization}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DisconnectedWarning)  # lone points of the radius graph
        small = hs.diffusion(X, **options)
        limits(compiled_from=1)
        large = hs.diffusion(X, **options)
    assert (large.vertex != np.arange(len(X))).any()
    inputs = np.unique(small.expand(np.arange(small.n)), return_index=True)[1]
    at = large.vertex[inputs]  # the vertex in the large graph of each one in the small
    assert_allclose(large.measure[at], small.measure, rtol=1e-12)
    B = np.random.default_rng(0).normal(size=(small.n, 3))
    inner = np.empty_like(B)
    inner[at] = B
    for product in (lambda d, Y: d.operator @ Y, lambda d, Y: d.last_step(Y)):
        assert_allclose(product(large, inner)[at], product(small, B), 1e-10, 1e-12)
    new = X[::7] + 0.01
    assert_allclose(large.last_step(inner, new), small.last_step(B, new), 1e-10, 1e-12)
    assert_allclose(
        hs.diffusion_distance(large, 4), hs.diffusion_distance(small, 4), rtol=1e-8, atol=1e-14
    )


@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("make", [hs.DiffusionMap, hs.HeatSketch, hs.HeatEmbedding])
def test_a_large_graph_maps_new_points_as_the_training_points(large, make, dtype, rounding):
    X = points(dtype)
    fitted = make(3, time=4, random_state=0).fit(X)
    assert fitted.embedding_.dtype == fitted.diffusion_.operator.dtype == dtype
    size = np.abs(fitted.embedding_).max()
    assert_allclose(fitted.transform(X), fitted.embedding_, rtol=0, atol=rounding * size)


def test_components_and_lone_points_of_a_large_graph_have_their_names(large):
    blocks = [np.ones((3, 3)), np.ones((2, 2)), np.ones((1, 1)), np.ones((4, 4))]
    order = np.array([3, 9, 0, 5, 1, 2, 8, 7, 4, 6])
    K = sparse.csr_matrix(sparse.block_diag(blocks).toarray()[np.ix_(order, order)])
    with pytest.warns(hs.DisconnectedWarning, match=r"sizes 4, 3, 2, 1.*points 3 stand alone"):
        d = hs.Diffusion.from_affinity(K)
    assert d.diagnostics["components"] == 4
    assert_allclose(d.operator @ np.sqrt(d.measure), np.sqrt(d.measure), rtol=1e-12)


@pytest.mark.parametrize("rows", [[2], [0, 2, 6]])
def test_rows_that_no_scaling_helps_are_named_as_the_points_are(large, rows):
    # Points whose only neighbour they must share: a star has no total support.
    n, centre = 7, 4
    K = np.eye(n)
    K[rows, rows] = 0
    K[rows, centre] = K[centre, rows] = 1
    K[centre, centre] = 0 if len(rows) > 1 else 1
    with pytest.raises(ValueError, match="no total support at rows") as error:
        hs.Diffusion.from_affinity(sparse.csr_matrix(K), normalization="bistochastic")
    named = re.search(r"at rows ([\d, ]+)", str(error.value))[1]
    assert set(map(int, named.split(", "))) <= {*rows, centre}
