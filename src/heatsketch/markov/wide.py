"""Wide coordinates of the vertices, whose distances are the diffusion distances of a filter."""

from __future__ import annotations

from dataclasses import dataclass

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

    def mapped(self, maps: list[Array]) -> tuple[Array, Array]:
        """Return F W and S F W (n, k), W (r, k) the directions of each component."""
        H, Y = np.zeros((2, len(self.before), maps[0].shape[1]))
        for vertices, W in zip(self.components, maps, strict=True):
            H[vertices] = self.before[vertices] @ W
            Y[vertices] = self.after[vertices] @ W
        return H, Y
