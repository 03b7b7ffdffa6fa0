"""Points that come and go: rows that stay keep every bit, and staleness measures the rest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from problems.clouds import cloud

ALARM = 1e-6
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
def test_points_put_in_and_taken_out_leave_nothing_behind(options):
    model, new = fitted(**options), cloud(NEW, 3, seed=2)
    Y, ids = model.embedding_, model.ids_
    model.update(new, ids=names(NEW, N))
    assert_array_equal(model.embedding_, np.vstack([Y, model.transform(new)]))
    assert_array_equal(model.ids_, names(N + NEW))
    model.update(removed=np.arange(N, N + NEW))
    assert_array_equal(model.embedding_, Y)
    assert_array_equal(model.ids_, ids)
    assert model._changes.added is None


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_a_refresh_is_a_fit_of_the_points_there(options):
    X, new = cloud(N, 3, seed=1), cloud(NEW, 3, seed=2)
    model = fitted(X, **options)
    removed = np.arange(0, N, 10)
    Y = np.delete(model.embedding_, removed, axis=0)
    model.update(new, removed, ids=names(NEW, N))
    assert_array_equal(model.embedding_[: len(Y)], Y)
    there = np.vstack([np.delete(X, removed, axis=0), new])
    ids = np.concatenate([np.delete(names(N), removed), names(NEW, N)])
    fresh = clone(model).fit(there, ids=ids)
    model.refresh()
    assert_array_equal(model.ids_, ids)
    size = np.abs(fresh.embedding_).max()
    assert_allclose(model.embedding_, fresh.embedding_, rtol=0, atol=1e-9 * size)
    found = model.staleness(time=8 if "time" in options else None)
    assert found.value < 1e-8 * found.size


def test_a_point_that_comes_back_has_its_row_again():
    X = cloud(N, 3, seed=1)
    model = fitted(X)
    Y = model.embedding_
    model.update(removed=7).update(X[7:8], ids=["p7"])
    assert_array_equal(model.embedding_, np.vstack([Y[:7], Y[8:], model.transform(X[7:8])]))
    assert_allclose(model.embedding_[-1], Y[7], rtol=0, atol=1e-10 * np.abs(Y).max())


def rows_by_id(d, time, ids, points, every):
    """Return the rows R of points with columns in the order of `every`: no vertex is shared."""
    R = d.rows(time, points).of(np.arange(len(points) if points is not None else d.n))
    wide = np.zeros((len(R), len(every)))
    vertex = np.arange(d.n) if d.vertex is None else d.vertex
    wide[:, np.searchsorted(every, ids)] = R[:, vertex]
    return wide


@pytest.mark.statistical
def test_staleness_is_the_discrepancy_of_the_rows():
    """Alarm 1e-6: its interval, against the rows themselves."""
    X, new = cloud(N, 3, seed=1), cloud(NEW, 3, seed=2) + 1
    model = fitted(X).update(new, np.arange(10), ids=names(NEW, N))
    every = np.sort(names(N + NEW))
    old, fresh = hs.diffusion(X), hs.diffusion(np.vstack([X[10:], new]))
    frozen = [rows_by_id(old, 4, names(N), P, every) for P in (None, new)]
    M = np.vstack([frozen[0][10:], frozen[1]])
    M = M - rows_by_id(fresh, 4, model.ids_, None, every)
    found = model.staleness(64)
    low, high = found.interval(1 - ALARM)[1:]
    assert low < np.linalg.norm(M) < high
    low, high = found.point_interval(1 - ALARM, simultaneous=True)[1:]
    rows = np.linalg.norm(M, axis=1)
    assert np.all((low < rows) & (rows < high))


def test_points_of_the_same_law_move_it_by_about_the_root_of_their_share():
    """And points of another kind by more, which is what tells when to refresh."""
    X = np.random.default_rng(3).uniform(size=(1000, 2))
    share = 0.05
    model = fitted(X[50:]).update(X[:50], ids=names(50, 1000))
    found = model.staleness()
    Y, fresh = model.embedding_, clone(model).fit(np.vstack([X[50:], X[:50]]), ids=model.ids_)
    moved = np.linalg.norm(Y - fresh.embedding_) / np.linalg.norm(fresh.embedding_)
    assert 0.8 * np.sqrt(share) < found.value / found.size < 1.3 * np.sqrt(share)
    assert 0.8 * np.sqrt(share) < moved < 1.3 * np.sqrt(share)
    with pytest.warns((hs.ScaleWarning, hs.DisconnectedWarning)):
        other = fitted(X[50:]).update(X[:50] * 0.2 + 2, ids=names(50, 1000)).staleness()
    assert other.value / other.size > 1.6 * np.sqrt(share)
    assert np.argsort(-other.per_point)[:50].min() >= 950


def test_sparse_points_come_and_go():
    X, new = sparse.random(60, 20, 0.4, "csr", rng=0), sparse.random(6, 20, 0.4, "csr", rng=1)
    model = fitted(X, metric="cosine").update(new, [0, 59], ids=names(6, 60))
    assert model.staleness().value > 0
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
    assert_allclose(
        model._under_weights(cloud(2, 3))(np.ones(N)), model.transform(cloud(2, 3)), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "ids", "error", "message"),
    [
        ({"removed": [N]}, None, ValueError, "removed=150 is out of range"),
        ({"removed": [-1]}, None, ValueError, "removed=-1 is out of range"),
        ({"removed": [0.5]}, None, TypeError, "rows of embedding_"),
        ({"removed": np.arange(N - 1)}, None, ValueError, "leave at least two"),
        ({"added": cloud(2, 3)}, None, ValueError, "ids are missing"),
        ({"added": cloud(2, 3)}, ["p3", "q"], ValueError, "'p3', which is there already"),
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
