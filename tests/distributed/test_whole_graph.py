"""The whole neighbour graph in tiles: the sketch of one machine, whatever holds the tiles."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch.distributed import sketch
from heatsketch.neighbors import NeighborIndex
from heatsketch.spectral.chebyshev import add_multiples, three_term

da = pytest.importorskip("dask.array")
pytest.importorskip("dask.distributed")

N, D, TILE = 1500, 3, 300
MODEL = hs.HeatSketch(8, time=4, random_state=0)


def points(n=N, d=D, seed=0):
    """Clouds of unequal width and density, and a curve, in no order."""
    rng = np.random.default_rng(seed)
    centres, widths = 2 * rng.standard_normal((5, d)), rng.uniform(0.3, 1.5, 5)
    cloud = rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    X = centres[cloud] + widths[cloud, None] * rng.standard_normal((n, d))
    curve = rng.random(n) < 0.2
    t = rng.uniform(0, 6, n)
    X[curve, 0], X[curve, 1] = 3 * np.cos(t[curve]), t[curve]
    X[curve, 2:] = 0.01 * rng.standard_normal((np.count_nonzero(curve), d - 2))
    return X


X = points()
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def one_machine(X, model=MODEL):
    """Embed on one machine with exact neighbours, and random rows by the number of the point."""
    index = NeighborIndex(X, metric=model.metric, recall=1)
    exact = hs.HeatSketch(**model.get_params() | {"neighbors": index})
    return exact.fit(X, ids=np.arange(len(X))).embedding_


def in_tiles(X, model=MODEL, tile_rows=TILE, **more):
    chunks = more.pop("chunks", 400)
    source = da.from_array(X, chunks=(chunks, X.shape[1]))
    return sketch(source, model, tile_rows=tile_rows, **more)


def assert_same_distances(Y, Z, tolerance=1e-6):
    D, E = pdist(Y[:1000].astype(float)), pdist(Z[:1000].astype(float))
    near = 1e-9 * E.max() > E  # of equal points
    assert np.abs(D[near]).max(initial=0) <= 1e-9 * E.max()
    np.testing.assert_allclose(D[~near], E[~near], rtol=tolerance)


@pytest.fixture(scope="module")
def reference():
    return in_tiles(X).embedding.compute()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"normalization": "symmetric"},
        {"normalization": "bistochastic"},
        {"alpha": 0.0, "kind": "rademacher"},
        {"epsilon": 0.05},
        {"time": [1, 2, 6]},
        {"n_neighbors": 40, "metric": "cosine"},
    ],
)
def test_distances_are_those_of_one_machine(changed):
    model = hs.HeatSketch(**MODEL.get_params() | changed)
    done = in_tiles(X, model, recall=1)
    Z = one_machine(X, model)
    assert done.diagnostics["tiles"] > 4
    Y = done.embedding.compute()
    assert Y.shape == Z.shape
    assert_same_distances(Y, Z)


@pytest.mark.parametrize(
    ("filter", "time", "n"),
    [
        ("heat", 3.5, N),  # all eigenpairs
        ("heat", [2, 3.5, 60], 2100),  # a series for all times
        ("power", 400, 2100),
    ],
)
def test_series_of_products_are_those_of_one_machine(filter, time, n):
    model = hs.HeatSketch(**MODEL.get_params() | {"filter": filter, "time": time})
    x = points(n, seed=6)
    Y = in_tiles(x, model, 700, chunks=1100).embedding.compute()
    assert_same_distances(Y, one_machine(x, model))


def test_tiles_are_combined_as_arrays_are_but_never_changed():
    Y, X, T = np.random.default_rng(9).standard_normal((3, 500, 2)).astype(np.float32)
    blocks = [da.from_array(x.copy(), chunks=(200, 2)).persist() for x in (Y, X, T)]
    combined = three_term(blocks[0], 1.5, blocks[1], -0.3, blocks[2], -1.0)
    sums = add_multiples([(blocks[0], [0.1, 0.2]), (blocks[1], [np.float64(2.0)])], blocks[1:])
    for block, x in zip(blocks, (Y, X, T), strict=True):
        np.testing.assert_array_equal(block, x)
    expected = [x.copy() for x in (Y, X)]
    add_multiples([(expected[0], [0.1, 0.2]), (expected[1], [2.0])], [X, T])
    assert three_term(Y, 1.5, X, -0.3, T, -1.0) is Y
    for found, x in zip((combined, *sums), (Y, *expected), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, x)


def test_large_single_precision_is_that_of_one_machine():
    x = points(16_500, 3, seed=3).astype(np.float32)
    Y = in_tiles(x, tile_rows=5000, chunks=9000).embedding.compute()
    assert Y.dtype == np.float32
    assert_same_distances(Y, one_machine(x), 1e-3)


def test_in_many_dimensions_recall_is_what_was_asked_for():
    x = points(2500, 20, seed=1)
    found = in_tiles(x, recall=0.9).diagnostics
    exact = in_tiles(x, recall=1)
    assert "recall" not in exact.diagnostics
    assert_same_distances(exact.embedding.compute(), one_machine(x))
    # 512 points of 16 neighbours: the calibration is two standard errors above the target.
    assert found["recall"] >= 0.9 - 5 * found["recall_error"]
    assert found["recall"] < 1


@pytest.mark.parametrize("chunks", [N, 1, 299, (1, 700, 799)])
def test_blocks_of_the_source_change_no_bit(chunks, reference):
    x = X if chunks != 1 else X[:60]
    expected = reference if chunks != 1 else in_tiles(x, chunks=60).embedding.compute()
    Y = in_tiles(x, chunks=chunks).embedding
    np.testing.assert_array_equal(Y.compute(), expected)


@pytest.mark.parametrize("tile_rows", [150, 10_000])
def test_tiles_change_rounding_only(tile_rows, reference):
    done = in_tiles(X, tile_rows=tile_rows)
    if tile_rows > N:
        assert done.diagnostics["tiles"] == 1
        assert done.diagnostics["halo"] == 0
    assert_same_distances(done.embedding.compute(), reference, 1e-9)


def test_duplicates_share_a_vertex_and_a_row():
    x = np.concatenate([X[:1000], X[:300], X[:300]])[np.random.default_rng(2).permutation(1600)]
    done = in_tiles(x)
    assert done.diagnostics["duplicates"] == 600
    Y = done.embedding.compute()
    assert_same_distances(Y, one_machine(x))
    _, first, same = np.unique(x, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(Y, Y[first][same.ravel()])


def test_components_and_a_tile_without_halo():
    far = X[:1200] + 1000.0 * (np.arange(1200) % 4)[:, None]
    with pytest.warns(hs.DisconnectedWarning, match="sizes 300, 300, 300, 300"):
        done = in_tiles(far, tile_rows=300)
    assert done.diagnostics["components"] == done.diagnostics["tiles"] == 4
    assert done.diagnostics["halo"] == 0
    assert_same_distances(done.embedding.compute(), one_machine(far))


def test_few_points_and_fewer_neighbours_than_asked_for():
    x = points(120)
    model = hs.HeatSketch(4, n_neighbors=119, random_state=0)
    assert_same_distances(in_tiles(x, model, 100).embedding.compute(), one_machine(x, model))
    with pytest.warns(UserWarning, match="using n_neighbors=19"):
        done = in_tiles(x[:20], hs.HeatSketch(4, n_neighbors=50, random_state=0), 100)
    assert done.diagnostics["n_neighbors"] == 19


def test_files_are_read_and_written_by_workers(tmp_path, reference):
    np.save(tmp_path / "x.npy", X)
    done = sketch(tmp_path / "x.npy", MODEL, tmp_path / "y.npy", tile_rows=TILE)
    assert done.embedding is None
    assert "travel" in done.describe()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), reference)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy", "y.npy.json"]
    array = sketch(X, MODEL, tile_rows=TILE)
    np.testing.assert_array_equal(array.embedding.compute(), reference)


def test_what_a_killed_run_left_is_named_and_begun_again(tmp_path, reference):
    np.save(tmp_path / "x.npy", X)
    left = tmp_path / "y.npy.partial"
    (left / "parts").mkdir(parents=True)
    (left / "run.json").write_text("{}")
    with pytest.raises(FileExistsError, match=r"not completed; pass resume=True .* or force=True"):
        sketch(tmp_path / "x.npy", MODEL, tmp_path / "y.npy", tile_rows=TILE)
    sketch(tmp_path / "x.npy", MODEL, tmp_path / "y.npy", tile_rows=TILE, force=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), reference)
    assert not left.exists()


@pytest.fixture(scope="module")
def cluster():
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
def test_workers_change_no_bit(cluster, reference):
    done = in_tiles(X, cluster=cluster)
    np.testing.assert_array_equal(cluster.compute(done.embedding).result(), reference)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bit(cluster, reference):
    killed = []

    def kill():
        time.sleep(0.7)
        killed.append(next(iter(cluster.run(os.getpid).values())))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    done = in_tiles(X, cluster=cluster)
    Y = cluster.compute(done.embedding).result()
    thread.join()
    assert killed
    np.testing.assert_array_equal(Y, reference)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"affinity": "dense"}, "affinity='knn'"),
        ({"time": 3.5}, "time=3.5 is not whole"),
        ({"filter": "resolvent"}, "resolvent"),
        ({"n_components": 0}, "n_components"),
        ({"epsilon": "ksum"}, "needs all points"),
        ({"random_state": None}, "pass an integer"),
    ],
)
def test_what_tiles_cannot_do_is_said(changed, said):
    with pytest.raises((ValueError, TypeError), match=said):
        in_tiles(X, hs.HeatSketch(**MODEL.get_params() | changed))


def test_faults_of_the_source_are_named():
    bad = X.copy()
    bad[1034, 1] = np.nan
    with pytest.raises(ValueError, match="row 1034, column 1"):
        in_tiles(bad)
    with pytest.raises(ValueError, match="same point"):
        in_tiles(np.ones((200, 2)))
    with pytest.raises(ValueError, match="name an output"):
        in_tiles(X, cluster="local:2")
    with pytest.raises(TypeError, match=r"embed"):
        in_tiles(X, hs.DiffusionMap())


def test_a_tile_with_fewer_points_than_neighbours_asks_all_others():
    x = points(600, 20, seed=4)
    model = hs.HeatSketch(4, n_neighbors=110, random_state=0)  # more than a tile has
    done = in_tiles(x, model, 100, recall=0.3)
    assert done.diagnostics["recall"] > 0.3
    assert np.isfinite(done.embedding.compute()).all()
