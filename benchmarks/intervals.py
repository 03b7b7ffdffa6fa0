"""How often do intervals hold what they should? The tables of docs/uncertainty.md.

Run: python benchmarks/intervals.py [--sketches 800] [--samples 60]

First table: `sketch_interval` with 95 % on sketches of 31 random rows of 400 coordinates whose
sizes fall as e^(-j/60), for five statistics. Second table: the standard deviation of the distance
of two given points over samples of 400 points of a noisy circle, beside that over random weights.
"""

import argparse

import numpy as np

import heatsketch as hs
from heatsketch.markov.diffusion import reweighted, times_columns


def distance(Y):
    return np.linalg.norm(Y[1] - Y[0])


def ratio(Y):
    return distance(Y) / np.linalg.norm(Y[2] - Y[0])


def all_from_first(Y):
    return np.linalg.norm(Y[1:] - Y[0], axis=1)


STATISTICS = {
    "distance": distance,
    "ratio": ratio,
    "mean": lambda Y: (all_from_first(Y) ** 2).mean(),
    "nearest": lambda Y: all_from_first(Y).min(),
    "spread of logs": lambda Y: np.log(all_from_first(Y)).std(),
}


def of_columns(k, sketches):
    """Return the share of sketches of k columns whose interval holds each statistic."""
    R = np.random.default_rng(5).normal(size=(31, 400)) * np.exp(-np.arange(400) / 60)
    held, rng = np.zeros(len(STATISTICS)), np.random.default_rng(k)
    true = np.array([statistic(R) for statistic in STATISTICS.values()])

    def all_of_them(Y):
        return np.array([statistic(Y) for statistic in STATISTICS.values()])

    for seed in range(sketches):
        F = R @ rng.standard_normal((400, k)) / np.sqrt(k)
        found = hs.sketch_interval(F, all_of_them, rng=seed)
        held += (found.low <= true) & (true <= found.high)
    return held / sketches


ENDS = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0]])


def noisy_circle(rng, n=400):
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 0.1 * rng.normal(size=n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), 0.1 * rng.normal(size=n)]


def exact(diffusion, rows, time=8):
    """Return the distances of the first of three points from the others, without a sketch."""
    root = np.sqrt(diffusion.measure)
    A = diffusion.operator @ np.eye(diffusion.n) - np.outer(root, root)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    R = rows @ np.linalg.matrix_power(A, time - 1) / (rows @ root)[:, None]
    return np.linalg.norm(R[1:] - R[0], axis=1)


def of_points(samples, **options):
    """Return the standard deviation over samples, and over weights of the points of 8 of them."""
    rng, found, drawn = np.random.default_rng(0), [], []
    for sample in range(samples):
        d = hs.Diffusion.from_points(noisy_circle(rng), **options)
        rows = d.kernel_rows(ENDS)
        found.append(exact(d, rows))
        if sample < 8:
            weighed = [reweighted(d, rng.standard_exponential(d.n)) for _ in range(40)]
            values = [exact(new, times_columns(rows, columns)) for new, columns in weighed]
            drawn.append(np.std(values, axis=0))
    return np.std(found, axis=0), np.mean(drawn, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sketches", type=int, default=800)
    parser.add_argument("--samples", type=int, default=60)
    args = parser.parse_args()
    print(f"{'columns':>8}", *(f"{name:>14}" for name in STATISTICS))
    for k in (16, 32, 64, 128):
        shares = of_columns(k, args.sketches)
        print(f"{k:8}", *(f"{share:14.1%}" for share in shares), flush=True)
    for name, options in {"default": {}, "dense": {"affinity": "dense", "epsilon": 0.2}}.items():
        of_samples, of_weights = of_points(args.samples, **options)
        print(f"{name}: over samples {of_samples.round(3)}, over weights {of_weights.round(3)}")


if __name__ == "__main__":
    main()
