"""Which dimension, at which scale? For benchmarks/README.md.

Run: python benchmarks/scales.py [--points 4000]

Spectral dimension and effective rank by `heat_trace` on the default graph, with standard errors,
for a roll (a strip of 144 by 6), a flat torus and the digits of scikit-learn. For the first two
also the spectral dimension of the strip and the torus themselves, at the time at which they have
the same effective rank: a closed form without any constant to choose. Beside them `ksum` and
`intrinsic_dimension`, which look at one scale.
"""

import argparse

import numpy as np
from scipy.optimize import brentq

import heatsketch as hs

TIMES = 2.0 ** np.arange(2, 11)


def torus(n, rng):
    u, v = rng.uniform(0, 2 * np.pi, (2, n))
    return np.column_stack([np.cos(u), np.sin(u), np.cos(v), np.sin(v)])


def torus_frequencies():
    m = np.arange(-300, 301.0)
    return np.add.outer(m**2, m**2).ravel()


def strip_frequencies(length, height):
    m = np.arange(600.0)
    return np.add.outer((np.pi * m / length) ** 2, (np.pi * m / height) ** 2).ravel()


def at_rank(frequencies, rank):
    """Return the spectral dimension of Σ e^(-τ μ) at the τ at which it has this effective rank."""

    def of(log_tau):
        x = np.exp(log_tau) * frequencies
        weight = np.exp(-x)
        Z = weight.sum()
        energy = (weight * x).sum() / Z
        return np.log(Z) + energy, 2 * energy

    return of(brentq(lambda s: of(s)[0] - np.log(rank), -20, 15))[1]


def report(name, X, frequencies=None):
    trace = hs.heat_trace(hs.diffusion(X), TIMES, rng=0)
    print(f"| {name}, {len(X):,} points: effective rank |", end="")
    print(" | ".join(f" {r:.3g}" for r in trace.effective_rank), "|")
    found = zip(trace.dimension, trace.dimension_error, strict=True)
    print("| spectral dimension |", " | ".join(f"{d:.2f} ± {e:.2f}" for d, e in found), "|")
    if frequencies is not None:
        exact = [at_rank(frequencies, rank) for rank in trace.effective_rank]
        print("| of the surface itself |", " | ".join(f"{d:.2f}" for d in exact), "|")
    near = hs.intrinsic_dimension(X)
    print(f"  ksum {hs.ksum(X).dimension:.2f}, intrinsic_dimension {near.dimension:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4000)
    n, rng = parser.parse_args().points, np.random.default_rng(0)
    print("| time |", " | ".join(f"{t:g}" for t in TIMES), "|")
    roll, places = hs.datasets.swiss_roll(n, rng=0)
    report("roll", roll, strip_frequencies(*np.ptp(places, axis=0)))
    report("torus", torus(n, rng), torus_frequencies())
    report("digits", hs.datasets.digits()[0])


if __name__ == "__main__":
    main()
