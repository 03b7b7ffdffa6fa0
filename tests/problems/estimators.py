"""The estimators in all their forms, and the formulas of the papers written out."""

import numpy as np
import pytest

import heatsketch as hs

AFFINITIES = {
    "knn": {"affinity": "knn"},
    "dense": {"affinity": "dense", "epsilon": 1.0},
    "radius": {"affinity": "radius", "epsilon": 1.0},
}
ESTIMATORS = {
    "sketch": lambda **changes: hs.HeatSketch(**{"n_components": 5, "random_state": 0} | changes),
    "map": lambda **changes: hs.DiffusionMap(**{"n_components": 3, "random_state": 0} | changes),
    "embedding": lambda **changes: hs.HeatEmbedding(
        **{"n_components": 3, "time": 32, "random_state": 0} | changes
    ),
}
NORMALIZATIONS = ("symmetric", "bistochastic", "markov")

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
# A learned map magnifies rounding: input that is equal to rounding gives another map, as good. What
# it shares with the others there is in test_heat_embedding.py, where nothing is left to learn.
every_formula = pytest.mark.parametrize(
    "make", [ESTIMATORS["sketch"], ESTIMATORS["map"]], ids=["sketch", "map"]
)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)


def operator_of(K, normalization, alpha=1.0):
    """A and π of a normalisation, written out from the papers."""
    if normalization == "bistochastic":
        s = np.ones(len(K))
        for _ in range(2000):  # Algorithm 2: the geometric mean of two iterates of d = K (1/d)
            s = np.sqrt(s / (K @ s))
        return K * np.outer(s, s), np.full(len(K), 1 / len(K))
    P, pi = walk_of(K, alpha if normalization == "markov" else 1.0)
    return P * np.sqrt(pi)[:, None] / np.sqrt(pi), pi


def walk_of(K, alpha):
    """P and π, (54) of *Linear and nonlinear dimensionality reduction*, written out."""
    q = K.sum(axis=1) ** alpha
    K = K / np.outer(q, q)
    v = K.sum(axis=1)
    return K / v[:, None], v / v.sum()
