"""Random rows, seeds, ids and the order of rows by their content."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import kstest, norm

import heatsketch as hs
from heatsketch._random import (
    RANDOM_TILE,
    check_ids,
    content_order,
    numbers_at,
    numbers_of,
    random_block,
)
from problems.chance import ALARM
from problems.clouds import cloud

KINDS = ("gaussian", "rademacher")
N = 2 * RANDOM_TILE + 900  # three random tiles, the last one short


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_depends_on_its_place_or_its_number_alone(kind):
    G = random_block(N, 3, kind, 7)
    for n in (1, RANDOM_TILE - 1, RANDOM_TILE, RANDOM_TILE + 1):
        assert_array_equal(random_block(n, 3, kind, 7), G[:n])
    numbers, some = numbers_of(np.arange(N)), np.random.default_rng(0).permutation(N)[:1500]
    numbered = random_block(N, 5, kind, 3, numbers=numbers)
    assert_array_equal(random_block(1500, 5, kind, 3, numbers=numbers[some]), numbered[some])
    assert not np.array_equal(random_block(N, 5, kind, 4, numbers=numbers), numbered)
    if kind == "rademacher":
        assert set(np.unique(G)) == set(np.unique(numbered)) == {-1.0, 1.0}
        assert G.dtype == numbered.dtype == np.float64


MANY = 100_000
IDS = {"rows": None, "integers": np.arange(MANY), "words": [f"cell {i}" for i in range(MANY)]}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_rows_are_independent_of_mean_0_and_variance_1(kind, ids):
    """Alarm 1e-6; sees a mean of 2 %, a variance off by 3 %, a correlation of 2 % of columns.

    Of all numbers together, neighbouring rows and tiles it sees 1 %.
    """
    numbers = None if ids is None else numbers_of(np.asarray(ids))
    G = random_block(MANY, 4, kind, 5, numbers=numbers)
    products = [*G.T, G, *(G[step:] * G[:-step] for step in (1, 2, 64, RANDOM_TILE))]
    products += [G[:, i] * G[:, j] for i in range(4) for j in range(i)]
    if kind == "gaussian":
        assert kstest(G.ravel(), norm.cdf).pvalue > ALARM
        squares = (G**2 - 1) / np.sqrt(2)
        products += [*squares.T, squares[1:] * squares[:-1], squares[:, 1:] * squares[:, :-1]]
    z = [x.mean() * np.sqrt(x.size) for x in products]
    assert np.abs(z).max() < norm.isf(ALARM / 2 / len(z))


@pytest.mark.statistical
def test_seeds_give_independent_rows():
    """Alarm 1e-6: one point under 5,000 seeds, neighbouring seeds and columns."""
    numbers = numbers_of(np.array([42]))
    G = np.vstack([random_block(1, 3, "gaussian", s, numbers=numbers) for s in range(5_000)])
    assert kstest(G.ravel(), norm.cdf).pvalue > ALARM / 2
    assert abs((G[1:] * G[:-1]).mean()) * np.sqrt(G.size) < norm.isf(ALARM / 4)


# Seeds


@pytest.mark.parametrize(
    "make", [np.random.default_rng, np.random.RandomState, np.random.SeedSequence, int]
)
def test_a_seed_is_replayed_and_a_generator_moves_on(make):
    rng, replay = make(5), make(5)
    first, second = (random_block(50, 2, "gaussian", rng) for _ in range(2))
    moves = make in (np.random.default_rng, np.random.RandomState)
    assert np.array_equal(first, second) != moves
    assert_array_equal(first, random_block(50, 2, "gaussian", replay))
    assert_array_equal(second, random_block(50, 2, "gaussian", replay))
    assert not np.array_equal(first, random_block(50, 2, "gaussian", None))


def test_the_global_random_state_is_neither_read_nor_moved():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = random_block(50, 2, "gaussian", 1)
    random_block(50, 2, "gaussian", None)
    hs.sketch(np.eye(4), hs.Power(2), 3, rng=None)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(99)  # noqa: NPY002
    assert_array_equal(random_block(50, 2, "gaussian", 1), first)


# Names


def test_equal_names_of_any_type_have_equal_numbers():
    small, large = np.arange(-3, 9, dtype=np.int8), np.arange(-3, 9)
    assert_array_equal(numbers_of(check_ids(small, 12)), numbers_of(check_ids(list(large), 12)))
    names = ["a", "Ärger", "b c"]
    as_objects = check_ids(np.array(names, object), 3)
    assert_array_equal(numbers_of(check_ids(names, 3)), numbers_of(as_objects))
    as_bytes = check_ids([name.encode() for name in names], 3)
    assert_array_equal(numbers_of(as_bytes), numbers_of(as_objects))
    assert len(np.unique(numbers_of(np.arange(-50_000, 50_000)))) == 100_000


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([1, 2, 1], ValueError, "1 twice, in rows 0 and 2"),
        (["x", "y", "y"], ValueError, "'y' twice, in rows 1 and 2"),
        ([1, 2], ValueError, r"shape \(2,\) but X has 3 points"),
        ([[1], [2], [3]], ValueError, r"shape \(3, 1\)"),
        ([1.0, 2.0, 3.0], TypeError, "float64; pass integers, strings or bytes"),
        ([True, False, True], TypeError, "bool"),
        (np.array([1, "a", None], object), TypeError, "object"),
    ],
)
def test_ids_that_do_not_name_the_points_are_refused(ids, error, message):
    with pytest.raises(error, match=message):
        hs.HeatSketch(2, n_neighbors=2).fit(cloud(3, 2, seed=0), ids=ids)
    with pytest.raises(error, match=message):
        hs.sketch(np.eye(3), hs.Power(1), 2, ids=ids)


def test_points_at_one_vertex_take_the_same_row_in_any_order():
    ids, vertex = np.arange(6), np.array([0, 1, 0, 2, 1, 0])
    order = np.random.default_rng(0).permutation(6)
    assert_array_equal(numbers_at(ids[order], vertex[order], 3), numbers_at(ids, vertex, 3))
    assert numbers_at(ids, vertex, 3)[0] == numbers_of(ids)[[0, 2, 5]].min()


# An order by content


def table(n=300, d=5, seed=0):
    """Normal numbers, of which a third are zero; no two rows are equal."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.67)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), d=st.integers(1, 8))
def test_the_same_rows_come_first_whatever_order_they_are_given_in(seed, n, d):
    X = np.random.default_rng(seed).normal(size=(n, d))
    shuffled = X[np.random.default_rng(seed + 1).permutation(n)]
    order = content_order(X)
    assert_array_equal(np.sort(order), np.arange(n))
    assert_array_equal(shuffled[content_order(shuffled)], X[order])


@pytest.mark.parametrize("columns", [True, False])
def test_sparse_rows_are_ordered_as_dense_ones_are(columns):
    X = table()
    entries, indices = X[:, ::-1].ravel(), np.tile(np.arange(5)[::-1], 300)
    odd = sparse.csr_matrix((entries, indices, np.arange(0, 1501, 5)))  # unsorted, with zeros
    odd.indices, odd.indptr = odd.indices.astype(np.int64), odd.indptr.astype(np.int64)
    for thin in (sparse.csr_matrix(X), odd):
        assert_array_equal(content_order(thin, columns), content_order(X, columns))


def test_unit_precision_layout_and_the_sign_of_zero_do_not_change_the_order():
    X = np.round(1024 * table())
    same = [np.ldexp(X, exponent) for exponent in (-1000, -3, 9, 1000)]
    same += [X.astype(np.float32), X.astype(int), np.asfortranarray(X), np.where(X == 0, -0.0, X)]
    for Z in same:
        assert_array_equal(content_order(Z), content_order(X))


def test_rows_that_repeat_others_come_last():
    X = np.vstack([np.zeros((50, 5)), table(30), np.zeros((20, 5)), table(30)[:10]])
    first = content_order(X)[:31]
    assert len(np.unique(X[first], axis=0)) == 31
    assert (first < 81).all()  # each as it comes first
    assert_array_equal(first[first >= 50] - 50, content_order(table(30)))


def test_a_matrix_of_affinities_is_ordered_by_its_points():
    X = np.random.default_rng(0).normal(size=(80, 3))
    K, order = np.exp(-cdist(X, X)), np.random.default_rng(1).permutation(80)
    shuffled = K[np.ix_(order, order)]
    assert_array_equal(
        order[content_order(shuffled, columns=False)], content_order(K, columns=False)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("kind", ["line", "grid", "normal"])
def test_the_order_looks_random(kind, columns):
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
