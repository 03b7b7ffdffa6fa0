"""How fast are the classical methods, compared with scikit-learn's, and on how many points?

Run: python benchmarks/classical.py [--small] [--repeats N] [--only isomap lle ...]

A Swiss roll in 3 dimensions: 20,000 points by ours and by scikit-learn's counterpart in turns,
100,000 points by ours alone (--small: 2,000 and 4,000). 12 neighbours, 2 coordinates, 200
landmarks. scikit-learn has no landmarks: its Isomap looks at all pairs. Every run in a process of
its own, which first does the same on fewer points, so that compiling is not timed. "arc" is the
largest rank correlation (its modulus) of a coordinate with the position along the roll, "trust" the
trustworthiness of 10 neighbours; both are computed outside the time.
"""

import _harness as harness
import numpy as np
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch import classical
from heatsketch.metrics import trustworthiness

NEIGHBORS = 12
PEERS = {
    "isomap": "Isomap",
    "lle": "LocallyLinearEmbedding",
    "laplacian eigenmap": "SpectralEmbedding",
    "diffusion map": "SpectralEmbedding",
}


def ours(name):
    """Return our estimator."""
    if name == "isomap":
        return classical.LandmarkIsomap(2, n_neighbors=NEIGHBORS, n_landmarks=200)
    if name == "lle":
        return classical.LocallyLinearEmbedding(2, n_neighbors=NEIGHBORS)
    if name == "laplacian eigenmap":
        return classical.LaplacianEigenmap(2, n_neighbors=NEIGHBORS, random_state=0)
    return hs.DiffusionMap(2, n_neighbors=NEIGHBORS, random_state=0)


def theirs(name):
    """Return scikit-learn's estimator."""
    from sklearn import manifold

    make = getattr(manifold, PEERS[name])
    if make is manifold.SpectralEmbedding:
        return make(2, affinity="nearest_neighbors", n_neighbors=NEIGHBORS, n_jobs=-1)
    return make(n_neighbors=NEIGHBORS, n_components=2, n_jobs=-1)


def embed(make, name, n, seed):
    """Embed n points; return seconds, memory and how good it is."""
    few = 3000 if make is theirs else harness.MANY  # ours compiles more for many points
    make(name).fit_transform(harness.draw("roll", few)[0])
    X, flat = hs.datasets.swiss_roll(n, rng=seed)
    X = X.astype(np.float32)
    before = harness.peak_memory()
    seconds, Y = harness.timed(make(name).fit_transform, X)
    return {
        "seconds": seconds,
        "MB": harness.peak_memory() - before,
        "arc": max(abs(spearmanr(y, flat[:, 0]).statistic) for y in Y.T),
        "trust": trustworthiness(X, Y, 10).value,
    }


def main():
    arguments = harness.parser(__doc__, repeats=3).parse_args()
    shared, alone = (2_000, 4_000) if arguments.small else (20_000, 100_000)
    names = harness.chosen(PEERS, arguments.only)
    tasks = {}
    for name in names:
        tasks[name, shared, "ours"] = (embed, ours, name, shared)
        tasks[name, shared, "scikit-learn"] = (embed, theirs, name, shared)
        tasks[name, alone, "ours"] = (embed, ours, name, alone)
    found = harness.repeated(tasks, arguments)
    rows = []
    for (name, n, whose), results in found.items():
        figures = harness.medians(results)
        rows.append({"method": name, "n": n, "by": whose} | figures)
    for name in names:
        pair = [row for row in rows if row["method"] == name and row["n"] == shared]
        if all("seconds" in row for row in pair):
            pair[1]["times ours"] = pair[1]["seconds"] / pair[0]["seconds"]
    print(harness.save("classical", rows, arguments))


if __name__ == "__main__":
    main()
