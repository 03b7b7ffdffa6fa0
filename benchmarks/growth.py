"""How time and memory grow with the number of points, stage by stage.

Run: python benchmarks/growth.py [--data roll] [--most 1000000] [--small]

HeatSketch(32, time=8, n_neighbors=30) on "roll" (n × 3) and "overlapping" (n × 50), float32,
n = 1,000 to 1,000,000. Each run has a process of its own, which embeds 3,000 and 17,000 points
first. Stages: search for neighbours, graph (weights, symmetrisation; with the search where that is
not timed apart), normalisation, products. Memory: the peak of the process, and how much there was
before the run. Last row of each data set: the exponent b of seconds ∝ n^b from 10,000 points on, by
least squares on logarithms.
"""

import _harness as harness
import numpy as np

import heatsketch as hs

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
SMALL, WARM_UPS, FIT_FROM = (500, 1_000, 2_000, 4_000), (3_000, harness.MANY), 10_000
STAGES = {
    "search s": "search_seconds",
    "normalise s": "normalize_seconds",
    "products s": "embed_seconds",
}
FITTED = ("seconds", "search s", "graph s", "normalise s", "products s")


def measure(data, n, turn):
    X, _ = harness.draw(data, n)
    model = hs.HeatSketch(32, time=8, n_neighbors=30, random_state=0)
    for warm_up in WARM_UPS:
        model.fit(harness.draw(data, warm_up)[0])
    before = harness.peak_memory()
    seconds, fitted = harness.timed(model.fit, X)
    told = fitted.diagnostics_
    row = {"seconds": seconds}
    row |= {name: float(told[key]) for name, key in STAGES.items() if key in told}
    row["graph s"] = float(told["affinity_seconds"]) - row.get("search s", 0.0)
    row |= {"peak MB": harness.peak_memory(), "before MB": before}
    return row | {name: float(told[name]) for name in ("recall",) if name in told}


def exponents(rows, start):
    """Return the slope of log seconds against log n for every stage."""
    used = [row for row in rows if row["points"] >= start and not row.get("note")]
    if len(used) < 2:
        return {}
    log_n = np.log([row["points"] for row in used])
    return {
        name: float(np.polyfit(log_n, np.log([row[name] for row in used]), 1)[0])
        for name in FITTED
        if all(name in row for row in used)
    }


def main():
    options = harness.parser(__doc__, repeats=3)
    options.add_argument("--data", nargs="+", default=["roll", "overlapping"])
    options.add_argument("--most", type=int, default=SIZES[-1], help="largest number of points")
    arguments = options.parse_args()
    sizes = SMALL if arguments.small else [n for n in SIZES if n <= arguments.most]
    rows = []
    for data in arguments.data:
        tasks = {n: (measure, data, n) for n in sizes}
        found = harness.repeated(tasks, arguments, data)
        own = [{"data": data, "points": n} | harness.medians(runs) for n, runs in found.items()]
        start = sizes[1] if arguments.small else FIT_FROM
        rows += [*own, {"data": data, "points": "exponent"} | exponents(own, start)]
        table = harness.save("growth", rows, arguments)
    print(table)


if __name__ == "__main__":
    main()
