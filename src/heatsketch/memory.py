"""How much memory an embedding takes: predicted from the shape of the data, refused beyond."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._checks import check_choice, check_number
from heatsketch.markov.affinity import STORED_POINTS
from heatsketch.markov.diffusion import AFFINITIES
from heatsketch.spectral.filters import SPECTRAL_LIMIT

METHODS = ("heat-embedding", "heat-sketch", "diffusion-map", "mixture-diffusion")
GB = 1e9

# Measured with tracemalloc, which sees every NumPy array; a test measures again.
_POINT = 100  # bytes for each point: scales, row sums, components, order
_COORDINATE, _HELD_COORDINATE = 10, 7  # for each coordinate, while searching and afterwards
_ENTRY, _HELD_ENTRY = 60, 34  # for each neighbour of a point, likewise
_STORED_MATRICES = 2  # (n, n) while a dense affinity is built
_CHECKED, _CHECKED_SPARSE = 16, 36  # for each entry of a given affinity, while it is checked
_SPARSE_SEARCH = 2 * 2**30  # bytes of tiles while neighbours of sparse points are searched
_TILES = 200e6  # bytes of tiles of a kernel that is made on the fly
_EIGEN_MATRICES = 9  # (n, n) while all eigenpairs are computed
_FIXED_BLOCKS, _BLOCKS = 2, 4  # (n, k) while products run: in float64, in the precision of A
_EIGEN_BLOCKS = 9  # while eigenpairs are iterated
_PAIRS = 150e6  # bytes of the pairs that a projection is learned from
_SKETCH_BLOCKS = 4  # of the sketch, meanwhile
_MOST_COMPONENTS = 64  # what n_components="auto" looks at

_MIXTURE_ROWS, _MIXTURE_COPIES, _MIXTURE_PARTS = 20_000, 4, 30  # while a mixture is fitted
_RULE = 29.0  # bytes of each distance that a rule for ε looks at
_CANDIDATES = 4000  # for pivots of a feature map

_ALTERNATIVES = ("n_components", "n_sketch", "n_neighbors", "max_features")  # to be halved
_GROUP_FILES = (  # of versions 2 and 1 of Linux control groups
    ("memory.max", "memory.current", "inactive_file", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "total_inactive_file",
        "memory/memory.stat",
    ),
)

_budget: ContextVar[float | None] = ContextVar("budget", default=None)


class Prediction(NamedTuple):
    """The memory of a fit beyond the data themselves.

    Attributes
    ----------
    stages : dict
        Stage -> bytes that are held at its peak.
    peak : float
        The largest of them.
    """

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
    n_components: int | str,
    dtype: Any = np.float64,
    time: Any = 8,
    n_sketch: int = 256,
    affinity: str = "knn",
    n_neighbors: int = 15,
    max_features: int = 500,
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
        radius, which the shape does not tell.
    max_features : int, default 500
        Of "mixture-diffusion", which may take as many coordinates.
    dtype : float32 or float64, default float64
        Of the data.
    stored : int, optional
        Stored entries of sparse data; n d by default.

    Returns
    -------
    Prediction
        Within a factor 1.5 of what NumPy arrays take at the peak, where that is much more than
        the 0.2 GB of fixed buffers, which are not counted; nor are interpreter and compiled code.

    Raises
    ------
    TypeError, ValueError
        A name that is unknown, a number that is no whole one above 0.

    Examples
    --------
    >>> from heatsketch import memory
    >>> p = memory.predict(10**6, 50, method="heat-sketch", n_components=32)
    >>> list(p.stages), 1e9 < p.peak < 10e9
    (['graph', 'products'], True)
    """
    check_choice(method, "method", METHODS)
    check_choice(affinity, "affinity", (*AFFINITIES, "precomputed"))
    whole = {"n_sketch": n_sketch, "n_neighbors": n_neighbors, "max_features": max_features}
    for name, value in whole.items():
        check_number(value, name, low=1, integer=True)
    itemsize = np.dtype(dtype).itemsize
    if method == "mixture-diffusion":
        return Prediction({"mixture": _mixture(n, d), "map": _map(n, d, max_features, itemsize)})
    built, held = _graph(n, d, stored, affinity, min(n_neighbors + 1, n))
    block = 8.0 * n
    in_product = n * (8.0 * _FIXED_BLOCKS + itemsize * _BLOCKS)  # for each column
    stages = {"graph": built}
    if n_components == "auto":
        k = _MOST_COMPONENTS
    else:
        k = check_number(n_components, "n_components", low=1, integer=True)
    if method == "diffusion-map":
        stages["eigenpairs"] = held + _EIGEN_BLOCKS * block * (k + max(8, k // 2)) + _eigen(n)
    if method == "heat-embedding":
        best = block * n_sketch if isinstance(time, str) else 0.0  # of the times looked at
        stages["sketch"] = held + in_product * n_sketch + best + _eigen(n)
        stages["projection"] = held + _SKETCH_BLOCKS * block * n_sketch + _PAIRS
    stages["products"] = held + in_product * (k * _count(time) + 1)
    return Prediction(stages)


def _mixture(n: int, d: int) -> float:
    """Return the bytes while a mixture is fitted: copies of a sample, and the rule for ε."""
    rows = min(n, _MIXTURE_ROWS)
    rule = _RULE * (n * n if n <= 2000 else 500 * min(n, 20_000))
    return 8.0 * (n * d + rows * (_MIXTURE_COPIES * d + _MIXTURE_PARTS)) + rule


def _map(n: int, d: int, r: int, itemsize: int) -> float:
    """Return the bytes while a feature map of r coordinates is chosen and used."""
    candidates = min(n, _CANDIDATES)
    return 8.0 * n * (d + r) + itemsize * n * r + 8.0 * candidates * (3 * r + _MIXTURE_PARTS * d)


def _count(time: Any) -> int:
    several = isinstance(time, Sequence | np.ndarray) and not isinstance(time, str)
    return len(time) if several else 1


def options_of(X: Any, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `predict` for data X (n, d) and the parameters of an estimator."""
    names = ("n_components", "time", "n_sketch", "affinity", "n_neighbors", "max_features")
    known = {name: parameters[name] for name in names if name in parameters}
    stored = X.nnz if sparse.issparse(X) else None
    return known | {"method": method, "dtype": X.dtype, "stored": stored}


def _graph(n: int, d: int, stored: int | None, affinity: str, m: int) -> tuple[float, float]:
    """Return the bytes at the peak of building the operator, and those held afterwards."""
    entries = n * d if stored is None else stored
    if affinity == "precomputed":
        each = _CHECKED if stored is None else _CHECKED_SPARSE
        return float(n * _POINT + entries * each), float(n * _POINT)
    built = float(n * _POINT + entries * _COORDINATE)
    held = float(n * _POINT + entries * _HELD_COORDINATE)
    square = 8.0 * n * n
    if stored is not None:
        built += min(_SPARSE_SEARCH, 2 * square)
    if affinity != "dense":
        return built + n * m * _ENTRY, held + n * m * _HELD_ENTRY
    if n <= STORED_POINTS:
        return built + _STORED_MATRICES * square, held + square
    return built + _TILES, held + _TILES


def _eigen(n: int) -> float:
    return 8.0 * n * n * _EIGEN_MATRICES if n <= SPECTRAL_LIMIT else 0.0


def check(n: int, d: int, *, budget: float | None = None, **options: Any) -> Prediction:
    """Predict the memory of a fit, and refuse it where it is more than there is.

    Parameters
    ----------
    n, d, options
        As of `predict`.
    budget : float, optional
        Bytes; by default those of `memory_budget`, else what is available on this machine.

    Returns
    -------
    Prediction

    Raises
    ------
    MemoryError
        The peak is beyond the budget; the message names what would take less.

    Examples
    --------
    >>> from heatsketch import memory
    >>> memory.check(1000, 3, method="heat-sketch", n_components=8, budget=1e9).peak < 1e9
    True
    """
    predicted = predict(n, d, **options)
    if predicted.peak > _limit(budget):
        stage = max(predicted.stages, key=lambda name: predicted.stages[name])
        raise MemoryError(
            f"{n:,} points with {d:,} features take about {in_words(predicted.peak)} at the peak "
            f"({stage}), but {in_words(_limit(budget))} are there; {less_memory(n, d, **options)}"
        )
    return predicted


def require(size: float, what: str, instead: str, *, budget: float | None = None) -> None:
    """Raise MemoryError where work that takes so many bytes is more than there is room for.

    Parameters
    ----------
    size : float
        Bytes.
    what : str
        What takes them, in the plural.
    instead : str
        What to do.
    budget : float, optional
        As of `check`.

    Examples
    --------
    >>> from heatsketch import memory
    >>> try:
    ...     memory.require(8e12, "Distances between 1,000,000 points", "use landmarks.", budget=1e9)
    ... except MemoryError as error:
    ...     print(error)
    Distances between 1,000,000 points take about 8,000.0 GB, but 1.0 GB are there; use landmarks.
    """
    limit = _limit(budget)
    if size > limit:
        raise MemoryError(
            f"{what} take about {in_words(size)}, but {in_words(limit)} are there; {instead}"
        )


def _limit(budget: float | None) -> float:
    return next(b for b in (budget, _budget.get(), available()) if b is not None)


def less_memory(n: int, d: int, **options: Any) -> str:
    """Say what would take less memory, and how much; parameters of `predict`."""
    changes: list[tuple[str, dict[str, Any]]] = [("float32 data", {"dtype": np.float32})]
    graph = options["method"] != "mixture-diffusion"
    if graph and options.get("affinity", "knn") != "precomputed":
        changes.append(("affinity='knn'", {"affinity": "knn"}))
    for name in _ALTERNATIVES:
        value = options.get(name)
        if isinstance(value, int) and value > 1:
            changes.append((f"{name}={value // 2}", {name: value // 2}))
    peak = predict(n, d, **options).peak
    found = [(predict(n, d, **(options | change)).peak, text) for text, change in changes]
    less = ", ".join(
        f"{text} ({in_words(size)})" for size, text in sorted(found) if size < 0.95 * peak
    )
    return f"pass {less}, or fewer points." if less else "pass fewer points."


def in_words(size: float) -> str:
    """Write a number of bytes in MB or GB.

    Examples
    --------
    >>> from heatsketch import memory
    >>> memory.in_words(2.5e6), memory.in_words(1.25e10)
    ('3 MB', '12.5 GB')
    """
    return f"{math.ceil(size / 1e6):,} MB" if size < GB else f"{size / GB:,.1f} GB"


@contextmanager
def memory_budget(size: float | None) -> Iterator[None]:
    """Let fits inside the block take so many bytes, more or fewer than seem available.

    Parameters
    ----------
    size : float or None
        Bytes; None changes nothing.

    Examples
    --------
    >>> from heatsketch import memory
    >>> with memory.memory_budget(1e6):
    ...     try:
    ...         memory.check(10_000, 3, method="heat-sketch", n_components=8)
    ...     except MemoryError as error:
    ...         print("refused")
    refused
    """
    if size is not None:
        size = check_number(size, "size", low=0, open_low=True)
    token = _budget.set(_budget.get() if size is None else size)
    try:
        yield
    finally:
        _budget.reset(token)


def available() -> float:
    """Return the bytes this process may still take; infinity where the system does not tell."""
    return min(_of_machine(), _of_group())


def _of_machine(path: Path = Path("/proc/meminfo")) -> float:
    """Return what is free or could be freed at once; elsewhere than on Linux, all there is."""
    try:
        lines = path.read_text().splitlines()
        return 1024.0 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _of_group(folder: Path = Path("/sys/fs/cgroup")) -> float:
    """Return what the limit of a container leaves; files that are cached could be dropped."""
    left = math.inf
    for limit, used, files, statistics in _GROUP_FILES:
        try:
            lines = (folder / statistics).read_text().splitlines()
            cached = next(int(x.split()[1]) for x in lines if x.startswith(files + " "))
            # The limit of version 2 reads "max" where there is none.
            bounds = (int((folder / name).read_text()) for name in (limit, used))
            left = min(left, next(bounds) - next(bounds) + cached)
        except (OSError, ValueError, StopIteration):
            continue
    return float(left)
