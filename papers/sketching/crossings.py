"""How often a closed polygon in the plane crosses itself."""

import numpy as np


def crossings(Y: np.ndarray) -> int:
    """Return the number of pairs of edges of a closed polygon that cross.

    Two edges cross where each has its ends strictly on both sides of the line of the other.
    Neighbours, which share a vertex, do not, nor do edges that only touch.

    Parameters
    ----------
    Y : ndarray of shape (n, 2)
        The vertices in order; the last one is joined to the first. Time and memory are O(n²).
    """
    edges = np.roll(Y, -1, axis=0) - Y
    to = Y[None] - Y[:, None]  # from vertex i to vertex j
    side = np.sign(edges[:, None, 0] * to[..., 1] - edges[:, None, 1] * to[..., 0])
    divides = side * np.roll(side, -1, axis=1) < 0  # line i separates the ends of edge j
    return int(np.count_nonzero(divides & divides.T)) // 2
