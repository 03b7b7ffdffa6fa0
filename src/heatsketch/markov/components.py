"""Components, between which nothing diffuses: their labels, and wide coordinates of each by itself.

Distances of wide coordinates are the diffusion distances of a filter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heatsketch._typing import Array
from heatsketch.markov.diffusion import Diffusion
from heatsketch.markov.rows import N_LEADING, Coordinates, LeadingPairs, leading_pairs
from heatsketch.operators.components import between_components, members_of
from heatsketch.operators.deflated import Deflated
from heatsketch.spectral.filters import Filter

_MAX_ENTRIES = 2**25  # between components: as much as some blocks of columns


def component_labels(diffusion: Diffusion) -> Array | None:
    """Return the component of each vertex (n,), or None where only the whole is looked at.

    That is where there is one component, or more than can be taken out (all are up to 2,048 points,
    335 of 100,000 points); and in the symmetric form, where a component is not a point at large
    times.
    """
    count = diffusion.diagnostics.get("components", 1)
    if count == 1 or diffusion.normalization == "symmetric" or count * diffusion.n > _MAX_ENTRIES:
        return None
    return diffusion.operator.components()


def deflate_components(diffusion: Diffusion, labels: Array) -> Deflated:
    """Return A without the directions that are multiples of √π on each component.

    Distances within a component are the same without them, in the Markov and the bistochastic form.
    """
    A = diffusion.deflated
    between = between_components(diffusion.root, labels, A.n)
    between /= np.linalg.norm(between, axis=0)
    return A.deflated(between)


def within_component(diffusion: Diffusion, vertices: Array) -> Deflated:
    """Return A between the vertices of one component, without its trivial direction √π."""
    root = diffusion.root[vertices]
    A = diffusion.operator.restricted(vertices)
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
        cls, diffusion: Diffusion, count: int = N_LEADING, leading: LeadingPairs = leading_pairs
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


@dataclass(frozen=True, eq=False)
class WideCoordinates:
    """Coordinates of the vertices of each component by itself, the largest component first.

    Attributes
    ----------
    before : array (n, r)
        F, before the last step of every walk.
    after : array (n, r)
        S F, whose distances are those wanted.
    error : float
        The relative one of a mean squared distance.
    components : list of arrays
        The vertices of each component.
    place : array (n,)
        The place of each vertex in the order of content.
    """

    before: Array
    after: Array
    error: float
    components: list[Array]
    place: Array

    @classmethod
    def under(
        cls,
        diffusion: Diffusion,
        coordinates: ComponentCoordinates,
        f: Filter,
        n_sketch: int,
        *,
        numbers: Array | None = None,
        exact: bool = False,
    ) -> WideCoordinates:
        """Compute them under a filter; parameters as in `ComponentCoordinates.under`."""
        F, error = coordinates.under(f, n_sketch, numbers=numbers, exact=exact)
        place = np.argsort(diffusion.sample(diffusion.n))
        return cls(F, diffusion.step() @ F, error, coordinates.components, place)

    def ordered(self, vertices: Array) -> Array:
        """Return vertices in the order of content."""
        return vertices[np.argsort(self.place[vertices])]

    def mapped(self, maps: list[Array], k: int) -> tuple[Array, Array]:
        """Return F W and S F W (n, k), W (r, k) the directions of each component; else zeros."""
        H, Y = np.zeros((2, len(self.before), k))
        for vertices, W in zip(self.components, maps, strict=True):
            H[vertices] = self.before[vertices] @ W
            Y[vertices] = self.after[vertices] @ W
        return H, Y
