"""What the bistochastic normalisation costs beside the symmetric one, and in products.

Run: python benchmarks/normalize.py [--small]

The affinity of the 30 nearest neighbours with self-tuning bandwidths of the two data sets of
end_to_end.py. "scaling": seconds of the scaling alone, two products for the symmetric one, as many
as it takes until no row sum is off by more than 1e-8 for the bistochastic one. "all": the whole
step from the affinity to the diffusion, with components and certificates. Medians of --repeats
processes; the scaling is timed the second time, the whole step after it.
"""

import _harness as harness
import numpy as np

import heatsketch as hs
from heatsketch.core.operators import Operator
from heatsketch.markov.affinity import knn_affinity
from heatsketch.markov.normalization import bistochastic_scaling, markov_scaling

SIZES = {"overlapping": 100_000, "roll": 50_000}
SMALL, TOLERANCE = 3_000, 1e-8
SCALINGS = {
    "symmetric": lambda K: markov_scaling(K, 1.0),
    "bistochastic": lambda K: bistochastic_scaling(K, TOLERANCE),
}


class Counted(Operator):
    """An operator that counts its products."""

    def __init__(self, A):
        self.A, self.products = A, 0
        self.n, self.dtype, self.spectrum = A.n, A.dtype, A.spectrum

    def _matmul(self, X):
        self.products += 1
        return self.A @ X


def measure(data, n, turn):
    X, _ = harness.draw(data, n)
    K = knn_affinity(X, "self-tuning", 30).operator
    found = {}
    for name, scaling in SCALINGS.items():
        counted = Counted(K)
        scaled = scaling(counted)
        found[f"{name} products"] = counted.products
        found[f"{name} scaling s"] = harness.timed(scaling, K)[0]
        whole = hs.Diffusion.from_affinity(K, normalization=name, tol=TOLERANCE)
        found[f"{name} all s"] = whole.diagnostics["normalize_seconds"]
    found["row sums off by"] = float(np.abs(scaled.s * (K @ scaled.s) - 1).max())
    for part in ("scaling", "all"):
        found[f"ratio, {part}"] = found[f"bistochastic {part} s"] / found[f"symmetric {part} s"]
    return found


def main():
    arguments = harness.parser(__doc__).parse_args()
    tasks = {data: (measure, data, SMALL if arguments.small else n) for data, n in SIZES.items()}
    found = harness.repeated(tasks, arguments)
    rows = [{"data": data} | harness.medians(results) for data, results in found.items()]
    print(harness.save("normalize", rows, arguments))


if __name__ == "__main__":
    main()
