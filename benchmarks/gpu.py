"""Fits on a device of torch beside the processor of the same machine: seconds, memory, accuracy.

Run: python benchmarks/gpu.py [--device cuda] [--seconds 220] [--only NAME ...] [--small]

Points are `overlapping`, float32, 50 features. Every row has arrays in and out, copies counted, and
is the second run of two: the first one starts the device. "processor" is the same with device=None.
Where a run takes long it is made once, after smaller ones have started and compiled everything.

- "same": 10,000 points, whose neighbours are exact in both places; the error is the largest
  difference of a coordinate, relative to the largest coordinate. It should be below 1e-5.
- "sketch": HeatSketch(32, time=8, n_neighbors=30); "pairs": eigh of 64 eigenpairs, tol 1e-4;
  "transform": as many new points as were fitted; "picture": HeatEmbedding with its verdict;
  "places": new points in this picture.
- "recall" is the measured one; "residual" the largest of the pairs; "GB" the most memory of the
  device that tensors took.

Rows that would begin after --seconds are left out, so that the script ends within four minutes:
the most important ones come first.
"""

import time
import warnings

from _harness import chosen, overlapping, parser, save, say  # first: it frees the processor's type

# isort: split
import numpy as np
import torch

import heatsketch as hs


class Bench:
    """Runs of a device and the processor, with the rows of their table."""

    def __init__(self, device, until):
        self.device, self.until, self.rows, self.points = device, until, [], {}
        self.cuda = torch.device(device).type == "cuda"

    def data(self, n):
        """Return 2 n points, the first n for the fit."""
        if n not in self.points:
            self.points[n] = overlapping(2 * n)[0]
        return self.points[n]

    def timed(self, work, device, runs):
        """Return the seconds of the last run, its result, and the peak of memory in GB."""
        for _ in range(runs):
            if self.cuda:
                torch.cuda.reset_peak_memory_stats(self.device)
            started = time.perf_counter()
            found = work(device)
            if self.cuda:
                torch.cuda.synchronize(self.device)
            seconds = time.perf_counter() - started
        peak = torch.cuda.max_memory_allocated(self.device) / 1e9 if self.cuda and device else None
        return seconds, found, peak

    def row(self, what, n, work, beside=2, facts=lambda found: {}, runs=2):
        """Add a row, unless time is up: the last of some runs, and of `beside` on the processor."""
        if time.monotonic() > self.until:
            say(f"{what}, {n:,}: left out, time is up")
            return None
        seconds, found, peak = self.timed(work, self.device, runs)
        row = {"what": what, "n": n, "device": seconds, "GB": peak, **facts(found)}
        if beside and time.monotonic() < self.until:
            row["processor"], own, _ = self.timed(work, None, beside)
            if what == "same":
                scale = np.abs(own.embedding_).max()
                row["error"] = float(np.abs(found.embedding_ - own.embedding_).max() / scale)
        self.rows.append(row)
        say(", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{v}" for k, v in row.items()))
        return found


def sketch(X):
    return lambda device: hs.HeatSketch(32, 8, n_neighbors=30, random_state=0, device=device).fit(X)


def recall_of(model):
    return {"recall": model.diagnostics_.get("recall", 1.0)}


def pairs(X):
    """Return the eigenpairs of a graph that is there already."""
    made = {}

    def work(device):
        if device not in made:
            made.clear()
            made[device] = hs.diffusion(X, device=device)
        return hs.eigh(made[device], 64, tol=1e-4, rng=0)

    return work


def residual_of(spectrum):
    return {"residual": float(np.max(np.asarray(spectrum.residuals.cpu())))}


def picture(X):
    return lambda device: hs.HeatEmbedding(random_state=0, device=device).fit(X)


def trust_of(model):
    return recall_of(model) | {"trust": model.quality_.neighbors}


def mapped(model, X):
    return lambda device: model.set_params(device=device).transform(X)


def fitted_and_new(bench, names, n, beside, runs=2):
    """Add the rows of a fit and of new points, mapped where the model was fitted."""
    X = bench.data(n)
    make, facts = (sketch, recall_of) if names[0] == "sketch" else (picture, trust_of)
    found = bench.row(names[0], n, make(X[:n]), beside, facts, runs)
    if found is not None:
        bench.row(names[1], n, mapped(found, X[n:]), beside, runs=runs)


def main():
    options = parser(__doc__)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--seconds", type=float, default=220.0)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    bench = Bench(arguments.device, time.monotonic() + arguments.seconds)
    ten, hundred, million, most = (
        (400, 700, 1200, 1300) if arguments.small else (10_000, 100_000, 1_000_000, 10_000_000)
    )
    steps = {
        "same": lambda: bench.row("same", ten, sketch(bench.data(ten)[:ten])),
        "million": lambda: fitted_and_new(bench, ("sketch", "transform"), million, 1),
        "pairs": lambda: bench.row(
            "pairs", million, pairs(bench.data(million)[:million]), 0, residual_of
        ),
        "hundred": lambda: fitted_and_new(bench, ("sketch", "transform"), hundred, 2),
        "picture": lambda: fitted_and_new(bench, ("picture", "places"), hundred, 1),
        "large picture": lambda: fitted_and_new(bench, ("picture", "places"), million, 0, 1),
        "most": lambda: bench.row("sketch", most, sketch(overlapping(most)[0]), 0, recall_of, 1),
    }
    for name in chosen(steps, arguments.only):
        if time.monotonic() < bench.until:
            steps[name]()
    if bench.cuda:
        say(torch.cuda.get_device_name(bench.device))
    print(save("gpu", bench.rows, arguments, packages=("heatsketch", "numpy", "torch")))


if __name__ == "__main__":
    main()
