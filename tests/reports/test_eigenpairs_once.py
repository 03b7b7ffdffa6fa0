"""Eigenpairs that several steps need are computed once: in a report, and in a score."""

from functools import partial

import numpy as np
import pytest

import heatsketch as hs
from heatsketch import cli
from heatsketch.markov import rows
from heatsketch.spectral import eigen

SOLVERS = [(120, "dense_eigh"), (700, "leading_eigenpairs")]


@pytest.fixture
def counted(monkeypatch):
    """Count the eigenproblems that are solved with vectors, dense and iterated."""
    calls = []

    for module, name in ((eigen, "dense_eigh"), (rows, "leading_eigenpairs")):

        def counting(*args, solve=getattr(module, name), name=name, **kwargs):
            if not kwargs.get("eigvals_only"):
                calls.append(name)
            return solve(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)
    return calls


@pytest.fixture
def data(tmp_path):
    def write(n):
        X = np.random.default_rng(0).normal(size=(n, 3))
        np.savetxt(tmp_path / "points.csv", X, delimiter=",", header="a,b,c", comments="")
        return tmp_path / "points.csv"

    return write


@pytest.mark.parametrize("layout", ["linear", "free"])
@pytest.mark.parametrize(("n", "solver"), SOLVERS)
def test_a_report_of_a_file_takes_those_of_the_fit(n, solver, layout, counted, data, limits):
    limits(all_eigenpairs=600)
    path = data(n)
    page = str(path.with_suffix(".html"))
    assert cli.main(["report", str(path), "-o", page, "--quiet", "--layout", layout]) == 0
    # A free layout takes a sketch alone, which of few points comes from all eigenpairs.
    of_the_sketch = layout == "free" and solver == "dense_eigh"
    assert counted.count(solver) == 1 + of_the_sketch


@pytest.mark.parametrize(("n", "solver"), SOLVERS)
@pytest.mark.parametrize(
    ("make", "times"),
    [
        (hs.HeatEmbedding, None),
        (partial(hs.HeatEmbedding, layout="linear"), None),
        (hs.DiffusionMap, [8]),  # a map is fitted again for other times
    ],
)
def test_a_report_of_a_model_finds_them_once(n, solver, make, times, counted, limits):
    limits(all_eigenpairs=600)
    X = np.random.default_rng(0).normal(size=(n, 3))
    model = make(2, 8).fit(X)
    counted.clear()
    hs.report(model, X, times=times)
    assert counted.count(solver) == 1


@pytest.mark.parametrize(("n", "solver"), SOLVERS)
def test_a_score_finds_them_once(n, solver, counted, data, limits):
    limits(all_eigenpairs=600)
    path = data(n)
    out = path.with_name("out.csv")
    assert cli.main(["embed", str(path), "-o", str(out), "--method", "pca", "--quiet"]) == 0
    counted.clear()
    assert cli.main(["score", str(path), str(out), "--time", "auto", "--quiet"]) == 0
    assert counted.count(solver) == 1
