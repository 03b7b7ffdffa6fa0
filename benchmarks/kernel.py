"""The fused product of the Gaussian kernel: which share of the rate of a matrix product?

Run: python benchmarks/kernel.py [--small] [--repeats 5]

n standard normal points in d dimensions, epsilon = d, a block of k columns. "share" is
2 n² (d + k) operations over the seconds, next to the rate of a product of two 3000 x 3000 matrices
of the same precision in the same rounds, all threads. Naive NumPy forms the n x n matrix (timed
once); tiled NumPy goes through tiles of 512 rows with np.exp. Each round times every way in turn;
the medians are shown. The error is the largest over the largest entry of the product in float64.
"""

import statistics

from _harness import chosen, parser, save, say, timed  # first: it frees the processor's type

# isort: split
import numpy as np
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch._threads import for_each_tile

SIZES = ((3, 16), (10, 16), (10, 64), (50, 64))
CHECKED = 500  # rows compared with float64


def gaussian(x, y, epsilon):
    """Return exp(-|x - y|² / epsilon) from the Gram form, in NumPy."""
    block = x @ y.T
    block *= 2
    block -= (x * x).sum(1)[:, None]
    block -= (y * y).sum(1)
    block /= epsilon
    return np.exp(block, out=block)


def tiled(X, V, epsilon):
    """Multiply in tiles of 512 rows."""
    Y = np.empty_like(V)

    def work(rows):
        Y[rows] = gaussian(X[rows], X, epsilon) @ V

    for_each_tile(work, len(X), 512)
    return Y


def measure(n, d, k, dtype, repeats, side):
    """Return a row of the table."""
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
    M = rng.standard_normal((side, side)).astype(dtype)
    epsilon = dtype(d)
    kernel = hs.Kernel(X, float(epsilon))
    Y = kernel @ V  # compiled
    ways = {
        "matrix product": lambda: M @ M,
        "fused": lambda: kernel @ V,
        "tiled": lambda: tiled(X, V, epsilon),
    }
    seconds = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            seconds[name].append(timed(way)[0])
    gemm, fused, tiles = (statistics.median(seconds[name]) for name in ways)
    naive = timed(lambda: gaussian(X, X, epsilon) @ V)[0]
    x = X.astype(float)
    exact = np.exp(-cdist(x[:CHECKED], x, "sqeuclidean") / d) @ V.astype(float)
    rate = 2 * side**3 / gemm
    return {
        "d": d,
        "k": k,
        "precision": np.dtype(dtype).name,
        "seconds": fused,
        "matrix product, GF/s": rate / 1e9,
        "share": 2 * n**2 * (d + k) / fused / rate,
        "naive NumPy / fused": naive / fused,
        "tiled NumPy / fused": tiles / fused,
        "error": float(np.abs(Y[:CHECKED] - exact).max() / np.abs(exact).max()),
        "bound on the exponent": kernel.exponent_error,
    }


def main():
    arguments = parser(__doc__).parse_args()
    n, side = (2_000, 500) if arguments.small else (20_000, 3_000)
    names = {f"{d}-{k}-{t.__name__}": (d, k, t) for d, k in SIZES for t in (np.float32, np.float64)}
    rows = []
    for name in chosen(names, arguments.only):
        rows.append(measure(n, *names[name], arguments.repeats, side))
        say(f"{name}: {rows[-1]['seconds']:.3f} s, share {rows[-1]['share']:.2f}")
    print(save("kernel", rows, arguments))


if __name__ == "__main__":
    main()
