"""Nearest neighbours of all points: seconds against recall, beside other libraries.

Run: python benchmarks/neighbors.py [--mnist FOLDER] [--data roll] [--only faiss] [--small]
     python benchmarks/neighbors.py --vectors FILE.npy ...  # neighbors_wide.csv

The 30 nearest neighbours of every point and the point itself, from array to indices: building an
index counts. Data: those of end_to_end.py. Recall: the share of the neighbours found that are no
farther than the true 30th, on 1,000 random points, whose true neighbours are found by comparing all
distances in float64. Every setting runs in a process of its own, after 17,000 points of the same
data. hnswlib, faiss, pynndescent and usearch are asked for all threads. `--vectors` searches the
vectors in files instead, such as those that vectors.py makes.
"""

from pathlib import Path

import _harness as harness
import numpy as np
from sklearn.metrics import pairwise_distances

PACKAGES = (*harness.PACKAGES, "faiss-cpu", "hnswlib", "pynndescent", "usearch")
K, SAMPLE = 31, 1_000  # 30 and the point itself
SIZES = {"overlapping": 100_000, "roll": 50_000, "images": 10_000}
SMALL = 3_000


def ours(X, recall):
    from heatsketch.neighbors import NeighborIndex

    return NeighborIndex(X, recall=recall).query(None, K).indices


def faiss_flat(X):
    import faiss

    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return index.search(X, K)[1]


def faiss_ivf(X, cells, probes):
    import faiss

    cells = min(cells, len(X) // 40)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], cells)
    index.train(X)
    index.add(X)
    index.nprobe = probes
    return index.search(X, K)[1]


def faiss_hnsw(X, search):
    import faiss

    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efSearch = search
    index.add(X)
    return index.search(X, K)[1]


def hnswlib(X, search):
    import hnswlib as package

    index = package.Index("l2", X.shape[1])
    index.init_index(len(X), M=16, ef_construction=100)
    index.set_num_threads(harness.n_threads())
    index.add_items(X)
    index.set_ef(search)
    return index.knn_query(X, K)[0]


def pynndescent(X):
    import pynndescent as package

    return package.NNDescent(X, n_neighbors=K, n_jobs=-1, random_state=0).neighbor_graph[0]


def usearch(X, search):
    from usearch.index import Index

    index = Index(
        ndim=X.shape[1], metric="l2sq", dtype="f32", connectivity=16, expansion_search=search
    )
    index.add(np.arange(len(X)), X, threads=harness.n_threads())
    return index.search(X, K, threads=harness.n_threads()).keys.astype(np.int64)


def sklearn(X, method):
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=K, algorithm=method, n_jobs=-1).fit(X)
    return found.kneighbors(X, return_distance=False)


def scipy_tree(X):
    from scipy.spatial import cKDTree

    return cKDTree(X).query(X, K, workers=-1)[1]


# setting -> function, its options, and up to how many dimensions it is worth a run
METHODS = {
    **{
        f"heatsketch, recall {recall}": (ours, {"recall": recall}, None)
        for recall in (0.9, 0.95, 0.98, 0.995, 1.0)
    },
    "faiss Flat": (faiss_flat, {}, None),
    **{
        f"faiss IVF, {cells} cells, {probes} probed": (
            *(faiss_ivf, {"cells": cells, "probes": probes}),
            None,
        )
        for cells, probes in ((316, 4), (316, 12), (316, 32), (1000, 10), (1000, 30))
    },
    **{f"faiss HNSW, ef {ef}": (faiss_hnsw, {"search": ef}, None) for ef in (48, 100, 200)},
    **{f"hnswlib, ef {ef}": (hnswlib, {"search": ef}, None) for ef in (50, 100, 200)},
    **{f"usearch, ef {ef}": (usearch, {"search": ef}, None) for ef in (50, 100, 200)},
    "pynndescent": (pynndescent, {}, None),
    "scikit-learn k-d tree": (sklearn, {"method": "kd_tree"}, 15),
    "scikit-learn brute": (sklearn, {"method": "brute"}, None),
    "SciPy cKDTree": (scipy_tree, {}, 15),
}


def recall(X, indices, rows):
    """Return the share of the neighbours of some rows that are no farther than the true last."""
    x = X[rows].astype(float)
    exact = pairwise_distances(x, X.astype(float))
    limit = np.partition(exact, K - 1, axis=1)[:, K - 1]
    found = np.linalg.norm(X[indices[rows]].astype(float) - x[:, None], axis=2)
    return float(np.mean(found <= limit[:, None] * (1 + 1e-6)))


def drawn(data, n, folder):
    """Return n points of a data set, or the first n vectors of a file."""
    if data.endswith(".npy"):
        return np.load(data)[:n]
    return harness.draw(data, n, folder)[0]


def measure(method, data, n, folder, turn):
    X = drawn(data, n, folder)
    search, options, _ = METHODS[method]
    search(X[: harness.MANY], **options)
    before = harness.peak_memory()
    seconds, indices = harness.timed(lambda: search(X, **options))
    peak = harness.peak_memory()
    row = {"seconds": seconds, "peak MB": peak, "before MB": before}
    if turn == 0:
        rows = np.random.default_rng(0).permutation(n)[:SAMPLE]
        row["recall"] = recall(X, np.asarray(indices), rows)
    return row


def worth(method, dimension):
    most = METHODS[method][2]
    return most is None or dimension <= most


def main():
    options = harness.parser(__doc__)
    options.add_argument("--mnist", help="folder with the test images of MNIST as IDX files")
    options.add_argument("--data", nargs="+", choices=SIZES, default=list(SIZES))
    options.add_argument("--vectors", nargs="+", help="files of vectors (.npy), instead of --data")
    arguments = options.parse_args()
    rows, table = [], ""
    for data in arguments.vectors or arguments.data:
        if data == "images" and not arguments.mnist:
            harness.say("images: left out, for want of --mnist FOLDER")
            continue
        n = len(np.load(data, mmap_mode="r")) if data.endswith(".npy") else SIZES[data]
        n = SMALL if arguments.small else n
        dimension = drawn(data, 40, arguments.mnist).shape[1]
        tasks = {
            method: (measure, method, data, n, arguments.mnist)
            for method in harness.chosen(METHODS, arguments.only)
            if worth(method, dimension)
        }
        found = harness.repeated(tasks, arguments, data)
        for method, results in found.items():
            rows.append(
                {"data": Path(data).stem, "points": n, "method": method} | harness.medians(results)
            )
        table = harness.save(
            "neighbors_wide" if arguments.vectors else "neighbors", rows, arguments, PACKAGES
        )
    print(table)


if __name__ == "__main__":
    main()
