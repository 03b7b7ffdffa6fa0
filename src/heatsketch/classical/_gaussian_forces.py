"""The compiled loop of SNE: forces between all pairs of points."""

import math

import numpy as np

from heatsketch._compile import compiled
from heatsketch._typing import Array
from heatsketch.operators.exp2 import exp2_double


@compiled
def gaussian_forces(Yt: Array, first: int, stop: int, push: Array, logs: Array) -> None:
    """Add to push (k, n) what some rows i contribute to Σ_j (q_{j|i} + q_{i|j}) (y_i - y_j).

    Row i contributes q_{j|i} = e^(-|y_i - y_j|²) / Z_i for all j, which pushes y_i and every y_j.
    Also writes log Z_i. The smallest square is subtracted from all, so that no Z is 0.
    """
    k, n = Yt.shape
    q = np.empty(n)
    for i in range(first, stop):
        q[:] = 0.0
        for c in range(k):
            here, others = Yt[c, i], Yt[c]
            for j in range(n):
                d = here - others[j]
                q[j] -= d * d
        q[i] = -np.inf
        top = -np.inf
        for j in range(n):
            top = max(top, q[j])
        for j in range(n):
            q[j] = (q[j] - top) * 1.4426950408889634  # 1 / log 2
        exp2_double(q)
        total = 0.0
        for j in range(n):
            total += q[j]
        logs[i] = math.log(total) + top
        for c in range(k):
            here, others, out = Yt[c, i], Yt[c], push[c]
            own, share = 0.0, 1 / total
            for j in range(n):
                move = q[j] * share * (here - others[j])
                own += move
                out[j] -= move
            out[i] += own
