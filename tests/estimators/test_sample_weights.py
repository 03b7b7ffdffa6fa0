"""Points that count more or less often: whole weights are repeated rows, 0 is a place alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import heatsketch as hs
from heatsketch.scales import rule_epsilon
from problems.checks import up_to_signs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3)) + 1.5 * (np.arange(50) % 2)[:, None]
NEW = RNG.normal(size=(9, 3))
WHOLE = RNG.integers(1, 5, 50)
REPEATED = np.repeat(np.arange(50), WHOLE)
FIRST = np.r_[0, np.cumsum(WHOLE)[:-1]]  # the first copy of each point
DENSE = {"affinity": "dense", "epsilon": 3.0}
ESTIMATORS = [
    hs.DiffusionMap(3, 2),
    hs.HeatSketch(6, 2, random_state=0),
    hs.HeatEmbedding(2, 2, random_state=0),
    hs.HeatEmbedding(2, 2, layout="linear", random_state=0),
]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=["map", "sketch", "free", "linear"]
)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [3.0, "self-tuning", "ksum", "median"])
def test_whole_weights_are_repeated_rows(epsilon, alpha):
    how = {"affinity": "dense", "epsilon": epsilon, "alpha": alpha, "random_state": 0}
    weighed = hs.DiffusionMap(3, 2, **how).fit(X, sample_weight=WHOLE)
    repeated = hs.DiffusionMap(3, 2, **how).fit(X[REPEATED])
    assert_allclose(weighed.eigenvalues_, repeated.eigenvalues_, atol=1e-10)
    want = up_to_signs(repeated.embedding_[FIRST], weighed.embedding_)
    assert_allclose(weighed.embedding_, want, atol=1e-10)
    want = up_to_signs(repeated.transform(NEW), weighed.transform(NEW))
    assert_allclose(weighed.transform(NEW), want, atol=1e-10)


@pytest.mark.parametrize("filter", ["power", "heat", "accumulated"])
def test_diffusion_distances_are_those_of_repeated_rows(filter):
    i, j = np.triu_indices(50, 1)
    weighed = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    repeated = hs.diffusion(X[REPEATED], **DENSE)
    found = hs.diffusion_distance(weighed, 3, pairs=(i, j), filter=filter)
    want = hs.diffusion_distance(repeated, 3, pairs=(FIRST[i], FIRST[j]), filter=filter)
    assert_allclose(found, want, rtol=1e-10)


def test_the_measure_of_repeated_rows_adds_up():
    weighed = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    repeated = hs.diffusion(X[REPEATED], **DENSE)
    want = np.add.reduceat(repeated.expand(repeated.measure), FIRST)
    assert_allclose(weighed.expand(weighed.measure), want, rtol=1e-10)


def test_precomputed_affinities_are_weighed_alike():
    K = hs.gaussian_affinity(X, 3.0)
    given = hs.Diffusion.from_affinity(K, sample_weight=WHOLE)
    points = hs.diffusion(X, **DENSE, sample_weight=WHOLE)
    assert_allclose(given.expand(given.measure), points.expand(points.measure), rtol=1e-12)


@every_estimator
def test_equal_weights_of_any_size_are_none(estimator):
    one = estimator.fit_transform(X)
    assert_allclose(estimator.fit_transform(X, sample_weight=np.ones(50)), one, atol=1e-9)
    more = estimator.fit_transform(X, sample_weight=np.full(50, 4.0))  # whose root is exact
    assert_allclose(more, one, atol=1e-9)


@every_estimator
def test_training_points_get_the_places_of_transform(estimator):
    weights = RNG.uniform(0.1, 5, 50)
    model = estimator.fit(X, sample_weight=weights)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)


@every_estimator
def test_a_point_with_weight_0_is_placed_and_does_not_count(estimator):
    weights = np.where(np.arange(50) % 5, 2.0, 0.0)
    counted = weights > 0
    model = estimator.fit(X, sample_weight=weights)
    Y = model.embedding_.copy()
    alone = estimator.fit(X[counted], sample_weight=weights[counted])
    assert_array_equal(Y[counted], alone.embedding_)
    assert_array_equal(Y[~counted], alone.transform(X[~counted]))


MANY = RNG.normal(size=(120, 3)) + 3 * (np.arange(120) % 2)[:, None]
ZEROS = np.where(np.arange(120) % 5, 2.0, 0.0)
COUNTED = np.flatnonzero(ZEROS)
NAMED = [f"bird {i}" for i in range(120)]


def shape_of_pseudotime(model, rows, root):
    """Return it but for its unit, which is the farthest of all points."""
    late = model.pseudotime(root).value[rows]
    return late / late.max()


# From a model and the numbers of rows: the same by a model of all, and by one of these rows alone.
METHODS = {
    "places": lambda m, rows: m.embedding_[rows],
    "scales": lambda m, rows: m.epsilon_[rows],
    "eigenvectors": lambda m, rows: np.abs(m.eigenvectors_[rows]),
    "ids": lambda m, rows: m.ids_[rows].tolist(),
    "components": lambda m, rows: m.diffusion_.component_of[rows],
    "distances": lambda m, rows: hs.diffusion_distance(
        m.diffusion_, 3, pairs=(rows[:40], rows[40:80])
    ),
    "distances of a sketch": lambda m, rows: m.distance(rows[:40], rows[40:80]).low,
    "pseudotime": lambda m, rows: shape_of_pseudotime(m, rows, rows[3]),
    "pseudotime of several": lambda m, rows: shape_of_pseudotime(m, rows, rows[[3, 8]]),
    "pseudotime of a mask": lambda m, rows: shape_of_pseudotime(
        m, rows, np.isin(np.arange(len(m.embedding_)), rows[[3, 8]])
    ),
    "pseudotime of zeros and ones": lambda m, rows: shape_of_pseudotime(
        m, rows, np.isin(np.arange(len(m.embedding_)), rows[[3, 8]]).astype(int)
    ),
    "variance": lambda m, rows: m.explained_diffusion_variance().cumulative,
    "novelty": lambda m, rows: m.novelty(NEW),
    "sensitivity": lambda m, rows: m.sensitivity(NEW),
    "points": lambda m, rows: m.inverse_transform(m.transform(NEW)),
    "data interval": lambda m, rows: hs.data_interval(
        m, NEW, lambda Y: np.linalg.norm(Y[1] - Y[0]), n_resamples=20, rng=0
    )[:3],
    "discrepancy": lambda m, rows: (
        hs.diffusion_discrepancy(m, hs.HeatSketch(2).fit(MANY, ids=NAMED), rng=0).per_point
    ),
    "score": lambda m, rows: hs.metrics.diffusion_distortion(m.embedding_, m.diffusion_, 2).log_L,
    "quality": lambda m, rows: m.quality_,
    "distortion": lambda m, rows: m.distortion_.describe(),
}
OF_SOME = {"eigenvectors": [0], "distances of a sketch": [1], "quality": [2], "distortion": [2]}


@pytest.fixture(scope="module")
def beside_and_alone():
    """Models of rows of which some have the weight 0, and of the others alone, with their ids."""
    how = {"weight 0": (MANY, ZEROS, NAMED)}
    how["alone"] = MANY[COUNTED], ZEROS[COUNTED], [NAMED[i] for i in COUNTED]
    return [
        [clone(one).fit(rows, sample_weight=w, ids=ids) for rows, w, ids in how.values()]
        for one in ESTIMATORS[:3]
    ]


@pytest.mark.parametrize(
    ("method", "at"), [(name, i) for name in METHODS for i in OF_SOME.get(name, range(3))]
)
def test_every_method_counts_rows_and_leaves_out_those_of_weight_0(beside_and_alone, method, at):
    model, alone = beside_and_alone[at]
    found, want = METHODS[method](model, COUNTED), METHODS[method](alone, np.arange(96))
    if isinstance(want, list | str):
        assert found == want
    else:
        assert_allclose(found, want, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("affinity", ["knn", "dense"])
@pytest.mark.parametrize("root", [3, 5])  # of weight 1 and 0
def test_rows_of_weight_0_walk_to_the_others(affinity, root):
    """By dense matrices: the rows of Σ_(s >= 8) S A^(s-1), S the step of each row, without √π."""
    how = {"affinity": affinity, "epsilon": 3.0 if affinity == "dense" else "self-tuning"}
    model = hs.DiffusionMap(2, 2, **how).fit(MANY, sample_weight=ZEROS)
    d = model.diffusion_
    A, root_pi = d.operator @ np.eye(d.n), np.sqrt(d.measure)
    steps = d.kernel_rows(MANY)
    steps = steps.toarray() if affinity == "knn" else steps
    S = steps / (steps @ root_pi)[:, None]
    A = A - np.outer(root_pi, root_pi)
    rows = S @ np.linalg.matrix_power(A, 7) @ np.linalg.inv(np.eye(d.n) - A)
    rows -= (rows @ root_pi)[:, None] * root_pi
    want = np.linalg.norm(rows - rows[root], axis=1)
    found = model.pseudotime(root)
    assert_allclose(found.value, want / want.max(), rtol=1e-6, atol=1e-9)
    assert_array_equal(found.low, found.high)
    rows = S @ A @ A  # time 3
    i, j = np.triu_indices(120, 1)
    want = np.linalg.norm(rows[i] - rows[j], axis=1)
    assert_allclose(hs.diffusion_distance(d, 3), want, rtol=1e-7, atol=1e-12)


def test_of_two_components_those_of_weight_0_have_theirs():
    two = np.vstack([MANY, MANY + 1000])
    w = np.concatenate([ZEROS, ZEROS[::-1]])
    with pytest.warns(hs.DisconnectedWarning):
        model = hs.HeatEmbedding(random_state=0).fit(two, sample_weight=w)
    assert_array_equal(np.diff(model.diffusion_.component_of) != 0, np.arange(239) == 119)
    late = model.pseudotime(121).value
    assert np.isinf(late[:120]).all()
    assert np.isfinite(late[120:]).all()
    alone = hs.DiffusionMap().fit(MANY, sample_weight=ZEROS[::-1]).pseudotime(1).value
    assert_allclose(late[120:], alone, rtol=1e-6, atol=1e-9)
    within = [pairs // 120 for pairs in model.distortion_.worst_pairs.values()]
    assert all((pair[:, 0] == pair[:, 1]).all() for pair in within)


@pytest.mark.parametrize("at", range(3))
def test_pages_audits_and_files_show_all_rows(beside_and_alone, at, tmp_path):
    model, alone = beside_and_alone[at]
    facts = hs.report(model, MANY, labels=np.arange(120) % 2, ids=NAMED).facts
    assert facts["n_points"] == 120
    assert facts["again"] is None
    want = hs.report(alone, MANY[COUNTED]).facts
    for end, pairs in want["distortion"]["worst_pairs"].items():
        assert_array_equal(facts["distortion"]["worst_pairs"][end], COUNTED[pairs])
    assert facts["ksum"]["slopes"] == pytest.approx(want["ksum"]["slopes"])
    found = hs.audit(model, MANY, random_state=0)
    assert len(found.trust) == 120
    assert np.isfinite(found.trust).all()
    hs.save_model(model, tmp_path / "a.model")
    again = hs.load_model(tmp_path / "a.model")
    assert_array_equal(again.pseudotime(3).value, model.pseudotime(3).value)


def test_warnings_of_places_name_the_rows():
    far = MANY.copy()
    far[10] += 1e6
    with pytest.warns(hs.ScaleWarning, match=r"rows 10\)"):
        hs.DiffusionMap().fit(far, sample_weight=ZEROS)


def test_heavier_points_pull_more_at_a_new_one():
    places = hs.HeatEmbedding(2, 2, layout="free", random_state=0)
    model = places.fit(X, sample_weight=np.ones(50))
    near = model.diffusion_.near(NEW).attraction()
    doubled = places.fit(X, sample_weight=np.full(50, 2.0)).diffusion_.near(NEW).attraction()
    assert_allclose(doubled.toarray(), 2 * near.toarray(), rtol=1e-12)


def test_ksum_and_the_median_are_those_of_repeated_rows():
    weighed, repeated = hs.ksum(X, sample_weight=WHOLE), hs.ksum(X[REPEATED])
    assert_allclose(weighed.slopes, repeated.slopes, rtol=1e-10)
    assert weighed.epsilon == pytest.approx(repeated.epsilon, rel=1e-10)
    zeros = np.where(np.arange(50) < 40, 1, 0)
    assert hs.ksum(X, sample_weight=zeros).epsilon == pytest.approx(hs.ksum(X[:40]).epsilon)
    assert rule_epsilon(X, "median", None, WHOLE) == pytest.approx(
        rule_epsilon(X[REPEATED], "median")
    )


def test_resampling_counts_the_weights_of_the_fit():
    model = hs.DiffusionMap(2, 2, **DENSE, random_state=0).fit(X, sample_weight=WHOLE)
    again = model._under_weights(NEW)(np.ones(50))
    assert_allclose(up_to_signs(again, model.transform(NEW)), model.transform(NEW), atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.ones(49), "one number for each"),
        (-np.ones(50), "out of range"),
        (np.full(50, np.nan), "not finite"),
        (np.append(np.ones(49), np.inf), "sums up to infinity"),
        (np.zeros(50), "zero for all points"),
        (["a"] * 50, "one number for each"),
    ],
)
def test_wrong_weights_are_refused(weights, says):
    with pytest.raises(ValueError, match=says):
        hs.DiffusionMap().fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=says):
        hs.ksum(X, sample_weight=weights)


def test_weights_need_a_form_that_they_fit():
    for how in ({"normalization": "symmetric"}, {"normalization": "bistochastic"}):
        with pytest.raises(ValueError, match="normalization='markov'"):
            hs.DiffusionMap(**how).fit(X, sample_weight=WHOLE)
    with pytest.raises(ValueError, match="cannot be weighed"):
        hs.DiffusionMap(affinity="variable").fit(X, sample_weight=WHOLE)
    with pytest.raises(ValueError, match="weights of its own"):
        hs.DiffusionMap(affinity="precomputed").fit(hs.diffusion(X), sample_weight=WHOLE)
    sketch = hs.HeatSketch(4, random_state=0).fit(X, ids=range(50), sample_weight=WHOLE)
    with pytest.raises(ValueError, match="have weights"):
        sketch.update(NEW, ids=range(50, 59))


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.DiffusionMap, hs.HeatEmbedding])
@pytest.mark.parametrize(
    "options", [{}, {"affinity": "radius", "epsilon": 3.0}, {"affinity": "dense"}], ids=str
)
def test_weights_that_leave_one_point_are_refused(make, options):
    with pytest.raises(ValueError, match=r"above 0 for 1 point\(s\); pass weights above 0 of at"):
        make(1, **options).fit(X, sample_weight=np.eye(len(X))[0])
