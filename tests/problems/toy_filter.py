"""A filter in one file, with what it must have and no more: a resolvent."""

import numpy as np

from heatsketch.spectral.filters import Filter


class Resolvent(Filter):
    """1 / (1 + t (1 - λ)): a walk of random length."""

    def __init__(self, t):
        self.t = t

    def with_log_scale(self, lam):
        return 1 / (1 + self.t * (1 - np.asarray(lam))), 0.0

    def sharpness(self, interval):
        return self.t

    def reduced(self):
        return ReducedResolvent(self.t)


class ReducedResolvent(Resolvent):
    """(f(λ) - f(0)) / λ = f(λ) t / (1 + t)."""

    def with_log_scale(self, lam):
        return super().with_log_scale(lam)[0] * self.t / (1 + self.t), 0.0
