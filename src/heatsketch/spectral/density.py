"""The distribution of the eigenvalues of an operator, by stochastic Lanczos quadrature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from heatsketch._random import random_block
from heatsketch._typing import Array
from heatsketch.operators.operator import Deflated
from heatsketch.spectral.cache import cached

_PROBES, _STEPS = 4, 40


class SpectralDensity(NamedTuple):
    """Eigenvalues and how many of A lie near each: tr f(A) is about Σ counts · f(values)."""

    values: Array  # (m,)
    counts: Array  # (m,), not whole


@cached
def spectral_density(A: Deflated, seed: int = 0) -> SpectralDensity:
    """Estimate the density of the eigenvalues of A, without those of the directions taken out.

    Random probes g give Gauss quadratures of gᵀ f(A) g, whose mean is tr f(A) (Ubaru, Chen and Saad
    2017). Functions that vary little over the spectrum are exact but for the error of the probes,
    some √(2 / (probes · n)); the ends of the spectrum are found best.

    Cost: 40 products by A with 4 columns.
    """
    size = A.n - A.V.shape[1]
    steps = min(_STEPS, size)
    G = A.project(random_block(A.n, _PROBES, "gaussian", np.random.default_rng(seed)))
    X, before = G / np.linalg.norm(G, axis=0), np.zeros_like(G)
    diagonals, off_diagonals = np.zeros((2, steps, _PROBES))
    for step in range(steps):
        Y = A.multiply_projected(X)
        diagonals[step] = np.einsum("ij,ij->j", X, Y)
        Y -= X * diagonals[step] + before * off_diagonals[step - 1]
        off_diagonals[step] = np.linalg.norm(Y, axis=0)
        # Where nothing is left the quadrature is exact, and what follows has no weight.
        before, X = X, Y / np.maximum(off_diagonals[step], np.finfo(float).tiny)
    values, counts = [], []
    for probe in range(_PROBES):
        nodes, vectors = eigh_tridiagonal(diagonals[:, probe], off_diagonals[:-1, probe])
        values.append(nodes)
        counts.append(vectors[0] ** 2 * size / _PROBES)
    return SpectralDensity(np.concatenate(values), np.concatenate(counts))
