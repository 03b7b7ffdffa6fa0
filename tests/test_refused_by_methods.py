"""A method that is given what it cannot take raises an error that its docstring names.

The error is raised by a statement of the library, or by a check of scikit-learn that it calls, not
by NumPy beneath it.
"""

import builtins
import dataclasses
import functools
import linecache
import re
import traceback

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.neighbors import NeighborIndex
from test_docstrings import sections_of

N, D = 12, 2
X = np.random.default_rng(0).normal(size=(N, D))
NOT_NUMBERS = ("abc", np.full((3, D), "a"), [[1, 2], [3]])
NOT_TABLES = (None, *NOT_NUMBERS, X[0], np.full((3, D), np.nan), np.ma.masked_array(X, X > 0))
BAD_POINTS = (*NOT_TABLES, np.ones((3, D + 1)))
BAD_BLOCKS = (*NOT_NUMBERS, None, np.ones((N - 1, 2)), np.ones((N, 2, 2)), 1j * np.ones((N, 2)))
NOT_COUNTS = (None, "3", 0.5, np.nan, -1, [1])
NOT_SIZES = (None, "3", np.nan, np.inf, -1, [1])
MAKERS = {
    "affine": lambda: hs.Affine(made("dense")),
    "cholesky": lambda: hs.mixture.CholeskyMap().fit(made("mixture"), points=X),
    "deflated": lambda: hs.Deflated(made("dense"), np.full(N, N**-0.5)),
    "dense": lambda: hs.Dense(np.eye(N)),
    "diffusion": lambda: hs.diffusion(X, n_neighbors=5),
    "discrepancy": lambda: hs.diffusion_discrepancy(made("diffusion"), made("diffusion"), rng=0),
    "equal samples": lambda: dataclasses.replace(made("samples"), value=0.0),
    "heat": lambda: hs.Heat(0.0),
    "index": lambda: NeighborIndex(X),
    "cosine": lambda: NeighborIndex(X, metric="cosine"),
    "kernel": lambda: hs.Kernel(X, 1.0),
    "lowrank": lambda: hs.LowRank(np.ones((N, 1))),
    "mixture": lambda: hs.MixtureKernel([1.0], [[0.0] * D], [1.0], epsilon=1.0),
    "power": lambda: hs.Power(0.5),
    "samples": lambda: hs.uncertainty.sample_discrepancy(
        X, X + 1, n_permutations=19, n_neighbors=5, rng=0
    ),
    "scaled": lambda: hs.Scaled(made("dense"), np.ones(N)),
    "sparse": lambda: hs.Sparse(np.eye(N)),
}


@functools.cache
def made(name):
    return MAKERS[name]()


def calls(names, methods, bad, before=(), after=()):
    """Return (object, method, arguments of each call): a bad value between good ones."""
    arguments = [(*before, value, *after) for value in bad]
    return [(name, method, arguments) for name in names.split() for method in methods.split()]


OF_ONE_CLOUD = "anomaly_score gradient log_diagonal log_stationary low_rank responsibilities"
OF_TWO_CLOUDS = "kernel log_kernel squared_distance transition_density"
OPERATORS = "affine deflated dense kernel lowrank scaled sparse"
CALLS = [
    *calls("cosine index", "within", BAD_POINTS[1:], after=(1.0,)),
    *calls("cosine index", "query", BAD_POINTS[1:], after=(2,)),
    *calls("cholesky", "transform residual", BAD_POINTS),
    *calls("kernel", "nearest rows", BAD_POINTS),
    *calls("mixture", f"{OF_ONE_CLOUD} squared_norm stationary", BAD_POINTS),
    *calls("mixture", OF_TWO_CLOUDS, BAD_POINTS, after=(X,)),
    *calls("mixture", OF_TWO_CLOUDS, BAD_POINTS, before=(X,)),
    *calls("diffusion", "rows", BAD_POINTS[1:], before=(2,)),
    *calls("diffusion", "rows", ("soon", -1, np.nan)),
    *calls("diffusion", "kernel_rows novelty", BAD_POINTS),
    *calls("diffusion", "last_step", (*BAD_BLOCKS, sparse.eye(N, format="csr"))),
    *calls("diffusion", "from_points", NOT_TABLES),
    *calls("diffusion", "from_affinity from_graph", ([[1, 2], [3]], -X @ X.T, X, "a")),
    *calls(OPERATORS, "asarray __matmul__", BAD_BLOCKS),
    *calls("deflated", "multiply_projected project deflated", BAD_BLOCKS),
    *calls("deflated", "deflated", (np.ones((N, 1)),)),
    *calls("index", "query", (*NOT_COUNTS, N + 1), before=(X,)),
    *calls("index", "within", NOT_SIZES, before=(X,)),
    *calls("index", "query within", (sparse.csr_matrix(X),), after=(2,)),
    *calls("cosine", "query within", (0 * X,), after=(1,)),
    *calls("kernel", "rows nearest", (sparse.csr_matrix(X),)),
    *calls("kernel", "rows", NOT_SIZES[1:], before=(X,)),
    *calls("heat power", "check_time", NOT_SIZES),
    *calls("heat", "check_time", (0,)),
    *calls("power", "with_log_scale", (-np.ones(2),)),
    *calls("discrepancy", "interval point_interval", (0, 2, "a")),
    *calls("samples", "interval", (2,)),
    ("equal samples", "interval", [(2,)]),
    *((name, "reduced", [()]) for name in ("heat", "power")),
    ("heat", "minus_constant", [()]),
]


def is_refused(error):
    """Say whether a check raised an error: the last line of the traceback is within a `raise`."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = re.search(r"heatsketch|sklearn.utils.validation", last.filename.replace("/", "."))
    above = "".join(linecache.getline(last.filename, last.lineno - j) for j in range(8))
    return ours is not None and "raise " in above


@pytest.mark.parametrize(("who", "method", "arguments"), CALLS)
def test_refusals_are_those_that_the_docstring_names(who, method, arguments):
    call = getattr(made(who), method)
    said = sections_of(getattr(type(made(who)), method)).get("Raises", "ValueError, TypeError")
    named = [getattr(builtins, name, None) for name in re.findall(r"\w+Error", said)]
    for given in arguments:
        with pytest.raises(tuple(filter(None, named))) as refused:
            call(*given)
        assert is_refused(refused.value), f"{given}: {refused.value}"


@pytest.mark.parametrize("affinity", ["knn", "dense", "radius"])
def test_sparse_points_are_not_placed_among_dense_ones(affinity):
    """With as many entries as features, the centre was subtracted from the wrong ones."""
    model = hs.DiffusionMap(affinity=affinity, epsilon=9.0, n_neighbors=5).fit(X)
    new = sparse.csr_matrix([[3.0, 0.0], [0.0, 1.0]])
    for method in (model.transform, model.novelty):
        with pytest.raises(
            ValueError, match=r"is sparse, but .* has dense points; pass \w+\.toarr"
        ):
            method(new)
    assert model.transform(new.toarray()).shape == (2, 2)


@pytest.mark.parametrize(
    "name", ["Isomap", "LandmarkIsomap", "LocallyLinearEmbedding", "LaplacianEigenmap"]
)
def test_classical_methods_refuse_sparse_points_among_dense_ones(name):
    model = getattr(hs.classical, name)(1, n_neighbors=4).fit(
        np.random.default_rng(0).normal(size=(30, 3))
    )
    with pytest.raises(ValueError, match=r"sparse, but the index has dense points; pass x.toarray"):
        model.transform(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("bad", [[[1.0, 2, 3]], [[np.nan, 0.0]], [[1j, 0.0]], "a"])
@pytest.mark.parametrize("epsilon", ["self-tuning", 1.0])
@pytest.mark.parametrize("affinity", ["knn", "dense"])
def test_the_rule_for_new_points_checks_them(bad, affinity, epsilon):
    kernel = hs.diffusion(X, n_neighbors=4, affinity=affinity, epsilon=epsilon).out_of_sample
    for method in (kernel.new_rows, kernel.novelty):
        with pytest.raises((ValueError, TypeError), match=r"features|NaN|[Cc]omplex|path"):
            method(bad)


def test_parameters_are_looked_at_before_points():
    with pytest.raises(ValueError, match="cut=-1 is out of range"):
        hs.diffusion(np.full((5, 2), np.nan), cut=-1)
    with pytest.raises(ValueError, match="affinity='precomputed' is unknown"):
        hs.diffusion(hs.Dense(np.eye(5)), affinity="precomputed")
