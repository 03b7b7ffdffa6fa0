"""Laws of diffusion maps: distances (25), truncation (26), times (29), and the limit ε -> 0."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import spherical_in
from scipy.stats import chi2

import heatsketch as hs
from problems.clouds import cloud, even_angles, even_circle, even_torus, on_circle
from problems.estimators import walk_of
from problems.matrices import kernel_matrix
from problems.spectra import circle_eigenvalues

every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
X = cloud(40, 3, seed=4)
DENSE = {"affinity": "dense", "epsilon": 1.0}


def generator_values(X, epsilon, k, **changes):
    """The k smallest (1 - λ) 4/ε."""
    rules = {"affinity": "dense", "epsilon": epsilon} | changes
    return 4 / epsilon * (1 - hs.DiffusionMap(k, **rules).fit(X).eigenvalues_)


# Distances, truncation, times


@every_alpha
@pytest.mark.parametrize("time", [1, 3])
def test_all_coordinates_keep_the_diffusion_distance(alpha, time):
    """(25): (23), from the rows of Pᵗ, is the distance of all n - 1 coordinates."""
    P, pi = walk_of(kernel_matrix(X, 1.0), alpha)
    rows = np.linalg.matrix_power(P, time) / np.sqrt(pi)
    F = hs.DiffusionMap(len(X) - 1, time, alpha=alpha, **DENSE).fit_transform(X)
    want = cdist(rows, rows, "sqeuclidean")
    assert_allclose(cdist(F, F, "sqeuclidean"), want, rtol=1e-12, atol=1e-12 * want.max())


def spectrum_of(X):
    return hs.DiffusionMap(len(X) - 1, **DENSE).fit(X).eigenvalues_


@pytest.mark.parametrize("time", [1, 2, 5, 40])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.9])
def test_as_many_coordinates_are_kept_as_matter(time, delta):
    """(26): s(δ, t) = max{m: |λ_m|^t > δ |λ_1|^t}."""
    lam = np.abs(spectrum_of(X))
    kept = max(m for m in range(1, len(X)) if lam[m - 1] ** time > delta * lam[0] ** time)
    model = hs.DiffusionMap("auto", time, delta=delta, **DENSE).fit(X)
    assert model.embedding_.shape[1] == kept


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.9])
def test_automatic_time_is_the_first_at_which_the_next_coordinate_does_not_matter(k, delta):
    """(29), with λ_{d+1}."""
    lam = spectrum_of(X)
    want = next(t for t in range(1, 10_000) if lam[k] ** t <= delta * lam[0] ** t)
    model = hs.DiffusionMap(k, "auto", delta=delta, **DENSE).fit(X)
    assert model.time_ == want
    if want > 1:  # then s(δ, t) of (26) is k at this time, and more one step before
        kept = hs.DiffusionMap("auto", want - 1, delta=delta, **DENSE).fit(X).embedding_.shape[1]
        assert kept > k


@pytest.mark.parametrize("k", [2, 5, 9])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.9])
def test_printed_time_is_the_first_at_which_the_last_coordinate_does_not_matter(k, delta):
    """(29) as printed, with λ_d: by (26) it leaves fewer than d coordinates."""
    lam = spectrum_of(X)
    want = next(t for t in range(1, 10_000) if lam[k - 1] ** t <= delta * lam[0] ** t)
    model = hs.DiffusionMap(k, "printed", delta=delta, **DENSE).fit(X)
    assert model.time_ == want
    assert hs.DiffusionMap("auto", want, delta=delta, **DENSE).fit(X).embedding_.shape[1] < k
    by_hand = hs.DiffusionMap(k, want, **DENSE).fit(X)
    assert_allclose(model.embedding_, by_hand.embedding_, rtol=1e-12, atol=1e-300)


def test_printed_time_needs_no_further_eigenvalue():
    """As many coordinates as there are, where "auto" has nothing after them."""
    few = X[:10]
    model = hs.DiffusionMap(9, "printed", **DENSE).fit(few)
    lam = np.abs(spectrum_of(few))
    assert (lam[8] / lam[0]) ** model.time_ <= 0.2 < (lam[8] / lam[0]) ** (model.time_ - 1)
    with pytest.raises(ValueError, match="needs the eigenvalue after"):
        hs.DiffusionMap(9, "auto", **DENSE).fit(few)


def test_printed_time_of_one_coordinate_would_compare_it_with_itself():
    with pytest.raises(
        ValueError, match=r"compares the last coordinate with the first; pass n_components >= 2"
    ):
        hs.DiffusionMap(1, "printed", **DENSE).fit(X)


@pytest.mark.parametrize("time", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("delta", [0.05, 0.2, 0.9])
def test_waiting_walks_count_by_the_weights_of_their_coordinates(time, delta):
    X = cloud(300, 3, seed=4)
    A, pi = walk_of(kernel_matrix(X, 1.0), 1.0)
    A = np.sqrt(pi)[:, None] * A / np.sqrt(pi)
    lam = np.linalg.eigvalsh((A + A.T) / 2)[-2::-1]
    weights = np.exp(-time * (1 - lam)) - np.exp(-time)
    kept = 1 + np.flatnonzero(weights[:64] > delta * weights[0]).max()
    model = hs.DiffusionMap("auto", time, delta=delta, filter="heat", **DENSE).fit(X)
    assert model.embedding_.shape[1] == kept
    sizes = np.linalg.norm(np.sqrt(pi)[:, None] * model.embedding_, axis=0)
    assert_allclose(sizes, weights[:kept], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 5, 9])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.9])
def test_automatic_time_of_waiting_walks_has_the_next_coordinate_at_delta(k, delta):
    lam = spectrum_of(X)
    model = hs.DiffusionMap(k, "auto", delta=delta, filter="heat", **DENSE).fit(X)
    ratio = np.expm1(model.time_ * lam[k]) / np.expm1(model.time_ * lam[0])
    assert ratio == pytest.approx(delta, rel=1e-9) or (model.time_ == 1 and ratio < delta)


@pytest.mark.filterwarnings("ignore:K is zero on its diagonal|:UserWarning")
def test_automatic_time_of_waiting_walks_needs_a_walk_that_stays():
    K = np.ones((9, 9)) - np.eye(9)
    K[0, 1] = K[1, 0] = 1.2
    how = {"affinity": "precomputed", "filter": "heat"}
    with pytest.raises(ValueError, match="time='auto' finds no time: the eigenvalue 1 is -0"):
        hs.DiffusionMap(7, "auto", **how).fit(K)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_gap_time_is_that_of_the_largest_gap(k):
    X = cloud(60, 2, seed=4)
    lam = spectrum_of(X)
    gaps = [lam[k - 1] ** t - lam[k] ** t for t in range(1, 5000)]
    model = hs.DiffusionMap(k, "gap", **DENSE).fit(X)
    assert model.time_ == 1 + int(np.argmax(gaps))
    by_hand = hs.DiffusionMap(k, model.time_, **DENSE).fit(X)
    assert_allclose(model.embedding_, by_hand.embedding_, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("k", [1, 3])
def test_gap_time_of_the_heat_filter(k):
    lam = spectrum_of(X)
    model = hs.DiffusionMap(k, "gap", filter="heat", **DENSE).fit(X)

    def gap(t):
        return np.exp(-t * (1 - lam[k - 1])) - np.exp(-t * (1 - lam[k]))

    best = minimize_scalar(lambda t: -gap(t), bounds=(1e-3, 100), method="bounded")
    assert_allclose(model.time_, best.x, rtol=1e-4)
    assert gap(model.time_) >= gap(best.x) * (1 - 1e-12)


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize("filter", ["power", "heat"])
def test_no_gap_no_time(filter):
    """Two far clouds: λ_1 = 1 stays; on the circle λ_1 = λ_2."""
    with pytest.raises(ValueError, match=r"time='gap' finds no largest gap.*pass a time"):
        hs.DiffusionMap(1, "gap", filter=filter, **DENSE).fit(np.vstack([X, X + 100]))
    with pytest.raises(ValueError, match=r"no gap: the eigenvalues 1 and 2 are both 0\.\d+; "):
        hs.DiffusionMap(1, "gap", filter=filter, **DENSE).fit(even_circle(50))  # connected
    square, wide = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]), DENSE | {"epsilon": 1e6}
    with pytest.raises(ValueError, match=r"finds no gap: .* are both 5e-07"):  # but for rounding
        hs.DiffusionMap(1, "auto", filter=filter, **wide).fit(square)


# The limit ε -> 0: (1 - λ) 4/ε are eigenvalues of f'' + 2 (1 - α) (log ρ)' f'


@every_alpha
@pytest.mark.parametrize("epsilon", [0.5, 0.05])
def test_on_the_circle_eigenvalues_are_bessel_functions(alpha, epsilon):
    """λ_m = I_m(2/ε) / I_0(2/ε), twice each, up to terms that vanish exponentially in n."""
    m = np.repeat([1, 2, 3], 2)
    lam = hs.DiffusionMap(6, alpha=alpha, affinity="dense", epsilon=epsilon).fit(even_circle(200))
    assert_allclose(lam.eigenvalues_, circle_eigenvalues(m, epsilon), atol=1e-13)


def fibonacci_sphere(n):
    """Even points: equal steps of height, and of the golden angle."""
    z = 1 - (2 * np.arange(n) + 1) / n
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    return np.c_[np.sqrt(1 - z**2)[:, None] * on_circle(angle), z]


def test_on_the_sphere_eigenvalues_come_2l_plus_1_times():
    """λ_l = i_l(2/ε) / i_0(2/ε) (Funk and Hecke), 2l + 1 times; (1 - λ) 4/ε -> l (l + 1)."""
    epsilon, order = 0.2, np.repeat([1, 2, 3], [3, 5, 7])
    X = fibonacci_sphere(1000)
    values = generator_values(X, epsilon, 15)
    z = 2 / epsilon
    closed = 4 / epsilon * (1 - spherical_in(order, z) / spherical_in(0, z))
    # 1,000 points leave 13 within √ε of a point at the poles, where alone they are uneven.
    assert_allclose(values, closed, rtol=5e-3)
    # i_l(z) / i_0(z) = exp(-l (l + 1) / 2z) to first order beyond the limit
    limit = order * (order + 1)
    assert_allclose(values, limit, rtol=1.2 * limit.max() * epsilon / 8)


def uneven_angles(n, a=0.5):
    """Points of the density ρ = (1 + a cos θ) / 2π, at its quantiles."""
    u = (np.arange(n) + 0.5) / n
    return np.array(
        [brentq(lambda t, p=p: (t + a * np.sin(t)) / (2 * np.pi) - p, 0, 2 * np.pi) for p in u]
    )


def weighted_laplacian(alpha, k, a=0.5, n=65):
    """Eigenvalues of -(w f')'/w, w = ρ^(2 - 2α): Fourier collocation, exact to rounding."""
    angle = even_angles(n)
    difference = (angle[:, None] - angle) / 2 + np.eye(n)
    sign = (-1.0) ** (np.arange(n)[:, None] - np.arange(n))
    D = 0.5 * sign / np.sin(difference) * (1 - np.eye(n))  # of odd n
    w = (1 + a * np.cos(angle)) ** (2 - 2 * alpha)
    return eigh(D.T @ (w[:, None] * D), np.diag(w), eigvals_only=True)[1 : k + 1]


def test_the_reference_is_right_where_it_is_known():
    assert_allclose(weighted_laplacian(1.0, 6), np.repeat([1, 2, 3], 2) ** 2, rtol=1e-10)


@every_alpha
def test_uneven_points_on_a_circle_give_the_operator_of_their_alpha(alpha):
    """The error is O(ε): what is left after extrapolation is O(ε²), below 0.1 %."""
    X, epsilon = on_circle(uneven_angles(800)), 0.02
    coarse, fine = (generator_values(X, e, 6, alpha=alpha) for e in (epsilon, epsilon / 2))
    want = weighted_laplacian(alpha, 6)
    assert_allclose(2 * fine - coarse, want, rtol=2e-3)
    assert_allclose(fine, want, rtol=0.02)
    others = [weighted_laplacian(beta, 6) for beta in (0.0, 0.5, 1.0) if beta != alpha]
    assert all(np.abs(other / want - 1).max() > 0.01 for other in others)  # so that it can fail


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.75, 1.0])
def test_the_invariant_measure_is_a_power_of_the_density(alpha):
    """With respect to length it is ρ^(2 - 2α), so a point of the sample has π ∝ ρ^(1 - 2α)."""
    angle = uneven_angles(800)
    density = 1 + 0.5 * np.cos(angle)
    d = hs.Diffusion.from_points(on_circle(angle), affinity="dense", epsilon=0.01, alpha=alpha)
    ratio = d.expand(d.measure) / density ** (1 - 2 * alpha)
    assert_allclose(ratio / ratio.mean(), 1, atol=0.02)  # O(ε ρ''/ρ)


# The truncated kernel


@pytest.mark.parametrize(("d", "n"), [(1, 1000), (2, 40)])
def test_a_narrow_cut_slows_diffusion_by_the_share_of_the_second_moment(d, n):
    """At cut 3: F_{d+2}(9) / F_d(9), the moment over the mass that is left; at 5 next to 1."""
    epsilon = 0.01 if d == 1 else 0.1
    X = even_circle(n) if d == 1 else even_torus(n, n)
    common = {"affinity": "radius", "random_state": 0}
    narrow, wide = (generator_values(X, epsilon, 2 * d, cut=cut, **common) for cut in (3.0, 5.0))
    factor = chi2.cdf(9, d + 2) / chi2.cdf(9, d)
    # Sums over points of a disc for integrals, its edge at e^-4.5, are off by half a percent.
    assert_allclose(narrow / wide, factor, rtol=0.01)
    exact = 4 / epsilon * (1 - circle_eigenvalues(1, epsilon))
    assert_allclose(wide, exact, rtol=1e-3)


@pytest.mark.parametrize("affinity", ["knn", "dense", "radius"])
def test_eigenvectors_have_a_row_for_each_point_also_for_copies(affinity):
    X = np.random.default_rng(0).normal(size=(60, 2))
    X = np.vstack([X, X[:9], X[:4]])
    epsilon = 1.0 if affinity == "radius" else "self-tuning"
    model = hs.DiffusionMap(3, time=2, affinity=affinity, epsilon=epsilon).fit(X)
    assert model.eigenvectors_.shape == model.embedding_.shape == (73, 3)
    assert_allclose(model.eigenvectors_[60:69], model.eigenvectors_[:9], rtol=0, atol=1e-9)


# Time 0 and times below 1


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("affinity", [DENSE, {"n_neighbors": 8}], ids=["dense", "knn"])
def test_at_time_zero_the_coordinates_are_the_eigenvectors(affinity, normalization):
    """*Linear and nonlinear dimensionality reduction*, (57); M A⁻¹ of them in a graph."""
    X = cloud(60, 2, seed=4)
    model = hs.DiffusionMap(3, 0, normalization=normalization, **affinity).fit(X)
    d = model.diffusion_
    step = d.operator @ np.eye(60) if d.directed_step is None else d.directed_step.toarray()
    root = np.sqrt(d.measure) if normalization == "markov" else np.ones(60)
    V = model.eigenvectors_ * root[:, None]
    divisor = step @ np.sqrt(d.measure) if normalization == "markov" else np.ones(60)
    assert_allclose(model.embedding_, step @ V / model.eigenvalues_ / divisor[:, None], atol=1e-6)
    if d.directed_step is None:
        assert_allclose(model.embedding_, model.eigenvectors_, atol=1e-6)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-12)


@pytest.mark.parametrize("filter", ["power", "heat"])
@pytest.mark.parametrize("time", [0.25, 0.75, 2.5])
def test_at_real_times_the_eigenvectors_have_the_weights_of_the_filter(time, filter):
    model = hs.DiffusionMap(3, time, filter=filter, **DENSE).fit(cloud(60, 2, seed=4))
    lam = model.eigenvalues_
    weights = lam**time if filter == "power" else np.exp(-time * (1 - lam)) - np.exp(-time)
    assert_allclose(model.embedding_, model.eigenvectors_ * weights, atol=1e-6)


def test_a_time_below_one_does_not_divide_by_rounding():
    with pytest.raises(ValueError, match=r"time=0 divides by eigenvalues.*smaller n_components"):
        hs.DiffusionMap(59, 0, affinity="dense", epsilon=50.0).fit(cloud(60, 2, seed=4))
    with pytest.raises(ValueError, match=r"time=0\.5 is not whole and some eigenvalues"):
        hs.DiffusionMap(59, 0.5, n_neighbors=8).fit(cloud(60, 2, seed=4))


# The trivial coordinate, and the order by |λ|


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("time", [1, 3, [2, 5]])
@pytest.mark.parametrize("filter", ["power", "heat"])
def test_kept_the_trivial_coordinate_is_the_first_of_each_time(normalization, time, filter):
    options = DENSE | {"normalization": normalization, "filter": filter}
    without = hs.DiffusionMap(3, time, **options).fit(X)
    model = hs.DiffusionMap(3, time, deflate=False, **options).fit(X)
    assert_allclose(model.eigenvalues_, without.eigenvalues_)
    times = np.atleast_1d(time)
    blocks = np.split(model.embedding_, len(times), axis=1)
    assert_allclose(np.hstack([b[:, 1:] for b in blocks]), without.embedding_, atol=1e-14)
    root = np.ones(len(X)) if normalization == "markov" else model.diffusion_.root
    for block, t in zip(blocks, times, strict=True):
        weight = 1 if filter == "power" else 1 - np.exp(-t)
        assert_allclose(np.abs(block[:, 0]), weight * root, rtol=2e-8)  # tol of the scaling
    assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    assert len(model.get_feature_names_out()) == model.embedding_.shape[1]
    ratio = model.explained_diffusion_variance_ratio_
    assert_allclose(ratio, without.explained_diffusion_variance_ratio_)


def test_with_all_coordinates_distances_are_those_of_rows_not_deflated():
    """(4): with λ_0, distances of all n coordinates are those of the rows of A^t, (26)."""
    d = hs.diffusion(X, epsilon=1.0, affinity="dense", normalization="symmetric")
    options = DENSE | {"normalization": "symmetric", "deflate": False}
    F = hs.DiffusionMap(len(X) - 1, 2, **options).fit_transform(X)
    want = hs.diffusion_distance(d.operator, 2)
    assert_allclose(cdist(F, F)[np.triu_indices(len(X), 1)], want, atol=1e-12)


@pytest.mark.parametrize("n", [60, 1300])
def test_by_magnitude_walks_that_alternate_come_first(n):
    """An even ring of edges alone is bipartite: λ = cos(2πm/n), and -λ for each λ."""
    ring = np.roll(np.eye(n), 1, axis=1)
    graph = sparse.csr_matrix(ring + ring.T)
    model = hs.DiffusionMap(5, affinity="precomputed", order="magnitude", random_state=0)
    with warnings.catch_warnings(action="ignore"):
        lam = model.fit(graph).eigenvalues_
    want = np.cos(2 * np.pi * np.arange(n) / n)
    assert_allclose(lam[0], -1, atol=1e-10)
    assert_allclose(np.abs(lam), np.sort(np.abs(want))[::-1][1:6], atol=1e-8)
    assert model.eigengap().n_components >= 1


def test_by_magnitude_positive_eigenvalues_keep_their_order():
    by_value, by_size = (
        hs.DiffusionMap(4, order=order, **DENSE).fit(X).embedding_
        for order in ("value", "magnitude")
    )  # a Gaussian kernel has no negative eigenvalue
    assert_allclose(by_size, by_value, atol=1e-10)


def test_choices_of_coordinates_that_cannot_be_are_told():
    with pytest.raises(TypeError, match="deflate='no' is of type str; pass True or False"):
        hs.DiffusionMap(deflate="no", **DENSE).fit(X)
    with pytest.raises(ValueError, match="order='size'"):
        hs.DiffusionMap(order="size", **DENSE).fit(X)
    with pytest.raises(ValueError, match="with a fraction as n_components has no rule"):
        hs.DiffusionMap(0.5, order="magnitude", **DENSE).fit(X)
