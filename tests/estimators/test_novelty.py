"""Novelty: its definition written out, the rates of points of the same law, and warnings."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from heatsketch.classical import LaplacianEigenmap
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.new_points import DenseKernel

NEAR = {
    "sketch": hs.HeatSketch(4, random_state=0),
    "embedding": hs.HeatEmbedding(2, time=8, n_init=1, random_state=0),
    "map": hs.DiffusionMap(2),
    "dense": hs.DiffusionMap(2, affinity="dense"),
    "dense, one bandwidth": hs.DiffusionMap(2, affinity="dense", epsilon="ksum"),
    "radius": hs.DiffusionMap(2, affinity="radius", epsilon="ksum"),
    "eigenmap": LaplacianEigenmap(2),
    "eigenmap, binary": LaplacianEigenmap(2, weights="binary"),
    "eigenmap, radius": LaplacianEigenmap(2, radius=20.0),
}
every_method = pytest.mark.parametrize("model", NEAR.values(), ids=NEAR)


def tree(n, rng):
    """Draw points around branches that leave each other, in 20 dimensions."""
    draw = np.random.default_rng(0)
    ends = [np.zeros(20)]
    starts, ways = [], []
    for _ in range(6):
        starts.append(ends[draw.integers(len(ends))])
        ways.append(draw.normal(size=20) * 5)
        ends.append(starts[-1] + ways[-1])
    branch, way = rng.integers(6, size=n), rng.uniform(size=(n, 1))
    return np.array(starts)[branch] + way * np.array(ways)[branch] + rng.normal(size=(n, 20))


def log_affinity(x, others, k):
    """Written out, for one point: Σ_j exp(-d_j²/s_j²) over the k nearest distinct others."""
    others = np.unique(others, axis=0)
    D = np.sort(cdist(others, others), axis=1)
    d = cdist([x], others)[0]
    near = np.argsort(d)[:k]
    return logsumexp(-((d[near] / D[near, k // 2]) ** 2))


def fitted(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


# The definition


@pytest.mark.parametrize("copies", [0, 7])
@every_method
def test_it_is_the_share_of_points_left_out_that_are_less_new(model, copies):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(50, 3)), [[9.0, 9.0, 9.0]]])
    X = np.vstack([X, X[:copies]])
    new = np.vstack([rng.normal(size=(40, 3)) * 1.5, X[:3], [[1e3, 0, 0]]])
    model = fitted(model, X)
    left_out = np.array([log_affinity(X[i], np.delete(X, i, axis=0), 15) for i in range(len(X))])
    own = np.array([log_affinity(x, X, 15) for x in new])
    expected = (left_out > own[:, None] + 1e-9).mean(axis=1)
    assert_allclose(model.novelty(new), expected, rtol=0, atol=1e-12)
    assert model.novelty(new)[-1] == 1


def test_of_an_affinity_it_compares_sums():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), 2 * rng.normal(size=(30, 2))
    K, rows = (np.exp(-cdist(Z, X, "sqeuclidean")) for Z in (X, new))
    expected = ((K.sum(axis=1) - 1) > rows.sum(axis=1)[:, None]).mean(axis=1)
    model = hs.HeatSketch(4, affinity="precomputed").fit(K)
    assert_allclose(model.novelty(rows), expected, rtol=0, atol=1e-12)
    assert_allclose(model.novelty(K), (K.sum(axis=1) - 1 > K.sum(axis=1)[:, None]).mean(axis=1))
    with pytest.warns(hs.ScaleWarning, match=r"1 new point.* hardly any affinity"):
        model.transform(np.vstack([rows, 1e-9 * rows[:1]]))


def test_of_a_mixture_it_compares_densities():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), 2 * rng.normal(size=(30, 2))
    kernel = hs.MixtureKernel([1.0], [[0.0, 0.0]], [np.eye(2)], 0.5)
    low = Diffusion.from_mixture(X, kernel)
    model = hs.HeatSketch(4, 2, affinity="precomputed", random_state=0).fit(low)
    radius, radii = np.linalg.norm(new, axis=1), np.linalg.norm(X, axis=1)
    assert_allclose(model.novelty(new), (radii < radius[:, None]).mean(axis=1), atol=1e-12)
    with pytest.warns(hs.ScaleWarning, match=r"1 new point\(s\) \(rows 30\) have hardly any"):
        model.transform(np.vstack([new, [[30.0, 0.0]]]))


# What must not matter


def test_it_depends_on_the_point_alone_and_not_on_units_order_or_orientation():
    rng = np.random.default_rng(2)
    X, new = tree(300, rng), tree(40, rng) + rng.normal(size=(40, 20))
    expected = hs.DiffusionMap(2).fit(X).novelty(new)
    assert 0 < expected.min() < 0.5 < expected.max()
    order = rng.permutation(300)
    Q = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    model = hs.DiffusionMap(2).fit(X[order])
    assert_array_equal(model.novelty(new), expected)
    assert_array_equal(model.novelty(new[7:8]), expected[7:8])
    for factor in (2.0**-40, 2.0**150):
        assert_array_equal(hs.DiffusionMap(2).fit(X * factor).novelty(new * factor), expected)
    assert_array_equal(hs.DiffusionMap(2).fit(X @ Q).novelty(new @ Q), expected)


def test_neighbours_may_be_given():
    rng = np.random.default_rng(3)
    X, new = tree(200, rng), tree(40, rng)
    expected = hs.HeatSketch(4).fit(X).novelty(new)
    transformer = KNeighborsTransformer(n_neighbors=15)
    assert_array_equal(hs.HeatSketch(4, neighbors=transformer).fit(X).novelty(new), expected)
    graph = transformer.fit_transform(X)
    with pytest.raises(ValueError, match="no distances to new points"):
        hs.HeatSketch(4, neighbors=graph).fit(X).novelty(new)
    with pytest.raises(ValueError, match="20 features"):
        hs.HeatSketch(4).fit(X).novelty(new[:, :3])


# Rates


def assert_nominal(rates, level):
    """Check rates (r,) of independent trials; false alarm 1e-6, it detects a rate twice the level.

    Student's t of 19 degrees of freedom is beyond 7.1 with probability 1e-6. Few points have a bias
    of a few per cent of the level, for which a fifth is allowed.
    """
    assert len(rates) == 20
    error = np.std(rates, ddof=1) / np.sqrt(20)
    assert abs(np.mean(rates) - level) < 7.1 * error + 0.2 * level
    assert 7.1 * error < 0.6 * level


def spread_out(n, rng):
    """Draw points of three clusters, of scales 1, 0.1 and 0.01."""
    scale = 0.1 ** rng.integers(3, size=(n, 1))
    return scale * rng.normal(size=(n, 2)) + 4 * np.log10(scale)


LAWS = {
    "normal": lambda n, rng: rng.normal(size=(n, 2)),
    "normal in ten dimensions": lambda n, rng: rng.normal(size=(n, 10)),
    "exponential": lambda n, rng: rng.exponential(size=(n, 3)),
    "three scales": spread_out,
    "rounded": lambda n, rng: np.round(3 * rng.normal(size=(n, 2))),
}


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_points_of_the_same_law_have_the_nominal_rate(law):
    rates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = law(300, rng)
        novelty = DenseKernel(points=X, n_neighbors=15, kernel=hs.Kernel(X, 1.0)).novelty
        new = law(500, rng)
        rates.append([(novelty(new) > 1 - level).mean() for level in (0.1, 0.5)])
    assert_nominal(np.array(rates)[:, 0], 0.1)
    assert_nominal(np.array(rates)[:, 1], 0.5)


# Warnings


@every_method
def test_far_points_are_warned_of_and_others_are_not(model):
    rng = np.random.default_rng(5)
    model, new = fitted(model, tree(300, rng)), tree(300, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Y = model.transform(new)
    with pytest.warns(hs.ScaleWarning, match=r"300 new point\(s\)") as found:
        far = model.transform(new + 200)
    assert len([w for w in found if issubclass(w.category, hs.ScaleWarning)]) == 1
    assert (far.std(axis=0) < Y.std(axis=0)).all()
    assert (model.novelty(new + 200) == 1).all()
    with pytest.warns(hs.ScaleWarning, match=r"1 new point\(s\) \(rows 2\)"):
        model.transform(np.vstack([new[:2], new[2:3] + 200]))
