"""What estimators refuse, and in which words."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import heatsketch as hs
from problems.estimators import affinity_of, every_affinity, every_estimator
from problems.spectra import path_graph

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
    (hs.HeatEmbedding(time=[2, 8]), ValueError, "has 2 times", "pass one, or 'auto'"),
    (hs.HeatEmbedding(time=["auto", 3]), ValueError, "has 2 times", "'auto'"),
    (hs.HeatEmbedding(time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.HeatEmbedding(factor=1), ValueError, "factor=1.0", "> 1"),
    (hs.HeatEmbedding(factor=np.inf), ValueError, "factor=inf is not finite", ""),
    (hs.HeatEmbedding(factor=None), TypeError, "factor=None", "a number"),
    (hs.HeatEmbedding(n_sketch=0), ValueError, "n_sketch=0", "integer >= 1"),
    (hs.HeatEmbedding(n_sketch=64.0), TypeError, "n_sketch=64.0", "an integer"),
    (hs.HeatEmbedding(objective="best"), ValueError, "objective='best'", ""),
    (hs.HeatEmbedding(n_init=0), ValueError, "n_init=0", ""),
    (hs.HeatEmbedding(60), ValueError, "n_components=60", "n_components <= 59"),
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
