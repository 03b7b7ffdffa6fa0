"""Does an audit find what is wrong in a picture, and nothing where it is right?

Run: python benchmarks/audit.py [--small] [--only roll umap copies time] [--mnist FOLDER] [-o DIR]

Faults are planted in two kinds of pictures. Those that are right (the parameters that the points
were made from; of digits and cells the map of `HeatEmbedding` in three dimensions) get one point in
twenty moved to a random place; a tenth of the points moved onto another place; half of such a group
pulled away; all beyond a line mirrored; a ring cut open. At fault are the points that were moved,
of the mirrored ones also those that they land among, of the ring those near the cut.

UMAP's pictures of five sets, and of three that were not looked at when the weights of `trust` were
chosen (walks, torus, cancer), get single points moved; a label laid over another, centre on centre;
half of a label pulled away by twice the standard deviation of the picture; the ring cut open by one
radian. At fault are the moved points; of the label laid over another, all points of both of which a
fifth of the neighbours are of the other side, and the other points of both are not counted; of the
ring the 20 points on each side of the cut, and points within 30 of a place where UMAP itself tears
the ring are not counted.

The table has the area under the curve by which points at fault are told from the others: `trust` of
`hs.audit`, ZADU's local trustworthiness, continuity and their mean (20 neighbours), and scDEED's
reliability, the correlation of distances in the picture to a point's nearest half, in the data and
in the picture (Xia, Lee and Li 2024; our own lines, without its choice of parameters). Medians of
three draws; of UMAP, of three pictures. Then the fractions of points called dubious in right
pictures, in rotated copies of 2 to 3 coordinates (and of undecided points), and in noise; of scDEED
those whose reliability is below the 5 % quantile of a null, for which the picture is permuted; gaps
of UMAP's pictures; and seconds.
"""

import time
import warnings

import _data
import _harness
import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch.classical import PCA
from heatsketch.metrics.neighborhoods import nearest_others

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


def areas(X, wrong, at_fault, counted):
    """Return the area under the curve of each score, over the points that count."""
    found = scores(X, wrong)
    counted = counted & np.isfinite(found["trust"])
    return {name: roc_auc_score(~at_fault[counted], s[counted]) for name, s in found.items()}


def row(name, fault, draws):
    medians = {score: float(np.median([draw[score] for draw in draws])) for score in draws[0]}
    _harness.say(f"{name}, {fault}: {medians}")
    return {"picture": name, "fault": fault, **medians}


def planted(name, n):
    """Return a row for each fault of a right picture: areas under the curve."""
    rows = []
    for fault, plant in FAULTS.items():
        if fault == "cut" and name != "ring":
            continue
        draws = []
        for draw in range(DRAWS):
            rng = np.random.default_rng([draw, 29])
            X, Y = RIGHT[name](rng, n)
            draws.append(areas(X, *plant(Y, rng), np.ones(len(X), bool)))
        rows.append(row(name, fault, draws))
    return rows


def two_labels(label, rng):
    names, counts = np.unique(label, return_counts=True)
    return rng.choice(names[counts >= max(25, 0.03 * len(label))], 2, replace=False)


def single(Y, data, rng):
    return *moved(Y, rng), np.ones(len(Y), bool)


def label_over_label(Y, data, rng):
    own, other = (data.label == name for name in two_labels(data.label, rng))
    wrong = Y.copy()
    wrong[own] += np.median(Y[other], axis=0) - np.median(Y[own], axis=0)
    near = nearest_others(wrong, 15)
    mixed = np.where(own, ~own[near].T, own[near].T).mean(axis=0) >= 0.2
    return wrong, mixed, mixed | ~(own | other)


def half_a_label(Y, data, rng):
    own = data.label == two_labels(data.label, rng)[0]
    direction = rng.standard_normal(2)
    direction /= np.linalg.norm(direction)
    half = own & ((Y - np.median(Y[own], axis=0)) @ direction > 0)
    return Y + 2 * Y.std() * direction * half[:, None], half, np.ones(len(Y), bool)


def ring_cut(Y, data, rng):
    order, Y = np.argsort(data.coordinates), Y - Y.mean(axis=0)
    around = np.append(order, order[0])
    angle = (np.arctan2(*Y.T[::-1]) - rng.uniform(0, 2 * np.pi)) % (2 * np.pi)
    opened = angle * (2 * np.pi - 1) / (2 * np.pi)
    wrong = np.linalg.norm(Y, axis=1)[:, None] * np.c_[np.cos(opened), np.sin(opened)]
    steps = np.linalg.norm(np.diff(Y[around], axis=0), axis=1)
    torn = np.flatnonzero(steps > 10 * np.median(steps))
    cuts = np.flatnonzero(np.abs(np.diff(angle[around])) > np.pi)
    at_fault, by_umap = (
        np.isin(
            np.arange(len(Y)), order[(ends[:, None] + np.arange(1 - reach, 1 + reach)) % len(Y)]
        )
        for ends, reach in ((cuts, 20), (torn, 30))
    )
    return wrong, at_fault, at_fault | ~by_umap


UMAP_FAULTS = {
    "moved": single,
    "label over label": label_over_label,
    "half a label apart": half_a_label,
    "cut": ring_cut,
}


def planted_umaps(name, data):
    """Return a row for each fault of UMAP's pictures of a set."""
    import umap

    pictures = [umap.UMAP(random_state=s).fit_transform(data.X).astype(float) for s in range(DRAWS)]
    rows = []
    for fault, plant in UMAP_FAULTS.items():
        if fault == "cut" and name != "circle":
            continue
        draws = [
            areas(data.X, *plant(Y, data, np.random.default_rng([draw, 7])))
            for draw, Y in enumerate(pictures)
        ]
        rows.append(row(f"UMAP of {name}", fault, draws))
    return rows


def below_null(X, Y, rng):
    """Return the fraction of the points that scDEED's rule calls dubious."""
    null = reliability(X, Y[rng.permutation(len(Y))])
    return float(np.mean(reliability(X, Y) < np.quantile(null, 0.05)))


def alarms(name, n):
    """Return fractions of points called dubious: in right pictures, and in noise."""
    rows = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, 30])
        X, Y = RIGHT[name](rng, n)
        noise = rng.standard_normal(Y.shape)
        found = [hs.audit(X, P, random_state=draw).dubious.mean() for P in (Y, noise)]
        rows.append(found + [below_null(X, P, rng) for P in (Y, noise)])
    (right, _, de_right, _), (_, noisy, _, de_noisy) = np.max(rows, axis=0), np.min(rows, axis=0)
    _harness.say(f"{name}: dubious {right} of the right, {noisy} of noise")
    return {
        "picture": name,
        "dubious, right": right,
        "dubious, noise": noisy,
        "scDEED, right": de_right,
        "scDEED, noise": de_noisy,
    }


COPIES = {
    "square": lambda rng, n: rng.random((n, 2)),
    "ball": lambda rng, n: rng.standard_normal((n, 3)),
    "4 components": lambda rng, n: (
        rng.standard_normal((n, 2)) + 50 * np.sort(np.arange(n) % 4)[:, None]
    ),
    "equal points": lambda rng, n: np.repeat(rng.random((-(-n // 3), 2)), 3, axis=0)[:n],
}


def copies(n):
    """Return the largest fractions of points called dubious in rotated copies of n points.

    At last the largest fraction of undecided points, of all copies.
    """
    found, undecided = {"points": n}, 0.0
    for name, draw_points in COPIES.items():
        largest = 0.0
        for draw in range(DRAWS if n <= 10_000 else 1):
            rng = np.random.default_rng([draw, 31, n])
            X = draw_points(rng, n)
            turn = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
            if name == "4 components" and n < 4 * 50:
                largest = np.nan  # of fewer than 50 points, which are not judged
                continue
            audited = hs.audit(X, 10 * X @ turn, random_state=draw)
            largest = max(largest, audited.dubious.mean())
            undecided = max(undecided, audited.undecided.mean())
        found[name] = float(largest)
    found["undecided"] = float(undecided)
    _harness.say(found)
    return found


def circle(n):
    X, angle = hs.datasets.circle(n, rng=0)
    return _data.Data(X, (8 * angle / (2 * np.pi)).astype(int), angle)


def grouped(make):
    """Return a set whose labels are eight clusters, because it has none."""

    def draw(n):
        data = make(n)
        return data._replace(label=KMeans(8, n_init=3, random_state=0).fit_predict(data.X))

    return draw


def cancer(n):
    X, _ = load_breast_cancer(return_X_y=True)
    return _data.Data(StandardScaler().fit_transform(X)[:n])


UMAPS = {"digits": _data.digits, "cells": _data.cells, "tree": _data.tree, "circle": circle}
UNSEEN = {"walks": _data.walks, "torus": grouped(_data.torus), "cancer": grouped(cancer)}
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
    """Return seconds of an audit and of its description."""
    X = (
        _harness.overlapping(n)[0]
        if d == 50
        else np.random.default_rng(0).random((n, d), np.float32)
    )
    Y = PCA(2).fit_transform(X)
    hs.audit(X[:3000], Y[:3000], random_state=0).describe()
    start, used = time.perf_counter(), time.process_time()
    found = hs.audit(X, Y, random_state=0)
    audited = time.perf_counter()
    found.describe()
    return {
        "points": n,
        "features": d,
        "seconds": audited - start,
        "seconds of the graph": found.model.diagnostics_["affinity_seconds"],
        "seconds of describe": time.perf_counter() - audited,
        "processor seconds of both": time.process_time() - used,
        "MB": _harness.peak_memory(),
    }


def main():
    parser = _harness.parser(__doc__)
    parser.add_argument("--mnist", help="folder with MNIST's IDX files")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    n = 400 if arguments.small else 1500
    sets = {name: make(n) for name, make in UMAPS.items()}
    if arguments.mnist:
        sets["mnist"] = _data.mnist(n, arguments.mnist)
    sets |= {name: make(n) for name, make in UNSEEN.items()}
    shapes = _harness.chosen(RIGHT, arguments.only)
    umapped = arguments.only is None or "umap" in arguments.only
    rows = [found for name in shapes for found in planted(name, n)]
    if umapped:
        rows += [found for name, data in sets.items() for found in planted_umaps(name, data)]
    if rows:
        print(_harness.save("audit", rows, arguments, PACKAGES))
    if shapes:
        found = [alarms(name, n) for name in shapes]
        print(_harness.save("audit_alarms", found, arguments, PACKAGES))
    if umapped:
        image = None if arguments.small else _harness.DOCS.parent / "images" / "audit-umap.png"
        print(_harness.save("audit_gaps", umaps(n, image), arguments, PACKAGES))
    if arguments.only is None or "copies" in arguments.only:
        sizes = [60, 200] if arguments.small else [60, 100, 200, 400, 1000, 10_000, 100_000]
        print(_harness.save("audit_copies", [copies(size) for size in sizes], arguments, PACKAGES))
    if arguments.only is None or "time" in arguments.only:
        sizes = [(1000, 50)] if arguments.small else [(10_000, 784), (100_000, 50)]
        found = [_harness.run_apart(seconds, *size, limit=arguments.limit) for size in sizes]
        print(_harness.save("audit_time", found, arguments, PACKAGES))


if __name__ == "__main__":
    main()
