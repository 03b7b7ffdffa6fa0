"""Where the spectrum of an operator lies, by Lanczos steps."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from heatsketch._array import random_block, single_threaded_blas
from heatsketch._tensors import namespace, norms
from heatsketch._typing import Array
from heatsketch.operators.base import Operator

Interval = tuple[float, float]

LANCZOS_STEPS = 40  # miss an end of the spectrum by 5-7 % of its width (probability 1e-6)


@single_threaded_blas()
def spectrum_ends(A: Operator, steps: int = LANCZOS_STEPS) -> tuple[Interval, Interval]:
    """Bound the spectrum of A from outside and from inside, by Lanczos steps.

    From a random vector, m steps miss an end by more than a share e of the width of the spectrum
    with probability at most 1.648 √n exp(-√e (2m - 1)) (Kuczyński and Woźniakowski 1992), whatever
    the spectrum. The outer interval allows for the share of probability 1e-6, and never goes
    beyond what the operator says of itself; with too few steps it is that.
    """
    low, high = A.spectrum
    share = (np.log(1.648e6 * np.sqrt(A.n)) / max(2 * steps - 1, 1)) ** 2
    if share > 0.25:
        return (low, high), (low, high)
    ritz = _ritz_values(A, steps)
    first, last = float(ritz[0]), float(ritz[-1])
    margin = share / (1 - 2 * share) * (last - first) + 1e-6 * max(abs(first), abs(last))
    return (max(low, first - margin), min(high, last + margin)), (first, last)


def _ritz_values(A: Operator, steps: int) -> Array:
    """Return the Ritz values, ascending, of Lanczos steps from a random vector."""
    v = A.asarray(random_block(A.n, 1, "gaussian", 0)[:, 0])
    v, previous = v / float(norms(v)), namespace(v).zeros_like(v)
    diagonal: list[float] = []
    beside = [0.0]
    for _ in range(steps):
        following = A @ v - beside[-1] * previous
        diagonal.append(float(v @ following))
        following -= diagonal[-1] * v
        beside.append(float(norms(following)))
        if beside[-1] <= 100 * np.finfo(A.dtype).eps * max(*beside, abs(diagonal[0])):
            break  # an invariant subspace
        v, previous = A.asarray(following / beside[-1]), v
    return eigvalsh_tridiagonal(diagonal, beside[1 : len(diagonal)])
