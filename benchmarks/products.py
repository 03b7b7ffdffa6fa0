"""How many products does A^p G take, and what is lost? Plain products against Chebyshev series.

Run: python benchmarks/products.py [--small]

Points: a Swiss roll of 20,000 points (--small: 3,000), graph of 30 neighbours, trivial eigenvector
taken out, 32 columns. Each power alone on [-1, 1], which is what is known of any normalised graph,
and on the interval that 40 Lanczos steps find (single columns, not counted among the products);
then the bank 2, 4, ..., 1024 in one recurrence, where plain products take 1,024. Errors are those
of distances between rows, relative to plain products: near pairs are the nearest neighbours of
5,000 points, far pairs 20,000 random ones.
"""

import _harness as harness
import numpy as np
from scipy.spatial import cKDTree

import heatsketch as hs
from heatsketch.spectral.functions import _by_chebyshev

POWERS = (16, 64, 256, 1024)
BANK = tuple(2**i for i in range(1, 11))
COLUMNS = 32
HEADS = (
    "p",
    "tol",
    "interval",
    "products",
    "saving",
    "near pairs, median",
    "near pairs, largest",
    "far pairs, median",
    "far pairs, largest",
)


def pairs(X):
    """Return near and far pairs (i, j)."""
    rng = np.random.default_rng(0)
    i = rng.choice(len(X), min(5000, len(X)), replace=False)
    near = i, cKDTree(X).query(X[i], k=2)[1][:, 1]
    far = rng.integers(0, len(X), (2, 20_000))
    return near, far[:, far[0] != far[1]]


def distances(block, pairs):
    """Return the distances between rows."""
    i, j = pairs
    return np.linalg.norm(block[i] - block[j], axis=1)


def errors(block, exact, near, far):
    """Return median and largest relative error of distances of near pairs, then of far ones."""
    figures = []
    for chosen in (near, far):
        wrong = np.abs(distances(block, chosen) / distances(exact, chosen) - 1)
        figures += [float(np.median(wrong)), float(wrong.max())]
    return figures


def plain_products(A, X):
    """Return A^p X for every p of the bank and of POWERS."""
    exact, current, wanted = {}, X, {*BANK, *POWERS}
    for p in range(1, max(wanted) + 1):
        current = A @ current
        if p in wanted:
            exact[p] = current
    return exact


def measure(n):
    """Yield a row of figures for every power, tolerance and interval, then for the bank."""
    X = hs.datasets.swiss_roll(n, rng=0)[0]
    diffusion = hs.Diffusion.from_points(X, n_neighbors=30)
    A = diffusion.deflated
    G = A.project(np.random.default_rng(1).standard_normal((n, COLUMNS)))
    near, far = (diffusion.expand(np.arange(n))[np.array(ends)] for ends in pairs(X))
    exact = plain_products(A, G)
    intervals = {"known": (-1.0, 1.0), "Lanczos": A.ends[0]}
    for powers in [(p,) for p in POWERS] + [BANK]:
        for tol in (1e-3, 1e-6):
            for name, interval in intervals.items():
                count = harness.Counting(A, interval)
                bank = [hs.Power(p) for p in powers]
                count.ends = interval, interval
                blocks = _by_chebyshev(bank, count, G, tol)
                saving = max(powers) / count.products
                for p, block in zip(powers, blocks, strict=True):
                    figures = errors(block, exact[p], near, far)
                    label = name if len(powers) == 1 else f"{name}, bank"
                    yield [p, tol, label, count.products, saving, *figures]


def main():
    arguments = harness.parser(__doc__).parse_args()
    rows = []
    for figures in measure(3_000 if arguments.small else 20_000):
        rows.append(dict(zip(HEADS, figures, strict=True)))
        harness.say(rows[-1])
    print(harness.save("products", rows, arguments))


if __name__ == "__main__":
    main()
