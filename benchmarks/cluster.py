"""What workers of Dask cost: the same file mapped in one process, and by four on this machine.

Run: python benchmarks/cluster.py [--points 2000000] [--cluster local:4] [--best-of 3]

The points are those of benchmarks/streams.py. The sample is fitted before, so that what is timed is
the mapping alone, the first time, when every process also loads compiled loops, and the best of all
times; the CPU seconds of the workers count. The outputs are compared byte by byte. Two million
points take about four minutes of two cores.
"""

import argparse
import contextlib
import csv
import filecmp
import tempfile
import time
from pathlib import Path

import psutil
from streams import write

import heatsketch as hs
from heatsketch import distributed

TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "cluster.csv"


def cpu_seconds():
    """Return the CPU seconds of this process and of those it has started, so far."""
    spent = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def timed(source, output, fit_points, client):
    """Embed up to the mapping, and return (seconds, CPU seconds) of the mapping."""
    marks, mapped = [], distributed._map

    def mark(*given):
        marks.append((time.monotonic(), cpu_seconds()))
        mapped(*given)
        marks.append((time.monotonic(), cpu_seconds()))

    distributed._map = mark
    try:
        given = {"fit_points": fit_points, "cluster": client, "force": True}
        hs.distributed.embed(source, output, hs.HeatSketch(32, random_state=0), **given)
    finally:
        distributed._map = mapped
    (start, spent), (end, after) = marks
    return end - start, after - spent


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--points", type=int, default=2_000_000)
    options.add_argument("--fit-points", type=int, default=100_000)
    options.add_argument("--cluster", default="local:4")
    options.add_argument("--best-of", type=int, default=2)
    options.add_argument("--folder", help="of the files, removed at the end")
    options.add_argument("--record", action="store_true", help=f"write {TABLE.name} of the docs")
    arguments = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        source = Path(folder, "points.npy")
        write(source, arguments.points)
        for name in ("one process", arguments.cluster):
            started = time.monotonic()
            own = contextlib.nullcontext() if name == "one process" else distributed._client(name)
            with own as client:
                start = round(time.monotonic() - started, 2)
                output = Path(folder, f"out-{len(rows)}.npy")
                found = [
                    timed(source, output, arguments.fit_points, client)
                    for _ in range(arguments.best_of)
                ]
            seconds, spent = (min(values) for values in zip(*found, strict=True))
            rows.append({"mapped by": name, "points": arguments.points, "start, s": start})
            rows[-1] |= {"first mapping, s": round(found[0][0], 2), "mapping, s": round(seconds, 2)}
            rows[-1] |= {"mapping, CPU s": round(spent, 2)}
            print(rows[-1], flush=True)
        same = filecmp.cmp(*(Path(folder, f"out-{i}.npy") for i in range(2)), shallow=False)
    overhead = [rows[1][name] / rows[0][name] - 1 for name in ("mapping, s", "mapping, CPU s")]
    print(f"same bytes: {same}; overhead {overhead[0]:+.0%} in seconds, {overhead[1]:+.0%} in CPU")
    if arguments.record:
        with TABLE.open("w", newline="") as stream_of_table:
            table = csv.DictWriter(stream_of_table, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
