"""Row tiles, threads, random blocks and frames: nothing here may change a bit of a result."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import heatsketch as hs
from heatsketch import _tiles
from heatsketch._random import RANDOM_TILE, content_order, random_block
from heatsketch._tiles import ROW_TILE, for_each_tile, row_tiles
from heatsketch.operators.kernel import Kernel

KINDS = ("gaussian", "rademacher")
BIG = 2 * RANDOM_TILE + 900  # three random tiles, the last one short


def blas_threads() -> list[int]:
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


# Random blocks


@pytest.fixture(scope="module", params=KINDS)
def whole(request: pytest.FixtureRequest) -> tuple[str, np.ndarray]:
    return request.param, random_block(BIG, 3, request.param, 7)


@pytest.mark.parametrize("n", [1, RANDOM_TILE - 1, RANDOM_TILE, RANDOM_TILE + 1])
def test_a_row_does_not_depend_on_how_many_follow(whole: tuple[str, np.ndarray], n: int) -> None:
    kind, G = whole
    np.testing.assert_array_equal(random_block(n, 3, kind, 7), G[:n])


def test_tiles_are_not_copies_of_each_other(whole: tuple[str, np.ndarray]) -> None:
    _, G = whole
    first, second = G[:RANDOM_TILE], G[RANDOM_TILE : 2 * RANDOM_TILE]
    # For independent tiles the correlation has standard deviation 1/√(3 · 4096) = 0.009.
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


def test_rademacher_entries_are_plus_or_minus_one() -> None:
    G = random_block(5000, 4, "rademacher", 0)
    assert G.dtype == np.float64
    assert set(np.unique(G)) == {-1.0, 1.0}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_entries_have_mean_zero_and_covariance_one(kind: str) -> None:
    """Alarm 1e-6 over 6 numbers (|z| < 5.3); detects a mean of 2 %, a variance off by 3 %."""
    G = random_block(200_000, 2, kind, 3)
    z = np.sqrt(len(G)) * G.mean(axis=0)
    spread = np.sqrt(2.0) if kind == "gaussian" else 1e-9  # of g², which is 1 for ±1
    z_square = np.sqrt(len(G)) * ((G**2).mean(axis=0) - 1) / spread
    z_cross = np.sqrt(len(G)) * (G[:, 0] * G[:, 1]).mean()
    assert np.abs([*z, *z_square, z_cross]).max() < 5.3


# Seeds


@pytest.mark.parametrize(
    "make", [np.random.default_rng, np.random.RandomState, np.random.SeedSequence, int]
)
def test_a_seed_is_replayed_and_a_generator_moves_on(make: type) -> None:
    rng, replay = make(5), make(5)
    first, second = (random_block(50, 2, "gaussian", rng) for _ in range(2))
    moves = make in (np.random.default_rng, np.random.RandomState)
    assert np.array_equal(first, second) != moves
    np.testing.assert_array_equal(first, random_block(50, 2, "gaussian", replay))
    np.testing.assert_array_equal(second, random_block(50, 2, "gaussian", replay))
    assert not np.array_equal(first, random_block(50, 2, "gaussian", None))


def test_the_global_random_state_is_neither_read_nor_moved() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = random_block(50, 2, "gaussian", 1)
    random_block(50, 2, "gaussian", None)
    hs.sketch(np.eye(4), hs.Power(2), 3, rng=None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(99)  # noqa: NPY002
    np.testing.assert_array_equal(random_block(50, 2, "gaussian", 1), first)


# Tiles and threads


@pytest.mark.parametrize("n", [0, 1, ROW_TILE - 1, ROW_TILE, ROW_TILE + 1, 5 * ROW_TILE + 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_row_is_visited_once(n: int, threads: int) -> None:
    visits = np.zeros(n, dtype=int)

    def work(rows: slice) -> None:
        visits[rows] += 1

    with threadpool_limits(threads, "blas"):
        for_each_tile(work, n)
    np.testing.assert_array_equal(visits, 1)


@given(n=st.integers(0, 400), tile=st.integers(1, 90))
def test_row_tiles_cut_the_range_in_order(n: int, tile: int) -> None:
    tiles = list(row_tiles(n, tile))
    assert [row for rows in tiles for row in range(n)[rows]] == list(range(n))
    assert all(rows.stop - rows.start == tile for rows in tiles[:-1])


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_tile_comes_out_and_the_pool_lives_on(threads: int) -> None:
    def work(rows: slice) -> None:
        if rows.start > 0:
            raise KeyError("from a tile")

    done = np.zeros(100)
    with threadpool_limits(threads, "blas"):
        with pytest.raises(KeyError, match="from a tile"):
            for_each_tile(work, 4 * ROW_TILE)
        assert set(blas_threads()) == {threads}
        for_each_tile(lambda rows: done.__setitem__(rows, 1), 100, 10)
    assert done.all()


def test_blas_has_one_thread_inside_and_its_own_number_after() -> None:
    inside: list[int] = []
    with threadpool_limits(2, "blas"):
        for_each_tile(lambda rows: inside.extend(blas_threads()), 3 * ROW_TILE)
        assert set(inside) == {1}
        assert set(blas_threads()) == {2}


def test_eight_threads_at_once_leave_the_limit_as_it_was() -> None:
    barrier = threading.Barrier(8, timeout=20)
    inside: list[int] = []
    failures: list[BaseException] = []

    def enter(turn: int) -> None:
        try:
            barrier.wait()
            for _ in range(turn + 1):  # they leave at different times
                for_each_tile(lambda rows: inside.extend(blas_threads()), 2 * ROW_TILE)
        except BaseException as error:  # a thread cannot raise into the test
            failures.append(error)

    with threadpool_limits(2, "blas"):
        threads = [threading.Thread(target=enter, args=(turn,)) for turn in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert not failures
        assert set(inside) == {1}
        assert set(blas_threads()) == {2}


@pytest.mark.parametrize("kind", ["dense", "kernel"])
def test_products_have_the_same_bits_for_one_and_two_threads(kind: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2600, 3))
    if kind == "kernel":
        A: hs.Dense | Kernel = hs.Kernel(points, 0.5)
    else:
        A = hs.Dense(np.exp(-cdist(points, points, "sqeuclidean")))
    X = rng.standard_normal((A.n, 7))
    products = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            products.append((A @ X, A @ X[:, 0]))
    np.testing.assert_array_equal(products[0][0], products[1][0])
    np.testing.assert_array_equal(products[0][1], products[1][1])


# Scale and offset

CLOUD = np.random.default_rng(4).standard_normal((60, 3)) * [1.0, 0.2, 5.0] + [0.0, 3.0, -1.0]
LOCAL = np.random.default_rng(5).uniform(0.5, 2.0, 60)


@pytest.mark.parametrize("j", [-190, -60, -1, 1, 31, 190])
def test_scaling_by_a_power_of_two_changes_no_bit(j: int) -> None:
    moved = hs.Kernel(np.ldexp(CLOUD, j), np.ldexp(LOCAL, j))
    np.testing.assert_array_equal(
        moved.matrix_rows(slice(0, 60)), hs.Kernel(CLOUD, LOCAL).matrix_rows(slice(0, 60))
    )


def test_an_offset_of_1e8_costs_no_more_than_the_rounding_of_the_input() -> None:
    offset = np.array([1e8, -1e8, 1e8])
    shifted = CLOUD + offset
    kept = shifted - offset  # exact: what float64 holds of the cloud
    reference = np.exp(-cdist(kept, kept, "sqeuclidean") / 0.7)
    assert hs.Kernel(shifted, 0.7).exponent_error < 1e-11  # the Gram form is good enough
    np.testing.assert_allclose(
        hs.Kernel(shifted, 0.7).matrix_rows(slice(0, 60)), reference, rtol=1e-11, atol=1e-300
    )


def test_tiles_in_tiles_are_all_done_once():
    # Every thread of the pool waits for tiles of its own: in a pool that were taken, for ever.
    counts = np.zeros((40, 64), dtype=int)

    def outer(rows):
        def inner(columns):
            counts[rows, columns] += 1

        for_each_tile(inner, 64, 8)

    for_each_tile(outer, 40, 1)
    assert (counts == 1).all()


# An order by content


def table(n: int = 300, d: int = 5, seed: int = 0) -> np.ndarray:
    """Normal numbers, of which a third are zero; no two rows are equal."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.67)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), d=st.integers(1, 8))
def test_the_same_rows_come_first_whatever_order_they_are_given_in(
    seed: int, n: int, d: int
) -> None:
    X = np.random.default_rng(seed).normal(size=(n, d))
    shuffled = X[np.random.default_rng(seed + 1).permutation(n)]
    order = content_order(X)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(shuffled[content_order(shuffled)], X[order])


@pytest.mark.parametrize("form", ["csr", "zeros stored", "unsorted", "64-bit indices"])
def test_sparse_rows_are_ordered_as_dense_ones_are(form: str) -> None:
    X = table()
    thin = sparse.csr_matrix(X)
    if form == "zeros stored":
        thin = sparse.csr_matrix(X + 7.0)
        thin.data -= 7.0
        X = thin.toarray()
        assert (thin.data == 0).any()
    elif form == "unsorted":
        thin = sparse.csr_matrix(X[:, ::-1])
        thin.indices = (X.shape[1] - 1 - thin.indices).astype(thin.indices.dtype)
        thin.has_sorted_indices = False
    elif form == "64-bit indices":
        thin.indices, thin.indptr = thin.indices.astype(np.int64), thin.indptr.astype(np.int64)
    for columns in (True, False):
        np.testing.assert_array_equal(
            content_order(thin, columns), content_order(X, columns=columns)
        )


@pytest.mark.parametrize("exponent", [-1000, -3, 9, 1000])
def test_the_unit_does_not_change_the_order(exponent: int) -> None:
    X = table()
    np.testing.assert_array_equal(content_order(np.ldexp(X, exponent)), content_order(X))


def test_precision_layout_and_the_sign_of_zero_do_not_change_the_order() -> None:
    X = table().astype(np.float32)
    order = content_order(X)
    for same in (X.astype(np.float64), np.asfortranarray(X), np.where(X == 0, -0.0, X)):
        np.testing.assert_array_equal(content_order(same), order)
    whole = np.round(8 * X)
    np.testing.assert_array_equal(content_order(whole.astype(int)), content_order(whole))


def test_rows_that_repeat_others_come_last() -> None:
    X = np.vstack([np.zeros((50, 5)), table(30), np.zeros((20, 5)), table(30)[:10]])
    first = content_order(X)[:31]
    assert len(np.unique(X[first], axis=0)) == 31
    assert (first < 81).all()  # each as it comes first
    np.testing.assert_array_equal(first[first >= 50] - 50, content_order(table(30)))


def test_a_matrix_of_affinities_is_ordered_by_its_points() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    K, order = np.exp(-cdist(X, X)), np.random.default_rng(1).permutation(80)
    shuffled = K[np.ix_(order, order)]
    np.testing.assert_array_equal(
        order[content_order(shuffled, columns=False)], content_order(K, columns=False)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("kind", ["line", "grid", "normal"])
def test_the_order_looks_random(kind: str, columns: bool) -> None:
    """Ranks of rows by value: their mean in the first half, and the mean step from row to row.

    Of random orders either is 5 standard deviations off with probability 6e-7. Sees a mean rank
    that is off by 2 %, and neighbours that stay together.
    """
    n = 4_000
    X = {
        "line": np.arange(n, dtype=float)[:, None],
        "grid": np.stack(np.divmod(np.arange(n), 50), axis=1).astype(float),
        "normal": np.sort(np.random.default_rng(0).normal(size=n))[:, None],
    }[kind]
    if kind == "grid" and not columns:
        X += np.array([0.0, 0.5])  # otherwise (3, 5) is (5, 3)
    first = content_order(X, columns)[: n // 2] / n
    deviation = np.sqrt(1 / 12 / (n // 2) / 2)  # drawn without replacement
    assert abs(first.mean() - 0.5) < 5 * deviation
    steps = np.abs(np.diff(content_order(X, columns))) / n
    assert abs(steps.mean() - 1 / 3) < 5 * np.sqrt(1 / 15 / n)  # steps that meet are correlated


# A BLAS that does not say how many threads it has


@pytest.fixture
def _unknown_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    none = ThreadpoolController().select(user_api="none")
    monkeypatch.setattr(_tiles, "_controller", lambda: none)
    for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_tiles.os, "cpu_count", lambda: 6)


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
def test_threads_beside_an_unknown_blas(
    environment: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread alone would be left of Accelerate, the BLAS of macOS."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with _tiles.single_threaded_blas() as n_threads:
        assert n_threads == expected


@pytest.mark.usefixtures("_unknown_blas")
def test_tiles_beside_an_unknown_blas_run_in_threads() -> None:
    names = set()
    for_each_tile(lambda rows: names.add(threading.current_thread().name), 64, 1)
    assert all(name.startswith("heatsketch") for name in names)
