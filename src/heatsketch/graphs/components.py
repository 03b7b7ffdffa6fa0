"""Points that stand alone in an affinity."""

from __future__ import annotations

import numpy as np

from heatsketch._typing import Array
from heatsketch.operators import Operator


def isolated_points(K: Operator, row_sums: Array) -> Array:
    """Return the points whose affinity to all others together is negligible."""
    own = K.diagonal()
    if own is None:
        return np.empty(0, dtype=int)
    return np.flatnonzero(row_sums - own <= 1e-12 * row_sums)
