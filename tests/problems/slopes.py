"""Derivatives by differences, to compare those in closed form with."""

import numpy as np


def differences(place, x, h):
    """Return the derivatives (n, k, m) of places (n, k) at points (n, m), with an error h⁶."""

    def along(e):
        beside = [place(x + s * h * e) - place(x - s * h * e) for s in (1, 2, 3)]
        return np.tensordot([45, -9, 1], beside, 1) / (60 * h)

    return np.stack([along(e) for e in np.eye(x.shape[1])], axis=2)
