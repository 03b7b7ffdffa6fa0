"""The order of the rows of a table says nothing: ties, starts and samples go by content."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.stats import kstest

import heatsketch as hs
from heatsketch.classical import Isomap, LaplacianEigenmap
from heatsketch.neighbors import NeighborIndex, in_metric
from heatsketch.uncertainty import sample_discrepancy
from problems.clouds import cloud, even_torus

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def one_hot(rng, n=200, categories=50):
    return np.eye(categories)[rng.integers(categories, size=n)]


def counts(rng, n=300):
    return rng.poisson(0.3, (n, 20)).astype(float)


def grid(side=16):
    return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * 2), -1).reshape(-1, 2)


def texts(rng, n=300, words=3):
    """Texts of a few words each, whose frequencies are those of Zipf's law, as counts (CSR)."""
    p = 1 / np.arange(1, 301)
    drawn = rng.choice(300, (n, words), p=p / p.sum())
    entries = np.ones(drawn.size), (np.repeat(np.arange(n), words), drawn.ravel())
    return sparse.csr_matrix(entries, shape=(n, 300))


def clusters(rng):
    return np.repeat(np.eye(3) * 100, 60, axis=0) + rng.normal(size=(180, 3)).round(1)


DATA = {
    "one-hot": one_hot,
    "counts": counts,
    "grid": lambda rng: grid(),
    "texts": texts,
    "clusters": clusters,
    "digits": lambda rng: hs.datasets.digits()[0][:200],
}
METHODS = {
    "sketch": hs.HeatSketch(random_state=0),
    "variable": hs.HeatSketch(affinity="variable", n_neighbors=12, random_state=0),
    "radius": hs.HeatSketch(affinity="radius", epsilon="median", random_state=0),
    "dense": hs.HeatSketch(affinity="dense", epsilon="ksum", random_state=0),
    "map": hs.DiffusionMap(2, time="gap"),
    "dense map": hs.DiffusionMap(2, affinity="dense", epsilon="median"),
    "embedding": hs.HeatEmbedding(time=8, n_init=1, random_state=0),
    "isomap": Isomap(2),
    "eigenmap": LaplacianEigenmap(2),
}


def shuffled(X, seed=1):
    order = np.random.default_rng(seed).permutation(X.shape[0])
    return order, X[order]


@pytest.mark.parametrize(
    ("name", "method"),
    # The embedding, which is learned from what the map has, of one table with ties and one without.
    [(n, m) for n in DATA for m in METHODS if m != "embedding" or n in ("one-hot", "clusters")],
)
def test_shuffled_rows_get_the_same_coordinates(name, method):
    X, estimator = DATA[name](np.random.default_rng(0)), METHODS[method]
    order, Z = shuffled(X)
    ids = np.array([f"p{i}" for i in range(X.shape[0])])
    draws = not isinstance(estimator, Isomap | LaplacianEigenmap)
    first, second = ({"ids": i} if draws else {} for i in (ids, ids[order]))
    try:
        Y = estimator.fit(X, **first).embedding_
    except ValueError as error:  # such as too many components
        with pytest.raises(ValueError, match=str(error)[:20]):
            estimator.fit(Z, **second)
        return
    W = estimator.fit(Z, **second).embedding_
    assert np.abs(W - Y[order]).max() <= 1e-9 * np.abs(Y).max()


@pytest.mark.slow
def test_approximate_neighbours_do_not_depend_on_the_order_of_rows(limits):
    limits(exact_points=2_000)
    X = np.random.default_rng(0).normal(size=(3_000, 12))
    assert NeighborIndex(X).approximate
    order, Z = shuffled(X)
    sketch = hs.HeatSketch(8, random_state=0)
    Y = sketch.fit(X, ids=np.arange(3_000)).embedding_
    W = sketch.fit(Z, ids=order).embedding_
    assert np.abs(W - Y[order]).max() <= 1e-9 * np.abs(Y).max()


def test_a_sample_is_of_the_same_points_in_any_order():
    X = counts(np.random.default_rng(0))
    Z = shuffled(X)[1]
    for affinity in ("knn", "dense", "radius", "variable"):
        epsilon = "median" if affinity == "radius" else "self-tuning"
        d, e = (hs.diffusion(points, affinity=affinity, epsilon=epsilon) for points in (X, Z))
        assert_array_equal(X[d.first_points[d.sample(20)]], Z[e.first_points[e.sample(20)]])


def test_one_warning_where_most_neighbours_are_ties():
    rng = np.random.default_rng(0)
    with pytest.warns(hs.ScaleWarning, match="equally far") as caught:
        hs.HeatSketch(random_state=0).fit(one_hot(rng))
    assert len([w for w in caught if "equally far" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.HeatSketch(random_state=0).fit(cloud(200, 3))
        hs.HeatSketch(random_state=0).fit(in_metric(cloud(200, 3), "cosine"))
        # Four neighbours at distance 1 are all that there are at this distance.
        hs.HeatSketch(n_neighbors=4, random_state=0).fit(even_torus(12, 12).round(12))


@pytest.mark.statistical
@pytest.mark.parametrize("draw", [one_hot, counts, texts], ids=["one-hot", "counts", "texts"])
def test_p_values_of_one_law_with_ties_are_uniform(draw):
    """False alarm 1e-6. Ties by the place of a row give p <= .05 in 97 % of draws (one-hot)."""
    p = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 7])
        X = draw(rng, n=60)
        found = sample_discrepancy(
            X[:30], X[30:], time=4, n_components=16, n_permutations=39, rng=rng
        )
        p.append(found.p_value)
    # Discrete: p is at least u, so that the left tail is at most that of uniform numbers.
    assert kstest(p, "uniform", alternative="greater").pvalue > 1e-6
    assert np.mean(np.array(p) <= 0.05) < 0.3


def test_the_dimension_of_variable_is_at_most_the_number_of_features():
    """Points nearly equally far from each other have any dimension."""
    X = one_hot(np.random.default_rng(0), 600, 80) + 1e-4 * cloud(600, 80)
    X = X[np.unique(X.argmax(axis=1), return_index=True)[1]]
    with pytest.warns(hs.ScaleWarning, match="but X has 80 features: the distances hardly differ"):
        d = hs.diffusion(X, affinity="variable")
    assert d.diagnostics["dimension"] == 80
    # Uniform points are not cut.
    line = hs.diffusion(np.random.default_rng(0).random((300, 1)), affinity="variable")
    assert line.diagnostics["dimension"] != 1
