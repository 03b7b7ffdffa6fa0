"""Principal components: the SVD of the centred data, at every offset and size; bad input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from heatsketch.classical import PCA, pca
from problems.checks import up_to_signs

POINTS = {
    "tall": np.random.default_rng(1).normal(size=(40, 4)) * [5, 4, 3, 2],
    "wide": np.random.default_rng(2).normal(size=(12, 30)) * np.geomspace(9, 0.1, 30),
}
every_shape = pytest.mark.parametrize("X", POINTS.values(), ids=POINTS)


def svd(X):
    """The singular value decomposition of the centred points: scores, σ, W."""
    U, sigma, Wt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return U * sigma, sigma, Wt.T


# The definition


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, np.asfortranarray])
@every_shape
def test_it_is_the_svd_of_the_centred_data(X, form):
    scores, sigma, W = svd(X)
    model = PCA(3).fit(form(X))
    assert_allclose(up_to_signs(model.components_.T, W[:, :3]), W[:, :3], atol=1e-13)
    assert_allclose(up_to_signs(model.embedding_, scores[:, :3]), scores[:, :3], atol=1e-12)
    assert_allclose(model.singular_values_, sigma[:3], rtol=1e-13)
    assert_allclose(model.explained_variance_, sigma[:3] ** 2 / (X.shape[0] - 1), rtol=1e-12)
    shares = sigma[:3] ** 2 / np.sum(sigma**2)
    assert_allclose(model.explained_variance_ratio_, shares, rtol=1e-12)
    assert model.diagnostics_["explained_share"] == pytest.approx(shares.sum(), rel=1e-12)
    assert (model.components_[range(3), np.abs(model.components_).argmax(axis=1)] > 0).all()
    assert_allclose(model.mean_, X.mean(axis=0), atol=1e-14)
    assert_allclose(model.transform(form(X)), model.embedding_, atol=1e-13)


@every_shape
def test_all_components_bring_the_points_back(X):
    model = PCA(None).fit(X)
    assert_allclose(model.inverse_transform(model.embedding_), X, atol=1e-12)
    rank_two = PCA(2).fit(X)
    left = X - rank_two.inverse_transform(rank_two.embedding_)
    assert_allclose(np.sum(left**2), np.sum(svd(X)[1][2:] ** 2), rtol=1e-12)  # Eckart and Young


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("scale", [1.0, 2.0**60])
@every_shape
def test_iteration_finds_what_factoring_does(X, form, scale, limits):
    exact = PCA(2).fit(form(X * scale))
    limits(pca_size=1)
    model = PCA(2, random_state=0).fit(form(X * scale))
    assert not np.array_equal(model.components_, exact.components_)  # it has iterated
    for name in ("components_", "explained_variance_ratio_"):
        assert_allclose(getattr(model, name), getattr(exact, name), atol=1e-10)
    assert_allclose(model.embedding_ / scale, exact.embedding_ / scale, atol=1e-10)


@pytest.mark.parametrize("share", [1.0, 1e-6, 0.0])
def test_what_iteration_cannot_resolve_is_factored(X, share, limits):
    points = X * [1, share, share, share]
    exact = PCA(3).fit(points)
    limits(pca_size=1)
    assert_allclose(PCA(3).fit(points).embedding_, exact.embedding_, atol=1e-10 * share + 1e-13)


# Offsets, sizes, precision


@pytest.mark.parametrize("scale", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_offsets_and_sizes_cost_no_digits(X, scale, offset):
    X = X + offset  # rounded by now
    scores, sigma, W = svd(X - offset)
    model = PCA(4).fit(X * scale)
    error = 1e-12 if scale == 1 else 1e-12 + 1e-15 * offset  # of the product with the scale
    placed = model.embedding_ - model.embedding_.mean(axis=0)  # an offset rounds the mean
    assert_allclose(up_to_signs(placed, scores) / scale, scores, atol=10 * error)
    assert_allclose(model.singular_values_ / scale, sigma, rtol=error)
    assert_allclose(up_to_signs(model.components_.T, W), W, atol=error)
    assert_allclose(model.explained_variance_ratio_, sigma**2 / np.sum(sigma**2), rtol=2 * error)
    back = model.inverse_transform(model.transform(X * scale)) / scale
    assert_allclose(back, X, rtol=1e-14, atol=1e-12)


def test_a_model_of_dense_points_takes_sparse_ones_and_the_reverse(X):
    X = X + np.array([50, 0, -20, 0])
    dense, thin = PCA(3).fit(X), PCA(3).fit(sparse.csr_matrix(X))
    assert_allclose(dense.transform(sparse.coo_matrix(X)), dense.embedding_, atol=1e-11)
    assert_allclose(thin.transform(X), dense.embedding_, atol=1e-11)
    back = dense.inverse_transform(dense.embedding_)
    assert_allclose(thin.inverse_transform(thin.embedding_), back, atol=1e-11)


def test_scores_of_other_components_are_refused(X):
    with pytest.raises(ValueError, match="Z has 3 columns but there are 2 components"):
        PCA(2).fit(X).inverse_transform(np.ones((4, 3)))


# Odd input


@pytest.mark.parametrize("most", [1, pca._MAX_EXACT_SIZE], ids=["iterated", "exact"])
@pytest.mark.parametrize("k", [1, 3])
def test_points_that_coincide_have_coordinates_zero(k, most, limits):
    limits(pca_size=most)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PCA(k).fit(np.full((6, 4), 3.7))
    assert_array_equal(model.embedding_, 0)
    assert_array_equal(model.explained_variance_ratio_, 0)
    assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-14)
