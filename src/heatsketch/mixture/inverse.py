"""Points with given coordinates, by the derivatives of a map."""

from collections.abc import Callable

import numpy as np

from heatsketch._typing import Array

_MOST_STEPS = 200
_FIRST_DAMPING, _LEAST_DAMPING = 1e-3, 1e-12  # next to the mean square of the slopes
_SMALLEST_STEP = 1e-10


def descend(
    place: Callable[[Array], Array], slopes: Callable[[Array], Array], x: Array, y: Array
) -> tuple[Array, Array]:
    """Return points (n, q) near starts x where |place(x) - y| is least, and what it is there, (n,).

    Steps solve (JᵀJ + λ |J|²/q) s = Jᵀ (place(x) - y), J the slopes (n, k, q), with λ larger after
    steps that do not help (Levenberg and Marquardt), and are at most 1 long: on this length places
    must change smoothly. Each row descends by itself.
    """
    x, off = x.copy(), place(x) - y
    q, damping, active = x.shape[1], np.full(len(x), _FIRST_DAMPING), np.arange(len(x))
    for _ in range(_MOST_STEPS):
        J = slopes(x[active])
        gram = J.transpose(0, 2, 1) @ J
        size = np.maximum(np.einsum("naa->n", gram) / q, np.finfo(float).tiny)
        gram += (damping[active] * size)[:, None, None] * np.eye(q)
        step = np.linalg.solve(gram, J.transpose(0, 2, 1) @ off[active, :, None])[:, :, 0]
        length = np.linalg.norm(step, axis=1)
        new = x[active] - step / np.maximum(length, 1.0)[:, None]
        new_off = place(new) - y[active]
        better = np.linalg.norm(new_off, axis=1) < np.linalg.norm(off[active], axis=1)
        rows = active[better]
        x[rows], off[rows] = new[better], new_off[better]
        damping[active] *= np.where(better, 0.1, 10.0)
        damping = np.maximum(damping, _LEAST_DAMPING)
        active = active[length > _SMALLEST_STEP]
        if not len(active):
            break
    return x, np.linalg.norm(off, axis=1)
