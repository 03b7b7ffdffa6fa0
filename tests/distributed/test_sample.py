"""What a sample costs: the points of its halves, apart from the random columns of a sketch."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import heatsketch as hs
from heatsketch.distributed import _without_columns, embed, half_discrepancy

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
@pytest.mark.parametrize("times", [1, 3])
def test_random_columns_add_nothing_to_the_share_of_the_points(kind, times):
    """Two factors with known distances, times random columns: the limit is known in closed form.

    Several times are blocks side by side that share their columns. The mean of 60 draws lies
    within 5 standard errors of the limit (two-sided normal: 6e-7), beside the rest of order 1/k².
    """
    rng, k, draws = np.random.default_rng(7), 48, 60
    factors = [[rng.standard_normal((60, 9)) for _ in range(times)] for _ in range(2)]
    for one, other in zip(*factors, strict=True):
        other[:] = 0.9 * one + 0.3 * other
    a, b = (pdist(np.hstack(blocks)) for blocks in factors)
    limit = np.sum((a - b) ** 2) / (np.sum(a**2 + b**2) / 2)
    columns = np.arange(times * k).reshape(times, k)
    found, plain = [], []
    for _ in range(draws):
        G = [rng.standard_normal((9, k)) for _ in range(2)]
        if kind == "rademacher":
            G = [np.sign(each) for each in G]
        Y, Z = (
            np.hstack([F @ g for F in blocks]) / np.sqrt(k)
            for blocks, g in zip(factors, G, strict=True)
        )
        found.append(_without_columns(Y, Z, columns))
        D, E = pdist(Y), pdist(Z)
        plain.append(np.sum((D - E) ** 2) / (np.sum(D**2 + E**2) / 2))
    square, error = np.array(found).T
    spread = square.std(ddof=1)
    assert abs(square.mean() - limit) < 5 * spread / np.sqrt(draws) + 1 / k**2
    assert np.mean(plain) > limit + 0.2 / k  # what is taken away
    assert 0.5 * spread < error.mean() < 3 * spread


@pytest.mark.parametrize("time", [8, (2, 16)])
def test_two_sketches_of_the_same_points_differ_by_their_columns_alone(time):
    """The same 800 points in both halves, in another order, so that the columns are others."""
    rng = np.random.default_rng(3)
    X = hs.datasets.swiss_roll(1100, rng=3)[0]
    same = np.concatenate([X[:800], X[:800][rng.permutation(800)]])
    half = np.arange(1600) < 800
    model = hs.HeatSketch(64, time=time, random_state=0)
    whole, (low, high) = half_discrepancy(model, same, half, X[800:])
    assert 0.6 / 8 < whole < 1.4 / 8
    assert low == 0
    assert high < 0.8 * whole


def test_the_interval_holds_what_many_columns_find():
    X = hs.datasets.swiss_roll(900, rng=5)[0]
    half = np.random.default_rng(5).random(500) < 0.5
    (few, of_few), (many, of_many) = (
        half_discrepancy(hs.HeatSketch(k, random_state=0), X[:500], half, X[500:])
        for k in (32, 2048)
    )
    assert of_few[0] < many < of_few[1]
    assert few > many
    assert np.ptp(of_many) < 0.2 * np.ptp(of_few)
    too_few = half_discrepancy(hs.HeatSketch(32), X[:500], half, X[500:505])
    assert too_few == (None, None)


def test_methods_without_random_columns_have_no_interval(tmp_path):
    X = hs.datasets.circle(600, rng=0)[0]
    done = embed(X, tmp_path / "o.npy", hs.DiffusionMap(2, random_state=0), fit_points=300)
    assert done.of_points is None
    assert done.describe().endswith("between fits of two halves of them")
    few = embed(X, tmp_path / "f.npy", hs.HeatSketch(4, random_state=0), fit_points=300)
    assert few.of_points is None  # four columns say too little of each other
    done = embed(X, tmp_path / "s.npy", hs.HeatSketch(16, random_state=0), fit_points=300)
    low, high = done.of_points
    assert 0 <= low < high < done.discrepancy + 0.2
    assert "% because of the points, the rest by random columns)" in done.describe()
