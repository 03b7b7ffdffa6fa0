"""An operator in one file, with the five members and no more: a circulant matrix, never stored."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Circulant:
    """C X by fast Fourier transforms: the five members of an operator and no more."""

    column: np.ndarray
    dtype = np.dtype(np.float64)

    @property
    def n(self):
        return len(self.column)

    @property
    def spectrum(self):
        size = float(np.abs(self.column).sum())
        return -size, size

    def asarray(self, X):
        return np.asarray(X, dtype=float)

    def __matmul__(self, X):
        factors = np.fft.rfft(self.column)
        factors = factors if X.ndim == 1 else factors[:, None]
        return np.fft.irfft(factors * np.fft.rfft(X, axis=0), self.n, axis=0)
