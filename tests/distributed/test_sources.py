"""Sources of AnnData by blocks, sparse ones too: the rows of the whole table, with their obs."""

import tracemalloc

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch import io
from heatsketch.distributed import embed, fit, size
from heatsketch.io.formats import open_blocks
from heatsketch.io.table import Blocks, Reading, joined
from problems.clusters import SKETCH

N, D = 700, 40
KINDS = ["h5ad", "zarr"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning"),
    pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning"),  # a row unlike all others
    pytest.mark.filterwarnings("ignore:Writing zarr v2"),
]


def counts():
    """Rows of three kinds; some hold nothing, one holds everything."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.3, 1.0, (3, D))
    X = rng.poisson(rates[rng.integers(3, size=N)]).astype(np.float32)
    X[[5, 6, 7]] = 0
    X[8] = 1 + np.arange(D)
    return sparse.csr_matrix(X)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The same AnnData as .h5ad and as .zarr, with columns of every kind in obs."""
    rng = np.random.default_rng(2)
    X = counts()
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(["a", "b", None], N)),
            "whole": pd.array([None, *range(1, N)], dtype="Int64"),
            "batch": rng.integers(3, size=N),
            "share": rng.random(N),
            "note": [f"t{i}" for i in range(N)],
        },
        index=[f"cell {i}" for i in range(N)],
    )
    layers = {"by columns": X.tocsc(), "twice": (2 * X).tocsr(), "dense": X.toarray()}
    data = anndata.AnnData(X, obs=obs, layers=layers, obsm={"X_pca": rng.random((N, 4))})
    folder = tmp_path_factory.mktemp("store")
    data.write_h5ad(folder / "x.h5ad")
    data.write_zarr(folder / "x.zarr")
    return folder


def dense(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [None, "twice", "layers/dense", "X_pca"])
def test_blocks_are_the_rows_of_the_whole_table(kind, key, store, limits):
    limits(block_bytes=2000)  # some 250 entries, 6 rows
    whole = io.read_table(store / f"x.{kind}", key=key)
    found = open_blocks(store / f"x.{kind}", Reading(key=key))
    assert (found.n, found.columns, found.dtype) == (N, whole.columns, whole.values.dtype)
    assert found.stored == (whole.values.nnz if sparse.issparse(whole.values) else None)
    for start in (0, 333, N - 1):
        tables = list(found.tables(50, start))
        assert [t.values.shape[0] for t in tables[:-1]] == [50] * (len(tables) - 1)
        table = joined(tables)
        assert sparse.issparse(table.values) == sparse.issparse(whole.values)
        assert np.array_equal(dense(table.values), dense(whole.values)[start:])
        assert set(table.extra) == set(whole.extra)
        for name, column in table.extra.items():
            assert column.tolist() == whole.extra[name][start:].tolist(), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_source_gives_the_rows_of_transform_with_its_ids(kind, store, tmp_path):
    source, out = store / f"x.{kind}", tmp_path / "out.parquet"
    done = embed(source, out, SKETCH, fit_points=200, block_rows=64, label="batch")
    expected = fit(counts(), SKETCH, fit_points=200).transform(counts())
    table = io.read_table(out)
    assert done.estimator.n_features_in_ == D
    assert np.array_equal(table.values[:, -3:], expected)
    assert table.extra["index"].tolist() == [f"cell {i}" for i in range(N)]
    whole = io.read_table(source)
    assert table.extra["kind"].tolist() == whole.extra["kind"].tolist()


@pytest.mark.parametrize(
    ("source", "out", "given", "words"),
    [
        *((f"x.{kind}", "o.npy", {"key": "by columns"}, r"\(csc\).* X\.tocsr") for kind in KINDS),
        ("x.h5ad", "o.h5ad", {"missing": "drop"}, "leaves out rows, but .* is a copy"),
        ("x.zarr", "o.h5ad", {}, r"only a \.h5ad source becomes one"),
        ("x.zarr", "o.parquet", {"label": "bach"}, "no id or label column 'bach'.* 'batch'"),
        ("x.zarr", "o.parquet", {"ids": "bach"}, "no id or label column 'bach'.* 'batch'"),
    ],
)
def test_what_blocks_cannot_do_is_refused(source, out, given, words, store, tmp_path):
    with pytest.raises(ValueError, match=words):
        embed(store / source, tmp_path / out, SKETCH, fit_points=200, **given)
    assert not list(tmp_path.iterdir())


def test_a_sample_is_what_half_of_the_memory_holds(limits):
    limits(available=lambda: 1e9)

    def found(n, d, stored=None):
        points = Blocks(n, range(d), np.dtype(np.float32), "x", iter, stored)
        return size(points, hs.HeatSketch(8))

    assert found(1000, 10) == 1000
    wide, wider = found(10**9, 10_000), found(10**9, 20_000)
    assert 100 < wider < wide < 1e9 / 2 / (4 * 10_000)
    assert wider == pytest.approx(wide / 2, rel=0.05)
    assert found(10**9, 10**8) == 100  # the least sample
    assert found(10**9, 10**8, stored=5_000 * 10**9) == wide


def test_a_copy_of_the_source_gets_the_coordinates(store, tmp_path):
    """As `io.write_table` does of the whole, but no more than a block is held."""
    source, out, whole = store / "x.h5ad", tmp_path / "out.h5ad", tmp_path / "whole.h5ad"
    done = embed(source, out, SKETCH, fit_points=200, block_rows=64, key="X_pca")
    table = io.read_table(source, key="X_pca")
    Y = done.estimator.transform(table.values)
    io.write_table(whole, Y, ["a", "b", "c"], table)
    found, expected = anndata.read_h5ad(out), anndata.read_h5ad(whole)
    assert np.array_equal(found.obsm["X_heat"], Y)
    assert found.obsm["X_heat"].dtype == Y.dtype
    assert set(found.obsm) == set(expected.obsm) == {"X_heat", "X_pca"}
    assert (found.X != expected.X).nnz == 0
    assert found.obs.equals(expected.obs)
    assert io.read_table(out, key="X_heat").metadata["stream"]["fit_points"] == 200
    with pytest.raises(FileExistsError, match=r"has an entry 'X_heat' .*--output-key"):
        embed(out, tmp_path / "again.h5ad", SKETCH, fit_points=200)
    again = embed(out, tmp_path / "again.h5ad", SKETCH, fit_points=200, output_key="X_two")
    assert set(anndata.read_h5ad(again.output).obsm) == {"X_heat", "X_pca", "X_two"}


def test_a_source_without_rows_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"x\.npy has no rows; pass at least 2 points"):
        embed(tmp_path / "x.npy", tmp_path / "o.npy", SKETCH, fit_points=200)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_source_takes_the_memory_of_its_blocks(kind, tmp_path):
    """12,000,000 entries (96 MB), of which some 1,000,000 are read at a time: at most half."""
    rng = np.random.default_rng(0)
    n, each = 240_000, 50
    indices = np.sort(rng.integers(1000, size=(n, each)) + 1000 * np.arange(each), axis=1)
    arrays = rng.random(n * each, dtype=np.float32), indices.ravel(), np.arange(n + 1) * each
    X = sparse.csr_matrix(arrays, shape=(n, 1000 * each))
    write = getattr(anndata.AnnData(X), f"write_{kind}")
    write(tmp_path / f"x.{kind}")
    found = open_blocks(tmp_path / f"x.{kind}", Reading())
    tracemalloc.start()
    count = sum(table.values.nnz for table in found.tables(4096))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == X.nnz
    assert peak < 8 * X.nnz / 2
