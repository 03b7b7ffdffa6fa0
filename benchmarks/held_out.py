"""Where do new points go? Labels of held-out points, beside UMAP, openTSNE and PaCMAP.

Run: python benchmarks/held_out.py FOLDER [--sets digits ...] [--only UMAP ...] [-o FILE]

FOLDER holds the sets that `benchmarks/pictures.py prepare FOLDER` stores; all real ones with labels
and 500 points or more are taken. A picture is made of four fifths of the points, and a fifth is
placed by the method's `transform`, with its own defaults; this twice, for two fifths that share
no point. "the data" are places in all features.

accuracy  points whose label, held out, is the commonest of their 10 nearest training points
seconds   of the transform, called a second time, so that all is compiled
ratio     of these seconds to ours on the same set, in the same run
behind    sets on which heatsketch is more than .005 behind; "ahead" likewise

The last rows of a method are medians over the sets of the half "tuning", of the others but the held
ones, of the held ones, and of all.
"""

import argparse
import csv
import sys
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pictures
from _harness import timed
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier

FOLDS, PARTS = 5, 2  # each part of two is a fifth of the points
FEWEST = 500  # points of a set, so that a hundred are held out
ALIKE = 0.005
OURS = "heatsketch"


def placed(model, X_new):
    """Return the seconds of a second transform, and its result."""
    model.transform(X_new)
    return timed(model.transform, X_new)


def heatsketch(X, X_new):
    """Return the picture of X, the places of X_new, and the seconds of placing; so do all."""
    import heatsketch as hs

    model = hs.HeatEmbedding(random_state=0).fit(X)
    seconds, Y_new = placed(model, X_new)
    return model.embedding_, Y_new, seconds


def umap(X, X_new):
    import umap as package

    model = package.UMAP(random_state=0, n_jobs=1).fit(X)
    seconds, Y_new = placed(model, X_new)
    return model.embedding_, Y_new, seconds


def tsne(X, X_new):
    import openTSNE

    X, X_new = pictures._dense(X), pictures._dense(X_new)
    model = openTSNE.TSNE(random_state=0, n_jobs=-1).fit(X)
    seconds, Y_new = timed(model.transform, X_new)  # its loops come compiled
    return np.asarray(model), np.asarray(Y_new), seconds


def pacmap(X, X_new):
    import pacmap as package

    X, X_new = pictures._dense(X), pictures._dense(X_new)
    model = package.PaCMAP(random_state=0, save_tree=True)
    Y = model.fit_transform(X)
    seconds, Y_new = placed(model, X_new)
    return Y, Y_new, seconds


def the_data(X, X_new):
    return X, X_new, np.nan


METHODS = {OURS: heatsketch, "UMAP": umap, "PaCMAP": pacmap, "t-SNE": tsne, "the data": the_data}


def judged(data, method):
    """Return accuracy and seconds of a method on a set: the means of the held-out parts."""
    X, labels = data["X"], data["labels"]
    right, seconds = [], []
    for fitted, held in islice(KFold(FOLDS, shuffle=True, random_state=0).split(X), PARTS):
        Y, Y_new, took = METHODS[method](X[fitted], X[held])
        vote = KNeighborsClassifier(pictures.LABEL_NEIGHBORS).fit(Y, labels[fitted])
        right.extend(vote.predict(Y_new) == labels[held])
        seconds.append(took)
    return {"accuracy": np.mean(right), "seconds": np.mean(seconds)}


def median_rows(rows, methods):
    """Yield the median of each method over each half, and over all sets."""
    halves = {"tuning": ("tuning",), "others": ("unseen", "fresh"), "held": ("held",)}
    for half, splits in {**halves, "all": pictures.SPLITS}.items():
        some = [row for row in rows if row["half"] in splits]
        ours = [row["accuracy"] for row in some if row["method"] == OURS]
        for method in methods:
            mine = [row for row in some if row["method"] == method]
            if not mine:
                continue
            medians = {
                key: np.median([row[key] for row in mine])
                for key in ("accuracy", "seconds", "ratio")
            }
            lead = np.array(ours) - [row["accuracy"] for row in mine]
            counts = {"behind": np.sum(lead < -ALIKE), "ahead": np.sum(lead > ALIKE)}
            head = {"set": f"median of {len(mine)}", "half": half, "method": method}
            yield head | medians | counts


def said(row):
    """Return a row in three digits, with nothing for NaN."""
    shown = {key: f"{v:.3g}" if isinstance(v, float) else v for key, v in row.items()}
    return {key: "" if v == "nan" else v for key, v in shown.items()}


def write(rows, path):
    columns = ("set", "half", "method", "accuracy", "seconds", "ratio", "behind", "ahead")
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(map(said, rows))


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path)
    options.add_argument("--sets", nargs="+", metavar="SET")
    options.add_argument("--only", nargs="+", choices=METHODS, metavar="METHOD")
    options.add_argument("-o", "--output", type=Path, metavar="FILE")
    given = options.parse_args()
    methods = dict.fromkeys([OURS, *(given.only or METHODS)])
    warnings.simplefilter("ignore")  # peers' of seeds and threads
    rows = []
    for name in given.sets or pictures.names(given.folder):
        data = pictures.load(given.folder, name, ranked=False)
        if "labels" not in data or data["kind"] == "synthetic" or len(data["labels"]) < FEWEST:
            continue
        head = {"set": name, "half": data["split"]}
        found = {method: judged(data, method) for method in methods}
        for method, row in found.items():
            ratio = row["seconds"] / found[OURS]["seconds"]
            rows.append(head | {"method": method} | row | {"ratio": ratio})
            print(*said(rows[-1]).values(), flush=True)
    medians = list(median_rows(rows, methods))
    for row in medians:
        print(*said(row).values())
    rows += medians
    if given.output:
        write(rows, given.output)


if __name__ == "__main__":
    sys.exit(main())
