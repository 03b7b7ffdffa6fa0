"""Graphs of other libraries as matrices: the one door through which they come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._checks import check_number, read_array, refuse_masked
from heatsketch._typing import Array

_LIBRARIES = ("networkx", "igraph", "torch_geometric", "torch")
Edges = tuple[Any, Any, int, bool, Any]  # ends (2, m), weights (m,), nodes, directed?, names


@dataclass(frozen=True, eq=False)
class Graph:
    """A weighted graph: the symmetric matrix of its weights, and the names of its nodes.

    Attributes
    ----------
    matrix : CSR matrix (n, n)
        Non-negative weights. A self-loop counts once.
    names : array (n,) or None
        The node of each row; None: they are numbered.
    """

    matrix: sparse.csr_matrix
    names: Array | None = None

    def __repr__(self) -> str:
        """Describe the graph without its arrays."""
        return f"Graph({self.matrix.shape[0]} nodes, {self.n_edges} edges)"

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
    given : graph of networkx or igraph, SciPy sparse matrix, array or `torch_geometric` data
        An array or tensor of integers (2, m) holds edges, from the nodes in the first row to those
        in the second (an `edge_index`), each edge once or in both directions; one of (2, 2) only
        with `n_nodes` or weights. Any other array is a matrix of weights (n, n).
    weight : str, array (m,) or None, default "weight"
        The attribute of the edges that holds their weights, 1 where there is none; or the weights
        of edges (2, m). None: all weights are 1.
    names : sequence of n names, optional
        By default those that the graph has: nodes of networkx, `vs["name"]` of igraph.
    n_nodes : int, optional
        Nodes of an edge list; by default as many as it mentions.

    Returns
    -------
    Graph
        `.matrix` (n, n) and `.names`. Everything that takes an affinity takes it; there a node
        without edges stays where it is (with a self-loop of the mean degree).

    Raises
    ------
    TypeError
        Not a graph, or weights beside a graph that has its own.
    ValueError
        A weight that is not a number, negative, NaN or infinite; a matrix that is not square;
        edges between nodes that do not exist; an attribute that no edge has.

    Notes
    -----
    Cost: that of reading the edges, once. No library is imported that the graph is not of.

    Examples
    --------
    >>> import numpy as np, heatsketch as hs
    >>> hs.graph(np.array([[0, 1, 1], [1, 2, 2]])).matrix.toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    if isinstance(given, Graph):
        matrix, own = given.matrix, given.names
    else:
        directed, own = _matrix_and_names(given, weight, n_nodes, names)
        matrix = sparse.csr_matrix(directed.maximum(directed.T))
    return Graph(matrix, own if names is None else _as_names(names, matrix.shape[0]))


def is_graph(given: Any) -> bool:
    """Say whether something is a `Graph`, or a graph of another library."""
    return isinstance(given, Graph) or _library(given) in _READERS


def as_graph(given: Any, name: str = "A") -> Graph | None:
    """Return a graph of another library, or a `Graph`, for use in place of a matrix; else None.

    Directed graphs are refused there, as matrices that are not symmetric are.
    """
    if isinstance(given, Graph) or not is_graph(given):  # a tensor or an array is a matrix
        return given if isinstance(given, Graph) else None
    matrix, names = _matrix_and_names(given, "weight")
    if abs(matrix - matrix.T).max() > 1e-10 * matrix.max():
        raise ValueError(
            f"{name} is a directed graph; pass heatsketch.graph({name}), which takes the larger "
            "weight of both directions."
        )
    return Graph(matrix, names)


def _library(given: Any) -> str | None:
    """Return the library that the object, or a class it is derived from, belongs to, or None."""
    roots = (base.__module__.partition(".")[0] for base in type(given).__mro__)
    return next((root for root in roots if root in _LIBRARIES), None)


def _matrix_and_names(
    given: Any, weight: Any, n_nodes: int | None = None, called: Any = None
) -> tuple[sparse.csr_matrix, Array | None]:
    """Return the weights (n, n), perhaps of a directed graph, and the names of the nodes.

    A message about an edge has the names that the nodes of a list of edges are `called` by.
    """
    reader, listed = (
        _READERS.get(_library(given) or ""),
        not (weight is None or isinstance(weight, str)),
    )
    if reader is not None:
        if listed:
            raise TypeError(
                f"weight is of type {type(weight).__name__}, but the graph has weights of its own; "
                "pass the name of their attribute, or None."
            )
        ends, weights, n, directed, names = reader(given, weight)
        names = None if names is None else _as_names(names, n)
        matrix = _adjacency(ends, weights, n, directed, names)
    else:
        given = _array(given) if _library(given) == "torch" else given
        refuse_masked(given, "The graph")
        given, names = given if sparse.issparse(given) else read_array(given, "The graph"), None
        # Two nodes may have a matrix (2, 2), too.
        integers = given.dtype.kind in "iu" and given.shape != (2, 2)
        pairs = not sparse.issparse(given) and given.ndim == 2 and len(given) == 2
        if pairs and (integers or listed or n_nodes is not None):
            ends, n = _checked_ends(given, n_nodes)
            called = None if called is None else _as_names(called, n)
            matrix = _adjacency(ends, _array(weight) if listed else None, n, True, called)
        else:
            matrix = _checked_matrix(given)
            if weight is None:
                matrix.data[:] = 1.0
    if matrix.shape[0] == 0:
        raise ValueError("The graph has no nodes; pass one with at least 2.")
    return matrix, names


def _of_networkx(G: Any, weight: str | None) -> Edges:
    nodes, edges = list(G.nodes), list(G.edges(data=True))
    number = {node: i for i, node in enumerate(nodes)}
    ends = [[number[edge[side]] for edge in edges] for side in (0, 1)]
    weights = _with_ones([data.get(weight) for _, _, data in edges], weight)
    return ends, weights, len(nodes), G.is_directed(), nodes


def _of_igraph(G: Any, weight: str | None) -> Edges:
    edges = G.get_edgelist()
    values = list(G.es[weight]) if weight in G.es.attributes() else [None] * len(edges)
    names = G.vs["name"] if "name" in G.vs.attributes() else None
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    return ends, _with_ones(values, weight), G.vcount(), G.is_directed(), names


def _of_pyg(data: Any, weight: str | None) -> Edges:
    """Read the `edge_index` of a `Data`, and `edge_weight` or `edge_attr` where that is (m,)."""
    ends = _array(data.edge_index)
    attributes = ("edge_weight", "edge_attr") if weight == "weight" else (weight or "",)
    held = [getattr(data, name) for name in attributes if getattr(data, name, None) is not None]
    if not held:
        return ends, _with_ones([None] * ends.shape[1], weight), int(data.num_nodes), True, None
    weights = _array(held[0])
    weights = weights.reshape(-1) if weights.size == ends.shape[1] else weights
    return ends, weights, int(data.num_nodes), True, None


_READERS: dict[str, Callable[[Any, str | None], Edges]] = {
    "networkx": _of_networkx,
    "igraph": _of_igraph,
    "torch_geometric": _of_pyg,
}


def _with_ones(values: list[Any], weight: str | None) -> list[Any] | None:
    """Return weights, 1 where an edge has none; None where all are 1; refuse an unknown name."""
    if weight is None or not values:
        return None
    if weight != "weight" and all(value is None for value in values):
        raise ValueError(f"No edge has an attribute {weight!r}; pass weight=None for weights of 1.")
    return [1.0 if value is None else value for value in values]


def _array(values: Any) -> Array:
    """Return an array or a tensor of torch on any device as an array."""
    if _library(values) == "torch":
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _adjacency(
    ends: Any, weights: Any, n: int, directed: bool, names: Array | None
) -> sparse.csr_matrix:
    """Add up the edges; an undirected one counts in both directions, a self-loop once."""
    tail, head = np.asarray(ends, np.int64).reshape(2, -1)
    w = np.ones(len(tail)) if weights is None else read_array(weights, "weight", dtype=float)
    if w.shape != tail.shape:
        raise ValueError(
            f"There are {len(tail)} edges but weights of shape {w.shape}; pass one for each, (m,)."
        )
    labels = range(n) if names is None else names.tolist()
    _check_weights(w, lambda i: f"edge ({labels[tail[i]]!r}, {labels[head[i]]!r})")
    if not directed:
        other = tail != head
        tail, head = np.r_[tail, head[other]], np.r_[head, tail[other]]
        w = np.r_[w, w[other]]
    matrix = sparse.coo_matrix((w, (tail, head)), shape=(n, n)).tocsr()
    matrix.eliminate_zeros()
    return matrix


def _checked_ends(ends: Array, n_nodes: int | None) -> tuple[Array, int]:
    """Return the ends of edges (2, m) as integers, and the number of nodes."""
    n = None if n_nodes is None else check_number(n_nodes, "n_nodes", low=1, integer=True)
    if ends.size == 0:
        return ends, int(n or 0)
    if ends.dtype.kind not in "iu":
        raise ValueError(
            f"Edges have dtype {ends.dtype} and shape {ends.shape}; pass integers (2, m)."
        )
    largest = int(ends.max())
    n = largest + 1 if n is None else int(n)
    if ends.min() < 0 or largest >= n:
        raise ValueError(
            f"Edges mention nodes {ends.min()} to {largest}, but there are {n} nodes; "
            f"pass n_nodes >= {largest + 1}, and numbers from 0."
        )
    return ends, n


def _checked_matrix(given: Any) -> sparse.csr_matrix:
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(
            f"The graph has shape {given.shape} and dtype {given.dtype}; pass a matrix (n, n), "
            "edges as integers (2, m), or a graph of networkx or igraph."
        )
    if given.dtype.kind not in "fiub":
        raise TypeError(f"The graph has dtype {given.dtype}; pass a matrix of real numbers.")
    rows = sparse.csr_matrix(given)
    matrix = sparse.csr_matrix((rows.data.astype(float), rows.indices, rows.indptr), rows.shape)
    matrix.sum_duplicates()
    _check_weights(matrix.data, lambda i: "an entry of the matrix")
    matrix.eliminate_zeros()
    return matrix


def _check_weights(weights: Array, describe: Callable[[int], str]) -> None:
    """Raise for the first weight (m,) that is negative or not finite; `describe` names it."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"The weight of {describe(int(bad[0]))} is {weights[bad[0]]:.3g}; pass finite, "
            "non-negative weights, e.g. exp(-distance**2 / epsilon), or leave these edges out."
        )


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
