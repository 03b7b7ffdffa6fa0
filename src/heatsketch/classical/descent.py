"""Gradient descent: with momentum, (20) of Cameron's notes, and of points one by one."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from heatsketch._exceptions import ConvergenceWarning, logger, warn
from heatsketch._typing import Array
from heatsketch.layout.terms import Term

_MIN_GAIN = 0.01
_CHECK_INTERVAL = 50  # steps after which the objective is compared with the lowest so far
_MAX_TRIAL_STEPS, _MIN_STEP_LENGTH = 300, 1e-7  # a single point stops at a shorter step


class Phase(NamedTuple):
    """Steps that lower one objective."""

    steps: int
    terms: Sequence[Term]  # the objective is their sum
    rates: Any  # η, a number or one for each point (n, 1)
    allowed_rise: float  # of the objective above the lowest value so far


def descend(
    Y: Array, phases: Sequence[Phase], momentum: Callable[[int], float]
) -> tuple[Array, int]:
    """Return the places (n, k) after Y ← Y - η g ∇C + α (Y - Y_before), and the setbacks.

    Equation (20), with the sign of η corrected; α is the momentum of step t = 0, 1, ..., and each
    phase starts at rest. The gains g are those of Jacobs (1988): 0.2 is added where the last step
    went down the gradient, and they are multiplied by 0.8 where it went up. Large gains may
    overshoot, and forces that grow with distance then diverge: where C has risen after 50 steps by
    more than is allowed, these steps are undone and η is halved (a setback).
    """
    setbacks, t = 0, 0
    for steps, terms, rates, allowed_rise in phases:
        velocity, gains = np.zeros_like(Y), np.ones_like(Y)
        lowest, best, lowered = _value(terms, Y), Y, False
        for step in range(1, steps + 1):
            with np.errstate(over="ignore", invalid="ignore"):  # such steps are undone
                gradient = reduce(add, (term.gradient(Y, 1.0) for term in terms))
                gains = np.where(gradient * velocity < 0, gains + 0.2, 0.8 * gains)
                gains = np.maximum(gains, _MIN_GAIN)
                velocity = momentum(t) * velocity - rates * gains * gradient
                Y = Y + velocity
                Y -= Y.mean(axis=0)
                t += 1
                finite = np.isfinite(Y).all()
                if finite and step % _CHECK_INTERVAL and step < steps:
                    continue
                reached = _value(terms, Y) if finite else np.inf
            logger.info("descent: step %d of the phase: cost %.4f", step, reached)
            if reached <= lowest + allowed_rise:
                lowest, best, lowered = reached, Y, True
            else:
                Y, velocity, gains = best, np.zeros_like(Y), np.ones_like(Y)
                setbacks += 1
                rates = rates / 2
        Y = best
    if not lowered:
        warn(
            ConvergenceWarning,
            "The steps of the descent after its early phase did not lower the divergence; pass "
            "a smaller learning_rate, or a larger n_iter.",
        )
    return Y, setbacks


def descend_each(cost: Callable[[Array, Array], tuple[Array, Array]], Z: Array) -> Array:
    """Descend from places Z (m, k), each point by itself, and return the last ones.

    `cost` returns the costs (c,) of some rows at places (c, k), and their gradients (c, k). The
    step size is doubled while the cost falls sufficiently (Armijo's rule), and halved otherwise.
    """
    step = np.ones(len(Z))
    value, gradient = cost(np.arange(len(Z)), Z)
    for _ in range(_MAX_TRIAL_STEPS):
        slope = np.square(gradient).sum(axis=1)
        moving = np.flatnonzero(step * np.sqrt(slope) > _MIN_STEP_LENGTH)
        if not len(moving):
            break
        trial = Z[moving] - step[moving, None] * gradient[moving]
        reached, there = cost(moving, trial)
        lower = reached <= value[moving] - 0.25 * step[moving] * slope[moving]
        step[moving] *= np.where(lower, 2.0, 0.5)
        moved = moving[lower]
        Z[moved], value[moved], gradient[moved] = trial[lower], reached[lower], there[lower]
    return Z


def _value(terms: Sequence[Term], Y: Array) -> float:
    return sum(term.value(Y, 1.0) for term in terms)
