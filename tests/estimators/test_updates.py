"""Points that come and go: rows that stay keep every bit, and a refresh is a new fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from problems.clouds import cloud

N, NEW = 150, 20


def names(count, start=0):
    return np.array([f"p{i}" for i in range(start, start + count)])


def fitted(X=None, **options):
    X = cloud(N, 3, seed=1) if X is None else X
    return hs.HeatSketch(8, **{"time": 4, "random_state": 0} | options).fit(
        X, ids=names(X.shape[0])
    )


FORMS = [
    {},
    {"normalization": "bistochastic"},
    {"affinity": "dense", "epsilon": 1.0},
    {"time": [2, 8]},
    {"metric": "cosine"},
    {"neighbors": KNeighborsTransformer(n_neighbors=15)},
]


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_points_that_come_and_go_leave_nothing_behind_and_a_refresh_is_a_fit(options):
    X, new, removed = cloud(N, 3, seed=1), cloud(NEW, 3, seed=2), np.arange(0, N, 10)
    model = fitted(X, **options)
    Y = model.embedding_
    model.update(new, ids=names(NEW, N))
    assert_array_equal(model.embedding_, np.vstack([Y, model.transform(new)]))
    assert_array_equal(model.ids_, names(N + NEW))
    model.update(removed=np.arange(N, N + NEW))
    assert_array_equal(model.embedding_, Y)
    assert_array_equal(model.ids_, names(N))
    model.update(new, removed, ids=names(NEW, N))
    assert_array_equal(model.embedding_[:-NEW], np.delete(Y, removed, axis=0))
    there = np.vstack([np.delete(X, removed, axis=0), new])
    ids = np.concatenate([np.delete(names(N), removed), names(NEW, N)])
    fresh = clone(model).fit(there, ids=ids)
    model.refresh()
    assert_array_equal(model.ids_, ids)
    size = np.abs(fresh.embedding_).max()
    assert_allclose(model.embedding_, fresh.embedding_, rtol=0, atol=1e-9 * size)


def test_points_of_the_same_distribution_move_rows_by_about_the_root_of_their_fraction():
    X = np.random.default_rng(3).uniform(size=(1000, 2))
    fraction = 0.05
    model = fitted(X[50:]).update(X[:50], ids=names(50, 1000))
    Y, fresh = model.embedding_, clone(model).fit(np.vstack([X[50:], X[:50]]), ids=model.ids_)
    moved = np.linalg.norm(Y - fresh.embedding_) / np.linalg.norm(fresh.embedding_)
    assert 0.8 * np.sqrt(fraction) < moved < 1.3 * np.sqrt(fraction)


def test_what_speaks_of_the_diffusion_asks_for_a_refresh():
    """One point of 300 replaced: the operators differed by 114 % of their size."""
    X = cloud(300, 3, seed=1)
    model, same = fitted(X), fitted(X)
    model.update(X[7:8], removed=7, ids=["p7"])
    questions = [
        lambda: model.pseudotime(7),
        lambda: model.explained_diffusion_variance(),
        lambda: hs.diffusion_discrepancy(model, same, rng=0),
        lambda: hs.data_interval(model, X[:3], np.ptp, rng=0),
        lambda: hs.audit(model, X[:, :2], random_state=0),
        lambda: hs.report(model),
    ]
    for ask in questions:
        with pytest.raises(ValueError, match=r"call refresh\(\) first"):
            ask()
    model.refresh()
    assert hs.diffusion_discrepancy(model, same, rng=0).value < 1e-6
    assert model.pseudotime(299).value[299] == 0
    assert model.ids_[299] == "p7"


def test_an_audit_stays_that_of_the_sketch_that_it_was_given():
    """Whatever becomes of the sketch: an update, other parameters, another fit."""
    X = cloud(200, 3, seed=1)
    expected = hs.audit(fitted(X), X[:, :2], random_state=0).describe()
    changes = [
        lambda model: model.update(X[7:8], removed=7, ids=["p7"]),
        lambda model: model.set_params(time=1, filter="heat"),
        lambda model: model.fit(X[::-1] ** 3, ids=names(200)),
    ]
    for change in changes:
        model = fitted(X)
        audit = hs.audit(model, X[:, :2], random_state=0)
        change(model)
        assert audit.describe() == expected


def test_sparse_points_come_and_go():
    X, new = sparse.random(60, 20, 0.4, "csr", rng=0), sparse.random(6, 20, 0.4, "csr", rng=1)
    model = fitted(X, metric="cosine").update(new, [0, 59], ids=names(6, 60))
    assert model.refresh().embedding_.shape == (64, 8)


def test_the_names_of_features_survive_a_refresh():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(cloud(40, 2, seed=5), columns=["a", "b"])
    model = fitted(X).update(removed=3).refresh()
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.update(X[3:4], ids=["p3"]).embedding_.shape == (40, 8)


def test_other_questions_go_on_after_an_update():
    model = fitted().update(cloud(NEW, 3, seed=2), ids=names(NEW, N))
    before = model.neighbor_confidence_
    assert before.shape == (N + NEW,)
    assert model.update(removed=0).neighbor_confidence_.shape == (N + NEW - 1,)
    assert np.isfinite(model.distance(0, N + 5)).all()


@pytest.mark.parametrize(
    ("arguments", "ids", "error", "message"),
    [
        ({"removed": [N]}, None, ValueError, "removed has indices out of range"),
        ({"removed": [-1]}, None, ValueError, "removed has indices out of range"),
        ({"removed": [0.5]}, None, TypeError, "rows of embedding_"),
        ({"removed": np.arange(N - 1)}, None, ValueError, "leave at least two"),
        ({"added": cloud(2, 3)}, None, ValueError, "ids are missing"),
        ({"added": cloud(2, 3)}, ["p3", "q"], ValueError, "'p3' twice"),
        ({"added": cloud(2, 3)}, [1, 2], TypeError, "ids of one kind"),
        ({"added": cloud(2, 4)}, ["q", "r"], ValueError, "features"),
    ],
)
def test_wrong_updates_are_refused_and_change_nothing(arguments, ids, error, message):
    model = fitted()
    Y = model.embedding_
    with pytest.raises(error, match=message):
        model.update(**arguments, ids=ids)
    assert model.embedding_ is Y


def test_models_without_ids_or_points_have_no_updates():
    X = cloud(30, 2, seed=0)
    with pytest.raises(ValueError, match="no ids"):
        hs.HeatSketch(2, n_neighbors=5).fit(X).update(removed=0)
    K = hs.gaussian_affinity(X, epsilon=1.0)
    given = hs.HeatSketch(2, affinity="precomputed").fit(K, ids=range(30))
    with pytest.raises(ValueError, match="not built from points"):
        given.update(removed=0)
    index = hs.neighbors.NeighborIndex(X)
    found = hs.HeatSketch(2, n_neighbors=5, neighbors=index).fit(X, ids=range(30))
    with pytest.raises(ValueError, match="points of the fit alone"):
        found.update(removed=0)


def test_a_saved_model_knows_its_points(tmp_path):
    model = fitted().update(cloud(2, 3, seed=6), removed=[0, 1], ids=["q", "r"])
    hs.save_model(model, tmp_path / "model")
    found = hs.load_model(tmp_path / "model")
    assert_array_equal(found.ids_, model.ids_)
    assert_array_equal(found.refresh().embedding_, model.refresh().embedding_)


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_points_are_added_in_any_metric(metric):
    X = cloud(120, 3, seed=5)
    model = hs.HeatSketch(5, metric=metric, random_state=0).fit(X[:100], ids=range(100))
    refreshed = model.update(X[100:], ids=range(100, 120)).refresh()
    whole = hs.HeatSketch(5, metric=metric, random_state=0).fit(X, ids=range(120))
    assert_allclose(refreshed.embedding_, whole.embedding_, atol=1e-12)
