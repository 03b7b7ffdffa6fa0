"""Sketches of the row-stochastic kernel A_ε, §4.1 of *Sketching the heat kernel*.

The text prefers symmetric kernels, because a sketch of A_ε is (27) with the left singular vectors
of A_ε in place of eigenvectors. It is a sketch of the symmetric form between two diagonals: with
√π the leading eigenvector of A, A_ε^p = diag(√π)⁻¹ A^p diag(√π).
"""

from typing import Any

import numpy as np

import heatsketch as hs


def row_stochastic_sketch(K: Any, p: float, G: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Return A_ε^p G / √k (n, k), where A_ε is `hs.markov_normalize(K, alpha)`.

    Squared distances of its rows have as their mean the squared distances of rows of A_ε^p, without
    the weights 1/π of the Markov form's diffusion distance.
    """
    diffusion = hs.Diffusion.from_affinity(K, alpha=alpha)
    root = diffusion.root[:, None]
    return hs.sketch(diffusion.operator, hs.Power(p), G=root * G, deflate=False) / root
