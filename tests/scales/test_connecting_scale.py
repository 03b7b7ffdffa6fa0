import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from heatsketch.graphs.components import component_labels
from heatsketch.markov.diffusion import Diffusion
from heatsketch.scales import connecting_scale as connecting
from heatsketch.scales.connecting_scale import connecting_epsilon, connecting_neighbors
from problems.clouds import cloud

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")


def groups(n=120, gap=6.0, seed=0):
    X = cloud(n, 2, seed=seed)
    X[n // 2 :, 0] += gap
    return X


def parts(linked):
    return connected_components(sparse.csr_matrix(linked), directed=False)[0]


def by_thresholds(X, cut):
    """The smallest ε by trying every distance as the radius cut √(ε/2)."""
    d = cdist(X, X)
    radius = next(r for r in np.sort(pdist(X)) if parts(d <= r) == 1)
    return 2 * (radius / cut) ** 2


@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 10**6), st.floats(0.5, 8))
def test_epsilon_is_that_of_the_first_radius_that_connects(n, d, seed, cut):
    X = cloud(n, d, seed=seed)
    found = connecting_epsilon(X, cut=cut)
    assert found == pytest.approx(by_thresholds(X, cut), rel=3e-7)


def test_the_radius_graph_connects_there_and_not_below():
    X = groups()
    epsilon = connecting_epsilon(X, cut=4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = Diffusion.from_points(X, affinity="radius", epsilon=epsilon, cut=4.0)
    assert d.diagnostics["components"] == 1
    with pytest.warns(hs.DisconnectedWarning):
        Diffusion.from_points(X, affinity="radius", epsilon=epsilon * (1 - 1e-6), cut=4.0)


@pytest.mark.parametrize("gap", [0.0, 6.0, 300.0])
def test_the_tree_of_neighbours_and_links_finds_the_same_edge(gap, monkeypatch):
    X = groups(300, gap)
    want = connecting_epsilon(X)
    monkeypatch.setattr(connecting, "EXACT_POINTS", 50)
    assert connecting_epsilon(X) == pytest.approx(want, rel=1e-6)
    copies = np.repeat(X, 20, axis=0)  # more than there are neighbours looked at
    assert connecting_epsilon(copies) == pytest.approx(want, rel=1e-6)


def test_an_edge_that_is_none_of_the_nearest_neighbours_is_found(monkeypatch):
    # Two squares of 40 points, 4 apart, whose nearest points have 15 nearer ones each. A detour of
    # points 5 apart leads from a far corner to the other: the graph of neighbours knows only that.
    squares = np.random.default_rng(0).random((80, 2))
    squares[40:, 0] += 5.0
    detour = [[x, y] for x, y in ((0, 6), (0, 11), (3, 15), (6, 11), (6, 6))]
    X = np.vstack([squares, detour])
    want = connecting_epsilon(X)
    assert want == pytest.approx(by_thresholds(X, 5.0), rel=3e-7)
    monkeypatch.setattr(connecting, "EXACT_POINTS", 20)
    assert connecting_epsilon(X) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("exponent", [-300, 7, 300])
def test_epsilon_scales_with_the_square_of_the_data(exponent):
    X = groups()
    assert connecting_epsilon(np.ldexp(X, exponent)) == np.ldexp(
        connecting_epsilon(X), 2 * exponent
    )


def test_offsets_copies_order_and_sparsity_do_not_matter():
    X = np.round(groups() * 2**20) / 2**20
    want = connecting_epsilon(X)
    for other in (X + 2.0**27, np.repeat(X, 3, axis=0), X[::-1], sparse.csr_matrix(X)):
        assert connecting_epsilon(other) == pytest.approx(want, rel=1e-6)


def test_what_no_epsilon_connects_is_refused():
    with pytest.raises(ValueError, match="All points are the same"):
        connecting_epsilon(np.ones((5, 2)))
    with pytest.raises(ValueError, match="outside the range of float64"):
        connecting_epsilon(1e200 * cloud(60, 2))
    with pytest.raises(ValueError, match=r"cut=0\.0 is out of range"):
        connecting_epsilon(cloud(60, 2), cut=0)


def neighbour_graph(X, k):
    """Whether j is among the k nearest of i, or i of j."""
    order = np.argsort(cdist(X, X), axis=1)[:, 1 : k + 1]
    linked = np.zeros((len(X), len(X)), bool)
    np.put_along_axis(linked, order, True, axis=1)
    return linked | linked.T


@given(st.integers(4, 40), st.integers(1, 5), st.integers(0, 10**6))
def test_neighbours_needed_are_the_first_number_that_connects(n, k, seed):
    X = cloud(n, 2, seed=seed)
    X[n // 3 :] += 5.0
    k = min(k, n - 1)
    count, labels = connected_components(sparse.csr_matrix(neighbour_graph(X, k)), directed=False)
    if count == 1:
        return
    want = next(m for m in range(1, n) if parts(neighbour_graph(X, m)) == 1)
    assert connecting_neighbors(X, labels) == want


def advice_of(X, **way):
    with pytest.warns(hs.DisconnectedWarning) as caught:
        Diffusion.from_points(X, **way)
    (text,) = [str(w.message) for w in caught if w.category is hs.DisconnectedWarning]
    return text


def number_after(text, words):
    return float(text.split(words)[1].split()[0])


@pytest.mark.parametrize("affinity", ["dense", "radius"])
def test_the_warning_names_an_epsilon_that_connects(affinity):
    X = groups(gap=60.0)
    epsilon = number_after(advice_of(X, affinity=affinity, epsilon=1.0), "epsilon >= ")
    K = hs.gaussian_affinity(X, epsilon)
    assert component_labels(hs.Dense(K)).max() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", hs.ScaleWarning)  # the gap is along one feature
        Diffusion.from_points(X, affinity=affinity, epsilon=epsilon)
    # Nor is it far above the smallest: row sums are between 1 and n.
    smaller = epsilon * (0.99 if affinity == "radius" else 0.7)
    advice_of(X, affinity=affinity, epsilon=smaller)


def test_the_warning_names_the_neighbours_that_connect():
    X = groups(80, 12.0)
    X = np.vstack([X, X[:5]])  # copies share a vertex
    k = int(number_after(advice_of(X, n_neighbors=5), "n_neighbors >= "))
    distinct = X[:80]
    assert parts(neighbour_graph(distinct, k)) == 1
    assert parts(neighbour_graph(distinct, k - 1)) > 1


def named(text):
    """The parameters that an advice names, with their least values."""
    found = re.findall(r"(n_neighbors|epsilon|radius) >= ([0-9.e+-]*[0-9])", text)
    return {key: int(value) if key == "n_neighbors" else float(value) for key, value in found}


def in_one_piece(X, **way):
    with warnings.catch_warnings():
        warnings.simplefilter("error", hs.DisconnectedWarning)
        return Diffusion.from_points(X, **way).diagnostics["components"] == 1


@pytest.mark.parametrize("exponent", [0, -200, 200])
@pytest.mark.parametrize("n_neighbors", [15, 119])
def test_a_graph_with_a_number_is_told_both_numbers(n_neighbors, exponent):
    X, unit = np.ldexp(groups(gap=8.0), exponent), 4.0**exponent
    way = {"n_neighbors": n_neighbors, "epsilon": 0.02 * unit}
    numbers = named(advice_of(X, **way))
    assert set(numbers) == ({"n_neighbors", "epsilon"} if n_neighbors == 15 else {"epsilon"})
    way |= numbers
    assert in_one_piece(X, **way)
    # Nor is ε far above the smallest: row sums are between 1 and n.
    advice_of(X, **way | {"epsilon": 0.7 * way["epsilon"]})
    if n_neighbors == 15:
        advice_of(X, **way | {"n_neighbors": way["n_neighbors"] - 1})


def test_a_wide_enough_number_is_left_as_it_is():
    X = groups(gap=8.0)
    numbers = named(advice_of(X, epsilon=1.0, n_neighbors=10))
    assert set(numbers) == {"n_neighbors"}
    assert in_one_piece(X, epsilon=1.0, **numbers)


def test_a_rule_for_epsilon_is_told_the_number():
    X = groups(gap=1e3)
    way = {"n_neighbors": 119, "epsilon": "nearest"}
    assert in_one_piece(X, **way | named(advice_of(X, **way)))


def lopsided(gap):
    """Ten points far from a hundred: scales of the ten span the gap once n_neighbors does."""
    X = cloud(110, 2)
    X[100:, 0] += gap
    return X


@pytest.mark.parametrize("affinity", ["knn", "dense"])
@pytest.mark.parametrize("gap", [20.0, 30.0, 60.0])
def test_self_tuning_scales_are_told_how_many_neighbours_connect(affinity, gap):
    X, way = lopsided(gap), {"affinity": affinity, "n_neighbors": 6}
    numbers = named(advice_of(X, **way))
    assert set(numbers) == {"n_neighbors"}
    assert in_one_piece(X, **way | numbers)
    if gap < 50:  # scales jump from the ten to the hundred: no row sum makes up for that
        advice_of(X, **way | {"n_neighbors": numbers["n_neighbors"] - 1})


@pytest.mark.parametrize("affinity", ["knn", "dense"])
@pytest.mark.parametrize("gap", [30.0, 1e3])
def test_where_no_number_of_neighbours_does_the_warning_names_an_epsilon(affinity, gap):
    X, way = groups(gap=gap), {"affinity": affinity, "n_neighbors": 15}
    text = advice_of(X, **way)
    assert "With self-tuning scales no n_neighbors would connect them" in text
    if gap > 100:
        advice_of(X, **way | {"n_neighbors": 119})
    assert in_one_piece(X, **way | named(text))


def test_copies_do_not_mislead():
    X = np.repeat(lopsided(20.0), 3, axis=0)
    for way in (
        {"n_neighbors": 5},
        {"n_neighbors": 5, "epsilon": 0.02},
        {"n_neighbors": 5, "affinity": "dense"},
    ):
        assert in_one_piece(X, **way | named(advice_of(X, **way)))


def test_given_neighbours_are_left_to_the_caller():
    X = groups(gap=1e3)
    for way, words in (({}, "a number as epsilon"), ({"epsilon": 1.0}, "a larger epsilon")):
        text = advice_of(X, neighbors=KNeighborsTransformer(n_neighbors=20), **way)
        assert (
            f"Raise n_neighbors to connect them; if the links are then too weak, pass {words}"
            in text
        )


def test_large_data_are_left_to_the_caller(monkeypatch):
    monkeypatch.setattr(connecting, "EXACT_POINTS", 100)
    X = groups(gap=1e3)
    for affinity in ("knn", "dense"):
        assert "Raise n_neighbors to connect" in advice_of(X, affinity=affinity)
    for affinity in ("dense", "radius"):
        text = advice_of(X, affinity=affinity, epsilon=1.0)
        cut = float(re.search(r"connecting_epsilon\(X, cut=([0-9.]+)\) computes", text)[1])
        assert in_one_piece(X, affinity=affinity, epsilon=connecting_epsilon(X, cut=cut))


def test_an_outlier_beyond_all_epsilons_is_no_error():
    X = np.vstack([cloud(60, 2), [[1e160, 0.0]]])
    assert "No epsilon in the range of float64 would connect them" in advice_of(
        X, affinity="dense", epsilon=1e40
    )
