"""The weights and covariances that the caller gives: checked, and in one form."""

from typing import Any

import numpy as np

from heatsketch._checks import check_choice, real_array
from heatsketch._typing import Array

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def dense_floats(values: Any, name: str) -> Array:
    """Return an array in float64, or raise if the values are not numbers in a dense array."""
    return real_array(values, name).astype(np.float64, copy=False)


def checked_weights(weights: Any, n: int) -> Array:
    """Return weights (n,) that are non-negative and sum to 1, or raise."""
    weights = dense_floats(weights, "weights")
    if weights.shape != (n,):
        raise ValueError(
            f"weights have shape {weights.shape} but there are {n} means; pass shape ({n},)."
        )
    if not (weights >= 0).all() or not abs(weights.sum() - 1) < 1e-6:
        raise ValueError(
            f"weights sum to {weights.sum():.6g}, the smallest is {weights.min():.3g}; pass "
            "numbers >= 0 that sum to 1."
        )
    # Weights that are divided already stay as they are: a kernel made from the arrays of another
    # one computes the same bits.
    total = weights.sum()
    return weights if abs(total - 1) < 1e-14 * n else weights / total


def full_covariances(covariances: Any, kind: str | None, n: int, m: int) -> Array:
    """Return checked covariances (n, m, m) from any of the four forms."""
    given = dense_floats(covariances, "covariances")
    shapes = {"full": (n, m, m), "tied": (m, m), "diag": (n, m), "spherical": (n,)}
    if kind is None:
        fitting = [name for name, shape in shapes.items() if shape == given.shape]
        if len(fitting) > 1 and m > 1:
            raise ValueError(
                f"covariances of shape {given.shape} may be {' or '.join(fitting)}; pass "
                "covariance_type to say which."
            )
        kind = fitting[0] if fitting else None
    else:
        check_choice(kind, "covariance_type", COVARIANCE_TYPES)
    if kind is None or given.shape != shapes[kind]:
        wanted = shapes if kind is None else {kind: shapes[kind]}
        raise ValueError(
            f"covariances have shape {given.shape}; for {n} means in {m} dimensions pass "
            + ", ".join(f"{shape} ({name})" for name, shape in wanted.items())
            + "."
        )
    if not np.isfinite(given).all():
        raise ValueError("covariances contain NaN or infinity; pass finite numbers.")
    if kind == "tied":
        full = np.broadcast_to(given, (n, m, m))
    elif kind == "full":
        full = given
    else:
        full = np.einsum("ka,ab->kab", given.reshape(n, -1) * np.ones((1, m)), np.eye(m))
    _check_semidefinite(full)
    return (full + full.transpose(0, 2, 1)) / 2


def _check_semidefinite(full: Array) -> None:
    size = np.abs(full).max(axis=(1, 2))
    skew = np.abs(full - full.transpose(0, 2, 1)).max(axis=(1, 2))
    if (skew > 1e-8 * size).any():
        raise ValueError(f"covariance {int(np.argmax(skew))} is not symmetric; pass (C + C.T) / 2.")
    lowest = np.linalg.eigvalsh(full)[:, 0]
    if (lowest < -1e-10 * size).any():
        worst = int(np.argmin(lowest / np.maximum(size, np.finfo(float).tiny)))
        raise ValueError(
            f"covariance {worst} has the negative eigenvalue {lowest[worst]:.3g}; pass positive "
            "semidefinite matrices."
        )
