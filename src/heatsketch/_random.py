"""Random blocks, and hashes of rows and ids on which random choices depend."""

import hashlib
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from heatsketch._arrays import Array, Points, Rng
from heatsketch._threads import filled, for_each_tile, row_tiles

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
HASH_MULTIPLIERS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
RANDOM_TILE = 4096  # rows of G that share a seed: part of the definition of G, never change it


def random_block(n: int, k: int, kind: str, rng: Rng, numbers: Array | None = None) -> Array:
    """Draw G (n, k), i.i.d. N(0, 1) ("gaussian") or ±1 ("rademacher").

    Each tile of 4096 rows has its own seed, so a row of G depends only on `rng`, k and its
    position: any number of threads gives the same bits. With the `numbers` (n,) of the points, see
    `numbers_of`, a row depends only on `rng`, k and its number.
    """
    entropy = seed_entropy(rng)
    if numbers is not None:
        shape = (len(numbers), k)
        return filled(lambda rows: _numbered_rows(entropy, numbers[rows], k, kind), shape)
    G = np.empty((n, k))

    def draw(rows: slice) -> None:
        seed = np.random.SeedSequence(entropy, spawn_key=(rows.start // RANDOM_TILE,))
        generator = np.random.default_rng(seed)
        if kind == "gaussian":
            generator.standard_normal(out=G[rows])
        else:
            G[rows] = 2.0 * generator.integers(0, 2, size=G[rows].shape, dtype=np.int8) - 1.0

    for_each_tile(draw, n, RANDOM_TILE)
    return G


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
    """Return the SHA-256 of the shape, type and numbers of points, dense or sparse.

    Parameters
    ----------
    values : {array-like, sparse matrix} of shape (n_samples, n_features)
        Points.

    Returns
    -------
    str
        64 hexadecimal digits; equal for arrays of the same values in another order of memory.

    See Also
    --------
    io.read_table : Read points, ids and labels from a file.

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
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def seed_entropy(rng: Rng) -> list[int]:
    """Return 128 random bits; a Generator advances, an integer always gives the same bits."""
    if isinstance(rng, np.random.RandomState):
        return rng.randint(0, 2**32, size=4, dtype=np.uint32).tolist()
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={rng!r} (rng) is not a seed; pass None, an integer >= 0, a RandomState "
            "or a Generator."
        ) from None
    return generator.integers(0, 2**32, size=4, dtype=np.uint32).tolist()


def content_order(X: Points, columns: bool = True, digits: Any = np.float64) -> Array:
    """Return a permutation of the rows of X (n, d) that looks random but depends on X alone.

    The same rows come first in any order of the table, so choices by position in the permutation do
    not change when a table is sorted. Rows that repeat others come last. With `digits` of float32
    it is the same order for points in both precisions.
    """
    first, vertex = distinct_rows(X, columns, digits)
    repeats = np.delete(np.arange(len(vertex)), first)
    return np.append(first, repeats[np.argsort(vertex[repeats], kind="stable")])


def distinct_rows(X: Points, columns: bool = True, digits: Any = np.float64) -> tuple[Array, Array]:
    """Return (first, vertex): the first row of each value, in an order that looks random but
    depends on the values alone, and for each row of X (n, d) the place of its value in it.

    The order is that of a hash of the bits in float64, after division by a common power of two, and
    after rounding to `digits`.
    Zeros do not count, so that sparse and dense rows agree; without `columns` neither does the
    order of the entries of a row. Two of a million different rows have the same hash with
    probability 5e-8.
    """
    n, d = X.shape
    factors = mixed_bits(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    factors = factors if columns else np.ones_like(factors)
    values = X.data if sparse.issparse(X) else X
    largest = max(np.max(values, initial=0.0), -np.min(values, initial=0.0))
    exponent = int(np.frexp(float(largest))[1])
    keys = np.empty(n, np.uint64)
    for rows in row_tiles(n):
        tile = X[rows]
        values = (tile.data if sparse.issparse(X) else tile).astype(np.float64)
        scaled = np.ldexp(values, -exponent, order="C") + 0.0  # -0.0 + 0.0 is 0.0
        scaled = scaled.astype(digits, copy=False).astype(float, copy=False)
        hashes = mixed_bits(scaled.view(np.uint64))
        if sparse.issparse(X):
            hashes = sparse.csr_matrix((hashes, tile.indices, tile.indptr), tile.shape)
        keys[rows] = hashes @ factors
    _, first, vertex = np.unique(mixed_bits(keys), return_index=True, return_inverse=True)
    return first, vertex


def mixed_bits(bits: Array) -> Array:
    """Spread the bits of 64-bit numbers (the finaliser of MurmurHash3); 0 stays 0."""
    for multiplier in HASH_MULTIPLIERS:
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(multiplier)
    return bits ^ (bits >> np.uint64(33))


def check_ids(ids: Any, n: int) -> Array:
    """Return the ids of n points as an array (n,) of integers, str or bytes, or raise."""
    values = np.array(ids)  # a copy, because these may be changed in place later
    if values.dtype.kind == "O" and len({type(value) for value in values.flat}) == 1:
        values = np.asarray(values.tolist())  # objects, such as a column of a table
    if values.dtype.kind not in "iuUS":
        raise TypeError(
            f"ids are of dtype {values.dtype}; pass integers, strings or bytes, one for each point."
        )
    if values.shape != (n,):
        raise ValueError(f"ids have shape {values.shape} but X has {n} points; pass ({n},).")
    order = np.argsort(values, kind="stable")
    repeated = np.flatnonzero(values[order][1:] == values[order][:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise ValueError(
            f"ids name {values[first].item()!r} twice, in rows {first} and {second}; pass a "
            "different id for each point."
        )
    return values


def numbers_of(ids: Array) -> Array:
    """Return a number of 64 bits for each id (n,), a hash of the id alone.

    Different integers have different numbers; two of a million different strings have the same one
    with probability 3e-8.
    """
    if ids.dtype.kind in "iu":
        return mixed_bits(ids.astype(np.uint64) + np.uint64(1))
    data = (v.encode() if isinstance(v, str) else v for v in ids.tolist())
    digests = b"".join(hashlib.blake2b(value, digest_size=8).digest() for value in data)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def numbers_at(ids: Array, vertex: Array, n_vertices: int) -> Array:
    """Return the number of each vertex, the least number of its points in any order of these."""
    least = np.full(n_vertices, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, vertex, numbers_of(ids))
    return least
