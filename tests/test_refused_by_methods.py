"""A method that is given what it cannot take raises one of the errors that it names."""

import builtins
import dataclasses
import functools
import re

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.neighbors import NeighborIndex
from test_docstrings import sections_of

N, D = 12, 2
X = np.random.default_rng(0).normal(size=(N, D))
WIDE, WITH_NAN = np.ones((3, D + 1)), np.full((3, D), np.nan)
TEXT = np.full((3, D), "a")
SHORT = np.ones((N - 1, 2))


@functools.cache
def made(name):
    return MAKERS[name]()


MAKERS = {
    "affine": lambda: hs.Affine(made("dense")),
    "cholesky": lambda: hs.mixture.CholeskyMap().fit(made("mixture"), points=X),
    "deflated": lambda: hs.Deflated(made("dense"), np.full(N, N**-0.5)),
    "dense": lambda: hs.Dense(np.eye(N)),
    "diffusion": lambda: hs.diffusion(X, n_neighbors=5),
    "discrepancy": lambda: hs.diffusion_discrepancy(made("diffusion"), made("diffusion"), rng=0),
    "equal samples": lambda: dataclasses.replace(made("samples"), value=0.0),
    "heat": lambda: hs.Heat(0.0),
    "hermite": lambda: hs.mixture.HermiteMap(order=2).fit(made("mixture"), points=X),
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
OF_POINTS = {
    "cholesky": ("transform", "residual"),
    "hermite": ("transform", "residual"),
    "mixture": (
        *("anomaly_score", "gradient", "log_diagonal", "log_stationary", "low_rank"),
        *("responsibilities", "squared_norm", "stationary"),
    ),
}
OF_PAIRS = ("kernel", "log_kernel", "squared_distance", "transition_density")
OPERATORS = ("affine", "deflated", "dense", "kernel", "lowrank", "scaled", "sparse")
CALLS = [
    *((who, m, (bad,)) for who, ms in OF_POINTS.items() for m in ms for bad in (WIDE, WITH_NAN)),
    *((who, m, (TEXT,)) for who, methods in OF_POINTS.items() for m in methods),
    *(("mixture", m, pair) for m in OF_PAIRS for pair in ((WIDE, X), (X, WITH_NAN), (X, TEXT))),
    *((who, "asarray", (SHORT,)) for who in OPERATORS),
    *(("deflated", m, (SHORT,)) for m in ("project", "project_in_place", "multiply_projected")),
    *(("deflated", "without", (bad,)) for bad in (SHORT, np.ones((N, 1)))),
    *(("kernel", m, (bad,)) for m in ("rows", "nearest") for bad in (WIDE, WIDE[:, :1], X[0])),
    *(
        ("index", "of_points", (N + 1,)),
        ("index", "query", (X, N + 1)),
        ("index", "query", (WIDE, 1)),
    ),
    *(("index", "within", (WIDE, 1.0)), ("cosine", "query", (0 * X, 1))),
    ("cosine", "within", (0 * X, 1.0)),
    *(("diffusion", "rows", (time,)) for time in ("soon", -1, np.nan)),
    *(("diffusion", "rows", (2, bad)) for bad in (WIDE, WITH_NAN)),
    *(("diffusion", "smooth_new", (bad, np.eye(N))) for bad in (WIDE, WITH_NAN)),
    *(("diffusion", "smooth", (SHORT,)), ("diffusion", "smooth_new", (X, SHORT))),
    *(
        ("diffusion", m, (bad,))
        for m in ("from_affinity", "from_graph")
        for bad in (-X @ X.T, X, "a")
    ),
    *(
        ("discrepancy", m, (level,))
        for m in ("interval", "point_interval")
        for level in (0, 2, "a")
    ),
    *((who, "interval", (2,)) for who in ("samples", "equal samples")),
    *(("heat", m, (time,)) for m in ("at", "check_time") for time in (-1, "soon", np.inf)),
    *(("heat", m, (0,)) for m in ("check_time", "of_coordinates")),
    *(("heat", "quotient", ()), ("heat", "moved", ()), ("heat", "step_weights", (0, np.ones(2)))),
    *(("power", m, (time,)) for m in ("at", "check_time") for time in (-1, "soon", np.nan)),
    *(("power", "quotient", ()), ("power", "moved", ()), ("power", "scaled", (-np.ones(2),))),
    *(("power", "step_weights", (0.5, lam)) for lam in (-np.ones(2), np.zeros(2))),
    ("power", "of_coordinates", (-1,)),
]


@pytest.mark.parametrize(
    ("who", "method", "args"), CALLS, ids=lambda v: v if type(v) is str else ""
)
def test_a_refusal_is_one_that_the_docstring_names(who, method, args):
    value = made(who)
    said = sections_of(getattr(type(value), method))["Raises"]
    named = [getattr(builtins, name, None) for name in re.findall(r"\w+Error", said)]
    with pytest.raises(tuple(filter(None, named))):
        getattr(value, method)(*args)
