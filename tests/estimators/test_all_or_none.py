"""A fit that raises or is interrupted, at any moment, leaves an estimator as it was."""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

import heatsketch as hs
from heatsketch._threads import single_threaded_blas
from heatsketch.classical import TSNE
from problems.clouds import cloud

sys.path.insert(0, str(Path(__file__).parents[1] / "io"))
import fitted

PACKAGE = str(Path(hs.__file__).parent)
EVERY = fitted.sketches() | fitted.classical_models()
CASES = {type(asked): (asked, X, new) for asked, X, new in reversed(EVERY.values())}
TOO_LONG = 10**9  # a time at which f is beyond the range of numbers, known after the graph


@pytest.fixture(autouse=True)
def _one_thread():
    """Of several threads, which one takes a tile is chance, and so is the number of calls."""
    with threadpool_limits(1, "blas"):
        yield


@contextmanager
def interrupted(at=None):
    """Count the calls of functions of the package; at one of them the user presses Ctrl-C."""
    calls = []

    def listen(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(frame.f_code.co_name)
            if len(calls) == at:
                sys.setprofile(before)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        with single_threaded_blas():  # sets back what Ctrl-C left, so that calls count alike
            pass


def moments(make, change):
    """Return numbers of calls from the first to the last of change(make())."""
    change(make())  # compiles, and fills caches
    model = make()
    with interrupted() as calls:
        change(model)
    return np.unique(np.linspace(1, len(calls), 4).round().astype(int)).tolist()


def state_of(model, new):
    """Return the attributes, and the bits of what the model says."""
    said = model.transform(new) if new is not None and hasattr(model, "transform") else None
    embedding = getattr(model, "embedding_", None)  # a TableEncoder has none
    return dict(vars(model)), np.copy(embedding), said


def assert_unchanged(model, new, before):
    attributes, embedding, said = before
    assert vars(model).keys() == attributes.keys()
    assert all(value is attributes[name] for name, value in vars(model).items())
    _, again, says = state_of(model, new)
    assert_array_equal(again, embedding)
    assert_array_equal(says, said)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow if kind is TSNE else ()) for kind in CASES],
)
def test_a_fit_is_kept_whole_or_not_at_all_whenever_it_is_interrupted(kind):
    asked, X, new = CASES[kind]
    model = kind(**asked.get_params(deep=False)).fit(X, fitted.LABELS)
    before = state_of(model, new)

    def fit(one):
        one.fit(X, fitted.LABELS)

    for moment in moments(lambda: clone(model), fit):
        fresh = clone(model)
        parameters = dict(vars(fresh))
        for one in (model, fresh):
            with pytest.raises(KeyboardInterrupt), interrupted(moment):
                fit(one)
        assert_unchanged(model, new, before)
        assert vars(fresh) == parameters
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)


@pytest.mark.parametrize(
    "model",
    [
        hs.HeatSketch(8, time=4, random_state=0),
        hs.HeatEmbedding(2, time=4, layout="linear", random_state=0),
        hs.HeatEmbedding(2, time=4, random_state=0),
        hs.DiffusionMap(2, time=4),
    ],
    ids=["sketch", "linear", "free", "map"],
)
def test_a_refit_that_fails_late_leaves_the_fit_before_it(model):
    X, other = cloud(120, 3, seed=1), cloud(120, 3, seed=2)
    model = clone(model).fit(X)
    before = state_of(model, X)[0] | {"time": TOO_LONG}, *state_of(model, X)[1:]
    model.set_params(time=TOO_LONG)
    with pytest.raises(ValueError, match="time"):
        model.fit(other)
    assert model.time == TOO_LONG
    assert_unchanged(model, X, before)
    fresh = clone(model)
    with pytest.raises(ValueError, match="time"):
        fresh.fit(other)
    assert vars(fresh).keys() == clone(model).get_params().keys()


def test_updates_and_refreshes_are_kept_whole_or_not_at_all():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(cloud(80, 2, seed=5), columns=["a", "b"])
    new = X[70:]

    def sketch():
        return hs.HeatSketch(4, random_state=0).fit(X[:70], ids=range(70))

    def add(model):
        model.update(new, removed=[1, 2], ids=range(70, 80))

    for change in (add, hs.HeatSketch.refresh):
        for moment in moments(sketch, change):
            model = sketch()
            before = state_of(model, new)
            with pytest.raises(KeyboardInterrupt), interrupted(moment):
                change(model)
            assert_unchanged(model, new, before)


def test_a_map_of_a_mixture_is_fitted_whole_or_not_at_all():
    kernel, other = (hs.MixtureKernel([0.5, 0.5], [[0.0], [x]], [1, 1], 1.0) for x in (2.0, 5.0))
    features, x = hs.mixture.CholeskyMap().fit(kernel), np.linspace(-2, 6, 9)[:, None]
    said = features.transform(x)

    def fit(one):
        one.fit(other)

    for moment in moments(hs.mixture.CholeskyMap, fit):
        with pytest.raises(KeyboardInterrupt), interrupted(moment):
            fit(features)
        assert features.kernel is kernel
        assert_array_equal(features.transform(x), said)


def test_a_fit_that_ends_leaves_nothing_of_the_one_before():
    """Also where an earlier fit had more: names of features, ids, a free layout."""
    pandas = pytest.importorskip("pandas")
    X = cloud(60, 2, seed=3)
    for options in ({}, {"layout": "linear"}):
        again = hs.HeatEmbedding(2, random_state=0).fit(
            pandas.DataFrame(X, columns=["a", "b"]), ids=range(60)
        )
        again.set_params(**options).fit(X[:50])
        once = hs.HeatEmbedding(2, random_state=0, **options).fit(X[:50])
        assert vars(again).keys() == vars(once).keys()
        assert_array_equal(again.transform(X), once.transform(X))


def test_the_fit_of_a_subclass_is_kept_whole_too():
    class Late(hs.HeatSketch):
        def fit(self, X, y=None, *, ids=None):
            super().fit(X, y, ids=ids)
            self.extra_ = len(X)
            if self.random_state == 1:
                raise RuntimeError("late")
            return self

    X = cloud(60, 2, seed=3)
    model = Late(4, random_state=0).fit(X)
    before = state_of(model, X)[0] | {"random_state": 1}, *state_of(model, X)[1:]
    with pytest.raises(RuntimeError, match="late"):
        model.set_params(random_state=1).fit(X[:50])
    assert_unchanged(model, X, before)
    assert model.extra_ == 60
