"""Tiles of rows with halos: the products of the matrix, whoever holds which rows."""

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs

dask = pytest.importorskip("dask")
from heatsketch.operators.base import scaled  # noqa: E402
from heatsketch.operators.dask_tiles import DaskTiles, DeflatedTiles, Halo, blocks_of  # noqa: E402
from heatsketch.operators.deflated import as_deflated  # noqa: E402
from heatsketch.operators.properties import row_sums  # noqa: E402
from heatsketch.spectral.sketch import sketch_blocks  # noqa: E402

SIZES = (3, 1, 4, 2)


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def matrix():
    """A symmetric, non-negative matrix of which the last tile touches no other."""
    rng = np.random.default_rng(0)
    M = np.where(rng.random((10, 10)) < 0.4, rng.random((10, 10)), 0.0)
    M = M + M.T + np.eye(10)
    M[8:, :8] = M[:8, 8:] = 0.0
    return M


def in_tiles(M, sizes=SIZES):
    """Cut a matrix into tiles; written again here, so that the test does not trust the code."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rows, lists = [], []
    for start, end in zip(starts, ends, strict=True):
        outside = [j for j in range(len(M)) if not start <= j < end and M[start:end, j].any()]
        columns = [*range(start, end), *outside]
        rows.append(dask.delayed(sparse.csr_matrix(M[start:end][:, columns])))
        needed = {}
        for j in outside:
            needed.setdefault(int(owner[j]), []).append(j - starts[owner[j]])
        lists.append({u: dask.delayed(np.array(local)) for u, local in needed.items()})
    bound = float(M.sum(axis=1).max())
    return DaskTiles(tuple(rows), Halo(tuple(sizes), tuple(lists)), (-bound, bound))


M = matrix()


@pytest.mark.parametrize("sizes", [SIZES, (10,), (1,) * 10, (5, 5)])
def test_products_are_those_of_the_matrix(sizes):
    A, X = in_tiles(M, sizes), np.random.default_rng(1).standard_normal((10, 3))
    Y = A @ X
    assert Y.chunks == (sizes, (3,))
    np.testing.assert_allclose(Y.compute(), M @ X, rtol=1e-13)
    np.testing.assert_allclose((A @ X[:, 0]).compute(), M @ X[:, 0], rtol=1e-13)
    np.testing.assert_allclose((A @ (A @ X)).compute(), M @ M @ X, rtol=1e-13)
    np.testing.assert_allclose(row_sums(A).compute(), M.sum(axis=1), rtol=1e-13)


def test_halos_are_the_rows_that_columns_need_and_no_others():
    A = in_tiles(M)
    ends = np.cumsum(SIZES)
    x = A.asarray(np.arange(10.0))
    for t, wide in enumerate(dask.compute(*A.halo.extended(blocks_of(x)))):
        own = slice(ends[t] - SIZES[t], ends[t])
        needed = set(np.flatnonzero(M[own].any(axis=0))) | set(range(own.start, own.stop))
        assert sorted(wide) == sorted(needed)
    assert A.halo.lists[3] == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaling_is_that_of_entries(dtype):
    A, s = in_tiles(M), np.linspace(0.5, 2, 10)
    B = scaled(A, A.asarray(s), (-1.0, 1.0), None, dtype)
    X = np.random.default_rng(2).standard_normal((10, 2)).astype(dtype)
    assert B.dtype == dtype
    Y = (B @ X).compute()
    assert Y.dtype == dtype
    np.testing.assert_allclose(Y, s[:, None] * (M @ (s[:, None] * X)), rtol=1e-5)


def test_deflation_is_that_of_one_machine():
    A, v = in_tiles(M), np.linspace(1, 2, 10)
    v /= np.linalg.norm(v)
    B = DeflatedTiles(A, A.asarray(v))
    X = np.random.default_rng(3).standard_normal((10, 2))
    expected = hs.Deflated(hs.Dense(M), v)
    np.testing.assert_allclose((B @ X).compute(), expected @ X, atol=1e-13)
    np.testing.assert_allclose(B.project(X).compute(), expected.project(X), atol=1e-14)
    assert as_deflated(B) is B
    assert as_deflated(A).V.shape == (10, 0)


def test_filters_take_tiles_as_any_operator():
    A, G = in_tiles(M), np.random.default_rng(4).standard_normal((10, 3))
    filters = [hs.Power(1), hs.Power(3)]
    for own, dense in ((A, hs.Dense(M)), (DeflatedTiles(A), hs.Dense(M))):
        for found, expected in zip(
            sketch_blocks(own, filters, G), sketch_blocks(dense, filters, G), strict=True
        ):
            np.testing.assert_allclose(found.unscaled().compute(), expected.unscaled(), rtol=1e-12)
    F = hs.sketch(A, hs.Power(2), G=G, deflate=False)
    np.testing.assert_allclose(F.compute(), M @ M @ G / np.sqrt(3), rtol=1e-12)


def test_a_block_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"shape \(9, 2\) but the operator has 10 points"):
        in_tiles(M) @ np.ones((9, 2))
