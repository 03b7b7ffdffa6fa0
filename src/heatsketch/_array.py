"""Row tiles, threads, random blocks and frames, none of which may change a bit of a result."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from heatsketch._blas import single_threaded_blas as single_threaded_blas
from heatsketch._progress import Stage
from heatsketch._typing import Array, Points, Rng

ROW_TILE = 1024  # rows of one unit of work: fixed, so that results do not depend on threads
MAX_COORDINATE = 2.0**480  # so that sums of squares do not overflow
_SHARES_PER_THREAD = 16  # of the tiles: few, because each costs some microseconds
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
RANDOM_TILE = 4096  # rows of G that share a seed: part of the definition of G, never change it


def row_tiles(n: int, tile: int = ROW_TILE) -> Iterator[slice]:
    """Cut range(n) into slices of `tile` rows."""
    return (slice(start, min(start + tile, n)) for start in range(0, n, tile))


def for_each_tile(
    work: Callable[[slice], None],
    n: int,
    tile: int = ROW_TILE,
    stage: Stage | None = None,
) -> None:
    """Call `work(rows)` on every row tile, in parallel; each call writes its own rows only.

    Tiles are fixed and BLAS runs on one thread inside them, so the result is bitwise the same for
    any number of threads. An error or an interrupt ends the work of all threads after their tile.
    `stage` is told the rows that are done.
    """
    tiles = list(row_tiles(n, tile))
    with single_threaded_blas() as n_threads:
        alone = n_threads == 1 or len(tiles) <= 1 or getattr(_inside, "tile", False)
        done = _in_turn(work, tiles) if alone else _in_threads(work, tiles, n_threads)
        with closing(done), stage or nullcontext():
            for count in done:
                if stage is not None:
                    stage.update(count)


def filled(work: Callable[[slice], Array], shape: tuple[int, ...], tile: int = ROW_TILE) -> Array:
    """Return an array of this shape whose rows are work(rows), computed as in `for_each_tile`."""
    out = np.empty(shape)

    def fill(rows: slice) -> None:
        out[rows] = work(rows)

    for_each_tile(fill, shape[0], tile)
    return out


_inside = threading.local()  # whether this thread works on a tile, whose own tiles it then runs


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Let work on tiles and BLAS take this thread alone, where others work beside it."""
    outside = getattr(_inside, "tile", False)
    _inside.tile = True
    try:
        with single_threaded_blas():
            yield
    finally:
        _inside.tile = outside


def _in_turn(work: Callable[[slice], None], tiles: list[slice]) -> Generator[int, None, None]:
    """Work on the tiles, and yield the number of rows of each when it is done."""
    for rows in tiles:
        work(rows)
        yield rows.stop - rows.start


def _in_threads(
    work: Callable[[slice], None], tiles: list[slice], n_threads: int
) -> Generator[int, None, None]:
    """Work on shares of the tiles in parallel, and yield the rows of each share when it is done."""
    size = -(-len(tiles) // (_SHARES_PER_THREAD * n_threads))
    stopped = threading.Event()

    def run(tiles: list[slice]) -> int:
        _inside.tile = True
        try:
            for rows in tiles:
                if stopped.is_set():  # nobody waits for the result
                    break
                work(rows)
        finally:
            _inside.tile = False
        return tiles[-1].stop - tiles[0].start

    shares = [tiles[i : i + size] for i in range(0, len(tiles), size)]
    try:
        yield from _pool(n_threads).map(run, shares)
    finally:
        stopped.set()


@functools.cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool of the process: threads are started once."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="heatsketch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def random_block(
    n: int,
    k: int,
    kind: str,
    rng: Rng,
    rows: slice | Array | None = None,
    *,
    numbers: Array | None = None,
) -> Array:
    """Draw G (n, k), i.i.d. N(0, 1) ("gaussian") or ±1 ("rademacher"), or some rows of it.

    Each tile of 4096 rows has its own seed, so a row of G depends only on `rng`, k and its
    position: any chunking and any number of threads give the same bits. With the `numbers` (n,) of
    the points, see `numbers_of`, it depends only on `rng`, k and its number.
    """
    entropy = seed_entropy(rng)
    if numbers is not None:
        some = numbers if rows is None else numbers[rows]
        return filled(lambda tile: _numbered_rows(entropy, some[tile], k, kind), (len(some), k))
    if not isinstance(rows, np.ndarray):
        rows = np.arange(n)[slice(None) if rows is None else rows]
    order = np.argsort(rows, kind="stable")
    wanted, G = rows[order], np.empty((len(rows), k))
    tiles = np.unique(wanted // RANDOM_TILE)

    def draw(some: slice) -> None:
        start = int(tiles[some.start]) * RANDOM_TILE
        block = _random_tile(entropy, start // RANDOM_TILE, min(RANDOM_TILE, n - start), k, kind)
        low, high = np.searchsorted(wanted, (start, start + len(block)))
        G[order[low:high]] = block[wanted[low:high] - start]

    for_each_tile(draw, len(tiles), 1)
    return G


def _random_tile(entropy: list[int], tile: int, n: int, k: int, kind: str) -> Array:
    generator = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(tile,)))
    if kind == "gaussian":
        return generator.standard_normal((n, k))
    return 2.0 * generator.integers(0, 2, size=(n, k), dtype=np.int8) - 1.0


def _numbered_rows(entropy: list[int], numbers: Array, k: int, kind: str) -> Array:
    """Draw the rows of G of points with these numbers (m,), (m, k).

    Each row is a stream of its own: hashes of a counter (SplitMix64, Steele et al. 2014) that
    starts at a hash of the seed and the number.
    """
    high, low = (np.uint64(entropy[i] << 32 | entropy[i + 1]) for i in (0, 2))
    start = mixed_bits(mixed_bits(numbers ^ high) + low)
    counter = np.arange(1, k + 1, dtype=np.uint64) * _GOLDEN
    bits = mixed_bits(mixed_bits(start[:, None] + counter) ^ high)
    if kind == "gaussian":
        return ndtri(((bits >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53)
    return 1.0 - 2.0 * (bits >> np.uint64(63))


def data_hash(values: Any) -> str:
    """Return the SHA-256 of points (n, d), array or CSR matrix: of shape, type and numbers.

    Parameters
    ----------
    values : array or CSR matrix (n, d)
        Points.

    Returns
    -------
    str
        64 hexadecimal digits; equal for arrays of the same values in another order of memory.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.io.metadata import data_hash
    >>> data_hash(np.eye(2)) == data_hash(np.eye(2)), data_hash(np.eye(2)) == data_hash(np.eye(3))
    (True, False)
    """
    digest = hashlib.sha256(f"{values.shape} {values.dtype}".encode())
    arrays = [values]
    if sparse.issparse(values):
        arrays = [values.data, values.indices.astype(np.int64), values.indptr.astype(np.int64)]
    for array in arrays:
        for rows in row_tiles(len(array)):
            digest.update(np.ascontiguousarray(array[rows]).data)
    return digest.hexdigest()


def seed_entropy(rng: Rng) -> list[int]:
    """Return 128 random bits; a Generator advances, an integer always gives the same bits."""
    if isinstance(rng, np.random.RandomState):
        return [int(word) for word in rng.randint(0, 2**32, size=4, dtype=np.uint32)]
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={rng!r} (rng) is not a seed; pass None, an integer >= 0, a RandomState "
            "or a Generator."
        ) from None
    return [int(word) for word in generator.integers(0, 2**32, size=4, dtype=np.uint32)]


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which distances are safe: scaled by a power of two, then centred.

    Scaling by 2^-exponent is exact and keeps squares from overflow and underflow; centring prevents
    the loss of digits to a common offset. The centre is a median: the mean can be far from most
    points, which would lose the digits again. Sparse data are scaled but not centred.
    """

    exponent: int
    shift: Array | None  # (d,) in scaled units; None for sparse data

    @classmethod
    def of(cls, X: Points, order: Array | None = None) -> Frame:
        """Choose the frame of the data X (n, d), by their rows in an order."""
        if sparse.issparse(X):
            return cls(_exponent(_largest(X)), None)
        shift = _centre(X, order)
        with np.errstate(over="ignore"):
            spread = max(float(np.max(np.abs(X[rows] - shift))) for rows in row_tiles(len(X)))
        # A column far from 0 must not overflow before the shift is subtracted.
        exponent = max(_exponent(spread), _exponent(float(np.max(np.abs(shift)))) - 1000)
        return cls(exponent, np.ldexp(shift, -exponent))

    def equals(self, other: Frame | None) -> bool:
        """Say whether another frame gives the same coordinates."""
        return (
            other is not None
            and other.exponent == self.exponent
            and np.array_equal(other.shift, self.shift)  # type: ignore[arg-type]
        )

    def __call__(self, X: Points) -> Points:
        """Map data (m, d) into the frame, in float64."""
        if sparse.issparse(X):
            if self.shift is not None:
                raise ValueError("X is sparse, but the points known are not; pass X.toarray().")
            moved = X.astype(np.float64)  # a copy: the data of the caller do not change
            moved.data = self._moved(moved.data)
            return moved
        return self._moved(np.asarray(X, dtype=np.float64))

    def _moved(self, values: Array) -> Array:
        # In C order whatever the order of X: sums in Fortran order round differently.
        with np.errstate(over="ignore"):
            points = np.ldexp(values, -self.exponent, order="C")
        if self.shift is not None:
            points -= self.shift
        # The data are within ±1 of the shift. The square of a new point may overflow; at the limit
        # its affinities are zero, too.
        return np.clip(points, -MAX_COORDINATE, MAX_COORDINATE, out=points)

    def squared(self, epsilon: float) -> float:
        """Convert squared data units to this frame, or raise if float64 cannot represent them."""
        with np.errstate(over="ignore", under="ignore"):
            scaled = float(np.ldexp(epsilon, -2 * self.exponent))
        if not 0 < scaled < np.inf:
            raise ValueError(
                f"epsilon={epsilon:.3g} is outside the range of float64 relative to the size of "
                "the points; rescale both, or pass epsilon='self-tuning'."
            )
        return scaled

    def unsquared(self, value: float | Array) -> float | Array:
        """Convert a squared length of this frame back to squared data units."""
        return np.ldexp(value, 2 * self.exponent)


def _centre(X: Array, order: Array | None) -> Array:
    """Return a median of every column (d,), over at most 2,000 rows: an entry of X, not rounded."""
    step = max(1, len(X) // 1000)
    rows = slice(None, None, step) if order is None else order[::step]
    sample = np.asarray(X[rows], dtype=np.float64)
    middle = len(sample) // 2
    return np.partition(sample, middle, axis=0)[middle]


def _exponent(largest: float) -> int:
    """Return e with 2^(e-1) <= largest < 2^e; 0 for 0."""
    return int(np.frexp(min(largest, np.finfo(float).max))[1]) if largest > 0 else 0


def content_keys(X: Points, columns: bool = True) -> Array:
    """Return a hash of each row of X (n, d): equal for equal rows, wherever they stand.

    Of the bits of float64, after a division of all by a power of two. Zeros do not count, so that
    sparse and dense rows agree; without `columns` neither does the order of the entries of a row.
    Two of a million different rows have the same hash with a probability of 5e-8.
    """
    n, d = X.shape
    odd = mixed_bits(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    keys = np.zeros(n, np.uint64)
    exponent = _exponent(_largest(X))

    def mixed(values: Array) -> Array:
        scaled = np.ldexp(values.astype(np.float64), -exponent, order="C")
        return mixed_bits((scaled + 0.0).view(np.uint64))  # -0.0 + 0.0 is 0.0

    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        bits = mixed(X.data)
        bits = bits * odd[X.indices] if columns else bits
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)])
        keys = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    else:

        def work(rows: slice) -> None:
            bits = mixed(X[rows])
            keys[rows] = (bits * odd if columns else bits).sum(axis=1, dtype=np.uint64)

        for_each_tile(work, n)
    return mixed_bits(keys)


def content_order(X: Points, columns: bool = True) -> Array:
    """Return a permutation of the rows of X (n, d) that looks random but depends on them alone.

    Whatever order the rows come in, the same rows come first: choices by position in it do not
    change when a table is sorted anew. Rows that repeat others come last. Sorted by `content_keys`.
    """
    keys = content_keys(X, columns)
    order = np.argsort(keys, kind="stable")
    repeats = np.append(False, np.diff(keys[order]) == 0)
    return np.concatenate([order[~repeats], order[repeats]])


def distinct_rows(X: Points) -> tuple[Array, Array]:
    """Return (first, vertex): the first row of each value, in an order that looks random but
    depends on the values alone, and for each row of X (n, d) the place of its value in it.
    """
    keys = content_keys(X)
    order = np.argsort(keys, kind="stable")
    new = np.append(True, np.diff(keys[order]) != 0)
    vertex = np.empty(len(order), np.int64)
    vertex[order] = np.cumsum(new) - 1
    return order[new], vertex


def _largest(X: Points) -> float:
    """Return the largest modulus of the entries."""
    if sparse.issparse(X):
        return float(np.max(np.abs(X.data), initial=0.0))
    return max((float(np.abs(X[rows]).max()) for rows in row_tiles(len(X))), default=0.0)


def mixed_bits(bits: Array) -> Array:
    """Spread the bits of 64-bit numbers (the finaliser of MurmurHash3); 0 stays 0."""
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(multiplier)
    return bits ^ (bits >> np.uint64(33))
