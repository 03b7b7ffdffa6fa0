"""Unknown names and parameters: the message says which was meant, or what serves here."""

import inspect
import re

import anndata
import numpy as np
import pytest
from sklearn.base import clone

import heatsketch as hs
from heatsketch import _words, cli
from heatsketch.comparison.run import ESTIMATORS, defaults


@pytest.mark.parametrize(
    ("make", "name", "hint"),
    [
        (hs.HeatEmbedding, "n_neighbours", "did you mean 'n_neighbors'?"),
        (hs.HeatEmbedding, "perplexity", "did you mean 'n_neighbors'?"),
        (hs.HeatSketch, "seed", "did you mean 'random_state'?"),
        (hs.DiffusionMap, "min_dist", "leave it out, because distances are those of the data"),
        (hs.HeatEmbedding, "n_epochs", "leave it out, because the number and length of steps"),
        (hs.HeatEmbedding, "init", "leave it out (heatsketch.initialization makes starts"),
        (hs.classical.TSNE, "n_epochs", "did you mean 'n_iter'?"),
        (hs.classical.PCA, "whiten", None),
    ],
)
def test_an_unknown_parameter_is_named_with_what_serves_here(make, name, hint, tmp_path, capsys):
    text = f"has no parameter {name!r}" + (f"; {hint}" if hint else "$")
    with pytest.raises(TypeError, match=text if hint is None else re.escape(text)) as raised:
        make(**{name: 1})
    np.save(tmp_path / "x.npy", np.eye(3))
    method = next(word for word, one in ESTIMATORS.items() if one is make)
    # A parameter that another method has is said to belong to it.
    given = ["embed", f"{tmp_path}/x.npy", "-o", "-", "-m", method, "-p", f"{name}=1"]
    assert cli.main(given) == 2
    theirs = any(name in defaults(one) for one in ESTIMATORS.values())
    expected = "; it belongs to " if theirs else str(raised.value).partition(" has")[2]
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("make", [*ESTIMATORS.values(), hs.NearIsometricProjection])
def test_the_check_of_names_leaves_the_contract_of_scikit_learn(make):
    own = list(inspect.signature(make.__init__).parameters)[1:]
    assert list(inspect.signature(make).parameters) == own
    assert sorted(make._get_param_names()) == sorted(own)
    model = make()
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match="positional argument"):
        make(*range(30))


def test_a_subclass_may_take_any_parameter():
    class Open(hs.HeatSketch):
        def __init__(self, **parameters):
            super().__init__()
            self.extra = parameters

    assert Open(whatever=1).extra == {"whatever": 1}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("UMAP", "use heatsketch.HeatEmbedding, which makes pictures (docs/howto/from-other"),
        ("Heatembedding", "did you mean 'HeatEmbedding'?"),
        ("TSNE", "use heatsketch.classical.TSNE"),
        ("read_table", "use heatsketch.io.read_table"),  # not "did you mean 'heat_trace'?"
        ("trustworthiness", "use heatsketch.metrics.trustworthiness"),
        ("nothing_like_it", None),
    ],
)
def test_an_unknown_name_of_the_package_is_answered_with_a_name(name, hint):
    text = re.escape(
        f"module 'heatsketch' has no attribute {name!r}" + (f"; {hint}" if hint else "")
    )
    with pytest.raises(AttributeError, match=text if hint else f"{text}$"):
        getattr(hs, name)


def test_what_the_hints_name_is_there():
    known = {parameter for make in ESTIMATORS.values() for parameter in defaults(make)}
    assert set(_words._SAME.values()) <= known
    hints = " ".join([*_words._INSTEAD.values(), *_words._NAMES.values()])
    paths = re.findall(r"heatsketch\.([\w.]+\w)", hints)
    assert len(paths) > 8
    for path in paths:
        found = hs
        for part in path.split("."):
            found = getattr(found, part)


def test_an_unknown_method_is_answered_with_one():
    with pytest.raises(ValueError, match=r"no method 'isomp'; choose from .*mean 'isomap'\?"):
        hs.compare(np.eye(5), ["isomp"], n_neighbors=3)


@pytest.mark.parametrize("name", ["umap", "PHATE", "pacmap"])
def test_a_method_of_another_library_is_answered_with_the_one_that_serves(name):
    assert _words.did_you_mean(name, ESTIMATORS) == "; did you mean 'heat-embedding'?"
    if name == "PHATE":  # compare knows it by its usual name
        with pytest.raises(ValueError, match=r"no method 'PHATE'.* did you mean 'phate'\?"):
            hs.compare(np.eye(5), [name], n_neighbors=3)
    assert _words.did_you_mean("umap", ["umap.csv", "x.csv"]) == "; did you mean 'umap.csv'?"


@pytest.mark.parametrize(
    ("function", "name", "hint"),
    [
        (hs.audit, "label", "did you mean 'labels'?"),
        (hs.audit, "n_neighbours", "did you mean 'n_neighbors'?"),
        (hs.audit, "seed", "did you mean 'random_state'?"),
        (hs.anndata.audit, "label", "did you mean 'labels'?"),
        (hs.anndata.heat_embedding, "use_rap", "did you mean 'use_rep'?"),
        (hs.anndata.heat_sketch, "key_aded", "did you mean 'key_added'?"),
        (hs.anndata.diffusion_map, "n_comps", "did you mean 'n_components'?"),
        (hs.anndata.heat_embedding, "n_neighbours", "did you mean 'n_neighbors'?"),
    ],
)
def test_a_function_with_options_suggests_its_own_parameters_too(function, name, hint):
    X = np.random.default_rng(0).normal(size=(60, 3))
    adata = anndata.AnnData(X, obsm={"X_umap": X})
    given = (X, X) if function is hs.audit else (adata,)
    text = f"{function.__name__} has no parameter {name!r}; {hint}"
    with pytest.raises(TypeError, match=re.escape(text)):
        function(*given, **{name: "x"})


def test_a_fitted_sketch_does_not_let_unknown_parameters_through():
    model = hs.HeatSketch(8, 4, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 3)))
    with pytest.raises(TypeError, match="did you mean 'metric'"):
        hs.audit(model, model.embedding_[:, :2], metrik="cosine")
