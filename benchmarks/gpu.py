"""Products on a device of torch: how near to what the device can do?

Run: python benchmarks/gpu.py [--points 1000000] [--device cuda] [--sides 2048 4096 8192] [--small]

n standard normal points in d dimensions, epsilon = d, a block of k columns, float32.

- "kernel": the exact dense product of `TorchKernel`, for each side of a tile, and of KeOps where it
  is installed. "matrix products" are the seconds that 2 n² (d + 2 + k) operations take at the rate
  of a product of two square matrices of float32 (no TensorFloat-32) on the same device: a floor for
  ways that use such products. docs/howto/gpu.md has a floor for ways that use shorter numbers.
- "graph": a product by a CSR matrix with 32 entries a row in random places, in the worst order.

Every time is the best of --repeats after one to warm up. The error is the largest over the largest
entry of the product, of 100 rows in float64.
"""

import time

from _harness import parser, save, say  # first: it frees the processor's type

# isort: split
import numpy as np
import torch
from scipy import sparse
from scipy.spatial.distance import cdist

import heatsketch as hs
from heatsketch.operators import torch as on_torch
from heatsketch.operators.blocks import full_precision

CHECKED = 100  # rows compared with float64
ENTRIES = 32  # of a row of the graph


def waited(work, device):
    """Return the seconds of `work`, with all it has started."""
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def best(work, device, repeats):
    """Return the least seconds of some runs after one to warm up."""
    waited(work, device)
    return min(waited(work, device) for _ in range(repeats))


def rate(device, side):
    """Return operations a second of a product of matrices in float32."""
    M = torch.randn(side, side, device=device)
    with full_precision(device):
        return 2 * side**3 / best(lambda: M @ M, device, 3)


def error_of(Y, x, V, epsilon):
    """Return the largest error of the first rows, next to the largest entry."""
    exact = np.exp(-cdist(x[:CHECKED], x, "sqeuclidean") / epsilon) @ V.astype(float)
    return float(np.abs(Y[:CHECKED].double().cpu().numpy() - exact).max() / np.abs(exact).max())


def with_keops(points, block, epsilon):
    """Return the product by KeOps, or None where it is missing."""
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return None
    x, y = LazyTensor(points[:, None]), LazyTensor(points[None])
    kernel = (-((x - y) ** 2).sum(-1) / epsilon).exp()
    return lambda: kernel @ block


def kernels(n, d, k, device, arguments):
    """Return the rows of the exact dense product."""
    rng = np.random.default_rng(0)
    x, V = (rng.standard_normal((n, width)).astype(np.float32) for width in (d, k))
    points, block = (torch.from_numpy(X).to(device) for X in (x, V))
    K = hs.TorchKernel(points, float(d))
    floor = 2 * n**2 * (d + 2 + k) / rate(device, min(8192, max(512, n)))
    common = {"n": n, "d": d, "k": k, "matrix products": floor}
    rows = []
    for side in arguments.sides:
        on_torch.TILE_SIDE = on_torch.DEVICE_TILE_SIDE = side
        seconds = best(lambda: K @ block, device, arguments.repeats)
        error = error_of(K @ block, x, V, d)
        rows.append({"what": f"kernel, tiles {side}", **common, "seconds": seconds, "error": error})
        say(f"tiles of {side}: {seconds:.3f} s, error {error:.1e}")
    keops = with_keops(points, block, float(d))
    if keops is not None:
        seconds = best(keops, device, arguments.repeats)
        error = error_of(keops(), x, V, d)
        rows.append({"what": "KeOps", **common, "seconds": seconds, "error": error})
    return rows


def graph(n, k, device, arguments):
    """Return the row of a product by a sparse matrix."""
    rng = np.random.default_rng(1)
    columns = rng.integers(0, n, size=n * ENTRIES).astype(np.int32)
    starts = np.arange(0, n * ENTRIES + 1, ENTRIES)
    M = sparse.csr_matrix((np.ones(n * ENTRIES, np.float32), columns, starts), shape=(n, n))
    A = hs.TorchSparse(M, device=device)
    block = torch.randn(n, k, device=device)
    seconds = best(lambda: A @ block, device, arguments.repeats)
    exact = M[:CHECKED].astype(float) @ block.double().cpu().numpy()
    found = (A @ block)[:CHECKED].double().cpu().numpy()
    error = float(np.abs(found - exact).max() / np.abs(exact).max())
    return {"what": "graph", "n": n, "k": k, "seconds": seconds, "error": error}


def main():
    options = parser(__doc__, repeats=3)
    options.add_argument("--points", type=int, default=1_000_000)
    options.add_argument("--features", type=int, default=10)
    options.add_argument("--columns", type=int, default=64)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--sides", type=int, nargs="+", default=[2048, 4096, 8192])
    arguments = options.parse_args()
    device = torch.device(arguments.device)
    n = 2_000 if arguments.small else arguments.points
    d, k = arguments.features, arguments.columns
    only = arguments.only or ["kernel", "graph"]
    rows = kernels(n, d, k, device, arguments) if "kernel" in only else []
    rows += [graph(n, k, device, arguments)] if "graph" in only else []
    if device.type == "cuda":
        say(torch.cuda.get_device_name(device))
    print(save("gpu", rows, arguments, packages=("heatsketch", "numpy", "torch", "pykeops")))


if __name__ == "__main__":
    main()
