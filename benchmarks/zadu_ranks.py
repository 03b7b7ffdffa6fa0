"""Do measures that others wrote agree? ZADU's, of the pictures that `pictures.py embed` made.

Run: python benchmarks/zadu_ranks.py FOLDER [--methods heatsketch UMAP ...] [--sets digits ...]
         [--split tuning|unseen|fresh|held|all] [-o FILE.csv]

Each measure by its own defaults: 18 values need the data and the picture, 9 labels too, which not
all sets have. Of a large set 1,000 points are judged, of equal points one. A picture is scaled to
the standard deviation of its data first, because two measures depend on its size. In each set and
measure the methods get ranks (1 is the best, equal ones share theirs); the table has medians over
the sets, and over all.
What has been computed lies in FOLDER/zadu and is not computed again.
"""

import argparse
import csv
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pictures
from scipy.stats import rankdata

MOST = 1_000
LOWER_IS_BETTER = {
    *("neighbor_dissimilarity", "distance_to_measure", "kl_divergence", "topographic_product"),
    *("procrustes", "stress", "scale_normalized_stress", "non_metric_stress"),
    *("class_angular_distortion_index", "gap_index"),
}


def measured(X, Y, labels):
    """Return {measure: value} of a picture Y (n, 2) of points X."""
    import zadu
    from zadu.registry import METRICS

    parameters = {"snc": {"random_state": 0}, "cadi": {"random_seed": 0}}
    wanted = [m.alias for m in METRICS if labels is not None or not m.needs_label]
    specs = [{"id": alias, "params": parameters.get(alias, {})} for alias in wanted]
    Y = Y * np.sqrt(X.var(axis=0).sum() / Y.var(axis=0).sum())
    found = zadu.ZADU(specs, X).measure(Y, labels)
    return {key: float(value) for each in found for key, value in each.items()}


def judged(folder, name, method):
    """Return the measures of a stored picture, or None where there is none."""
    made = pictures.picture(folder, name, method)
    path = folder / "zadu" / f"{name}.{method}.json"
    if made is None or path.exists():
        return None if made is None else json.loads(path.read_text())
    data = pictures.load(folder, name, ranked=False)
    X = np.asarray(pictures._dense(data["X"]), dtype=float)
    rows = np.unique(X, axis=0, return_index=True)[1]
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:MOST])
    labels = data["labels"][rows] if "labels" in data else None
    found = measured(X[rows], made["Y"][rows], labels)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def ranks(found):
    """Return {measure: rank of each method} of one set from {method: {measure: value}}."""
    by_measure = {}
    for measure in next(iter(found.values())):
        values = np.array([each[measure] for each in found.values()])
        if measure == "topographic_product":
            values = np.abs(values)
        by_measure[measure] = rankdata(values if measure in LOWER_IS_BETTER else -values)
    return by_measure


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path)
    options.add_argument("--methods", nargs="+", default=list(pictures.METHODS), metavar="METHOD")
    options.add_argument("--sets", nargs="+", metavar="SET")
    options.add_argument("--split", choices=pictures.SPLITS, default="tuning")
    options.add_argument("-o", "--output", type=Path, metavar="FILE")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    collected = {}
    for name in given.sets or pictures.names(given.folder, given.split):
        found = {method: judged(given.folder, name, method) for method in given.methods}
        if None in found.values():
            print(f"{name}: left out, a picture is missing", file=sys.stderr)
            continue
        for measure, row in ranks(found).items():
            collected.setdefault(measure, []).append(row)
    if not collected:
        sys.exit("no set has a picture of every method; run pictures.py embed first")
    rows = [(m, len(each), *np.median(each, axis=0)) for m, each in collected.items()]
    medians = np.array([row[2:] for row in rows])
    rows.append(("median", len(rows), *np.median(medians, axis=0)))
    head = ("measure", "sets", *given.methods)
    for row in (head, *rows):
        print(*row, sep="\t")
    if given.output:
        with given.output.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows])


if __name__ == "__main__":
    sys.exit(main())
