"""Does a free layout that follows paths keep strips straight, and what does it cost elsewhere?

Run: python benchmarks/paths.py [--sets roll strip ... | --more] [--ways off half ...]
         [--mnist FOLDER] [-o FILE.csv]

Measures as in `pictures.py`, from the data and the picture alone: rank correlation of distances in
the picture with path lengths along the graph of 15 neighbours, or with true distances ("rank"), and
with Euclidean distances of the data ("euclidean"); trustworthiness of 15 neighbours ("trust");
labels by the 10 nearest ("labels"); occupied cells of a 50 x 50 frame of the central 98 %
("frame"); seconds of a fit. DEMaP of trees under noise are sets, too ("demap:few branches:0").

With `--moves` it says instead how far the picture moves where nothing should: distances of 20,000
pairs, relative to the diameter, when the input is float32, in another order, or has copies, or when
OpenBLAS takes its kernels for AVX2 in another process ("kernel"; this one takes those of its
processor, so that on one without AVX-512 it compares nothing).
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import _data
import numpy as np
import pictures
from scipy import sparse
from sklearn.preprocessing import StandardScaler

WAYS = {
    "off": {"path_weight": 0},
    "half": {},
    "all": {"path_weight": 1},
    "a = .6": {"neighbor_weight": 0.6},
    "all, a = .6": {"path_weight": 1, "neighbor_weight": 0.6},
}


def strip(n=1500, length=20, noise=0.05):
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(n, 2)) * [length, 1]
    isometry, _ = np.linalg.qr(rng.standard_normal((8, 2)))
    X = flat @ isometry.T + noise * rng.standard_normal((n, 8))
    return _data.Data(X, None, flat, lambda i, j: np.linalg.norm(flat[i] - flat[j], axis=1))


def arc(n=800):
    """Return one trajectory with noise, bent in ten dimensions: nearly one-dimensional."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.random(n))
    waves = np.array([np.cos(np.pi * m * t) / m for m in range(1, 11)]).T
    X = waves + 0.01 * rng.standard_normal((n, 10))
    return _data.Data(X, None, t[:, None], lambda i, j: np.abs(t[i] - t[j]))


def far_groups(n=1200):
    """Return five overlapping groups, and 2 % of the points in three tight, far ones."""
    rng = np.random.default_rng(0)
    centres = np.vstack([2 * rng.standard_normal((5, 8)), 40 * rng.standard_normal((3, 8))])
    labels = np.where(rng.random(n) < 0.02, rng.integers(5, 8, n), rng.integers(0, 5, n))
    widths = np.where(labels < 5, 1.0, 0.3)[:, None]
    return _data.Data(centres[labels] + widths * rng.standard_normal((n, 8)), labels)


def star(n=1000, seed=0):
    """Return one group in five dimensions whose tails are heavy: Student's t of two degrees."""
    return _data.Data(np.random.default_rng(seed).standard_t(2, size=(n, 5)))


def clouds(groups, dimensions, distance, seed, n=1200):
    """Return isotropic normal clouds of variance 1 whose centres have this standard deviation."""
    rng = np.random.default_rng(seed)
    centres = distance * rng.standard_normal((groups, dimensions))
    labels = rng.integers(0, groups, n)
    return _data.Data(centres[labels] + rng.standard_normal((n, dimensions)), labels)


def of_sklearn(name):
    import sklearn.datasets

    X, labels = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return _data.Data(StandardScaler().fit_transform(X), labels)


def diabetes():
    import sklearn.datasets

    X = sklearn.datasets.load_diabetes().data
    return _data.Data(StandardScaler().fit_transform(X), None)


def noise():
    return _data.Data(np.random.default_rng(0).normal(size=(600, 20)))


SETS = {
    "strip": strip,
    "arc": arc,
    "roll": partial(_data.draw, "roll:1500"),
    "s-curve": partial(_data.draw, "s-curve:1000"),
    "sphere": partial(_data.draw, "sphere:1000"),
    "torus": partial(_data.draw, "torus:1000"),
    "tree": partial(_data.draw, "tree"),
    "walks": partial(_data.draw, "walks"),
    "digits": partial(_data.draw, "digits"),
    "garbage": partial(_data.draw, "garbage"),
    "pieces": partial(_data.draw, "pieces:1500"),
    "far groups": far_groups,
    "star": star,
    "clouds": partial(_data.draw, "clusters:1500"),
    "wine": partial(of_sklearn, "wine"),
    "cancer": partial(of_sklearn, "breast_cancer"),
    "iris": partial(of_sklearn, "iris"),
    "diabetes": diabetes,
    "noise": noise,
} | {
    f"demap:{name}:{seed}": partial(pictures.walks, *size, seed)
    for name, size in pictures.TREES.items()
    for seed in pictures.SEEDS[:2]
}
MORE = {  # draws of the kinds of sets on which one draw was seen to lose
    f"{name}:{seed}": partial(make, seed=seed)
    for name, make in {
        "clouds, 20-D": partial(clouds, 10, 20, 1.0),
        "clouds, 12-D": partial(clouds, 10, 12, 0.8),
        "clouds, 50-D": partial(clouds, 6, 50, 0.5),
        "star": star,
    }.items()
    for seed in range(1, 7)
}


def judged(data, X, Y, clean=None):
    """Return the measures of a picture Y (n, 2) of points X."""
    n = len(Y)
    rng = np.random.default_rng(0)
    i = rng.choice(n, min(pictures.SOURCES, n), replace=False)
    targets = rng.integers(0, n, (len(i), pictures.TARGETS))
    if clean is not None:
        known = pictures.geodesics(clean, i, targets)
    elif data.distances is not None:
        known = data.distances(np.repeat(i, targets.shape[1]), targets.ravel())
    else:
        known = pictures.geodesics(X, i, targets)
    labels = data.label is not None and len(np.unique(data.label)) > 1
    return {
        "rank": pictures.agreement(Y, i, targets, known),
        "euclidean": pictures.agreement(Y, i, targets, pictures.straight(X, i, targets)),
        "trust": pictures.trustworthiness(pictures.ranks(X), Y),
        "labels": pictures.label_accuracy(data.label, Y) if labels else np.nan,
        "frame": np.mean(pictures.counts(pictures.central(Y)) > 0),
    }


def drawn(name, folder):
    """Return a set and, if it is known, the same without noise."""
    if name.startswith("mnist"):
        data = _data.draw(name, folder)
        return data._replace(X=data.X.astype(float)), None
    found = (SETS | MORE)[name]()
    if isinstance(found, tuple) and not isinstance(found, _data.Data):
        noisy, clean = found[:2]
        return _data.Data(noisy), clean
    if sparse.issparse(found.X):
        found = found._replace(X=found.X.toarray())
    return found, None


def picture(X, **options):
    import heatsketch as hs

    return hs.HeatEmbedding(random_state=0, **options).fit_transform(X)


def with_kernels(core, X, options):
    """Return the picture of a process in which OpenBLAS takes the kernels of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        np.save(path, X)
        code = (
            "import json, sys, numpy, paths\n"
            "path, options = sys.argv[1], json.loads(sys.argv[2])\n"
            "numpy.save(path, paths.picture(numpy.load(path), **options))"
        )
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, path, json.dumps(options)],
            env=os.environ | {"OPENBLAS_CORETYPE": core, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )
        return np.load(path)


def moves(X, **options):
    """Return how far pairs move, relative to the diameter, under changes that should not count.

    The median and the largest of the pairs.
    """
    n = len(X)
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, n, (2, 20_000))
    order, copies = rng.permutation(n), rng.integers(0, n, n // 10)
    Y = picture(X, **options)
    others = {
        "float32": picture(X.astype(np.float32), **options).astype(float),
        "order": picture(X[order], **options)[np.argsort(order)],
        "copies": picture(np.vstack([X, X[copies]]), **options)[:n],
        "kernel": with_kernels("Haswell", X, options),
    }
    own = np.linalg.norm(Y[i] - Y[j], axis=1)
    found = {}
    for name, Z in others.items():
        Z = Z * (np.std(Y) / np.std(Z))
        off = np.abs(np.linalg.norm(Z[i] - Z[j], axis=1) - own) / own.max()
        found |= {f"{name}, median": np.median(off), f"{name}, most": off.max()}
    return found


def rounded(found):
    return {k: round(float(v), 4) for k, v in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--more", action="store_true", help="more draws of clouds and stars")
    parser.add_argument("--ways", nargs="+", default=["off", "half", "all"])
    parser.add_argument("--mnist", help="folder of MNIST's IDX files, for mnist:N")
    parser.add_argument("--moves", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    arguments.sets = list(MORE) if arguments.more else arguments.sets
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.sets:
        data, clean = drawn(name, arguments.mnist)
        X = np.asarray(data.X, float)
        for way in arguments.ways:
            started = time.perf_counter()
            if arguments.moves:
                found = moves(X, **WAYS[way])
            else:
                Y = picture(X, **WAYS[way])
                found = {"seconds": time.perf_counter() - started}
                found |= judged(data, X, np.asarray(Y, float), clean)
            rows.append({"set": name, "way": way} | rounded(found))
            print(*rows[-1].values(), sep="\t", flush=True)
    for way in arguments.ways:
        own = [row for row in rows if row["way"] == way and row["set"] in arguments.sets]
        middle = {k: np.nanmedian([row[k] for row in own]) for k in list(rows[0])[2:]}
        rows.append({"set": f"median of {len(own)}", "way": way} | rounded(middle))
        print(*rows[-1].values(), sep="\t")
    if arguments.output:
        with arguments.output.open("w", newline="") as stream:
            table = csv.DictWriter(stream, rows[0], lineterminator="\n")
            table.writeheader()
            table.writerows({k: "" if v != v else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    sys.exit(main())
