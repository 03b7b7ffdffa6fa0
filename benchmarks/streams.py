"""How time and memory of `heatsketch.distributed.embed` grow with the number of points.

Run: python benchmarks/streams.py [--sizes 1000000 4000000] [--fit-points 200000] [--folder /tmp]

Points are 32 Gaussian clouds and a curve in 50 dimensions, float32, in random order, written by
blocks; the points 2i and 2i + 1 of the curve are neighbours by construction (1e-3 apart; clouds
have none so near), so that their places in the output say whether order is kept and near stays
near. Each run has a process of its own, which streams 20,000 points first. CPU seconds are those of
all threads; the peak is that of the process less what it held before, and pages of the files that
the system keeps are no part of it, since files are read and not mapped. Last row: the exponent b of
CPU seconds of mapping ∝ n^b.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

D, CLOUDS, BLOCK = 50, 32, 100_000
TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "streams.csv"


def write(path, n):
    """Write n points (n, 50); every tenth pair of rows is of the curve."""
    centres = np.random.default_rng(0).standard_normal((CLOUDS, D)) * 0.5
    waves = np.random.default_rng(1).standard_normal((2, D))
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, D))
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([2, start])
        m = min(BLOCK, n - start)
        X = centres[rng.integers(CLOUDS, size=m)] + rng.standard_normal((m, D)) / np.sqrt(
            np.arange(1, D + 1)
        )
        pairs = np.arange(0, m - 1, 20)
        t = rng.uniform(0, 2 * np.pi, len(pairs))[:, None]
        X[pairs] = 8 * (np.cos(t) * waves[0] + np.sin(t) * waves[1]) / 7
        X[pairs + 1] = X[pairs] + 1e-3 * rng.standard_normal((len(pairs), D)) / np.sqrt(D)
        out[start : start + m] = X
    out.flush()


def used():
    """Return CPU seconds and the peak of memory in MB of this process.

    Not `ru_maxrss`, which a new process has from the one that started it.
    """
    facts = resource.getrusage(resource.RUSAGE_SELF)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return facts.ru_utime + facts.ru_stime, peak / 1024


def measure(source, fit_points):
    """Stream a file in this process; print what it took, as JSON."""
    import heatsketch as hs
    from heatsketch.distributed import stream

    folder = Path(source).parent
    model = hs.HeatSketch(32, random_state=0)
    small = np.load(source, mmap_mode="r")[:20_000].copy()
    hs.distributed.embed(small, folder / "small.npy", model, fit_points=17_500)
    (folder / "small.npy").unlink()
    marks, mapped = {}, stream._map

    def timed(*args):
        marks["fitted"] = (*used(), time.monotonic())
        mapped(*args)

    stream._map = timed
    before, start = used(), time.monotonic()
    done = hs.distributed.embed(source, folder / "out.npy", model, fit_points=fit_points)
    after, end = used(), time.monotonic()
    Y = np.load(done.output, mmap_mode="r")
    pairs = np.arange(0, len(Y) - 1, 20)
    pairs = pairs[pairs % BLOCK < BLOCK - 1]
    near = np.linalg.norm(Y[pairs] - Y[pairs + 1], axis=1)
    far = np.linalg.norm(Y[pairs] - Y[np.roll(pairs, 1)], axis=1)
    rows = np.random.default_rng(3).choice(len(Y), 1000, replace=False)
    rows.sort()
    expected = done.estimator.transform(np.load(source, mmap_mode="r")[rows])
    fitted = marks["fitted"]
    print(
        json.dumps(
            {
                "points": done.n,
                "fit points": done.fit_points,
                "fit CPU s": fitted[0] - before[0],
                "map CPU s": after[0] - fitted[0],
                "seconds": end - start,
                "map seconds": end - fitted[2],
                "peak MB": after[1] - before[1],
                "before MB": before[1],
                "discrepancy": done.discrepancy,
                "near / far": float(np.median(near) / np.median(far)),
                "largest difference": float(np.abs(expected - Y[rows]).max() / np.abs(Y).max()),
            }
        )
    )


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--sizes", nargs="+", type=int, default=[1_000_000, 4_000_000])
    options.add_argument("--fit-points", type=int, default=200_000)
    options.add_argument("--folder", help="of the files, removed at the end")
    options.add_argument("--measure", help=argparse.SUPPRESS)
    options.add_argument("--table", type=Path, default=TABLE)
    arguments = options.parse_args()
    if arguments.measure:
        return measure(arguments.measure, arguments.fit_points)
    rows = []
    for n in arguments.sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            write(f"{folder}/points.npy", n)
            own = [sys.executable, __file__, "--measure", f"{folder}/points.npy"]
            own += ["--fit-points", str(arguments.fit_points)]
            said = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows.append(json.loads(said.splitlines()[-1]))
        print(rows[-1], flush=True)
    if len(rows) > 1:
        logs = [np.log([row[name] for row in rows]) for name in ("points", "map CPU s")]
        rows.append({"points": "exponent", "map CPU s": float(np.polyfit(*logs, 1)[0])})
        print(rows[-1])
    with arguments.table.open("w", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
