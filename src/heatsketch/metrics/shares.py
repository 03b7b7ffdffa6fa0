"""How many distances an embedding keeps."""

import numpy as np
from scipy.spatial.distance import pdist

from heatsketch._typing import Array


def share_within(Y: Array, F: Array, factor: float) -> float:
    """Return the share of all pairs whose ratio |y_i - y_j| / |f_i - f_j| is typical.

    Parameters
    ----------
    Y, F : arrays (n, k) and (n, r)
            The embedding, and the points whose distances are to be kept.
    factor : float >= 1
        Typical is what lies within this factor of the median, up or down.

    Returns
    -------
    float
        From 0 to 1. Pairs at distance zero on both sides do not count.

    Raises
    ------
    ValueError
        Y and F have different lengths.

    Notes
    -----
    Cost: all n (n - 1)/2 pairs, k + r operations each.

    Examples
    --------
    >>> from heatsketch.metrics import share_within
    >>> share_within([[0.0], [1.0], [4.0]], [[0.0], [1.0], [2.0]], factor=1.25)
    0.3333333333333333
    """
    after, before = pdist(np.asarray(Y, dtype=float)), pdist(np.asarray(F, dtype=float))
    kept = (after > 0) | (before > 0)
    with np.errstate(divide="ignore"):
        ratio = after[kept] / before[kept]
    middle = np.median(ratio)
    if middle == 0:  # most pairs coincide
        return 0.0
    return float(np.mean((ratio <= factor * middle) & (ratio * factor >= middle)))
