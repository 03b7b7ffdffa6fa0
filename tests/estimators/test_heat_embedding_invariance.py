"""What must not matter to a heat embedding, and what must."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import heatsketch as hs
from problems.clouds import cloud, noisy_tree

LEAST_CORRELATION = 0.97  # of the distances in two pictures of the same points


def make(n_components=2, time=4, **changes):
    return hs.HeatEmbedding(n_components, time, **{"random_state": 0} | changes)


# What must not matter, and what must


@pytest.mark.parametrize("affinity", ["knn", "dense"])
def test_units_do_not_matter(affinity):
    X = cloud(25, 3, seed=1)
    first, second = (
        make(time="auto", affinity=affinity, epsilon=epsilon).fit(X * scale)
        for scale, epsilon in ((1, 0.5), (4, 8.0))
    )
    assert_array_equal(first.embedding_, second.embedding_)
    assert first.time_ == second.time_


@pytest.mark.parametrize("change", ["rotation", "shift", "order", "seed"])
def test_what_leaves_distances_alone_leaves_the_distortion_alone(change):
    """Up to where the search ends: on the circle the maps that it finds are equally good."""
    X, _ = hs.datasets.circle(50, rng=0)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    same = {
        "rotation": X @ turn,
        "shift": X + 5.5,
        "order": X[np.random.default_rng(0).permutation(50)],
        "seed": X,
    }[change]
    common = {"affinity": "dense", "epsilon": 0.25, "objective": "worst"}
    first = make(2, 8, **common).fit(X).distortion_
    second = make(2, 8, random_state=int(change == "seed"), **common).fit(same).distortion_
    assert second.log_L == pytest.approx(first.log_L, rel=0.1)
    assert_allclose(list(second.quantiles.values()), list(first.quantiles.values()), atol=0.01)


@pytest.mark.parametrize("source", [int, np.random.default_rng, np.random.RandomState])
def test_a_seed_gives_the_same_embedding(source):
    X = cloud(16, 3, seed=1)
    first, again = (make(time="auto", random_state=source(3)).fit(X) for _ in range(2))
    assert_array_equal(first.embedding_, again.embedding_)
    assert_array_equal(first.time_curve_.directions, again.time_curve_.directions)


PICTURES = {
    "digits": lambda: hs.datasets.digits()[0][:300],
    "tree": noisy_tree,
    "roll": lambda: hs.datasets.swiss_roll(300, rng=0)[0],
}


@pytest.mark.parametrize(
    "name", ["tree", *(pytest.param(name, marks=pytest.mark.slow) for name in ("digits", "roll"))]
)
def test_the_picture_is_the_same_for_every_seed_and_order_of_rows(name):
    X = PICTURES[name]()
    first = make(2, "auto").fit(X)
    assert_array_equal(make(2, "auto", random_state=1).fit_transform(X), first.embedding_)
    order = np.random.default_rng(1).permutation(len(X))
    other = make(2, "auto", random_state=2).fit(X[order])
    assert other.time_ == first.time_
    same = np.empty_like(first.embedding_)
    same[order] = other.embedding_
    assert spearmanr(pdist(same), pdist(first.embedding_))[0] >= LEAST_CORRELATION


@pytest.mark.parametrize(("name", "time"), [("tree", 8), ("roll", 32)])
def test_most_keeps_more_pairs_and_worst_a_smaller_log_L(name, time):
    X = PICTURES[name]()
    most, worst = (make(2, time, objective=which).fit(X) for which in ("most", "worst"))
    assert most.distortion_.within[1.5] >= worst.distortion_.within[1.5] - 0.03
    assert worst.distortion_.log_L <= most.distortion_.log_L + 1e-9


def test_single_precision_in_single_precision_out():
    X, _ = hs.datasets.circle(60, equispaced=True)
    common = {"affinity": "dense", "epsilon": 0.25, "filter": "power"}
    single, double = make(2, 8, **common).fit(X.astype(np.float32)), make(2, 8, **common).fit(X)
    new = X[:5] * np.float32(0.9)
    assert single.embedding_.dtype == single.transform(new.astype(np.float32)).dtype == np.float32
    assert double.embedding_.dtype == double.transform(new).dtype == np.float64
    # What is learned in single precision, from the same points; axes may be turned.
    assert_allclose(
        pdist(single.embedding_),
        pdist(double.embedding_),
        rtol=0,
        atol=1e-3 * double.embedding_.max(),
    )
