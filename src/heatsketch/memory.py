"""The memory that a fit takes: predicted from the shape of the data, and refused if too much."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._budget import GB, available, in_words, limit_of, memory_budget, require
from heatsketch._checks import check_choice, check_number
from heatsketch.isometry.learn import MAX_ROWS
from heatsketch.markov.affinities import AFFINITIES, TABLE_AFFINITIES
from heatsketch.markov.affinity import STORED_POINTS
from heatsketch.markov.coordinates import COLUMNS_AT_A_TIME, REMEMBERED_ENTRIES
from heatsketch.markov.rows import N_LEADING
from heatsketch.mixture.pivoted import MAX_FIRST_CANDIDATES
from heatsketch.operators.sparse import is_large
from heatsketch.scales.bandwidth import n_rule_distances
from heatsketch.spectral.apply import SPECTRAL_LIMIT
from heatsketch.uncertainty.laws import columns_for

__all__ = [
    "GB",
    "PREDICTED_METHODS",
    "Prediction",
    "available",
    "check",
    "in_words",
    "less_memory",
    "memory_budget",
    "most_points",
    "options_of",
    "predict",
    "require",
]

PREDICTED_METHODS = ("heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion")
MOST_AUTO_COMPONENTS = 64  # eigenvalues that n_components="auto" of a diffusion map computes
MIXTURE_FIT_ROWS = 20_000  # points that a mixture is fitted to

# Measured with tracemalloc, which sees every NumPy array; a test measures again.
_POINT_BYTES = 100  # scales, row sums, components, order
_COORDINATE_BYTES, _HELD_COORDINATE_BYTES = 10, 7  # during the search, and afterwards
_NEIGHBOR_BYTES, _HELD_NEIGHBOR_BYTES = 60, 34  # of each neighbour of a point, likewise
_GIVEN_ENTRY_BYTES, _GIVEN_SPARSE_ENTRY_BYTES = 16, 36  # while a given affinity is checked
_TABLE_ENTRY_BYTES, _HELD_TABLE_ENTRY_BYTES = 86, 40  # of a table, its factor and components
_INDEX_BYTES = 4  # of a stored entry of sparse data
_SPARSE_SEARCH_BYTES = 2 * 2**30  # tiles while neighbours of sparse points are searched
_KERNEL_TILE_BYTES = 200e6  # tiles of a kernel that is not stored
_DENSE_MATRICES = 2  # (n, n) while a dense affinity is built
_EIGEN_MATRICES = 9  # (n, n) while all eigenpairs of a diffusion map are computed
_LEADING_BLOCKS = 6  # (n, 96) while the leading eigenpairs are computed
_ALL_PAIRS_MATRICES = 5  # (n, n) while all eigenpairs are computed, and a map of them is learned
_ROW_BLOCKS = 6  # (rows, coordinates) while a map of them is learned
_MANY_PAIRS_BYTES, _PAIR_BYTES = 100e6, 75  # of pairs: a sample, and each where all are taken
_WORKING_BYTES = 20e6  # of the pairs that a map is learned from
_COMPARED_COLUMNS, _COMPARING_BYTES = 128, 50e6  # of the distances that are compared
_EIGEN_BLOCKS = 9  # (n, k) while some eigenpairs are computed
_FLOAT64_BLOCKS, _OPERATOR_BLOCKS = 2, 4  # (n, k) during products, the latter in the dtype of A
_MIXTURE_COPIES, _MIXTURE_NUMBERS = 4, 30  # of a sample, and for each of its points
_RULE_BYTES = 29.0  # for each distance that a rule for ε computes

_HALVED = ("n_components", "n_sketch", "n_neighbors", "max_features")  # to take less memory


class Prediction(NamedTuple):
    """The memory of a fit beyond the data themselves: stage -> bytes that are held at its peak."""

    stages: dict[str, float]

    @property
    def peak(self) -> float:
        """Bytes at the peak of all stages."""
        return max(self.stages.values())


def predict(
    n: int,
    d: int,
    *,
    method: str,
    n_components: int | float | str,
    dtype: Any = np.float64,
    time: Any = 8,
    n_sketch: int = 128,
    affinity: str = "knn",
    n_neighbors: int = 15,
    max_features: int = 200,
    stored: int | None = None,
) -> Prediction:
    """Predict the memory that a fit takes beyond the data, from their shape alone.

    Parameters
    ----------
    n, d : int
        Points and features; d = n with ``affinity="precomputed"``.
    method : "heat-embedding", "heat-sketch", "diffusion-map" or "mixture-diffusion"
    n_components, time, n_sketch, affinity, n_neighbors
        As of the estimators. With "radius", `n_neighbors` is the mean number of points within the
        radius, which the shape does not determine.
    max_features : int, default 200
        Of "mixture-diffusion": an upper bound of its coordinates.
    dtype : float32 or float64, default float64
        Of the data.
    stored : int, optional
        Stored entries of sparse data; n d by default.

    Returns
    -------
    Prediction
        Within a factor 1.5 of what NumPy arrays take at the peak, if that is much more than the
        0.2 GB of fixed buffers. These, the interpreter and compiled code are not counted.

    Raises
    ------
    TypeError, ValueError
        A method or affinity that is unknown, or a number that is not an integer above 0.

    Examples
    --------
    >>> from heatsketch import memory
    >>> p = memory.predict(10**6, 50, method="heat-sketch", n_components=32)
    >>> list(p.stages), 1e9 < p.peak < 10e9
    (['graph', 'products'], True)
    """
    check_choice(method, "method", PREDICTED_METHODS)
    check_choice(affinity, "affinity", (*AFFINITIES, "precomputed"))
    whole = {"n_sketch": n_sketch, "n_neighbors": n_neighbors, "max_features": max_features}
    for name, value in whole.items():
        check_number(value, name, low=1, integer=True)
    itemsize = np.dtype(dtype).itemsize
    if method == "mixture-diffusion":
        return Prediction({"mixture": _mixture(n, d), "map": _map(n, d, max_features, itemsize)})
    built, held = _graph(n, d, stored, affinity, min(n_neighbors + 1, n))
    block = 8.0 * n
    in_product = n * (8.0 * _FLOAT64_BLOCKS + itemsize * _OPERATOR_BLOCKS)  # for each column
    stages = {"graph": built}
    is_share = method == "diffusion-map" and type(n_components) is float and 0 < n_components < 1
    if n_components == "auto" or is_share:
        k = MOST_AUTO_COMPONENTS
    else:
        k = check_number(n_components, "n_components", low=1, integer=True)
    if method == "diffusion-map":
        stages["eigenpairs"] = held + _EIGEN_BLOCKS * block * (k + max(8, k // 2)) + _eigen(n)
    if method == "heat-embedding":
        single = is_large(n) and affinity in ("knn", "radius")
        learned = _learned(n, k, n_sketch, itemsize, 4 if single else 8)
        stages |= {name: held + size for name, size in learned.items()}
    stages["products"] = held + in_product * (k * _count(time) + 1)
    return Prediction(stages)


def _mixture(n: int, d: int) -> float:
    """Return the bytes while a mixture is fitted: copies of a sample, and the rule for ε."""
    rows = min(n, MIXTURE_FIT_ROWS)
    sample = 8.0 * (n * d + rows * (_MIXTURE_COPIES * d + _MIXTURE_NUMBERS))
    return sample + _RULE_BYTES * n_rule_distances(n)


def _map(n: int, d: int, r: int, itemsize: int) -> float:
    """Return the bytes while a feature map of r coordinates is chosen and used."""
    candidates = min(n, MAX_FIRST_CANDIDATES)
    return 8.0 * n * (d + r) + itemsize * n * r + 8.0 * candidates * (3 * r + _MIXTURE_NUMBERS * d)


def _count(time: Any) -> int:
    several = isinstance(time, Sequence | np.ndarray) and not isinstance(time, str)
    return len(time) if several else 1


def options_of(X: Any, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `predict` for data X (n, d) and the parameters of an estimator."""
    names = ("n_components", "time", "n_sketch", "affinity", "n_neighbors", "max_features")
    known = {name: parameters[name] for name in names if name in parameters}
    if method == "heat-sketch" and known["n_components"] == "auto":
        known["n_components"] = columns_for(parameters["tolerance"], kind=parameters["kind"])
    stored = X.nnz if sparse.issparse(X) else None
    return known | {"method": method, "dtype": X.dtype, "stored": stored}


def _graph(n: int, d: int, stored: int | None, affinity: str, m: int) -> tuple[float, float]:
    """Return the bytes at the peak of building the operator, and the bytes held afterwards."""
    entries = n * d if stored is None else stored
    if affinity in TABLE_AFFINITIES:
        return float(n * _POINT_BYTES + entries * _TABLE_ENTRY_BYTES), float(
            n * _POINT_BYTES + entries * _HELD_TABLE_ENTRY_BYTES
        )
    if affinity == "precomputed":
        each = _GIVEN_ENTRY_BYTES if stored is None else _GIVEN_SPARSE_ENTRY_BYTES
        return float(n * _POINT_BYTES + entries * each), float(n * _POINT_BYTES)
    built = float(n * _POINT_BYTES + entries * _COORDINATE_BYTES)
    held = float(n * _POINT_BYTES + entries * _HELD_COORDINATE_BYTES)
    square = 8.0 * n * n
    if stored is not None:
        built += min(_SPARSE_SEARCH_BYTES, 2 * square)
    if affinity != "dense":
        return built + n * m * _NEIGHBOR_BYTES, held + n * m * _HELD_NEIGHBOR_BYTES
    if n <= STORED_POINTS:
        return built + _DENSE_MATRICES * square, held + square
    return built + _KERNEL_TILE_BYTES, held + _KERNEL_TILE_BYTES


def _eigen(n: int) -> float:
    return 8.0 * n * n * _EIGEN_MATRICES if n <= SPECTRAL_LIMIT else 0.0


def _learned(n: int, k: int, n_sketch: int, itemsize: int, of_eigenpairs: int) -> dict[str, float]:
    """Return the bytes of each stage of a heat embedding, beyond the operator.

    `itemsize` is that of the data, `of_eigenpairs` that of the blocks they are computed from.
    """
    if n <= SPECTRAL_LIMIT:
        matrices = 8.0 * n * n * _ALL_PAIRS_MATRICES
        pairs = _WORKING_BYTES + _PAIR_BYTES * n * (n - 1) / 2
        return {"eigenpairs": matrices, "projection": matrices + pairs, "comparison": matrices}
    count = max(N_LEADING, k)
    pairs_held = 2.0 * itemsize * n * count  # and what is deflated by them
    rest = itemsize * min(n * n_sketch, max(REMEMBERED_ENTRIES, n * COLUMNS_AT_A_TIME))
    rows = 8.0 * min(n, MAX_ROWS) * (count + n_sketch)
    compared = n * (8.0 + 3 * itemsize) * _COMPARED_COLUMNS
    return {
        "eigenpairs": _LEADING_BLOCKS * of_eigenpairs * n * (count + max(8.0, count // 2)),
        "projection": pairs_held + rest + _ROW_BLOCKS * rows + _MANY_PAIRS_BYTES,
        "comparison": compared + _COMPARING_BYTES,
    }


def check(n: int, d: int, *, budget: float | None = None, **options: Any) -> Prediction:
    """Predict the memory of a fit, and raise MemoryError if it is more than the budget.

    Parameters
    ----------
    n, d, options
        As of `predict`.
    budget : float, optional
        Bytes; by default those of `memory_budget`, or else what this machine has available.

    Raises
    ------
    MemoryError
        The peak exceeds the budget; the message says what would take less.

    Examples
    --------
    >>> from heatsketch import memory
    >>> memory.check(1000, 3, method="heat-sketch", n_components=8, budget=1e9).peak < 1e9
    True
    """
    predicted = predict(n, d, **options)
    limit = limit_of(budget)
    if predicted.peak > limit:
        stage = max(predicted.stages, key=lambda name: predicted.stages[name])
        raise MemoryError(
            f"{n:,} points with {d:,} features take about {in_words(predicted.peak)} at the peak "
            f"({stage}), but only {in_words(limit)} is available; {less_memory(n, d, **options)}"
        )
    return predicted


def most_points(n: int, d: int, *, budget: float | None = None, **options: Any) -> int:
    """Return how many of n points a fit may take, with the points, in half of the budget.

    The other half is for what is not counted by `predict`, and for other programs.

    Parameters
    ----------
    n, d, options
        As of `predict`; `stored` are the entries of all n points.
    budget : float, optional
        Bytes, as of `check`.

    Returns
    -------
    int
        From 0 to n; a sixteenth at most is left unused.

    Examples
    --------
    >>> from heatsketch import memory
    >>> options = {"method": "heat-sketch", "n_components": 8, "budget": 1e9}
    >>> memory.most_points(1000, 3, **options), memory.most_points(10**8, 3, **options) < 10**6
    (1000, True)
    """
    limit, itemsize = limit_of(budget) / 2, np.dtype(options.get("dtype", np.float64)).itemsize
    stored, total = options.pop("stored", None), n
    each = d * itemsize if stored is None else (itemsize + _INDEX_BYTES) * stored / max(1, n)

    def fits(count: int) -> bool:
        entries = None if stored is None else stored * count // total
        peak = predict(count, d, **options, stored=entries).peak
        return peak + float(count) * each <= limit

    while n > 0 and not fits(n):
        n -= max(1, n // 16)
    return n


def less_memory(n: int, d: int, **options: Any) -> str:
    """Say what would take less memory, and how much; parameters of `predict`."""
    changes: list[tuple[str, dict[str, Any]]] = [("float32 data", {"dtype": np.float32})]
    graph = options["method"] != "mixture-diffusion"
    if graph and options.get("affinity", "knn") != "precomputed":
        changes.append(("affinity='knn'", {"affinity": "knn"}))
    for name in _HALVED:
        value = options.get(name)
        if isinstance(value, int) and value > 1:
            changes.append((f"{name}={value // 2}", {name: value // 2}))
    peak = predict(n, d, **options).peak
    found = [(predict(n, d, **(options | change)).peak, text) for text, change in changes]
    less = ", ".join(
        f"{text} ({in_words(size)})" for size, text in sorted(found) if size < 0.95 * peak
    )
    return f"pass {less}, or fewer points." if less else "pass fewer points."
