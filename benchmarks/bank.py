"""What do ten diffusion times cost together? One Chebyshev pass against plain powers.

Run: python benchmarks/bank.py [--small]

Points: a Swiss roll of 200,000 points (--small: 20,000), graph of 30 neighbours, trivial
eigenvector taken out, 64 columns, times 2, 4, ..., 1024 with the same G. Plain powers take 1,024
products; the first 64 of them are timed, and the time is multiplied by 16. Products count blocks,
not the 40 single columns that find the ends of the spectrum.
"""

import time

import _harness as harness
import numpy as np

import heatsketch as hs
from heatsketch.spectral.functions import apply

TIMES = tuple(2**i for i in range(1, 11))
COLUMNS = 64
TIMED = 64  # plain products


def measure(n):
    """Yield rows: plain powers, then a bank of each filter at each tolerance."""
    X = hs.datasets.swiss_roll(n, rng=0)[0].astype(np.float32)
    diffusion = hs.Diffusion.from_points(X, n_neighbors=30)
    A = diffusion.operator
    G = np.random.default_rng(1).standard_normal((n, COLUMNS)).astype(A.dtype)
    V = diffusion.deflated
    G = V.project(G)
    start = time.perf_counter()
    current = G
    for _ in range(TIMED):
        current = A @ current
    plain = (time.perf_counter() - start) * TIMES[-1] / TIMED
    yield {"filter": "power", "tol": "products", "products": TIMES[-1], "seconds": round(plain, 1)}
    for name, make in (("power", hs.Power), ("heat", hs.Heat)):
        for tol in (None, 1e-6, 1e-3):
            count = harness.Counting(A)
            start = time.perf_counter()
            apply([make(t) for t in TIMES], hs.Deflated(count, V.V), G, tol)
            seconds = time.perf_counter() - start
            yield {
                "filter": name,
                "tol": "rounding" if tol is None else tol,
                "products": count.products,
                "seconds": round(seconds, 1),
                "share of plain": round(seconds / plain, 3),
            }


def main():
    arguments = harness.parser(__doc__).parse_args()
    rows = []
    for row in measure(20_000 if arguments.small else 200_000):
        rows.append(row)
        harness.say(row)
    print(harness.save("bank", rows, arguments))


if __name__ == "__main__":
    main()
