"""Parameters and tables that are not what a method expects are refused in its own words."""

import datetime

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import classical
from heatsketch.comparison.methods import ESTIMATORS, defaults

X = np.random.default_rng(0).normal(size=(40, 4))
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
        MAKERS[method](1, random_state=seed).fit(X, LABELS)


@pytest.mark.parametrize("make", [hs.DiffusionMap, classical.LaplacianEigenmap])
@pytest.mark.parametrize("tol", ["a", None, len, [1], {}, np.array([1, 2]), -1, np.nan, BEYOND])
def test_tolerances_that_are_not_numbers(make, tol):
    with pytest.raises((TypeError, ValueError), match=r"^tol.*pass a number >= 0"):
        make(2, tol=tol).fit(X)


NUMBERS = {"n_components", "time", "alpha", "tol", "n_neighbors", "max_iter", "delta", "tolerance"}


@pytest.mark.parametrize(
    ("method", "name"),
    [(m, name) for m, make in MAKERS.items() for name in sorted(NUMBERS & set(defaults(make)))],
)
def test_integers_beyond_float64(method, name):
    message = name
    try:  # a method may not need the parameter here
        MAKERS[method](**{"n_components": 1, name: BEYOND}).fit(X, LABELS)
    except ValueError as error:
        message = str(error)
    assert name in message
    assert len(message) < 500  # not all digits


@pytest.mark.parametrize("make", [hs.NearIsometricProjection, hs.DiffusionMap, classical.PCA])
def test_frames_with_columns_that_cannot_be_features(make):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    frame = pd.DataFrame(X, columns=list("abcd"))
    twice = pa.Table.from_arrays([pa.array(X[:, 0])] * 2, names=["a", "a"])
    for repeated in (pd.DataFrame(X, columns=list("abca")), twice):
        with pytest.raises(ValueError, match="several columns with the name 'a'; rename them"):
            make(2).fit(repeated)
    for column in ([datetime.date(2020, 1, 1)] * 40, ["1.5"] * 40, [BEYOND] * 40):
        with pytest.raises(ValueError, match=r"Column\(s\) 'd' are not numeric"):
            make(2).fit(frame.assign(d=pd.Series(column, dtype=object)))
        if column[0] != BEYOND:
            with pytest.raises(ValueError, match=r"Column\(s\) 'd' are not numeric"):
                make(2).fit(pl.from_pandas(frame).with_columns(d=pl.Series(column)))
    np.testing.assert_array_equal(
        make(2).fit_transform(pa.Table.from_pandas(frame)), make(2).fit_transform(frame)
    )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (hs.HeatEmbedding, "time"),
        (hs.HeatEmbedding, "n_init"),
        (hs.DiffusionMap, "time"),
        (hs.DiffusionMap, "n_components"),
        (hs.MixtureDiffusion, "n_components"),
        (hs.NearIsometricProjection, "n_init"),
        (classical.TSNE, "learning_rate"),
    ],
)
def test_misspelt_rules_are_told_the_rule(make, name):
    with pytest.raises(TypeError, match=f"^{name}='Auto' .* or.* 'auto'"):
        make(**{name: "Auto"}).fit(X)


@pytest.mark.parametrize("n_components", [10, 30])
def test_many_components_need_no_wider_sketch(n_components, monkeypatch):
    from heatsketch.estimators import heat_embedding
    from heatsketch.markov import coordinates

    for limit in ("SPECTRAL_LIMIT", "FEW_VERTICES"):  # so that the sketch is used
        monkeypatch.setattr(coordinates, limit, 20)
    monkeypatch.setattr(heat_embedding, "N_LEADING", 3)
    Y = hs.HeatEmbedding(n_components, time=1, n_sketch=4, random_state=0).fit_transform(X)
    assert Y.shape == (40, n_components)
