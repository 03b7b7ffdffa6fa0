"""Does a map stay while the data grow? `HeatEmbedding.fit(X, places=)` beside independent fits.

Run: python benchmarks/stays.py [--sets olives ...] [--weight 0.3] [-o docs/benchmarks/stays.csv]
     python benchmarks/stays.py --weeks [--sets mnist]     (beside UMAP with init)

Sets are those of _real_data.py, at most 2,500 rows (HEATSKETCH_MNIST: folder of its IDX files).
A picture of some rows is made first; then all rows are embedded, once with the places of these and
once freely:

80 %, 10 %  a random part of the rows was known
group       all rows but those of one label, the most frequent one of at most a third
regroup     all rows were known, and 5 % of them are now copies of rows of other labels
ten         ten times 10 % more, each with the places of the one before

move, most  median and 99th percentile of the moves of known points, by the size of the old picture
trust, knn  of the map that stays, less that of the free one: trustworthiness of 15 neighbours,
            accuracy of labels by the 10 nearest
rank        rank correlation of distances of known points in the picture before and after
rank free   the same of the free fit
paths       rank correlation of distances with path lengths, less that of the free one
found       "regroup": area under the curve of `moved_` for the rows that changed
time        seconds, divided by those of the free fit

--weeks: 60, 70, ..., 100 % of the rows. Means over the four steps of the rank correlation of
distances of the points that were there before, and of the trustworthiness of each week. UMAP starts
at the old places, and a new point at the place of its nearest old one ("init").
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from _real_data import draw
from pictures import agreement, geodesics, label_accuracy, ranks, trustworthiness
from scipy.stats import rankdata, spearmanr
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs

SETS = ("mnist", "olives", "leaves", "segments", "cars", "colleges", "spam", "bodies", "wine")
SETS += ("food",)
SOURCES, TARGETS = 200, 50
COLUMNS = ("move", "most", "trust", "knn", "rank", "rank free", "paths", "found", "time")


class Judge:
    """Measures of pictures of a set."""

    def __init__(self, X, labels):
        self.labels, self.ranks = labels, ranks(X)
        rng = np.random.default_rng(1)
        n = len(self.ranks)
        self.i = rng.choice(n, min(SOURCES, n), replace=False)
        self.targets = rng.integers(0, n, (len(self.i), TARGETS))
        self.paths = geodesics(X, self.i, self.targets)

    def of(self, Y):
        """Return trustworthiness, accuracy of labels, agreement with paths."""
        knn = np.nan if self.labels is None else label_accuracy(self.labels, Y)
        return np.array(
            [
                trustworthiness(self.ranks, Y),
                knn,
                agreement(Y, self.i, self.targets, self.paths),
            ]
        )


def fitted(X, places=None, weight=0.3):
    """Return a fitted model and its seconds."""
    model = hs.HeatEmbedding(random_state=0, place_weight=weight)
    started = time.perf_counter()
    model.fit(X, places=places)
    return model, time.perf_counter() - started


def grown(judge, X, known, weight):
    """Return a row for a set of which some rows were known."""
    before = fitted(X[known])[0].embedding_
    places = np.full((len(judge.ranks), 2), np.nan)
    places[known] = before
    free, free_seconds = fitted(X)
    kept, seconds = fitted(X, places, weight)
    return row_of(judge, before, known, kept, free) | {"time": seconds / free_seconds}


def row_of(judge, before, known, kept, free):
    """Return the measures of a map that stays, and of a free one."""
    after, other = kept.embedding_, free.embedding_
    moves = np.linalg.norm(after[known] - before, axis=1) / np.ptp(before, axis=0).max()
    pairs = np.random.default_rng(2).integers(0, len(before), (2, 20_000))

    def distances(Y):
        return np.linalg.norm(Y[pairs[0]] - Y[pairs[1]], axis=1)

    quality = judge.of(after) - judge.of(other)
    return {
        "move": np.median(moves),
        "most": np.quantile(moves, 0.99),
        "trust": quality[0],
        "knn": quality[1],
        "rank": spearmanr(distances(before), distances(after[known])).statistic,
        "rank free": spearmanr(distances(before), distances(other[known])).statistic,
        "paths": quality[2],
    }


def regrouped(X, labels, weight):
    """Return how well `moved_` finds rows that became like rows of other labels."""
    rng = np.random.default_rng(3)
    changed = rng.choice(len(labels), len(labels) // 20, replace=False)
    others = [rng.choice(np.flatnonzero(labels != labels[row])) for row in changed]
    moved = X.copy()
    step = np.median(np.linalg.norm(X[changed] - X[others], axis=1)) / 20
    noise = rng.standard_normal((len(changed), X.shape[1])) / np.sqrt(X.shape[1])
    moved[changed] = X[others] + step * noise
    before = fitted(X)[0].embedding_
    model = fitted(moved, before, weight)[0]
    is_changed = np.isin(np.arange(len(labels)), changed)
    place = rankdata(model.moved_)
    count = is_changed.sum()
    area = (place[is_changed].sum() - count * (count + 1) / 2) / (count * (~is_changed).sum())
    return {"found": area}


def ten_times(judge, X, weight):
    """Return the quality after ten fits, each with 10 % more of the rows and the places before."""
    n = len(judge.ranks)
    order, places = np.random.default_rng(4).permutation(n), None
    for part in range(1, 11):
        rows = order[: n * part // 10]
        if places is not None:
            places = np.vstack([places, np.full((len(rows) - len(places), 2), np.nan)])
        model = fitted(X[rows], places, weight)[0]
        places = model.embedding_
    Y = np.empty((n, 2))
    Y[order] = places
    quality = judge.of(Y) - judge.of(fitted(X)[0].embedding_)
    return dict(zip(("trust", "knn", "paths"), quality, strict=True))


def rows_of(name, weight):
    """Yield a row for each experiment with a set."""
    data = draw(name)
    X, labels = np.asarray(data.X, float), data.labels
    judge, rng = Judge(X, labels), np.random.default_rng(0)
    for part in (0.8, 0.1):
        known = np.sort(rng.choice(len(X), round(part * len(X)), replace=False))
        yield f"{part:.0%}", grown(judge, X, known, weight)
    if labels is not None:
        counts = np.bincount(labels)
        group = int(np.argmax(np.where(counts <= len(X) / 3, counts, 0)))
        if counts[group] > 0:
            yield "group", grown(judge, X, np.flatnonzero(labels != group), weight)
        yield "regroup", regrouped(X, labels, weight)
    yield "ten", ten_times(judge, X, weight)


def umap(X, places=None):
    """Return a picture by UMAP, by its own defaults but for the start."""
    from umap import UMAP

    init = "spectral"
    if places is not None:
        new = np.isnan(places[:, 0])
        init = places.copy()
        nearest = NearestNeighbors(n_neighbors=1).fit(X[~new]).kneighbors(X[new])[1][:, 0]
        init[new] = places[~new][nearest]
        init = 10 * (init - init.min(axis=0)) / np.ptp(init, axis=0).max()
    return UMAP(init=init, random_state=0).fit_transform(X)


def weeks(name, weight):
    """Print the means over four weeks, in which a collection grows from 60 to 100 %."""
    X = np.asarray(draw(name).X, float)
    order = np.random.default_rng(5).permutation(len(X))
    methods = {
        "places": lambda X, places: fitted(X, places, weight)[0].embedding_,
        "free": lambda X, places: fitted(X)[0].embedding_,
        "UMAP, init": umap,
        "UMAP": lambda X, places: umap(X),
    }
    for label, method in methods.items():
        agreements, trusts, before = [], [], None
        for part in (0.6, 0.7, 0.8, 0.9, 1.0):
            rows = order[: round(part * len(X))]
            places = None
            if before is not None:
                places = np.full((len(rows), 2), np.nan)
                places[: len(before)] = before
            Y = method(X[rows], places)
            trusts.append(trustworthiness(ranks(X[rows]), Y))
            if before is not None:
                pairs = np.random.default_rng(2).integers(0, len(before), (2, 20_000))
                gaps = [np.linalg.norm(Z[pairs[0]] - Z[pairs[1]], axis=1) for Z in (before, Y)]
                agreements.append(spearmanr(*gaps).statistic)
            before = Y
        print(
            f"{name:<12}{label:<12}{np.mean(agreements):>8.4f}{np.mean(trusts):>8.4f}", flush=True
        )


def main():
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--weight", type=float, default=0.3)
    parser.add_argument("--weeks", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.weeks:
        print(f"{'set':<12}{'method':<12}{'rank':>8}{'trust':>8}")
        for name in arguments.sets:
            weeks(name, arguments.weight)
        return
    table = []
    print(f"{'set':<12}{'known':<9}" + "".join(f"{column:>10}" for column in COLUMNS))
    for name in arguments.sets:
        for known, row in rows_of(name, arguments.weight):
            table.append({"set": name, "known": known} | row)
            shown = (f"{row[c]:>10.4f}" if c in row else " " * 10 for c in COLUMNS)
            print(f"{name:<12}{known:<9}" + "".join(shown), flush=True)
    if arguments.output is not None:
        with arguments.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, ("set", "known", *COLUMNS), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
