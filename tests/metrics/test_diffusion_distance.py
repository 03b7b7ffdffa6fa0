"""The diffusion distance of operators and diffusions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm
from scipy.spatial.distance import squareform

import heatsketch as hs
from heatsketch import Diffusion, diffusion_distance, distortion
from problems.clouds import cloud, even_circle
from problems.spectra import circle_distances


def symmetric(n=40, epsilon=0.5):
    return hs.symmetric_normalize(hs.gaussian_affinity(cloud(n, 2), epsilon))


def rows_apart(M):
    """|row_i - row_j| for all pairs, the slow way."""
    i, j = np.triu_indices(len(M), 1)
    return np.sqrt(((M[i] - M[j]) ** 2).sum(axis=1))


# Diffusion distance


@pytest.mark.parametrize("time", [0, 1, 2, 8, 33])
def test_distance_is_that_of_the_rows_of_the_power(time):
    A = symmetric()
    want = rows_apart(np.linalg.matrix_power(A, time))
    np.testing.assert_allclose(diffusion_distance(A, time), want, rtol=1e-10)


@pytest.mark.parametrize("time", [0.0, 0.5, 4.0, 20.0])
def test_heat_distance_is_that_of_the_rows_of_the_heat_kernel(time):
    A = symmetric()
    want = rows_apart(expm(-time * (np.eye(40) - A)))
    np.testing.assert_allclose(diffusion_distance(A, time, filter="heat"), want, rtol=1e-9)


def test_the_default_is_eight_steps():
    np.testing.assert_array_equal(
        diffusion_distance(symmetric()), diffusion_distance(symmetric(), 8, filter="power")
    )


def any_symmetric(seed=3):
    M = np.random.default_rng(seed).normal(size=(12, 12))
    return (M + M.T) / 10  # positive and negative eigenvalues, no Markov matrix behind it


FORMS = {
    "array": lambda A: A,
    "sparse": sparse.csr_matrix,
    "operator": hs.Dense,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("time", [1, 2, 5])
def test_any_symmetric_matrix_has_distances(form, time):
    A = any_symmetric()
    want = rows_apart(np.linalg.matrix_power(A, time))
    np.testing.assert_allclose(diffusion_distance(form(A), time), want, rtol=1e-9)


def test_disconnected_groups_have_distances():
    A = np.kron(np.eye(3), np.full((4, 4), 0.25))
    D = squareform(diffusion_distance(A, 5))
    same = np.kron(np.eye(3), np.ones((4, 4))) > 0
    np.testing.assert_allclose(D[same], 0, atol=1e-12)
    np.testing.assert_allclose(D[~same], np.sqrt(2 / 4), rtol=1e-12)  # disjoint rows of four ¼


def test_pairs_are_those_asked_for_in_their_order():
    A = symmetric()
    i, j = np.triu_indices(40, 1)
    order = np.random.default_rng(0).permutation(len(i))[:200]
    pairs = (np.r_[j[order], 3], np.r_[i[order], 3])  # turned round, and a point with itself
    found = diffusion_distance(A, 4, pairs=pairs)
    np.testing.assert_allclose(found[:-1], diffusion_distance(A, 4)[order], rtol=1e-12)
    assert found[-1] == 0


@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_a_diffusion_has_the_distances_of_its_operator_without_the_trivial_direction(normalization):
    d = Diffusion.from_points(
        cloud(40, 2), affinity="dense", epsilon=0.5, normalization=normalization, tol=1e-13
    )
    whole = np.linalg.matrix_power(d.operator @ np.eye(40), 4)
    want = rows_apart(whole - np.outer(np.sqrt(d.measure), np.sqrt(d.measure)))
    np.testing.assert_allclose(diffusion_distance(d, 4), want, rtol=1e-9)
    np.testing.assert_allclose(diffusion_distance(d.operator, 4, deflate=True), want, rtol=1e-9)
    np.testing.assert_allclose(diffusion_distance(d.operator, 4), rows_apart(whole), rtol=1e-10)


def test_the_trivial_direction_never_counts_in_a_diffusion():
    d = Diffusion.from_points(cloud(40, 2), affinity="dense", normalization="symmetric")
    with pytest.raises(ValueError, match=r"deflate=False, .*pass diffusion\.operator"):
        diffusion_distance(d, 4, deflate=False)
    np.testing.assert_array_equal(diffusion_distance(d, 4, deflate=True), diffusion_distance(d, 4))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("time", [1, 6])
def test_the_markov_form_weighs_by_the_inverse_of_the_measure(alpha, time):
    d = Diffusion.from_points(cloud(40, 2), affinity="dense", epsilon=0.5, alpha=alpha)
    K = hs.gaussian_affinity(cloud(40, 2), 0.5)
    K = K / np.outer(K.sum(axis=1), K.sum(axis=1)) ** alpha
    pi = K.sum(axis=1) / K.sum()
    p = np.linalg.matrix_power(K / K.sum(axis=1, keepdims=True), time)
    np.testing.assert_allclose(diffusion_distance(d, time), rows_apart(p / np.sqrt(pi)), rtol=1e-9)


def test_duplicates_that_share_a_vertex_are_at_distance_zero():
    X = np.vstack([cloud(40, 2), cloud(40, 2)[:3]])
    d = Diffusion.from_points(X, n_neighbors=8)
    D = squareform(diffusion_distance(d, 4))
    assert D.shape == (43, 43)
    assert (D[np.arange(3), 40 + np.arange(3)] == 0).all()
    once = Diffusion.from_points(cloud(40, 2), n_neighbors=8)
    np.testing.assert_allclose(D[:40, :40], squareform(diffusion_distance(once, 4)), rtol=1e-10)
    twins, others = diffusion_distance(d, 4, pairs=([0, 41], [40, 5]))
    assert twins == 0
    assert others == pytest.approx(D[41, 5], rel=1e-12)


def test_duplicates_of_a_dense_kernel_are_at_distance_zero():
    A = hs.symmetric_normalize(hs.gaussian_affinity(np.repeat(cloud(20, 2), 2, axis=0), 0.5))
    twins = np.arange(0, 40, 2)
    D = diffusion_distance(A, 3, pairs=(twins, twins + 1))
    assert D.max() < 1e-14


# λ₁ = 0.935: the smallest D are about 4e-3, 4e-5, 1e-10 and 1e-58.
@pytest.mark.parametrize("time", [8, 64, 256, 1900])
@pytest.mark.parametrize("form", ["array", "diffusion", "kernel"])
def test_small_distances_on_the_circle_keep_their_digits(form, time):
    n, epsilon = 200, 0.25
    if form == "array":
        A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(n), epsilon))
    elif form == "diffusion":
        A = Diffusion.from_points(
            even_circle(n),
            affinity="dense",
            epsilon=epsilon,
            normalization="bistochastic",
            tol=1e-13,
        )
    else:
        A = hs.symmetric_normalize(hs.Kernel(even_circle(n), epsilon))
    steps = np.arange(1, n // 2 + 1)
    D = diffusion_distance(A, time, pairs=(np.zeros_like(steps), steps))
    np.testing.assert_allclose(D, circle_distances(steps, n, epsilon, time), rtol=1e-8)


def test_small_distances_of_uneven_data_keep_their_digits():
    # In the Markov form rows of A^12 are less than 1e-6 apart and about 1 long.
    A = symmetric(30, 20.0)
    lam, V = np.linalg.eigh(A)
    i, j = np.triu_indices(30, 1)
    rest = lam[:-1].clip(1e-300) ** 12 * (V[i, :-1] - V[j, :-1])
    root = V[i, -1] - V[j, -1]
    want = np.sqrt((rest**2).sum(axis=1) + root**2)
    np.testing.assert_allclose(diffusion_distance(A, 12), want, rtol=1e-9)
    B = Diffusion.from_affinity(hs.gaussian_affinity(cloud(30, 2), 20.0))
    weight = 1 / np.sqrt(B.measure)
    modes = V[:, :-1] * weight[:, None]
    markov = np.sqrt(((lam[:-1].clip(1e-300) ** 12 * (modes[i] - modes[j])) ** 2).sum(axis=1))
    assert markov.max() < 1e-6
    np.testing.assert_allclose(diffusion_distance(B, 12), markov, rtol=1e-7)


def test_distances_that_underflow_are_refused():
    A = hs.symmetric_normalize(hs.gaussian_affinity(even_circle(50), 0.25))
    with pytest.raises(ValueError, match="time is too large"):
        diffusion_distance(A, 100_000)


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        (([0, 40], [1, 2]), "out of range; pass 0 <= index < 40"),
        (([0, -1], [1, 2]), "out of range"),
        (([0, 1], [1]), r"shapes \(2,\) and \(1,\)"),
        (([0.0, 1.0], [1, 2]), "two index arrays"),
    ],
    ids=["too large", "negative", "unequal", "not whole"],
)
def test_bad_pairs_are_refused(pairs, match):
    with pytest.raises(ValueError, match=match):
        diffusion_distance(symmetric(), 2, pairs=pairs)
    with pytest.raises(ValueError, match=match):
        distortion(cloud(40, 2), np.ones(2), pairs=pairs)


def test_bad_filters_are_refused():
    with pytest.raises(ValueError, match="filter='Power' is unknown"):
        diffusion_distance(symmetric(), 2, filter="Power")
    with pytest.raises(ValueError, match=r"p=1\.5\).*eigenvalues >= 0"):
        diffusion_distance(symmetric() - np.eye(40), 1.5)
    with pytest.raises(ValueError, match="not symmetric"):
        diffusion_distance(np.triu(np.ones((3, 3))), 2)
