"""Orthonormal bases of a few long columns."""

from __future__ import annotations

import numpy as np

from heatsketch._typing import Array


def orthonormal(X: Array, *others: Array) -> tuple[Array, Array]:
    """Return QR = X less its part in the span of the others, whose columns are orthonormal.

    What is left of columns that nearly agree is rounding, and has to be projected again.
    """
    R = np.eye(X.shape[1])
    for _ in range(3):
        sizes = np.linalg.norm(X, axis=0)
        for V in others:
            X = X - V @ (V.T @ X)
        X, factor = np.linalg.qr(X)
        R = factor @ R
        if (np.abs(factor.diagonal()) > 0.7 * sizes).all():  # hardly anything was taken away
            break
    return X, R
