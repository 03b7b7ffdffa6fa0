"""HeatEmbedding of graphs in several components: each as it is by itself, side by side."""

import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from heatsketch.layout.maps import side_by_side
from heatsketch.metrics import diffusion_distortion
from problems.clouds import cloud, rings

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::heatsketch.{name}Warning")
    for name in ("Disconnected", "Scale")
]
SIZES = (60, 40, 30)
LABELS = np.repeat(np.arange(len(SIZES)), SIZES)
every_form = pytest.mark.parametrize("normalization", ["markov", "bistochastic"])


def make(time=8, k=2, **changes):
    return hs.HeatEmbedding(
        k, time, **{"filter": "power", "n_neighbors": 6, "random_state": 0, "tol": 1e-13} | changes
    )


@cache
def fitted(normalization="markov"):
    return make(normalization=normalization).fit(rings(SIZES))


def cycle(n):
    """Return affinities along a cycle of n points."""
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.exp(-np.square(np.minimum(steps, n - steps) / 2.0)) * (
        np.minimum(steps, n - steps) < 4
    )


def assert_apart(Y, labels):
    """Check that the discs around components do not overlap."""
    centres = [Y[labels == c].mean(axis=0) for c in np.unique(labels)]
    radii = [np.linalg.norm(Y[labels == c] - m, axis=1).max() for c, m in enumerate(centres)]
    i, j = np.triu_indices(len(radii), 1)
    assert (pdist(centres) > 1.001 * np.add(*np.take(radii, [i, j]))).all()


# Distances


@every_form
def test_each_component_is_what_it_is_by_itself(normalization):
    # Of a circle two directions are left at large times, and the map is unique up to a rotation.
    X = rings(SIZES)
    model = make(512, normalization=normalization, layout="linear").fit(X)
    for c in range(len(SIZES)):
        alone = make(512, normalization=normalization, layout="linear").fit(X[c == LABELS])
        ratio = pdist(model.embedding_[c == LABELS]) / pdist(alone.embedding_)
        # A row of P^t over π is longer by √(1 / mass) in a component of this mass.
        mass = model.diffusion_.measure[c == LABELS].sum() if normalization == "markov" else 1.0
        assert_allclose(ratio, mass**-0.5, rtol=1e-3)


@every_form
def test_with_as_many_dimensions_as_there_are_all_distances_within_components_are_kept(
    normalization,
):
    X = np.vstack([cloud(8, 3, seed=c) + 1000 * c for c in range(3)])
    labels = np.repeat(np.arange(3), 8)
    model = make(2, 21, n_neighbors=4, normalization=normalization).fit(X)
    assert model.diagnostics_["components"] == 3
    D = hs.diffusion_distance(model.diffusion_, 2)
    within = pdist(labels[:, None]) == 0
    assert_allclose(pdist(model.embedding_)[within], D[within], rtol=1e-6)
    assert model.distortion_.log_L < 1e-5


def test_the_distortion_is_that_of_pairs_within_components():
    model = make(layout="linear").fit(rings(SIZES))
    D, within = hs.diffusion_distance(model.diffusion_, 8), pdist(LABELS[:, None]) == 0
    i, j = np.triu_indices(len(LABELS), 1)
    expected = hs.distortion(model.embedding_, D[within], pairs=(i[within], j[within]))
    assert model.distortion_.log_L == pytest.approx(expected.log_L, rel=1e-6)
    assert model.distortion_.n_pairs == within.sum()
    assert model.distortion_.looked_at == "all pairs within components"
    again = diffusion_distortion(model.embedding_, model.diffusion_, 8)
    assert again.log_L == pytest.approx(model.distortion_.log_L, rel=1e-9)


def test_where_not_all_pairs_are_measured_score_finds_what_fit_found(limits):
    limits(all_pairs=100)
    X = rings((60, 50))
    model = make(64, layout="linear").fit(X)
    assert "within components" in model.distortion_.looked_at
    again = diffusion_distortion(model.embedding_, model.diffusion_, 64)
    assert again.log_L == pytest.approx(model.distortion_.log_L, rel=1e-6)
    assert "all pairs" not in model.distortion_.looked_at
    assert_apart(model.embedding_, np.repeat([0, 1], [60, 50]))


# Layout


@pytest.mark.parametrize(
    ("normalization", "k", "layout"),
    [
        ("markov", 1, "linear"),
        ("bistochastic", 2, "linear"),
        ("markov", 3, "linear"),
        ("bistochastic", 2, "free"),
        ("markov", 3, "free"),
    ],
)
def test_discs_around_components_do_not_overlap(normalization, k, layout):
    how = {"k": k, "normalization": normalization, "layout": layout}
    how |= {"affinity": "precomputed"} if layout == "free" else {}  # else they have places
    X, first = rings(SIZES), rings(SIZES[:1])
    if layout == "free":
        X, first = block_diag(*map(cycle, SIZES)), cycle(SIZES[0])
    model = make(**how).fit(X)
    assert_apart(model.embedding_, LABELS)
    assert model.diagnostics_["layout"] == "components side by side"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = make(**how).fit(first)
    assert "layout" not in one.diagnostics_


@every_form
def test_new_points_are_mapped_as_old_ones(normalization):
    X, model = rings(SIZES), fitted(normalization)
    assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=1e-9)
    Y = model.transform(X + 0.01)  # near them
    nearest = cdist(Y, model.embedding_).argmin(axis=1)
    assert_array_equal(LABELS[nearest], LABELS)


def test_points_that_stand_alone_are_dots_beside_the_others():
    K = block_diag(
        np.exp(-(cdist(rings((20,)), rings((20,))) ** 2)), 1.0, 1.0, [[1.0, 0.5], [0.5, 1]]
    )
    labels = np.repeat([0, 1, 2, 3], [20, 1, 1, 2])
    model = make(affinity="precomputed", layout="linear").fit(K)
    assert_apart(model.embedding_, labels)
    distances = hs.diffusion_distance(model.diffusion_, 8, pairs=([22], [23]))
    scale = model.distortion_.median
    assert_allclose(pdist(model.embedding_[22:]), scale * distances, rtol=0.5)


@every_form
def test_components_in_which_all_points_are_equal_are_dots(normalization):
    K = block_diag(np.ones((3, 3)), np.ones((4, 4)))
    Y = make(affinity="precomputed", normalization=normalization).fit_transform(K)
    assert max(pdist(Y[:3]).max(), pdist(Y[3:]).max()) < 1e-12
    assert np.linalg.norm(Y[0] - Y[3]) > 0.1


def test_time_is_chosen_by_distances_within_components():
    model = make("auto").fit(rings(SIZES))
    alone = make("auto").fit(rings(SIZES)[LABELS == 0])
    assert alone.time_ / 4 <= model.time_ <= 4 * alone.time_
    inside = [np.ptp(model.embedding_[c == LABELS], axis=0).min() for c in range(3)]
    assert min(inside) > 1e-3 * np.ptp(model.embedding_)  # none is a dot


def test_the_mean_of_the_shifts_is_zero():
    Y, parts = np.random.default_rng(0).normal(size=(30, 1)), np.split(np.arange(30), [12, 20])
    measure = np.random.default_rng(1).random(30)
    assert_allclose(measure @ side_by_side(Y, parts, measure), 0, atol=1e-12)
