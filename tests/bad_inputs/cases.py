"""What a case of a bad input is, and the data that most of them spoil."""

import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import heatsketch as hs
from problems.clouds import cloud

X = cloud(60, 4)
K = np.exp(-cdist(X, X, "sqeuclidean") / 4.0)
AFFINITIES = {"knn": {"affinity": "knn"}, "dense": {"affinity": "dense"}}
AFFINITIES["radius"] = {"affinity": "radius", "epsilon": 4.0}
# Without a number as epsilon, and whose last step differs from those before:
WITH_VARIABLE = {**AFFINITIES, "variable": {"affinity": "variable"}}
ESTIMATORS = {"HeatSketch": hs.HeatSketch, "DiffusionMap": hs.DiffusionMap}

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
or_variable = pytest.mark.parametrize("affinity", WITH_VARIABLE.values(), ids=WITH_VARIABLE)


class Case(NamedTuple):
    """A call that must raise an error, or warn, of this kind, in a message with these words."""

    title: str
    call: Callable[[], Any]
    words: tuple[str, ...]
    kind: type[Exception] = ValueError


def strictly(function):
    """Call with every warning an error, but that of ties, of which whole numbers have many."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="n_neighbors=.* are equally far")
        return function()


def refused(kind, *words):
    """Expect an error, or a warning, whose message has all the words."""
    expect = pytest.warns if issubclass(kind, Warning) else pytest.raises
    return expect(kind, match="(?s)" + "".join(f"(?=.*{re.escape(w)})" for w in words))


def rows_match(given, clean, tolerance):
    """Compare to a tolerance next to the largest number; 0 asks for the same bits."""
    assert given.dtype == clean.dtype
    if tolerance == 0:
        assert_array_equal(given, clean)
    else:
        assert_allclose(given, clean, rtol=0, atol=tolerance * abs(clean).max())


def embed(make, data, n_components=2, **parameters):
    return make(n_components, random_state=0, **parameters).fit_transform(data)
