"""Parameters: what estimators refuse, in which words, and what set_params changes after a fit."""

import datetime
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.mixture import GaussianMixture

import heatsketch as hs
from heatsketch import classical
from heatsketch.comparison.run import ESTIMATORS, defaults
from problems.clouds import cloud
from problems.estimators import every_estimator
from problems.spectra import path_graph

# Errors: got and want


def both(got, want):
    return rf"(?s)(?=.*(?:{got}))(?=.*(?:{want}))"


Projection = hs.NearIsometricProjection
Mixture = partial(hs.MixtureDiffusion, mixture=1)
OF_FOUR = GaussianMixture(1).fit(np.eye(4))  # features
BAD_PARAMETERS = [
    ({"n_components": 0}, ValueError, "n_components=0", "integer >= 1"),
    ({"n_components": 2.0}, TypeError, "n_components=2.0", "integer >= 1"),
    ({"time": 0}, ValueError, "time=0", ">= 1"),
    ({"time": "long"}, TypeError, "time='long'", "a number >= 1"),
    ({"time": []}, ValueError, "time is an empty", "one or more"),
    ({"time": np.nan}, ValueError, "time=nan", "a number >= 1"),
    ({"time": 0.0, "filter": "heat"}, ValueError, "time=0.0", "> 0"),
    ({"filter": "cold"}, ValueError, "filter='cold'", "'power', 'heat'"),
    ({"affinity": "angle"}, ValueError, "affinity='angle'", "'knn', 'dense', 'radius'"),
    ({"epsilon": 0.0}, ValueError, "epsilon=0.0", "> 0"),
    ({"epsilon": "best"}, ValueError, "epsilon='best'", "'ksum', 'median', 'nearest'"),
    ({"epsilon": None}, TypeError, "epsilon=None", "a number"),
    ({"affinity": "radius"}, ValueError, "epsilon='self-tuning'", "'ksum'"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors=0", "integer >= 1"),
    ({"normalization": "none"}, ValueError, "normalization='none'", "'bistochastic'"),
    ({"alpha": "one"}, TypeError, "alpha='one'", "a number"),
    ({"normalization": "bistochastic", "tol": 0}, ValueError, "tol=0", "> 0"),
    ({"normalization": "bistochastic", "max_iter": 0}, ValueError, "max_iter=0", ">= 1"),
]
BAD_ESTIMATORS = [
    (hs.HeatSketch(kind="uniform"), ValueError, "kind='uniform'", "'rademacher'"),
    (hs.HeatSketch(time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.HeatSketch(memory=5), ValueError, "memory", ""),
    (hs.DiffusionMap(60), ValueError, "n_components=60", "n_components <= 59"),
    (hs.DiffusionMap(time=-0.5), ValueError, "time=-0.5", ">= 0"),
    (hs.DiffusionMap(59, time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.DiffusionMap(time="auto", delta=0), ValueError, "delta=0", "> 0"),
    (hs.DiffusionMap("auto", delta=1.5), ValueError, "delta=1.5", "< 1"),
    (hs.DiffusionMap("auto", "auto"), ValueError, "time='auto'", "n_components"),
    (hs.DiffusionMap("auto", "long"), TypeError, "time='long'", "a number >= 0"),
    (hs.DiffusionMap(2, ["auto", 3]), ValueError, "time='auto'", "one time"),
    (hs.DiffusionMap(affinity="radius", epsilon=1.0, cut=0), ValueError, "cut=0", "> 0"),
    (hs.HeatEmbedding(time=[2, 8]), ValueError, "has 2 times", "pass one, or 'auto'"),
    (hs.HeatEmbedding(time=1.5), ValueError, "time=1.5 is not whole", "filter='heat'"),
    (hs.HeatEmbedding(factor=1), ValueError, "factor=1", "> 1"),
    (hs.HeatEmbedding(factor=np.inf), ValueError, "factor=inf is not finite", ""),
    (hs.HeatEmbedding(n_sketch=0), ValueError, "n_sketch=0", "integer >= 1"),
    (hs.HeatEmbedding(objective="best"), ValueError, "objective='best'", ""),
    (hs.HeatEmbedding(n_init=0), ValueError, "n_init=0", ""),
    (hs.HeatEmbedding(60), ValueError, "n_components=60", "n_components <= 59"),
    (Projection(objective="best"), ValueError, "objective='best'", ""),
    (Projection(factor=1), ValueError, "factor=1", "> 1"),
    (Projection(0), ValueError, "n_components=0 is out of range", ""),
    (Projection(4), ValueError, "X has 3 features", "pass n_components <= 3"),
    (Projection(1.5), TypeError, "n_components=1.5", "pass an integer"),
    (Projection(rank=1), ValueError, "rank=1 is out of range", "pass an integer >= 2"),
    (Projection(rank=2.5), TypeError, "rank=2.5", ""),
    (Projection(n_init=0), ValueError, "n_init=0", ""),
    (Projection(max_iter=0), ValueError, "max_iter=0", ""),
    (Projection(validation_fraction=1), ValueError, "validation_fraction=1", ""),
    (Projection(validation_fraction=-0.1), ValueError, "validation_fraction=-0.1", ""),
    (Mixture(0), ValueError, "n_components=0 is out of range", ""),
    (Mixture(10**6), ValueError, "n_components=1000000", "smaller tolerance, or fewer n_comp"),
    (Mixture(mixture=0), ValueError, "mixture=0 is out of range", ""),
    (Mixture(mixture=10**6), ValueError, "mixture=1000000 is out of range", ""),
    (Mixture(mixture=OF_FOUR), ValueError, "mixture", "fitted to the same features"),
    (Mixture(tolerance=0), ValueError, "tolerance=0 is out of range", ""),
    (Mixture(time=0), ValueError, "time=0 is out of range", ""),
    (Mixture(max_features=0), ValueError, "max_features=0 is out of range", ""),
    (Mixture(epsilon=-1.0), ValueError, "epsilon=-1.0 is out of range", ""),
    (Mixture(epsilon="self-tuning"), TypeError, "epsilon='self-tuning'", "pass a number > 0"),
    *(
        (make(**{name: "Auto"}), TypeError, f"{name}='Auto'", " or.* 'auto'")  # misspelt
        for make, names in {
            hs.HeatEmbedding: ("time", "n_init"),
            hs.DiffusionMap: ("time", "n_components"),
            Mixture: ("n_components",),
            Projection: ("n_init",),
            classical.TSNE: ("learning_rate",),
        }.items()
        for name in names
    ),
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


def test_a_dense_affinity_that_takes_hours_is_refused(limits, X):
    limits(dense_points=59)
    with pytest.raises(ValueError, match=r"'dense' of 60 points takes hours; pass affinity='k"):
        hs.HeatSketch(affinity="dense", epsilon=1.0).fit(X)


@pytest.mark.parametrize(
    ("estimator", "error", "got", "want"), BAD_ESTIMATORS, ids=[row[2] for row in BAD_ESTIMATORS]
)
def test_errors_of_one_estimator(estimator, error, got, want, X):
    with pytest.raises(error, match=both(got, want)):
        estimator.fit(X)


def test_the_time_chosen_for_the_heat_filter_is_that_of_exponentials_not_of_moduli():
    """|e^{-t(1-λ_{k+1})} - e^{-t}| = δ (e^{-t(1-λ_1)} - e^{-t}), negative eigenvalues or not."""
    path = path_graph(8)  # bipartite: λ and -λ
    model = hs.DiffusionMap(5, "auto", filter="heat", delta=0.2, affinity="precomputed", alpha=0)
    model.fit(path)
    lam = np.sort(np.linalg.eigvalsh(hs.Diffusion.from_graph(path).operator @ np.eye(8)))[::-1]
    assert lam[6] < 0
    first, following = np.expm1(model.time_ * lam[[1, 6]])
    np.testing.assert_allclose(-following / first, 0.2, rtol=1e-9)


# Seeds, numbers, frames


POINTS = np.random.default_rng(0).normal(size=(40, 4))
LABELS = np.arange(40) % 2
MAKERS = {**ESTIMATORS, "near-isometric": hs.NearIsometricProjection}
SEEDED = [
    *("heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion", "landmark-mds"),
    *("laplacian-eigenmap", "sne", "tsne", "near-isometric"),
]
BEYOND = 10**400  # a Python integer that float64 cannot hold


@pytest.mark.parametrize("method", SEEDED)
@pytest.mark.parametrize("seed", ["zero", 1.5, len, -1, [["a"]], {}, np.nan])
def test_seeds_that_are_not_seeds(method, seed):
    with pytest.raises((TypeError, ValueError), match=r"random_state=.*pass None, an integer >= 0"):
        MAKERS[method](1, random_state=seed).fit(POINTS, LABELS)


@pytest.mark.parametrize("make", [hs.DiffusionMap, classical.LaplacianEigenmap])
@pytest.mark.parametrize("tol", ["a", None, len, [1], {}, np.array([1, 2]), -1, np.nan, BEYOND])
def test_tolerances_that_are_not_numbers(make, tol):
    with pytest.raises((TypeError, ValueError), match=r"^tol.*pass a number >= 0"):
        make(2, tol=tol).fit(POINTS)


NUMBERS = {"n_components", "time", "alpha", "tol", "n_neighbors", "max_iter", "delta", "tolerance"}


@pytest.mark.parametrize(
    ("method", "name"),
    [(m, name) for m, make in MAKERS.items() for name in sorted(NUMBERS & set(defaults(make)))],
)
def test_integers_beyond_float64(method, name):
    message = name
    try:  # a method may not need the parameter here
        MAKERS[method](**{"n_components": 1, name: BEYOND}).fit(POINTS, LABELS)
    except ValueError as error:
        message = str(error)
    assert name in message
    assert len(message) < 500  # not all digits


@pytest.mark.parametrize("make", [hs.NearIsometricProjection, hs.DiffusionMap, classical.PCA])
def test_frames_with_columns_that_cannot_be_features(make):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    frame = pd.DataFrame(POINTS, columns=list("abcd"))
    twice = pa.Table.from_arrays([pa.array(POINTS[:, 0])] * 2, names=["a", "a"])
    for repeated in (pd.DataFrame(POINTS, columns=list("abca")), twice):
        with pytest.raises(ValueError, match="several columns with the name 'a'; rename them"):
            make(2).fit(repeated)
    columns = [datetime.date(2020, 1, 1)] * 40, ["1.5"] * 40, [BEYOND] * 40
    bad = [frame.assign(d=pd.Series(column, dtype=object)) for column in columns]
    bad += [pl.from_pandas(frame).with_columns(d=pl.Series(column)) for column in columns[:2]]
    for given in bad:
        with pytest.raises(ValueError, match=r"Column\(s\) 'd' are not numeric"):
            make(2).fit(given)
    np.testing.assert_array_equal(
        make(2).fit_transform(pa.Table.from_pandas(frame)), make(2).fit_transform(frame)
    )


def test_a_time_may_be_a_number_of_numpy():
    X = cloud(60, 2)
    models = (hs.HeatSketch(3, time=time, random_state=0) for time in (4, np.array(4)))
    assert_array_equal(*(model.fit_transform(X) for model in models))


# After a fit


OLD, NEW = cloud(60, 3, seed=1), cloud(20, 3, seed=2)
OTHERS = {
    "normalization": "symmetric",
    "filter": "heat",
    "metric": "cosine",
    "affinity": "dense",
    "epsilon": 3.0,
    "n_neighbors": 4,
    "time": 5,
}


@pytest.mark.parametrize("kind", [hs.HeatSketch, hs.DiffusionMap, hs.HeatEmbedding])
def test_a_fitted_model_gives_what_it_gave(kind, limits):
    limits(least_resamples=2)  # bits are compared, for which 2 do
    model = kind(2, time=4, random_state=0).fit(OLD)

    def answers():
        late, share = model.pseudotime(3), model.explained_diffusion_variance()
        rows = model.transform(NEW), model.novelty(NEW), model.embedding_
        return [*rows, late.value, share.ratio]

    def resampled():
        return hs.data_interval(model, NEW, np.ptp, rng=0, n_resamples=2)

    before, interval = answers(), resampled()
    for name, other in OTHERS.items():
        model.set_params(**{name: other})
        for old, new in zip(before, answers(), strict=True):
            np.testing.assert_array_equal(old, new, err_msg=name)
    np.testing.assert_array_equal(interval, resampled())


def test_times_and_signs_are_those_of_the_fit():
    model = hs.HeatSketch(16, time=[2, 4], kind="rademacher", random_state=0).fit(OLD)
    before = model.distance(0, 1, time=4), model.get_feature_names_out().tolist()
    model.set_params(time=8, kind="gaussian")
    assert (model.distance(0, 1, time=4), model.get_feature_names_out().tolist()) == before
