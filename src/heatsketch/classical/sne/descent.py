"""The descent of SNE and t-SNE: momentum, gains, and the early phase."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from heatsketch._checks import CertificateError
from heatsketch._typing import Array
from heatsketch.classical.sne.objectives import Objective

logger = logging.getLogger("heatsketch")

_REPORT = 100  # iterations
_LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Schedule:
    """What the descent does when; `rate` None: the objective's own for each point."""

    n_iter: int
    early_iter: int
    exaggeration: float
    compression: float
    rate: float | None

    def rate_at(self, objective: Objective, exaggeration: float) -> float | Array:
        """Return the learning rate η of a phase."""
        return objective.rates(exaggeration) if self.rate is None else self.rate


def descend(objective: Objective, Yt: Array, schedule: Schedule) -> Array:
    """Return the places (k, n) after the steps Y ← Y - η g ∇C + α (Y - Y_before).

    Equation (20), with the sign of η set right. α is 0.5 in the early phase and 0.8 after it. In
    the early phase p is exaggerated, and λ · (weight of a point) · Σ |y_i|² is added to C (early
    compression). The gains g are Jacobs': 0.2 is added where the last step went down the gradient,
    and they are multiplied by 0.8 where it went up.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at
        return _descend(objective, Yt.copy(), schedule)


def _descend(objective: Objective, Yt: Array, schedule: Schedule) -> Array:
    velocity, gains = np.zeros_like(Yt), np.ones_like(Yt)
    for t in range(schedule.n_iter):
        early = t < schedule.early_iter
        exaggeration = schedule.exaggeration if early else 1.0
        gradient = objective.gradient(Yt, exaggeration)
        if early and schedule.compression:
            gradient += 2 * schedule.compression * objective.share * Yt
        gains = np.where(gradient * velocity < 0, gains + 0.2, gains * 0.8)
        np.maximum(gains, _LEAST_GAIN, out=gains)
        velocity *= 0.5 if early else 0.8
        velocity -= schedule.rate_at(objective, exaggeration) * gains * gradient
        Yt += velocity
        Yt -= Yt.mean(axis=1, keepdims=True)
        if (t + 1) % _REPORT == 0:
            _report(objective, Yt, t + 1, schedule.n_iter)
    _check_finite(Yt, schedule.n_iter)
    return Yt


def _report(objective: Objective, Yt: Array, t: int, n_iter: int) -> None:
    _check_finite(Yt, t)
    if logger.isEnabledFor(logging.INFO):
        logger.info("iteration %d of %d: divergence %.4f", t, n_iter, objective.divergence(Yt))


def _check_finite(Yt: Array, t: int) -> None:
    if not np.isfinite(Yt).all():
        raise CertificateError(
            f"The places are not finite after {t} iterations; pass a smaller learning_rate "
            "(or early_compression)."
        )
