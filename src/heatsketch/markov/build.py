"""Diffusions are built here: an affinity of points, of a graph or of a mixture, normalised.

`Diffusion` inherits the constructors, and is the record that they return.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._docstrings import texts_from
from heatsketch._exceptions import (
    CertificateError,
    DisconnectedWarning,
    ScaleWarning,
    name_rows,
    warn,
)
from heatsketch._input_warnings import warn_of_scales
from heatsketch._random import content_order, random_block
from heatsketch._tensors import device_of, landed, on_host
from heatsketch._typing import Array
from heatsketch._validation import check_choice, check_number, check_points, check_weights
from heatsketch.backend import blocks_of
from heatsketch.backend.device import device_memory
from heatsketch.markov.affinity import AFFINITIES, WITHOUT_NEIGHBORS, Affinity, as_affinity
from heatsketch.markov.normalization import Scaling, bistochastic_scaling, markov_scaling
from heatsketch.markov.out_of_sample import OutOfSampleAffinities, OutOfSampleMixture, PointKernel
from heatsketch.mixture import MixtureKernel
from heatsketch.mixture.mixture_kernel import affinity_factor
from heatsketch.neighbors import Distances, NeighborIndex, in_metric
from heatsketch.neighbors.metric import Metric
from heatsketch.operators.csr import is_large
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.graph import as_graph
from heatsketch.operators.graph import graph as read_graph
from heatsketch.operators.low_rank import LowRank
from heatsketch.operators.operator import Operator, Scaled
from heatsketch.operators.torch import on_device
from heatsketch.scales.bandwidth import RULES, WIDE_CUT, rule_epsilon
from heatsketch.spectral.eigenpairs import leading_eigenpairs

NORMALIZATIONS = ("symmetric", "bistochastic", "markov")
_MAX_MEASURE_ERROR = 1e-6  # largest error of A √π = √π that rounding can explain


class Constructors:
    """Abstract base of `Diffusion`: the ways to build one."""

    @classmethod
    @device_memory()
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
            (n_samples, n_samples), has none to new points.
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
        built, names = Affinity(operator, vertex, kernel), None if named is None else named.names
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
            K,
            np.arange(K.n),
            new,
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
        home = partial(landed, done={})  # matrices stay on a device, and nothing else
        return cast(Any, cls)(  # type: ignore[no-any-return]
            A,
            home(scaling.measure),
            home(built.vertex),
            home(built.kernel),
            home(scaling),
            normalization,
            None if step is None else scaling.new_rows(step, dtype),
            epsilon=home(built.epsilon),
            diagnostics=diagnostics,
            names=names,
            by_content=home(built.by_content),
            weighable=built.weighable,
        )


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
            "The points of this diffusion cannot be weighed: its affinity is not one of pairs "
            "alone; pass one of affinity 'knn', 'dense', 'radius' or 'precomputed'."
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
    blocks = blocks_of(labels)
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
        top = float(leading_eigenpairs(Deflated(honest, on_host(root)), 1, tol=1e-4).values[0])
        if top > 1 + 1e-6:
            raise CertificateError(
                f"The normalised operator has an eigenvalue {top:.4g} beyond 1, so the affinity "
                "has negative entries and its powers would grow; pass a non-negative affinity, or "
                "a low-rank factor that approximates one better."
            )
    probe = blocks.native(random_block(A.n, 1, "gaussian", 0)[:, 0])
    probe -= root * (root @ probe)
    image, other = (A @ blocks.xp.column_stack([root, probe])).T
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
