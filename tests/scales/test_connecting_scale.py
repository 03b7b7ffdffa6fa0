import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from heatsketch.markov.diffusion import Diffusion
from heatsketch.scales import connecting_epsilon
from problems.clouds import cloud

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")


def groups(n=120, gap=6.0, seed=0):
    X = cloud(n, 2, seed=seed)
    X[n // 2 :, 0] += gap
    return X


def by_thresholds(X, cut):
    """The smallest ε by trying every distance as the radius cut √(ε/2)."""
    d = cdist(X, X)
    radius = next(r for r in np.sort(pdist(X)) if connected_components(r >= d)[0] == 1)
    return 2 * (radius / cut) ** 2


@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 10**6), st.floats(0.5, 8))
def test_epsilon_is_that_of_the_first_radius_that_connects(n, d, seed, cut):
    X = cloud(n, d, seed=seed)
    found = connecting_epsilon(X, cut=cut)
    assert found == pytest.approx(by_thresholds(X, cut), rel=3e-7)


@pytest.mark.parametrize(
    ("options", "cut", "less"),
    [({"affinity": "radius", "cut": 4.0}, 4.0, 1 - 1e-6), ({"affinity": "dense"}, 7.0, 0.1)],
)
def test_the_graph_connects_there_and_below_a_warning_names_the_function(options, cut, less):
    X = groups(gap=60.0)
    epsilon = connecting_epsilon(X, cut=cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error", hs.DisconnectedWarning)
        d = Diffusion.from_points(X, epsilon=epsilon, **options)
    assert d.diagnostics["components"] == 1
    with pytest.warns(hs.DisconnectedWarning, match="heatsketch.connecting_epsilon"):
        Diffusion.from_points(X, epsilon=less * epsilon, **options)


@pytest.mark.parametrize("gap", [0.0, 6.0, 300.0])
def test_the_tree_of_neighbours_and_links_finds_the_same_edge(gap, limits):
    X = groups(300, gap)
    want = connecting_epsilon(X)
    limits(connecting_points=50)
    assert connecting_epsilon(X) == pytest.approx(want, rel=1e-6)
    copies = np.repeat(X, 20, axis=0)  # more than there are neighbours looked at
    assert connecting_epsilon(copies) == pytest.approx(want, rel=1e-6)


def test_beyond_4096_points_an_edge_that_is_none_of_the_nearest_neighbours_is_missed(limits):
    # Two squares of 40 points, 4 apart, whose nearest points have 15 nearer ones each. A detour of
    # points 5 apart leads from a far corner to the other: the graph of neighbours knows only that,
    # so that ε does connect, but is larger than necessary.
    squares = np.random.default_rng(0).random((80, 2))
    squares[40:, 0] += 5.0
    detour = [[x, y] for x, y in ((0, 6), (0, 11), (3, 15), (6, 11), (6, 6))]
    X = np.vstack([squares, detour])
    want = connecting_epsilon(X)
    assert want == pytest.approx(by_thresholds(X, 5.0), rel=3e-7)
    limits(connecting_points=20)
    assert want < connecting_epsilon(X) < 2 * want


def test_offsets_copies_order_and_sparsity_do_not_matter():
    X = np.round(groups() * 2**20) / 2**20
    want = connecting_epsilon(X)
    for other in (X + 2.0**27, np.repeat(X, 3, axis=0), X[::-1], sparse.csr_matrix(X)):
        assert connecting_epsilon(other) == pytest.approx(want, rel=1e-6)


def test_what_no_epsilon_connects_is_refused():
    with pytest.raises(ValueError, match="All points are the same"):
        connecting_epsilon(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"cut=0 is out of range"):
        connecting_epsilon(cloud(60, 2), cut=0)
