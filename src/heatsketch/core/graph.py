"""Matrices and graphs of other libraries as operators: the one door through which they come in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from heatsketch._arrays import Array, is_tensor, on_host
from heatsketch._checks import as_csr, check_number, read_array
from heatsketch.core.operators import Dense, LinearMap, Operator, Sparse

_GRAPH_LIBRARIES = ("networkx", "igraph", "torch_geometric")
_SYMMETRY_TOLERANCE = 1e-10


def as_operator(A: Any, name: str = "A") -> Operator:
    """Return `A` itself if it is an operator, else wrap a matrix, a graph or a `LinearOperator`.

    Raises
    ------
    ValueError
        Not square, not symmetric (beyond 1e-10 of the largest entry), not finite, or empty.
    """
    if isinstance(A, Operator):
        return A
    if isinstance(A, LinearOperator):
        return LinearMap(A)
    graph = as_graph(A, name)
    matrix = on_host(A) if graph is None else graph.matrix
    is_sparse = sparse.issparse(matrix)
    matrix = as_csr(matrix) if is_sparse else read_array(matrix, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} has shape {matrix.shape}; pass a square matrix (n, n), n >= 1.")
    matrix = matrix.astype(np.float64) if matrix.dtype.kind in "iub" else matrix
    if matrix.dtype.kind != "f":
        raise ValueError(f"{name} has dtype {matrix.dtype}; pass real numbers.")
    if not np.isfinite(matrix.data if is_sparse else matrix).all():
        raise ValueError(f"{name} contains NaN or infinity; drop or impute these points.")
    error = float(abs(matrix - matrix.T).max())
    tolerance = max(_SYMMETRY_TOLERANCE, 8 * float(np.finfo(matrix.dtype).eps))
    if error > tolerance * float(abs(matrix).max()):
        raise ValueError(
            f"{name} is not symmetric (largest |{name} - {name}ᵀ| is {error:.2g}); pass "
            f"({name} + {name}.T) / 2 if that is what you mean."
        )
    if is_tensor(A):
        from heatsketch.device.operators import TorchDense, TorchSparse

        return TorchSparse(A) if is_sparse else TorchDense(A)
    return Sparse(matrix) if is_sparse else Dense(matrix)


@runtime_checkable
class OnVertices(Protocol):
    """An operator and the vertex of each input point, as a diffusion has them."""

    operator: Operator
    vertex: Array


def on_vertices(A: Any) -> tuple[Operator, Array]:
    """Return `A` as an operator on vertices, and the vertex of each input point (points,).

    A diffusion has vertices of its own. A large sparse matrix is renumbered, so that near points
    have near numbers; other points are vertices in the order given.
    """
    if isinstance(A, OnVertices):
        return A.operator, A.vertex
    operator = as_operator(A)
    return (operator, np.arange(operator.n)) if operator is A else operator.near_order()


@dataclass(frozen=True, eq=False)
class Graph:
    """A weighted graph: the symmetric matrix of its weights, and the names of its nodes.

    Attributes
    ----------
    matrix : sparse CSR matrix of shape (n_nodes, n_nodes)
        Non-negative weights. The weight of a self-loop stands in the diagonal once.
    names : ndarray of shape (n_nodes,) or None
        The node of each row. None: nodes are numbered.

    See Also
    --------
    graph : Read a graph of any library.
    io.read_graph : Read a graph from a file.
    """

    matrix: sparse.csr_matrix
    names: Array | None = None

    @property
    def n_edges(self) -> int:
        """Number of edges, self-loops included."""
        return int(self.matrix.nnz + np.count_nonzero(self.matrix.diagonal())) // 2


def graph(
    given: Any, *, weight: Any = "weight", names: Any = None, n_nodes: int | None = None
) -> Graph:
    """Read a graph of any library as a matrix of weights, with the names of its nodes.

    Weights of parallel edges are added. A directed graph becomes undirected: an edge has the larger
    weight of its two directions.

    Parameters
    ----------
    given : graph or {array-like, sparse matrix} of shape (n_nodes, n_nodes) or (2, n_edges)
        A graph of networkx or igraph, data of `torch_geometric`, or a matrix of weights. An array
        or tensor of integers of shape (2, n_edges) holds edges, from the nodes in the first row to
        those in the second (an `edge_index`), each edge once or in both directions; one of shape
        (2, 2) only with `n_nodes` or weights. Any other array is a matrix of weights.
    weight : str, array-like of shape (n_edges,) or None, default="weight"
        The attribute of the edges that holds their weights (1 if an edge has none), or the weights
        of a list of edges. None: all weights are 1.
    names : array-like of shape (n_nodes,), default=None
        Names of the nodes; by default those that the graph has: nodes of networkx, `vs["name"]` of
        igraph.
    n_nodes : int, default=None
        Number of nodes of an edge list; by default the number that it mentions.

    Returns
    -------
    Graph
        `.matrix` (n_nodes, n_nodes) and `.names`. Estimators with ``affinity="precomputed"``,
        `Diffusion` and the normalisations give a node without edges a self-loop of the mean degree,
        so that it stays in place. `eigh` and `sketch` use the matrix without change.

    Raises
    ------
    TypeError
        Not a graph, or weights for a graph that has its own.
    ValueError
        A weight that is not a number, negative, NaN or infinite; a matrix that is not square;
        edges between nodes that do not exist; an attribute that no edge has.

    See Also
    --------
    Graph : A weighted graph with names of its nodes.
    io.read_graph : Read a graph from a file.
    HeatSketch : Embed data by random columns; distances are right on average.
    eigh : Compute the leading eigenpairs of an operator.

    Notes
    -----
    The cost is one reading of the edges. Only the library of the given graph is imported.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.graph(np.array([[0, 1, 1], [1, 2, 2]])).matrix.toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    if isinstance(given, Graph):
        matrix, node_names = given.matrix, given.names
    else:
        directed, node_names = _matrix_and_names(given, weight, n_nodes, names)
        matrix = sparse.csr_matrix(directed.maximum(directed.T))
    return Graph(matrix, node_names if names is None else _as_names(names, matrix.shape[0]))


def is_graph(given: Any) -> bool:
    """Say whether something is a `Graph`, or a graph of another library."""
    return isinstance(given, Graph) or bool(_library(given))


def as_graph(given: Any, name: str = "A") -> Graph | None:
    """Return a graph of another library, or a `Graph`, for use in place of a matrix; else None.

    Directed graphs are refused there, as matrices that are not symmetric are.
    """
    if isinstance(given, Graph) or not is_graph(given):  # a tensor or an array is a matrix
        return given if isinstance(given, Graph) else None
    matrix, names = _matrix_and_names(given, "weight")
    if abs(matrix - matrix.T).max() > _SYMMETRY_TOLERANCE * matrix.max():
        raise ValueError(
            f"{name} is a directed graph; pass heatsketch.graph({name}), which takes the larger "
            "weight of both directions."
        )
    return Graph(matrix, names)


def _library(given: Any) -> str:
    """Return the library of graphs that a class of the object belongs to, or ""."""
    roots = (base.__module__.partition(".")[0] for base in type(given).__mro__)
    return next((root for root in roots if root in _GRAPH_LIBRARIES), "")


def _matrix_and_names(
    given: Any, weight: Any, n_nodes: int | None = None, names: Any = None
) -> tuple[sparse.csr_matrix, Array | None]:
    """Return the weights (n, n), perhaps of a directed graph, and the names that the nodes have.

    Where they have none, a message about an edge calls them by `names`.
    """
    library, listed = _library(given), not (weight is None or isinstance(weight, str))
    if library and listed:
        raise TypeError(
            f"weight is of type {type(weight).__name__}, but the graph has weights of its own; "
            "pass the name of their attribute, or None."
        )
    node_names: Any = None
    matrix: Any
    if library == "networkx":
        node_names = list(given.nodes)
        number = {node: i for i, node in enumerate(node_names)}
        edges = [(number[a], number[b], value) for a, b, value in given.edges(data=weight)]
        matrix = _of_edges(edges, weight, node_names, given.is_directed())
    elif library == "igraph":
        node_names = given.vs["name"] if "name" in given.vs.attributes() else None
        values = given.es[weight] if weight in given.es.attributes() else [None] * given.ecount()
        edges = [(*ends, value) for ends, value in zip(given.get_edgelist(), values, strict=True)]
        matrix = _of_edges(edges, weight, node_names or range(given.vcount()), given.is_directed())
    elif library == "torch_geometric":
        attributes = ("edge_weight", "edge_attr") if weight == "weight" else (weight,)
        values = [getattr(given, str(name), None) for name in attributes]
        values = [np.ravel(on_host(w)) for w in values if w is not None]
        _check_known(weight, bool(values))
        weights = values[0] if values else None
        matrix = _adjacency(np.asarray(on_host(given.edge_index)), weights, int(given.num_nodes))
    else:
        matrix = on_host(given)
        matrix = matrix if sparse.issparse(matrix) else read_array(matrix, "The graph")
        # Two nodes may have a matrix (2, 2), too.
        integers = matrix.dtype.kind in "iu" and matrix.shape != (2, 2)
        pairs = not sparse.issparse(matrix) and matrix.ndim == 2 and len(matrix) == 2
        if pairs and (integers or listed or n_nodes is not None):
            matrix = _adjacency(matrix, on_host(weight) if listed else None, n_nodes)
        elif weight is None:
            matrix = _checked_matrix(matrix, names) != 0
    node_names = None if node_names is None else _as_names(node_names, matrix.shape[0])
    return _checked_matrix(matrix, names if node_names is None else node_names), node_names


def _check_known(weight: str | None, exists: bool) -> None:
    """Raise if edges are asked for an attribute, other than the default, that none of them has."""
    if weight not in (None, "weight") and not exists:
        raise ValueError(f"No edge has an attribute {weight!r}; pass weight=None for weights of 1.")


def _of_edges(
    edges: list[tuple[int, int, Any]], weight: str | None, names: Sequence[Any], directed: bool
) -> sparse.csr_matrix:
    """Add up edges (i, j, weight) between named nodes; a weight of None is 1."""
    _check_known(weight, any(value is not None for *_, value in edges))
    weights = np.ones(len(edges))
    for number, (i, j, value) in enumerate(edges):
        try:
            weights[number] = 1.0 if value is None else float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"The weight of edge ({names[i]!r}, {names[j]!r}) is {value!r}; pass a number."
            ) from None
    ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T
    matrix = _adjacency(ends, weights, len(names))
    if directed:
        return matrix
    across = sparse.triu(matrix, 1) + sparse.tril(matrix, -1).T
    return sparse.csr_matrix(across + across.T + sparse.diags(matrix.diagonal()))


def _adjacency(ends: Array, weights: Any, n_nodes: int | None) -> sparse.csr_matrix:
    """Add up directed edges between these ends (2, m); n nodes, or those mentioned."""
    if ends.size and ends.dtype.kind not in "iu":
        raise ValueError(
            f"Edges have dtype {ends.dtype} and shape {ends.shape}; pass integers (2, m)."
        )
    ends = ends.astype(np.int64)
    w = np.ones(ends.shape[1]) if weights is None else read_array(weights, "weight", dtype=float)
    if w.shape != ends.shape[1:]:
        raise ValueError(
            f"There are {len(ends.T)} edges but weights of shape {w.shape}; pass one for each."
        )
    least, mentioned = int(ends.min(initial=0)), int(ends.max(initial=-1)) + 1
    n = mentioned
    if n_nodes is not None:
        n = check_number(n_nodes, "n_nodes", low=0, integer=True)
    if least < 0 or n < mentioned:
        raise ValueError(
            f"Edges mention nodes {least} to {mentioned - 1}, but there are {n} nodes; pass "
            f"n_nodes >= {mentioned}, and numbers from 0."
        )
    return sparse.coo_matrix((w, tuple(ends)), shape=(n, n)).tocsr()


def _checked_matrix(given: Any, names: Any) -> sparse.csr_matrix:
    """Return weights as CSR of float64 without stored zeros, or raise with the names of nodes."""
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        is_list = given.shape[1:] == (2,) and given.dtype.kind in "iu"
        do = (
            "edges as integers (2, m), which is its transpose"
            if is_list
            else "a matrix (n, n), edges as integers (2, m), or a graph of networkx or igraph"
        )
        raise ValueError(f"The graph has shape {given.shape} and dtype {given.dtype}; pass {do}.")
    if given.dtype.kind not in "fiub":
        raise TypeError(f"The graph has dtype {given.dtype}; pass a matrix of real numbers.")
    if given.shape[0] == 0:
        raise ValueError("The graph has no nodes; pass one with at least 2.")
    matrix = sparse.csr_matrix(given.astype(float))  # before parallel edges are added
    matrix.sum_duplicates()
    bad = np.flatnonzero(~(np.isfinite(matrix.data) & (matrix.data >= 0)))
    if len(bad):
        edges, names = matrix.tocoo(), range(matrix.shape[0]) if names is None else list(names)
        i, j = edges.row[bad[0]], edges.col[bad[0]]
        raise ValueError(
            f"The weight of edge ({names[i]!r}, {names[j]!r}) is {matrix.data[bad[0]]:.3g}; pass "
            "finite, non-negative weights, e.g. exp(-distance**2 / epsilon), or leave these edges "
            "out."
        )
    matrix.eliminate_zeros()
    return matrix


def _as_names(names: Any, n: int) -> Array:
    """Return n names, which may be tuples, as an array of objects, or of integers if they are."""
    items = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if len(items) != n:
        raise ValueError(f"names has {len(items)} entries for {n} nodes; pass one for each.")
    if all(type(item) is int for item in items):
        return np.array(items)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
