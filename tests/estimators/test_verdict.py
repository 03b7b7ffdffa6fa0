"""What is said of a picture is found at the first look, once, and goes where the model goes."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.base import clone

import heatsketch as hs
from heatsketch.estimators import heat_embedding
from problems.clouds import cloud

X = cloud(150, 3)


@pytest.fixture
def looks(monkeypatch):
    """Count how often distances are compared."""
    compare, counted = heat_embedding.compare_distances, []

    def compared(*given):
        counted.append(1)
        return compare(*given)

    monkeypatch.setattr(heat_embedding, "compare_distances", compared)
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


def test_threads_find_it_once(looks):
    model = fitted()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.quality_, range(16)))
    assert len(looks) == 1
    assert all(one is found[0] for one in found)


def test_copies_and_stored_models_have_it(looks, tmp_path):
    model = fitted()
    twin = copy.copy(model)
    again = pickle.loads(pickle.dumps(model))
    hs.save_model(model, tmp_path / "model")
    loaded = hs.load_model(tmp_path / "model")
    assert len(looks) == 1
    for other in (twin, again, loaded):
        assert other.quality_ == model.quality_
        assert repr(other.distortion_) == repr(model.distortion_)
    assert len(looks) == 1


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
        assert not hasattr(model, "quality_")
        with pytest.raises(AttributeError):
            _ = model.distortion_


def test_a_summary_and_a_report_ask_for_it(looks):
    page = hs.report(fitted(), X)
    assert len(looks) == 1
    assert "path lengths along the data" in page.html
