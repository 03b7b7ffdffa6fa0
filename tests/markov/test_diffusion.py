import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch import CertificateError, Diffusion, DisconnectedWarning
from heatsketch.markov.affinity import knn_affinity
from heatsketch.markov.diffusion import reweighted, times_columns
from problems.clouds import cloud
from problems.estimators import every_normalization
from problems.matrices import dense

POINTS = {
    "dense": {"affinity": "dense", "epsilon": 0.5},
    "dense self-tuning": {"affinity": "dense", "n_neighbors": 8},
    "radius": {"affinity": "radius", "epsilon": 0.5},
    "knn": {"affinity": "knn", "n_neighbors": 8},
    "variable": {"affinity": "variable", "n_neighbors": 8},
    "knn with a number": {"affinity": "knn", "epsilon": 0.5, "n_neighbors": 8},
}
ways = pytest.mark.parametrize("way", POINTS.values(), ids=POINTS.keys())


def matrix(d):
    return d.operator @ np.eye(d.n)


def built(way, normalization="markov", X=None, **more):
    """A diffusion scaled to rounding."""
    X = cloud(60, 2) if X is None else X
    return Diffusion.from_points(X, normalization=normalization, tol=1e-13, **way, **more)


# Construction


@ways
@every_normalization
def test_the_measure_is_stationary_and_the_interval_holds_the_spectrum(way, normalization):
    d = built(way, normalization)
    A, root = matrix(d), np.sqrt(d.measure)
    assert_allclose(A, A.T, atol=1e-16)
    assert_allclose(A @ root, root, rtol=1e-11)
    assert d.measure.sum() == pytest.approx(1)
    assert d.measure.min() > 0
    assert d.normalization == normalization
    assert d.diagnostics["components"] == 1
    assert d.diagnostics["row_sum_error"] < 1e-11
    lam = np.linalg.eigvalsh(A)
    assert d.operator.spectrum[0] - 1e-12 <= lam[0]
    assert lam[-1] <= d.operator.spectrum[1] + 1e-12
    assert d.operator.spectrum[1] == 1
    assert_allclose(d.deflated @ np.eye(d.n), A - np.outer(root, root), atol=1e-13)


def test_alpha_belongs_to_the_markov_form_alone():
    for normalization in ("symmetric", "markov"):
        one, other = (matrix(built(POINTS["dense"], normalization, alpha=a)) for a in (0.0, 1.0))
        assert (np.abs(one - other).max() > 0.01) == (normalization == "markov")
        assert (one == other).all() == (normalization == "symmetric")


def test_the_default_is_the_self_tuning_graph_of_15_neighbours_in_markov_form():
    d = Diffusion.from_points(cloud(60, 2))
    K = knn_affinity(cloud(60, 2), "self-tuning", 15).operator.matrix
    want = Diffusion.from_affinity(K, normalization="markov", alpha=1.0)
    assert_array_equal(matrix(d), matrix(want))


def test_the_cut_reaches_the_affinity():
    wide, narrow = (built(POINTS["radius"], cut=cut) for cut in (5.0, 2.0))
    inside = cdist(cloud(60, 2), cloud(60, 2)) <= 2.0 * np.sqrt(0.5 / 2)
    assert_array_equal(matrix(narrow) > 0, inside)
    assert (matrix(wide) > 0).sum() > inside.sum()


# Rows for new points


@pytest.mark.parametrize("name", ["dense", "dense self-tuning", "radius"])
@every_normalization
def test_rows_of_the_data_are_rows_of_the_operator(name, normalization):
    d = built(POINTS[name], normalization)
    assert_allclose(dense(d.kernel_rows(cloud(60, 2))), matrix(d), rtol=1e-11, atol=1e-15)
    assert_allclose(dense(d.kernel_rows(cloud(60, 2)[7:8])), matrix(d)[7:8], rtol=1e-11)
    assert d.directed_step is None


@pytest.mark.parametrize("name", ["knn", "knn with a number", "variable"])
@every_normalization
def test_rows_of_the_data_are_its_own_rows_of_the_graph(name, normalization):
    X = cloud(60, 2)
    X = np.vstack([X, X[:4]])
    d = built(POINTS[name], normalization, X)
    assert d.n == 60
    assert_array_equal(d.vertex, [*range(60), *range(4)])
    assert d.diagnostics["duplicates"] == 4
    assert_array_equal(dense(d.kernel_rows(X)), d.directed_step[d.vertex].toarray())


@pytest.mark.parametrize("name", ["dense", "radius"])
@every_normalization
def test_a_new_row_is_that_of_the_formula(name, normalization):
    """A new row is a(x, j) = K(x, j) s(x) s_j with the scale of x from its affinities."""
    X, new = cloud(60, 2), cloud(5, 2, seed=7)
    K, k = (np.exp(-cdist(x, X, "sqeuclidean") / 0.5) for x in (X, new))
    if name == "radius":
        K, k = (np.where(affinity >= np.exp(-12.5), affinity, 0) for affinity in (K, k))
    if normalization == "bistochastic":
        s = np.diag(hs.bistochastic_normalize(K, tol=1e-13)) ** 0.5  # K_jj = 1
        s_new = 1 / (k @ s)
    else:
        q, q_new = K.sum(axis=1), k.sum(axis=1)
        s = 1 / (q * np.sqrt(K @ (1 / q) / q))
        s_new = 1 / (q_new * np.sqrt(k @ (1 / q) / q_new))
    d = built(POINTS[name], normalization)
    assert_allclose(dense(d.kernel_rows(new)), s_new[:, None] * k * s, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([[1.0, -0.1]], "non-negative .*bad rows: 0"),
        ([[1.0, 0.5], [0.0, 0.0]], "bad rows: 1"),
        ([[1.0, 0.5, 0.1]], "X has 3 columns, but the diffusion was built with 2"),
        ([[np.nan, 0.5]], "NaN"),
    ],
    ids=["negative", "empty", "too wide", "nan"],
)
def test_affinities_of_new_points_are_checked(rows, match):
    d = Diffusion.from_affinity(np.array([[1.0, 0.5], [0.5, 1.0]]))
    for form in (np.array, sparse.csr_matrix):
        with pytest.raises(ValueError, match=match):
            d.kernel_rows(form(rows))


@ways
def test_smoothing_the_data_is_smoothing_new_points_that_equal_it(way):
    d, H = built(way), cloud(60, 4, seed=1)
    assert_allclose(d.last_step(H, cloud(60, 2)), d.last_step(H), rtol=1e-11, atol=1e-13)
    assert_allclose(d.last_step(H), dense(d.kernel_rows(cloud(60, 2))) @ H, atol=1e-12)
    new = cloud(9, 2, seed=5)
    alone = [dense(d.kernel_rows(point)) for point in np.split(new, 9)]
    assert_allclose(np.vstack(alone), dense(d.kernel_rows(new)), rtol=1e-13)
    assert d.last_step(H, np.empty((0, 2))).shape == (0, 4)
    assert d.kernel_rows(np.empty((0, 2))).shape == (0, 60)


@pytest.mark.parametrize("affinity", ["dense", "knn"])
def test_far_points_have_their_numbers_whatever_the_tiles(affinity, limits):
    limits(sparse_tile=8, row_tile=8)
    d = hs.diffusion(cloud(60, 2), affinity=affinity)
    new = cloud(40, 2)
    new[[3, 21, 22]] += 1e7
    with pytest.warns(hs.ScaleWarning) as said:
        d.last_step(np.eye(60), new)
    assert sorted(row for one in said for row in one.message.about[0]) == [3, 21, 22]
    assert any("2 new point(s) (rows 21, 22) are too far" in str(one.message) for one in said)


# Graphs and given affinities


def test_the_random_walk_of_a_graph():
    star = sparse.csr_matrix([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    d = Diffusion.from_graph(star)
    assert_allclose(d.measure, np.array([3, 1, 2]) / 6)
    root = np.sqrt(d.measure)
    P = matrix(d) * root / root[:, None]
    assert_allclose(P, [[0, 1 / 3, 2 / 3], [1, 0, 0], [1, 0, 0]], atol=1e-15)


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_a_graph_without_edges_is_refused():
    with pytest.raises(ValueError, match="3 of 3 points have no affinity to any other"):
        Diffusion.from_graph(np.zeros((3, 3)))


def test_affinities_of_any_form_are_one_diffusion_and_new_points_come_by_their_affinities():
    K = hs.gaussian_affinity(cloud(60, 2), 0.5)
    want = matrix(Diffusion.from_affinity(K))
    for given in (K, sparse.csr_matrix(K), hs.Dense(K), hs.Kernel(cloud(60, 2), 0.5)):
        d = Diffusion.from_affinity(given)
        assert_allclose(matrix(d), want, rtol=1e-11)
        for form in (np.asarray, sparse.csr_matrix):
            assert_allclose(dense(d.kernel_rows(form(K[4:7]))), want[4:7], rtol=1e-11)


# What goes wrong


@every_normalization
def test_an_operator_that_changes_between_products_is_caught(normalization, monkeypatch):
    K = hs.Dense(hs.gaussian_affinity(cloud(60, 2), 0.5))
    product, calls, last = hs.Dense._matmul, [], np.inf

    def drifting(self, x):
        calls.append(1)
        wave = 1 + 1e-4 * (len(calls) >= last) * np.cos(np.arange(self.n))
        return (wave * product(self, (wave * x.T).T).T).T

    monkeypatch.setattr(hs.Dense, "_matmul", drifting)
    Diffusion.from_affinity(K, normalization=normalization)
    last = 2 * len(calls)  # the certifying product of a second run
    with pytest.raises(CertificateError, match=r"is off by .* the affinity changes between"):
        Diffusion.from_affinity(K, normalization=normalization)


@pytest.mark.parametrize("alone", [5, 6, 10])
def test_a_bandwidth_too_small_for_most_points_is_an_error(alone):
    # Ten points, `alone` of them far from everybody, the others close together.
    X = np.array([[1000.0 * (i + 1) if i < alone else 1e-3 * i] for i in range(10)])
    refused = pytest.raises(ValueError, match=f"{alone} of 10 points have no affinity")
    with refused if alone > 5 else pytest.warns(DisconnectedWarning):
        Diffusion.from_points(X, affinity="dense", epsilon=1.0)


# The record


@ways
def test_pickling_keeps_every_bit(way):
    X = cloud(60, 2)
    X.setflags(write=False)
    d = built(way, X=X)
    again = pickle.loads(pickle.dumps(d))
    assert_array_equal(matrix(again), matrix(d))
    assert_array_equal(again.measure, d.measure)
    new = cloud(5, 2, seed=9)
    assert_array_equal(dense(again.kernel_rows(new)), dense(d.kernel_rows(new)))
    assert again.diagnostics == d.diagnostics


def test_an_operator_whose_powers_would_grow_is_refused():
    """F Fᵀ of cosines has negative entries: row sums can be positive and eigenvalues beyond 1."""
    refused = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        F = np.cos(rng.normal(size=(60, 6)) + rng.uniform(0, 6, size=6)) + 0.4
        K = F @ F.T
        q = K.sum(axis=1)
        if (q <= 0).any() or ((K / q).sum(axis=1) <= 0).any():
            continue
        v = (K / np.outer(q, q)).sum(axis=1)
        A = K / np.outer(q, q) / np.sqrt(np.outer(v, v))
        if np.linalg.eigvalsh(A)[-1] > 1 + 1e-5:
            refused += 1
            with pytest.raises(hs.CertificateError, match="beyond 1"):
                hs.Diffusion.from_affinity(hs.LowRank(F))
        else:
            hs.Diffusion.from_affinity(hs.LowRank(F))
    assert refused > 0


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_far_points_have_rows_whatever_alpha(alpha):
    X = np.random.default_rng(0).normal(size=(40, 2))
    d = hs.diffusion(X, affinity="dense", epsilon=1.0, alpha=alpha)
    for distance in (10.0, 20.0, 25.0):
        rows = d.kernel_rows([[distance, 0.0]])
        share = (rows * np.sqrt(d.measure) / (rows @ np.sqrt(d.measure))[:, None])[0]
        squares = ((X[d.first_points] - [distance, 0]) ** 2).sum(axis=1)
        weight = np.exp(squares.min() - squares) * d.scaling.s * np.sqrt(d.measure)
        assert_allclose(share, weight / weight.sum(), rtol=1e-9, atol=1e-12)


# Rows of counts, joined by their columns: a recipe with `LowRank`


def test_the_walk_to_a_column_and_back():
    counts = np.random.default_rng(0).poisson(1.0, (40, 12)).astype(float)
    F = sparse.csr_matrix(counts / np.sqrt(counts.sum(axis=0)))
    d = hs.Diffusion.from_affinity(hs.LowRank(F), alpha=0)
    both = np.block([[np.zeros((40, 40)), counts], [counts.T, np.zeros((12, 12))]])
    P = both / both.sum(axis=1)[:, None]
    root = np.sqrt(d.measure)
    assert_allclose((d.operator @ np.eye(40)) / root[:, None] * root, (P @ P)[:40, :40], atol=1e-13)


# A point of weight 2 is two points

DENSE = {"affinity": "dense", "epsilon": 1.5}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("time", [1, 4])
def test_whole_weights_are_repeated_points(alpha, time):
    X, counts = cloud(20, 2), np.random.default_rng(1).integers(1, 4, 20)
    place = np.repeat(np.arange(20), counts)
    d = hs.Diffusion.from_points(X, alpha=alpha, **DENSE)
    many = hs.Diffusion.from_points(X[place], alpha=alpha, **DENSE)
    found, columns = reweighted(d, counts.astype(float))[:2]
    first = np.unique(place, return_index=True)[1]
    i, j = np.triu_indices(20, 1)
    expected = hs.diffusion_distance(many, time, pairs=(first[i], first[j]))
    assert_allclose(hs.diffusion_distance(found, time), expected, rtol=1e-9)
    assert_allclose(found.measure, many.measure[many.vertex[first]] * counts, rtol=1e-12)
    new = cloud(5, 2, seed=3)
    rows = times_columns(d.kernel_rows(new), columns)
    P = rows / np.sqrt(found.measure) * found.measure
    P /= P.sum(axis=1, keepdims=True)
    other = (many.kernel_rows(new) * np.sqrt(many.measure))[:, many.vertex]
    other /= other.sum(axis=1, keepdims=True)
    merged = np.add.reduceat(other, first, axis=1)
    weighed = rows * np.sqrt(found.measure)
    assert_allclose(weighed / weighed.sum(axis=1, keepdims=True), merged, rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{"n_neighbors": 6}, {"affinity": "radius", "epsilon": 1.0}, DENSE]
)
def test_any_weights_give_a_diffusion_and_equal_ones_the_same(options):
    d = hs.Diffusion.from_points(cloud(40, 3), **options)
    w = np.random.default_rng(2).standard_exponential(40)
    found = reweighted(d, w)[0]
    root = np.sqrt(found.measure)
    assert_allclose(found.operator @ root, root, rtol=1e-10)
    assert found.measure.sum() == pytest.approx(1)
    assert np.abs(np.linalg.eigvalsh(found.operator @ np.eye(40))).max() < 1 + 1e-10
    D = hs.diffusion_distance(d, 3)
    assert_allclose(hs.diffusion_distance(reweighted(d, np.full(40, 7.0))[0], 3), D)
    assert np.abs(hs.diffusion_distance(found, 3) / D - 1).max() > 0.05
