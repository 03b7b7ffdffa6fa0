"""Arrows of features in a picture: they are the derivatives, and lead where points go."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import heatsketch as hs
from heatsketch.plot import biplot

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(0, 10, 400), RNG.uniform(0, 6, 400), np.full(400, 2.0)])


@pytest.fixture(scope="module")
def model():
    return hs.DiffusionMap(2, affinity="dense", epsilon=4.0, time=4).fit(X)


def arrows(figure):
    """Return the arrows of each feature by its name: where they begin, and what they add."""
    quivers = [one for one in figure.axes[0].collections if hasattr(one, "U")]
    return {one.get_label(): (one.XY, np.column_stack([one.U, one.V])) for one in quivers}


def test_arrows_are_derivatives_by_features_in_standard_deviations_times_one_factor(model):
    found = arrows(biplot(model, X, features=[0, 1]))
    assert list(found) == ["0", "1"]
    S, factors = model.sensitivity(X) * X.std(axis=0), []
    longest = 0.0
    for name, (at, moves) in found.items():
        row = [np.linalg.norm(model.embedding_ - place, axis=1).argmin() for place in at]
        assert_allclose(model.embedding_[row], at)
        sizes = np.linalg.norm(moves, axis=1)
        longest = max(longest, sizes.max())
        wanted = S[row, :, int(name)]
        cosines = np.einsum("mi,mi->m", moves, wanted)
        assert_allclose(cosines, sizes * np.linalg.norm(wanted, axis=1))  # the same direction
        factors.append(sizes / np.linalg.norm(wanted, axis=1))
    factors = np.concatenate(factors)
    assert_allclose(np.median(factors), factors.max())  # those that are cut are shorter
    cell = np.ptp(model.embedding_, axis=0).max() / 16
    assert longest <= 2 * cell * (1 + 1e-9)


def test_by_default_the_features_that_move_points_most(model):
    found = arrows(biplot(model, X))
    assert set(found) == {"0", "1", "2"}
    assert len(found["2"][0]) == 0  # a constant column moves no point


def test_features_have_the_names_of_the_table():
    table = pd.DataFrame(X, columns=["length", "width", "same"])
    model = hs.HeatEmbedding(random_state=0).fit(table)
    figure = biplot(model, table, labels=table["length"] > 5, features=["width"])
    assert list(arrows(figure)) == ["width"]
    given = biplot(model, table, features=["b"], names=["a", "b", "c"])
    assert list(arrows(given)) == ["b"]
    with pytest.raises(ValueError, match="names has 2 names but X has 3 features"):
        biplot(model, table, names=["a", "b"])
    with pytest.raises(ValueError, match="feature 'weight' is none of the 3 features"):
        biplot(model, table, features=["weight"])


def test_a_model_of_other_dimensions_is_refused():
    with pytest.raises(ValueError, match="has 3 coordinates; pass one with 2"):
        biplot(hs.DiffusionMap(3).fit(X), X)
