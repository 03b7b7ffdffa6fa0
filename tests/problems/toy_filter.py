"""A filter in one file, with what it must have and no more: a resolvent."""

from dataclasses import dataclass

import numpy as np

from heatsketch.spectral.filters import Filter


@dataclass(frozen=True)
class Resolvent(Filter):
    """1 / (1 + t (1 - λ)): a walk of random length."""

    t: float

    def __call__(self, lam):
        return 1 / (1 + self.t * (1 - np.asarray(lam)))

    def scaled(self, lam):
        return self(lam), 0.0

    def sharpness(self, interval):
        return self.t

    def quotient(self):
        return ResolventQuotient(self.t)


class ResolventQuotient(Resolvent):
    """(f(λ) - f(0)) / λ = f(λ) t / (1 + t)."""

    def __call__(self, lam):
        return super().__call__(lam) * self.t / (1 + self.t)
