"""The descent of SNE and t-SNE: momentum, gains, the early phase, and steps undone."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heatsketch._checks import ConvergenceWarning
from heatsketch._progress import report
from heatsketch._typing import Array
from heatsketch.classical.sne.objectives import Objective

_MIN_GAIN = 0.01
_CHECK_INTERVAL = 50  # steps after which the cost is compared with the lowest so far
_ALLOWED_RISE = 0.01  # nats per point (t-SNE: in all) that the cost may lie above the lowest


@dataclass(frozen=True)
class Phase:
    """Steps of one kind; their cost C is the divergence with p exaggerated, plus compression."""

    steps: int
    exaggeration: float
    compression: float
    momentum: float
    rate: float | None

    def gradient(self, objective: Objective, Yt: Array) -> Array:
        """Return the derivative of C by Yt (k, n)."""
        gradient = objective.gradient(Yt, self.exaggeration)
        gradient += 2 * self.compression * objective.point_weight * Yt
        return gradient

    def cost(self, objective: Objective, Yt: Array, terms: tuple[float, float]) -> float:
        """Return C up to a constant, from the terms of the objective at Yt."""
        squares = float(np.sum(Yt.astype(float) ** 2)) if self.compression else 0.0
        attraction, repulsion = terms
        compression = self.compression * objective.point_weight * squares
        return self.exaggeration * attraction + repulsion + compression

    def rates(self, objective: Objective) -> float | Array:
        """Return the given learning rate η, or a suitable one for each point.

        The second derivative of attraction and compression is at most twice their stiffness d.
        With η = 1 / d it is 2 / η, less than 3 / η, from which a momentum of 0.5 overshoots.
        """
        if self.rate is not None:
            return self.rate
        compression = self.compression * objective.point_weight
        return 1 / (self.exaggeration * objective.stiffness + compression)


@dataclass(frozen=True)
class Schedule:
    """Parameters of the descent; `rate` None: one for each point."""

    n_iter: int
    early_iter: int
    exaggeration: float
    compression: float
    rate: float | None

    def phases(self) -> Iterator[Phase]:
        """Yield the early phase, if it has any steps, and the late phase."""
        if self.early_iter:
            yield Phase(self.early_iter, self.exaggeration, self.compression, 0.5, self.rate)
        yield Phase(self.n_iter - self.early_iter, 1.0, 0.0, 0.8, self.rate)


def descend(objective: Objective, Yt: Array, schedule: Schedule) -> tuple[Array, int]:
    """Return the places (k, n) after the steps Y ← Y - η g ∇C + α (Y - Y_before), and setbacks.

    Equation (20), with the sign of η corrected. α is 0.5 in the early phase and 0.8 after it. In
    the early phase p is exaggerated, and λ · (weight of a point) · Σ |y_i|² is added to C (early
    compression). Both phases start without momentum. The gains g are those of Jacobs (1988): 0.2 is
    added where the last step went down the gradient, and they are multiplied by 0.8 where it went
    up. Large gains may overshoot, and the forces of SNE, which grow with distance, then diverge:
    where C has risen after 50 steps, these steps are undone and η is halved (a setback).
    """
    descent = _Descent(Yt.copy())
    lowered = True
    with np.errstate(over="ignore", invalid="ignore"):  # such steps are undone
        for phase in schedule.phases():
            lowered = descent.run(objective, phase)
    if not lowered:
        warnings.warn(
            "The steps of the descent after its early phase did not lower the divergence; pass a "
            "smaller learning_rate, or a larger n_iter.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return descent.Yt, descent.setbacks


class _Descent:
    """Places, and the momentum and gains of the steps that move them."""

    def __init__(self, Yt: Array) -> None:
        self.Yt, self.steps, self.setbacks = Yt, 0, 0

    def run(self, objective: Objective, phase: Phase) -> bool:
        """Take the steps of a phase, and say whether any lowered C."""
        self._restart(self.Yt)
        rates, lowered = phase.rates(objective), False
        lowest, kept = phase.cost(objective, self.Yt, objective.terms(self.Yt)), self.Yt.copy()
        for t in range(1, phase.steps + 1):
            self._step(phase.gradient(objective, self.Yt), rates, phase.momentum)
            if t % _CHECK_INTERVAL and t < phase.steps:
                continue
            terms = objective.terms(self.Yt)
            cost = phase.cost(objective, self.Yt, terms)
            divergence = sum(terms) + objective.constant
            report("descent", "step %d: divergence %.4f", self.steps, divergence)
            if cost <= lowest + _ALLOWED_RISE * objective.point_weight * self.Yt.shape[1]:
                lowest, kept, lowered = cost, self.Yt.copy(), True
            else:
                self._restart(kept.copy())
                self.setbacks += 1
                rates = 0.5 * rates
        return lowered

    def _restart(self, Yt: Array) -> None:
        self.Yt, self._velocity, self._gains = Yt, np.zeros_like(Yt), np.ones_like(Yt)

    def _step(self, gradient: Array, rates: float | Array, momentum: float) -> None:
        agree = gradient * self._velocity < 0
        gains = np.where(agree, self._gains + 0.2, self._gains * 0.8)
        self._gains = np.maximum(gains, _MIN_GAIN)
        self._velocity *= momentum
        self._velocity -= rates * self._gains * gradient
        self.Yt += self._velocity
        self.Yt -= self.Yt.mean(axis=1, keepdims=True)
        self.steps += 1
