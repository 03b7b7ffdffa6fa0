"""The diffusion distance of operators and diffusions, by columns of f(A) and by eigenpairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.linalg import matrix_power, norm
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import expm
from scipy.spatial.distance import pdist, squareform

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance, distortion
from heatsketch.markov.rows import DiffusionRows
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.neighbors import all_distances
from problems.clouds import cloud, even_circle
from problems.estimators import walk_of
from problems.filtered import symmetric
from problems.limits import set_limits
from problems.matrices import kernel_matrix
from problems.spectra import circle, circle_distances

# By definition


M = cloud(12, 12) / 10
ANY = M + M.T  # positive and negative eigenvalues, no Markov matrix behind it


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, hs.Dense])
@pytest.mark.parametrize("A", [symmetric(40), ANY], ids=["affinity", "any"])
@pytest.mark.parametrize(
    ("filter", "time"),
    [*(("power", t) for t in (0, 1, 2, 5, 8, 33)), *(("heat", t) for t in (0.0, 0.5, 4.0, 20.0))],
)
def test_distance_is_that_of_the_rows_of_the_filtered_matrix(filter, time, A, form):
    rows = matrix_power(A, time) if filter == "power" else expm(time * (A - np.eye(len(A))))
    want = pdist(rows)
    assert_allclose(diffusion_distance(form(A), time, filter=filter), want, rtol=1e-9)
    assert_allclose(by_eigenpairs(form(A), time, filter), want, rtol=1e-8)


def test_disconnected_groups_have_distances():
    A = np.kron(np.eye(3), np.full((4, 4), 0.25))
    D = squareform(diffusion_distance(A, 5))
    same = np.kron(np.eye(3), np.ones((4, 4))) > 0
    assert_allclose(D[same], 0, atol=1e-12)
    assert_allclose(D[~same], np.sqrt(2 / 4), rtol=1e-12)  # disjoint rows of four ¼


@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_a_diffusion_has_the_distances_of_its_operator_without_the_trivial_direction(normalization):
    d = Diffusion.from_points(
        cloud(40, 2), affinity="dense", epsilon=0.5, normalization=normalization, tol=1e-13
    )
    whole = matrix_power(d.operator @ np.eye(40), 4)
    want = pdist(whole - np.outer(np.sqrt(d.measure), np.sqrt(d.measure)))
    assert_allclose(diffusion_distance(d, 4), want, rtol=1e-9)
    assert_allclose(diffusion_distance(d.operator, 4, deflate=True), want, rtol=1e-9)
    assert_allclose(diffusion_distance(d.operator, 4), pdist(whole), rtol=1e-10)
    np.testing.assert_array_equal(diffusion_distance(d, 4, deflate=True), diffusion_distance(d, 4))
    with pytest.raises(ValueError, match=r"deflate=False, .*pass diffusion\.operator"):
        diffusion_distance(d, 4, deflate=False)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("time", [1, 6])
def test_the_markov_form_weighs_by_the_inverse_of_the_measure(alpha, time):
    d = Diffusion.from_points(cloud(40, 2), affinity="dense", epsilon=0.5, alpha=alpha)
    P, pi = walk_of(kernel_matrix(cloud(40, 2), 0.5), alpha)
    want = pdist(matrix_power(P, time) / np.sqrt(pi))
    assert_allclose(diffusion_distance(d, time), want, rtol=1e-9)


def test_duplicates_that_share_a_vertex_are_at_distance_zero():
    X = np.vstack([cloud(40, 2), cloud(40, 2)[:3]])
    d = Diffusion.from_points(X, n_neighbors=8)
    D = squareform(diffusion_distance(d, 4))
    assert D.shape == (43, 43)
    assert (D[np.arange(3), 40 + np.arange(3)] == 0).all()
    once = Diffusion.from_points(cloud(40, 2), n_neighbors=8)
    assert_allclose(D[:40, :40], squareform(diffusion_distance(once, 4)), rtol=1e-10)


# λ₁ = 0.935: the smallest D are about 4e-3, 4e-5, 1e-10 and 1e-58.
EVEN = even_circle(200)
CIRCLES = {
    "array": lambda: circle(200).operator,
    "kernel": lambda: hs.symmetric_normalize(hs.Kernel(EVEN, 0.25)),
    "diffusion": lambda: Diffusion.from_points(
        EVEN, affinity="dense", epsilon=0.25, normalization="bistochastic", tol=1e-13
    ),
}


@pytest.mark.parametrize("time", [8, 64, 256, 1900])
@pytest.mark.parametrize("make", CIRCLES.values(), ids=CIRCLES)
def test_small_distances_on_the_circle_keep_their_digits(make, time):
    A, steps = make(), np.arange(1, 101)
    want = circle_distances(steps, 200, 0.25, time)
    assert_allclose(diffusion_distance(A, time, pairs=(0 * steps, steps)), want, rtol=1e-8)
    assert_allclose(by_eigenpairs(A, time)[:100], want, rtol=1e-7)


def test_small_distances_of_uneven_data_keep_their_digits():
    # In the Markov form rows of A^12 are less than 1e-6 apart and about 1 long.
    A, B = symmetric(30, 20.0), Diffusion.from_affinity(hs.gaussian_affinity(cloud(30, 2), 20.0))
    lam, V = np.linalg.eigh(A)
    f, (i, j) = np.append(lam[:-1].clip(1e-300) ** 12, 1.0), np.triu_indices(30, 1)
    assert_allclose(diffusion_distance(A, 12), norm((V[i] - V[j]) * f, axis=1), rtol=1e-9)
    modes = (V * f)[:, :-1] / np.sqrt(B.measure)[:, None]
    markov = norm(modes[i] - modes[j], axis=1)
    assert markov.max() < 1e-6
    assert_allclose(diffusion_distance(B, 12), markov, rtol=1e-7)


def test_distances_that_underflow_are_refused():
    with pytest.raises(ValueError, match="time is too large"):
        diffusion_distance(circle(50).operator, 100_000)


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        (([0, 40], [1, 2]), "out of range; pass 0 <= index < 40"),
        (([0, -1], [1, 2]), "out of range"),
        (([0, 1], [1]), r"shapes \(2,\) and \(1,\)"),
        (([0.0, 1.0], [1, 2]), "two index arrays"),
        (np.array([[0, 1], [0, 2]]), r"tuple\(pairs.T\)"),
    ],
    ids=["too large", "negative", "unequal", "not whole", "one array"],
)
def test_bad_pairs_are_refused(pairs, match):
    with pytest.raises(ValueError, match=match):
        diffusion_distance(symmetric(40), 2, pairs=pairs)
    with pytest.raises(ValueError, match=match):
        distortion(cloud(40, 2), np.ones(2), pairs=pairs)


def test_bad_filters_are_refused():
    with pytest.raises(ValueError, match="filter='Power' is unknown"):
        diffusion_distance(symmetric(), 2, filter="Power")
    with pytest.raises(ValueError, match=r"p=1\.5\).*eigenvalues >= 0"):
        diffusion_distance(symmetric() - np.eye(60), 1.5)
    with pytest.raises(ValueError, match="not symmetric"):
        diffusion_distance(np.triu(np.ones((3, 3))), 2)


@pytest.mark.parametrize(("filter", "time"), [("heat", 2.5), ("accumulated", 2)])
def test_points_with_equal_rows_are_at_distance_0(filter, time):
    X = cloud(60, 3, seed=5)
    twice = hs.Diffusion.from_points(np.vstack([X, X[:5]]), affinity="dense", epsilon=2.0)
    star = np.zeros((8, 8))
    star[0, 1:] = star[1:, 0] = 1
    cases = (twice, 0, 60), (hs.Diffusion.from_graph(star), 1, 2)
    for d, i, j in cases:
        assert hs.diffusion_distance(d, time, filter=filter, pairs=([i], [j]))[0] < 1e-12


# In blocks


TWICE = Diffusion.from_points(np.vstack([cloud(60, 2), cloud(60, 2)[:3]]), n_neighbors=8)


@pytest.mark.parametrize("options", [{}, {"filter": "heat", "time": 3.5}])
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 63), st.integers(1, 120))
def test_blocks_change_nothing_and_hold_no_more_points_than_fit_and_two_for_a_pair(
    options, seed, size, n, m
):
    i, j = np.random.default_rng(seed).integers(0, n, (2, m))  # some more than once, some equal
    columns, transposed = [], DiffusionRows.transposed
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, column_bytes=8 * 60 * size)
        patch.setattr(
            DiffusionRows,
            "transposed",
            lambda rows, Z, tol: columns.append(Z.shape[1]) or transposed(rows, Z, tol),
        )
        D = diffusion_distance(TWICE, pairs=(i, j), **options)
    assert max(columns) <= size
    assert sum(columns) <= 2 * m
    whole = squareform(diffusion_distance(TWICE, **options))
    assert_allclose(D, whole[i, j], rtol=1e-9)


def test_no_pairs_have_no_distances():
    none = np.empty(0, dtype=int)
    assert diffusion_distance(np.diag([1.0, 0.5]), 1, pairs=(none, none)).shape == (0,)
    assert hs.diffusion_distance(np.array([[1.0]]), 1).shape == (0,)


# By eigenpairs


def coordinates_of(A, time, filter="power"):
    return DiffusionDistances.from_operator(A, time, filter).coordinates(8)


def by_eigenpairs(A, time, filter="power"):
    return all_distances(coordinates_of(A, time, filter)[0])


@pytest.mark.parametrize("time", [1, 7, 200])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic", "markov"])
@pytest.mark.parametrize("affinity", ["knn", "variable", "dense"])
def test_eigenpairs_give_the_distances_of_all_pairs(affinity, normalization, time):
    X = cloud(300, 3, seed=1)
    X[:5] = X[5:10] + 1e-7  # rows that differ little
    X = np.vstack([X, X[20:24]])
    d = Diffusion.from_points(X, affinity=affinity, normalization=normalization)
    D = diffusion_distance(d, time)
    assert_allclose(by_eigenpairs(d, time), D, rtol=1e-8, atol=1e-13 * D.max())
