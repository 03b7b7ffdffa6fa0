"""Probabilities of neighbours at a given perplexity: the notes' (13) to (15), written out."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.classical import SNE, TSNE
from heatsketch.classical.sne import as_graph, conditional, joint


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(40, 5))


def perplexity_of(p):
    """2 to the entropy in bits, (14)."""
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)
    return 2.0 ** -(p * logs).sum(axis=1)


def gaussian_rows(squares, sigma):
    """p_{j|i}, (13), written out."""
    with np.errstate(divide="ignore"):
        exponents = -squares / (2 * sigma[:, None] ** 2)
    np.fill_diagonal(exponents, -np.inf)
    K = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return K / K.sum(axis=1, keepdims=True)


@given(
    seed=st.integers(0, 2**31),
    width=st.integers(3, 200),
    share=st.floats(0.0, 1.0),
    spread=st.floats(-12, 3),
)
def test_perplexity_is_met_to_ten_digits(seed, width, share, spread):
    """Uniform to extremely unequal distances; perplexities up to the number of neighbours."""
    rng = np.random.default_rng(seed)
    d = np.sort(np.exp(rng.normal(scale=10.0**spread, size=(5, width)).clip(-300, 300)), axis=1)
    perplexity = 1.02 + share * (width - 1.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ScaleWarning)  # of ties that rounding made
        p = conditional(d, perplexity).p
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (np.diff(p, axis=1) <= 0).all()  # nearer ones are likelier
    unequal = (d == d[:, :1]).sum(axis=1) <= perplexity
    assert_allclose(perplexity_of(p)[unequal], perplexity, rtol=1e-10)


@pytest.mark.parametrize("perplexity", [1.5, 12, 38.5])
def test_sigma_is_the_bandwidth_of_the_definition(X, perplexity):
    model = TSNE(perplexity=perplexity, n_iter=250).fit(X)
    p = gaussian_rows(cdist(X, X, "sqeuclidean"), model.sigmas_)
    assert_allclose(perplexity_of(p), perplexity, rtol=1e-10)
    assert_allclose(model.affinities_.toarray(), (p + p.T) / 80, rtol=1e-8, atol=1e-14)
    rows = SNE(perplexity=perplexity, n_iter=1, early_iter=0).fit(X).affinities_
    assert_allclose(rows.toarray(), p, rtol=1e-8, atol=1e-14)


def test_joint_probabilities_are_symmetric_and_sum_to_one():
    X = np.random.default_rng(0).normal(size=(1100, 3))  # more than are joined with all others
    found, *_ = SNE()._find_neighbors(X, 7.5)
    assert found.indices.shape == (1100, 23)  # 3 · 7.5 + 1
    P = joint(as_graph(conditional(found.distances, 7.5).p, found.indices))
    assert abs(P.sum() - 1) < 1e-12
    assert (P != P.T).nnz == 0
    assert (P.diagonal() == 0).all()
    assert (P.data > 0).all()


@pytest.mark.parametrize("scale", [1e-100, 3.7, 1e100])
def test_probabilities_do_not_depend_on_the_scale(X, scale):
    plain = SNE(perplexity=8, n_iter=1, early_iter=0).fit(X)
    scaled = SNE(perplexity=8, n_iter=1, early_iter=0).fit(X * scale)
    assert_allclose(scaled.affinities_.toarray(), plain.affinities_.toarray(), rtol=1e-9)
    assert_allclose(scaled.sigmas_ / scale, plain.sigmas_, rtol=1e-9)


def test_distance_ratios_beyond_float_squares():
    """Three tight points and a far one: the far one has the rest of the perplexity."""
    p = conditional(np.array([[1e-150, 2e-150, 3e-150, 1e160]]), 3.5).p
    assert_allclose(perplexity_of(p), 3.5, rtol=1e-10)
    assert_allclose(p[0, :3], p[0, 0], rtol=1e-10)


def test_too_many_equally_near_share_the_probability():
    """Of a perplexity of 2 with three points at the least distance only the limit is left."""
    d = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 2.0]])
    with pytest.warns(hs.ScaleWarning, match=r"2 point\(s\) \(rows 0, 1\).*perplexity=2"):
        found = conditional(d, 2.0)
    assert_array_equal(found.p, [[1 / 3, 1 / 3, 1 / 3, 0]] * 2)
    assert_array_equal(found.sigma, 0)


def test_as_many_equally_near_as_the_perplexity_need_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = conditional(np.array([[1.0, 1.0, 1.0, 2.0]]), 3.0)
    assert_allclose(found.p, [[1 / 3, 1 / 3, 1 / 3, 0]])


def test_copies_are_neighbours_of_each_other_not_of_themselves():
    """More copies than neighbours are found: the own point need not be among them."""
    X = np.vstack([np.zeros((60, 3)), np.random.default_rng(0).normal(size=(1000, 3))])
    near, *_ = SNE()._find_neighbors(X, 10.0)
    assert near.indices.shape == (1060, 31)
    assert (near.indices != np.arange(1060)[:, None]).all()
    assert (near.distances[:60] == 0).all()
    assert (near.indices[:60] < 60).all()
