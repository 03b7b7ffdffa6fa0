"""The recipe for a method in CONTRIBUTING, followed: one class and one name in a list of methods.

Those for an operator and a filter are followed in tests/operators.
"""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.classical._base import Embedding
from heatsketch.comparison.methods import ESTIMATORS
from heatsketch.io import read_table


class RandomProjection(Embedding):
    """A method in as few lines as there can be: X R for a random R."""

    def __init__(self, n_components=2, *, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        X = self._read(X, reset=True)
        rng = np.random.default_rng(self.random_state)
        self._R = rng.normal(size=(X.shape[1], self.n_components))
        self.embedding_ = X @ self._R
        self.diagnostics_ = {}
        return self

    def transform(self, X):
        return self._read(X, reset=False) @ self._R


def test_a_listed_method_is_compared_and_known_to_the_command_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ESTIMATORS, "random-projection", RandomProjection)
    X, _ = hs.datasets.circle(60, rng=0)
    result = hs.compare(X, ["random-projection", "pca"], n_neighbors=5, random_state=3)
    assert [row.error for row in result.rows] == ["", ""]
    expected = RandomProjection(random_state=3).fit_transform(X)
    np.testing.assert_array_equal(result.embeddings["random-projection"], expected)
    np.save(tmp_path / "points.npy", X)
    out = tmp_path / "out.csv"
    given = ["embed", str(tmp_path / "points.npy"), "-o", str(out), "--method", "random-projection"]
    assert cli.main([*given, "--n-components", "3", "--random-state", "5"]) == 0
    expected = RandomProjection(3, random_state=5).fit_transform(X)
    np.testing.assert_allclose(read_table(out).values, expected, rtol=1e-12)
    assert "random-projection" in capsys.readouterr().out


def test_a_listed_method_reads_as_the_others_do():
    with pytest.raises(ValueError, match="X contains NaN"):
        RandomProjection().fit([[0.0, np.nan], [1.0, 2.0]])
