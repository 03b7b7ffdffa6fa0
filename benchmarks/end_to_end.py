"""From an array to an embedding: seconds, memory and quality, beside other packages.

Run: python benchmarks/end_to_end.py [--mnist FOLDER] [--data roll] [--only UMAP] [--small]

Data: "overlapping" (100,000 × 50, 20 clouds), "roll" (50,000 × 3), and with --mnist the folder of
its IDX files, "images" (10,000 × 784). Each run has a process of its own, which first embeds 5,000
points of the same kind (this library's also 17,000), so that neither imports nor compiling are
timed. The methods take turns, up to --repeats rounds; one that has used up --limit seconds is not
repeated, and one that takes longer than that in a single process is run at 20,000 points, with
HeatSketch at that size.

Columns: seconds (median), ratio to HeatSketch(32) at the same size; peak memory, and how much of it
there was before the run (data, libraries, compiled code); the root mean square relative error of
the squared diffusion distances of 10,000 pairs at t = 8 (HeatEmbedding: at its own time) against
those of the method's own graph; the share of points of the same label as most of their 10
nearest neighbours in the embedding as the method returns it.

A second table, equal error: for each method with eigenvectors and each time t, the number of
columns at which a sketch errs no more, by the law that its error is √(2/k); its measured error and
seconds on the same data. Peers keep 15 eigenvectors, which are more of the diffusion distance the
larger t is.
"""

import math

import _harness as harness
import _peers as peers
import _quality as quality

SIZES = {"overlapping": 100_000, "roll": 50_000, "images": 10_000}
FALLBACK, WARM_UP = 20_000, 5_000
SMALL, SMALL_FALLBACK, SMALL_WARM_UP = 3_000, 2_000, 1_500
TIMES = (8, 64)
NOT_EIGENVECTORS = (peers.OURS, "HeatEmbedding(2)")
MOST_COLUMNS = 512  # of an equal-error run: beyond, eigenvectors are the better way


def measure(method, data, n, warm_up, folder, options, turn):
    """Return the figures of one run, in the first round with its quality; options of the method."""
    X, label = harness.draw(data, n, folder)
    embed = peers.METHODS[method]
    embed(X[:warm_up], **options)
    if method in peers.OWN:
        peers.heat_sketch(X[: harness.MANY])
    before = harness.peak_memory()
    seconds, found = harness.timed(lambda: embed(X, **options))
    row = {"seconds": seconds, "peak MB": harness.peak_memory(), "before MB": before}
    row |= {name: float(value) for name, value in found.notes.items()}
    return row if turn else row | judge(found, label)


def judge(found, label):
    """Return errors of squared distances, and the accuracy where there are labels."""
    row = {}
    for time, error in quality.distance_errors(found, TIMES).items():
        row[f"error t={time:g}"] = error
    if label is not None and found.Y is not None:
        row["accuracy"] = quality.label_accuracy(found.Y, label)
    return row


def plain_accuracy(data, n, folder, turn):
    """Return the accuracy of the points themselves."""
    X, label = harness.draw(data, n, folder)
    return {"accuracy": quality.label_accuracy(X, label)} if label is not None else {}


def run_methods(data, n, methods, arguments):
    """Return {method: medians} at one size."""
    warm_up = SMALL_WARM_UP if arguments.small else WARM_UP
    tasks = {method: (measure, method, data, n, warm_up, arguments.mnist, {}) for method in methods}
    found = harness.repeated(tasks, arguments, f"{data} {n}")
    return {method: harness.medians(results) for method, results in found.items()}


def too_much(result):
    return result.get("note", "").startswith("over ")


def run_data(data, methods, arguments):
    """Return {n: {method: medians}}: all at full size, and at 20,000 what took too much there."""
    n = SMALL if arguments.small else SIZES[data]
    fallback = SMALL_FALLBACK if arguments.small else FALLBACK
    results = {n: run_methods(data, n, methods, arguments)}
    slow = [method for method, result in results[n].items() if too_much(result)]
    if slow and n > fallback:
        results[fallback] = run_methods(data, fallback, [peers.OURS, *slow], arguments)
    return results


def rows_of(data, n, results, plain):
    ours = results.get(peers.OURS, {}).get("seconds", math.nan)
    for method, result in results.items():
        errors = [value for name, value in result.items() if name.startswith("error")]
        yield {
            "data": data,
            "points": n,
            "method": method,
            "seconds": result.get("seconds"),
            "ratio": result.get("seconds", math.nan) / ours,
            "runs": result["runs"],
            "peak MB": result.get("peak MB"),
            "before MB": result.get("before MB"),
            "error": errors[0] if errors else None,
            "accuracy": result.get("accuracy"),
            "recall": result.get("recall"),
            "note": result.get("note"),
        }
    if plain:
        yield {"data": data, "points": n, "method": "(the points)"} | plain


def columns_for(error):
    """Return the number of columns at which a sketch errs no more, by its law: √(2/k)."""
    return max(1, math.ceil(2 / max(error, 1e-6) ** 2))


def equal_error(data, n, results, arguments):
    """Yield rows: for each method with eigenvectors and each t, the sketch that errs no more."""
    warm_up = SMALL_WARM_UP if arguments.small else WARM_UP
    wanted = {
        (method, time): result[f"error t={time}"]
        for method, result in results.items()
        for time in TIMES
        if f"error t={time}" in result and method not in NOT_EIGENVECTORS
    }
    sketches = {(columns_for(error), time) for (_, time), error in wanted.items()}
    tasks = {
        f"HeatSketch({k}), t={time}": (
            *(measure, peers.OURS, data, n, warm_up, arguments.mnist),
            {"columns": k, "time": time},
        )
        for k, time in sorted(sketches)
        if k <= MOST_COLUMNS
    }
    found = harness.repeated(tasks, arguments, f"{data} {n}")
    for (method, time), error in wanted.items():
        k = columns_for(error)
        ours = harness.medians(found.get(f"HeatSketch({k}), t={time}", []))
        seconds = results[method]["seconds"]
        yield {
            "data": data,
            "points": n,
            "t": time,
            "method": method,
            "error": error,
            "seconds": seconds,
            "columns": k,
            "our error": ours.get(f"error t={time}"),
            "our seconds": ours.get("seconds"),
            "ratio": seconds / ours.get("seconds", math.nan),
            "note": ours.get("note") if k <= MOST_COLUMNS else f"over {MOST_COLUMNS} columns",
        }


def main():
    options = harness.parser(__doc__)
    options.add_argument("--mnist", help="folder with the test images of MNIST as IDX files")
    options.add_argument("--data", nargs="+", choices=SIZES, default=list(SIZES))
    arguments = options.parse_args()
    methods = dict.fromkeys([peers.OURS, *harness.chosen(peers.METHODS, arguments.only)])
    rows, equal = [], []
    for data in arguments.data:
        if data == "images" and not arguments.mnist:
            harness.say("images: left out, for want of --mnist FOLDER")
            continue
        for n, results in run_data(data, methods, arguments).items():
            task = (plain_accuracy, data, n, arguments.mnist, 0)
            plain = harness.run_apart(*task, limit=arguments.limit)
            rows += rows_of(data, n, results, plain)
            equal += equal_error(data, n, results, arguments)
            table = harness.save("end_to_end", rows, arguments, peers.PACKAGES)
            if equal:
                table += "\n\n" + harness.save("equal_error", equal, arguments, peers.PACKAGES)
            print(table, flush=True)


if __name__ == "__main__":
    main()
