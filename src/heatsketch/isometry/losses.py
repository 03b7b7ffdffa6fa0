"""Losses of a map, with their slopes, as functions of the log distance ratios ℓ of pairs.

No loss changes when all distances are multiplied by one number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heatsketch._typing import Array

Loss = Callable[[Array], tuple[float, Array]]  # ℓ (m,) -> value, slope (m,)

_WIDTH = 2.0  # of the window of `OutsideFraction`, in units of log factor
_CENTRING_STEPS = 8


def stress(log_ratios: Array) -> tuple[float, Array]:
    """Return the variance of ℓ and its slope: smooth, and with few minima.

    It is the limit of J_β / β as β → 0, see `LogDistortion`.
    """
    centred = log_ratios - log_ratios.mean()
    return float(np.mean(centred**2, dtype=float)), centred * (2 / len(centred))


@dataclass(frozen=True)
class OutsideFraction:
    """The smoothed fraction of pairs whose distance ratio is far from the typical one.

    The mean of 1 - exp(-(ℓ - c)²/2w²), with the centre c at which it is least and the width w twice
    log `factor`. Windows of 1.25 log `factor` keep 1-3 % more pairs within it, and give up the
    others, which then coincide in the picture (docs/embeddings.md).
    """

    factor: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope; that of c does not enter at a minimum over c."""
        width = _WIDTH * math.log(self.factor)
        centre = float(log_ratios.mean())
        for _ in range(_CENTRING_STEPS):
            near = np.exp(-(((log_ratios - centre) / width) ** 2) / 2)
            centre = float(near @ log_ratios / max(near.sum(), 1e-30))
        centred = log_ratios - centre
        near = np.exp(-((centred / width) ** 2) / 2)
        return 1 - float(near.mean(dtype=float)), near * centred / (width**2 * len(near))


@dataclass(frozen=True)
class LogDistortion:
    """The smoothed log-distortion J_β = (1/β) log mean e^{βℓ} + (1/β) log mean e^{-βℓ}.

    It tends to log L = max ℓ - min ℓ as β grows: log L - 2 log(m) / β <= J_β <= log L.
    """

    beta: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return the value and its slope."""
        up, up_slope = _log_mean_exp(self.beta * log_ratios)
        down, down_slope = _log_mean_exp(-self.beta * log_ratios)
        return (up + down) / self.beta, up_slope - down_slope


@dataclass(frozen=True)
class WeightedSum:
    """first + weight · second."""

    first: Loss
    second: Loss
    weight: float

    def __call__(self, log_ratios: Array) -> tuple[float, Array]:
        """Return first + weight · second, and the slope."""
        value, slope = self.first(log_ratios)
        more, more_slope = self.second(log_ratios)
        return value + self.weight * more, slope + self.weight * more_slope


def _log_mean_exp(x: Array) -> tuple[float, Array]:
    top = x.max()
    weights = np.exp(x - top)
    total = float(weights.sum(dtype=float))
    return float(top) + math.log(total / len(x)), weights / total
