"""How well does a near-isometric map keep the distances of points that it has not seen?

Run: python benchmarks/unseen.py FOLDER_WITH_IDX_FILES [--repeats 3] [-o DIR]

Raw MNIST, 14 × 14 pixels: `NearIsometricProjection(k)` and principal components of n training
images; log L over all pairs of 1,000 other images (medians over random draws), beside that of the
training images and the figure that the estimator reports. The smallest distance of a million pairs
is an extreme: below some ten dimensions it is chance, and log L of any two maps differs by 0.5.

Then NuMax (Hegde, Sankaranarayanan, Yin and Baraniuk 2015), which bounds the relative error δ of
the squared lengths of all 3,003 secants of 78 images, at the δ given, by an ADMM as in the paper;
beside it δ of our map to as many dimensions, `validation_fraction=0`: the secants it was fitted to.
"""

import statistics
import time
from pathlib import Path

import _harness as harness
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

import heatsketch as hs

SIZES, DIMENSIONS = (500, 1_000, 5_000), (2, 5, 10, 14, 18)
UNSEEN = 1_000
SECANT_POINTS, BOUNDS = 78, (0.2, 0.1)
ITERATIONS = 600


def images(folder):
    """Return MNIST's test images as 14 × 14 pixels, (10000, 196)."""
    X, _ = harness.mnist(folder)
    pixels = np.asarray(X, float).reshape(-1, 14, 2, 14, 2)
    return pixels.mean(axis=(2, 4)).reshape(-1, 196)


def axes(F, k):
    """Return k principal directions of the rows, (k, d)."""
    return np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[2][:k]


def log_L(F, W):
    """Return log L of the map W (k, d) over all pairs of the rows."""
    return float(np.ptp(np.log(pdist(F @ W.T) / pdist(F))))


def unseen(X, sizes, dimensions, draws):
    """Yield a row for each n and k."""
    for n in sizes:
        for k in dimensions:
            found = []
            for draw in range(draws):
                order = np.random.default_rng([draw, n, k]).permutation(len(X))
                F, new = X[order[:n]], X[order[n : n + UNSEEN]]
                ours = hs.NearIsometricProjection(k).fit(F)
                pca, seen = axes(F, k), F[:UNSEEN]
                found.append(
                    [
                        log_L(new, ours.components_),
                        log_L(new, pca),
                        log_L(seen, ours.components_),
                        log_L(seen, pca),
                        ours.distortion_.held_out_log_L,
                        ours.rank_,
                    ]
                )
            names = ("unseen, ours", "unseen, PCA", "trained, ours", "trained, PCA", "reported")
            values = [float(statistics.median(column)) for column in zip(*found, strict=True)]
            yield {"n": n, "k": k} | dict(zip((*names, "rank"), values, strict=True))


def secants(F):
    """Return the differences of all pairs of rows at length 1, (m, d)."""
    i, j = np.triu_indices(len(F), 1)
    S = F[i] - F[j]
    return S / np.linalg.norm(S, axis=1)[:, None]


def numax(S, delta, penalty=1.0):
    """Return W (r, d) of least nuclear norm of P = WᵀW with | |W s|² - 1 | <= δ for all secants.

    ADMM with the splitting P = L (positive, shrunk eigenvalues) and q = 𝒜(L) (clipped), where
    𝒜(L)_i = s_iᵀ L s_i; the step in L solves (I + 𝒜*𝒜) L = ..., by Woodbury with 𝒜𝒜* = (SSᵀ)².
    """
    d = S.shape[1]
    solve = cho_factor(np.eye(len(S)) + (S @ S.T) ** 2)

    def lengths(L):
        return np.einsum("ij,ij->i", S @ L, S)

    def adjoint(y):
        return S.T @ (y[:, None] * S)

    L = P = np.eye(d)
    dual_P, dual_q = np.zeros((d, d)), np.zeros(len(S))
    for _ in range(ITERATIONS):
        values, V = np.linalg.eigh(L - dual_P)
        values = np.maximum(values - 1 / penalty, 0)
        P = (V * values) @ V.T
        q = np.clip(lengths(L) - dual_q, 1 - delta, 1 + delta)
        target = P + dual_P + adjoint(q + dual_q)
        L = target - adjoint(cho_solve(solve, lengths(target)))
        dual_P, dual_q = dual_P + P - L, dual_q + q - lengths(L)
    values, V = np.linalg.eigh(P)
    kept = values > 1e-3 * values[-1]
    return (V[:, kept] * np.sqrt(values[kept])).T


def error(S, W):
    """Return the least δ with 1 - δ <= |c W s|² <= 1 + δ for all secants and some c."""
    squares = np.sum((S @ W.T) ** 2, axis=1)
    return float((squares.max() - squares.min()) / (squares.max() + squares.min()))


def beside_numax(X):
    """Yield a row for each bound."""
    F = X[np.random.default_rng(0).permutation(len(X))[:SECANT_POINTS]]
    S = secants(F)
    for delta in BOUNDS:
        started = time.perf_counter()
        W = numax(S, delta)
        middle = time.perf_counter()
        ours = hs.NearIsometricProjection(len(W), validation_fraction=0.0).fit(F)
        yield {
            "δ asked of NuMax": delta,
            "k": len(W),
            "δ, NuMax": error(S, W),
            "δ, ours": error(S, ours.components_),
            "seconds, NuMax": middle - started,
            "seconds, ours": time.perf_counter() - middle,
        }


def main():
    options = harness.parser(__doc__, repeats=3)
    options.add_argument("folder", type=Path, help="folder of MNIST's IDX files")
    arguments = options.parse_args()
    X = images(arguments.folder)
    sizes, dimensions = ((200,), (10,)) if arguments.small else (SIZES, DIMENSIONS)
    print(harness.save("numax", list(beside_numax(X)), arguments))
    print(harness.save("unseen", list(unseen(X, sizes, dimensions, arguments.repeats)), arguments))


if __name__ == "__main__":
    main()
