"""Estimators: scikit-learn's rules, the formulas of the papers, new points, and clear errors."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import expm
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch._array import random_block
from problems.checks import estimator_checks
from problems.spectra import path_graph

AFFINITIES = {
    "knn": {"affinity": "knn"},
    "dense": {"affinity": "dense", "epsilon": 1.0},
    "radius": {"affinity": "radius", "epsilon": 1.0},
}
ESTIMATORS = {
    "sketch": lambda **changes: hs.HeatSketch(**{"n_components": 5, "random_state": 0} | changes),
    "map": lambda **changes: hs.DiffusionMap(**{"n_components": 3, "random_state": 0} | changes),
    "embedding": lambda **changes: hs.HeatEmbedding(
        **{"n_components": 3, "time": 32, "random_state": 0} | changes
    ),
}
NORMALIZATIONS = ("symmetric", "bistochastic", "markov")

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
# A learned map magnifies rounding: input that is equal to rounding gives another map, as good. What
# it shares with the others there is in test_embedding.py, where nothing is left to learn.
every_formula = pytest.mark.parametrize(
    "make", [ESTIMATORS["sketch"], ESTIMATORS["map"]], ids=["sketch", "map"]
)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)


@pytest.fixture
def X():
    """Sixty points in one piece, in general position."""
    return np.random.default_rng(1).normal(size=(60, 3))


@pytest.fixture
def X_new():
    return np.random.default_rng(2).normal(size=(7, 3))


def affinity_of(X, epsilon):
    """K, written out."""
    return np.exp(-cdist(X, X, "sqeuclidean") / epsilon)


def operator_of(K, normalization, alpha=1.0):
    """A and π of a normalisation, written out from the papers."""
    if normalization == "bistochastic":
        s = np.ones(len(K))
        for _ in range(2000):  # Algorithm 2: the geometric mean of two iterates of d = K (1/d)
            s = np.sqrt(s / (K @ s))
        return K * np.outer(s, s), np.full(len(K), 1 / len(K))
    q = K.sum(axis=1) ** (alpha if normalization == "markov" else 1.0)
    K = K / np.outer(q, q)
    v = K.sum(axis=1)
    return K / np.sqrt(np.outer(v, v)), v / v.sum()


def walk_of(K, alpha):
    """P, written out: rows that sum to 1."""
    q = K.sum(axis=1) ** alpha
    K = K / np.outer(q, q)
    return K / K.sum(axis=1, keepdims=True)


def row_weights(pi, normalization):
    return 1 / np.sqrt(pi) if normalization == "markov" else np.ones(len(pi))


def assert_equal_up_to_signs(F, expected, atol):
    assert F.shape == expected.shape
    assert_allclose(F * np.sign((F * expected).sum(axis=0)), expected, rtol=0, atol=atol)


# scikit-learn's rules


@estimator_checks(
    hs.HeatSketch(),
    hs.HeatSketch(affinity="dense", normalization="bistochastic"),
    hs.HeatSketch(affinity="radius", epsilon="median", filter="heat", kind="rademacher"),
    hs.DiffusionMap(),
    hs.DiffusionMap(affinity="dense", filter="heat", normalization="symmetric"),
    hs.DiffusionMap(affinity="radius", epsilon="median", normalization="bistochastic"),
    hs.HeatEmbedding(1, 32, affinity="dense", filter="heat", normalization="symmetric"),
    hs.HeatEmbedding(),
)
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning", "ignore:n_neighbors=")
def test_scikit_learn_checks(estimator, check):
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
    names = ["width", "height", "depth"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    plain = make().fit(X)
    estimator = make().set_output(transform=library).fit(frame)
    assert list(estimator.feature_names_in_) == names
    new = estimator.transform(frames.DataFrame(dict(zip(names, X_new.T, strict=True))))
    assert isinstance(new, frames.DataFrame)
    prefix, width = type(estimator).__name__.lower(), plain.embedding_.shape[1]
    assert list(new.columns) == [f"{prefix}{i}" for i in range(width)]
    assert_array_equal(new.to_numpy(), plain.transform(X_new))
    renamed = frames.DataFrame(dict(zip("abc", X_new.T, strict=True)))
    with pytest.raises(ValueError, match="feature names"):
        estimator.transform(renamed)


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


@every_estimator
def test_pipeline_and_grid_search_over_time(make):
    X, label = hs.datasets.gaussian_clouds(90, dim=5, separation=5.0, rng=0)
    X = X * [1, 1, 1, 1, 1000]  # a feature that says nothing: the scaler has to come first
    pipeline = make_pipeline(StandardScaler(), make(), KNeighborsClassifier(5))
    step = pipeline.steps[1][0]
    search = GridSearchCV(pipeline, {f"{step}__time": [1, 4]}, cv=3).fit(X, label)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[1].time == search.best_params_[f"{step}__time"]


@every_affinity
@every_estimator
def test_clone_and_pickle_give_the_same_transform(make, affinity, X, X_new):
    fitted = make(**affinity).fit(X)
    for again in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X)):
        assert_array_equal(again.transform(X_new), fitted.transform(X_new))
        assert_array_equal(again.embedding_, fitted.embedding_)


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


@every_normalization
@every_formula
def test_precomputed_affinity_is_the_affinity_of_points(make, normalization, X, X_new):
    common = {"normalization": normalization, "tol": 1e-13}
    points = make(affinity="dense", epsilon=0.8, **common).fit(X)
    K_new = np.exp(-cdist(X_new, X, "sqeuclidean") / 0.8)
    given = make(affinity="precomputed", **common).fit(affinity_of(X, 0.8))
    assert_allclose(given.embedding_, points.embedding_, rtol=0, atol=1e-10)
    assert_allclose(given.transform(K_new), points.transform(X_new), rtol=0, atol=1e-10)


@every_formula
def test_precomputed_graph_is_the_radius_graph(make, X, X_new):
    def truncated(x):
        d = cdist(x, X)
        return sparse.csr_matrix(np.exp(-(d**2) / 0.8) * (d <= 5 * np.sqrt(0.8 / 2)))

    points = make(affinity="radius", epsilon=0.8).fit(X)
    given = make(affinity="precomputed").fit(truncated(X))
    assert_allclose(given.embedding_, points.embedding_, rtol=0, atol=1e-10)
    assert_allclose(given.transform(truncated(X_new)), points.transform(X_new), rtol=0, atol=1e-10)


@every_affinity
@every_formula
def test_float32_in_float32_out(make, affinity, X, X_new):
    single, double = make(**affinity).fit(X.astype(np.float32)), make(**affinity).fit(X)
    Y, Z = single.transform(X_new.astype(np.float32)), double.transform(X_new)
    assert single.embedding_.dtype == Y.dtype == np.float32
    assert double.embedding_.dtype == Z.dtype == np.float64
    # Only the input and the output are rounded: 6e-8 each, grown by the steepness of the kernel.
    assert_allclose(Y, Z, rtol=0, atol=1e-4 * np.abs(Z).max())


@every_estimator
def test_half_precision_is_read_as_single(make, X):
    half = X.astype(np.float16)
    assert_array_equal(make().fit_transform(half), make().fit_transform(half.astype(np.float32)))


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
def test_memory_layout_does_not_matter(make, affinity, X, tmp_path):
    expected = make(**affinity).fit(X)
    transformed = expected.transform(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    strided = np.repeat(X, 2, axis=0)[::2]
    for same in (
        np.asfortranarray(X),
        read_only,
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        strided,
        X.tolist(),
    ):
        model = make(**affinity).fit(same)
        assert_array_equal(model.embedding_, expected.embedding_)
        assert_array_equal(model.transform(same), transformed)


@every_affinity
@every_estimator
def test_input_is_left_alone(make, affinity, X, X_new):
    before, before_new = X.copy(), X_new.copy()
    make(**affinity).fit(X).transform(X_new)
    assert_array_equal(X, before)
    assert_array_equal(X_new, before_new)


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


@every_affinity
@every_estimator
def test_duplicates_fall_on_each_other(make, affinity, X):
    Y = make(**affinity).fit_transform(np.vstack([X, X[:5]]))
    atol = 0 if affinity["affinity"] == "knn" else 1e-12
    assert_allclose(Y[-5:], Y[:5], rtol=0, atol=atol)


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


@every_affinity
def test_midpoint_of_neighbours_lands_between_them_in_the_sketch(affinity):
    X, angle = hs.datasets.circle(60, equispaced=True)
    model = hs.HeatSketch(200, random_state=0, **affinity | {"epsilon": 0.1}).fit(X)
    middle = angle + np.pi / 60
    new = model.transform(np.c_[np.cos(middle), np.sin(middle)])
    left, right = model.embedding_, np.roll(model.embedding_, -1, axis=0)
    apart = np.linalg.norm(left - right, axis=1)
    assert (np.linalg.norm(new - left, axis=1) < apart).all()
    assert (np.linalg.norm(new - right, axis=1) < apart).all()


# Random states


def test_a_seed_gives_the_same_sketch_and_another_seed_another(X):
    first, again, other = (hs.HeatSketch(random_state=s).fit_transform(X) for s in (7, 7, 8))
    assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1 * np.abs(first).max()


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_a_generator_moves_on(source, X):
    estimator = hs.HeatSketch(random_state=source(3))
    first, second = estimator.fit_transform(X), estimator.fit_transform(X)
    assert np.abs(first - second).max() > 0.1 * np.abs(first).max()
    assert_array_equal(hs.HeatSketch(random_state=source(3)).fit_transform(X), first)


def test_without_a_seed_every_fit_is_fresh_and_the_global_state_untouched(X):
    estimator = hs.HeatSketch()
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = estimator.fit_transform(X)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert np.abs(first - estimator.fit_transform(X)).max() > 0.1 * np.abs(first).max()


def test_the_seed_does_not_show_in_a_diffusion_map():
    # Beyond 1,200 points the eigenvectors come from an iteration with a random start.
    X = np.random.default_rng(0).uniform(size=(1300, 2)) * [4, 1]
    first, second = (
        hs.DiffusionMap(3, tol=1e-10, random_state=s).fit_transform(X) for s in (0, None)
    )
    assert_allclose(first, second, rtol=0, atol=1e-6 * np.abs(first).max())


def test_row_order_decides_only_which_random_row_a_point_gets(X):
    order = np.random.default_rng(0).permutation(len(X))
    G = random_block(len(X), 4, "gaussian", 0)
    A, pi = operator_of(affinity_of(X, 1.0), "markov")
    u = np.sqrt(pi)
    common = {"affinity": "dense", "epsilon": 1.0, "random_state": 0}
    for rows, G_rows in ((slice(None), G), (order, G[np.argsort(order)])):
        expected = (np.linalg.matrix_power(A - np.outer(u, u), 3) @ G_rows) / 2 / u[:, None]
        Y = hs.HeatSketch(4, 3, **common).fit_transform(X[rows])
        assert_allclose(Y, expected[rows], rtol=0, atol=1e-10 * np.abs(expected).max())


@every_affinity
def test_row_order_permutes_a_diffusion_map(affinity, X):
    order = np.random.default_rng(0).permutation(len(X))
    F = hs.DiffusionMap(3, **affinity).fit_transform(X)
    assert_allclose(hs.DiffusionMap(3, **affinity).fit_transform(X[order]), F[order], atol=1e-9)


# The formulas of the papers


@pytest.mark.parametrize("time", [1, 2, 5])
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
@every_normalization
def test_heat_sketch_is_a_power_of_the_operator(normalization, kind, time, X):
    k = 6
    A, pi = operator_of(affinity_of(X, 1.0), normalization)
    A = A - np.sqrt(np.outer(pi, pi))
    G = random_block(len(X), k, kind, 5)
    expected = np.linalg.matrix_power(A, time) @ G / np.sqrt(k)
    expected *= row_weights(pi, normalization)[:, None]
    Y = hs.HeatSketch(
        k,
        time,
        kind=kind,
        affinity="dense",
        epsilon=1.0,
        normalization=normalization,
        tol=1e-13,
        random_state=5,
    ).fit_transform(X)
    assert_allclose(Y, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
def test_kind_says_what_is_random(kind, X):
    # The bistochastic B takes nothing but the column means off G, so that Y = B G / √k gives the
    # differences of its rows: 0 or ±2 for signs.
    B, _ = operator_of(affinity_of(X, 0.05), "bistochastic")
    Y = hs.HeatSketch(
        4, 1, kind=kind, affinity="precomputed", normalization="symmetric", random_state=0
    ).fit_transform(B)
    halves = np.diff(np.linalg.solve(B, Y) * 2, axis=0) / 2
    assert np.allclose(halves, np.round(halves), atol=1e-8) == (kind == "rademacher")


def test_a_whole_float_is_a_whole_time(X):
    three, also_three = (hs.HeatSketch(time=t, random_state=0).fit(X) for t in (3, 3.0))
    assert_array_equal(three.embedding_, also_three.embedding_)


@pytest.mark.parametrize("time", [0.3, 2.0, 20.0])
@every_normalization
def test_heat_sketch_of_the_heat_filter(normalization, time, X):
    k, n = 6, len(X)
    A, pi = operator_of(affinity_of(X, 1.0), normalization)
    off = np.eye(n) - np.sqrt(np.outer(pi, pi))
    heat = expm(time * (A - np.eye(n))) - np.exp(-time) * np.eye(n)
    expected = off @ heat @ off @ random_block(n, k, "gaussian", 5) / np.sqrt(k)
    expected *= row_weights(pi, normalization)[:, None]
    Y = hs.HeatSketch(
        k,
        time,
        filter="heat",
        affinity="dense",
        epsilon=1.0,
        normalization=normalization,
        tol=1e-13,
        random_state=5,
    ).fit_transform(X)
    assert_allclose(Y, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.statistical
@every_normalization
def test_squared_distances_are_diffusion_distances_on_average(normalization):
    """For each pair, k |y_i - y_j|² / D² is chi-square with k degrees of freedom.

    k = 100,000: standard deviation of the ratio 0.0045; three times 15 pairs at 5.6 deviations
    each give an alarm by chance in fewer than 1e-6 of all seeds. Sees a factor off by 2.5 %, so the
    power t + 1 in place of t, and any other power of k.
    """
    X, k, time = np.random.default_rng(4).normal(size=(6, 2)), 100_000, 2
    A, pi = operator_of(affinity_of(X, 1.5), normalization)
    weights = row_weights(pi, normalization)[:, None]
    i, j = np.triu_indices(6, 1)

    def squared(power):
        # D of rows of A^t less the trivial direction, which sketches leave out.
        rows = np.linalg.matrix_power(A - np.sqrt(np.outer(pi, pi)), power) * weights
        return ((rows[i] - rows[j]) ** 2).sum(axis=1)

    Y = hs.HeatSketch(
        k, time, affinity="dense", epsilon=1.5, normalization=normalization, random_state=0
    ).fit_transform(X)
    found, bound = ((Y[i] - Y[j]) ** 2).sum(axis=1), 5.6 * np.sqrt(2 / k)
    assert np.abs(found / squared(time) - 1).max() < bound
    assert np.abs(found / squared(time + 1) - 1).max() > bound


@pytest.mark.parametrize("time", [1, 3, 10])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_diffusion_map_is_algorithm_3(normalization, time, X):
    A, _ = operator_of(affinity_of(X, 1.0), normalization)
    values, vectors = np.linalg.eigh(A)
    expected = (values**time * vectors)[:, ::-1][:, 1:5]
    model = hs.DiffusionMap(
        4, time, affinity="dense", epsilon=1.0, normalization=normalization, tol=1e-13
    ).fit(X)
    assert_equal_up_to_signs(model.embedding_, expected, 1e-10)
    assert_allclose(model.eigenvalues_, values[::-1][1:5], rtol=1e-10)
    assert_allclose(A @ model.eigenvectors_, model.eigenvectors_ * model.eigenvalues_, atol=1e-10)
    assert (model.residuals_ < 1e-12).all()


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 0.3])
def test_markov_form_holds_the_right_eigenvectors_of_the_walk(alpha, X):
    n = len(X)
    P = walk_of(affinity_of(X, 1.0), alpha)
    model = hs.DiffusionMap(n - 1, affinity="dense", epsilon=1.0, alpha=alpha).fit(X)
    pi, R, lam = model.diffusion_.measure, model.eigenvectors_, model.eigenvalues_
    assert_allclose(pi @ P, pi, rtol=1e-12)
    assert_allclose(R.T @ (pi[:, None] * R), np.eye(n - 1), rtol=0, atol=1e-10)
    assert_allclose(P @ R, lam * R, rtol=0, atol=1e-10 * np.abs(R).max())
    assert_allclose(pi @ R, 0, rtol=0, atol=1e-11)
    assert_allclose(model.embedding_, lam * R, rtol=0, atol=1e-10)


@pytest.mark.parametrize("filter", ["power", "heat"])
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_automatic_time_is_the_smallest_that_lets_the_rest_vanish(filter, n_components, X):
    delta = 0.05
    common = {"affinity": "dense", "epsilon": 1.0, "filter": filter}
    model = hs.DiffusionMap(n_components, "auto", delta=delta, **common).fit(X)
    lam = hs.DiffusionMap(n_components + 1, **common).fit(X).eigenvalues_
    t = model.time_
    assert model.embedding_.shape == (len(X), n_components)
    if filter == "power":  # (29), whole t
        ratio = lam[-1] / lam[0]
        assert t == int(t)
        assert ratio**t <= delta < ratio ** (t - 1)
        assert_allclose(model.embedding_, lam[:-1] ** t * model.eigenvectors_, atol=1e-12)
    else:  # the same share of e^{-t(1-λ)}, real t
        assert np.exp(-t * (lam[0] - lam[-1])) == pytest.approx(delta)


def test_automatic_time_is_at_least_one():
    clouds, _ = hs.datasets.gaussian_clouds(90, separation=6.0, rng=0)
    model = hs.DiffusionMap(2, "auto", affinity="dense", epsilon=60.0, delta=0.9).fit(clouds)
    assert model.time_ == 1


@pytest.mark.parametrize("filter", ["power", "heat"])
@pytest.mark.parametrize("time", [1, 3])
@pytest.mark.parametrize("delta", [0.5, 0.2, 0.02])
def test_automatic_components_are_those_that_matter(delta, time, filter, X):
    # (26): s = max{m : |λ_m|^t > δ |λ_1|^t}; with the heat filter e^{-t(1-λ)} in place of λ^t.
    A, _ = operator_of(affinity_of(X, 2.0), "markov")
    lam = np.linalg.eigvalsh(A)[::-1][1:]
    share = (lam / lam[0]) ** time if filter == "power" else np.exp(-time * (lam[0] - lam))
    expected = int(np.flatnonzero(share > delta)[-1]) + 1
    assert filter == "heat" or 1 < expected < len(X) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hs.DiffusionMap(
            "auto", time, delta=delta, filter=filter, affinity="dense", epsilon=2.0
        ).fit(X)
    assert model.embedding_.shape == (len(X), expected)


def test_automatic_components_serve_every_time(X):
    common = {"delta": 0.1, "affinity": "dense", "epsilon": 2.0}
    alone = [hs.DiffusionMap("auto", t, **common).fit(X).eigenvalues_ for t in (3, 1, 2)]
    model = hs.DiffusionMap("auto", [3, 1, 2], **common).fit(X)
    assert len(model.eigenvalues_) == max(map(len, alone)) > min(map(len, alone))


def test_generator_of_the_circle_has_the_laplacian_eigenvalues():
    # λ_m = I_m(2/ε) / I_0(2/ε), so (1-λ)·4/ε = m² - m²(m²-2) ε/8 + O(ε²): the expansion of the
    # Bessel functions. Dividing ε by two divides the error by two.
    X, _ = hs.datasets.circle(400, equispaced=True)
    m2 = np.repeat([1, 2, 3], 2) ** 2
    errors = []
    for epsilon in (0.04, 0.02):
        lam = hs.DiffusionMap(6, affinity="dense", epsilon=epsilon).fit(X).eigenvalues_
        errors.append((1 - lam) * 4 / epsilon - m2)
        first_order = -m2 * (m2 - 2) * epsilon / 8
        assert_allclose(errors[-1], first_order, rtol=0, atol=m2.max() ** 3 * epsilon**2 / 32)
    assert_allclose(errors[0] / errors[1], 2, rtol=0.05)


def test_heat_and_power_filters_weigh_the_same_eigenvectors(X):
    common = {"affinity": "dense", "epsilon": 1.0}
    power = hs.DiffusionMap(4, 3, **common).fit(X)
    heat = hs.DiffusionMap(4, 3.5, filter="heat", **common).fit(X)
    lam = power.eigenvalues_
    assert_array_equal(heat.eigenvectors_, power.eigenvectors_)
    assert_allclose(power.embedding_, lam**3 * power.eigenvectors_, atol=1e-12)
    weights = np.exp(-3.5 * (1 - lam)) - np.exp(-3.5)
    assert_allclose(heat.embedding_, weights * power.eigenvectors_, atol=1e-12)


def test_real_powers_of_a_diffusion_map(X):
    model = hs.DiffusionMap(3, 2.5, affinity="dense", epsilon=1.0).fit(X)
    assert_allclose(model.embedding_, model.eigenvalues_**2.5 * model.eigenvectors_, atol=1e-12)


# The defaults are good for something


def neighbour_accuracy(F, label):
    """Share of points whose label most of their 10 nearest others have."""
    neighbours = NearestNeighbors(n_neighbors=10).fit(F).kneighbors(return_distance=False)
    votes = (label[neighbours][:, :, None] == np.unique(label)).sum(axis=1)
    return np.mean(np.unique(label)[votes.argmax(axis=1)] == label)


def test_default_diffusion_map_unrolls_the_swiss_roll():
    X, flat = hs.datasets.swiss_roll(2000, rng=0)
    F = hs.DiffusionMap(random_state=0).fit_transform(X)
    assert abs(spearmanr(F[:, 0], flat[:, 0]).statistic) > 0.99
    assert abs(spearmanr(X[:, 0], flat[:, 0]).statistic) < 0.9  # nothing a coordinate could tell


def test_default_sketch_keeps_separated_clouds_apart():
    X, label = hs.datasets.gaussian_clouds(600, dim=50, separation=6.0, rng=0)
    assert neighbour_accuracy(hs.HeatSketch(random_state=0).fit_transform(X), label) > 0.99


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_default_sketch_of_digits_is_no_worse_than_the_pixels(seed):
    X, label = hs.datasets.digits()
    Y = hs.HeatSketch(random_state=seed).fit_transform(X)
    assert neighbour_accuracy(Y, label) >= 0.982


# Errors: got and want


def both(got, want):
    return rf"(?s)(?=.*(?:{got}))(?=.*(?:{want}))"


BAD_PARAMETERS = [
    ({"n_components": 0}, ValueError, "n_components=0", "integer >= 1"),
    ({"n_components": 2.0}, TypeError, "n_components=2.0", "integer >= 1"),
    ({"n_components": True}, TypeError, "n_components=True", "integer >= 1"),
    ({"n_components": "many"}, (TypeError, ValueError), "n_components='many'", "integer >= 1"),
    ({"time": 0}, ValueError, "time=0", ">= 1"),
    ({"time": -1}, ValueError, "time=-1", ">= 1"),
    ({"time": "long"}, TypeError, "time='long'", "a number >= 1"),
    ({"time": []}, ValueError, "time is an empty", "one or more"),
    ({"time": np.nan}, ValueError, "time=nan", "a number >= 1"),
    ({"time": 0.0, "filter": "heat"}, ValueError, "time=0.0", "> 0"),
    ({"filter": "cold"}, ValueError, "filter='cold'", "'power', 'heat'"),
    ({"affinity": "angle"}, ValueError, "affinity='angle'", "'knn', 'dense', 'radius'"),
    ({"affinity": None}, ValueError, "affinity=None", "'precomputed'"),
    ({"epsilon": 0.0}, ValueError, "epsilon=0.0", "> 0"),
    ({"epsilon": -1}, ValueError, "epsilon=-1", "> 0"),
    ({"epsilon": "best"}, ValueError, "epsilon='best'", "'ksum', 'median', 'nearest'"),
    ({"epsilon": None}, TypeError, "epsilon=None", "a number"),
    ({"affinity": "radius"}, ValueError, "epsilon='self-tuning'", "'ksum'"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors=0", "integer >= 1"),
    ({"n_neighbors": 3.5}, TypeError, "n_neighbors=3.5", "integer >= 1"),
    ({"normalization": "none"}, ValueError, "normalization='none'", "'bistochastic'"),
    ({"alpha": "one"}, TypeError, "alpha='one'", "a number"),
    ({"normalization": "bistochastic", "tol": 0}, ValueError, "tol=0", "> 0"),
    ({"normalization": "bistochastic", "max_iter": 0}, ValueError, "max_iter=0", ">= 1"),
]
BAD_ESTIMATORS = [
    (hs.HeatSketch(kind="uniform"), ValueError, "kind='uniform'", "'rademacher'"),
    (hs.HeatSketch(time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.HeatSketch(random_state="dice"), (TypeError, ValueError), "dice", ""),
    (hs.DiffusionMap(60), ValueError, "n_components=60", "n_components <= 59"),
    (hs.DiffusionMap(time=-0.5), ValueError, "time=-0.5", ">= 0"),
    (hs.DiffusionMap(59, time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.DiffusionMap(time="auto", delta=0), ValueError, "delta=0", "> 0"),
    (hs.DiffusionMap("auto", delta=1.5), ValueError, "delta=1.5", "< 1"),
    (hs.DiffusionMap("auto", delta=1), ValueError, "delta=1.0", "< 1"),
    (hs.DiffusionMap("auto", "auto"), ValueError, "time='auto'", "n_components"),
    (hs.DiffusionMap("auto", "long"), TypeError, "time='long'", "a number >= 0"),
    (hs.DiffusionMap(2, ["auto", 3]), ValueError, "time='auto'", "one time"),
]


@pytest.mark.parametrize(
    ("changes", "error", "got", "want"), BAD_PARAMETERS, ids=[row[2] for row in BAD_PARAMETERS]
)
@every_estimator
def test_parameter_errors_say_what_came_and_what_is_wanted(make, changes, error, got, want, X):
    if isinstance(make(), hs.DiffusionMap) and "filter" not in changes and "time" in changes:
        if changes["time"] == 0:  # the eigenvectors themselves: test_diffusion_map
            return
        want = want.replace(">= 1", ">= 0")
    with pytest.raises(error, match=both(got, want)):
        make(**changes).fit(X)


@pytest.mark.parametrize(
    ("estimator", "error", "got", "want"), BAD_ESTIMATORS, ids=[row[2] for row in BAD_ESTIMATORS]
)
def test_errors_of_one_estimator(estimator, error, got, want, X):
    with pytest.raises(error, match=both(got, want)):
        estimator.fit(X)


@every_estimator
def test_transform_before_fit(make, X):
    for call in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(make(), call)(X)


@every_affinity
@every_estimator
def test_wrong_number_of_features(make, affinity, X):
    model = make(**affinity).fit(X)
    with pytest.raises(ValueError, match=both("2 features", "3 features")):
        model.transform(X[:, :2])


@every_estimator
def test_precomputed_has_to_be_an_affinity(make, X, X_new):
    K = affinity_of(X, 1.0)
    lopsided = K.copy()
    lopsided[0, 1] += 0.5
    for bad, message in ((K[:, :-1], "square"), (lopsided, "not symmetric"), (-K, "Negative")):
        with pytest.raises(ValueError, match=message):
            make(affinity="precomputed").fit(bad)
    with pytest.raises(ValueError, match=both("59 features", "60 features")):
        make(affinity="precomputed").fit(K).transform(K[:3, :-1])


def test_the_time_chosen_for_the_heat_filter_is_that_of_exponentials_not_of_moduli():
    """e^{-t(λ_1 - λ_{k+1})} = δ at the time chosen, negative eigenvalues or not."""
    path = path_graph(8)  # bipartite: λ and -λ
    model = hs.DiffusionMap(5, "auto", filter="heat", delta=0.2, affinity="precomputed", alpha=0)
    model.fit(path)
    lam = np.sort(np.linalg.eigvalsh(hs.Diffusion.from_graph(path).operator @ np.eye(8)))[::-1]
    assert lam[6] < 0
    np.testing.assert_allclose(np.exp(-model.time_ * (lam[1] - lam[6])), 0.2, rtol=1e-9)
