"""The sketch of all points on their whole graph in tiles, next to that of one machine.

Run: python benchmarks/whole_graph.py [--points 2000000] [--features 8] [--tile-rows 131072]
     [--cluster local:2] [--folder /tmp]

Points are 32 Gaussian clouds whose widths fall with the feature, and a curve, in random order,
float64. In up to 8 features the neighbours of both are exact. The two run one after the other, each
in a process of its own: seconds, CPU seconds of all threads and processes (without --cluster), and
the peak of memory beyond what the process held before. Then distances of a million pairs, and of
the points 2i and 2i + 1 of the curve, which are near neighbours: the largest relative difference.

Between the two a run in tiles that ended when its neighbours were kept is resumed, in one process:
what keeping them took (CPU seconds, bytes a point), and what the resumed run takes.
"""

import argparse
import filecmp
import functools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLOUDS, COLUMNS, BLOCK = 32, 16, 100_000


def write(path, n, d):
    """Write n points (n, d), by blocks."""
    centres = np.random.default_rng(0).standard_normal((CLOUDS, d))
    waves = np.random.default_rng(1).standard_normal((2, d))
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, d))
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([2, start])
        m = min(BLOCK, n - start)
        X = centres[rng.integers(CLOUDS, size=m)] + rng.standard_normal((m, d)) / np.arange(
            1, d + 1
        )
        pairs = np.arange(0, m - 1, 20)
        t = rng.uniform(0, 2 * np.pi, len(pairs))[:, None]
        X[pairs] = 3 * (np.cos(t) * waves[0] + np.sin(t) * waves[1])
        X[pairs + 1] = X[pairs] + 1e-4 * rng.standard_normal((len(pairs), d))
        out[start : start + m] = X
    out.flush()


def used():
    """Return CPU seconds of this process and its children, and its peak of memory in MB."""
    facts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return sum(f.ru_utime + f.ru_stime for f in facts), peak / 1024


def end_when_neighbours_are_kept(sketch):
    """Call a run, end it there; return CPU seconds of the keeping, and the bytes that are kept."""
    from heatsketch.distributed import searched, whole

    own, affinity, took = searched._keep, whole.affinity, {}

    def keep(done, state):
        start = time.process_time()
        own(done, state)
        took["keeping_cpu_seconds"] = time.process_time() - start
        kept = sum(file.stat().st_size for file in state.folder.glob("tile-*"))
        took["kept_bytes_a_point"] = kept / done.starts[-1]

    def end(*_):
        raise KeyboardInterrupt

    searched._keep, whole.affinity = keep, end
    try:
        sketch()
    except KeyboardInterrupt:
        searched._keep, whole.affinity = own, affinity
    return took


def run(how, folder, tile_rows, cluster):
    """Sketch in this process in one of the two ways; print what it took, as JSON."""
    import heatsketch as hs

    model = hs.HeatSketch(COLUMNS, random_state=0)
    warm = np.random.default_rng(0).standard_normal((17_000, 3))
    model.fit(warm)  # compiles
    given = Path(folder) / "x.npy", model, Path(folder) / f"{how}.npy"
    sketch = functools.partial(hs.distributed.sketch, *given, tile_rows=tile_rows)
    kept = end_when_neighbours_are_kept(sketch) if how == "resumed" else {}
    before, start = used(), time.monotonic()
    facts = {}
    if how == "resumed":
        sketch(resume=True)
    elif how == "tiles":
        done = sketch(cluster=cluster or None)
        facts = {name: done.diagnostics[name] for name in ("tiles", "halo", "neighboring_tiles")}
    else:
        X = np.load(Path(folder) / "x.npy")
        model.fit(X, ids=np.arange(len(X)))
        np.save(Path(folder) / "one.npy", model.embedding_)
    after = used()
    took = {"seconds": time.monotonic() - start, "cpu_seconds": after[0] - before[0]}
    print(json.dumps(took | {"peak_mb": after[1] - before[1]} | facts | kept))


def difference(folder):
    """Return the largest relative difference of distances between the two results."""
    Y, Z = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ("tiles", "one"))
    n, rng, worst = len(Y), np.random.default_rng(3), 0.0
    near = np.arange(0, min(n, BLOCK) - 1, 20)
    for i, j in [(near, near + 1), *(rng.integers(n, size=(10, 2, 100_000)))]:
        i, j = i[i != j], j[i != j]
        D = np.linalg.norm(np.asarray(Y[i]) - Y[j], axis=1)
        E = np.linalg.norm(np.asarray(Z[i]) - Z[j], axis=1)
        worst = max(worst, float(np.abs(D / E - 1).max()))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--tile-rows", type=int, default=2**17)
    parser.add_argument("--cluster", default="")
    parser.add_argument("--folder")
    parser.add_argument("--run", choices=("tiles", "resumed", "one"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.run, args.folder, args.tile_rows, args.cluster)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        write(Path(folder) / "x.npy", args.points, args.features)
        for how in ("tiles", "resumed", "one"):
            options = ["--run", how, "--folder", folder, "--tile-rows", str(args.tile_rows)]
            command = [sys.executable, __file__, *options, "--cluster", args.cluster]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            print(how, found.stdout.strip().splitlines()[-1], flush=True)
        same = filecmp.cmp(*(Path(folder) / f"{name}.npy" for name in ("tiles", "resumed")), False)
        print(f"the resumed run wrote the same bytes: {same}")
        print(f"largest relative difference of distances: {difference(folder):.1e}")


if __name__ == "__main__":
    main()
