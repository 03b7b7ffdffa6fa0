"""A trial: its points and random matrices, its embeddings, and log L of each.

(32) does not depend on the scale of an embedding, so eigenvalues are divided by the largest one in
use: no power of them underflows.
"""

from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import random
from papers.sketching.figures import Setting

BISTOCHASTIC_METHODS = ("DMB", "GPB", "GPSBB", "ours", "CMDS", "SMACOF")
MATRIX_KIND = {"GPS": "gaussian", "GPB": "gaussian", "GPSBS": "rademacher", "GPSBB": "rademacher"}
POINTS, MATRICES, DIRECTIONS = range(3)  # purposes of random numbers
PROJECTION_STARTS = 3  # a fourth gains nothing where a map folds, and one is enough elsewhere
NEGLIGIBLE_WEIGHT = 1e-12  # relative to the largest one
SCALING_TOL = 1e-12  # at the largest powers distances are 1e-7 of the constant vector


class Sample:
    """The points of a trial and what its methods share, each computed once when it is needed.

    Everything is drawn from SeedSequence(seed, spawn_key=(setting.number, trial, purpose)), so it
    depends neither on other trials nor on which methods are run.
    """

    def __init__(self, setting: Setting, seed: int, trial: int) -> None:
        self.setting, self._seed, self._trial = setting, seed, trial
        points = getattr(hs.datasets, setting.points)
        self.X, self.coordinates = points(setting.n, rng=self._rng(POINTS))
        self.spectrum = cache(self._spectrum)
        self.distance = cache(self._distance)
        self.G = cache(self._matrix)

    def embedding(self, method: str, p: int, k: int) -> np.ndarray:
        """Embed the points (n, k)."""
        s = self.spectrum(normalization(method))
        if method in ("DMS", "DMB"):
            return diffusion_map(s, p, k)
        if method in MATRIX_KIND:
            return gaussian_process(s, p, self.G(MATRIX_KIND[method])[:, :k])
        F = diffusion_factor(s, p)
        if method == "CMDS":
            return classical_mds(F, k)
        if method == "SMACOF":
            return smacof(F, k)
        return learned(F, k, self._rng(DIRECTIONS, p, k))

    def log_L(self, method: str, p: int, k: int) -> float:
        """Measure an embedding."""
        D = self.distance(normalization(method), p)
        return hs.distortion(self.embedding(method, p, k), D).log_L

    def _rng(self, *purpose: int) -> np.random.Generator:
        return random(self._seed, self.setting.number, self._trial, *purpose)

    def _spectrum(self, form: str) -> Any:
        return spectrum(self.X, self.setting.epsilon, form)

    def _distance(self, form: str, p: int) -> np.ndarray:
        if self.setting.distance == "euclidean":
            return pdist(self.X)
        return pdist(diffusion_factor(self.spectrum(form), p))

    def _matrix(self, kind: str) -> np.ndarray:
        """Draw G (n, k): the sketch of the identity is G / √k."""
        k, rng = max(self.setting.sizes), self._rng(MATRICES, int(kind == "rademacher"))
        identity = np.eye(self.setting.n)
        F = hs.sketch(identity, hs.Power(1), k, kind=kind, deflate=False, rng=rng)
        return np.sqrt(k) * F


def normalization(method: str) -> str:
    """Return the normalisation of the kernel of a method."""
    return "bistochastic" if method in BISTOCHASTIC_METHODS else "symmetric"


def run(setting: Setting, seed: int, trial: int, methods: list[str]) -> dict[str, list[float]]:
    """Run methods in a trial: for each of them, log L for every value of the setting's axis."""
    cells = [(p, k) for p in setting.powers for k in setting.sizes]
    with threadpool_limits(1):  # so that results do not depend on the number of processes
        sample = Sample(setting, seed, trial)
        return {m: [sample.log_L(m, p, k) for p, k in cells] for m in methods}


def spectrum(X: np.ndarray, epsilon: float, form: str) -> Any:
    """Return all eigenpairs of the kernel of the points, normalised by Algorithm 1 or 2."""
    K = hs.gaussian_affinity(X, epsilon)
    if form == "symmetric":
        A = hs.symmetric_normalize(K)
    else:
        A = hs.bistochastic_normalize(K, tol=SCALING_TOL)
    return hs.eigh(A, len(A))


def diffusion_factor(s: Any, p: int) -> np.ndarray:
    """Return F = V λ^p (n, r): |f_i - f_j| is the diffusion distance D^(p), v_0 included."""
    weights = _powers(s.values, p)
    kept = weights > NEGLIGIBLE_WEIGHT
    return s.vectors[:, kept] * weights[kept]


def diffusion_map(s: Any, p: int, k: int) -> np.ndarray:
    """Embed by Algorithm 3, t = p: the k eigenvectors after v_0."""
    kept = slice(1, k + 1)
    return s.vectors[:, kept] * _powers(s.values[kept], p)


def gaussian_process(s: Any, p: int, G: np.ndarray) -> np.ndarray:
    """Embed by Algorithm 4 or 5: A^p G / √k, v_0 included."""
    mixed = _powers(s.values, p)[:, None] * (s.vectors.T @ G)
    return s.vectors @ mixed / np.sqrt(G.shape[1])


def learned(F: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Embed by the k directions of F that change its distances least."""
    projection = hs.NearIsometricProjection(
        min(k, F.shape[1]),  # at large powers F has fewer columns
        objective="worst",
        rank=F.shape[1],
        n_init=PROJECTION_STARTS,
        validation_fraction=0,
        random_state=int(rng.integers(2**31)),
    )
    return projection.fit_transform(F)


def classical_mds(F: np.ndarray, k: int) -> np.ndarray:
    """Embed by scikit-learn's classical scaling of the distances between rows of F."""
    from sklearn.manifold import ClassicalMDS  # since scikit-learn 1.8

    return ClassicalMDS(k, metric="precomputed").fit_transform(squareform(pdist(F)))


def smacof(F: np.ndarray, k: int) -> np.ndarray:
    """Embed by scikit-learn's SMACOF with its own stopping rule, started at classical scaling."""
    from sklearn.manifold import MDS

    scaling = MDS(k, metric="precomputed", n_init=1, init="classical_mds")
    return scaling.fit_transform(squareform(pdist(F)))


def _powers(values: np.ndarray, p: int) -> np.ndarray:
    """Return |λ|^p, divided by the largest; the kernel is semidefinite up to rounding."""
    moduli = np.abs(values)
    return (moduli / moduli.max()) ** p
