"""HeatEmbedding with free points: which fits are free, what they keep, and new points."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag, circulant
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from heatsketch.core.blocks import largest_of_rows
from heatsketch.layout.maps import locations, step_graph
from problems.checks import same_for_any_threads
from problems.clouds import cloud, noisy_tree

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def groups(n=240, seed=0):
    """Four groups in ten dimensions, equally far from each other, of unequal tightness."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 4
    return 3 * np.eye(4, 10)[group] + rng.normal(size=(n, 10)) * (0.1 + 0.2 * group)[:, None]


def make(**changes):
    return hs.HeatEmbedding(**{"time": 8, "n_neighbors": 8} | changes)


def is_free(model):
    return model.quality_.is_free


# Which fits are free


@pytest.mark.parametrize(
    ("changes", "free_one"),
    [
        ({}, True),
        ({"n_components": 3}, True),
        ({"n_components": 1}, False),
        ({"n_components": 4}, False),
        ({"objective": "worst"}, False),
        ({"layout": "linear"}, False),
        ({"layout": "free"}, True),
    ],
)
def test_two_and_three_dimensions_are_free(changes, free_one):
    X = groups()
    model = make(**changes).fit(X)
    assert is_free(model) == free_one
    if changes.get("layout") != "free" and not free_one:
        linear = make(**changes | {"layout": "linear"}).fit(X)
        assert_array_equal(model.embedding_, linear.embedding_)
    quality = model.quality_._replace(neighbors=1.0, distances=1.0, within=1.0)
    assert ("compared by eye" in quality.describe()) == (not free_one)
    assert math.isnan(model.distortion_.held_out_log_L) or not free_one


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "free", "n_components": 1}, r"n_components=1.*layout='linear'"),
        ({"layout": "free", "objective": "worst"}, r"objective='worst'.*layout='linear'"),
        ({"layout": "fre"}, "layout"),
        ({"neighbor_weight": -1}, "neighbor_weight"),
        ({"spread": 1.5}, "spread"),
        ({"path_weight": -0.1}, "path_weight"),
        ({"path_weight": 1.5}, "path_weight"),
    ],
)
def test_what_is_not_possible_is_said(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(groups())


def test_a_spread_is_a_number_or_auto():
    with pytest.raises(TypeError, match=r"spread='none'.*'auto'"):
        make(spread="none").fit(groups())


def test_an_operator_without_entries_stays_linear():
    K = np.exp(-cdist(groups(), groups(), "sqeuclidean"))
    operator = sparse.linalg.aslinearoperator(K)
    assert not make(affinity="precomputed").fit(operator)._has_free_layout
    assert make(affinity="precomputed").fit(hs.Dense(K))._has_free_layout
    with pytest.raises(ValueError, match=r"layout='free' .* operator .* layout='linear'"):
        make(affinity="precomputed", layout="free").fit(operator)


# What does not matter


@pytest.mark.parametrize("X", [groups(), noisy_tree()], ids=["groups", "tree"])
def test_neither_seed_nor_row_order_matter(X):
    model = hs.HeatEmbedding(random_state=0).fit(X)
    assert is_free(model)
    Y = model.embedding_
    assert_array_equal(hs.HeatEmbedding(random_state=1).fit_transform(X), Y)
    order = np.random.default_rng(0).permutation(len(X))
    other = hs.HeatEmbedding().fit(X[order])
    assert hs.metrics.stability([other.embedding_, Y[order]]) > 1 - 1e-9
    some = X[:20] + 0.01
    atol = 1e-6 * np.ptp(Y)
    assert_allclose(other.transform(some), model.transform(some), rtol=0, atol=atol)


def test_threads_do_not_change_a_bit():
    X = cloud(700, 3)
    same_for_any_threads(lambda: make().fit_transform(X))


def test_equal_points_share_a_place():
    X = groups()
    Y = make().fit_transform(np.vstack([X, X[:30], X[:10]]))
    assert_array_equal(Y[240:270], Y[:30])
    assert_array_equal(Y[270:], Y[:10])


@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
def test_the_unit_is_about_the_diffusion_distance(normalization):
    model = make(normalization=normalization).fit(groups(150))
    D = hs.diffusion_distance(model.diffusion_, 8, filter="accumulated")
    assert np.median(pdist(model.embedding_) / D) == pytest.approx(1, abs=0.25)  # of a sketch


# What it keeps


def test_neighbours_and_tight_groups_are_kept_better_than_by_a_line():
    X = groups(600)
    model, linear = (make(layout=layout).fit(X) for layout in ("free", "linear"))
    assert model.quality_.neighbors > linear.quality_.neighbors + 0.01
    assert model.quality_.crowding < linear.quality_.crowding

    def share(Y):  # of the tightest group in the frame, by its standard deviation
        return np.std(Y[::4], axis=0).mean() / np.std(Y, axis=0).mean()

    assert share(model.embedding_) > 1.5 * share(linear.embedding_)


def test_spread_and_weight_lead_from_distances_to_order():
    X = groups()
    D = np.log(pdist(X))
    logs = [np.log(pdist(make(spread=spread).fit_transform(X))) for spread in (0.0, 1.0)]
    kept = [np.corrcoef(one, D)[0, 1] for one in logs]
    assert kept[0] > kept[1] + 0.03
    assert np.std(logs[0]) > 1.2 * np.std(logs[1])
    alone, both = (make(neighbor_weight=a).fit(X) for a in (0.0, 1.0))
    assert both.quality_.neighbors > alone.quality_.neighbors


# Components


def test_components_are_equally_dense():
    """Where only affinities are given; with points, gaps between components mean something."""
    sizes = (160, 90, 40, 5)
    K = block_diag(*[circulant([1.0, 0.8, 0.4, *np.zeros(n - 5), 0.4, 0.8]) for n in sizes])
    model = make(affinity="precomputed").fit(K)
    assert model.diagnostics_["components"] == 4
    parts = np.split(model.embedding_, np.cumsum(sizes)[:-1])
    centres = [part.mean(axis=0) for part in parts]
    i, j = step_graph(model.diffusion_).nonzero()
    first = model.diffusion_.first_points
    ends = first[i[i != j]], first[j[i != j]]
    component = np.searchsorted(np.cumsum(sizes), ends[0], side="right")
    lengths = np.linalg.norm(np.subtract(*model.embedding_[list(ends)]), axis=1)
    edges = [np.median(lengths[component == label]) for label in range(4)]
    assert_allclose(edges, edges[0], rtol=1e-9)
    radii = [np.linalg.norm(part - m, axis=1).max() for part, m in zip(parts, centres, strict=True)]
    i, j = np.triu_indices(4, 1)
    assert (pdist(centres) > np.add(*np.take(radii, [i, j]))).all()
    assert_array_equal(model.transform(K), model.embedding_)


@pytest.mark.parametrize("n", range(3, 10))
def test_tiny_data_keep_their_scaling(n):
    """Of lengths along a complete graph, which are those of the plane; points do not move."""
    X = cloud(n, 2)
    with pytest.warns(UserWarning, match="n_neighbors"):
        model = hs.HeatEmbedding().fit(X)
    ratios = pdist(model.embedding_) / pdist(X)
    assert_allclose(ratios, np.median(ratios), rtol=0.02)


def test_all_points_equal_but_one_are_two_places():
    X = np.vstack([np.ones((30, 3)), 2 * np.ones((1, 3))])
    Y = make(affinity="dense", epsilon=1.0).fit_transform(X)
    assert_array_equal(Y[:30], Y[:1].repeat(30, axis=0))
    assert np.linalg.norm(Y[30] - Y[0]) > 0.01


# New points

X, X_NEW = groups(), groups(40, seed=5)
EVERY = {
    "knn": {},
    "fixed": {"epsilon": "ksum"},
    "one neighbour": {"n_neighbors": 1},
    "many neighbours": {"n_neighbors": 60},
    "variable": {"affinity": "variable"},
    "dense": {"affinity": "dense", "epsilon": 2.0},
    "dense self-tuning": {"affinity": "dense"},
    "radius": {"affinity": "radius", "epsilon": 2.0},
    "cosine": {"metric": "cosine"},
    "manhattan": {"metric": "manhattan"},
    "callable": {"metric": lambda x, y: np.abs(x - y).max()},
    "dense manhattan": {"metric": "manhattan", "affinity": "dense"},
    "symmetric": {"normalization": "symmetric"},
    "bistochastic": {"normalization": "bistochastic", "affinity": "dense", "epsilon": 2.0},
    "solid": {"n_components": 3},
}
every_way = pytest.mark.parametrize("how", EVERY.values(), ids=EVERY)


@every_way
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_training_points_get_their_coordinates_exactly(how, dtype):
    points = np.vstack([X, X[:7]]).astype(dtype)
    model = make(**how).fit(points)
    assert model._has_free_layout
    Y = model.transform(points)
    assert Y.dtype == dtype
    assert_array_equal(Y, model.embedding_)
    assert_array_equal(model.transform(points[5:6]), model.embedding_[5:6])


@every_way
def test_a_new_point_depends_on_itself_alone_and_stays_among_its_neighbours(how):
    model = make(**how).fit(X)
    Y = model.transform(X_NEW)
    alone = np.vstack([model.transform(x[None]) for x in X_NEW])
    atol = 1e-9 * np.ptp(Y) if "dense" in how.values() else 0  # BLAS rounds by the shape of blocks
    assert_allclose(alone, Y, rtol=0, atol=atol)
    weights = model.diffusion_.near(X_NEW).attraction()
    for y, row in zip(Y, weights, strict=True):
        own = model._map.places[row.indices]
        assert (y >= own.min(axis=0) - 1e-9).all()
        assert (y <= own.max(axis=0) + 1e-9).all()


def test_new_points_are_locations_of_the_15_nearest_by_affinity():
    model = make(affinity="dense", epsilon=2.0).fit(X)
    D = cdist(X_NEW, X)
    u = D**2 / 2.0
    weights = largest_of_rows(np.exp(-u) * (1 + 0.01 / u), 15)
    order = model.diffusion_.vertex
    placed = locations(model.embedding_, weights, model._map.s)
    assert_allclose(placed, model.transform(X_NEW), rtol=0, atol=1e-9)
    assert_array_equal(model._map.places[order], model.embedding_)


def test_places_tend_to_that_of_a_training_point():
    model = make().fit(X)
    step = np.random.default_rng(0).normal(size=10)
    apart = [
        np.linalg.norm(model.transform(X[:1] + gap * step) - model.embedding_[:1])
        for gap in (1e-3, 1e-6)
    ]
    assert max(apart) <= 1e-3 * np.ptp(model.embedding_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loops", [True, False])
def test_rows_of_affinities_are_recognised(form, loops):
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    K[K < 1e-4] = 0
    if not loops:
        np.fill_diagonal(K, 0)
    model = make(affinity="precomputed").fit(form(K))
    assert model._has_free_layout
    assert_array_equal(model.transform(form(K)), model.embedding_)
    new = 0.5 * (K[:20] + K[4:24])
    Y = model.transform(form(new))
    for row, y in zip(new, Y, strict=True):
        weights = largest_of_rows(row[None], 15)
        assert_allclose(locations(model.embedding_, weights, model._map.s)[0], y, atol=1e-9)


def test_a_mixture_places_its_points():
    points = cloud(80, 2)
    kernel = hs.MixtureKernel([0.5, 0.5], [[0.0, 0], [1, 1]], [1.0, 1.0], 0.5)
    d = hs.Diffusion.from_mixture(points, kernel, normalization="markov")
    model = make(affinity="precomputed").fit(d)
    assert model._has_free_layout
    assert_array_equal(model.transform(points), model.embedding_)


def test_far_points_are_warned_of_and_get_the_place_of_the_nearest():
    model = make(affinity="radius", epsilon=2.0).fit(X)
    far = X[:1] + 1e3
    with pytest.warns(UserWarning, match="too far"):
        Y = model.transform(far)
    nearest = cdist(far, X).argmin()
    assert_array_equal(Y[0], model.embedding_[nearest])
    assert model.novelty(far)[0] == 1


def test_a_saved_model_places_points_alike(tmp_path):
    model = make().fit(X)
    hs.save_model(model, tmp_path / "free.model")
    again = hs.load_model(tmp_path / "free.model")
    assert_array_equal(again.transform(X_NEW), model.transform(X_NEW))
    assert_array_equal(again.embedding_, model.embedding_)


def test_a_model_that_is_fitted_again_forgets_its_layout():
    model = make().fit(X)
    model.set_params(layout="linear").fit(X)
    assert_array_equal(model.embedding_, make(layout="linear").fit_transform(X))
    assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=1e-9)


def test_an_interval_of_the_data_is_that_of_free_pictures(short_search):
    model = make().fit(X)

    def apart(Y):
        return np.linalg.norm(Y[0] - Y[1]) / np.linalg.norm(Y[0] - Y[2])

    found = hs.data_interval(model, X[:3], apart, n_resamples=20, rng=0)
    Y = model.embedding_
    assert found.value == pytest.approx(apart(Y), rel=0.1)  # the start is learned anew
    assert found.low < found.value < found.high


def test_the_explained_variance_is_that_of_the_span_of_the_picture():
    """Of the columns √π Y, by the definition with an orthonormal basis of them."""
    model = make(filter="power", affinity="dense", epsilon=2.0).fit(X)
    A = model.diffusion_.deflated
    f = np.linalg.matrix_power(A @ np.eye(len(X)), 8)
    columns = model.diffusion_.root[:, None] * model._map.places
    columns -= np.outer(model.diffusion_.root, model.diffusion_.root @ columns)
    basis = np.linalg.qr(columns)[0]
    expected = np.linalg.norm(basis.T @ f) ** 2 / np.linalg.norm(f) ** 2
    found = model.explained_diffusion_variance()
    assert found.ratio.sum() == pytest.approx(expected, rel=1e-6)


# The step, and what is said


def test_entries_of_a_dense_step_are_the_64_largest_and_their_ties():
    d = hs.diffusion(X, affinity="dense", epsilon=2.0)
    A, M = d.operator @ np.eye(len(X)), step_graph(d).toarray()
    least = np.sort(A, axis=1)[:, -64]
    assert_allclose(M, np.where(least[:, None] <= A, A, 0), rtol=1e-12)
    ties = largest_of_rows(np.array([[1.0, 2.0, 1.0, 1.0]]), 2)
    assert ties.nnz == 4


def test_a_report_of_a_free_layout_has_one_time():
    model = make().fit(X)
    page = hs.report(model)
    assert "order of distances" in page.html
    assert len(page.facts["frames"]["times"]) == 1
    with pytest.raises(ValueError, match=r"times=.* free layout.*layout='linear'"):
        hs.report(model, times=[4, 8])
