"""How fast, faithful and stable is the default picture, beside UMAP, PHATE and openTSNE?

Run: python benchmarks/default_picture.py [--sets digits roll:20000 ...] [--methods heatsketch ...]
         [--seeds 0 1 2 3 4] [--mnist FOLDER] [--noise 0.02] [--large] [--pictures DIR] [-o DIR]

Every method has its own defaults and every pair of set and method a process of its own, which
embeds the set with each seed; then with its rows in another order, and twice 90 % of its rows.

first, warm, cpu    seconds of the first run, and medians (wall and processor) of the others
within 1.5, 2       share of pairs whose distance, over the diffusion distance at the time that
                    heatsketch chooses, is within this factor of the median; log L of the same pairs
10-NN, 10-NN range  accuracy of labels by 10 neighbours: median, and largest less smallest
seeds, rows, parts  rank correlation of the distances of 100,000 pairs: the smallest between two
                    seeds, between two orders of rows, between two fits of 90 % of the rows
truth               rank correlation with the true distances, along a tree or in the flat surface
coordinates         rank correlation of an intrinsic coordinate with the best direction in the
                    picture, the smaller of the two
curve               share within 1.5 that heatsketch saw when it chose the time

Prints a table, writes default_picture.csv, and with --pictures a picture of each set: seeds 0 and
1, the rows in another order, and one 90 %, of every method; and overview.png, the first of each.
Medians are over the seeds.
"""

import time
from pathlib import Path
from typing import NamedTuple

import _data
import _harness as harness
import numpy as np
from _quality import label_accuracy

import heatsketch as hs
from heatsketch.metrics import random_pairs, rank_correlation

PAIRS = 100_000
SHARE_OF_PART = 0.9
PACKAGES = (
    "heatsketch",
    "umap-learn",
    "phate",
    "openTSNE",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
)
# Beyond so many points a method, or a check, takes too long.
MOST_POINTS = {"PHATE": 25_000, "openTSNE": 60_000, "UMAP": 200_000}
MOST_POINTS_CHECKED = 20_000  # rows in another order, 90 %, and more than two seeds


# --- methods ----------------------------------------------------------------------------------


def heatsketch(X, seed):
    fitted = hs.HeatEmbedding(random_state=seed).fit(X)
    curve = fitted.time_curve_
    kept = np.nan if curve is None else float(curve.shares[list(curve.times).index(curve.time)])
    return fitted.embedding_, {"time": float(fitted.time_), "curve": kept}


def umap(X, seed):
    import umap as package

    # random_state would take all but one thread away from it; this seeds it nearly as well.
    np.random.seed(seed)  # noqa: NPY002
    return package.UMAP(n_jobs=-1).fit_transform(X), {}


def phate(X, seed):
    import phate as package

    return package.PHATE(n_jobs=-1, verbose=0, random_state=seed).fit_transform(X), {}


def opentsne(X, seed):
    import openTSNE
    from sklearn.decomposition import TruncatedSVD

    if hasattr(X, "toarray"):  # its initial places need dense data
        X = TruncatedSVD(50, random_state=0).fit_transform(X)
    return np.asarray(openTSNE.TSNE(n_jobs=-1, random_state=seed).fit(X)), {}


METHODS = {"heatsketch": heatsketch, "UMAP": umap, "PHATE": phate, "openTSNE": opentsne}


# --- runs -------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What is run: the set, and how often."""

    name: str
    folder: Path | None
    noise: float
    seeds: list[int]
    checks: bool

    def data(self):
        """Return the set."""
        return _data.draw(self.name, self.folder, self.noise)


def sample_size(n):
    """Return the number of points whose pairs are compared: at long times each takes products."""
    return min(n, 1000 if n <= 2048 else 300 if n <= 25_000 else 145)


def reference(plan):
    """Return sampled pairs and their exact diffusion distances at the time heatsketch chooses."""
    X = plan.data().X
    fitted = hs.HeatEmbedding(random_state=0).fit(X)
    n = X.shape[0]
    points = np.random.default_rng(0).choice(n, sample_size(n), replace=False)
    i, j = np.triu_indices(len(points), 1)
    pairs = np.array([points[i], points[j]])
    D = hs.diffusion_distance(fitted.diffusion_, fitted.time_, pairs=tuple(pairs))
    return {"pairs": pairs, "D": D, "time": float(fitted.time_)}


def runs(plan, method):
    """Return the embeddings of all seeds, of permuted rows and of parts, and the seconds."""
    data, fit = plan.data(), METHODS[method]
    n = data.X.shape[0]
    found = {"seeds": [], "wall": [], "cpu": [], "facts": []}
    for seed in plan.seeds:
        wall, cpu = time.perf_counter(), time.process_time()
        Y, facts = fit(data.X, seed)
        found["wall"].append(time.perf_counter() - wall)
        found["cpu"].append(time.process_time() - cpu)
        found["seeds"].append(np.asarray(Y, dtype=np.float64))
        found["facts"].append(facts)
        harness.say(f"  {method}, seed {seed}: {found['wall'][-1]:.2f} s")
    if plan.checks:
        rng = np.random.default_rng(0)
        order = rng.permutation(n)
        permuted = np.empty((n, 2))
        permuted[order] = fit(data.X[order], plan.seeds[0])[0]
        found["rows"] = permuted
        parts = [np.sort(rng.permutation(n)[: int(SHARE_OF_PART * n)]) for _ in range(2)]
        found["parts"] = [(part, np.asarray(fit(data.X[part], plan.seeds[0])[0])) for part in parts]
    return found


# --- measures ---------------------------------------------------------------------------------


def measures(plan, found, known):
    """Return the row of the table of one method."""
    data, first, later = plan.data(), found["wall"][0], found["wall"][1:] or [np.nan]
    row = {"first": first, "warm": float(np.median(later))}
    row["cpu"] = float(np.median(found["cpu"][1:] or [np.nan]))
    kept = [faithfulness(Y, known) for Y in found["seeds"]] if known.get("D") is not None else []
    row |= {name: median(one[name] for one in kept) for name in ("within 1.5", "within 2", "log L")}
    right = (
        [label_accuracy(Y, data.label) for Y in found["seeds"]] if data.label is not None else []
    )
    row |= {"10-NN": median(right), "10-NN range": float(np.ptp(right)) if right else np.nan}
    row |= steadiness(found) | truth(data, found["seeds"])
    for name in ("time", "curve"):
        row[name] = median(facts[name] for facts in found["facts"] if name in facts)
    return row


def median(values):
    """Return the median of numbers, NaN of none."""
    values = list(values)
    return float(np.median(values)) if values else float("nan")


def faithfulness(Y, known):
    """Compare the distances of sampled pairs with the diffusion distances."""
    i, j = known["pairs"]
    before, after = known["D"], np.linalg.norm(Y[i] - Y[j], axis=1)
    apart = before > 1e-9 * np.median(before)  # equal points, up to rounding
    with np.errstate(divide="ignore"):
        ratio = np.log(after[apart] / before[apart])
    ratio -= np.median(ratio)
    shares = {f"within {f:g}": float(np.mean(np.abs(ratio) <= np.log(f))) for f in (1.5, 2)}
    return shares | {"log L": float(ratio.max() - ratio.min())}


def agreement(Y, Z):
    """Return the rank correlation of the distances of the same pairs in two pictures."""
    i, j = random_pairs(len(Y), PAIRS, 0)
    return rank_correlation(*(np.linalg.norm(P[i] - P[j], axis=1) for P in (Y, Z)))


def steadiness(found):
    """Return the smallest agreements between seeds, orders of rows, and parts of the data."""
    Y = found["seeds"]
    row = {"seeds": min((agreement(a, b) for k, a in enumerate(Y) for b in Y[:k]), default=np.nan)}
    if "rows" in found:
        row["rows"] = agreement(Y[0], found["rows"])
        (one, A), (other, B) = found["parts"]
        _, a, b = np.intersect1d(one, other, return_indices=True)
        row["parts"] = agreement(A[a], B[b])
    return row


def truth(data, pictures):
    """Compare pictures with true distances and coordinates, where they are known."""
    row = {}
    if data.distances is not None:
        i, j = random_pairs(data.X.shape[0], PAIRS, 0)
        true = data.distances(i, j)
        row["truth"] = median(
            rank_correlation(true, np.linalg.norm(Y[i] - Y[j], axis=1)) for Y in pictures
        )
    if data.coordinates is not None:
        row["coordinates"] = median(shown(data.coordinates, Y) for Y in pictures)
    return row


def shown(coordinates, Y):
    """Return how well the best direction of a picture orders the points by each coordinate."""
    from scipy.stats import spearmanr

    Y = Y - Y.mean(axis=0)
    best = Y @ np.linalg.lstsq(Y, coordinates - coordinates.mean(axis=0))[0]
    return min(abs(spearmanr(c, b).statistic) for c, b in zip(coordinates.T, best.T, strict=True))


# --- pictures ---------------------------------------------------------------------------------


def draw_pictures(folder, plan, found):
    """Draw the pictures of all methods of one set: a column each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    data, names = plan.data(), list(found)
    heads = [f"seed {seed}" for seed in plan.seeds[:2]] + ["rows permuted", "90 %"] * plan.checks
    size = (3.6 * len(names), 3.6 * len(heads))
    figure, axes = pyplot.subplots(len(heads), len(names), figsize=size, squeeze=False)
    for column, name in enumerate(names):
        shots = [(slice(None), Y) for Y in found[name]["seeds"][:2]]
        if plan.checks:
            shots += [(slice(None), found[name]["rows"]), found[name]["parts"][0]]
        for row, (rows, Y) in enumerate(shots):
            scatter(axes[row, column], data, Y, rows)
            axes[row, column].set_title(f"{name}, {heads[row]}")
    figure.suptitle(plan.name)
    save(figure, folder, plan.name.replace(":", "-"))


def draw_overview(folder, shown, methods):
    """Draw the first picture of every set (a row) and method (a column)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = (2.6 * len(methods), 2.6 * len(shown))
    figure, axes = pyplot.subplots(len(shown), len(methods), figsize=size, squeeze=False)
    for row, (name, data, pictures) in enumerate(shown):
        axes[row, 0].set_ylabel(name)
        for column, method in enumerate(methods):
            if method in pictures:
                scatter(axes[row, column], data, pictures[method], slice(None))
            axes[row, column].set(xticks=[], yticks=[])
            if row == 0:
                axes[row, column].set_title(method)
    save(figure, folder, "overview")


def scatter(at, data, Y, rows):
    """Draw some rows of a set as points."""
    shade = colours(data)
    shade = shade if shade is None else shade[rows]
    at.scatter(*Y.T, c=shade, cmap=shading(data), s=20_000 / (len(Y) + 2000), linewidths=0)
    at.set(xticks=[], yticks=[], aspect="equal")


def save(figure, folder, name):
    """Write a figure to a folder, and forget it."""
    from matplotlib import pyplot

    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=80)
    pyplot.close(figure)


def colours(data):
    """Return a number for each point: its label, or its first coordinate."""
    if data.label is not None:
        return data.label
    return None if data.coordinates is None else data.coordinates[:, 0]


def shading(data):
    """Return the name of the colour map."""
    return None if data.label is None else "tab10" if data.label.max() < 10 else "tab20"


# --- the whole --------------------------------------------------------------------------------


def one_set(plan, arguments):
    """Return the rows of the table for one set, and the first picture of each method."""
    known = harness.run_apart(reference, plan, limit=arguments.limit)
    if "note" in known:
        harness.say(f"{plan.name}: no reference ({known['note']})")
    n, d = plan.data().X.shape
    rows, pictures = [], {}
    for method in arguments.methods:
        row = {"set": plan.name, "n": n, "d": d, "method": method}
        if n > MOST_POINTS.get(method, n):
            continue
        found = harness.run_apart(runs, plan, method, limit=arguments.limit)
        if "note" not in found:
            pictures[method] = found
            found = measures(plan, found, known)
        rows.append(row | found)
        harness.say(f"{plan.name} {method}: {harness._said(found)}")
    if arguments.pictures is not None and pictures:
        draw_pictures(arguments.pictures, plan, pictures)
    return rows, {method: found["seeds"][0] for method, found in pictures.items()}


def main():
    options = harness.parser(__doc__, limit=1800.0)
    options.add_argument("--sets", nargs="+", default=list(_data.DEFAULT), metavar="SET[:N]")
    options.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    options.add_argument("--mnist", type=Path, metavar="FOLDER", help="folder of IDX files")
    options.add_argument("--noise", type=float, default=0.0, help="added, in diameters of the data")
    options.add_argument("--large", action="store_true", help="add two sets of a million points")
    options.add_argument("--no-checks", action="store_true", help="only the seeds")
    options.add_argument("--pictures", type=Path, metavar="DIR", help="folder of the pictures")
    arguments = options.parse_args()
    if arguments.small:
        arguments.sets, arguments.seeds = ["wine", "roll:300"], [0, 1]
    names = [*arguments.sets, *(_data.LARGE if arguments.large else ())]
    rows, shown = [], []
    for name in harness.chosen(names, arguments.only):
        plan = Plan(
            name, arguments.mnist, arguments.noise, arguments.seeds, not arguments.no_checks
        )
        try:
            n = plan.data().X.shape[0]
        except ImportError as error:
            harness.say(f"{name} is left out: {error.name or error}")
            continue
        if n > MOST_POINTS_CHECKED:
            plan = plan._replace(seeds=plan.seeds[:2], checks=False)
        of_set, pictures = one_set(plan, arguments)
        rows += of_set
        shown.append((name, plan.data(), pictures))
    if arguments.pictures is not None and shown:
        draw_overview(arguments.pictures, shown, arguments.methods)
    print(harness.save("default_picture", rows, arguments, PACKAGES))


if __name__ == "__main__":
    main()
