"""Cached results are those of another call, and last until the block ends."""

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.markov import rows
from heatsketch.markov.rows import Coordinates
from heatsketch.operators.operator import Deflated, Dense
from heatsketch.spectral import eigenpairs
from heatsketch.spectral.eigenpairs import all_eigenpairs, caching


@pytest.fixture
def counted(monkeypatch):
    """Count the eigenproblems that are solved with vectors, dense and iterated."""
    calls = []

    for module, name in ((eigenpairs, "dense_eigh"), (rows, "leading_eigenpairs")):

        def counting(*args, solve=getattr(module, name), name=name, **kwargs):
            if not kwargs.get("eigvals_only"):
                calls.append(name)
            return solve(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)
    return calls


@pytest.fixture
def operator():
    X, _ = hs.datasets.circle(50, rng=0)
    return hs.diffusion(X)


def test_within_the_block_one_answer_for_the_same_operator_and_outside_none_is_kept(
    operator, counted
):
    with caching():
        first = all_eigenpairs(operator.deflated())
        with caching():  # the outer block keeps it
            again = all_eigenpairs(operator.deflated())
        assert again is first
    assert len(counted) == 1
    for found, expected in zip(all_eigenpairs(operator.deflated()), first, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(counted) == 2


def test_other_operators_directions_and_counts_are_not_the_same(operator, counted, monkeypatch):
    monkeypatch.setattr(rows, "FEW_VERTICES", 20)
    A = operator.deflated()
    other = Dense(np.diag(np.arange(50.0)))
    with caching():
        values = [all_eigenpairs(B)[0] for B in (A, A.A, other, Deflated(other, np.eye(50)[:, :2]))]
        pairs = [Coordinates.of(A, count).values for count in (3, 5, 3)]
    assert [len(v) for v in values] == [49, 50, 50, 48]
    assert values[0][-1] < 1 - 1e-3 < values[1][-1]
    assert [len(v) for v in pairs] == [3, 5, 3]
    assert counted.count("leading_eigenpairs") == 2


@pytest.mark.parametrize(("n", "solver"), [(120, "dense_eigh"), (700, "leading_eigenpairs")])
def test_a_report_finds_its_eigenpairs_once(n, solver, counted, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "SPECTRAL_LIMIT", 600)
    rng = np.random.default_rng(0)
    data = tmp_path / "points.csv"
    np.savetxt(data, rng.normal(size=(n, 3)), delimiter=",", header="a,b,c", comments="")
    cli.main(["report", str(data), "-o", str(tmp_path / "page.html"), "--quiet"])
    assert counted.count(solver) == 1
