"""HeatEmbedding: exact cases, the distances it keeps, its sketches, what must not matter."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import chi2

import heatsketch as hs
from heatsketch._messages import ScaleWarning
from heatsketch.layout.linear import OBJECTIVES
from problems.checks import assert_distortion
from problems.clouds import cloud, noisy_tree
from problems.estimators import AFFINITIES, every_normalization
from problems.spectra import cycle_graph

AFFINITIES = AFFINITIES | {"knn": {"affinity": "knn", "n_neighbors": 6}}
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
every_filter = pytest.mark.parametrize("filter", ["power", "heat"])


def make(n_components=2, time=4, **changes):
    return hs.HeatEmbedding(n_components, time, **{"random_state": 0, "filter": "power"} | changes)


def rows_of(model, X=None, time=None):
    """Rows whose distances the embedding is to keep; tests/markov/test_rows.py writes them out."""
    rows = model.diffusion_.rows(time or model.time_, X, filter=model.filter)
    return rows.array(np.arange(rows.n_points))


def median_ratio(model, time=None):
    return np.median(pdist(model.embedding_) / pdist(rows_of(model, time=time)))


# Cases with a closed form


@every_filter
@every_normalization
@every_affinity
def test_as_many_dimensions_as_there_are_keep_every_distance(affinity, normalization, filter):
    X, X_new = cloud(12, 3, seed=1), cloud(5, 3, seed=2)
    model = make(11, 3, filter=filter, normalization=normalization, tol=1e-13, **affinity).fit(X)
    old, new = rows_of(model), rows_of(model, X_new)
    atol = 1e-10 * pdist(old).max()
    assert_allclose(pdist(model.embedding_), pdist(old), rtol=0, atol=atol)
    Y = model.transform(X_new)
    assert_allclose(cdist(Y, model.embedding_), cdist(new, old), rtol=0, atol=atol)
    assert_allclose(pdist(Y), pdist(new), rtol=0, atol=atol)
    assert model.distortion_.log_L < 1e-8


@pytest.mark.parametrize("time", [1, 3, "auto"])
@every_normalization
def test_a_cloud_of_two_dimensions_is_embedded_without_distortion(normalization, time):
    # K = 1 + Z Zᵀ with column sums 0 has row sums n, so A = K / n, and less its trivial part
    # A^t = (Z Zᵀ / n)^t: row i is |(Zᵀ Z)^(t - 1/2) z_i| / n^t long, and so are differences.
    Z = cloud(30, 2, seed=1)
    Z -= Z.mean(axis=0)
    Z /= np.linalg.norm(Z, axis=1).max()
    K = 1 + Z @ Z.T
    model = make(2, time, affinity="precomputed", normalization=normalization, layout="linear").fit(
        K
    )
    assert model.time_ == (1 if time == "auto" else time)
    values, axes = np.linalg.eigh(Z.T @ Z)
    D = pdist(Z @ (axes * values ** (model.time_ - 0.5))) / 30**model.time_
    D *= np.sqrt(30) if normalization == "markov" else 1
    assert_allclose(pdist(model.embedding_), D, rtol=1e-9)
    assert_allclose(model.transform(K[:4]), model.embedding_[:4], rtol=0, atol=1e-12 * D.max())
    assert model.distortion_.log_L < 1e-9


def test_equidistant_points_come_to_stand_on_a_line_at_equal_steps():
    # On a line the outer two of n points are at least n - 1 times as far apart as some two: equal
    # steps are the best there is, L = n - 1.
    n = 7
    K = np.ones((n, n)) + np.eye(n)
    model = make(1, 1, affinity="precomputed", objective="worst", n_init=8).fit(K)
    assert model.distortion_.log_L == pytest.approx(np.log(n - 1), abs=1e-3)
    steps = np.diff(np.sort(model.embedding_.ravel()))
    assert_allclose(steps, steps.mean(), rtol=0.01)


@pytest.mark.filterwarnings("ignore:1 component.s. of the graph are bipartite")
@pytest.mark.parametrize("time", [600, 601])
def test_on_an_even_cycle_a_long_walk_knows_the_parity_alone(time):
    # cos(2πj/n)^t vanishes but for j = 0, the trivial direction, and n/2: λ = -1, ψ = ±1.
    model = make(1, time, affinity="precomputed", alpha=0).fit(cycle_graph(10))
    Y = model.embedding_.ravel()
    assert_allclose(Y * Y[0], np.tile([1.0, -1.0], 5), rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_stretched_torus_is_embedded_far_better_than_by_map_or_sketch(seed):
    """D: diffusion distance of the dense operator at ε = 1, t = 8, without the trivial part."""
    X, _ = hs.datasets.stretched_torus(100, rng=seed)
    common = {"affinity": "dense", "epsilon": 1.0, "random_state": 0}
    model = hs.HeatEmbedding(3, 8, filter="power", objective="worst", **common).fit(X)
    D = hs.diffusion_distance(model.diffusion_, 8, deflate=True)
    others = [
        hs.distortion(method(3, 8, **common).fit_transform(X), D).log_L
        for method in (hs.DiffusionMap, hs.HeatSketch)
    ]
    assert hs.distortion(model.embedding_, D).log_L < 0.5 * min(others)


# What it says of its distances


@every_filter
@every_normalization
def test_distortion_is_that_of_the_embedding_over_exact_distances(normalization, filter):
    X = cloud(50, 3, seed=1)
    how = {"affinity": "dense", "epsilon": 1.0, "layout": "linear"}
    model = make(2, 5, normalization=normalization, filter=filter, **how).fit(X)
    assert_distortion(model.distortion_, hs.distortion(model.embedding_, pdist(rows_of(model))))


def test_worst_pairs_are_rows_of_the_input_where_duplicates_count_as_one_point():
    X = cloud(40, 3, seed=1)
    X = np.vstack([X[:10], X])  # the copies come second: later points have smaller numbers
    model = make(2, 3, n_neighbors=6, layout="linear").fit(X)
    D = squareform(pdist(rows_of(model)))
    Y = model.embedding_
    for name in ("expansion", "contraction"):
        i, j = model.distortion_.worst_pairs[name][0]
        ratio = np.linalg.norm(Y[i] - Y[j]) / D[i, j]
        assert ratio == pytest.approx(getattr(model.distortion_, name), rel=1e-8)


# Sketches, where there are too many points for all eigenvectors


@pytest.fixture
def sketched(limits):
    """Take every set of more than 20 points for a large one, of which 8 eigenpairs are computed."""
    limits(all_eigenpairs=20, few_vertices=20, leading=8)


@pytest.mark.statistical
@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(("filter", "time"), [("power", 1), ("power", 4), ("heat", 2.5)])
def test_nothing_is_projected_with_as_many_dimensions_as_coordinates(filter, time):
    """8 pairs and r = 56 columns in 64 dimensions: r (|y_i - y_j|² - pairs) / rest is chi-square.

    Every distance is then in the bounds of a chi-square of 56 of all of it: 1,225 pairs, the bounds
    are passed by chance in fewer than 1e-6 of all seeds (union bound). Sees a factor of 4.
    """
    r, rows = 56, slice(50)
    model = make(64, time, n_sketch=r, filter=filter, affinity="dense", epsilon=1.0)
    model.fit(cloud(80, 3, seed=1))
    squares, expected = pdist(model.embedding_[rows]) ** 2, pdist(rows_of(model)[rows]) ** 2
    low, high = chi2.ppf([5e-7 / len(squares), 1 - 5e-7 / len(squares)], r) / r
    # In units of its median, and that of the sketch is within 4 % / √pairs of 1.
    assert low < (squares / expected).min()
    assert (squares / expected).max() < high


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(("filter", "time"), [("power", 2), ("power", "auto"), ("heat", "auto")])
def test_an_embedding_of_a_sketch_is_in_units_of_the_diffusion_distance(filter, time):
    # The median of 1,770 ratios that the sketch spreads by some 6 % each.
    X, _ = hs.datasets.stretched_torus(60, rng=0)
    how = {"affinity": "dense", "epsilon": 2.0, "layout": "linear"}
    model = make(2, time, filter=filter, **how).fit(X)
    assert median_ratio(model) == pytest.approx(1, abs=0.05)
    assert abs(median_ratio(model, time=2 * model.time_) - 1) > 0.1
    assert model.distortion_.within[1.5] > 0.55


@pytest.mark.parametrize("time", [1, 16])
@every_affinity
def test_its_distortion_is_measured_again_by_the_same_coordinates(affinity, time, limits):
    """64 eigenpairs and a sketch of 35, as of many points."""
    limits(all_eigenpairs=20, few_vertices=20)
    how = {"filter": "accumulated", "layout": "linear", **affinity}
    model = make(2, time, **how).fit(cloud(100, 3, seed=1))
    again = hs.metrics.diffusion_distortion(
        model.embedding_, model.diffusion_, time, filter="accumulated"
    )
    assert again.log_L == pytest.approx(model.distortion_.log_L, rel=1e-6)
    assert again.within == model.distortion_.within


def test_its_distortion_is_that_of_the_coordinates_it_returns():
    """In float32 near points of a line have few digits left, which the worst pair shows."""
    model = make(1, 4).fit(cloud(200, 3, seed=1).astype(np.float32))
    assert model.embedding_.dtype == np.float32
    D = hs.diffusion_distance(model.diffusion_, 4)
    found = hs.distortion(model.embedding_, D)
    assert model.distortion_.log_L == pytest.approx(found.log_L, rel=1e-9)


@pytest.mark.usefixtures("sketched")
def test_rows_that_are_not_learned_from_are_mapped_in_the_same_way(monkeypatch):
    X, _ = hs.datasets.stretched_torus(150, rng=0)
    monkeypatch.setitem(OBJECTIVES, "most", replace(OBJECTIVES["most"], rows=60))
    model = make(2, 4, affinity="dense", epsilon=1.0).fit(X)
    assert model.embedding_.shape == (150, 2)
    Y = model.transform(X)
    assert_allclose(Y, model.embedding_, rtol=0, atol=1e-12 * np.abs(Y).max())


# Little data, and data with little in it


@pytest.mark.filterwarnings("ignore:n_neighbors=")
@pytest.mark.parametrize("time", [3, "auto"])
@pytest.mark.parametrize("n", [2, 3, 5])
@every_affinity
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_few_points(affinity, n, time):
    X = cloud(n, 3, seed=1) / 2
    for k in sorted({1, n - 1}):
        model = make(k, time, layout="linear", **affinity).fit(X)
        assert model.embedding_.shape == (n, k)
        assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=1e-12)
    assert model.distortion_.log_L < 1e-9  # n points have n - 1 dimensions at most
    words = rf"n_components={n} but there are {n} distinct points; pass n_components <= {n - 1}\."
    with pytest.raises(ValueError, match=words):
        make(n, time, **affinity).fit(X)


@pytest.mark.parametrize("time", [3, "auto"])
def test_points_with_the_same_affinities_are_all_zero(time):
    model = make(2, time, affinity="precomputed")
    with pytest.warns(ScaleWarning, match="same affinities"):
        Y = model.fit_transform(np.ones((6, 6)))
    assert_array_equal(Y, np.zeros((6, 2)))
    assert_array_equal(model.transform(np.ones((3, 6))), np.zeros((3, 2)))
    assert model.distortion_ is model.quality_ is model.time_curve_ is None


# What must not matter, and what must


def test_what_leaves_distances_alone_leaves_the_distortion_alone():
    """Up to where the search ends: on the circle the maps that it finds are equally good."""
    X, _ = hs.datasets.circle(50, rng=0)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    same = X @ turn, X + 5.5, X[np.random.default_rng(0).permutation(50)]
    common = {"affinity": "dense", "epsilon": 0.25, "filter": "accumulated", "objective": "worst"}
    first, *others = (make(2, 8, **common).fit(points).distortion_ for points in (X, *same))
    for other in others:
        assert other.log_L == pytest.approx(first.log_L, rel=0.1)
        assert_allclose(list(other.quantiles.values()), list(first.quantiles.values()), atol=0.01)


def test_the_picture_is_the_same_for_every_seed():
    X = noisy_tree()
    first, other = (hs.HeatEmbedding(random_state=seed).fit_transform(X) for seed in (0, 1))
    assert_array_equal(other, first)
