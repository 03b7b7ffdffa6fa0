"""The descent of SNE and t-SNE: momentum, gains, the early phase, and steps taken back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heatsketch._checks import ConvergenceWarning
from heatsketch._typing import Array
from heatsketch.classical.sne.objectives import Objective

logger = logging.getLogger("heatsketch")

_LEAST_GAIN = 0.01
_LOOK = 50  # steps after which the divergence is looked at
_RISE = 0.01  # nats a point (of t-SNE: in all) that it may rise by in so many


@dataclass(frozen=True)
class Phase:
    """Steps taken alike: C is the divergence with p exaggerated, and compression added."""

    steps: int
    exaggeration: float
    compression: float
    momentum: float
    rate: float | None

    def gradient(self, objective: Objective, Yt: Array) -> Array:
        """Return the derivative of C by Yt (k, n)."""
        gradient = objective.gradient(Yt, self.exaggeration)
        gradient += 2 * self.compression * objective.share * Yt
        return gradient

    def cost(self, objective: Objective, Yt: Array, parts: tuple[float, float]) -> float:
        """Return C but for a constant."""
        squares = float(np.sum(Yt.astype(float) ** 2)) if self.compression else 0.0
        near, far = parts
        return self.exaggeration * near + far + self.compression * objective.share * squares

    def rates(self, objective: Objective) -> float | Array:
        """Return the learning rate η given, or for each point one that suits it.

        The second derivative of attraction and compression is at most twice their stiffness d.
        With η = 1 / d it is 2 / η, below the 3 / η beyond which momentum 0.5 would overshoot.
        """
        if self.rate is not None:
            return self.rate
        return 1 / (self.exaggeration * objective.stiffness + self.compression * objective.share)


@dataclass(frozen=True)
class Schedule:
    """What the descent does when; `rate` None: one for each point."""

    n_iter: int
    early_iter: int
    exaggeration: float
    compression: float
    rate: float | None

    def phases(self) -> Iterator[Phase]:
        """Return the early phase, if there is one, and the late one."""
        if self.early_iter:
            yield Phase(self.early_iter, self.exaggeration, self.compression, 0.5, self.rate)
        yield Phase(self.n_iter - self.early_iter, 1.0, 0.0, 0.8, self.rate)


def descend(objective: Objective, Yt: Array, schedule: Schedule) -> tuple[Array, int]:
    """Return the places (k, n) after the steps Y ← Y - η g ∇C + α (Y - Y_before), and setbacks.

    Equation (20), with the sign of η set right. α is 0.5 in the early phase and 0.8 after it. In
    the early phase p is exaggerated, and λ · (weight of a point) · Σ |y_i|² is added to C (early
    compression). Either phase starts from rest. The gains g are Jacobs': 0.2 is added where the
    last step went down the gradient, and they are multiplied by 0.8 where it went up. Gains may
    come to overshoot, and SNE's forces, which grow with distance, to go on so: where C has risen
    after 50 steps, these are taken back, and η is halved.
    """
    walk = _Walk(Yt.copy())
    lowered = True
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is taken back
        for phase in schedule.phases():
            lowered = walk.go(objective, phase)
    if not lowered:
        warnings.warn(
            f"No {_LOOK} steps of the descent after its early phase lowered the divergence; pass a "
            "smaller learning_rate, or a larger n_iter.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return walk.Yt, walk.setbacks


class _Walk:
    """Places on their way, and their momentum."""

    def __init__(self, Yt: Array) -> None:
        self.Yt, self.steps, self.setbacks = Yt, 0, 0

    def go(self, objective: Objective, phase: Phase) -> bool:
        """Take the steps of a phase, from rest, and say whether any lowered C."""
        self._stand_at(self.Yt)
        rates, lowered = phase.rates(objective), False
        lowest, kept = phase.cost(objective, self.Yt, objective.parts(self.Yt)), self.Yt.copy()
        for t in range(1, phase.steps + 1):
            self._step(phase.gradient(objective, self.Yt), rates, phase.momentum)
            if t % _LOOK and t < phase.steps:
                continue
            parts = objective.parts(self.Yt)
            cost = phase.cost(objective, self.Yt, parts)
            logger.info("step %d: divergence %.4f", self.steps, sum(parts) + objective.constant)
            if cost <= lowest + _RISE * objective.share * self.Yt.shape[1]:
                lowest, kept, lowered = cost, self.Yt.copy(), True
            else:
                self._stand_at(kept.copy())
                self.setbacks += 1
                rates = 0.5 * rates
        return lowered

    def _stand_at(self, Yt: Array) -> None:
        self.Yt, self._velocity, self._gains = Yt, np.zeros_like(Yt), np.ones_like(Yt)

    def _step(self, gradient: Array, rates: float | Array, momentum: float) -> None:
        agree = gradient * self._velocity < 0
        gains = np.where(agree, self._gains + 0.2, self._gains * 0.8)
        self._gains = np.maximum(gains, _LEAST_GAIN)
        self._velocity *= momentum
        self._velocity -= rates * self._gains * gradient
        self.Yt += self._velocity
        self.Yt -= self.Yt.mean(axis=1, keepdims=True)
        self.steps += 1
