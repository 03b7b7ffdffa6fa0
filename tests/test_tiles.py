"""Row tiles and threads: nothing here may change a bit of a result."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import heatsketch as hs
from heatsketch import _threads
from heatsketch._threads import ROW_TILE, for_each_tile, row_tiles
from heatsketch.spectral.eigen import classical_scaling, coarser, leading_vector
from problems.checks import same_for_any_threads


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


# Tiles and threads


@pytest.mark.parametrize("n", [0, 1, ROW_TILE - 1, ROW_TILE, ROW_TILE + 1, 5 * ROW_TILE + 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_row_is_visited_once(n, threads):
    visits = np.zeros(n, dtype=int)

    def work(rows):
        visits[rows] += 1

    with threadpool_limits(threads, "blas"):
        for_each_tile(work, n)
    np.testing.assert_array_equal(visits, 1)


@given(n=st.integers(0, 400), tile=st.integers(1, 90))
def test_row_tiles_cut_the_range_in_order(n, tile):
    tiles = list(row_tiles(n, tile))
    assert [row for rows in tiles for row in range(n)[rows]] == list(range(n))
    assert all(rows.stop - rows.start == tile for rows in tiles[:-1])


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_tile_comes_out_and_the_pool_lives_on(threads):
    def work(rows):
        if rows.start > 0:
            raise KeyError("from a tile")

    done = np.zeros(100)
    with threadpool_limits(threads, "blas"):
        with pytest.raises(KeyError, match="from a tile"):
            for_each_tile(work, 4 * ROW_TILE)
        assert set(blas_threads()) == {threads}
        for_each_tile(lambda rows: done.__setitem__(rows, 1), 100, 10)
    assert done.all()


def test_eight_threads_at_once_leave_the_limit_as_it_was():
    barrier, inside = threading.Barrier(8, timeout=20), []

    def enter(turn):
        barrier.wait()
        for _ in range(turn + 1):  # they leave at different times
            for_each_tile(lambda rows: inside.extend(blas_threads()), 2 * ROW_TILE)

    with threadpool_limits(2, "blas"):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(enter, range(8)))
        assert set(inside) == {1}
        assert set(blas_threads()) == {2}


# Forks


def in_child(work):
    """Call a function in a forked child, where it must return True."""
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has several threads
def test_a_fork_while_another_thread_is_inside_leaves_the_child_its_threads():
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with _threads.single_threaded_blas():
            entered.set()
            leave.wait(60)

    def threads_of_child():
        with _threads.single_threaded_blas() as n_threads:
            inside = {*blas_threads()}
        return n_threads == 2 and inside == {1} and {*blas_threads()} == {2}

    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        pool.submit(stay)
        assert entered.wait(60)
        try:
            in_child(threads_of_child)
        finally:
            leave.set()


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_was_inside_leaves_as_its_parent_does():
    with threadpool_limits(2, "blas"):
        inside = _threads.single_threaded_blas()
        inside.__enter__()

        def leave():
            alone = {*blas_threads()}
            inside.__exit__(None, None, None)
            return alone == {1} and {*blas_threads()} == {2}

        in_child(leave)
        assert leave()


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_enters_does_not_stop_the_child(monkeypatch):
    entering, fork_begins = threading.Event(), threading.Event()
    os.register_at_fork(before=fork_begins.set)
    let = _threads._let_any_thread_set_limits

    def slowly():
        entering.set()
        fork_begins.wait(60)  # the lock is held when the fork begins
        let()

    def enter():
        with _threads.single_threaded_blas():
            return True

    monkeypatch.setattr(_threads, "_let_any_thread_set_limits", slowly)
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        other = pool.submit(enter)
        assert entering.wait(60)
        in_child(enter)
        assert other.result(60)


def test_long_vectors_have_the_same_bits_for_one_and_two_threads():
    """BLAS adds up vectors of more than 10,000 numbers in as many parts as it has threads."""
    weights = np.random.default_rng(0).uniform(0.5, 1, (2, 20_000))
    K = sparse.diags(weights, [1, 2], shape=(20_000, 20_000))
    diffusion = hs.Diffusion.from_affinity(K + K.T + sparse.identity(20_000))
    A = diffusion.operator
    same_for_any_threads(lambda: diffusion.deflated.V)
    same_for_any_threads(lambda: leading_vector(A))
    same_for_any_threads(lambda: hs.Sparse(A.matrix).ends)
    same_for_any_threads(lambda: coarser(A, 4)[1].data)


def test_small_classical_scaling_has_the_same_bits_for_one_and_two_threads():
    squares = cdist(*[np.random.default_rng(0).normal(size=(600, 3))] * 2, "sqeuclidean")
    same_for_any_threads(lambda: classical_scaling(squares.copy(), 2).vectors)


@pytest.mark.parametrize(
    "model",
    [
        hs.HeatEmbedding(affinity="dense", epsilon="median", random_state=0),
        hs.HeatEmbedding(layout="linear", affinity="dense", epsilon="median", random_state=0),
        hs.MixtureDiffusion(random_state=0),
        hs.classical.NonmetricMDS(),
    ],
    ids=["free", "linear", "mixture", "nonmetric"],
)
def test_fits_have_the_same_bits_for_one_and_two_threads(model):
    X = np.random.default_rng(3).normal(size=(700, 5))
    same_for_any_threads(lambda: clone(model).fit(X).embedding_)


def test_products_have_the_same_bits_for_one_and_two_threads():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2600, 3))
    A = hs.Dense(np.exp(-cdist(points, points, "sqeuclidean")))
    X = rng.standard_normal((A.n, 7))
    for block in (X, X[:, 0]):
        same_for_any_threads(lambda block=block: A @ block)


def test_tiles_in_tiles_are_all_done_once():
    # Every thread of the pool waits for tiles of its own: in a pool that were taken, for ever.
    counts = np.zeros((40, 64), dtype=int)

    def outer(rows):
        def inner(columns):
            counts[rows, columns] += 1

        for_each_tile(inner, 64, 8)

    for_each_tile(outer, 40, 1)
    assert (counts == 1).all()


# A BLAS that does not say how many threads it has


@pytest.fixture
def _unknown_blas(monkeypatch):
    none = ThreadpoolController().select(user_api="none")
    monkeypatch.setattr(_threads, "_controller", lambda: none)
    for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_threads.os, "cpu_count", lambda: 6)


@pytest.mark.usefixtures("_unknown_blas")
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 6),
        ({"VECLIB_MAXIMUM_THREADS": "1", "OMP_NUM_THREADS": "3"}, 1),
        ({"VECLIB_MAXIMUM_THREADS": "", "OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "all"}, 6),
    ],
)
def test_threads_beside_an_unknown_blas(environment, expected, monkeypatch):
    """One thread alone would be left of Accelerate, the BLAS of macOS."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with _threads.single_threaded_blas() as n_threads:
        assert n_threads == expected


@pytest.mark.usefixtures("_unknown_blas")
def test_tiles_beside_an_unknown_blas_run_in_threads():
    names = set()
    for_each_tile(lambda rows: names.add(threading.current_thread().name), 64, 1)
    assert all(name.startswith("heatsketch") for name in names)
