"""What a fitted model says depends on the parameters of its fit, not on later `set_params`."""

import json
import zipfile

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import heatsketch as hs
from problems.clouds import cloud

X, NEW = cloud(110, 3, seed=1), cloud(9, 3, seed=2)
Y = X[:, :2]
OTHERS = {
    "time": 2,
    "filter": "heat",
    "metric": "cosine",
    "affinity": "dense",
    "epsilon": 1.0,
    "n_neighbors": 5,
    "normalization": "bistochastic",
    "n_components": 3,
    "random_state": 7,
    "kind": "rademacher",
    "layout": "linear",
    "spread": 0,
    "path_weight": 1.0,
    "neighbor_weight": 3.0,
    "n_sketch": 5,
    "mixture": 1,
    "shrinkage": 1.0,
    "perplexity": 4.0,
    "reg": 1.0,
    "weights": "binary",
    "rank": 3,
}
MODELS = {
    "sketch": hs.HeatSketch(16, time=8, random_state=0),
    "picture": hs.HeatEmbedding(2, time=8, random_state=0),
    "linear": hs.HeatEmbedding(2, layout="linear", random_state=0),
    "map": hs.DiffusionMap(2, time=8, random_state=0),
    "mixture": hs.MixtureDiffusion(mixture=2, time=2, tolerance=0.3, random_state=0),
    "isomap": hs.classical.Isomap(2, metric="cosine"),
    "laplacian": hs.classical.LaplacianEigenmap(2, n_neighbors=10, random_state=0),
    "lle": hs.classical.LocallyLinearEmbedding(2, random_state=0),
    "sne": hs.classical.SNE(2, perplexity=8, n_iter=30, early_iter=10, random_state=0),
}


def norm(Z):
    return float(np.linalg.norm(Z))


def header(model, path):
    hs.save_model(model, path, force=True)
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


QUESTIONS = {
    "transform": lambda model, _: model.transform(NEW),
    "novelty": lambda model, _: model.novelty(NEW),
    "names": lambda model, _: list(model.get_feature_names_out()),
    "variance": lambda model, _: model.explained_diffusion_variance(),
    "pseudotime": lambda model, _: model.pseudotime(0),
    "distance": lambda model, _: model.distance(0, 5),
    "confidence": lambda model, _: model.neighbor_confidence_,
    "interval": lambda model, _: hs.data_interval(model, NEW, norm, n_resamples=20, rng=0),
    "discrepancy": lambda model, _: hs.diffusion_discrepancy(
        model, hs.HeatSketch(filter="heat").fit(X), rng=0
    ),
    "audit": lambda model, _: hs.audit(model, Y, random_state=0).describe(),
    "report": lambda model, _: hs.report(model, X).html,
    "report of audit": lambda model, _: hs.report(hs.audit(model, Y, random_state=0), X).html,
    "file": header,
}
OF_A_DIFFUSION = {"variance", "pseudotime", "interval", "discrepancy", "audit", "report of audit"}
OF_A_SKETCH = {"distance", "confidence"}


def asked(name):
    kind = type(MODELS[name])
    has_diffusion = kind in (hs.HeatSketch, hs.HeatEmbedding, hs.DiffusionMap)
    for question in QUESTIONS:
        if question in OF_A_DIFFUSION and not has_diffusion:
            continue
        if question in OF_A_SKETCH and kind is not hs.HeatSketch:
            continue
        if question in ("transform", "novelty") and not hasattr(kind, question):
            continue
        yield question


def same(one, other):
    return joblib.hash(one) == joblib.hash(other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "linear" else ()) for name in MODELS],
)
def test_parameters_set_after_a_fit_change_nothing_that_the_model_says(name, tmp_path):
    model = MODELS[name].fit(X)
    known = model.get_params(deep=False)
    others = {key: value for key, value in OTHERS.items() if key in known}
    questions = {question: QUESTIONS[question] for question in asked(name)}
    before = {key: ask(model, tmp_path / "model") for key, ask in questions.items()}
    model.set_params(**others)
    after = {key: ask(model, tmp_path / "model") for key, ask in questions.items()}
    assert [key for key in questions if not same(before[key], after[key])] == []
    assert {key: model.get_params()[key] for key in others} == others


def test_a_model_from_a_file_knows_the_parameters_of_its_fit(tmp_path):
    model = hs.HeatSketch(16, time=8, filter="heat", random_state=0).fit(X)
    expected = hs.audit(model, Y, random_state=0).describe()
    hs.save_model(model.set_params(time=2, filter="power"), tmp_path / "model")
    again = hs.load_model(tmp_path / "model")
    assert (again.time, again.filter) == (2, "power")
    assert hs.audit(again, Y, random_state=0).describe() == expected


def test_a_sequence_of_one_time_is_that_time():
    found = hs.audit(X, Y, time=[8], random_state=0)
    expected = hs.audit(X, Y, time=8, random_state=0)
    assert found.describe() == expected.describe()
    assert_array_equal(found.trust, expected.trust)
    sketch = hs.HeatSketch(16, time=[8], random_state=0).fit(X)
    assert hs.audit(sketch, Y, random_state=0).distortion.log_L > 0
