"""Estimators: scikit-learn's rules, the formulas of the papers, new points, and clear errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import expm
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError

import heatsketch as hs
from heatsketch._random import random_block
from problems.checks import estimator_checks
from problems.estimators import (
    every_affinity,
    every_estimator,
    every_formula,
    every_normalization,
    operator_of,
    walk_of,
)
from problems.matrices import kernel_matrix

# scikit-learn's rules


def unlike_repeated_rows(estimator):
    """Say why weights are not repeated rows, or not allowed; `test_sample_weights.py` has more."""
    checks = [
        *("pandas_series", "not_an_array", "list", "shape", "not_overwritten"),
        *("equivalence_on_dense_data", "equivalence_on_sparse_data"),
    ]
    names = [f"check_sample_weights_{check}" for check in checks[:5]]
    same = [f"check_sample_weight_{check}" for check in checks[5:]]
    if estimator.normalization != "markov":
        why = "distances of this form depend on the number of points: weights are refused"
        return dict.fromkeys([*names, *same], why)
    return dict.fromkeys(same, "equal points of a graph are one; each row has its random numbers")


@estimator_checks(
    hs.HeatSketch(),
    hs.HeatSketch(affinity="dense", normalization="bistochastic"),
    hs.HeatSketch(affinity="radius", epsilon="median", filter="heat", kind="rademacher"),
    hs.DiffusionMap(),
    hs.DiffusionMap(affinity="dense", filter="heat", normalization="symmetric"),
    hs.DiffusionMap(affinity="radius", epsilon="median", normalization="bistochastic"),
    hs.HeatEmbedding(1, 32, affinity="dense", filter="heat", normalization="symmetric"),
    hs.HeatEmbedding(),
    expected_failed_checks=unlike_repeated_rows,
)
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning", "ignore:n_neighbors=")
def test_scikit_learn_checks(estimator, check, short_search):
    """Maps are learned in one descent: no rule is about how good they are."""
    check(estimator)


@every_estimator
def test_precomputed_is_pairwise(make):
    tags = make(affinity="precomputed").__sklearn_tags__().input_tags
    assert tags.pairwise
    assert tags.positive_only
    assert not make().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("library", ["pandas", "polars"])
@every_estimator
def test_data_frames_in_and_out(make, library, X, X_new):
    frames = pytest.importorskip(library)
    fitted_to, new, renamed = (
        frames.DataFrame(dict(zip(names, points.T, strict=True)))
        for names, points in (("xyz", X), ("xyz", X_new), ("abc", X_new))
    )
    model = make().set_output(transform=library).fit(fitted_to)
    assert list(model.feature_names_in_) == list("xyz")
    Y, want = model.transform(new), make().fit(X).transform(X_new)
    assert isinstance(Y, frames.DataFrame)
    assert list(Y.columns) == [f"{type(model).__name__.lower()}{i}" for i in range(want.shape[1])]
    assert_array_equal(Y.to_numpy(), want)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(renamed)


@every_formula
def test_several_times_are_blocks_side_by_side(make, X, X_new):
    several = make(time=[2, 8, 3]).fit(X)
    for rows, embed in ((X, "fit_transform"), (X_new, "transform")):
        alone = [getattr(make(time=t).fit(X), embed)(rows) for t in (2, 8, 3)]
        together = several.transform(rows)
        assert_allclose(together, np.hstack(alone), rtol=1e-12, atol=1e-15)


def test_several_times_name_their_columns(X):
    names = hs.HeatSketch(2, time=(2, 8)).fit(X).get_feature_names_out()
    assert list(names) == [f"heatsketch_t{t}_{i}" for t in (2, 8) for i in range(2)]
    names = hs.HeatSketch(1, time=np.array([0.5, 2]), filter="heat").fit(X).get_feature_names_out()
    assert list(names) == ["heatsketch_t0.5_0", "heatsketch_t2.0_0"]
    names = hs.DiffusionMap(2, time=[3]).fit(X).get_feature_names_out()
    assert list(names) == ["diffusionmap0", "diffusionmap1"]


# Kinds of input


@every_affinity
@every_formula
def test_sparse_points_are_points(make, affinity, X, X_new):
    X, X_new = (np.where(np.abs(x) < 0.5, 0.0, x) for x in (X, X_new))
    dense = make(**affinity).fit(X)
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        model = make(**affinity).fit(form(X))
        assert_allclose(model.embedding_, dense.embedding_, rtol=0, atol=1e-9)
        assert_allclose(model.transform(form(X_new)), dense.transform(X_new), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@every_normalization
@every_formula
def test_precomputed_affinity_is_the_affinity_of_points(make, normalization, form, X, X_new):
    common = {"normalization": normalization, "tol": 1e-13}
    points = make(affinity="dense", epsilon=0.8, **common).fit(X)
    K_new = np.exp(-cdist(X_new, X, "sqeuclidean") / 0.8)
    given = make(affinity="precomputed", **common).fit(form(kernel_matrix(X, 0.8)))
    assert_allclose(given.embedding_, points.embedding_, rtol=0, atol=1e-10)
    assert_allclose(given.transform(form(K_new)), points.transform(X_new), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"59 features.* 60 features"):
        given.transform(K_new[:, :-1])


@every_affinity
@every_formula
def test_float32_in_float32_out(make, affinity, X, X_new):
    single, double = make(**affinity).fit(X.astype(np.float32)), make(**affinity).fit(X)
    Y, Z = single.transform(X_new.astype(np.float32)), double.transform(X_new)
    assert single.embedding_.dtype == Y.dtype == np.float32
    assert double.embedding_.dtype == Z.dtype == np.float64
    # Only the input and the output are rounded: 6e-8 each, grown by the steepness of the kernel.
    assert_allclose(Y, Z, rtol=0, atol=1e-4 * np.abs(Z).max())


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, ">f8"])
@every_estimator
def test_other_numbers_are_read_as_double(make, dtype):
    numbers = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 9, size=(40, 8))
    expected = make().fit_transform(numbers.astype(np.float64))
    Y = make().fit_transform(numbers.astype(dtype))
    assert Y.dtype == np.float64
    assert_array_equal(Y, expected)


@every_affinity
@every_estimator
def test_memory_layout_does_not_matter_and_input_is_left_alone(make, affinity, X, tmp_path):
    expected = make(**affinity).fit(X)
    transformed = expected.transform(X)
    np.save(tmp_path / "X.npy", X)
    read_only = np.load(tmp_path / "X.npy", mmap_mode="r")
    strided = np.repeat(X, 2, axis=0)[::2]
    for same in (np.asfortranarray(X), read_only, strided, X.tolist()):
        model = make(**affinity).fit(same)
        assert_array_equal(model.embedding_, expected.embedding_)
        assert_array_equal(model.transform(same), transformed)


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.MixtureDiffusion, hs.classical.Isomap])
def test_a_fit_that_failed_leaves_nothing_fitted(make):
    model = make()
    with pytest.raises(ValueError):  # noqa: PT011
        model.fit(np.ones((5, 2)))
    with pytest.raises(NotFittedError):
        model.transform(np.ones((5, 2)))


# Rows, old and new


@every_normalization
@every_affinity
@every_estimator
def test_fit_transform_is_transform_after_fit(make, affinity, normalization, X):
    estimator = make(normalization=normalization, **affinity)
    Y = estimator.fit_transform(X)
    assert_array_equal(Y, estimator.embedding_)
    again = estimator.transform(X)
    if affinity["affinity"] == "knn":
        assert_array_equal(again, Y)
    else:
        tol = 1e-12 if normalization != "bistochastic" else 2 * estimator.tol
        assert_allclose(again, Y, rtol=0, atol=tol * np.abs(Y).max())


@pytest.mark.parametrize("tol", [1e-8, 1e-3])
@every_affinity
@every_estimator
def test_bistochastic_rows_of_training_points_differ_by_the_error_of_their_sums(
    make, affinity, tol, X
):
    model = make(normalization="bistochastic", tol=tol, **affinity)
    Y = model.fit_transform(X)
    error = model.diffusion_.diagnostics["row_sum_error"]
    assert error <= tol
    moved = np.linalg.norm(model.transform(X) - Y, axis=1)
    assert (moved <= (1.01 * error + 1e-12) * np.linalg.norm(Y, axis=1)).all()


@every_affinity
@every_estimator
def test_a_row_of_transform_depends_on_itself_alone(make, affinity, X, X_new):
    model = make(**affinity).fit(X)
    Y = model.transform(X_new)
    order = np.random.default_rng(0).permutation(len(X_new))
    variants = {
        "one by one": (np.vstack([model.transform(row[None]) for row in X_new]), Y),
        "permuted": (model.transform(X_new[order]), Y[order]),
        "duplicated": (model.transform(np.repeat(X_new, 3, axis=0)), np.repeat(Y, 3, axis=0)),
        "among training points": (model.transform(np.vstack([X, X_new]))[len(X) :], Y),
    }
    for name, (found, expected) in variants.items():
        if affinity["affinity"] == "dense":  # BLAS sums in another order for other shapes
            assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(Y).max(), err_msg=name)
        else:
            assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("n_rows", [1, 1023, 1025, 2049])
def test_new_points_beyond_one_tile(n_rows, X):
    model = hs.HeatSketch(3, random_state=0).fit(X)
    many = np.random.default_rng(3).normal(size=(n_rows, 3))
    Y = model.transform(many)
    assert Y.shape == (n_rows, 3)
    assert_array_equal(Y[-1:], model.transform(many[-1:]))


@every_normalization
def test_new_point_on_a_circle_lands_at_its_angle(normalization):
    # By symmetry y(angle) is a multiple of (cos m(angle), sin m(angle)), m the same for all: the
    # map of the equispaced circle is a rotation, and reflection about a midpoint maps it to itself.
    X, angle = hs.datasets.circle(50, equispaced=True)
    model = hs.DiffusionMap(2, 3, affinity="dense", epsilon=0.1, normalization=normalization).fit(X)
    middle = angle[:10] + np.pi / 50
    Y, left, right = (
        model.transform(np.c_[np.cos(middle), np.sin(middle)]),
        *(model.embedding_[i : i + 10] for i in (0, 1)),
    )
    bisector = (left + right) / np.linalg.norm(left + right, axis=1, keepdims=True)
    along = (Y * bisector).sum(axis=1)
    assert_allclose(Y, along[:, None] * bisector, rtol=0, atol=1e-10 * along.max())
    assert_allclose(along, np.linalg.norm(left, axis=1), rtol=0.01)  # on the circle, not its chord


# The defaults are good for something


def test_default_diffusion_map_unrolls_the_swiss_roll():
    X, flat = hs.datasets.swiss_roll(2000, rng=0)
    F = hs.DiffusionMap(random_state=0).fit_transform(X)
    assert abs(spearmanr(F[:, 0], flat[:, 0]).statistic) > 0.99
    assert abs(spearmanr(X[:, 0], flat[:, 0]).statistic) < 0.9  # nothing a coordinate could tell


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_default_sketch_of_digits_is_no_worse_than_the_pixels(seed):
    X, label = hs.datasets.digits()
    Y = hs.HeatSketch(random_state=seed).fit_transform(X)
    assert hs.metrics.knn_accuracy(Y, label) >= 0.982


# The formulas of the papers


SKETCHES = [("power", t, kind) for t in (1, 2, 5) for kind in ("gaussian", "rademacher")]


@pytest.mark.parametrize(
    ("filter", "time", "kind"), [*SKETCHES, *(("heat", t, "gaussian") for t in (0.3, 2.0, 20.0))]
)
@every_normalization
def test_heat_sketch_is_a_filter_of_the_operator(normalization, filter, time, kind, X):
    k, n = 6, len(X)
    A, pi = operator_of(kernel_matrix(X, 1.0), normalization)
    off = np.eye(n) - np.sqrt(np.outer(pi, pi))
    if filter == "power":
        f = np.linalg.matrix_power(A, time)
    else:
        f = expm(time * (A - np.eye(n))) - np.exp(-time) * np.eye(n)
    expected = off @ f @ off @ random_block(n, k, kind, 5) / np.sqrt(k)
    expected /= np.sqrt(pi)[:, None] if normalization == "markov" else 1
    options = {"affinity": "dense", "epsilon": 1.0, "tol": 1e-13, "random_state": 5}
    model = hs.HeatSketch(k, time, filter=filter, kind=kind, normalization=normalization, **options)
    atol = (1e-11 if filter == "power" else 1e-10) * np.abs(expected).max()
    assert_allclose(model.fit_transform(X), expected, rtol=0, atol=atol)


def test_a_whole_float_is_a_whole_time(X):
    three, also_three = (hs.HeatSketch(time=t, random_state=0).fit(X) for t in (3, 3.0))
    assert_array_equal(three.embedding_, also_three.embedding_)


@pytest.mark.parametrize("time", [1, 3, 10])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_diffusion_map_is_algorithm_3(normalization, time, X):
    A, _ = operator_of(kernel_matrix(X, 1.0), normalization)
    values, vectors = np.linalg.eigh(A)
    expected = (values**time * vectors)[:, ::-1][:, 1:5]
    model = hs.DiffusionMap(
        4, time, affinity="dense", epsilon=1.0, normalization=normalization, tol=1e-13
    ).fit(X)
    signs = np.sign((model.embedding_ * expected).sum(axis=0))
    assert_allclose(model.embedding_ * signs, expected, rtol=0, atol=1e-10)
    assert_allclose(model.eigenvalues_, values[::-1][1:5], rtol=1e-10)
    assert_allclose(A @ model.eigenvectors_, model.eigenvectors_ * model.eigenvalues_, atol=1e-10)
    assert (model.residuals_ < 1e-12).all()


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 0.3])
def test_markov_form_holds_the_right_eigenvectors_of_the_walk(alpha, X):
    n = len(X)
    P, pi = walk_of(kernel_matrix(X, 1.0), alpha)
    model = hs.DiffusionMap(n - 1, affinity="dense", epsilon=1.0, alpha=alpha).fit(X)
    d, R, lam = model.diffusion_, model.eigenvectors_, model.eigenvalues_
    assert_allclose(d.expand(d.measure), pi, rtol=1e-12)
    assert_allclose(R.T @ (pi[:, None] * R), np.eye(n - 1), rtol=0, atol=1e-10)
    assert_allclose(P @ R, lam * R, rtol=0, atol=1e-10 * np.abs(R).max())
    assert_allclose(pi @ R, 0, rtol=0, atol=1e-11)
    assert_allclose(model.embedding_, lam * R, rtol=0, atol=1e-10)


def test_automatic_components_serve_every_time(X):
    common = {"delta": 0.1, "affinity": "dense", "epsilon": 2.0}
    alone = [hs.DiffusionMap("auto", t, **common).fit(X).eigenvalues_ for t in (3, 1, 2)]
    model = hs.DiffusionMap("auto", [3, 1, 2], **common).fit(X)
    assert len(model.eigenvalues_) == max(map(len, alone)) > min(map(len, alone))
