"""Eigenpairs by A^m G: the randomised method of §4.5 of *Sketching the heat kernel*.

The library's `hs.eigh` has a Chebyshev polynomial in place of A^m, with far fewer products for a
spectrum that decays slowly.
"""

from typing import Any

import numpy as np

import heatsketch as hs


def eigenpairs_by_powers(
    A: Any, k: int, m: int, rng: np.random.Generator, extra: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k eigenvalues (k,) of largest modulus and eigenvectors (n, k), from A^m G.

    G has k + `extra` Gaussian columns; "classical techniques" are the eigenpairs of QᵀAQ, Q a basis
    of A^m G. Cost: m + 1 products with these columns, O(k m n²) for a dense matrix.
    """
    G = rng.standard_normal((A.shape[0], k + extra))
    Q = np.linalg.qr(hs.sketch(A, hs.Power(m), G=G, deflate=False))[0]
    values, vectors = np.linalg.eigh(Q.T @ (A @ Q))
    order = np.argsort(-np.abs(values), kind="stable")[:k]
    return values[order], Q @ vectors[:, order]
