"""Which default picture would one publish: ours, or that of another method?

Run: python benchmarks/pictures.py prepare FOLDER      (draws the sets of _real_data.py)
     python benchmarks/pictures.py embed FOLDER        (each method once, by its own defaults)
     python benchmarks/pictures.py table FOLDER
     python benchmarks/pictures.py sheets FOLDER       (a row of pictures for each set)
     python benchmarks/pictures.py blind FOLDER        (the same in random order, without names)
     python benchmarks/pictures.py demap FOLDER
     python benchmarks/pictures.py seconds FOLDER      (of a second fit of large sets)
     [--methods heatsketch UMAP ...] [--sets digits ...] [-o FILE]
     [--split tuning|unseen|fresh|held|later|all]

LocalMAP comes with pacmap; heatgeo asks for an old scikit-learn and is installed with --no-deps.
What has been computed lies in FOLDER and is not computed again. The measures come from outside:
from the data and the picture alone, whatever distance a method follows.

rank    rank correlation of distances in the picture with geodesics of the symmetric graph of 15
        neighbours (pieces are joined by their shortest bridges), or with the true distances of
        synthetic sets: 200 points with 50 others each
euclidean  the same with Euclidean distances of the data
trust   trustworthiness of 15 neighbours
recall  share of the 10 nearest in the data that are among the 10 nearest in the picture
knn     accuracy of labels by the 10 nearest in the picture, the point itself left out
frame   area of the box of the 98 % of the points nearest to the centre, over that of all
cells   share of the cells with points in them, of 50 x 50 in that box
crowd   share of its points in the densest hundredth of those cells
cpu     processor seconds of one fit, after one of another set
seconds (`seconds`) of a second fit of a large set in a process of its own, and their ratio to ours
        in the same run; of processors too ("cpu"), which other work changes less. UMAP has no seed,
        which would take it to one core. FOLDER holds MNIST's IDX files for "images"; the others
        are "digits", "cells", "roll", "overlapping" and "clouds", also with another number of
        points: "overlapping:1000000"
blind   pictures A, B, ... of each set, in an order drawn for it; FOLDER/blind.json is the key
DEMaP   (`demap`) rank correlation with geodesics of a tree of random walks before noise is added
"""

import argparse
import contextlib
import csv
import io
import json
import os
import string
import sys
import time
from collections import Counter
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

NEIGHBORS, LABEL_NEIGHBORS = 15, 10
SOURCES, TARGETS = 200, 50
CENTRAL, CELLS = 0.98, 50
SPLITS = ("tuning", "unseen", "fresh", "held", "later", "all")
MEASURES = ("rank", "euclidean", "trust", "recall", "knn", "frame", "cells", "crowd")

# --- methods ----------------------------------------------------------------------------------


def heatsketch(X, **parameters):
    import heatsketch as hs

    fitted = hs.HeatEmbedding(**parameters, random_state=0).fit(X)
    return fitted.embedding_, {"time": float(fitted.time_)}


def umap(X):
    import umap as package

    return package.UMAP(random_state=0, n_jobs=1).fit_transform(X)


def phate(X):
    import phate as package

    return package.PHATE(random_state=0, n_jobs=1, verbose=0).fit_transform(X)


def pacmap(X):
    import pacmap as package

    return package.PaCMAP(random_state=0).fit_transform(_dense(X))


def localmap(X):
    import pacmap as package

    return package.LocalMAP(random_state=0).fit_transform(_dense(X))


def tsne(X):
    import openTSNE

    return np.asarray(openTSNE.TSNE(random_state=0, n_jobs=1).fit(_dense(X)))


def dreams(X, weight=0.1, to="PCA"):
    """Return t-SNE pulled to principal components, with the steps and the weight of its authors.

    Kury, Kobak and Damrich (arXiv 2508.13747): (1 - λ) KL + λ/n |Y - αP|², where α gives P the
    norm of Y. Their program multiplies the pull by λ twice, and gives it no momentum. With "MDS"
    the pull is to SQuaD-MDS, as in their experiments.
    """
    import openTSNE
    from sklearn.decomposition import PCA

    X = _dense(X)
    P = PCA(2, random_state=0).fit_transform(X) if to == "PCA" else squad(X, hybrid=False)
    P = P / P[:, 0].std()
    affinities = openTSNE.affinity.PerplexityBasedNN(X, random_state=0)
    Y = openTSNE.TSNEEmbedding(P, affinities, random_state=0)
    for exaggeration, steps in ((12, 250), (1, 500)):
        rate = len(Y) / exaggeration

        def pull(step, error, Y, rate=rate):
            Y -= weight**2 * rate * 2 / len(Y) * (Y - P * np.linalg.norm(Y) / np.linalg.norm(P))

        Y = Y.optimize(
            steps,
            exaggeration=exaggeration,
            learning_rate=(1 - weight) * rate,
            max_step_norm=(1 - weight) * 5,
            momentum=0.8,
            callbacks=pull,
            callbacks_every_iters=1,
        )
    return np.asarray(Y)


def squad(X, hybrid=True):
    """Return SQuaD-MDS, with t-SNE or alone, by its authors' program (Lambert et al. 2022).

    It is no package: SQUAD_MDS names the folder of PierreLambert3/SQuaD-MDS-and-FItSNE-hybrid.
    """
    sys.path.insert(0, os.environ["SQUAD_MDS"])
    from hybrid import run_hybrid
    from SQuaD_MDS import run_SQuaD_MDS

    np.random.seed(0)  # noqa: NPY002 (the global state)
    with contextlib.redirect_stdout(None):
        run = run_hybrid if hybrid else run_SQuaD_MDS
        return np.asarray(run(np.array(_dense(X), float), {"in python": True}), float)


def pcc(X):
    """Return PCC (Gildenblat and Pahnke, arXiv 2503.07609) with the settings of its README."""
    from pcc import PCC
    from sklearn.cluster import KMeans

    X = np.asarray(_dense(X), np.float32)
    clusters = [KMeans(k, random_state=0).fit_predict(X) for k in (4, 8, 16, 32, 64)]
    made = PCC(
        n_components=2,
        num_epochs=2_000,
        num_points=min(1_000, len(X)),
        pearson=True,
        spearman=False,
        beta=5,
        k_epoch=2,
    )
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        return np.asarray(made.fit_transform(X, clusters))


def dtne(X):
    """Return DTNE (PNAS 2025, e2404860121) by its defaults."""
    import dtne as package

    with contextlib.redirect_stdout(None):
        return np.asarray(package.DTNE().fit_transform(np.asarray(_dense(X), float)))


def heatgeo(X):
    from heatgeo.embedding import HeatGeo

    with contextlib.redirect_stdout(None):
        return HeatGeo(knn=5).fit_transform(_dense(X))  # the number that its graphs have by default


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


METHODS = {
    "heatsketch": heatsketch,
    "heatsketch, linear": partial(heatsketch, layout="linear"),
    "UMAP": umap,
    "PHATE": phate,
    "PaCMAP": pacmap,
    "LocalMAP": localmap,
    "t-SNE": tsne,
    "DREAMS": dreams,
    "DREAMS, MDS": partial(dreams, to="MDS"),
    "SQuaD hybrid": squad,
    "PCC": pcc,
    "DTNE": dtne,
    "heatgeo": heatgeo,
}


# --- measures ---------------------------------------------------------------------------------


def geodesics(X, i, targets, neighbors=NEIGHBORS):
    """Return geodesic distances (len(i), targets per point) in the symmetric neighbour graph."""
    graph = kneighbors_graph(X, neighbors, mode="distance")
    graph.data += 1e-12 * graph.data.max()  # equal points: a stored zero is no edge to SciPy
    graph = bridged(graph.maximum(graph.T), X)
    return np.take_along_axis(dijkstra(graph, directed=False, indices=i), targets, axis=1)


def bridged(graph, X):
    """Join the components of a graph by their shortest bridges."""
    count, component = connected_components(graph, directed=False)
    if count == 1:
        return graph
    D = pairwise_distances(X)
    D[component[:, None] == component] = 0  # no edge
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(count))
    D = np.where(D == 0, np.inf, D)[np.ix_(order, order)]
    between = np.minimum.reduceat(np.minimum.reduceat(D, starts), starts, axis=1)
    tree = minimum_spanning_tree(np.where(np.isinf(between), 0, between)).tocoo()
    bounds, graph = [*starts, len(order)], graph.tolil()
    for a, b in zip(tree.row, tree.col, strict=True):
        block = D[bounds[a] : bounds[a + 1], bounds[b] : bounds[b + 1]]
        k, m = np.unravel_index(block.argmin(), block.shape)
        p, q = order[bounds[a] + k], order[bounds[b] + m]
        graph[p, q] = graph[q, p] = block[k, m]
    return graph.tocsr()


def straight(X, i, targets):
    """Return Euclidean distances (len(i), targets per point) of the data."""
    X = _dense(X)
    return np.take_along_axis(cdist(X[i], X), targets, axis=1)


def agreement(Y, i, targets, distances):
    """Return the rank correlation of distances in a picture with given ones."""
    shown = np.linalg.norm(Y[i][:, None] - Y[targets], axis=2)
    return float(spearmanr(shown.ravel(), np.ravel(distances)).statistic)


def ranks(X):
    """Return the rank of each point among the neighbours of each other one (the nearest is 1)."""
    D = pairwise_distances(X)
    np.fill_diagonal(D, -1)
    order = np.argsort(D, axis=1)
    found = np.empty(D.shape, dtype=np.int16)
    np.put_along_axis(found, order, np.arange(len(D), dtype=np.int16)[None], axis=1)
    return found


def neighbors_of(Y, k):
    """Return the k nearest others of each point (n, k)."""
    return NearestNeighbors(n_neighbors=k).fit(Y).kneighbors(return_distance=False)


def trustworthiness(rank, Y, k=NEIGHBORS):
    """Return scikit-learn's trustworthiness from the ranks in the data."""
    n = len(Y)
    excess = np.maximum(np.take_along_axis(rank, neighbors_of(Y, k), axis=1).astype(int) - k, 0)
    return 1 - 2 * excess.sum() / (n * k * (2 * n - 3 * k - 1))


def recall(rank, Y, k=LABEL_NEIGHBORS):
    """Return the share of the k nearest in the data that are among the k nearest in the picture."""
    return np.mean(np.take_along_axis(rank, neighbors_of(Y, k), axis=1) <= k)


def label_accuracy(labels, Y, k=LABEL_NEIGHBORS):
    """Return the share of points whose label is the commonest of their k nearest others."""
    votes = np.eye(labels.max() + 1, dtype=int)[labels[neighbors_of(Y, k)]].sum(axis=1)
    return np.mean(votes.argmax(axis=1) == labels)


def central(Y):
    """Return the 98 % of the points nearest to the median."""
    far = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    return Y[far <= np.quantile(far, CENTRAL)]


def counts(Y):
    """Return the numbers of points in the cells of the box of Y, the largest first."""
    low, side = Y.min(axis=0), np.ptp(Y, axis=0)
    box = np.column_stack([low, low + np.where(side > 0, side, 1)])
    return np.sort(np.histogram2d(*Y.T, bins=CELLS, range=box)[0].ravel())[::-1]


def judge(data, Y):
    """Return the measures of a picture Y (n, 2) of a stored set."""
    Y = np.asarray(Y, dtype=float)
    i, targets = data["i"], data["targets"]
    inner, outer = np.ptp(central(Y), axis=0), np.ptp(Y, axis=0)
    filled = counts(central(Y))
    return {
        "rank": agreement(Y, i, targets, data["distances"]),
        "euclidean": agreement(Y, i, targets, straight(data["X"], i, targets)),
        "trust": float(trustworthiness(data["rank"], Y)),
        "recall": float(recall(data["rank"], Y)),
        "knn": float(label_accuracy(data["labels"], Y)) if "labels" in data else np.nan,
        "frame": float(np.prod(inner / np.where(outer > 0, outer, 1))),
        "cells": float(np.mean(filled > 0)),
        "crowd": float(filled[: len(filled) // 100].sum() / filled.sum()),
    }


# --- DEMaP ------------------------------------------------------------------------------------

TREES = {  # branches, points on each, dimensions, noise; PHATE's own tree has 20, 100, 100, 4
    "few branches": (5, 250, 100, 4.0),
    "many branches": (15, 100, 100, 4.0),
    "noisy": (10, 120, 100, 8.0),
}
SEEDS = (0, 1, 2, 3)


def walks(branches, length, dimensions, noise, seed):
    """Return random walks that branch, as in PHATE's gen_dla, with noise and without."""
    rng = np.random.default_rng(seed)
    true = np.cumsum(rng.uniform(-1, 1, (length, dimensions)), axis=0)
    for _ in range(branches - 1):
        walk = np.cumsum(rng.uniform(-1, 1, (length, dimensions)), axis=0)
        true = np.concatenate([true, true[rng.integers(len(true))] + walk])
    return true + noise * rng.standard_normal(true.shape), true


@lru_cache
def _tree(name, seed):
    """Return a noisy tree, 200 points of it, and their geodesics to all in the noiseless one."""
    X, true = walks(*TREES[name], seed)
    i = np.sort(np.random.default_rng(0).choice(len(X), SOURCES, replace=False))
    return X, i, geodesics(true, i, np.tile(np.arange(len(X)), (SOURCES, 1)), neighbors=30)


def demap(method):
    """Return {setting: DEMaP of four seeds} of a method X -> picture, as PHATE defines it."""
    found = {}
    for name in TREES:
        found[name] = []
        for seed in SEEDS:
            X, i, true = _tree(name, seed)
            Y = np.asarray(method(X))
            shown = np.linalg.norm(Y[i][:, None] - Y, axis=2)
            found[name].append(float(spearmanr(shown.ravel(), true.ravel()).statistic))
    return found


def write_demap(folder, path):
    """Write the stored values of all methods, a row for each setting."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["method", "tree", *(f"seed {seed}" for seed in SEEDS)])
        for stored in sorted(folder.glob("demap.*.json")):
            method = stored.stem.removeprefix("demap.")
            for name, values in json.loads(stored.read_text()).items():
                table.writerow([method, name, *(f"{value:.4f}" for value in values)])


# --- seconds ----------------------------------------------------------------------------------

LARGE = {
    "digits": 1_797,
    "cells": 700,
    "images": 10_000,
    "roll": 50_000,
    "overlapping": 100_000,
    "clouds": 100_000,
}
HOUR = 3_600


def second_fit(method, data, n, folder):
    """Return the seconds of a second fit of n points."""
    import _harness as harness

    X, _ = harness.draw(data, n, folder)
    make = _umap_without_seed if method == "UMAP" else METHODS[method]
    make(X)
    cpu = time.process_time()
    wall, _ = harness.timed(make, X)
    return {"seconds": wall, "cpu": time.process_time() - cpu}


def _umap_without_seed(X):
    import umap as package

    return package.UMAP().fit_transform(X)


def second_fits(folder, sets, methods):
    """Yield a row of seconds, and their ratio to ours, for each large set and method."""
    import _harness as harness

    for name in sets:
        data, _, size = name.partition(":")
        n, found = int(size or LARGE[data]), {}
        for method in dict.fromkeys(["heatsketch", *methods]):
            task = (second_fit, method, data, n, folder)
            found[method] = harness.run_apart(*task, limit=HOUR)
            row = {"data": data, "points": n, "method": method}
            for key, ratio in (("seconds", "ratio"), ("cpu", "cpu ratio")):
                value = found[method].get(key, np.nan)
                row[key] = f"{value:.3g}"
                row[ratio] = f"{value / found['heatsketch'].get(key, np.nan):.3g}"
            yield row


# --- stored sets and pictures -----------------------------------------------------------------


def prepare(folder, name, data, kind, split):
    """Store a set with its sample of distances."""
    n = data.X.shape[0]
    rng = np.random.default_rng(0)
    i = np.sort(rng.choice(n, min(SOURCES, n), replace=False))
    targets = np.array([rng.choice(np.delete(np.arange(n), each), TARGETS, False) for each in i])
    if data.distances is None:
        distances = geodesics(data.X, i, targets)
    else:
        flat = data.distances(np.repeat(i, TARGETS), targets.ravel())
        distances = flat.reshape(targets.shape)
    stored = {"i": i, "targets": targets, "distances": distances, "kind": kind, "split": split}
    for key in ("labels", "colour"):
        if getattr(data, key) is not None:
            stored[key] = getattr(data, key)
    if sparse.issparse(data.X):
        X = sparse.csr_array(data.X)
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        stored |= {f"X_{key}": part for key, part in parts.items()}
    else:
        stored["X"] = data.X
    np.savez_compressed(folder / f"{name}.npz", **stored)


@lru_cache(maxsize=8)
def load(folder, name, ranked=True):
    """Return a stored set: X, labels, colour, kind, split, i, targets, distances, ranks of X."""
    with np.load(Path(folder) / f"{name}.npz") as file:
        data = dict(file)
    if "X" not in data:
        parts = [data.pop(f"X_{key}") for key in ("data", "indices", "indptr", "shape")]
        data["X"] = sparse.csr_matrix(tuple(parts[:3]), shape=tuple(parts[3]))
    data["kind"], data["split"] = str(data["kind"]), str(data["split"])
    if ranked:
        data["rank"] = ranks(data["X"])
    return data


def names(folder, split="all"):
    """Return the names of the stored sets of a split."""
    found = sorted(path.stem for path in Path(folder).glob("*.npz") if path.stem.count(".") == 0)
    return [name for name in found if split in ("all", load(folder, name, ranked=False)["split"])]


def picture(folder, name, method):
    """Return what is stored of a picture (Y, cpu, wall, ...), or None."""
    path = Path(folder) / f"{name}.{method}.npz"
    if not path.exists():
        return None
    with np.load(path) as file:
        return dict(file)


def embed(folder, name, method, known_as=None):
    """Make and store the picture of a method, unless it is there."""
    path = folder / f"{name}.{known_as or method}.npz"
    if path.exists():
        return
    X = load(folder, name, ranked=False)["X"]
    wall, cpu = time.perf_counter(), time.process_time()
    made = METHODS[method](X)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    Y, facts = made if isinstance(made, tuple) else (made, {})
    np.savez(path, Y=np.asarray(Y, dtype=float), **took, **facts)
    print(f"{name} {method}: {took['cpu']:.1f} s", flush=True)


def table(folder, sets, methods):
    """Return a row of measures for each set and method."""
    rows = []
    for name in sets:
        data = load(folder, name)
        for method in methods:
            found = picture(folder, name, method)
            if found is not None:
                row = {"set": name, "kind": data["kind"], "split": data["split"], "method": method}
                rows.append(row | judge(data, found["Y"]) | {"cpu": float(found["cpu"])})
    return rows


def sheet(folder, names, methods, path):
    """Draw the pictures of sets, a row each, with their measures."""
    rows = []
    for name in names:
        data, row = load(folder, name), []
        for method, Y in _pictures(folder, name, methods).items():
            measured = judge(data, Y)
            words = [f"{key} {measured[key]:.2f}" for key in MEASURES[:4]]
            words = ", ".join(word for word in words if not word.endswith("nan"))
            row.append((data, Y, f"{name}, {method}\n{words}"))
        rows.append(row)
    _draw(rows, path)


def blind(folder, name, methods, path):
    """Draw the pictures of a set as A, B, ... in an order of its own; return {letter: method}."""
    data, found = load(folder, name, ranked=False), _pictures(folder, name, methods)
    order = np.random.default_rng(list(name.encode())).permutation(sorted(found)).tolist()
    key = dict(zip(string.ascii_uppercase, order, strict=False))
    tiles = [(data, found[method], f"{name}, {letter}") for letter, method in key.items()]
    half = -(-len(tiles) // 2)
    _draw([tiles[:half], tiles[half:]], path)
    return key


def _pictures(folder, name, methods):
    """Return {method: Y} of the stored pictures of a set."""
    found = {method: picture(folder, name, method) for method in methods}
    return {method: one["Y"] for method, one in found.items() if one is not None}


def _draw(rows, path):
    """Draw rows of pictures, each given as (stored set, Y, title)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    width = max(map(len, rows))
    size = (3.4 * width, 3.7 * len(rows) + 0.2)
    figure, axes = pyplot.subplots(len(rows), width, figsize=size, squeeze=False)
    for row, shown in zip(axes, rows, strict=True):
        for at in row[len(shown) :]:
            at.set_axis_off()
        for at, (data, Y, title) in zip(row, shown, strict=False):
            shade, colours = data.get("labels", data.get("colour")), "viridis"
            if "labels" in data and data["kind"] != "gradient":
                colours = "tab10" if data["labels"].max() < 10 else "tab20"
            elif "colour" in data:
                shade = data["colour"]
            at.scatter(*Y.T, c=shade, cmap=colours, s=15_000 / (len(Y) + 1500), linewidths=0)
            at.set(xticks=[], yticks=[], aspect="equal")
            at.set_title(title, size=8)
    figure.tight_layout()
    Path(path).parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


# --- the whole --------------------------------------------------------------------------------


def said(rows):
    """Return the rows as lines, and the medians of each kind and method."""
    columns = (*MEASURES, "cpu")
    lines = [f"{'':28}" + "".join(f"{column[:7]:>8}" for column in columns)]
    for row in rows:
        lines.append(f"{row['set']:16}{row['method']:12}{_short(row, columns)}")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            some = [row for row in rows if (row["kind"], row["method"]) == (kind, method)]
            middle = {key: np.nanmedian([row[key] for row in some]) for key in columns}
            lines.append(f"{kind:16}{method:12}{_short(middle, columns)}  median of {len(some)}")
    return "\n".join(lines)


UNTUNED = ("unseen", "fresh", "held", "later")


def write_medians(rows, path):
    """Write the median of each measure, by kind, half and method; then of all untuned sets.

    These are the sets on which all methods ran. Without times, which depend on what else ran.
    """
    groups = {}
    for row in rows:
        groups.setdefault((row["kind"], row["split"], row["method"]), []).append(row)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    untuned = [row for row in rows if row["split"] in UNTUNED]
    ran = Counter(row["set"] for row in untuned)
    for row in untuned:
        if ran[row["set"]] == len(methods):
            groups.setdefault(("all", "untuned", row["method"]), []).append(row)
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["kind", "half", "method", "sets", *MEASURES])
        for key, some in groups.items():
            middle = [np.nanmedian([row[column] for row in some]) for column in MEASURES]
            table.writerow([*key, len(some), *(f"{value:.3g}" for value in middle)])


def _short(row, columns):
    return "".join(f"{row[key]:8.3f}" for key in columns)


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = ["prepare", "embed", "table", "sheets", "blind", "demap", "seconds"]
    options.add_argument("step", choices=steps)
    options.add_argument("folder", type=Path)
    options.add_argument("--methods", nargs="+", default=list(METHODS), metavar="METHOD")
    options.add_argument("--known-as", metavar="NAME", help="of the one method, in the folder")
    options.add_argument("--sets", nargs="+", metavar="SET")
    options.add_argument("--split", choices=SPLITS, default="tuning")
    given_help = "all sheets in one picture, or the medians of the table as CSV"
    options.add_argument("-o", "--output", type=Path, metavar="FILE", help=given_help)
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.step == "prepare":
        import _real_data

        for name, split in _real_data.splits().items():
            stored = (given.folder / f"{name}.npz").exists()
            if not stored and (given.sets is None or name in given.sets):
                kind = _real_data.SETS[name].kind
                prepare(given.folder, name, _real_data.draw(name), kind, split)
        return
    if given.step == "demap":
        for method in given.methods:
            found = demap(lambda X, make=METHODS[method]: _only_picture(make(X)))
            name = given.known_as or method
            (given.folder / f"demap.{name}.json").write_text(json.dumps(found))
            print(name, {key: np.round(values, 3).tolist() for key, values in found.items()})
        if given.output:
            write_demap(given.folder, given.output)
        return
    if given.step == "seconds":
        rows = []
        for row in second_fits(given.folder, given.sets or LARGE, given.methods):
            print(*row.values(), flush=True)
            rows.append(row)
        if given.output:
            with given.output.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        return
    sets = given.sets or names(given.folder, given.split)
    if given.step == "embed":
        for method in given.methods:
            METHODS[method](np.random.default_rng(0).normal(size=(200, 5)))  # compiles, imports
        for name in sets:
            for method in given.methods:
                embed(given.folder, name, method, given.known_as)
    elif given.step == "table":
        rows = table(given.folder, sets, given.methods)
        print(said(rows))
        if given.output:
            write_medians(rows, given.output)
    elif given.step == "blind":
        key = {
            name: blind(given.folder, name, given.methods, given.folder / "blind" / f"{name}.png")
            for name in sets
        }
        (given.folder / "blind.json").write_text(json.dumps(key, indent=1))
    else:
        for name in sets:
            sheet(given.folder, [name], given.methods, given.folder / "sheets" / f"{name}.png")
        if given.output:
            sheet(given.folder, sets, given.methods, given.output)


def _only_picture(made):
    return made[0] if isinstance(made, tuple) else made


if __name__ == "__main__":
    sys.exit(main())
