"""Sketches as features: one graph for all times of a search, kept in a folder."""

import numpy as np
import pytest
from joblib import Memory
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

import heatsketch as hs
from heatsketch.markov.affinity import AFFINITIES
from problems.clouds import cloud

FOLDS = 3


@pytest.fixture
def built(monkeypatch):
    """Count the graphs that are built."""
    count, build = [], AFFINITIES["knn"]

    def counted(*args, **kwargs):
        count.append(1)
        return build(*args, **kwargs)

    monkeypatch.setitem(AFFINITIES, "knn", counted)
    return count


def search(memory):
    steps = [("sketch", hs.HeatSketch(16, random_state=0, memory=memory))]
    steps.append(("near", KNeighborsClassifier(5)))
    grid = {"sketch__time": [1, 2, 4, 8], "sketch__n_components": [8, 16]}
    return GridSearchCV(Pipeline(steps), grid, cv=FOLDS)


def test_a_search_over_times_builds_one_graph_for_each_fold(tmp_path, built):
    X, y = hs.datasets.digits()
    X, y = X[:300], y[:300]
    kept = search(str(tmp_path)).fit(X, y)
    assert len(built) == FOLDS + 1  # and one for the refit to all
    plain = search(None).fit(X, y)
    assert len(built) == FOLDS + 1 + 8 * FOLDS + 1
    assert kept.best_params_ == plain.best_params_
    for name in ("mean_test_score", "std_test_score"):
        assert_array_equal(kept.cv_results_[name], plain.cv_results_[name])
    assert kept.best_score_ > 0.85


@pytest.mark.parametrize("make", [hs.HeatSketch, hs.HeatEmbedding, hs.DiffusionMap])
def test_what_is_kept_changes_no_bit_and_depends_on_what_matters(tmp_path, built, make):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = make(2, 4, random_state=0, memory=Memory(tmp_path, verbose=0))
    first = model.fit_transform(X)
    again = clone(model).fit(X)
    assert_array_equal(again.embedding_, first)
    assert_array_equal(again.transform(X), clone(model).set_params(memory=None).fit(X).transform(X))
    assert len(built) == 2
    clone(model).set_params(n_neighbors=10).fit(X)
    clone(model).fit(X + 1)
    assert len(built) == 4


def test_a_metric_that_cannot_be_stored_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match="leave out memory"):
        hs.HeatSketch(metric=lambda a, b: abs(a - b).sum(), memory=str(tmp_path)).fit(cloud(30, 2))
