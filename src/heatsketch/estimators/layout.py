"""Where components stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heatsketch._typing import Array

_GAP, _LEAST_GAP = 0.2, 0.1  # between discs: of the median radius, and of the largest
_ROUNDING = 1e-12  # of a shift, relative to the largest


def side_by_side(Y: Array, components: Sequence[Array], mass: Array) -> Array:
    """Return shifts (C, k) of components of Y (n, k) after which their discs stand in rows, apart.

    The discs are around the means, the largest one comes first; with k = 1 there is one row. `mass`
    (C,) is that of the components: the mean of the shifts is 0.
    """
    means = np.array([Y[rows].mean(axis=0, dtype=float) for rows in components])
    reach = [
        np.linalg.norm(Y[rows] - mean, axis=1).max()
        for rows, mean in zip(components, means, strict=True)
    ]
    shifts = _in_rows(np.array(reach, dtype=float), Y.shape[1]) - means
    shifts = shifts - mass @ shifts / mass.sum()
    return np.where(np.abs(shifts) > _ROUNDING * np.abs(shifts).max(), shifts, 0.0)


def _in_rows(radii: Array, k: int) -> Array:
    """Return centres (C, k) of discs in rows, as in a text, in about a square."""
    gap = max(_GAP * float(np.median(radii)), _LEAST_GAP * float(radii.max())) or 1.0
    steps = 2 * radii + gap
    width = np.inf if k == 1 else max(np.sqrt(np.sum(steps**2)), steps.max())
    centres, x, y, height = np.zeros((len(radii), k)), 0.0, 0.0, 0.0
    for disc in np.argsort(-radii, kind="stable"):
        step = steps[disc]
        if x + step > width * (1 + 1e-9):  # the next row
            x, y, height = 0.0, y - height, 0.0
        height = max(height, step)  # discs hang from the upper edge of their row
        centres[disc, 0] = x + step / 2
        if k > 1:
            centres[disc, 1] = y - step / 2
        x += step
    return centres
