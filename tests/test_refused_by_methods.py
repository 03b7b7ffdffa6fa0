"""A method that is given what it cannot take raises an error that it names, in our own words.

In our own words: the error is raised by a statement of the library, not by NumPy beneath it.
"""

import ast
import builtins
import dataclasses
import functools
import re
import traceback
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.neighbors import NeighborIndex
from test_docstrings import sections_of

N, D = 12, 2
X = np.random.default_rng(0).normal(size=(N, D))
WIDE, WITH_NAN = np.ones((3, D + 1)), np.full((3, D), np.nan)
TEXT = np.full((3, D), "a")
SHORT = np.ones((N - 1, 2))
NOT_NUMBERS = {
    "text": TEXT,
    "words": "abc",
    "none": None,
    "objects": np.full((3, D), {}, object),
    "ragged": [[1, 2], [3]],
    "dates": np.full((3, D), "2020-01-01", "M8[D]"),
}
BAD_POINTS = NOT_NUMBERS | {
    "wide": WIDE,
    "narrow": WIDE[:, :1],
    "flat": X[0],
    "stacked": np.ones((3, D, 1)),
    "without columns": np.ones((3, 0)),
    "nan": WITH_NAN,
    "infinite": -WITH_NAN / 0,
    "complex": 1j * X,
    "masked": np.ma.masked_array(X, X > 0),
    "number": 3.0,
}
RIGHT = ("wide", "narrow")  # where any number of features will do
BAD_BLOCKS = NOT_NUMBERS | {
    "short": SHORT,
    "stacked": np.ones((N, 2, 2)),
    "complex": 1j * np.ones((N, 2)),
    "sparse": sparse.csr_matrix(np.ones((N, 2))),
    "number": 3.0,
}
NOT_COUNTS = {"none": None, "text": "3", "half": 0.5, "nan": np.nan, "below": -1, "list": [1]}
NOT_SIZES = {"none": None, "text": "3", "nan": np.nan, "infinite": np.inf, "below": -1, "list": [1]}


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
    "whitening": lambda: hs.mixture.Whitening.of(X, 0),
}
OF_POINTS = {
    "cholesky": ("transform", "residual"),
    "cosine": ("within", "query", "pairs_within"),
    "diffusion": ("kernel_rows", "novelty", "rows"),
    "index": ("within", "query", "pairs_within"),
    "kernel": ("nearest", "rows"),
    "mixture": (
        *("anomaly_score", "gradient", "log_diagonal", "log_stationary", "low_rank"),
        *("responsibilities", "squared_norm", "stationary"),
    ),
    "whitening": ("log_rest",),
}
# What a method takes before points, or after them.
BEFORE = {"rows": (2,)}
AFTER = {"within": (1.0,), "query": (2,), "pairs_within": (np.ones(3),)}
OF_PAIRS = ("kernel", "log_kernel", "squared_distance", "transition_density")
OPERATORS = ("affine", "deflated", "dense", "kernel", "lowrank", "scaled", "sparse")
OF_BLOCKS = {
    **dict.fromkeys(OPERATORS, ("asarray", "__matmul__")),
    "deflated": ("asarray", "multiply_projected", "project", "deflated"),
    "diffusion": ("last_step",),
}


def with_points(who, method, bad):
    """Return the arguments of a call with these points."""
    before = BEFORE.get(method, ()) if who == "diffusion" else ()
    return (*before, bad, *AFTER.get(method, ()))


FAMILIES = [
    *(
        (who, method, with_points(who, method, bad), name)
        for who, methods in OF_POINTS.items()
        for method in methods
        for name, bad in BAD_POINTS.items()
        if not (method == "rows" and bad is None)  # those of the data
    ),
    *(
        ("mixture", method, pair, name)
        for method in OF_PAIRS
        for name, bad in BAD_POINTS.items()
        for pair in ((bad, X), (X, bad))
    ),
    *(
        (who, method, (bad,), name)
        for who, methods in OF_BLOCKS.items()
        for method in methods
        for name, bad in BAD_BLOCKS.items()
    ),
    *(
        ("index", method, (*before, bad), name)
        for method, before in (
            *(("of_points", ()), ("recall_at", ()), ("diagnostics", ()), ("query", (X,))),
        )
        for name, bad in NOT_COUNTS.items()
    ),
    *(
        ("index", method, (*before, bad), name)
        for method, before in (("points_within", ()), ("within", (X,)))
        for name, bad in NOT_SIZES.items()
    ),
    *(("index", "pairs_within", (X, bad), name) for name, bad in BAD_BLOCKS.items()),
    *(("kernel", "rows", (X, bad), name) for name, bad in NOT_SIZES.items() if bad is not None),
    *(("whitening", "of", (bad, 0), name) for name, bad in BAD_POINTS.items() if name not in RIGHT),
    *(("whitening", "of", (X, bad), name) for name, bad in NOT_COUNTS.items()),
    *(("whitening", "scaled", (bad,), name) for name, bad in NOT_SIZES.items()),
    *(
        (who, "check_time", (bad,), name)
        for who in ("power", "heat")
        for name, bad in NOT_SIZES.items()
    ),
    *(
        ("diffusion", "from_points", (bad,), name)
        for name, bad in BAD_POINTS.items()
        if name not in RIGHT
    ),
    *(("diffusion", m, ([[1, 2], [3]],), "ragged") for m in ("from_affinity", "from_graph")),
    *(
        ("diffusion", "expand", (bad,), name)
        for name, bad in (("short", SHORT), ("list", [1.0]), ("ragged", [[1, 2], [3]]))
    ),
]
CALLS = [
    ("deflated", "deflated", (np.ones((N, 1)),)),
    *(("index", "of_points", (N + 1,)), ("index", "query", (X, N + 1))),
    *(("cosine", "query", (0 * X, 1)), ("cosine", "within", (0 * X, 1.0))),
    *(("index", m, (sparse.csr_matrix(X), 2)) for m in ("query", "within")),
    *(("kernel", m, (sparse.csr_matrix(X),)) for m in ("rows", "nearest")),
    *(("diffusion", "rows", (time,)) for time in ("soon", -1, np.nan)),
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
    *(("heat", "check_time", (0,)), ("heat", "reduced", ()), ("heat", "minus_constant", ())),
    *(("power", "reduced", ()), ("power", "scaled", (-np.ones(2),))),
]


@functools.cache
def raise_statements(path):
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return [range(n.lineno, n.end_lineno + 1) for n in ast.walk(tree) if isinstance(n, ast.Raise)]


def is_ours(error):
    """Say whether an error comes from a `raise` of the library."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    inside = Path(hs.__file__).parent in Path(last.filename).parents
    return inside and any(last.lineno in lines for lines in raise_statements(last.filename))


@pytest.mark.parametrize(
    ("who", "method", "args", "name"),
    [*((*call, "") for call in CALLS), *FAMILIES],
    ids=lambda v: v if type(v) is str else "",
)
def test_a_refusal_is_one_that_the_docstring_names(who, method, args, name):
    value = made(who)
    said = sections_of(getattr(type(value), method)).get("Raises", "ValueError, TypeError")
    named = [getattr(builtins, name, None) for name in re.findall(r"\w+Error", said)]
    with pytest.raises(tuple(filter(None, named))) as refused:
        getattr(value, method)(*args)
    assert is_ours(refused.value), f"{name}: {refused.value}"


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
