"""How many pairs have which ratio."""

import numpy as np

from heatsketch._typing import Array

EDGES = 2.0 ** np.linspace(-3, 3, 61)  # of ratios next to their median
EDGES.setflags(write=False)
NONE = EDGES, np.zeros(len(EDGES) - 1, int)  # of no pairs


def histogram(ratio: Array, middle: float) -> tuple[Array, Array]:
    """Count ratios, ascending, between the edges (61,) times their median: (edges, counts (60,)).

    Those beyond the edges are in the outer bins; nothing is counted without a median above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.metrics.histograms import histogram
    >>> edges, counts = histogram(np.array([0.001, 1.0, 3.0]), 1.0)
    >>> int(counts[0]), int(counts.sum())
    (1, 3)
    """
    if not middle > 0:
        return NONE
    inner = np.searchsorted(ratio, EDGES[1:-1] * middle)
    return EDGES, np.diff(inner, prepend=0, append=len(ratio))
