"""How time and memory of `heatsketch.distributed.embed` grow with the number of points.

Run: python benchmarks/streams.py [--points 1000000 4000000] [--fit-points 200000] [--kill 3]
     [--columns 32] [--folder /tmp] [--record]

Points are 32 Gaussian clouds and a curve in 50 dimensions, float32, in random order, all distinct,
written by blocks (20,000,000 take 4 GB); the points 2i and 2i + 1 of the curve are neighbours by
construction (1e-3 apart; clouds have none so near), so that their places in the output say whether
order is kept and near stays near.

Each run is a process of its own, which streams 20,000 points first. CPU seconds are those of all
threads. The peak is that of RssAnon, read every 20 ms, less what the process held before: pages of
the files that the system keeps are no part of it, since files are read and not mapped. 1,000 rows
are compared with `transform` of the same points in memory, by the model that was kept. With --kill
each size is embedded a second time, by a run that is killed at so many random moments and resumed,
and its output compared byte for byte. The last row: the exponent b of CPU seconds of mapping ∝ n^b.
With --record the rows are added to docs/benchmarks/streams.csv, as the machine was then.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

D, CLOUDS, BLOCK = 50, 32, 100_000
TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "streams.csv"
SAMPLED_SECONDS = 0.02


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


def cpu():
    """Return the CPU seconds of this process."""
    facts = resource.getrusage(resource.RUSAGE_SELF)
    return facts.ru_utime + facts.ru_stime


def anonymous(process):
    """Return the MB of memory of a process that no file backs; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith("RssAnon:")), 0.0)


def run(source, output, fit_points, columns, resume):
    """Stream a file in this process; print when it begins and what it took, as JSON."""
    import heatsketch as hs
    from heatsketch import distributed

    warnings.simplefilter("ignore", hs.DisconnectedWarning)  # clouds are apart
    model = hs.HeatSketch(columns, random_state=0)
    with tempfile.TemporaryDirectory(dir=Path(output).parent) as folder:
        small = np.load(source, mmap_mode="r")[:20_000].copy()
        hs.distributed.embed(small, f"{folder}/small.npy", model, fit_points=17_500)
    marks, mapped = {}, distributed._map

    def timed(*args):
        marks["fitted"] = cpu(), time.monotonic()
        mapped(*args)

    distributed._map = timed
    before, start = cpu(), time.monotonic()
    print(json.dumps({"before MB": anonymous(os.getpid())}), flush=True)
    done = hs.distributed.embed(
        source, output, model, fit_points=fit_points, resume=resume, model=f"{output}.model"
    )
    fitted, end = marks["fitted"], time.monotonic()
    told = {
        "points": done.n,
        "fit points": done.fit_points,
        "fit CPU s": fitted[0] - before,
        "map CPU s": cpu() - fitted[0],
        "seconds": end - start,
        "map seconds": end - fitted[1],
        "discrepancy": done.discrepancy,
    }
    print(json.dumps(told), flush=True)


def watched(source, output, options, ends=lambda _: False, resume=False):
    """Stream in a process of its own, killed when it `ends`; return what it told, or None.

    With it the peak of its memory beyond what it held before, in MB.
    """
    own = [sys.executable, __file__, "--run", source, output, "--columns", str(options.columns)]
    own += ["--fit-points", str(options.fit_points), *(["--resume"] if resume else [])]
    with subprocess.Popen(own, stdout=subprocess.PIPE, text=True) as process:
        begun = json.loads(process.stdout.readline())
        start, peak = time.monotonic(), 0.0
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            if ends(time.monotonic() - start):
                process.kill()
                process.wait()
                return None
            time.sleep(SAMPLED_SECONDS)
        said = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    return json.loads(said) | {"peak MB": peak - begun["before MB"]} | begun


def compared(source, output):
    """Return how near neighbours on the curve are, and how 1,000 rows differ from `transform`."""
    import heatsketch as hs

    X, Y = np.load(source, mmap_mode="r"), np.load(output, mmap_mode="r")
    rng = np.random.default_rng(3)
    pairs = np.arange(0, len(Y) - 1, 20)
    pairs = pairs[pairs % BLOCK < BLOCK - 1]
    pairs = np.sort(rng.choice(pairs, min(len(pairs), 100_000), replace=False))
    near = np.linalg.norm(Y[pairs] - Y[pairs + 1], axis=1)
    far = np.linalg.norm(Y[pairs] - Y[np.roll(pairs, 1)], axis=1)
    rows = np.sort(rng.choice(len(Y), 1000, replace=False))
    expected = hs.load_model(f"{output}.model").transform(X[rows])
    return {
        "near / far": float(np.median(near) / np.median(far)),
        "largest difference": float(np.abs(expected - Y[rows]).max() / np.abs(expected).max()),
    }


def killed(source, output, whole, options, known):
    """Stream once more, killed at random moments and resumed; say whether the bytes are the same.

    The moments are uniform in the seconds of the run without a break: in its fit so many seconds
    after the beginning, in its mapping when so many blocks are kept, and some milliseconds.
    """
    fitting = known["seconds"] - known["map seconds"]
    rng, parts = np.random.default_rng(), Path(f"{output}.partial", "parts")
    told, times = None, 0
    for moment in np.sort(rng.uniform(0, known["seconds"], options.kill)):
        share = (moment - fitting) / known["map seconds"]
        wanted, late = int(share * known["points"] / 65_536), rng.uniform(0, 0.1)

        def ends(seconds, moment=moment, wanted=wanted, late=late):
            if moment < fitting:
                return seconds > moment
            if not parts.is_dir() or len(list(parts.glob("part-*"))) < wanted:
                return False
            time.sleep(late)
            return True

        told = watched(source, output, options, ends, resume=True)
        if told is not None:  # it was faster
            break
        times += 1
        print(f"killed with {len(list(parts.glob('part-*')))} blocks kept", flush=True)
    if told is None:
        watched(source, output, options, resume=True)
    same = subprocess.run(["cmp", "-s", output, whole], check=False).returncode == 0
    return f"{times} times: {'the same bytes' if same else 'OTHER BYTES'}"


def measure(n, options):
    """Make a file, embed it, compare, and kill; return the row of the table."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source, output = f"{folder}/points.npy", f"{folder}/out.npy"
        write(source, n)
        row = watched(source, output, options)
        row |= compared(source, output)
        if options.kill:
            again = f"{folder}/again.npy"
            row["killed"] = killed(source, again, output, options, row)
        return row


def record(rows):
    """Add rows to the table; those of other columns get them."""
    known = list(csv.DictReader(TABLE.open(newline=""))) if TABLE.exists() else []
    columns = dict.fromkeys(name for row in [*known, *rows] for name in row)
    with TABLE.open("w", newline="") as distributed:
        table = csv.DictWriter(distributed, list(columns), lineterminator="\n")
        table.writeheader()
        table.writerows([*known, *rows])


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--points", nargs="+", type=int, default=[1_000_000, 4_000_000])
    options.add_argument("--fit-points", type=int, default=200_000)
    options.add_argument("--columns", type=int, default=32)
    options.add_argument("--kill", type=int, default=0, metavar="TIMES")
    options.add_argument("--folder", help="of the files, removed at the end")
    options.add_argument("--record", action="store_true", help="add the rows to the table")
    options.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--resume", action="store_true", help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.run:
        return run(*options.run, options.fit_points, options.columns, options.resume)
    rows = []
    for n in options.points:
        rows.append(measure(n, options))
        print(rows[-1], flush=True)
    if len(rows) > 1:
        logs = [np.log([row[name] for row in rows]) for name in ("points", "map CPU s")]
        rows.append({"points": "exponent", "map CPU s": float(np.polyfit(*logs, 1)[0])})
        print(rows[-1])
    if options.record:
        record(rows)


if __name__ == "__main__":
    main()
