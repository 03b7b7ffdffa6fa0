"""How good an embedding is: errors of squared diffusion distances, and neighbours by label."""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from heatsketch.spectral.filters import Power
from heatsketch.spectral.functions import apply

POINTS, PAIRS, QUERIES = 145, 10_000, 5_000
TWINS = 1e-3  # of the median distance; graphs without weights have vertices with equal rows


def sampled_pairs(n, seed=0):
    """Draw 10,000 of the 19,900 pairs of 200 random points."""
    rng = np.random.default_rng(seed)
    points = rng.choice(n, min(POINTS, n), replace=False)
    i, j = np.triu_indices(len(points), 1)
    kept = rng.choice(len(i), min(PAIRS, len(i)), replace=False)
    return points[i[kept]], points[j[kept]]


def squared_distances(diffusion, times, pairs):
    """Return the squared diffusion distances of pairs of vertices at each time, exact to rounding.

    They are |s_i/√π_i - s_j/√π_j|² of the rows s of S A^(t-1), without the trivial direction, where
    S are the rows that `extend` gives: A itself, or the one-sided walk of a neighbour graph, which
    is what a sketch of ever more columns converges to.
    """
    points, place = np.unique(pairs, return_inverse=True)
    i, j = place.reshape(2, -1)
    if diffusion.directed_step is None:
        own = (diffusion.operator @ _units(diffusion.n, points)).T
    else:
        own = diffusion.directed_step[points].toarray()
    weight = own @ np.sqrt(diffusion.measure)  # √π, as a row of the one-sided walk brings it along
    deflated = diffusion.deflated
    blocks = apply([Power(int(t) - 1) for t in times], deflated, deflated.project(own.T))
    for block in blocks:
        rows = deflated.project(block).T / weight[:, None]
        yield ((rows[i] - rows[j]) ** 2).sum(axis=1)


def _units(n, points):
    units = np.zeros((n, len(points)))
    units[points, np.arange(len(points))] = 1.0
    return units


def coordinates(diffusion, vectors, time):
    """Return λ^t r from right eigenvectors of any length: norm 1 in π, λ by Rayleigh's quotient."""
    root = np.sqrt(diffusion.measure)[:, None]
    v = np.asarray(vectors, dtype=float) * root
    v = v / np.linalg.norm(v, axis=0)
    values = np.einsum("ij,ij->j", v, diffusion.operator @ v)
    return v / root * values**time


def distance_errors(found, times):
    """Return {t: root mean square relative error of squared distances} of an `Embedding`.

    Eigenvectors serve any time, a sketch its own. Pairs nearer than a thousandth of the median
    distance are left out: where two rows of a graph are equal, no relative error is defined.
    """
    if found.walk is None:
        return {}
    diffusion, n = found.walk(), len(found.Y)
    vertex = np.arange(n) if diffusion.vertex is None else diffusion.vertex
    pairs, vectors = np.array(sampled_pairs(n)), found.vectors
    if vectors is not None:
        vectors = vectors[np.unique(vertex, return_index=True)[1]]
    if found.symmetric:
        vectors = vectors / np.sqrt(diffusion.measure)[:, None]
    times = [found.time] if vectors is None else times
    errors = {}
    for time, exact in zip(times, squared_distances(diffusion, times, vertex[pairs]), strict=True):
        Y = found.Y if vectors is None else coordinates(diffusion, vectors, time)[vertex]
        kept = ((Y[pairs[0]].astype(float) - Y[pairs[1]]) ** 2).sum(axis=1)
        apart = exact > TWINS**2 * np.median(exact)
        errors[time] = float(np.sqrt(np.mean((kept[apart] / exact[apart] - 1) ** 2)))
    return errors


def label_accuracy(Y, label, k=10):
    """Return the share of 5,000 points whose label is the commonest of their k neighbours'."""
    rows = np.random.default_rng(0).permutation(len(Y))[:QUERIES]
    Y = np.asarray(Y, dtype=np.float32)
    found = (
        NearestNeighbors(n_neighbors=k + 1, n_jobs=-1)
        .fit(Y)
        .kneighbors(Y[rows], return_distance=False)
    )
    others = [label[near[near != row][:k]] for row, near in zip(rows, found, strict=True)]
    guesses = np.array([np.bincount(near).argmax() for near in others])
    return float(np.mean(guesses == label[rows]))
