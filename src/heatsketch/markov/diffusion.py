"""Diffusion on data: the symmetric operator A, its stationary measure, and rows of new points."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from heatsketch._exceptions import ScaleWarning, rows_numbered
from heatsketch._random import content_order
from heatsketch._tiles import ROW_TILE, row_tiles
from heatsketch._typing import Array
from heatsketch._validation import check_points
from heatsketch.backend import HOST, Blocks
from heatsketch.markov.build import Constructors, refuse_weights
from heatsketch.markov.normalization import Scaling
from heatsketch.markov.out_of_sample import OutOfSampleKernel
from heatsketch.markov.rows import DiffusionRows, Step
from heatsketch.neighbors.near import Near
from heatsketch.operators.csr import multiply, scale_both_sides
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.operator import Operator
from heatsketch.operators.torch import on_device
from heatsketch.spectral.filters import make_filter

_DENSE_ENTRIES = 2**24  # of rows computed at a time: 128 MB


@dataclass(frozen=True, eq=False)
class Beside:
    """The points of weight 0, which have rows like all points, but are no vertices.

    Attributes
    ----------
    counted : array of bool (n_samples,)
        Which of all points are vertices.
    points : array or CSR matrix (m, d)
        The others, as new points.
    """

    counted: Array
    points: Any

    def among(self, counted: Array, others: Any) -> Array:
        """Return values of all points, in their order, from those of either kind."""
        whole = np.empty((len(self.counted), *counted.shape[1:]), counted.dtype)
        whole[self.counted] = counted
        whole[~self.counted] = others
        return whole


@dataclass(frozen=True, eq=False)
class Diffusion(Constructors):
    """A diffusion process on data.

    The Markov matrix is P = D^-1/2 A D^1/2 with D = diag(π) [1]_; it is never stored. Distances of
    the "markov" form compare rows of Pᵗ weighted by 1/π. Distances of the other forms compare rows
    of Aᵗ [2]_.

    Attributes
    ----------
    operator : Operator
        A, symmetric, with eigenvalues in [-1, 1]; A √π = √π.
    measure : ndarray of shape (n_vertices,)
        Stationary distribution π, summing to 1.
    out_of_sample : OutOfSampleKernel or None
        The rule for the affinities of new points (`new_rows`), and how new they are.
    scaling : Scaling or None
        The scaling that makes A of the affinity.
    normalization : {"symmetric", "bistochastic", "markov"}
    directed_step : sparse CSR matrix of shape (n_vertices, n_vertices) or None
        The `kernel_rows` of the data if they differ from A: the rows of a neighbour graph before it
        is made symmetric.
    vertex : ndarray of shape (n_samples,)
        The vertex of each input point. Vertices are numbered when the diffusion is made. Points are
        ordered by a hash of their content, so ties, starts and samples do not depend on the order
        of the rows. Equal points are one vertex of a neighbour graph. From 16,384 points on,
        neighbours in sparse operators have close numbers. Below that, the points of a precomputed
        affinity keep their order. All other attributes are those of vertices.
    epsilon : float or array-like of shape (n_samples,)
        Bandwidth, or local scales s with ε_ij = s_i s_j.
    diagnostics : dict
        `components`, `isolated`, `row_sum_error`, `is_constant` (all points have the same
        affinities), and those of the affinity and the normalisation.
    names : ndarray of shape (n_samples,) or None
        The nodes of a graph that has names, in the order of the rows of embeddings.
    by_content : ndarray of shape (n_vertices,) or None
        The vertices in an order that depends on the data alone, if it is known; see `sample`.
    weighable : bool
        Whether points can count more often; see `reweighted`.
    beside : Beside or None
        The points of weight 0 of a fit. `rows`, and all that follows from them, count them among
        the input points. The attributes above are those of the others.

    See Also
    --------
    diffusion : Build the diffusion on points.
    HeatSketch : Embed data by random columns; distances are right on average.
    diffusion_distance : Compute diffusion distances exactly.

    References
    ----------
    .. [1] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.
    .. [2] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to embed
       data*, arXiv:2403.07929 (2024), Algorithms 1 and 2.
    """

    operator: Operator
    measure: Array
    vertex: Array
    out_of_sample: OutOfSampleKernel | None = None
    scaling: Scaling | None = None
    normalization: str = "markov"
    directed_step: sparse.csr_matrix | None = None
    epsilon: float | Array = np.nan
    diagnostics: dict[str, Any] = field(default_factory=dict)
    names: Array | None = None
    by_content: Array | None = None
    weighable: bool = True
    beside: Beside | None = None

    def landed(self) -> Self:
        """Return the diffusion with its matrices on the host, too."""
        operator, step = (on_device(one, None) for one in (self.operator, self.directed_step))
        return replace(self, operator=operator, directed_step=step)

    def __repr__(self) -> str:
        """Describe the diffusion without its arrays."""
        return f"Diffusion(n={self.n}, normalization={self.normalization!r})"

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.operator.n

    @cached_property
    def root(self) -> Array:
        """The trivial direction √π (n,): A √π = √π."""
        return np.sqrt(self.measure)

    @cached_property
    def deflated(self) -> Deflated:
        """A without its trivial direction √π."""
        # The sum has the same bits for any number of threads, unlike `norm`.
        return Deflated(self.operator, self.root / np.sqrt(np.sum(self.root**2)))

    @property
    def n_points(self) -> int:
        """Number of input points."""
        return len(self.counted)

    @property
    def counted(self) -> Array:
        """Which of the input points have a vertex, (points,)."""
        return np.ones(len(self.vertex), bool) if self.beside is None else self.beside.counted

    def expand(self, values: Any, others: Any = np.nan) -> Any:
        """Return values of the vertices, (n,) or (n, k), as rows of the input points.

        A single number stands for all of them, and is returned. `others` are those of points of
        weight 0.
        """
        if np.isscalar(values):
            return values
        own = values[self.vertex]
        return own if self.beside is None else self.beside.among(own, others)

    @cached_property
    def first_points(self) -> Array:
        """The first input point at each vertex, (n,)."""
        first = np.empty(self.n, int)
        first[self.vertex[::-1]] = np.arange(len(self.vertex))[::-1]  # the last one written stays
        return first

    @cached_property
    def component_of(self) -> Array:
        """The component of each input point, (points,); 0 for all where A does not know it.

        A point of weight 0 is in that of its strongest neighbour.
        """
        labels = self.operator.components()
        if labels is None:
            return np.zeros(self.n_points, int)
        if self.beside is None:
            return self.expand(labels)  # type: ignore[no-any-return]
        strongest = np.ravel(self._rows_beside.argmax(axis=1))
        return self.expand(labels, labels[strongest])  # type: ignore[no-any-return]

    @cached_property
    def _rows_beside(self) -> Any:
        """The `kernel_rows` of the points of weight 0, of which the fit has warned."""
        with warnings.catch_warnings(action="ignore", category=ScaleWarning):
            return self.kernel_rows(cast(Beside, self.beside).points, self.operator.dtype)

    def sample(self, count: int) -> Array:
        """Return `count` vertices, or all if there are fewer, chosen by their content.

        They look random, are distinct points, and are the same ones in whatever order the points
        come. In a given affinity they are chosen by the entries of their rows, where vertices with
        the same entries follow one another in the order given; without stored entries by the
        measure.
        """
        order = self.by_content
        if order is None:
            matrix = self.operator.matrix
            values = self.measure[:, None] if matrix is None else matrix
            order = content_order(values, columns=False)
        return order[:count]

    def step(self, X: Any = None) -> Step:
        """Return the last step of the points of the data, or of new points X (m, d).

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule.
        """
        M = self.directed_step if X is None else self.kernel_rows(X, self.operator.dtype)
        M = self.operator if M is None else M
        return Step(M, self.measure, self.normalization == "markov")

    def rows(self, time: Any, X: Any = None, *, filter: str = "power") -> DiffusionRows:
        """Return the rows whose Euclidean distances are the diffusion distances at a time.

        Rows of M A^(t-1), A without the trivial direction √π; in the Markov form divided by
        (M √π)_i. M is the `step` to the point's own neighbours: `directed_step` where there is one
        (in a neighbour graph), else A itself. With filter "heat" rows of M (f(A) - f(0)) A⁻¹,
        f(λ) = e^{-t(1-λ)}: of walks that have moved. The distance is the same for new points.

        Parameters
        ----------
        time : float >= 1
        X : array-like of shape (n_new_samples, n_features), default=None
            New points, of which the rows are wanted; by default the points of the data.
        filter : {"power", "heat", "accumulated"}, default="power"

        Raises
        ------
        ValueError, TypeError
            A time out of range; new points of another form, or for which there is no rule.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X, angle = hs.datasets.circle(60, rng=0)
        >>> d = hs.diffusion(X)
        >>> old, new = d.rows(8), d.rows(8, X[:3])
        >>> np.allclose(old.array(np.arange(3)), new.array(np.arange(3)))
        True
        """
        f, step = make_filter(filter, time).reduced(), self.step(X)
        vertex = self.vertex if X is None else np.arange(step.matrix.shape[0])
        if X is None and self.beside is not None:
            step = replace(step, beside=self._rows_beside)
            vertex = self.beside.among(vertex, np.arange(self.n, len(step.mass)))
        return DiffusionRows(self.deflated, f, vertex, step)

    def kernel_rows(self, X: Any, dtype: Any = np.float64) -> Any:
        """Return the rows a(x, x_j) of A of new points (m, d), array or CSR (m, n).

        A point of the data gets its row of A (with `affinity="knn"`: of the graph before it is made
        symmetric). CSR rows are in the precision `dtype`.

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule.
        """
        return self.near(X).rows(dtype)

    def novelty(self, X: Any) -> Array:
        """Return the fraction of training points, left out, that are less new than each point (m,).

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule.
        """
        kernel, X = self._kernel_for(X)
        return kernel.novelty(X)

    def _kernel_for(self, X: Any) -> tuple[OutOfSampleKernel, Any]:
        """Return the rule for new points, and these, checked, or raise if there is none."""
        kernel = self.out_of_sample
        if kernel is None:
            raise ValueError(
                "This diffusion has no rule for new points; build it from points or an affinity."
            )
        X = check_points(X, min_rows=0)
        if X.shape[1] != kernel.width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the diffusion was built with {kernel.width}; "
                "pass new points with the same features (or affinities to all points)."
            )
        return kernel, X

    def near(self, X: Any, blocks: Blocks = HOST) -> Near:
        """Find what new points X (m, d) are near to; lists of neighbours are found in a place.

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule.
        """
        return self._near(*self._kernel_for(X), blocks)

    def _near(self, kernel: OutOfSampleKernel, X: Any, blocks: Blocks) -> Near:
        K, pulls = kernel.affinities(X, blocks)
        return Near(K, lambda: pulls(self.first_points), self.scaling)

    def near_by_tiles(self, X: Any, blocks: Blocks = HOST) -> Iterator[tuple[slice, Near]]:
        """Find the same by tiles: some rows of X, and what they are near to.

        Raises
        ------
        ValueError, TypeError
            As `near`.
        """
        kernel, X = self._kernel_for(X)
        if self.operator.sparse_matrix() is not None:
            tile = blocks.sparse_rows(X.shape[1])
        else:
            tile = max(1, min(ROW_TILE, _DENSE_ENTRIES // self.n))
        for rows in row_tiles(X.shape[0], tile):
            with rows_numbered(np.arange(rows.start, rows.stop)):
                yield rows, self._near(kernel, X[rows], blocks)

    def last_step(self, H: Array, X: Any = None) -> Array:
        """Apply the `kernel_rows` of the data, or of new points X (m, d), to H (n, k).

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule; H is not a table of real
            numbers with one row for each vertex.
        """
        H = self.operator.asarray(H)
        if X is None:
            return multiply(self.step().matrix, H)
        found = [multiply(near.rows(H.dtype), H) for _, near in self.near_by_tiles(X)]
        return np.concatenate(found) if found else np.empty((0, *H.shape[1:]), H.dtype)


diffusion = Diffusion.from_points


# Points that count more or less often


def reweighted(diffusion: Diffusion, weights: Array) -> tuple[Diffusion, Array]:
    """Return the diffusion of the same affinity whose points have weights w (n,), and `columns`.

    Sums over points become weighted: with q = K w, v_i = q_i^-α Σ_j K_ij q_j^-α w_j,

        A_ij = √w_i K_ij √w_j / (q_i^α q_j^α √v_i √v_j),   π_i ∝ w_i v_i,

    which whole weights would give to points that occur so often. A new diffusion is a scaling of
    the old one. Its rows for new points are those of the old one times `columns`, up to a factor of
    each row, which the Markov form takes out. Cost: two products by a vector.
    """
    A, scaling = diffusion.operator, diffusion.scaling
    refuse_weights(diffusion.normalization, scaling is not None and diffusion.weighable)
    assert scaling is not None
    if scaling.weights is not None:  # those of the fit count, too
        weights = weights * scaling.weights
    unscaled = 1 / scaling.s  # K = diag(1/s) A diag(1/s)
    q = unscaled * (A @ (unscaled * weights).astype(A.dtype)).astype(float)
    c = unscaled * weights * q**-scaling.alpha
    v = c * (A @ c.astype(A.dtype)).astype(float)
    columns, measure = c / np.sqrt(v), v / v.sum()
    bounds = min(A.spectrum[0], 0.0), 1.0
    operator = A.scaled_both_sides(columns, bounds, np.sqrt(measure), A.dtype)
    step = diffusion.directed_step
    step = None if step is None else times_columns(step, columns)
    changed: dict[str, Any] = {"operator": operator, "measure": measure, "directed_step": step}
    # Without a scaling new points get no rows; where the points lie is known as before.
    return replace(diffusion, scaling=None, **changed), columns


def times_columns(rows: Any, columns: Array) -> Any:
    """Return rows diag(columns) of an array or a CSR matrix (m, n), in its precision."""
    return scale_both_sides(rows, np.ones(rows.shape[0]), columns, rows.dtype)
