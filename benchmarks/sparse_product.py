"""A sparse matrix times a block: how near to the limits of the machine, beside SciPy.

Run: python benchmarks/sparse_product.py [--small]

The symmetrised graph of the 30 nearest neighbours of a Swiss roll of 400,000 points, times blocks
of 8, 32, 64 and 128 columns, in float32 and float64 with int32 indices. "given": the points in
random order, for which the vertices are renumbered; "and moved" is a single product that also
permutes the block to vertices and back (filters and eigenpairs do so once for all products).
"local": rows and columns in reverse Cuthill-McKee order. Columns: milliseconds (the median of
--repeats processes of the least of 5 products in each, after a first one), SciPy's over ours; rate;
the bytes that must be moved at least once (matrix and block read, product written) per second, and
that as a share of the measured rate at which all threads together sum an array of 1 GB.
"""

from concurrent.futures import ThreadPoolExecutor

import _harness as harness
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import cKDTree

import heatsketch as hs
from heatsketch.core.blocks import inverse_permutation

POINTS, SMALL, K, PRODUCTS = 400_000, 5_000, 30, 5
WIDTHS, TYPES, ORDERS = (8, 32, 64, 128), ("float32", "float64"), ("given", "local")
READ_BYTES = 2**30


def graph(n, dtype, order):
    """Return the symmetrised graph, entries 1/√(degree degree), CSR with int32 indices."""
    X, _ = harness.draw("roll", n)
    indices = cKDTree(X).query(X, K + 1, workers=-1)[1][:, 1:]
    starts = np.arange(0, indices.size + 1, K)
    one_sided = sparse.csr_matrix((np.ones(indices.size), indices.ravel(), starts), shape=(n, n))
    A = one_sided.maximum(one_sided.T)
    root = sparse.diags(1 / np.sqrt(np.asarray(A.sum(axis=1)).ravel()))
    A = sparse.csr_matrix(root @ A @ root, dtype=dtype)
    if order == "local":
        permutation = reverse_cuthill_mckee(A, symmetric_mode=True)
        A = A[permutation][:, permutation]
    A.sort_indices()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return A


def read_rate(n_bytes):
    """Return the bytes a second at which all threads together sum an array, best of 5."""
    parts = np.array_split(np.ones(n_bytes // 8), harness.n_threads())
    with ThreadPoolExecutor(len(parts)) as pool:
        return n_bytes / min(
            harness.timed(lambda: list(pool.map(np.sum, parts)))[0] for _ in range(5)
        )


def measure(n, dtype, order, turn):
    """Return {(library, columns): seconds} on one matrix, and what it stores."""
    matrix = graph(n, dtype, order)
    operator, vertex = hs.Sparse(matrix).near_order()
    inputs = inverse_permutation(vertex)
    products = {
        "heatsketch": lambda X: operator @ X,
        "moved": lambda X: (operator @ X[inputs])[vertex],
        "SciPy": lambda X: matrix @ X,
    }
    found = {"nnz": matrix.nnz}
    for k in WIDTHS:
        X = np.random.default_rng(0).standard_normal((n, k)).astype(dtype)
        for name, product in products.items():
            product(X)  # compiling, page faults
            found[f"{name} {k}"] = min(harness.timed(product, X)[0] for _ in range(PRODUCTS))
    return found


def least_bytes(n, nnz, k, itemsize):
    """Return the bytes of the matrix, of the block read and of the product written."""
    return nnz * (itemsize + 4) + 4 * (n + 1) + 2 * n * k * itemsize


def rows_of(n, results, bandwidth):
    for dtype in TYPES:
        for order in ORDERS:
            for k in WIDTHS:
                yield row_of(n, dtype, order, k, results, bandwidth)


def row_of(n, dtype, order, k, results, bandwidth):
    found = results[dtype, order]
    row = {"type": dtype, "order": order, "columns": k}
    if found.get("note"):
        return row | {"note": found["note"]}
    seconds, nnz = found[f"heatsketch {k}"], found["nnz"]
    rate = least_bytes(n, nnz, k, np.dtype(dtype).itemsize) / seconds
    return row | {
        "heatsketch ms": 1e3 * seconds,
        "and moved ms": 1e3 * found[f"moved {k}"],
        "SciPy ms": 1e3 * found[f"SciPy {k}"],
        "ratio": found[f"SciPy {k}"] / seconds,
        "GFLOP/s": 2e-9 * nnz * k / seconds,
        "GB/s": 1e-9 * rate,
        "share of read rate": rate / bandwidth,
    }


def main():
    arguments = harness.parser(__doc__, repeats=3).parse_args()
    n = SMALL if arguments.small else POINTS
    tasks = {(dtype, order): (measure, n, dtype, order) for dtype in TYPES for order in ORDERS}
    found = harness.repeated(tasks, arguments)
    results = {key: harness.medians(values) for key, values in found.items()}
    bandwidth = read_rate(READ_BYTES // 16 if arguments.small else READ_BYTES)
    rows = [row | {"read GB/s": 1e-9 * bandwidth} for row in rows_of(n, results, bandwidth)]
    print(harness.save("sparse_product", rows, arguments))


if __name__ == "__main__":
    main()
