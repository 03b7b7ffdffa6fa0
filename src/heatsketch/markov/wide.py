"""Wide coordinates of the vertices, whose distances are the diffusion distances of a filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heatsketch._typing import Array
from heatsketch.markov.components import ComponentCoordinates
from heatsketch.markov.diffusion import Diffusion
from heatsketch.spectral.filters import Filter


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

    def without_large(self, size: int) -> WideCoordinates:
        """Return the same with only the components of fewer points than `size`."""
        return replace(self, components=[c for c in self.components if len(c) < size])

    def mapped(self, maps: list[Array], k: int) -> tuple[Array, Array]:
        """Return F W and S F W (n, k), W (r, k) the directions of each component; else zeros."""
        H, Y = np.zeros((2, len(self.before), k))
        for vertices, W in zip(self.components, maps, strict=True):
            H[vertices] = self.before[vertices] @ W
            Y[vertices] = self.after[vertices] @ W
        return H, Y
