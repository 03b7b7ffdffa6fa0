"""Tables: missing entries, mixed columns, features that make groups, and points at places.

Run: python benchmarks/tables.py [missing mixed planted inverse large]   (all by default)

Real tables are those that scikit-learn and statsmodels bring; others are drawn from fixed seeds.
No default was chosen on any of them. `missing` needs no other package; `mixed` and `inverse` need
umap-learn. Each question writes docs/benchmarks/tables_QUESTION.csv and prints what it found.
"""

import csv
import importlib
import resource
import sys
import time
import warnings

import numpy as np
from _harness import DOCS
from scipy.stats import spearmanr
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch.neighbors.missing import Donors

MOST_ROWS = 1500
MOST_TREE_COLUMNS = 20
STATSMODELS = (
    "anes96",
    "ccard",
    "fair",
    "grunfeld",
    "heart",
    "macrodata",
    "modechoice",
    "randhie",
    "star98",
    "statecrime",
    "elnino",
)


# --- data -----------------------------------------------------------------------------------


def in_classes(y):
    """Return labels as they are if there are few, else the third of the values they are in."""
    y = np.asarray(y)
    if len(np.unique(y)) <= 8:
        return np.unique(y, return_inverse=True)[1]
    return np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)


def some(X, y):
    rows = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return np.asarray(X, float)[rows], y[rows]


def complete_tables():
    """Yield (name, standardised X, labels) of real tables of numbers, then of drawn ones."""
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, *some(X, in_classes(y))
    try:
        for name in STATSMODELS:
            module = importlib.import_module(f"statsmodels.datasets.{name}")
            data = module.load_pandas().data.select_dtypes("number").dropna()
            X, y = data.iloc[:, 1:], in_classes(data.iloc[:, 0])
            yield name, *some(X.loc[:, X.nunique() > 1], y)
    except ImportError:
        print("statsmodels is not installed: its tables are left out", file=sys.stderr)
    for seed in range(10, 14):
        X, y = datasets.make_classification(
            700,
            12 + 6 * (seed - 10),
            n_informative=8,
            n_redundant=4,
            n_classes=3,
            random_state=seed,
        )
        yield f"drawn {seed}", X, y


def mixed_tables():
    """Yield (name, dict of columns, orders, labels): real tables, and numbers cut to categories."""
    try:
        frames = {
            n: importlib.import_module(f"statsmodels.datasets.{n}").load_pandas().data
            for n in ("anes96", "fair", "modechoice", "randhie")
        }
        data = frames["anes96"]
        columns = {
            c: data[c].to_numpy() for c in ("popul", "age", "TVnews", "selfLR", "income", "educ")
        }
        yield "anes96", columns, {}, in_classes(data["vote"])
        yield "anes96 party", columns, {}, in_classes(data["PID"])
        data = frames["fair"].sample(MOST_ROWS, random_state=0)
        columns = {c: data[c].to_numpy() for c in data.columns[:8]}
        for c in ("occupation", "occupation_husb"):
            columns[c] = np.array([f"job {v:.0f}" for v in columns[c]], object)
        yield "fair", columns, {}, (data["affairs"].to_numpy() > 0).astype(int)
        data = frames["modechoice"]
        columns = {c: data[c].to_numpy() for c in ("ttme", "invc", "invt", "gc", "hinc", "psize")}
        yield "modechoice", columns, {}, in_classes(data["mode"])
        data = frames["randhie"].sample(MOST_ROWS, random_state=0)
        columns = {
            c: data[c].to_numpy()
            for c in ("mdvis", "lncoins", "idp", "lpi", "fmde", "physlm", "disea")
        }
        health = data[["hlthg", "hlthf", "hlthp"]].to_numpy()
        yield "randhie", columns, {}, np.where(health.any(axis=1), 1 + health.argmax(axis=1), 0)
    except ImportError:
        print("statsmodels is not installed: its tables are left out", file=sys.stderr)
    for seed in range(20, 25):
        X, y = datasets.make_classification(
            800, 12, n_informative=8, n_redundant=2, n_classes=4, class_sep=1.3, random_state=seed
        )
        rng = np.random.default_rng(seed)
        columns = {f"x{j}": X[:, j] * 10.0 ** rng.integers(-2, 3) for j in range(5)}
        for j in range(5, 9):  # categories whose names say nothing of the order
            cuts = np.quantile(X[:, j], [0.25, 0.5, 0.75])
            names = rng.permutation(list("abcd"))
            columns[f"c{j}"] = names[np.searchsorted(cuts, X[:, j])].astype(object)
        orders = {}
        for j in range(9, 12):
            sizes = ["small", "medium", "large"]
            place = np.searchsorted(np.quantile(X[:, j], [0.3, 0.8]), X[:, j])
            columns[f"o{j}"], orders[f"o{j}"] = np.array(sizes, object)[place], sizes
        yield f"drawn {seed}", columns, orders, y


# --- questions ------------------------------------------------------------------------------


def label_agreement(X, y, k=10):
    nearest = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    votes = np.apply_along_axis(np.bincount, 1, y[nearest], minlength=y.max() + 1)
    return float(np.mean(votes.argmax(axis=1) == y))


def missing():
    """Fill entries deleted at random: large distances and labels beside those of all entries.

    The last two methods, regressions of each column on all others in turns, are an upper reference:
    they know all rows, and take minutes. Trees fill tables of few columns alone.
    """
    turns = {"ridge": BayesianRidge(), "trees": ExtraTreesRegressor(30, random_state=0)}
    turns = {n: IterativeImputer(x, max_iter=5, random_state=0) for n, x in turns.items()}
    fill = {
        "walk": lambda Z: Donors.of(Z, 15).fill(Z),
        "KNNImputer": lambda Z: KNNImputer().fit_transform(Z),
        "median": lambda Z: SimpleImputer(strategy="median").fit_transform(Z),
        **{name: imputer.fit_transform for name, imputer in turns.items()},
    }
    for name, X, y in complete_tables():
        X = StandardScaler().fit_transform(X)
        rng = np.random.default_rng(1)
        i, j = rng.integers(0, len(X), (2, 20_000))
        wide = np.linalg.norm(X[i] - X[j], axis=1)
        wide_only = wide > np.median(wide)
        best = label_agreement(X, y)
        for fraction in (0.1, 0.3):
            Z = np.where(rng.random(X.shape) < fraction, np.nan, X)
            Z[np.isnan(Z).all(axis=1), 0] = X[np.isnan(Z).all(axis=1), 0]
            for method, work in fill.items():
                if method == "trees" and X.shape[1] > MOST_TREE_COLUMNS:
                    continue
                F = work(Z)
                found = np.linalg.norm(F[i] - F[j], axis=1)
                yield {
                    "table": name,
                    "rows": len(X),
                    "columns": X.shape[1],
                    "missing": fraction,
                    "method": method,
                    "error": np.sqrt(np.mean((F - X)[np.isnan(Z)] ** 2)),
                    "rank": spearmanr(found, wide)[0],
                    "rank_large": spearmanr(found[wide_only], wide[wide_only])[0],
                    "labels": label_agreement(F, y) / best,
                }


def gower(columns, orders):
    """Return Gower's distances: a number by its range, a category 0 or 1, in equal parts."""
    total = 0
    for name, column in columns.items():
        if name in orders:
            column = np.array([orders[name].index(value) for value in column], float)
        if column.dtype == object:
            total = total + (column[:, None] != column)
        else:
            column = np.asarray(column, float)
            total = total + np.abs(column[:, None] - column) / max(np.ptp(column), 1e-300)
    return total / len(columns)


def mixed():
    """Labels of the ten nearest in a picture: ours, and UMAP of Gower's distances."""
    import umap

    for name, columns, orders, y in mixed_tables():
        X = hs.TableEncoder(orders).fit_transform(columns)
        row = {"table": name, "rows": len(X), "columns": len(columns), "classes": y.max() + 1}
        started = time.perf_counter()
        row["heatsketch"] = label_agreement(hs.HeatEmbedding(random_state=0).fit_transform(X), y)
        row["seconds"] = time.perf_counter() - started
        row["encoded"] = label_agreement(X, y)
        D = gower(columns, orders)
        started = time.perf_counter()
        seeds = [umap.UMAP(metric="precomputed", random_state=s).fit_transform(D) for s in range(3)]
        row["gower_umap"] = np.mean([label_agreement(Y, y) for Y in seeds])
        row["umap_seconds"] = (time.perf_counter() - started) / 3
        yield row


def planted():
    """Five of 50 features make three groups: the area by which two rules rank them first."""
    for seed in range(10):
        rng = np.random.default_rng(100 + seed)
        y = rng.integers(0, 3, 500)
        X = rng.normal(size=(500, 50))
        chosen = rng.permutation(50)[:5]
        X[:, chosen] += rng.normal(scale=2.0, size=(3, 5))[y]
        truth = np.isin(np.arange(50), chosen)
        effect = np.zeros(50)
        for group in range(3):
            found = hs.markers(X, y == group)
            effect[found.index] = np.maximum(effect[found.index], np.abs(found.area - 0.5))
        row = {"set": seed, "markers": roc_auc_score(truth, effect)}
        for name, model in {
            "sensitivity_map": hs.DiffusionMap(2, 8),
            "sensitivity_picture": hs.HeatEmbedding(random_state=0),
        }.items():
            S = model.fit(X).sensitivity(X)
            strength = np.sqrt(np.mean(S**2, axis=(0, 1))) * X.std(axis=0)
            row[name] = roc_auc_score(truth, strength)
        yield row


def inverse():
    """Points at the places of held-out ones: error in units of the spread, and seconds."""
    import umap

    for name, X, _ in list(complete_tables())[:10]:
        X = StandardScaler().fit_transform(X)
        rows = np.random.default_rng(2).permutation(len(X))
        train, test = X[rows[: -len(X) // 5]], X[rows[-len(X) // 5 :]][:100]
        row = {"table": name, "train": len(train), "test": len(test), "columns": X.shape[1]}
        models = {"heatsketch": hs.HeatEmbedding(random_state=0), "umap": umap.UMAP(random_state=0)}
        for method, model in models.items():
            Y = model.fit(train).transform(test)
            started = time.perf_counter()
            found = model.inverse_transform(np.asarray(Y, float))
            row[f"{method}_seconds"] = time.perf_counter() - started
            row[method] = np.sqrt(np.mean((found - test) ** 2))
        yield row


def large(n=100_000):
    """100,000 mixed rows of 30 columns, a tenth of the entries missing."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n, 6)) + 4 * np.eye(6)[rng.integers(0, 6, n)]
    numbers = factors @ rng.normal(size=(6, 30)) + rng.normal(size=(n, 30))
    table = {}
    for j in range(30):
        column = numbers[:, j].astype(object)
        if j >= 15:
            cuts = np.quantile(numbers[:, j], np.linspace(0, 1, 2 + j % 5 + 1)[1:-1])
            column = np.array(list("abcdefgh"), object)[np.searchsorted(cuts, numbers[:, j])]
        column[rng.random(n) < 0.1] = None
        table[f"x{j}"] = column
    started, worked = time.perf_counter(), time.process_time()
    X = hs.TableEncoder().fit_transform(table)
    encoded = time.perf_counter() - started
    hs.HeatEmbedding(random_state=0).fit(X)
    yield {
        "rows": n,
        "columns": 30,
        "numbers": X.shape[1],
        "encode_seconds": encoded,
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - worked,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


QUESTIONS = {f.__name__: f for f in (missing, mixed, planted, inverse, large)}


def main(names):
    warnings.simplefilter("ignore")
    for name in names or QUESTIONS:
        rows = []
        for row in QUESTIONS[name]():
            rows.append({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
            print(*rows[-1].values(), flush=True)
        with (DOCS / f"tables_{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
