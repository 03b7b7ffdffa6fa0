"""What the last product by A is applied to: its scale, its constant column, its mass."""

import warnings
from collections.abc import Sequence

import numpy as np

from heatsketch._checks import CertificateError, ScaleWarning, name_rows
from heatsketch._tiles import row_tiles
from heatsketch._typing import Array

_MASS_ROUNDING = 1e-8  # share of √π in a column that rounding explains


def warn_of_scales(log_scales: Sequence[float], dtype: np.dtype) -> None:
    """Warn of each time at which the embedding is beyond the range of numbers."""
    for log_scale in log_scales:
        if log_scale:
            warnings.warn(
                f"At this time the embedding is of size e^{log_scale:.0f}, beyond {dtype}; it is "
                'divided by e^diagnostics_["log_scale"]. Pass a smaller time: the slowest '
                "direction dominates at this one.",
                ScaleWarning,
                stacklevel=4,
            )


def with_root(H: Array, measure: Array) -> Array:
    """Append to H (n, k) the column √π; A maps it to √π(x), the divisor of rows in Markov form."""
    wide = np.empty((len(H), H.shape[1] + 1), H.dtype)
    wide[:, :-1] = H
    wide[:, -1] = np.sqrt(measure)
    return wide


def check_mass(H: Array, measure: Array) -> None:
    """Raise unless every column of H is orthogonal to √π: diffusion keeps the mass."""
    peaks = np.maximum(H.max(axis=0), -H.min(axis=0)).astype(float)
    peaks = np.maximum(peaks, np.finfo(float).tiny)  # squares must not underflow
    mass, size = np.zeros(H.shape[1]), np.zeros(H.shape[1])
    for tile in row_tiles(len(H)):
        block = H[tile] / peaks
        mass += np.sqrt(measure[tile]) @ block
        size += np.einsum("ij,ij->j", block, block)
    mass, size = np.abs(mass), np.sqrt(size)
    leaked = np.flatnonzero(mass > max(_MASS_ROUNDING, 100 * np.finfo(H.dtype).eps) * size)
    if len(leaked):
        raise CertificateError(
            f"Mass is not conserved: it changed by {mass.max():.1e} of {size.max():.1e} in columns "
            f"{name_rows(leaked)}."
        )


def warn_of_halves(count: int) -> None:
    warnings.warn(
        f"{count} component(s) of the graph are bipartite: a walk is in one half after an even "
        "number of steps and in the other after an odd one, so that the halves never come nearer. "
        "Pass filter='heat', whose walks wait for random times.",
        stacklevel=3,
    )
