"""The embeddings that the figures compare, made from the eigenpairs of a normalised kernel.

(32) does not depend on the scale of an embedding, so eigenvalues are divided by the largest one in
use: no power of them underflows.
"""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

import heatsketch as hs
from heatsketch._typing import Array
from heatsketch.spectral.eigenpairs import Spectrum

PROJECTION_STARTS = 3  # a fourth gains nothing where a map folds, and one is enough elsewhere
NEGLIGIBLE_WEIGHT = 1e-12  # relative to the largest one
SCALING_TOL = 1e-12  # at the largest powers distances are 1e-7 of the constant vector


def spectrum(X: Array, epsilon: float, normalization: str) -> Spectrum:
    """Return all eigenpairs of the kernel of the points, normalised by Algorithm 1 or 2."""
    K = hs.gaussian_affinity(X, epsilon)
    if normalization == "symmetric":
        A = hs.symmetric_normalize(K)
    else:
        A = hs.bistochastic_normalize(K, tol=SCALING_TOL)
    return hs.eigh(A, len(A))


def diffusion_factor(s: Spectrum, p: int) -> Array:
    """Return F = V λ^p (n, r): |f_i - f_j| is the diffusion distance D^(p), v_0 included."""
    weights = _powers(s.values, p)
    kept = weights > NEGLIGIBLE_WEIGHT
    return s.vectors[:, kept] * weights[kept]


def diffusion_map(s: Spectrum, p: int, k: int) -> Array:
    """Embed by Algorithm 3, t = p: the k eigenvectors after v_0."""
    kept = slice(1, k + 1)
    return s.vectors[:, kept] * _powers(s.values[kept], p)


def gaussian_process(s: Spectrum, p: int, G: Array) -> Array:
    """Embed by Algorithm 4 or 5: A^p G / √k, v_0 included."""
    mixed = _powers(s.values, p)[:, None] * (s.vectors.T @ G)
    return s.vectors @ mixed / np.sqrt(G.shape[1])


def learned(F: Array, k: int, rng: np.random.Generator) -> Array:
    """Embed by the k directions of F that change its distances least."""
    k = min(k, F.shape[1])  # at large powers F has fewer columns
    projection = hs.NearIsometricProjection(
        k,
        objective="worst",
        rank=F.shape[1],
        n_init=PROJECTION_STARTS,
        validation_fraction=0,
        random_state=int(rng.integers(2**31)),
    )
    return np.asarray(projection.fit_transform(F))


def classical_mds(F: Array, k: int) -> Array:
    """Embed by classical scaling of the distances between rows of F."""
    scaling = _manifold().ClassicalMDS(k, metric="precomputed")
    return np.asarray(scaling.fit_transform(squareform(pdist(F))))


def smacof(F: Array, k: int) -> Array:
    """Embed by scikit-learn's SMACOF with its own stopping rule, started at classical scaling."""
    scaling = _manifold().MDS(k, metric="precomputed", n_init=1, init="classical_mds")
    return np.asarray(scaling.fit_transform(squareform(pdist(F))))


def _manifold() -> Any:
    from sklearn import manifold

    if not hasattr(manifold, "ClassicalMDS"):
        raise ImportError(
            "CMDS and SMACOF need scikit-learn 1.8 or newer; upgrade it, or leave out CMDS and "
            "SMACOF (methods, --methods)."
        )
    return manifold


def _powers(values: Array, p: int) -> Array:
    """Return |λ|^p, divided by the largest; the kernel is semidefinite up to rounding."""
    moduli = np.abs(values)
    return (moduli / moduli.max()) ** p
