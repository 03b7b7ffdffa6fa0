"""What does a picture of two samples say about them? Tables of benchmarks/README.md.

Run: python benchmarks/batches.py [--seeds 3] [--nulls 400] [-o DIR]
Needs: pip install --no-deps scfates harmonypy; and anndata.

The 1,330 cells of the developing gut (scFates) are split at random into two samples, so that the
truth is known: both are of one kind. Then faults are planted in the second sample. `shift`: all
its cells move along one random direction by a multiple of r, the median distance to the fifteenth
neighbour. `fewer`: three quarters of its cells of one cluster are left out, as a treatment might.
Each is embedded as it is, after the mean of each sample was subtracted, and after Harmony.

own: fraction of a cell's 15 nearest from its own sample; .5 if they are mixed. p: of
`sample_discrepancy`. trust, dubious: of the audit of the joint heat embedding. order: Spearman's
correlation, over the second sample, of the pseudotime in the joint graph with that in the graph of
all cells without a fault, from the same root; unreached cells are the latest. moved: median over
the cells of how far the correction left a cell of the second sample from its true place beside the
first, in r.
"""

import argparse
import csv
import sys
import warnings
from importlib.metadata import distribution
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy.stats import kstest, spearmanr
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs
from heatsketch.uncertainty import sample_discrepancy

SHIFTS = (0.25, 0.5, 1.0, 2.0)
LATEST = 2.0


def gut():
    """Return principal components (n, 11), clusters (n,) and the root of scVelo."""
    path = distribution("scFates").locate_file("scFates/datasets/test.h5ad")
    cells = anndata.read_h5ad(path)
    X = np.asarray(cells.obsm["X_pca"], dtype=float)
    return X, cells.obs["leiden"].to_numpy(), int(np.argmax(cells.obs["root_cells"]))


def nearest(X, k=15):
    """Return distances and indices (n, k) of the nearest other rows."""
    distances, indices = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X)
    return distances[:, 1:], indices[:, 1:]


def own_share(X, second):
    """Return the fraction of the 15 nearest that come from a cell's own sample."""
    return np.mean(second[nearest(X)[1]] == second[:, None])


def centred(X, second):
    """Return X with the mean of each sample subtracted."""
    means = np.array([X[~second].mean(axis=0), X[second].mean(axis=0)])
    return X - means[second.astype(int)]


def harmony(X, second):
    """Return X as Harmony corrects it."""
    import harmonypy

    about = pd.DataFrame({"sample": second.astype(str)})
    Z = np.asarray(harmonypy.run_harmony(X, about, "sample", verbose=False).Z_corr)
    return Z if Z.shape == X.shape else Z.T


CORRECTIONS = {"": lambda X, second: X, "centred": centred, "harmony": harmony}


def row_of(X, truth, second, root, late):
    """Return the measures of two samples X (n, d) whose cells truly lie at `truth` (n, d)."""
    found = sample_discrepancy(X[~second], X[second], rng=0)
    model = hs.HeatEmbedding(random_state=0).fit(X)
    audit = hs.audit(X, model.embedding_, random_state=0)
    time = model.pseudotime(root).value
    time = np.where(np.isfinite(time), time, LATEST)
    # A common offset of all cells changes nothing: the first sample's is taken out.
    error = X - truth
    error -= error[~second].mean(axis=0)
    r = np.median(nearest(truth)[0][:, -1])
    return {
        "own": own_share(X, second),
        "own_in_picture": own_share(model.embedding_, second),
        "components": model.diagnostics_["components"],
        "discrepancy": found.value,
        "p": found.p_value,
        "trust": np.nanmedian(audit.trust),
        "dubious": np.mean(audit.dubious),
        "order": spearmanr(time[second], late[second]).statistic,
        "moved": np.median(np.linalg.norm(error[second], axis=1)) / r,
    }


def cases(X, cluster, root, rng):
    """Yield (case, shift, X, truth, second, which) for one random split."""
    second = rng.permutation(len(X)) < len(X) // 2
    second[root] = False
    r, u = np.median(nearest(X)[0][:, -1]), rng.normal(size=X.shape[1])
    u *= r / np.linalg.norm(u)
    everyone = np.arange(len(X))
    yield "same", 0.0, X, X, second, everyone
    for shift in SHIFTS:
        yield "shift", shift, X + shift * u * second[:, None], X, second, everyone
    leave = second & (cluster == "4") & (rng.uniform(size=len(X)) < 0.75)
    kept = everyone[~leave]
    yield "fewer", 0.0, X[kept], X[kept], second[kept], kept
    moved = X + u * second[:, None]
    yield "fewer and shift", 1.0, moved[kept], X[kept], second[kept], kept


def main(arguments):
    """Write batches.csv and print the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nulls", type=int, default=400)
    parser.add_argument("-o", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    X, cluster, root = gut()
    late = hs.HeatEmbedding(random_state=0).fit(X).pseudotime(root).value
    rows = []
    for seed in range(given.seeds):
        rng = np.random.default_rng([seed, 1])
        for case, shift, points, truth, second, kept in cases(X, cluster, root, rng):
            at = int(np.flatnonzero(kept == root)[0])
            for name, correct in CORRECTIONS.items():
                measures = row_of(correct(points, second), truth, second, at, late[kept])
                rows.append({"seed": seed, "case": case, "shift": shift, "correction": name})
                rows[-1] |= {key: f"{value:.4g}" for key, value in measures.items()}
                print(rows[-1], flush=True)
    keys = ["case", "shift", "correction"]
    numbers = pd.DataFrame(rows).drop(columns="seed").set_index(keys)
    rng = np.random.default_rng(7)
    p = []
    for _ in range(given.nulls):
        second = rng.permutation(len(X)) < len(X) // 2
        options = {"n_components": 64, "n_permutations": 199, "rng": rng}
        found = sample_discrepancy(X[~second], X[second], **options)
        p.append(found.p_value - rng.uniform() / 200)  # uniform in place of its 200 values
    if p:
        below = np.mean(np.array(p) <= 0.05)
        print(f"{len(p)} random splits: {below:.1%} have p <= .05; KS {kstest(p, 'uniform')}")
        rows.append({"case": f"{len(p)} random splits, fraction of p <= .05", "p": f"{below:.4g}"})
    with (given.o / "batches.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(numbers.astype(float).groupby(keys, sort=False).median().to_string())


if __name__ == "__main__":
    main(sys.argv[1:])
