"""The normalised operator A of points, a graph, a mixture or an affinity, with its measure π."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._arrays import Array, device_of, landed, on_host
from heatsketch._checks import (
    check_choice,
    check_number,
    check_points,
    check_weights,
    warn_of_scales,
)
from heatsketch._messages import (
    CertificateError,
    DisconnectedWarning,
    ScaleWarning,
    device_memory,
    name_rows,
    rows_numbered,
    texts_from,
    warn,
)
from heatsketch._random import content_order, random_block
from heatsketch._threads import ROW_TILE, row_tiles
from heatsketch.core.blocks import HOST, Blocks, blocks_of, is_large, multiply, scale_both_sides
from heatsketch.core.graph import as_graph
from heatsketch.core.graph import graph as read_graph
from heatsketch.core.operators import Deflated, LowRank, Operator, Scaled
from heatsketch.device.operators import on_device
from heatsketch.markov.affinity import AFFINITIES, WITHOUT_NEIGHBORS, Affinity, as_affinity
from heatsketch.markov.new_points import (
    Near,
    OutOfSampleAffinities,
    OutOfSampleKernel,
    OutOfSampleMixture,
    PointKernel,
)
from heatsketch.markov.normalization import Scaling, bistochastic_scaling, markov_scaling
from heatsketch.markov.rows import DiffusionRows, Step
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.mixture_kernel import affinity_factor
from heatsketch.neighbors import Distances, NeighborIndex, in_metric
from heatsketch.neighbors.search import Metric
from heatsketch.scales import RULES, WIDE_CUT, rule_epsilon
from heatsketch.spectral.eigen import leading_eigenpairs
from heatsketch.spectral.filters import make_filter

NORMALIZATIONS = ("symmetric", "bistochastic", "markov")
_MAX_MEASURE_ERROR = 1e-6  # largest error of A √π = √π that rounding can explain


# Checks of a new diffusion, and warnings


def refuse_weights(normalization: str, weighable: bool) -> None:
    """Raise unless the points of a diffusion can count more or less often."""
    if normalization != "markov":
        raise ValueError(
            f"The diffusion has normalization={normalization!r}, whose distances depend on the "
            "number of points; pass one with normalization='markov'."
        )
    if not weighable:
        raise ValueError(
            "The points of this diffusion cannot be weighed: affinities of pairs depend on other "
            "points, as in affinity='variable'; fit 'knn', 'dense', 'radius' or 'precomputed', or "
            "compare fits of parts of the data."
        )


def connectivity(K: Operator, row_sums: Array, vertex: Array) -> dict[str, Any]:
    """Count components and isolated points; warn of several, raise where most points are alone.

    `vertex` (points,): that of each input point, for messages.
    """
    blocks, loops = blocks_of(row_sums), K.diagonal()
    loops = None if loops is None else blocks.native(loops)
    # Points whose affinity to all others together is negligible are alone.
    alone = blocks.where(row_sums - (-np.inf if loops is None else loops) <= 1e-12 * row_sums)
    if len(alone) > max(1, K.n // 2):
        raise ValueError(
            f"{len(alone)} of {K.n} points have no affinity to any other: the bandwidth is too "
            "small, or a graph has too few edges; pass a larger epsilon (see heatsketch.ksum and "
            "connecting_epsilon), or more edges."
        )
    labels, counts = K.labels(), {"isolated": len(alone)}
    if labels is None:
        return counts
    if blocks_of(labels) != blocks:  # labels may be known on the host alone
        blocks, loops = HOST, on_host(loops)
    bincount = blocks.xp.bincount
    if loops is not None:
        # Where there are no self-loops, every step may go from one half to the other. Two copies of
        # the vertices, joined from copy to copy, have two components for each bipartite one.
        with_loops = bincount(labels, weights=blocks.native(loops > 0, float))
        without_loops = blocks.host(with_loops) == 0
        if without_loops.any() and sparse.issparse(K.matrix):
            some = without_loops[blocks.host(labels)]
            matrix = K.matrix[some][:, some]
            copies = sparse.bmat([[None, matrix], [matrix, None]], format="csr")
            count = connected_components(copies, directed=False)[0] - without_loops.sum()
            counts |= {"bipartite": int(count)} if count else {}
    count = int(labels.max()) + 1
    if count > 1:
        vertex = on_host(vertex)
        points = np.flatnonzero(np.isin(vertex, alone))
        lone = f"; points {name_rows(points)} stand alone" if len(alone) else ""
        sizes = np.sort(np.bincount(blocks.host(labels)[vertex]))[::-1]  # equal points count
        message = (
            f"The affinity falls into {count} components (sizes {name_rows(sizes)}), between "
            "which nothing diffuses: distances say only that they are apart. More neighbours (or "
            f"edges), or a larger epsilon (heatsketch.connecting_epsilon), connects them{lone}."
        )
        warn(DisconnectedWarning, message)
    return {"components": count} | counts


def certify(K: Operator, A: Operator, scaling: Scaling) -> dict[str, Any]:
    """Measure how well A √π = √π holds; raise if it is off, or if A has eigenvalues beyond 1.

    Non-negative entries of K and A √π = √π are enough; where entries are not known, the largest
    eigenvalue is computed. Warn where A has nothing but √π.
    """
    blocks = A.blocks
    root = blocks.xp.sqrt(blocks.native(scaling.measure))
    if not K.is_non_negative():
        honest = Scaled(K, on_host(scaling.s))  # without the claim that is in question
        top = float(leading_eigenpairs(Deflated.of(honest, root[:, None]), 1, tol=1e-4).values[0])
        if top > 1 + 1e-6:
            raise CertificateError(
                f"The normalised operator has an eigenvalue {top:.4g} beyond 1, so the affinity "
                "has negative entries and its powers would grow; pass a non-negative affinity, or "
                "a low-rank factor that approximates one better."
            )
    probe = blocks.native(random_block(A.n, 1, "gaussian", 0)[:, 0])
    probe -= root * (root @ probe)
    image, other = A.product(blocks.native(blocks.xp.column_stack([root, probe]), A.dtype)).T
    error = float((abs(image - root) / root).max())
    rounding = 50 * float(np.finfo(A.dtype).eps)
    residual = scaling.diagnostics.get("scaling_residual", 0.0)
    allowed = max(_MAX_MEASURE_ERROR, rounding, 2 * residual)
    if not error <= allowed:
        raise CertificateError(
            f"A √π = √π is off by {error:.1e} where rounding explains {allowed:.0e}; the affinity "
            "changes between products or has entries beyond float64."
        )
    rest = blocks.norm(other - root * (root @ blocks.native(other, float)))
    is_constant = bool(rest <= rounding * blocks.norm(probe))
    if is_constant and A.n > 1:
        message = (
            "All points have the same affinities, to rounding: the embedding carries no "
            "information, and is zero. Pass a smaller epsilon, or points that differ."
        )
        warn(ScaleWarning, message)
    return {"row_sum_error": error, "is_constant": is_constant}


def _warn_of_distances(operator: Operator) -> None:
    """Warn when a matrix of distances seems to have been passed as an affinity."""
    K = operator.matrix
    if K is None or operator.n < 3:
        return
    nonzero = K.nnz if sparse.issparse(K) else np.count_nonzero(K)
    if (K.diagonal() != 0).any() or nonzero < operator.n * (operator.n - 1):
        return
    K = K.toarray() if sparse.issparse(K) else K
    i, j = np.unravel_index(K.argmax(), K.shape)
    # The triangle inequality, also for squared distances. The largest affinity breaks it.
    if K[i, j] <= 2 * (K[i] + K[j]).min():
        warn(
            UserWarning,
            "K is zero on its diagonal and positive everywhere else: it looks like distances, not "
            "affinities; pass exp(-K**2 / epsilon).",
        )


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
class Diffusion:
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

    # The ways to build one

    @classmethod
    def from_points(
        cls,
        X: Any,
        *,
        metric: Metric = "euclidean",
        affinity: str = "knn",
        epsilon: float | str = "self-tuning",
        n_neighbors: int = 15,
        neighbors: Any = None,
        normalization: str = "markov",
        alpha: float = 1.0,
        cut: float = WIDE_CUT,
        tol: float = 1e-8,
        max_iter: int = 1000,
        device: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Build the diffusion on points.

        It normalises an affinity of the points, in the symmetric or bistochastic form [1]_ or in
        the Markov form [2]_.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
            Points.
        metric : str or callable, default="euclidean"
            Distance between points. "cosine": the chord |x/|x| - y/|y||, with the square 2 - 2
            cos(x, y), for text, counts and other data whose lengths mean nothing. "correlation":
            the same after the mean of each row has been subtracted from it. X may be sparse for
            "euclidean", "cosine" and "manhattan" only. The metrics below are exact and take n²
            distances (some seconds for 10,000 points): "manhattan"; "hamming", the fraction of
            features that differ; "jaccard", the distance of the sets of features that are not 0; a
            function of two rows, which is slow (for some hundred points). "precomputed": X holds
            distances of shape (n_samples, n_samples), and `transform` takes the distances of shape
            (n_new_samples, n_samples) from new points to the training points.
        affinity : {"knn", "variable", "dense", "radius"}, default="knn"
            The pairs that have an affinity. "knn": nearest neighbours. "variable": nearest
            neighbours, with weights that make steps equally fast everywhere, so that alpha has its
            usual meaning. "dense": all pairs (stored for up to 4,096 points, else computed in
            blocks). "radius": pairs nearer than cut √(ε/2).
        epsilon : float or {"self-tuning", "ksum", "median", "nearest"}, default="self-tuning"
            Bandwidth ε of exp(-|x-y|²/ε), in squared data units, or the rule that chooses it.
            "self-tuning": ε_ij = s_i s_j, where s is the distance to the (n_neighbors // 2)-th
            neighbour. "ksum": see `ksum`. "median": the median squared distance of two points.
            "nearest": twice the mean squared distance to the nearest other point. The rules ignore
            distances of 0. "radius" needs a number or one of the other rules. "variable" allows
            only "self-tuning", where its s² is twice the mean square of the distances to the
            neighbours.
        n_neighbors : int, default=15
            Number of neighbours of each point in the graph, and for self-tuning scales. In a graph,
            duplicates count as one point. If there are too few distinct points, all others are
            neighbours, with a warning.
        neighbors : NeighborIndex, transformer or sparse matrix, default=None
            For "knn" and "variable": the search to use. By default it is exact in at most 8
            dimensions, for up to 16,384 points and for sparse data, else its measured recall is at
            least 0.98 (`diagnostics["recall"]`); `NeighborIndex(X, recall=1)` is always exact. A
            KNeighborsTransformer, or any transformer that returns sparse graphs of distances, is
            fitted to X (or its directions). A sparse matrix of distances, of shape
            (n_samples, n_samples), has none to new points. "pynndescent": as in
            `DiffusionEstimator`.
        normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
            Matrix whose rows are compared: Pᵗ with weights 1/√π, Aᵗ of the symmetric form, or Bᵗ of
            the bistochastic form.
        alpha : float, default=1
            For the Markov form: the power of the density by which affinities are divided. With
            "variable", and with "radius" and "dense" at one small ε, 1 removes the effect of the
            density of the sample and 0 keeps it. With a self-tuning bandwidth ("knn", the default,
            and "dense") no value of `alpha` removes it, because steps are short where points are
            dense; use ``affinity="variable"`` instead.
        cut : float, default=5
            For "radius": pairs farther apart than cut √(ε/2) have no affinity. At 3, as in §9.6 of
            [2]_, 1 - λ is 3-20 % too small; at 5 it is off by 5e-5 on a surface.
        tol : float, default=1e-8
            For the bistochastic form: largest |row sum - 1|, 0 < tol <= 1e-3. The other
            normalizations ignore it.
        max_iter : int, default=1000
            For the bistochastic form: largest number of iterations of the scaling.
        device : str or torch.device, default=None
            Device of torch, such as "cuda", where products are made and, for "knn", neighbours and
            graph too. By default that of X, if X is a tensor on a device, else the processor.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each point counts, > 0: sums over points are weighted, as if there were so
            many points at each place. For the Markov form of "knn", "dense" and "radius". Equal
            points of a neighbour graph count together.

        Returns
        -------
        Diffusion
            The operator A, its stationary distribution, and the rule for new points.

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters; most points are isolated at this epsilon.
        CertificateError
            A √π = √π does not hold up to rounding.

        See Also
        --------
        Diffusion : A diffusion process on data.
        gaussian_affinity : Compute the Gaussian affinity of all pairs of points.
        sketch : Apply a filter of an operator to random columns.
        eigh : Compute the leading eigenpairs of an operator.

        Notes
        -----
        The cost is the neighbour search; for "dense" n² d operations for each product. For
        "variable", or with one small ε, the stationary distribution is p^(2 - 2α) for points of
        density p.

        References
        ----------
        .. [1] A. Gilbert and K. O'Neill, *Sketching the heat kernel: using Gaussian processes to
           embed data*, arXiv:2403.07929 (2024), Algorithms 1 and 2.
        .. [2] M. Cameron, *Linear and nonlinear dimensionality reduction*, lecture notes, §9.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> d = hs.Diffusion.from_points(X)
        >>> np.allclose(d.operator @ d.root, d.root)
        True
        """
        check_choice(normalization, "normalization", NORMALIZATIONS)
        check_choice(affinity, "affinity", tuple(AFFINITIES))
        check_number(cut, "cut", low=0, open_low=True)
        if isinstance(epsilon, str):
            check_choice(epsilon, "epsilon", ("self-tuning", *RULES))
        else:
            check_number(epsilon, "epsilon", low=0, open_low=True)
        distances = Distances.from_metric(metric)
        if distances is not None and neighbors is not None:
            raise ValueError(
                f"metric={metric!r} and neighbors are both given; pass one of them, such as a "
                "KNeighborsTransformer with this metric."
            )
        if affinity in WITHOUT_NEIGHBORS and neighbors is not None:
            raise ValueError(
                f"neighbors is given but affinity={affinity!r} uses none; "
                "pass affinity='knn' or 'variable', or leave out neighbors."
            )
        search = neighbors if distances is None else distances
        device = device_of(X) if device is None else device
        # Copies of distances are made below.
        started, X = time.perf_counter(), check_points(X, copy=metric != "precomputed")
        if distances is not None:
            X = distances.points(X, training=True)
        else:
            X = in_metric(X, metric)
            warn_of_scales(X)
        try:
            if device is not None and search is None and affinity == "knn":
                search = NeighborIndex(X, device=device)
            weights = None
            if sample_weight is not None:
                weights = check_weights(sample_weight, X.shape[0], low=0, open_low=True)
                if epsilon in RULES:
                    epsilon = rule_epsilon(X, epsilon, distances, weights)
            built = AFFINITIES[affinity](X, epsilon, n_neighbors, search, cut)
            built = replace(built, kernel=replace(cast(PointKernel, built.kernel), metric=metric))
            built.diagnostics["affinity_seconds"] = time.perf_counter() - started
            if device is not None:
                operator, step = (
                    on_device(one, device) for one in (built.operator, built.directed_step)
                )
                built = replace(built, operator=operator, directed_step=step)
            return cls._normalized(built, normalization, alpha, tol, max_iter, weights=weights)
        except RuntimeError:
            with device_memory():  # says what to pass where it was too small
                raise

    @classmethod
    @texts_from(from_points)
    def from_affinity(
        cls,
        K: Any,
        *,
        normalization: str = "markov",
        alpha: float = 1.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        device: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Build the diffusion of a given affinity.

        Parameters
        ----------
        K : Graph, Operator or {array-like, sparse matrix} of shape (n_samples, n_samples)
            Symmetric and non-negative; also an undirected graph of networkx, igraph or
            `heatsketch.graph`, and a SciPy `LinearOperator` (see `LinearMap`). Later, new points
            are given by their affinities K(x, x_j), (n_new_samples, n_samples).
        normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
            As in `Diffusion.from_points`.
        alpha : float, default=1
            As in `Diffusion.from_points`.
        tol : float, default=1e-8
            As in `Diffusion.from_points`.
        max_iter : int, default=1000
            As in `Diffusion.from_points`.
        device : str or torch.device, default=None
            Device of torch where products by a matrix are made; by default where the matrix is.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `Diffusion.from_points`.

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
        K = K.copy() if isinstance(K, np.ndarray) else K  # which may be changed in place later
        operator = as_affinity(K if named is None else named)
        vertex = np.arange(operator.n)
        if operator is not K:  # an operator keeps its numbering
            operator, vertex = operator.near_order()
        _warn_of_distances(operator)
        kernel = OutOfSampleAffinities.from_operator(operator, vertex)
        operator = operator if device is None else on_device(operator, device)
        built = Affinity(operator=operator, vertex=vertex, kernel=kernel)
        names = None if named is None else named.names
        weights = sample_weight
        if weights is not None:
            weights = check_weights(weights, len(vertex), low=0, open_low=True)
        return cls._normalized(built, normalization, alpha, tol, max_iter, names, weights)

    @classmethod
    @texts_from(from_points)
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
        graph : graph or {array-like, sparse matrix} of shape (n_nodes, n_nodes)
            Any graph that `heatsketch.graph` reads. Edge weights are non-negative. A directed
            graph is made symmetric by the larger of the two weights; a node without edges stays
            where it is.
        normalization : {"markov", "symmetric", "bistochastic"}, default="markov"
            As in `Diffusion.from_points`.
        alpha : float, default=0
            For the Markov form: the power of the degrees by which weights are divided. 0 keeps the
            weights.
        tol : float, default=1e-8
            As in `Diffusion.from_points`.
        max_iter : int, default=1000
            As in `Diffusion.from_points`.

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
        options: dict[str, Any] = {"normalization": normalization, "alpha": alpha}
        return cls.from_affinity(read_graph(graph), tol=tol, max_iter=max_iter, **options)

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
        X : array-like of shape (n_samples, n_features)
        kernel : MixtureKernel
        normalization, alpha, tol, max_iter
            As in `from_points`, but alpha is 0: the affinity describes the density.
        rank_tol : float, default=1e-10
            Largest error of k(x, x) by the low-rank product, relative to it.

        Raises
        ------
        ValueError, TypeError
            The rank of the affinity exceeds 4,096 (ε is too small for these points); `kernel` is
            not a `MixtureKernel`.

        Examples
        --------
        >>> import numpy as np, heatsketch as hs
        >>> kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
        >>> d = hs.Diffusion.from_mixture(np.linspace(-2, 2, 50)[:, None], kernel)
        >>> d.operator.n, bool(np.allclose(d.operator @ d.root, d.root))
        (50, True)
        """
        check_choice(normalization, "normalization", NORMALIZATIONS)
        if not isinstance(kernel, MixtureKernel):
            raise TypeError(
                f"kernel is of type {type(kernel).__name__}; pass a MixtureKernel, such as "
                "MixtureKernel.from_sklearn(mixture, epsilon)."
            )
        new = OutOfSampleMixture(kernel, check_points(X, copy=True))
        K = LowRank(affinity_factor(kernel, new.points, rank_tol, new.log_unit))
        built = Affinity(
            operator=K,
            vertex=np.arange(K.n),
            kernel=new,
            by_content=content_order(new.points),
            epsilon=kernel.epsilon,
            diagnostics={"rank": K.factor.shape[1]},
        )
        return cls._normalized(built, normalization, alpha, tol, max_iter)

    @classmethod
    def _normalized(
        cls,
        built: Affinity,
        normalization: str,
        alpha: float,
        tol: float,
        max_iter: int,
        names: Array | None = None,
        weights: Array | None = None,
    ) -> Self:
        """Normalise an affinity and check the result; `weights` (points,): how often they count."""
        started = time.perf_counter()
        check_number(alpha, "alpha")  # numbers, also where they are not used
        check_number(tol, "tol", low=0)
        check_number(max_iter, "max_iter", low=1, integer=True)
        K, vertex = built.operator, built.vertex
        if weights is not None:
            refuse_weights(normalization, built.weighable)
            weights = np.bincount(on_host(vertex), weights, K.n)
        if normalization == "bistochastic":
            scaling = bistochastic_scaling(K, tol, max_iter, vertex)
        else:
            power = alpha if normalization == "markov" else 1.0
            scaling = markov_scaling(K, power, vertex, weights)
        # Small problems are computed in float64.
        dtype = built.dtype if is_large(len(vertex)) else np.float64
        A, step = scaling.normalized(K, dtype), built.directed_step
        diagnostics = built.diagnostics | connectivity(K, scaling.row_sums, vertex)
        diagnostics |= scaling.diagnostics | certify(K, A, scaling)
        if A.dtype == np.float32 and A.exponent_error:
            diagnostics["exponent_error"] = A.exponent_error
        diagnostics["normalize_seconds"] = time.perf_counter() - started
        parts: dict[str, Any] = {
            "measure": scaling.measure,
            "vertex": built.vertex,
            "out_of_sample": built.kernel,
            "scaling": scaling,
            "epsilon": built.epsilon,
            "by_content": built.by_content,
        }
        if K.blocks is not HOST:  # matrices stay there, and nothing else
            done: dict[int, Any] = {}
            parts = {name: landed(value, done) for name, value in parts.items()}
        return cls(
            operator=A,
            normalization=normalization,
            directed_step=None if step is None else scaling.new_rows(step, dtype),
            diagnostics=diagnostics,
            names=names,
            weighable=built.weighable,
            **parts,
        )

    # What follows from it

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
        root = self.root / np.sqrt(np.sum(self.root**2))
        return Deflated.of(self.operator, root[:, None])

    @property
    def n_points(self) -> int:
        """Number of input points."""
        return len(self.vertex if self.beside is None else self.beside.counted)

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
