"""A symmetric sparse matrix in tiles of rows: each tile a task of Dask, with the halo it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._blocks import held
from heatsketch._typing import Array
from heatsketch.operators.base import Operator, Wrapper, scaled
from heatsketch.operators.deflated import as_deflated
from heatsketch.operators.properties import row_sums
from heatsketch.operators.sparse import multiply, scale_both_sides


@dataclass(frozen=True, eq=False)
class Halo:
    """Which rows of other tiles each tile needs; only these travel.

    Parameters
    ----------
    sizes : tuple of int
        Rows of each tile.
    lists : tuple of dict
        For each tile: number of another tile -> its rows that are needed (a delayed array of local
        numbers, increasing). The halo is in the order of the tiles.
    """

    sizes: tuple[int, ...]
    lists: tuple[dict[int, Any], ...]

    def extended(self, values: Sequence[Any]) -> list[Any]:
        """Return delayed values (n_t, ...) of each tile, followed by those of its halo."""
        from dask import delayed

        take, stack = delayed(_rows_at), delayed(_stacked)
        return [
            stack(values[t], *(take(values[u], rows) for u, rows in sorted(needed.items())))
            for t, needed in enumerate(self.lists)
        ]


def _rows_at(values: Array, rows: Array) -> Array:
    return values[rows]


def _stacked(own: Array, *others: Array) -> Array:
    return np.concatenate([own, *others]) if others else own


@dataclass(frozen=True, eq=False)
class DaskTiles:
    """A symmetric sparse matrix (n, n), of which Dask's workers have a tile of rows each.

    Products take and give Dask arrays in chunks of these tiles: a task for each tile, and one for
    each pair of tiles of which one has columns at rows of the other. The tiles and the order of all
    sums are fixed, so that a product has the same bits for any number of workers, and when some are
    lost. A product is computed when it is asked for; its tiles stay where they are.

    Parameters
    ----------
    rows : tuple of delayed CSR matrices (n_t, n_t + halo)
        Columns are those of the tile itself, then those of its halo.
    halo : Halo
    spectrum : (float, float)
        Interval known to hold every eigenvalue.
    dtype : numpy.dtype, default float64
    leading : Dask array (n,), optional
        The eigenvector of the largest eigenvalue, where it is known.

    Notes
    -----
    Cost of a product: 2 nnz k operations, and the rows of all halos through the network.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from dask import delayed
    >>> from heatsketch.operators.dask_tiles import DaskTiles, Halo
    >>> row = delayed(scipy.sparse.csr_matrix([[2.0, 1.0]]))  # of itself, and of the other point
    >>> first = delayed(np.array([0]))
    >>> A = DaskTiles((row, row), Halo((1, 1), ({1: first}, {0: first})), (1.0, 3.0))
    >>> (A @ np.array([1.0, 0.0])).compute()
    array([2., 1.])
    """

    rows: tuple[Any, ...]
    halo: Halo
    spectrum: tuple[float, float]
    dtype: np.dtype = np.dtype(np.float64)  # noqa: RUF009
    leading: Any = None

    @cached_property
    def n(self) -> int:
        """Number of points."""
        return sum(self.halo.sizes)

    def asarray(self, X: Any) -> Any:
        """Return X (n, k), an array of NumPy or Dask, as a Dask array in chunks of the tiles."""
        import dask.array as da

        if X.ndim not in (1, 2) or X.shape[0] != self.n:
            raise ValueError(
                f"The block has shape {X.shape} but the operator has {self.n} points; pass "
                f"({self.n}, k)."
            )
        chunks = (self.halo.sizes, *X.shape[1:])
        X = X if isinstance(X, da.Array) else da.from_array(np.asarray(X), chunks=chunks)
        return held(X.rechunk(chunks).astype(self.dtype))[0]

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block: (n, k) -> (n, k)."""
        from dask import delayed

        X = self.asarray(X)
        wide = self.halo.extended(blocks_of(X))
        products = [delayed(multiply)(*pair) for pair in zip(self.rows, wide, strict=True)]
        return held(tiled(products, self.halo.sizes, X.shape[1:], self.dtype))[0]


@dataclass(frozen=True, eq=False)
class DeflatedTiles(Wrapper):
    """(I - vvᵀ) A (I - vvᵀ): `Deflated` by one direction that no machine holds.

    Parameters
    ----------
    A : DaskTiles
    v : Dask array (n,), optional
        Of length 1; None: nothing is taken out.
    """

    A: DaskTiles
    v: Any = None

    @property
    def spectrum(self) -> tuple[float, float]:
        """The interval of A, extended to hold the zero along v."""
        low, high = self.A.spectrum
        return (low, high) if self.v is None else (min(low, 0.0), max(high, 0.0))

    @property
    def V(self) -> Any:
        """The direction as a column (n, 1), or (n, 0)."""
        return np.empty((self.n, 0)) if self.v is None else self.v[:, None]

    def project(self, X: Any) -> Any:
        """Return (I - vvᵀ) X, a block (n, k); sums over tiles are trees of one shape."""
        X = self.asarray(X)
        return X if self.v is None else held(X - self.V @ (self.V.T @ X))[0]

    def __matmul__(self, X: Any) -> Any:
        """Multiply a block: (n, k) -> (n, k)."""
        return self.multiply_projected(self.project(X))

    def multiply_projected(self, X: Any) -> Any:
        """Multiply a block that is orthogonal to v already."""
        return self.project(self.A @ X)


@as_deflated.register
def _(A: DeflatedTiles) -> Any:
    return A


@as_deflated.register
def _(A: DaskTiles) -> Any:
    return DeflatedTiles(A)


def blocks_of(X: Any) -> list[Any]:
    """Return the tiles of a Dask array (n, ...) that is in one piece along its other axes."""
    return list(X.to_delayed(optimize_graph=False).ravel())


def tiled(blocks: Sequence[Any], sizes: Sequence[int], tail: tuple[int, ...], dtype: Any) -> Any:
    """Return delayed blocks (n_t, *tail) as one Dask array."""
    import dask.array as da

    return da.concatenate(
        [
            da.from_delayed(block, (size, *tail), dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
    )


def _scale_tile(rows: sparse.csr_matrix, s: Array, dtype: Any) -> sparse.csr_matrix:
    return scale_both_sides(rows, s[: rows.shape[0]], s, dtype)


@scaled.register
def _(
    K: DaskTiles, s: Any, spectrum: tuple[float, float], leading: Any, dtype: Any = np.float64
) -> Operator:
    """Scale entry by entry; s and leading are Dask arrays (n,)."""
    import dask

    dtype, wide = np.dtype(dtype), K.halo.extended(blocks_of(K.asarray(s)))
    scale = dask.delayed(_scale_tile)
    rows = held(*(scale(*pair, dtype) for pair in zip(K.rows, wide, strict=True)))
    return DaskTiles(rows, K.halo, spectrum, dtype, leading)


@row_sums.register
def _(A: DaskTiles) -> Any:
    from dask import delayed

    sums = [delayed(_sums)(rows) for rows in A.rows]
    return held(tiled(sums, A.halo.sizes, (), np.float64))[0]


def _sums(rows: sparse.csr_matrix) -> Array:
    return np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
