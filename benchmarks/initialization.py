"""Is a start from a sketch as good as a spectral one, for UMAP and openTSNE, and what does it cost?

Run: python benchmarks/initialization.py [--seeds 0 1 2] [--sets digits ...] [--starts POINTS ...]

start, whole   processor seconds of the start alone, neighbours known, and of method and start
trust          trustworthiness of 15 neighbours in the picture
labels         accuracy of labels by 10 neighbours in the picture
truth          rank correlation of distances in the picture with those in the flat surface (roll) or
               with those of the data
KL             what openTSNE minimises

Prints a table of medians over the seeds; with --starts only the seconds of UMAP's own start and of
ours for larger rolls and clouds. Starts: "spectral" is the method's own, by an
eigen-solver; "sketch" is `heatsketch.initialization`; PCA and random are the usual others.
"""

import argparse
import statistics
import time

import numpy as np
import openTSNE
import umap
from _harness import overlapping
from openTSNE import initialization as of_tsne
from sklearn.decomposition import PCA
from umap.spectral import spectral_layout

import heatsketch as hs
from heatsketch.metrics import knn_accuracy, random_pairs, rank_correlation, trustworthiness

PAIRS = 100_000


def data():
    """Yield names, points, labels, and points whose distances are true."""
    X, y = hs.datasets.digits()
    yield "digits", X, y, X
    for n in (5000, 20_000):
        X, flat = hs.datasets.swiss_roll(n, rng=0)[:2]
        yield f"roll {n:,}", X, None, flat if flat.ndim == 2 else X
    for n in (5000, 20_000):
        X, y = overlapping(n)
        yield f"clouds {n:,}", X, y, X


def starts(sizes):
    """Print the seconds of UMAP's own start and of ours, neighbours known."""
    print("| data | UMAP spectral s | sketch s |\n|---|---|---|")
    for n in sizes:
        for name, X in (
            (f"roll {n:,}", hs.datasets.swiss_roll(n, rng=0)[0]),
            (f"clouds {n:,}", overlapping(n)[0]),
        ):
            X = np.asarray(X, dtype=np.float32)
            state = np.random.RandomState(0)
            graph = umap.umap_.fuzzy_simplicial_set(X, 15, state, "euclidean")[0]
            own = timed(lambda X=X, graph=graph, r=state: spectral_layout(X, graph, 2, r))[1]
            d = hs.diffusion(X)
            ours = timed(lambda d=d: hs.initialization(d, 2, rng=0))[1]
            print(f"| {name} | {own:.2f} | {ours:.2f} |", flush=True)


def timed(work):
    """Return what a function returns, and its processor seconds."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def with_umap(X, seed, start):
    """Return the picture, the seconds of the start and of all, and nothing."""
    if start == "spectral":
        model = umap.UMAP(random_state=seed)
        Y, whole = timed(lambda: model.fit_transform(X))
        seconds = timed(lambda: spectral_layout(X, model.graph_, 2, np.random.RandomState(seed)))[1]
        return Y, seconds, whole, np.nan
    init, seconds, extra = given(X, seed, start)
    Y, whole = timed(lambda: umap.UMAP(random_state=seed, init=init).fit_transform(X))
    return Y, seconds, whole + extra, np.nan


def with_tsne(X, seed, start):
    """Return the picture, the seconds of the start and of all, and the divergence."""
    affinities, whole = timed(
        lambda: openTSNE.affinity.PerplexityBasedNN(X, random_state=seed, n_jobs=1)
    )
    if start == "spectral":
        init, seconds = timed(lambda: of_tsne.spectral(affinities.P, 2, random_state=seed))
        extra = seconds
    else:
        init, seconds, extra = given(X, seed, start)
        init = of_tsne.rescale(np.asarray(init, dtype=float))
    embedding, fitted = timed(
        lambda: openTSNE.TSNE(n_jobs=1, random_state=seed).fit(
            affinities=affinities, initialization=init
        )
    )
    return np.asarray(embedding), seconds, whole + extra + fitted, embedding.kl_divergence


def given(X, seed, start):
    """Return a start that does not come from the method, its seconds, and those with a graph."""
    if start == "random":
        return np.random.default_rng(seed).standard_normal((len(X), 2)).astype(np.float32), 0.0, 0.0
    if start == "PCA":
        Y, seconds = timed(lambda: PCA(2, random_state=seed).fit_transform(X).astype(np.float32))
        return Y, seconds, seconds
    d, graph = timed(lambda: hs.diffusion(X))
    Y, seconds = timed(lambda: hs.initialization(d, 2, rng=seed))
    return Y, seconds, seconds + graph


def main():
    """Print a line for each set, method and start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="+", help="names of data sets, all by default")
    parser.add_argument("--starts", type=int, nargs="+", metavar="POINTS")
    args = parser.parse_args()
    hs.initialization(hs.datasets.digits()[0], 2)  # compiles
    umap.UMAP(n_epochs=2).fit_transform(overlapping(5000)[0])  # compiles its search, too
    if args.starts:
        starts(args.starts)
        return
    print("| data | method | start | start s | whole s | trust | labels | truth | KL |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, X, y, truth in data():
        if args.sets and name not in args.sets:
            continue
        X = np.asarray(X, dtype=np.float32)
        i, j = random_pairs(len(X), PAIRS)
        D = np.linalg.norm(truth[i] - truth[j], axis=1)
        for method, run in (("UMAP", with_umap), ("openTSNE", with_tsne)):
            for start in ("spectral", "sketch", "PCA", "random"):
                rows = []
                for seed in args.seeds:
                    Y, seconds, whole, divergence = run(X, seed, start)
                    rows.append(
                        (
                            seconds,
                            whole,
                            float(trustworthiness(X, Y, 15).value),
                            np.nan if y is None else float(knn_accuracy(Y, y)),
                            rank_correlation(np.linalg.norm(Y[i] - Y[j], axis=1), D),
                            divergence,
                        )
                    )
                middle = [statistics.median(column) for column in zip(*rows, strict=True)]
                formats = ("{:.2f}", "{:.1f}", "{:.4f}", "{:.3f}", "{:.2f}", "{:.3f}")
                cells = [
                    f.format(v) if v == v else "" for f, v in zip(formats, middle, strict=True)
                ]
                print(f"| {name} | {method} | {start} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
