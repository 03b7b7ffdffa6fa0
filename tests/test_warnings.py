"""Warnings name the line of the user, however deep in the package they are given."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import heatsketch as hs

X = np.random.default_rng(0).normal(size=(40, 2))
APART = np.vstack([X, X + 1e4])
FAR = np.full((1, 2), 1e6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: hs.diffusion(X, n_neighbors=50),
        lambda: hs.HeatSketch(4).fit(APART),
        lambda: hs.HeatSketch(4).fit_transform(APART),
        lambda: make_pipeline(FunctionTransformer(), hs.DiffusionMap()).fit(APART),
        lambda: hs.HeatSketch(4).fit(X).transform(FAR),
        lambda: hs.HeatSketch(4).set_output(transform="default").fit(X).transform(FAR),
        lambda: hs.Diffusion.from_affinity(1 - np.eye(5)),
        lambda: hs.classical.LocallyLinearEmbedding().fit(APART),
        lambda: hs.classical.Isomap().fit(APART),
        lambda: hs.diffusion(X * [1, 1e4]),
    ],
)
def test_a_warning_names_the_line_that_called_the_package(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_only_one_function_warns():
    package = Path(hs.__file__).parent
    found = {p.name for p in package.rglob("*.py") if re.search(r"warnings\.warn\(", p.read_text())}
    assert found == {"_messages.py"}
