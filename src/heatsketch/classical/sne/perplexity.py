"""Probabilities that points are neighbours, p_{j|i} and p_ij, at a given perplexity."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._array import for_each_tile
from heatsketch._checks import ScaleWarning, name_rows
from heatsketch._typing import Array


class Conditional(NamedTuple):
    """The conditional probabilities (13) of points, over their neighbours."""

    p: Array  # (m, l), p_{j|i}; rows sum to 1
    sigma: Array  # (m,), σ_i, in the units of the distances


def conditional(distances: Array, perplexity: float) -> Conditional:
    """Compute p_{j|i} = e^(-d_ij² / 2σ_i²) / Σ_k e^(-d_ik² / 2σ_i²), (13), of a perplexity (14).

    Distances to the neighbours (m, l) ascend in every row; the perplexity is above 1 and below l.
    σ_i gives the entropy to twelve digits, on any scale of the distances. Where more neighbours
    than the perplexity are nearest at the same distance, no σ_i has this perplexity; then these
    neighbours share the probability, which is the limit σ_i → 0, with a warning.
    """
    from heatsketch.classical.sne.kernels import calibrate  # compiled loops

    p, sigma = np.empty(distances.shape), np.empty(len(distances))
    ties = np.empty(len(distances), np.int64)

    def work(rows: slice) -> None:
        calibrate(distances[rows], perplexity, p[rows], sigma[rows], ties[rows])

    for_each_tile(work, len(distances))
    crowded = np.flatnonzero(ties > perplexity)
    if len(crowded):
        warnings.warn(
            f"{len(crowded)} point(s) (rows {name_rows(crowded)}) have more nearest neighbours at "
            f"one distance (up to {ties.max()}) than perplexity={perplexity:g}, which no bandwidth "
            "gives; these neighbours get equal weights. Remove copies, or raise perplexity.",
            ScaleWarning,
            stacklevel=4,
        )
    return Conditional(p, sigma)


def conditional_graph(p: Array, indices: Array) -> sparse.csr_matrix:
    """Return the conditional probabilities of n points as CSR (n, n)."""
    n, width = p.shape
    starts = np.arange(0, n * width + 1, width)
    graph = sparse.csr_matrix((p.ravel(), indices.ravel(), starts), shape=(n, n))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def joint(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return p_ij = (p_{i|j} + p_{j|i}) / 2n, (15), CSR (n, n): symmetric, of sum 1."""
    P = sparse.csr_matrix(graph + graph.T)
    P.data /= 2 * graph.shape[0]
    P.eliminate_zeros()  # the smallest numbers may have underflowed
    P.sort_indices()
    return P
