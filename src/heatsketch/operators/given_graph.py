"""Graphs of other libraries as matrices: the one door through which they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._checks import check_number, read_array, refuse_masked
from heatsketch._typing import Array

_LIBRARIES = ("networkx", "igraph", "torch_geometric", "torch")


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
        Not a graph; weights that are not numbers.
    ValueError
        A weight that is negative, NaN or infinite; a matrix that is not square; edges between
        nodes that do not exist; an attribute that no edge has.

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
        n = given.matrix.shape[0]
        return given if names is None else Graph(given.matrix, _named(names, n))
    found = _read(given, weight, n_nodes, names)
    matrix = sparse.csr_matrix(found.matrix.maximum(found.matrix.T))
    names = found.names if names is None else names
    return Graph(matrix, None if names is None else _named(names, matrix.shape[0]))


def is_graph(given: Any) -> bool:
    """Say whether something is a `Graph`, or a graph of another library."""
    return isinstance(given, Graph) or _library(given) in _READERS


def as_graph(given: Any, name: str = "A") -> Graph | None:
    """Return a graph of another library, or a `Graph`, for use in place of a matrix; else None.

    Directed graphs are refused there, as matrices that are not symmetric are.
    """
    if isinstance(given, Graph):
        return given
    if not is_graph(given):  # a tensor is a matrix, unless `graph` is asked
        return None
    found = _read(given, "weight")
    if abs(found.matrix - found.matrix.T).max() > 1e-10 * found.matrix.max():
        raise ValueError(
            f"{name} is a directed graph; pass heatsketch.graph({name}), which takes the larger "
            "weight of both directions."
        )
    return Graph(found.matrix, found.names)


class _Found(NamedTuple):
    """A matrix (n, n), perhaps of a directed graph, and names of the nodes."""

    matrix: sparse.csr_matrix
    names: Array | None = None


class _Edges(NamedTuple):
    """Edges between numbered nodes, as a library lists them."""

    ends: Array  # (2, m)
    weights: Any  # (m,), or None for ones
    n: int
    directed: bool
    names: Any = None


def _library(given: Any) -> str | None:
    """Return the library that the object, or a class it is derived from, belongs to, or None."""
    roots = (base.__module__.partition(".")[0] for base in type(given).__mro__)
    return next((root for root in roots if root in _LIBRARIES), None)


def _read(given: Any, weight: Any, n_nodes: int | None = None, names: Any = None) -> _Found:
    library = _library(given)
    if library == "torch":
        given = _array(given)
    elif library is not None:
        return _matrix_of(_READERS[library](given, weight))
    refuse_masked(given, "The graph")
    if not sparse.issparse(given):
        given = read_array(given, "The graph")
    if _is_edge_index(given, weight, n_nodes):
        weights = None if weight is None or isinstance(weight, str) else _array(weight)
        n = _count(given, n_nodes)
        return _matrix_of(_Edges(given, weights, n, directed=True, names=names))
    matrix = _checked_matrix(given)
    if _attribute(weight) is None:
        matrix.data[:] = 1.0
    return _Found(matrix)


def _is_edge_index(given: Any, weight: Any, n_nodes: int | None) -> bool:
    """Say whether an array holds edges; two nodes may have a matrix (2, 2), too."""
    if sparse.issparse(given) or given.ndim != 2 or len(given) != 2:
        return False
    said = n_nodes is not None or not (weight is None or isinstance(weight, str))
    return said or (given.dtype.kind in "iu" and given.shape[1] != 2)


def _of_networkx(G: Any, weight: Any) -> _Edges:
    nodes = list(G.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    attribute = _attribute(weight)
    edges = list(G.edges(data=attribute, default=None) if attribute else G.edges())
    weights = [edge[2] for edge in edges] if attribute else None
    ends = np.array([(number[edge[0]], number[edge[1]]) for edge in edges], dtype=np.int64)
    weights = _filled(weights, weight, [edge[:2] for edge in edges])
    return _Edges(ends.reshape(-1, 2).T, weights, len(nodes), G.is_directed(), nodes)


def _of_igraph(G: Any, weight: Any) -> _Edges:
    attribute, edges = _attribute(weight), G.get_edgelist()
    has = attribute is not None and attribute in G.es.attributes()
    weights = list(G.es[attribute]) if has else [None] * len(edges) if attribute else None
    names = list(G.vs["name"]) if "name" in G.vs.attributes() else None
    weights = _filled(weights, weight, edges)
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return _Edges(ends, weights, G.vcount(), G.is_directed(), names)


def _of_pyg(data: Any, weight: Any) -> _Edges:
    """Read the `edge_index` of a `Data`, and `edge_weight` or `edge_attr` where that is (m,)."""
    ends, weights = _array(data.edge_index), weight
    if isinstance(weight, str):
        names = ("edge_weight", "edge_attr") if weight == "weight" else (weight,)
        held = [getattr(data, name, None) for name in names]
        weights = next((values for values in held if values is not None), None)
        if weights is None and weight != "weight":
            raise _no_attribute(weight)
    if weights is not None:
        weights = _array(weights)
        weights = weights.reshape(-1) if weights.size == ends.shape[1] else weights
    return _Edges(ends, weights, int(data.num_nodes), directed=True)


_READERS: dict[str, Callable[[Any, Any], _Edges]] = {
    "networkx": _of_networkx,
    "igraph": _of_igraph,
    "torch_geometric": _of_pyg,
}


def _attribute(weight: Any) -> str | None:
    if weight is None or isinstance(weight, str):
        return weight
    raise TypeError(
        f"weight is of type {type(weight).__name__}, but the graph has weights of its own; pass "
        "the name of their attribute, or None."
    )


def _filled(weights: list[Any] | None, weight: Any, edges: Sequence[Any]) -> list[Any] | None:
    """Return weights with 1 where an edge has none; refuse a name that no edge has."""
    if weights is None or not edges:
        return None
    if weight != "weight" and all(one is None for one in weights):
        raise _no_attribute(weight)
    return [1.0 if one is None else one for one in weights]


def _no_attribute(weight: str) -> ValueError:
    return ValueError(f"No edge has an attribute {weight!r}; pass weight=None for weights of 1.")


def _array(values: Any) -> Array:
    """Return an array or a tensor of torch on any device as an array."""
    if _library(values) == "torch":
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _count(ends: Array, n_nodes: int | None) -> int:
    if n_nodes is not None:
        return int(check_number(n_nodes, "n_nodes", low=1, integer=True))
    return int(ends.max()) + 1 if ends.size else 0


def _matrix_of(edges: _Edges) -> _Found:
    """Add up the edges; an undirected one counts in both directions, a self-loop once."""
    tail, head = _checked_ends(edges)
    w = np.ones(len(tail)) if edges.weights is None else as_weights(edges.weights)
    if w.shape != tail.shape:
        raise ValueError(
            f"There are {len(tail)} edges but weights of shape {w.shape}; pass one for each, (m,)."
        )
    names = None if edges.names is None else _named(edges.names, edges.n)
    check_weights(w, lambda i: f"edge {_edge(tail[i], head[i], names)}")
    if not edges.directed:
        other = tail != head
        tail, head = np.r_[tail, head[other]], np.r_[head, tail[other]]
        w = np.r_[w, w[other]]
    matrix = sparse.coo_matrix((w, (tail, head)), shape=(edges.n, edges.n)).tocsr()
    matrix.eliminate_zeros()
    return _Found(_not_empty(matrix), names)


def _checked_ends(edges: _Edges) -> tuple[Array, Array]:
    ends = edges.ends
    if ends.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if ends.dtype.kind not in "iu" or ends.ndim != 2 or len(ends) != 2:
        raise ValueError(
            f"Edges have dtype {ends.dtype} and shape {ends.shape}; pass integers (2, m)."
        )
    if ends.min() < 0 or ends.max() >= edges.n:
        raise ValueError(
            f"Edges mention nodes {ends.min()} to {ends.max()}, but there are {edges.n} nodes; "
            f"pass n_nodes >= {int(ends.max()) + 1}, and numbers from 0."
        )
    return ends[0].astype(np.int64), ends[1].astype(np.int64)


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
    check_weights(matrix.data, lambda i: "an entry of the matrix")
    matrix.eliminate_zeros()
    return _not_empty(matrix)


def _not_empty(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    if matrix.shape[0] == 0:
        raise ValueError("The graph has no nodes; pass one with at least 2.")
    return matrix


def as_weights(weights: Any) -> Array:
    """Return weights of edges as an array of float64, or raise for one that is not a number."""
    found = np.asarray(weights)
    if found.dtype.kind in "fiub":
        return found.astype(float)
    for i, one in enumerate(found.tolist() if found.ndim == 1 else []):
        if not isinstance(one, int | float | np.number):
            raise TypeError(f"The weight of edge {i} is {one!r}; pass numbers.")
    return found.astype(float)


def check_weights(weights: Array, describe: Callable[[int], str]) -> None:
    """Raise for the first weight (m,) that is negative or not finite; `describe` says of which."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad) == 0:
        return
    worst, value = int(bad[0]), float(weights[bad[0]])
    if value < 0 and np.isfinite(value):
        raise ValueError(
            f"Negative values in data: {describe(worst)} has the weight {value:.3g}; pass "
            "non-negative weights, e.g. exp(-distance**2 / epsilon)."
        )
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Weights contain {what}: that of {describe(worst)} and {len(bad) - 1} more; leave these "
        "edges out."
    )


def _edge(i: int, j: int, names: Array | None) -> str:
    tail, head = (int(i), int(j)) if names is None else (names[i], names[j])
    return f"({tail!r}, {head!r})"


def _named(names: Any, n: int) -> Array:
    """Return n names, which may be tuples, as an array of objects, or of integers if they are."""
    items = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if len(items) != n:
        raise ValueError(f"names has {len(items)} entries for {n} nodes; pass one for each.")
    if all(type(item) is int for item in items):
        return np.array(items)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
