"""Components, between which nothing diffuses: their labels, and coordinates of each by itself.

`Diffusion` imports this module, so a parameter `diffusion` has no type here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch._exceptions import DisconnectedWarning, name_rows, warn
from heatsketch._tensors import on_host
from heatsketch._typing import Array
from heatsketch.backend import blocks_of
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.operators.components import between_components, members_of
from heatsketch.operators.deflated import Deflated
from heatsketch.operators.linear_map import restricted_operator
from heatsketch.operators.operator import Operator
from heatsketch.spectral.filters import Filter

_MAX_ENTRIES = 2**25  # between components: as much as some blocks of columns


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


def component_labels(diffusion: Any) -> Array | None:
    """Return the component of each vertex (n,), or None where only the whole is looked at.

    That is where there is one component, or more than can be taken out (all are up to 2,048 points,
    335 of 100,000 points); and in the symmetric form, where a component is not a point at large
    times.
    """
    count = diffusion.diagnostics.get("components", 1)
    if count == 1 or diffusion.normalization == "symmetric" or count * diffusion.n > _MAX_ENTRIES:
        return None
    return diffusion.operator.components()


def deflate_components(diffusion: Any, labels: Array) -> Deflated:
    """Return A without the directions that are multiples of √π on each component.

    Distances within a component are the same without them, in the Markov and the bistochastic form.
    """
    A = diffusion.deflated
    between = between_components(diffusion.root, labels, A.n)
    between /= np.linalg.norm(between, axis=0)
    return A.deflated(between)


def within_component(diffusion: Any, vertices: Array) -> Deflated:
    """Return A between the vertices of one component, without its trivial direction √π."""
    root = diffusion.root[vertices]
    A = restricted_operator(diffusion.operator, vertices)
    return Deflated(A, root / np.sqrt(np.sum(root**2)))


@dataclass(frozen=True, eq=False)
class ComponentCoordinates:
    """Coordinates of the vertices of each component by itself, the largest component first.

    Between components nothing diffuses, so that the same columns serve all of them.
    """

    components: list[Array]
    each: list[Coordinates]

    @classmethod
    def from_diffusion(
        cls, diffusion: Any, count: int = N_LEADING, leading: LeadingPairs = leading_pairs
    ) -> ComponentCoordinates:
        """Compute `count` leading eigenpairs of each component; all of up to 512 vertices."""
        labels = component_labels(diffusion)
        if labels is None:
            return cls.from_operator(diffusion.deflated, count, leading)
        components = sorted(members_of(labels), key=len, reverse=True)
        return cls(components, [leading(within_component(diffusion, c), count) for c in components])

    @classmethod
    def from_operator(
        cls, A: Deflated, count: int = N_LEADING, leading: LeadingPairs = leading_pairs
    ) -> ComponentCoordinates:
        """Compute the same of an operator as a whole."""
        return cls([np.arange(A.n)], [leading(A, count)])

    @property
    def values(self) -> Array:
        """The eigenvalues of all pairs."""
        return np.concatenate([one.values for one in self.each])

    def enough_for(self, f: Filter) -> ComponentCoordinates:
        """Return the same, with the pairs that a filter needs; see `Coordinates.enough_for`."""
        return ComponentCoordinates(self.components, [one.enough_for(f) for one in self.each])

    def under(
        self, f: Filter, n_sketch: int, *, numbers: Array | None = None, exact: bool = False
    ) -> tuple[Array, float]:
        """Return the coordinates (n, r) under a filter, and their error.

        The error is the relative one of a mean squared distance. Where the leading eigenpairs are
        not enough (or if `exact`), all are computed for up to 2,048 vertices; for more, a sketch of
        the others is added. `numbers` (n,) of the vertices choose its random rows.
        """
        blocks, error = [], 0.0
        for vertices, one in zip(self.components, self.enough_for(f).each, strict=True):
            one = one.completed if exact or one.remaining_part(f)[1] else one
            named = None if numbers is None else numbers[vertices]
            blocks += one.under([f], n_sketch, seed=0, numbers=named)
            error = max(error, one.remaining_part(f)[0] * math.sqrt(2 / n_sketch))
        width = max(block.shape[1] for block in blocks)
        F = np.zeros((sum(map(len, self.components)), width), blocks[0].dtype)
        for vertices, block in zip(self.components, blocks, strict=True):
            F[vertices, : block.shape[1]] = block
        return F, error
