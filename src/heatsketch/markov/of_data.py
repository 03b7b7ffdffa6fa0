"""How a diffusion is built: of points, of an affinity, of a graph, of a Gaussian mixture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from heatsketch._checks import check_choice, check_points, warn_of_scales
from heatsketch._tensors import device_of
from heatsketch._typing import Array
from heatsketch.markov import affinities
from heatsketch.markov.affinity import Affinity
from heatsketch.markov.certificates import general_advice, graph_advice, warn_of_distances
from heatsketch.markov.extension import GivenRows, ScaledRows
from heatsketch.markov.given import as_affinity
from heatsketch.markov.normalized import normalized
from heatsketch.mixture import MixtureKernel
from heatsketch.neighbors import in_metric
from heatsketch.operators import as_graph
from heatsketch.operators.given_graph import graph as read_graph
from heatsketch.operators.order import in_near_order
from heatsketch.operators.sparse import is_large
from heatsketch.scales.bandwidth import WIDE_CUT

NORMALIZATIONS = ("symmetric", "bistochastic", "markov")


class OfData(ABC):
    """Abstract base: the constructors of a `Diffusion`."""

    @classmethod
    def from_points(
        cls,
        X: Any,
        *,
        metric: str = "euclidean",
        affinity: str = "knn",
        epsilon: float | str = "self-tuning",
        n_neighbors: int = 15,
        neighbors: Any = None,
        normalization: str = "markov",
        alpha: float = 1.0,
        cut: float = WIDE_CUT,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> Self:
        """Build the diffusion on points.

        Parameters
        ----------
        X : array or CSR matrix (n, d), or tensor (n, d), on whose device products are then made
        metric : "euclidean", "cosine" or "correlation", default "euclidean"
            The distance of points. "cosine": the chord |x/|x| - y/|y|| between directions, whose
            square (the unit of ε) is 2 - 2 cos(x, y). "correlation": rows less their means, dense.
        affinity : "knn", "variable", "dense", "radius", "bipartite" or "cosine", default "knn"
            Which pairs: of nearest neighbours; these with steps equally fast everywhere, so that
            alpha does what it says; all (stored for up to 4,096 points, else computed in blocks);
            or those nearer than cut √(ε/2). Of rows of counts or other amounts, without distances
            and without forming the matrix: X diag(1/c) Xᵀ, c the column sums, two steps on the
            graph of rows and columns (with alpha=0 its plain walk); or the cosines of two rows.
        epsilon : float, "self-tuning", "ksum", "median" or "nearest", default "self-tuning"
            In squared data units. "self-tuning": ε_ij = s_i s_j, s the distance to the
            (n_neighbors // 2)-th neighbour (not for "radius"); for "variable", which has no other,
            s² is twice the mean square of the distances to all n_neighbors.
        n_neighbors : int, default 15
        neighbors : NeighborIndex, transformer or CSR matrix (n, n), optional
            For "knn" and "variable": the search to use. By default it is exact in at most 8
            dimensions, for up to 16,384 points and for sparse data, else its measured recall is at
            least 0.98 (`diagnostics["recall"]`); `NeighborIndex(X, recall=1)` is always exact. A
            KNeighborsTransformer, or any transformer that returns sparse graphs of distances, is
            fitted to X (or its directions). A sparse matrix of distances has none to new points.
        normalization : "markov", "symmetric" or "bistochastic", default "markov"
        alpha : float, default 1
            Of "markov": affinities are divided by the density of the points to this power. For
            "variable", or one small ε, π is p^(2 - 2α) for points of density p, and 1 removes it.
            For self-tuning "knn" and "dense" it does not: there steps are shorter where points are
            dense, whatever alpha, and the density stays (see docs/density.md).
        cut : float, default 5
            Of "radius". At 3 (as in the notes) eigenvalues have errors of 3-20 %.
        tol, max_iter : float, int
            Of the bistochastic scaling.

        Returns
        -------
        Diffusion
            Cost: the neighbour search; of "dense" n² d operations for each product.

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters; most points are isolated at this epsilon.
        CertificateError
            A √π = √π does not hold up to rounding.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> d = hs.Diffusion.from_points(X)
        >>> np.allclose(d.operator @ np.sqrt(d.measure), np.sqrt(d.measure))
        True
        """
        affinities.check_affinity(affinity, epsilon, n_neighbors, cut)
        check_choice(normalization, "normalization", NORMALIZATIONS)
        device, X = device_of(X), in_metric(check_points(X), metric)
        if affinities.has_distances(affinity):
            warn_of_scales(X)
        built, advise = affinities.affinity_and_advice(
            X, metric, affinity, epsilon, n_neighbors, neighbors, cut, device
        )
        # Small problems are computed in float64, and steps that wait: 1 - λ has few digits there.
        single = is_large(X.shape[0]) and affinity != "variable"
        dtype = X.dtype if single else np.dtype(np.float64)
        return cls._normalized(
            built, X.shape[1], normalization, alpha, tol, max_iter, dtype, advise
        )

    @classmethod
    def from_affinity(
        cls,
        K: Any,
        *,
        normalization: str = "markov",
        alpha: float = 1.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        advise: Callable[[Array], str] | None = None,
    ) -> Self:
        """Build the diffusion of a given affinity.

        Parameters
        ----------
        K : array (n, n), SciPy sparse matrix, graph or operator
            Symmetric and non-negative; also an undirected graph of networkx, igraph or
            `heatsketch.graph`, and a SciPy `LinearOperator` (see `LinearMap`). `extend` takes
            affinities K(x, x_j), (m, n).
        normalization, alpha, tol, max_iter
            As in `from_points`.
        advise : callable, optional
            Labels of the components (n,) -> a sentence for the warning that says what would connect
            them, from callers who know how K was computed.

        Raises
        ------
        ValueError, TypeError, CertificateError
            K is not symmetric and non-negative; a parameter out of range; as `from_points`.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> hs.Diffusion.from_affinity(np.array([[1.0, 0.5], [0.5, 1.0]])).measure
        array([0.5, 0.5])
        """
        check_choice(normalization, "normalization", NORMALIZATIONS)
        named = as_graph(K, "K")
        operator = as_affinity(K if named is None else named)
        vertex = None
        if operator is not K:  # an operator keeps its numbering
            operator, vertex = in_near_order(operator)
        warn_of_distances(operator)
        built = Affinity(operator, GivenRows.of(operator, vertex), vertex=vertex)
        advise = advise or (general_advice if named is None else graph_advice)
        names = None if named is None else named.names
        return cls._normalized(
            built, operator.n, normalization, alpha, tol, max_iter, advise=advise, names=names
        )

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        *,
        normalization: str = "markov",
        alpha: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> Self:
        """Build the diffusion of a weighted graph; by default its plain random walk (α = 0).

        Parameters
        ----------
        graph : graph of networkx or igraph, SciPy sparse matrix or array (n, n)
            Whatever `heatsketch.graph` reads, which see. Non-negative edge weights. A directed
            graph is made symmetric by the larger of the two weights; a node without edges stays
            where it is.
        normalization, alpha, tol, max_iter
            As in `from_points`, but alpha is 0.

        Raises
        ------
        ValueError, TypeError, CertificateError
            As `heatsketch.graph`, and as `from_affinity` of its matrix.

        Examples
        --------
        >>> import scipy.sparse, heatsketch as hs
        >>> path = scipy.sparse.csr_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> hs.Diffusion.from_graph(path).measure
        array([0.25, 0.5 , 0.25])
        """
        return cls.from_affinity(
            read_graph(graph),
            normalization=normalization,
            alpha=alpha,
            tol=tol,
            max_iter=max_iter,
        )

    @classmethod
    def from_mixture(
        cls,
        X: Any,
        kernel: MixtureKernel,
        *,
        normalization: str = "markov",
        alpha: float = 0.0,
        rank_tol: float = 1e-10,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> Self:
        """Build the diffusion of points by the MGC affinity of a Gaussian mixture, of low rank.

        The affinities are k_ε(x_i, x_j) in closed form; sums over the points replace the integrals
        of `MixtureKernel`.

        Parameters
        ----------
        X : array (n, m)
        kernel : MixtureKernel
        normalization, alpha, tol, max_iter
            As in `from_points`, but alpha is 0: the affinity describes the density.
        rank_tol : float, default 1e-10
            Largest error of k(x, x) by the low-rank product, relative to it.

        Raises
        ------
        ValueError
            The rank of the affinity exceeds 4,096 (ε is too small for these points).

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> d = hs.Diffusion.from_mixture(np.linspace(-2, 2, 50)[:, None], kernel)
        >>> root = np.sqrt(d.measure)
        >>> d.operator.n, bool(np.allclose(d.operator @ root, root))
        (50, True)
        """
        check_choice(normalization, "normalization", NORMALIZATIONS)
        X = check_points(X)
        built = affinities.mixture_affinity(X, kernel, rank_tol)
        return cls._normalized(built, X.shape[1], normalization, alpha, tol, max_iter)

    @classmethod
    def _normalized(
        cls,
        built: Affinity,
        width: int,
        normalization: str,
        *options: Any,
        names: Array | None = None,
        **more: Any,
    ) -> Self:
        """Normalise an affinity; the other arguments are those of `normalized`."""
        found = normalized(built, normalization, *options, **more)
        return cls._made(
            operator=found.operator,
            measure=found.scaling.measure,
            extend=ScaledRows(built.rows, found.scaling, width, built.rows_are_sparse),
            normalization=normalization,
            one_sided=found.one_sided,
            vertex=built.vertex,
            epsilon=built.epsilon,
            diagnostics=found.diagnostics,
            names=names,
        )

    @classmethod
    @abstractmethod
    def _made(cls, **fields: Any) -> Self:
        """Return the diffusion with these fields."""
