"""Does an audit find what is wrong in a picture, and nothing where it is right?

Run: python benchmarks/audit.py [--small] [--only roll umap time] [-o DIR]

Pictures that are right (the parameters that the points were made from; of digits and cells the map
of `HeatEmbedding` in three dimensions) get a fault planted: one point in twenty moved to a random
place; a tenth of the points moved onto another place; half of such a group pulled away; all beyond
a line mirrored; a ring cut open. At fault are the points that were moved, of the mirrored ones also
those that they land among, of the ring those near the cut. The table has the area under the curve
by which points at fault are told from the others: `trust` of `hs.audit`, ZADU's local
trustworthiness, continuity and their mean (20 neighbours), and scDEED's reliability, the
correlation of distances in the picture to a point's nearest half, in the data and in the picture
(Xia, Lee and Li 2024; our own lines, without its choice of parameters). Three draws of each. Then
the fractions of points called dubious in right pictures and in noise; gaps of UMAP's pictures; and
seconds.
"""

import time
import warnings

import _data
import _harness
import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import heatsketch as hs
from heatsketch.classical import PCA

DRAWS = 3
PACKAGES = (*_harness.PACKAGES, "zadu", "umap-learn")


def plane(rng, n):
    Y = rng.random((n, 2))
    X = Y @ np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    return X + 0.005 * rng.standard_normal(X.shape), Y


def ring(rng, n):
    angle = np.sort(2 * np.pi * rng.random(n))
    Y = np.c_[np.cos(angle), np.sin(angle)]
    X = Y @ rng.standard_normal((2, 6))
    return X + 0.02 * rng.standard_normal(X.shape), Y


def roll(rng, n):
    angle, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    along = (angle * np.hypot(1, angle) + np.arcsinh(angle)) / 2
    X = np.c_[angle * np.cos(angle), height, angle * np.sin(angle)]
    return X, np.c_[along, height]


def tree(rng, n):
    """Six branches in the plane, in ten dimensions with noise."""
    ends = np.array([[0, 0, 4, 0], [4, 0, 7, 3], [4, 0, 7, -3], [7, 3, 10, 3], [7, 3, 8, 6]])
    ends = np.vstack([ends, [7, -3, 10, -4]])[rng.integers(6, size=n)]
    part = rng.random((n, 1))
    Y = ends[:, :2] * (1 - part) + ends[:, 2:] * part + 0.03 * rng.standard_normal((n, 2))
    X = Y @ np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    return X + 0.03 * rng.standard_normal(X.shape), Y


def of_ours(make):
    def draw(rng, n):
        X = make(n).X
        return X, hs.HeatEmbedding(3, random_state=0).fit_transform(X)

    return draw


RIGHT = {
    "plane": plane,
    "ring": ring,
    "roll": roll,
    "tree": tree,
    "digits": of_ours(_data.digits),
    "cells": of_ours(_data.cells),
}


def moved(Y, rng):
    at_fault = rng.permutation(len(Y)) < len(Y) // 20
    low, high = Y.min(axis=0), Y.max(axis=0)
    return np.where(at_fault[:, None], rng.uniform(low, high, Y.shape), Y), at_fault


def _group(Y, rng):
    order = np.argsort(cdist(Y[[rng.integers(len(Y))]], Y)[0])
    return order[: len(Y) // 10], order[int(0.7 * len(Y))]


def onto_another(Y, rng):
    group, place = _group(Y, rng)
    wrong = Y.copy()
    wrong[group] += Y[place] - Y[group[0]]
    return wrong, np.isin(np.arange(len(Y)), group)


def halves(Y, rng):
    group, _ = _group(Y, rng)
    direction = rng.standard_normal(Y.shape[1])
    half = group[(Y[group] - Y[group[0]]) @ direction > 0]
    wrong = Y.copy()
    wrong[half] += 2 * Y.std() * direction / np.linalg.norm(direction)
    return wrong, np.isin(np.arange(len(Y)), half)


def mirrored(Y, rng):
    direction = rng.standard_normal(Y.shape[1])
    direction /= np.linalg.norm(direction)
    beyond = Y @ direction - np.quantile(Y @ direction, 0.8)
    wrong = Y - 2 * np.maximum(beyond, 0)[:, None] * direction
    near = np.argsort(cdist(wrong, wrong), axis=1)[:, 1:16]
    return wrong, (beyond > 0) | ((beyond > 0)[near].mean(axis=1) > 0.2)


def cut(Y, rng):
    angle = np.arctan2(Y[:, 1], Y[:, 0]) % (2 * np.pi)
    opened = angle * (2 * np.pi - 1) / (2 * np.pi)
    return np.c_[np.cos(opened), np.sin(opened)], np.minimum(angle, 2 * np.pi - angle) < 0.05


FAULTS = {
    "moved": moved,
    "onto another": onto_another,
    "halves": halves,
    "mirrored": mirrored,
    "cut": cut,
}


def reliability(X, Y):
    """Return scDEED's score of each point."""
    before, after = cdist(X, X), cdist(Y, Y)
    half = len(X) // 2
    score = np.empty(len(X))
    for k in range(len(X)):
        near = after[k, np.argsort(before[k])[1 : half + 1]]
        score[k] = np.corrcoef(near, np.sort(after[k])[1 : half + 1])[0, 1]
    return score


def scores(X, Y):
    from zadu.measures import trustworthiness_continuity

    _, local = trustworthiness_continuity.measure(X, Y, 20, return_local=True)
    near = np.array(local["local_trustworthiness"]), np.array(local["local_continuity"])
    return {
        "trust": hs.audit(X, Y, random_state=0).trust,
        "ZADU trustworthiness": near[0],
        "ZADU continuity": near[1],
        "ZADU mean": (near[0] + near[1]) / 2,
        "scDEED": reliability(X, Y),
    }


def planted(name, n):
    """Return a row for each fault of a picture: areas under the curve, medians of the draws."""
    rows = []
    for fault, plant in FAULTS.items():
        if fault == "cut" and name != "ring":
            continue
        areas = []
        for draw in range(DRAWS):
            rng = np.random.default_rng([draw, 29])
            X, Y = RIGHT[name](rng, n)
            wrong, at_fault = plant(Y, rng)
            areas.append({k: roc_auc_score(~at_fault, s) for k, s in scores(X, wrong).items()})
        medians = {score: float(np.median([area[score] for area in areas])) for score in areas[0]}
        rows.append({"picture": name, "fault": fault, **medians})
        _harness.say(rows[-1])
    return rows


def alarms(name, n):
    """Return the fractions called dubious in a right picture and in noise, the worst draw."""
    right, noise = [], []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, 30])
        X, Y = RIGHT[name](rng, n)
        right.append(hs.audit(X, Y, random_state=draw).dubious.mean())
        noise.append(hs.audit(X, rng.standard_normal(Y.shape), random_state=draw).dubious.mean())
    return {"picture": name, "dubious, right": max(right), "dubious, noise": min(noise)}


def circle(n):
    X, angle = hs.datasets.circle(n, rng=0)
    return _data.Data(X, (8 * angle / (2 * np.pi)).astype(int))


UMAPS = {"digits": _data.digits, "cells": _data.cells, "tree": _data.tree, "circle": circle}
TIMES = 8, 64


def umaps(n, image):
    """Audit UMAP's pictures at two times: gaps, beside the distances of centroids; draw them."""
    import matplotlib as mpl
    import umap

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(3, len(UMAPS), figsize=(12, 9), layout="constrained")
    rows = []
    for (name, make), column in zip(UMAPS.items(), axes.T, strict=True):
        data = make(n)
        X, label = data.X, np.asarray(data.label)
        Y = umap.UMAP(random_state=0).fit_transform(X)
        column[0].scatter(*Y.T, c=label, s=4, cmap="tab10")
        column[0].set_title(f"UMAP of {name}")
        centres = {one: X[label == one].mean(axis=0) for one in np.unique(label).tolist()}
        for t, axis in zip(TIMES, column[1:], strict=True):
            found = hs.audit(X, Y, labels=label, time=t, random_state=0)
            axis.scatter(*Y.T, c=found.trust, s=4, vmin=0, vmax=1)
            axis.scatter(*Y[found.dubious].T, s=12, facecolors="none", edgecolors="red", lw=0.5)
            axis.set_title(f"trust, time {t}; dubious: {found.dubious.mean():.0%}")
            seen = [gap.picture for gap in found.gaps]
            ends = [gap.labels for gap in found.gaps]
            inputs = [np.linalg.norm(centres[one] - centres[other]) for one, other in ends]
            rows.append(
                {
                    "UMAP of": name,
                    "time": t,
                    "gaps": len(seen),
                    "believed": sum(gap.believed for gap in found.gaps),
                    "order of gaps, truth": spearmanr(
                        seen, [gap.distance.value for gap in found.gaps]
                    ).statistic,
                    "order of gaps, centroids": spearmanr(seen, inputs).statistic,
                    "dubious": found.dubious.mean(),
                    "median trust": np.median(found.trust),
                }
            )
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[], aspect="equal")
    if image is not None:
        figure.savefig(image, dpi=80)
    return rows


def seconds(n, d):
    """Return seconds of an audit beyond the sketch's neighbour search."""
    X = (
        _harness.overlapping(n)[0]
        if d == 50
        else np.random.default_rng(0).random((n, d), np.float32)
    )
    Y = PCA(2).fit_transform(X)
    hs.audit(X[:2000], Y[:2000], random_state=0)
    start = time.perf_counter()
    found = hs.audit(X, Y, random_state=0)
    whole = time.perf_counter() - start
    search = found.model.diagnostics_["affinity_seconds"]
    peak = _harness.peak_memory() / 1e6
    return {
        "points": n,
        "features": d,
        "seconds": whole,
        "beyond the graph": whole - search,
        "MB": peak,
    }


def main():
    parser = _harness.parser(__doc__)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    n = 400 if arguments.small else 1500
    rows = [row for name in _harness.chosen(RIGHT, arguments.only) for row in planted(name, n)]
    if rows:
        print(_harness.save("audit", rows, arguments, PACKAGES))
        found = [alarms(name, n) for name in _harness.chosen(RIGHT, arguments.only)]
        print(_harness.save("audit_alarms", found, arguments, PACKAGES))
    if arguments.only is None or "umap" in arguments.only:
        image = None if arguments.small else _harness.DOCS.parent / "images" / "audit-umap.png"
        print(_harness.save("audit_gaps", umaps(n, image), arguments, PACKAGES))
    if arguments.only is None or "time" in arguments.only:
        sizes = [(1000, 50)] if arguments.small else [(10_000, 784), (100_000, 50)]
        found = [_harness.run_apart(seconds, *size, limit=arguments.limit) for size in sizes]
        print(_harness.save("audit_time", found, arguments, PACKAGES))


if __name__ == "__main__":
    main()
