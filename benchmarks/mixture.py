"""The mixture's feature map: coordinates for an accuracy, seconds and memory of new points.

Run: python benchmarks/mixture.py [--small] [--only squares]

"squares": Example I of *Diffusion representation*, 2,000 points in raw units, ε = 1, a mixture
chosen by BIC. "ten": 20 components of different covariances in 10 dimensions, at several ε (as
multiples of half the median squared distance). Columns: the number of coordinates at which the
error of all distances is certified to be at most 1 % of the root mean square distance; the largest
error found among 500 points.

Second table: `transform` of many points in 10 dimensions with 20 components and 64 coordinates,
compared with scikit-learn's `Nystroem` with as many components.
"""

import _harness as harness
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.kernel_approximation import Nystroem
from sklearn.mixture import GaussianMixture

import heatsketch as hs
from heatsketch.mixture import CholeskyMap
from heatsketch.scales import rule_epsilon

TOLERANCE = 0.01
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
SIZES, SMALL_SIZES = (10_000, 100_000, 1_000_000), (1000, 3000)
COORDINATES = 64
COMPONENTS, DIM = 20, 10


def squares(n, seed=0):
    """Return points of Example I: 1/5 in [0, 1]², 4/5 in [3, 4]²."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 2)) + 3 * (rng.random(n) < 0.8)[:, None]


def ten(n, seed=0):
    """Return the mixture (weights, means, covariances) and n points of it."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(COMPONENTS, DIM, DIM))
    covariances = A @ A.swapaxes(1, 2) / DIM
    means, weights = rng.normal(size=(COMPONENTS, DIM)), rng.dirichlet(np.full(COMPONENTS, 5.0))
    rng = np.random.default_rng(seed)
    label = rng.choice(COMPONENTS, size=n, p=weights)
    noise = rng.normal(size=(n, DIM))
    X = means[label] + np.einsum("nab,nb->na", np.linalg.cholesky(covariances)[label], noise)
    return (weights, means, covariances), X


def certified(data, kernel, X):
    """Return the table row of one kernel: coordinates and errors."""
    checked = X[:500]
    d = np.sqrt(kernel.squared_distance(checked, checked)[np.triu_indices(len(checked), 1)])
    typical = float(np.sqrt(np.mean(d**2)))
    seconds, features = harness.timed(
        lambda: CholeskyMap(2000).fit(kernel, tolerance=TOLERANCE * typical, points=X)
    )
    found = float(np.abs(d - pdist(features.transform(checked))).max()) / typical
    return {
        "data": data,
        "points": len(X),
        "components": kernel.n_components,
        "epsilon": float(kernel.epsilon),
        "coordinates": features.n_features,
        "certified %": 100 * features.error_bound / typical,
        "found %": 100 * found,
        "seconds": seconds,
    }


def of_squares(n, turn):
    X = squares(n)
    fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 17)]
    best = min(fits, key=lambda fitted: fitted.bic(X))
    return certified("squares", hs.MixtureKernel.from_sklearn(best, 1.0), X)


def of_ten(n, factor, turn):
    mixture, X = ten(n)
    epsilon = factor * rule_epsilon(X, "median") / 2
    return certified(f"ten, {factor:g} of the rule", hs.MixtureKernel(*mixture, epsilon), X)


def of_transform(method, n, turn):
    """Time `transform` of n points by a map of 64 coordinates."""
    mixture, X = ten(n, seed=1)
    _, old = ten(4000)
    epsilon = rule_epsilon(old, "median") / 2
    if method == "Nystroem":
        fitted = Nystroem(gamma=1 / (2 * epsilon), n_components=COORDINATES, random_state=0)
        fitted.fit(old)
    else:
        with harness.warnings.catch_warnings():
            harness.warnings.simplefilter("ignore")  # the tolerance is out of reach on purpose
            kernel = hs.MixtureKernel(*mixture, epsilon)
            fitted = CholeskyMap(COORDINATES).fit(kernel, tolerance=1e-12, points=old)
    fitted.transform(X[:2000])
    before = harness.peak_memory()
    seconds, Y = harness.timed(fitted.transform, X)
    output = (X.nbytes + Y.nbytes) / 2**20
    return {
        "seconds": seconds,
        "peak MB": harness.peak_memory(),
        "before MB": before,
        "of it data and result MB": output,
    }


def main():
    arguments = harness.parser(__doc__, repeats=3).parse_args()
    small = arguments.small
    n = 500 if small else 2000
    tasks = {"squares": (of_squares, n)}
    tasks |= {f"ten {factor:g}": (of_ten, n, factor) for factor in FACTORS}
    tasks = {name: tasks[name] for name in harness.chosen(tasks, arguments.only)}
    rows = []
    for name, task in tasks.items():
        result = harness.run_apart(*task, 0, limit=arguments.limit)
        harness.say(f"{name}: {result}")
        rows.append({"data": name} | result)
    if rows:
        print(harness.save("mixture", rows, arguments))
    rows = []
    for size in SMALL_SIZES if small else SIZES:
        methods = harness.chosen(["heatsketch", "Nystroem"], arguments.only)
        tasks = {method: (of_transform, method, size) for method in methods}
        found = harness.repeated(tasks, arguments, f"transform {size}")
        for method, results in found.items():
            rows.append({"method": method, "points": size} | harness.medians(results))
    if rows:
        print(harness.save("mixture_transform", rows, arguments))


if __name__ == "__main__":
    main()
