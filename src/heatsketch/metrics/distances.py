"""Diffusion distances: exact from blocks of columns of f(A), or by coordinates."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import squareform

from heatsketch._arrays import Array
from heatsketch._checks import check_in_range
from heatsketch._threads import row_tiles
from heatsketch.core.graph import on_vertices
from heatsketch.core.operators import Bounds, Deflated
from heatsketch.markov.coordinates import ComponentCoordinates, component_labels, deflate_components
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, SERIES, DiffusionRows, LeadingPairs, leading_pairs
from heatsketch.neighbors import all_distances, pair_distances
from heatsketch.spectral.eigen import leading_vector
from heatsketch.spectral.filters import make_filter
from heatsketch.spectral.functions import SPECTRAL_LIMIT, check_range
from heatsketch.spectral.recurrences import spectral_density

Pairs = tuple[Any, Any]

_BLOCK_BYTES = 2**28  # of one block of columns of f(A); at most seven exist at a time
_MANY_PAIRS = 0.05  # of the square of a number of rows: beyond, a product of matrices is faster
_SPREAD_OUT = 0.5  # fraction of a mean squared distance that 64 eigenpairs miss


def diffusion_distance(
    A: Any,
    time: float = 8,
    *,
    filter: str = "power",
    pairs: Pairs | None = None,
    deflate: bool | None = None,
) -> Array:
    """Compute diffusion distances exactly, by the rows that they compare.

    For a `Diffusion`, D(i, j) = |R_i - R_j| with the rows R = M A^(t-1) of `Diffusion.rows`, which
    are weighted by 1/√π in the Markov form. This is the distance between rows of Pᵗ in L²(1/π),
    (25) of [1]_. In a neighbour graph the first step M goes from a point to its own neighbours;
    otherwise M = A. `HeatSketch`, `HeatEmbedding` and `heatsketch score` use the same distance.

    For a matrix or operator A, D(i, j) = |row_i f(A) - row_j f(A)|, (26) of [2]_.

    Parameters
    ----------
    A : Diffusion, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
        Diffusion, or symmetric matrix. Indices are those of the input points.
    time : float >= 0, default=8
        Diffusion time t. For a Diffusion at least 1, or any positive number with "heat". With
        "power" it must be whole if A has a negative eigenvalue (see `Power`); ½ gives the canonical
        metric of the covariance A.
    filter : {"power", "heat", "accumulated"}, default="power"
        "power": λ^t. "heat": e^{-t(1-λ)}; for a Diffusion e^{-t(1-λ)} - e^{-t}, without the walks
        that have not moved, as in embeddings. "accumulated": √Σ D_s², squared distances added up
        over s = t, ..., 64 t - 1.
    pairs : tuple of two array-likes of int of shape (n_pairs,), default=None
        Indices i and j of the pairs. By default all pairs, in the order of
        `scipy.spatial.distance.pdist`.
    deflate : bool, default=None
        Leave out the trivial direction √π. A Diffusion always does, as embeddings do. A matrix does
        not by default, as in [2]_. It makes a difference only in the symmetric form, where √π is
        not constant and dominates at large times.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Distance of each pair.

    Raises
    ------
    ValueError
        A not symmetric; an index out of range; time so large that distances underflow.

    See Also
    --------
    Diffusion.rows : Compute the rows whose distances are diffusion distances.
    distortion : Measure how an embedding changes given distances.
    HeatSketch : Embed data by random columns; distances are right on average.

    Notes
    -----
    The cost is products by A with one column for each point that occurs in a pair (or for each
    pair, if these are fewer), and n operations for each pair. Memory holds seven blocks of columns,
    at most 0.27 GB each (above 16 million points, two columns each). If the points do not fit into
    one block, they are computed again for each block that they are compared with. The rounding
    error is 1e-9 of a distance.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, equation
       (25).
    .. [2] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), equation (26).

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.diffusion_distance(np.diag([1.0, 0.5]), time=1)
    array([1.11803399])
    """
    distances = DiffusionDistances.from_operator(A, time, filter, deflate)
    n = distances.rows.n_points
    i, j = np.triu_indices(n, 1) if pairs is None else check_pairs(pairs, n)
    return distances.between(i, j)


@dataclass(frozen=True, eq=False)
class DiffusionDistances:
    """The distances of points that `diffusion_distance` computes: exact ones, or by coordinates."""

    rows: DiffusionRows
    component_coordinates: Callable[[], ComponentCoordinates]  # before the last step of the rows
    trivial: Array | None = None  # (m,), a further coordinate: of the direction √π, if it counts
    labels: Array | None = None  # (points,): only distances between equal ones are looked at
    counted: Array | None = None  # which points the rows are of; None: of all

    @classmethod
    def from_operator(
        cls,
        A: Any,
        time: float,
        filter: str,
        deflate: bool | None = None,
        *,
        within_components: bool = False,
        ends: Bounds | None = None,
        leading: LeadingPairs = leading_pairs,
    ) -> Self:
        """Prepare the distances; A, time, filter and deflate are those of `diffusion_distance`.

        `within_components`: only distances within those of a Diffusion are wanted, of points that
        count. `ends` of the spectrum of a Diffusion, if they are known, save the steps that find
        them.
        """
        f = make_filter(filter, time)
        if isinstance(A, Diffusion):
            if deflate is False:
                raise ValueError(
                    "deflate=False, but the distance of a Diffusion leaves out the trivial "
                    "direction; pass diffusion.operator for that of the matrix A."
                )
            counted = A.counted if within_components else None
            A = A if A.beside is None or not within_components else replace(A, beside=None)
            rows = A.rows(time, filter=filter)
            labels = component_labels(A) if within_components else None
            if labels is not None:
                rows = replace(rows, operator=deflate_components(A, labels))
                labels = labels[rows.vertex]
            check_range(rows.filter, rows.operator, ends)
            coordinates = partial(ComponentCoordinates.from_diffusion, A, N_LEADING, leading)
            return cls(rows, coordinates, labels=labels, counted=counted)
        A, vertex = on_vertices(A)
        trivial = None
        if not A.n_deflated:  # else the directions that the caller took out do not count
            u = A.blocks.host(leading_vector(A))
            varying = u - u.mean()
            # Equal entries cancel, except for rounding.
            if not deflate and np.abs(varying).max() > 1e-13 * np.abs(u).max():
                top = float(u @ (A @ u))
                check_range(f, A, (top, top))
                trivial = np.asarray(f(np.array([top])) * varying)
            A = Deflated(A, u)
        if trivial is None:  # whose differences stay
            check_range(f, A)
        coordinates = partial(ComponentCoordinates.from_operator, A, N_LEADING, leading)
        return cls(DiffusionRows(A, f, vertex), coordinates, trivial)

    def between(self, i: Array, j: Array, tol: float | None = None) -> Array:
        """Return the distances of pairs of points (m,): exact, or by series with an error `tol`."""
        i, j = self.rows.vertex[i], self.rows.vertex[j]  # duplicates share a row
        D, size = np.zeros(len(i)), max(2, _BLOCK_BYTES // (8 * self.rows.operator.n))
        points, place = np.unique([i, j], return_inverse=True)
        if len(i) <= len(points):  # a column for each pair
            for pairs in row_tiles(len(i), size):
                units = self.rows.unit_columns(i[pairs]) - self.rows.unit_columns(j[pairs])
                differences = self.rows.transposed(units, tol)
                D[pairs] = np.linalg.norm(np.asarray(differences, dtype=float), axis=0)
        else:
            tile = place.reshape(2, -1) // (size if len(points) <= size else size // 2)
            tile.sort(axis=0)  # the tiles of points of a pair: all pairs of two tiles fit
            order = np.lexsort(tile)
            ends = np.flatnonzero(np.diff(tile[:, order]).any(axis=0)) + 1
            for block in np.split(order, ends):
                points, place = np.unique([i[block], j[block]], return_inverse=True)
                columns = self.rows.transposed(self.rows.unit_columns(points), tol)
                R = np.ascontiguousarray(columns.T, dtype=float)
                a, b = place.reshape(2, -1)
                if len(block) > _MANY_PAIRS * len(points) ** 2:
                    D[block] = squareform(all_distances(R))[a, b]
                else:
                    D[block] = pair_distances(R, R, a, b)
        return D if self.trivial is None else np.hypot(D, self.trivial[i] - self.trivial[j])

    def coordinates(self, n_sketch: int, *, leading: bool = True) -> tuple[Array, float]:
        """Return coordinates of the points (points, r), and the error of a mean squared distance.

        Their distances are those of the rows, up to this relative error. The last step removes most
        of the error of eigenvectors. Without leading eigenpairs all of them are random columns.
        """
        if leading:
            F, error = self.component_coordinates().under(self.rows.filter, n_sketch)
            S = self.rows.at_points(F)
        else:
            S, error = self.rows.sketch(n_sketch, 0, SERIES), math.sqrt(2 / n_sketch)
        if self.trivial is not None:
            S = np.column_stack([S, self.trivial[self.rows.vertex]])
        return S, error

    def is_spread_out(self) -> bool:
        """Say whether leading eigenpairs give less than half of a mean squared distance.

        By the density of the eigenvalues, which costs a tenth of the pairs.
        """
        A = self.rows.operator
        if A.n <= SPECTRAL_LIMIT:
            return False
        leading = N_LEADING * max(1, A.n_deflated)  # of each component
        return spectral_density(A).fraction_beyond(leading, self.rows.filter) > _SPREAD_OUT


def check_pairs(pairs: Any, n: int) -> tuple[Array, Array]:
    """Return the index arrays (i, j) of pairs of n points, or raise."""
    if not isinstance(pairs, (tuple, list)) or len(pairs) != 2:
        shape = np.shape(pairs)
        raise ValueError(f"pairs has shape {shape}; pass (i, j), for example tuple(pairs.T).")
    i, j = (np.asarray(side) for side in pairs)
    if i.ndim != 1 or i.shape != j.shape or i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
        raise ValueError(f"pairs has shapes {i.shape} and {j.shape}; pass two index arrays (m,).")
    for side in (i, j):
        check_in_range(side, "pairs", n)
    return i, j
