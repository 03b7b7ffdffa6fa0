"""Connected components of an affinity, and points that stand alone."""

from __future__ import annotations

import numpy as np

from heatsketch._typing import Array
from heatsketch.neighbors import NeighborIndex
from heatsketch.operators import Kernel, Operator
from heatsketch.operators.components import (
    NEGLIGIBLE,
    STRONGEST_LINKS,
    components_of_links,
    join_components,
)
from heatsketch.operators.properties import component_labels, diagonal

__all__ = ["NEGLIGIBLE", "component_labels", "isolated_points"]


def isolated_points(K: Operator, row_sums: Array) -> Array:
    """Return the points whose affinity to all others together is negligible."""
    own = diagonal(K)
    if own is None:
        return np.empty(0, dtype=int)
    return np.flatnonzero(row_sums - own <= 1e-12 * row_sums)


@component_labels.register
def _(K: Kernel) -> Array:
    """Link each point to its nearest ones, and then what the kernel joins beyond them."""
    k = min(STRONGEST_LINKS + 1, K.n)
    found = NeighborIndex(K.scaled_points).of_points(k)
    exponents = found.distances**2 / (K.scaled_scales[:, None] * K.scaled_scales[found.indices])
    near = exponents < -np.log(NEGLIGIBLE * K.n)
    return join_components(K, components_of_links(np.nonzero(near)[0], found.indices[near], K.n))
