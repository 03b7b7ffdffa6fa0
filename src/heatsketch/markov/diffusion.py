"""Diffusion on data: the symmetric operator A, its stationary measure, and rows of new points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import sparse

from heatsketch._checks import real_array
from heatsketch._tensors import is_lazy
from heatsketch._typing import Array
from heatsketch.markov import extension
from heatsketch.markov.extension import Extension
from heatsketch.markov.of_data import NORMALIZATIONS as NORMALIZATIONS
from heatsketch.markov.of_data import OfData
from heatsketch.markov.rows import DiffusionRows
from heatsketch.operators import Deflated, Numbered, Operator, numbered
from heatsketch.operators.base import real_block
from heatsketch.operators.order import spread
from heatsketch.operators.sparse import multiply
from heatsketch.spectral.filters import make_filter


@dataclass(frozen=True, eq=False)
class Diffusion(OfData):
    """A diffusion process on data.

    The Markov matrix is P = D^-1/2 A D^1/2 with D = diag(π); it is never stored. Distances of the
    "markov" form compare rows of Pᵗ weighted by 1/π; those of the other forms compare rows of Aᵗ.

    Attributes
    ----------
    operator : Operator
        A, symmetric, with eigenvalues in [-1, 1]; A √π = √π.
    measure : array (n,)
        Stationary distribution π, summing to 1.
    extend : Extension or None
        New points (m, d) -> rows a(x, x_j) of A, array or CSR (m, n). A point of the data gets its
        row of A (with `affinity="knn"`: of the graph before it is symmetrised).
    normalization : "symmetric", "bistochastic" or "markov"
    one_sided : CSR (n, n) or None
        What `extend` returns for the data, where that is not A.
    vertex : array (points,) or None
        The vertex of each input point; None: they have the same numbers. Duplicates share a vertex
        of a neighbour graph, and from 16,384 points on the vertices of sparse operators are
        numbered so that neighbours have close numbers. All other attributes are those of vertices.
    epsilon : float or array (n,)
        Bandwidth, or local scales s with ε_ij = s_i s_j.
    diagnostics : dict
        `components`, `isolated`, `row_sum_error`, `flat` (all points have the same affinities), and
        those of the affinity and the normalisation.
    names : array (points,) or None
        The nodes of a graph that has names, in the order of the rows of embeddings.
    """

    operator: Operator
    measure: Array
    extend: Extension | None
    normalization: str = "markov"
    one_sided: sparse.csr_matrix | None = None
    vertex: Array | None = None
    epsilon: float | Array = np.nan
    diagnostics: dict[str, Any] = field(default_factory=dict)
    names: Array | None = None

    @classmethod
    def _made(cls, **fields: Any) -> Self:
        return cls(**fields)

    def __repr__(self) -> str:
        """Describe the diffusion without its arrays."""
        return f"Diffusion(n={self.n}, normalization={self.normalization!r})"

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.operator.n

    def of_inputs(self, values: Any) -> Any:
        """Return values of the vertices, (n,) or (n, k), as rows of the input points.

        A single number stands for all of them, and is returned.

        Raises
        ------
        ValueError, TypeError
            Not one value or row for each vertex.
        """
        if np.isscalar(values):
            return values
        values = values if hasattr(values, "shape") else real_array(values, "values")
        if not values.shape or values.shape[0] != self.n:
            raise ValueError(
                f"values has shape {tuple(values.shape)} but the diffusion has {self.n} vertices; "
                f"pass ({self.n},) or ({self.n}, k)."
            )
        return spread(values, self.vertex)

    def deflated(self) -> Deflated:
        """Return A without its trivial eigenvector √π."""
        root = np.sqrt(self.measure)
        return Deflated(self.operator, root / np.linalg.norm(root))

    def rows(self, time: Any, X: Any = None, *, filter: str = "power") -> DiffusionRows:
        """Return the rows whose Euclidean distances are the diffusion distances at a time.

        Rows of M A^(t-1), A without the trivial direction √π; in the Markov form divided by
        (M √π)_i. M is the step to the point's own neighbours: `one_sided` where there is one (in a
        neighbour graph), else A itself. With filter "heat" rows of M (f(A) - f(0)) A⁻¹,
        f(λ) = e^{-t(1-λ)}: of walks that have moved. The distance is the same for new points.

        Parameters
        ----------
        time : float >= 1, whole unless A is positive semidefinite (real and positive for "heat")
        X : array (m, d), optional
            New points, of which the rows are wanted; by default the points of the data.
        filter : "power" or "heat", default "power"

        Raises
        ------
        ValueError, TypeError
            A time out of range; new points of another form, or for which there is no rule.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X, angle = hs.datasets.circle(60, rng=0)
        >>> d = hs.diffusion(X)
        >>> old, new = d.rows(8).of(np.arange(3)), d.rows(8, X[:3]).of(np.arange(3))
        >>> np.allclose(old, new)
        True
        """
        f = make_filter(filter, time)
        A, root = self.deflated(), np.sqrt(self.measure)
        first = (
            self.one_sided if X is None else extension.rule_of(self.extend)(X, self.operator.dtype)
        )
        weight = root if first is None else np.asarray(first @ root, dtype=float)
        weight = 1 / weight if self.normalization == "markov" else np.ones_like(weight)
        g = f.moved() if first is None else f.quotient()
        return DiffusionRows(A, g, weight, first, self.vertex if X is None else None)

    def smooth(self, H: Array) -> Array:
        """Apply the rows that `extend` returns for the data to H (n, k): one more step of A.

        Raises
        ------
        ValueError, TypeError
            H has not one row of real numbers for each vertex.
        """
        if self.one_sided is None:
            return self.operator @ H
        return multiply(self.one_sided, H if is_lazy(H) else real_block(H, self.n))

    def smooth_new(self, X: Any, H: Array) -> Array:
        """Apply the rows of new points (m, d) to H (n, k), in tiles: (m, k).

        Raises
        ------
        ValueError, TypeError
            New points of another form, or for which there is no rule; H is not a table of real
            numbers with one row for each vertex.
        """
        return extension.multiply_rows(extension.rule_of(self.extend), X, real_block(H, self.n))


@numbered.register
def _(A: Diffusion, name: str = "A") -> Numbered:
    return Numbered(A.operator, A.vertex)


diffusion = Diffusion.from_points
