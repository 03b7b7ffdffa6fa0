"""What is said of a picture is found at the first look, once, and goes where the model goes."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe, get_context
from threading import Event

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import heatsketch as hs
from heatsketch.io.models import read_facts
from heatsketch.metrics import picture
from heatsketch.reports.facts import summary
from problems.clouds import cloud

X = cloud(150, 3)


@pytest.fixture
def looks(monkeypatch):
    """Count how often a picture is judged."""
    compare, counted = picture.picture_quality, []

    def compared(*given, **named):
        counted.append(1)
        return compare(*given, **named)

    monkeypatch.setattr(picture, "picture_quality", compared)
    return counted


def fitted(**options):
    return hs.HeatEmbedding(2, 8, **options).fit(X)


@pytest.mark.parametrize("layout", ["free", "linear"])
def test_it_is_found_once_and_not_in_fit(looks, layout):
    model = fitted(layout=layout)
    model.transform(X[:5])
    repr(model)
    assert not looks
    assert model.quality_ is model.quality_
    assert model.distortion_ is model.distortion_
    assert len(looks) == 1


def test_threads_that_look_at_once_find_the_same(looks):
    model = fitted()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.quality_, range(16)))
    assert all(one == found[0] for one in found)
    count = len(looks)
    assert 1 <= count <= 8
    assert model.quality_ is model.quality_
    assert len(looks) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_judges_gets_an_answer(monkeypatch):
    compare, begun, let_go = picture.picture_quality, Event(), Event()
    parent = os.getpid()

    def compared(*given, **named):
        begun.set()
        assert os.getpid() != parent or let_go.wait(60)
        return compare(*given, **named)

    monkeypatch.setattr(picture, "picture_quality", compared)
    model = fitted()
    receiver, sender = Pipe(duplex=False)
    child = get_context("fork").Process(target=lambda: sender.send(model.quality_))
    with ThreadPoolExecutor(1) as pool:
        judged = pool.submit(lambda: model.quality_)
        assert begun.wait(60)
        try:
            child.start()
            assert receiver.poll(60)
        finally:
            child.kill()
            let_go.set()
        assert receiver.recv() == judged.result()


def test_copies_and_stored_models_are_judged_where_they_are_looked_at(looks, tmp_path):
    model = fitted()
    forms = {
        "copy": lambda: copy.copy(model),
        "deepcopy": lambda: copy.deepcopy(model),
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "file": lambda: _stored(model, tmp_path / f"{len(looks)}.model"),
    }
    unseen = {name: form() for name, form in forms.items()}
    assert not looks
    expected = model.quality_, model.distortion_
    seen = {name: form() for name, form in forms.items()}
    assert len(looks) == 1
    for name in forms:
        for other in (unseen[name], seen[name]):
            assert other.quality_ == expected[0], name
            assert repr(other.distortion_) == repr(expected[1]), name
    assert len(looks) == 1 + len(unseen)


def _stored(model, path):
    hs.save_model(model, path)
    return hs.load_model(path)


def test_a_file_says_how_distances_are_kept_where_it_is_known(tmp_path):
    model, words = fitted(), []
    for name in ("unseen", "seen"):
        hs.save_model(model, tmp_path / name)
        words.append(read_facts(tmp_path / name)["distances"])
        assert model.distortion_ is not None
    assert words == [None, model.distortion_.describe()]


def test_a_model_is_stored_where_memory_does_not_judge_it(monkeypatch, tmp_path):
    model = fitted()

    def lacking(*given, **named):
        raise MemoryError("as much as there is not")

    with monkeypatch.context() as patched:
        patched.setattr(picture, "picture_quality", lacking)
        for _ in range(2):  # the second time, too
            with pytest.raises(MemoryError, match="as much as there is not"):
                _ = model.quality_
        again, loaded = pickle.loads(pickle.dumps(model)), _stored(model, tmp_path / "a.model")
    assert again.quality_ == loaded.quality_ == model.quality_ == fitted().quality_


def test_a_model_that_was_fitted_again_is_judged_again():
    model = fitted()
    before = model.quality_
    model.fit(X[:, :2])
    assert model.quality_ != before
    assert model.quality_ == hs.HeatEmbedding(2, 8).fit(X[:, :2]).quality_
    unseen = fitted()
    unseen.fit(X[:, :2])
    assert unseen.quality_ == model.quality_


def test_it_is_that_of_the_fit_whatever_is_set_or_changed_later():
    expected = fitted().quality_
    model = fitted()
    model.set_params(metric="cosine", layout="linear", filter="power", time=2)
    model.embedding_[:] = 0
    assert model.quality_ == expected


def test_before_a_fit_there_is_none():
    for model in (hs.HeatEmbedding(), clone(fitted())):
        for name in ("quality_", "distortion_"):
            assert not hasattr(model, name)
            with pytest.raises(NotFittedError, match="HeatEmbedding instance is not fitted yet"):
                getattr(model, name)


def test_a_summary_and_a_report_ask_for_it(looks):
    page = hs.report(fitted(), X)
    assert len(looks) == 1
    assert "path lengths along the data" in page.html


@pytest.mark.parametrize("make", [hs.HeatEmbedding, hs.DiffusionMap])
def test_a_picture_has_no_distance_and_says_which_model_has_one(make):
    model = make().fit(X)
    assert not hasattr(model, "distance")
    with pytest.raises(AttributeError, match=f"{make.__name__} .*HeatSketch has one, and"):
        model.distance(0, 1)


@pytest.mark.parametrize("time", [1, 8])
def test_the_share_of_one_step_is_said_to_be_that_of_one_among_many_directions(time):
    said = summary(hs.DiffusionMap(2, time=time).fit(X))["explained"]
    assert ("still in many other directions" in said) == (time == 1)
