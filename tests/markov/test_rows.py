"""The rows that diffusion distances compare, and coordinates with their distances.

Rows are written out as matrices. Coordinates are exact with all eigenpairs; with some, the rest
obeys a chi-square law.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import block_diag, bmat, csr_matrix, diags_array, eye_array, kron, lil_array
from scipy.spatial.distance import pdist, squareform
from scipy.stats import chi2

import heatsketch as hs
from heatsketch._random import random_block
from heatsketch.markov.rows import Coordinates
from heatsketch.metrics.distances import DiffusionDistances
from heatsketch.spectral.filters import make_filter
from problems.clouds import cloud
from problems.estimators import every_normalization
from problems.matrices import dense
from problems.spectra import cycle_graph

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")

AFFINITIES = {
    "knn": {"n_neighbors": 6},
    "variable": {"affinity": "variable", "n_neighbors": 6},
    "dense": {"affinity": "dense", "epsilon": 0.8},
    "radius": {"affinity": "radius", "epsilon": 0.3},
}
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
FILTERS = [("power", 1), ("power", 5), ("power", 9), ("heat", 2.5), ("accumulated", 2)]
every_filter = pytest.mark.parametrize(("filter", "time"), FILTERS)


def make(X, normalization="markov", **options):
    return hs.Diffusion.from_points(X, normalization=normalization, tol=1e-13, **options)


def written_out(d, M, filter, time):
    """Rows of M (f(A) - f(0)) A⁻¹ without the direction √π, over M √π in the Markov form."""
    u = np.sqrt(d.measure)
    A = d.operator @ np.eye(d.n) - np.outer(u, u)
    lam, V = np.linalg.eigh(A)
    g = {
        "power": lambda: lam ** (time - 1),
        "heat": lambda: np.exp(-time) * np.expm1(time * lam) / lam,
        "accumulated": lambda: (
            lam ** (time - 1) * np.sqrt(np.sum(lam[:, None] ** (2 * np.arange(63 * time)), axis=1))
        ),
    }[filter]()
    g = (V * g) @ V.T
    M = dense(M)
    rows = M @ g / ((M @ u)[:, None] if d.normalization == "markov" else 1)
    return rows - np.outer(rows @ u, u)


def first_step(d):
    return d.operator @ np.eye(d.n) if d.directed_step is None else d.directed_step


@every_filter
@every_normalization
@every_affinity
def test_rows_are_those_of_the_matrices(affinity, normalization, filter, time):
    X, X_new = cloud(40, 3, seed=1), cloud(7, 3, seed=2)
    d = make(X, normalization, **affinity)
    D = pdist(written_out(d, first_step(d), filter, time)[d.vertex])
    assert_allclose(hs.diffusion_distance(d, time, filter=filter), D, rtol=1e-8)
    for given, M, place in (
        (None, first_step(d), d.vertex),
        (X_new, d.kernel_rows(X_new), np.arange(7)),
    ):
        rows, R = d.rows(time, given, filter=filter), written_out(d, M, filter, time)
        atol = 1e-11 * np.abs(R).max()
        assert rows.n_points == len(R)
        assert_allclose(rows.array(np.arange(len(R))), R[place], rtol=0, atol=atol)
        Z = cloud(len(R), 3, seed=4)
        # Only the first step knows what Z is stored in.
        for form in (np.asarray, csr_matrix) if filter == "power" else (np.asarray,):
            found = rows.transposed(form(Z))
            assert_allclose(found, R.T @ Z, rtol=0, atol=50 * atol)


@every_filter
@every_normalization
@every_affinity
def test_a_heat_sketch_is_the_rows_times_its_random_block(affinity, normalization, filter, time):
    X, k = cloud(40, 3, seed=1), 8
    model = hs.HeatSketch(
        k, time, filter=filter, normalization=normalization, tol=1e-13, random_state=5, **affinity
    ).fit(X)
    d = model.diffusion_
    G = random_block(len(d.vertex), k, "gaussian", 5)[d.first_points]
    S = d.rows(time, filter=filter).array(np.arange(40)) @ G / np.sqrt(k)
    assert_allclose(model.embedding_, S, rtol=0, atol=1e-11 * np.abs(S).max())


@pytest.mark.statistical
@pytest.mark.parametrize(("filter", "time"), [("power", 1), ("power", 8), ("heat", 4.5)])
def test_the_law_of_the_sketch_holds_for_the_diffusion_distance_of_the_default_graph(filter, time):
    """k |y_i - y_j|² / D² is chi-square with k degrees of freedom, for old and new points.

    k = 256 columns, the default graph with duplicates, 1,711 pairs: the bounds (a union over the
    pairs) are passed by chance in fewer than 1e-6 of all seeds. Sees an error of a factor 1.9 on
    the square of any one pair, and by the mean of all pairs one of 20 %; the distance of A itself,
    without the one-sided step, is found out.
    """
    X, X_new, k = cloud(300, 3, seed=1), cloud(9, 3, seed=2), 256
    X = np.vstack([X, X[:10]])
    model = hs.HeatSketch(k, time, filter=filter, random_state=3).fit(X)
    d = model.diffusion_
    Y = np.vstack([model.embedding_[:50], model.transform(X_new)])
    old, new = d.rows(time, filter=filter), d.rows(time, X_new, filter=filter)
    D = pdist(np.vstack([old.array(np.arange(50)), new.array(np.arange(9))]))
    ratio = pdist(Y, "sqeuclidean") / D**2
    low, high = chi2.ppf([5e-7 / len(D), 1 - 5e-7 / len(D)], k) / k
    assert low < ratio.min()
    assert ratio.max() < high
    assert_allclose(hs.diffusion_distance(d, time, filter=filter)[:49], D[:49], rtol=1e-8)
    walks = d.operator @ np.eye(d.n) / np.sqrt(d.measure)[:, None]
    if time == 1:
        other = pdist(walks[d.vertex[:50]], "sqeuclidean")
        wrong = pdist(Y[:50], "sqeuclidean") / other
        assert wrong.min() < low or wrong.max() > high


def test_duplicates_have_one_row_and_distance_zero():
    X = cloud(40, 3, seed=1)
    d = hs.diffusion(np.vstack([X, X[:3]]), n_neighbors=6)
    rows = d.rows(4)
    assert rows.n_points == 43
    assert_array_equal(rows.array(np.arange(3)), rows.array(np.arange(40, 43)))
    assert_array_equal(rows.sketch(16, 1)[:3], rows.sketch(16, 1)[40:])
    pairs = np.arange(3), np.arange(40, 43)
    assert_array_equal(hs.diffusion_distance(d, 4, pairs=pairs), 0)


def test_without_a_rule_new_points_are_refused():
    d = replace(make(cloud(20, 3)), out_of_sample=None)
    for call in (d.kernel_rows, d.novelty, lambda X: d.rows(2, X), lambda X: d.last_step(X, X)):
        with pytest.raises(ValueError, match="no rule for new points"):
            call(cloud(20, 3))


def test_time_zero_has_no_rows():
    for affinity in ("knn", "dense"):
        with pytest.raises(ValueError, match="time=0 is less than one step"):
            make(cloud(20, 3), affinity=affinity).rows(0)


# Coordinates


def quotient(filter, time):
    return make_filter(filter, time).reduced()


def stepped(d, H):
    """The last step: M, over M √π in the Markov form."""
    return d.rows(1).array(np.arange(len(d.vertex))) @ H


def under(coordinates, f, n_sketch, seed):
    return coordinates.under([f], n_sketch, seed)[0]


@pytest.fixture
def few_pairs(limits):
    """Compute 8 eigenpairs of more than 20 points."""
    limits(few_vertices=20, all_eigenpairs=20)


@every_filter
@every_normalization
@every_affinity
def test_with_all_pairs_distances_are_those_of_the_rows(affinity, normalization, filter, time):
    d = make(cloud(40, 3, seed=1), normalization, **affinity)
    c = Coordinates.from_operator(d.deflated, 8)
    F = stepped(d, under(c, quotient(filter, time), 16, 0))
    D = pdist(d.rows(time, filter=filter).array(np.arange(d.n)))
    assert_allclose(pdist(F), D, rtol=1e-7, atol=1e-9 * D.max())


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize(("filter", "time"), [("power", 200), ("heat", 400.0), ("accumulated", 99)])
@every_normalization
def test_at_long_times_some_pairs_are_all_that_counts(normalization, filter, time):
    d = make(cloud(80, 3, seed=1), normalization, n_neighbors=6)
    c, f = Coordinates.from_operator(d.deflated, 8), quotient(filter, time)
    assert not c.remaining_part(f)[1]
    F = under(c, f, 16, 0)
    assert F.shape == (80, 8)
    D = d.rows(time, filter=filter).array(np.arange(80))
    # What is left out weighs at most 1e-2 of the largest: 1e-4 of its square.
    assert_allclose(pdist(stepped(d, F)) ** 2, pdist(D) ** 2, atol=1e-3 * pdist(D).max() ** 2)


@pytest.mark.statistical
@pytest.mark.usefixtures("few_pairs")
@every_filter
@every_normalization
@pytest.mark.parametrize("affinity", [AFFINITIES["knn"], AFFINITIES["dense"]], ids=["knn", "dense"])
def test_the_rest_obeys_the_chi_square_law(affinity, normalization, filter, time):
    """Of r = 64 columns, r |rest_i - rest_j|² / (D² - that of the pairs) is chi-square, r degrees.

    780 pairs: the bounds are passed by chance in fewer than 1e-6 of all seeds (union bound). Sees
    a factor of 4 on all squares or on one in a hundred, as a power too many or 1/r for 1/√r.
    """
    r, d = 64, make(cloud(40, 3, seed=1), normalization, **affinity)
    c, f = Coordinates.from_operator(d.deflated, 8), quotient(filter, time)
    if not c.remaining_part(f)[1]:  # nothing is left to sketch
        assert (filter, time) == ("power", 9)
        return
    F = under(c, f, r, 3)
    assert F.shape == (40, 8 + r)
    F = stepped(d, F)
    D = pdist(d.rows(time, filter=filter).array(np.arange(40)))
    left = D**2 - pdist(F[:, :8]) ** 2
    counted = left > 1e-9 * D**2
    assert counted.mean() > 0.9
    ratio = (pdist(F[:, 8:]) ** 2)[counted] / left[counted]
    low, high = chi2.ppf([5e-7 / 780, 1 - 5e-7 / 780], r) / r
    assert low < ratio.min()
    assert ratio.max() < high


@pytest.mark.usefixtures("few_pairs")
@every_normalization
def test_under_several_filters_at_once_as_under_each(normalization):
    c = Coordinates.from_operator(
        make(cloud(40, 3, seed=1), normalization, n_neighbors=6).deflated, 8
    )
    filters = [quotient("accumulated", time) for time in (2, 8, 99)]
    for f, F in zip(filters, c.under(filters, 16, 0), strict=True):
        alone = under(c, f, 16, 0)
        assert_allclose(F, alone, atol=1e-5 * np.abs(alone).max())


@pytest.mark.usefixtures("few_pairs")
def test_pairs_and_rest_are_orthogonal():
    d = make(cloud(40, 3, seed=1))
    c = Coordinates.from_operator(d.deflated, 8)
    rest = under(c, quotient("power", 2), 40, 3)[:, 8:]
    size = np.abs(rest).max()
    assert_allclose(c.vectors.T @ rest, 0, atol=1e-9 * size)
    assert_allclose(np.sqrt(d.measure) @ rest, 0, atol=1e-9 * size)


@pytest.mark.usefixtures("few_pairs")
def test_negative_eigenvalues_are_not_overlooked():
    """Two halves that link to each other alone: -1 is an eigenvalue, and no leading one."""
    K = np.kron([[0, 1], [1, 0]], np.ones((20, 20)))
    K += 1e-3 * np.exp(-((np.arange(40)[:, None] - np.arange(40)) ** 2) / 40)
    d = hs.Diffusion.from_affinity(K)
    c = Coordinates.from_operator(d.deflated, 8)
    assert c.remaining.values.min() < -0.9
    assert c.remaining_part(quotient("power", 9))[1]


# Long times, eigenvalues near -1


def path(n):
    return diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])


def with_edge(K, i, j):
    """The graph with one more edge, which makes it not bipartite."""
    K = lil_array(K)
    K[i, j] = K[j, i] = 1
    return csr_matrix(K)


def odd_grid(a, b):
    return with_edge(kron(path(a), eye_array(b)) + kron(eye_array(a), path(b)), 0, b + 1)


def random_bipartite(m, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.tile(np.arange(m), 3), np.hstack([rng.permutation(m) for _ in range(3)])
    B = csr_matrix((np.ones(3 * m), (rows, columns)), (m, m))
    return with_edge(bmat([[None, B], [B.T, None]]), 0, 1)


NEARLY_BIPARTITE = {
    "grid": odd_grid(30, 12),
    "bipartite grid": kron(path(30), eye_array(12)) + kron(eye_array(30), path(12)),
    "cycle with a chord": with_edge(cycle_graph(400), 0, 130),
    "odd cycle": cycle_graph(401),
    "two grids": with_edge(block_diag([odd_grid(20, 10), odd_grid(22, 10)]), 199, 200),
    "random": random_bipartite(200, 1),
    "random again": random_bipartite(170, 2),
}
every_nearly_bipartite = pytest.mark.parametrize(
    "K", NEARLY_BIPARTITE.values(), ids=NEARLY_BIPARTITE
)


def true_distances(d):
    """Return the distances under a filter, as a function of it."""
    lam, V = np.linalg.eigh(d.operator @ np.eye(d.n))
    return lambda f: pdist(V[:, :-1] * f(lam[:-1]) / d.root[:, None])


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("filter", ["power", "accumulated"])
@every_nearly_bipartite
def test_eigenvalues_near_minus_one_count_at_every_time(K, filter):
    """The claimed error of a mean squared distance is one standard error of 512 columns."""
    d = hs.Diffusion.from_affinity(csr_matrix(K))
    true = true_distances(d)
    for time in (8, 100, 1001, 10_000, 100_001):
        D = true(make_filter(filter, time))
        wanted = DiffusionDistances.from_operator(d, time, filter)
        S, error = wanted.coordinates(512)
        ratio = np.mean(pdist(S) ** 2) / np.mean(D**2)
        assert abs(ratio - 1) < 1e-3 + 5 * error, time
        if error < 1e-4:
            assert_allclose(pdist(S), D, rtol=0, atol=1e-2 * D.max())
        if time > 10_000:
            continue
        i, j = np.arange(9), np.arange(9) + 100
        assert_allclose(wanted.between(i, j), squareform(D)[i, j], rtol=0, atol=1e-6 * D.max())


def test_a_picture_at_a_long_time_is_measured_by_the_true_distances():
    K = odd_grid(70, 30)  # beyond 2,048 points: not all pairs
    model = hs.HeatEmbedding(2, 30_000, filter="power", layout="linear", affinity="precomputed")
    found = model.fit(K).distortion_.within[1.05]
    D = true_distances(model.diffusion_)(make_filter("power", 30_000))
    assert abs(found - hs.distortion(model.embedding_, D).within[1.05]) < 0.02


@pytest.mark.usefixtures("few_pairs")
def test_the_number_of_directions_knows_both_ends():
    d = hs.Diffusion.from_affinity(NEARLY_BIPARTITE["cycle with a chord"])
    lam = np.linalg.eigvalsh(d.operator @ np.eye(d.n))[:-1]
    c = Coordinates.from_operator(d.deflated, 8)
    for time in (1000, 10_000):
        squares = lam ** (2 * time)
        assert c.directions(make_filter("power", time)) == pytest.approx(
            squares.sum() ** 2 / (squares**2).sum(), rel=1e-2
        )


@pytest.mark.usefixtures("few_pairs")
def test_pairs_of_the_lower_end_are_computed_only_for_filters_that_need_them():
    c = Coordinates.from_operator(hs.Diffusion.from_affinity(NEARLY_BIPARTITE["grid"]).deflated, 8)
    assert c.enough_for(make_filter("heat", 1e4)) is c
    assert c.enough_for(make_filter("power", 8)) is c
    both = c.enough_for(make_filter("power", 10_000))
    assert both.values.min() < -0.99
    assert both.enough_for(make_filter("power", 10_000)) is both
    cloudy = Coordinates.from_operator(make(cloud(400, 3, seed=1)).deflated, 8)
    for time in (1, 2, 4, 8, 100, 10_000):
        assert cloudy.enough_for(make_filter("power", time)) is cloudy


# The last step


@every_normalization
@every_affinity
def test_a_step_is_its_matrix_over_the_mass_and_its_transpose_is_adjoint(affinity, normalization):
    X, X_new = cloud(40, 3, seed=1), cloud(7, 3, seed=2)
    d = make(X, normalization, **affinity)
    H, Z = cloud(d.n, 5, seed=3), cloud(7, 5, seed=4)
    for M, step in ((first_step(d), d.step()), (d.kernel_rows(X_new), d.step(X_new))):
        M = dense(M)
        S = M / (M @ d.root)[:, None] if normalization == "markov" else M
        atol = 1e-12 * np.abs(S).max()
        assert_allclose(step @ H, S @ H, atol=40 * atol)
        G = np.resize(Z, (len(S), 5))
        for form in (np.asarray, csr_matrix):
            assert_allclose(step.transposed(form(G)), S.T @ G, atol=40 * atol)
        assert_allclose(step.mass, M @ d.root, rtol=1e-9)


@every_affinity
def test_a_step_of_the_markov_form_takes_means(affinity):
    d = make(cloud(40, 3, seed=1), **affinity)
    for step in (d.step(), d.step(cloud(7, 3, seed=2))):
        assert_allclose(step @ np.column_stack([d.root, 3 * d.root]), [[1, 3]] * len(step.mass))


def test_a_step_does_not_leave_a_component():
    X = np.vstack([cloud(30, 3, seed=1), cloud(20, 3, seed=2) + 100])
    for affinity in (AFFINITIES["knn"], AFFINITIES["dense"]):
        d = make(X, **affinity)
        inside = np.flatnonzero(d.operator.components() == 1)
        H = cloud(d.n, 4, seed=3)
        assert_allclose(d.step().restricted(inside) @ H[inside], (d.step() @ H)[inside], rtol=1e-9)


def test_the_trivial_direction_is_computed_once_for_each_diffusion():
    d = make(cloud(40, 3, seed=1))
    assert_array_equal(d.root, np.sqrt(d.measure))
    assert d.deflated is d.deflated
    assert_allclose(d.deflated @ d.root, 0, atol=1e-14)
    other = replace(d, measure=np.full(40, 1 / 40))
    assert_allclose(other.root, 1 / np.sqrt(40))
    assert_allclose(other.deflated.V[:, 0], other.root)
    again = pickle.loads(pickle.dumps(d))
    assert_array_equal(again.deflated @ np.eye(40), d.deflated @ np.eye(40))
