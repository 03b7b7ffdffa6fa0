"""Tables with ids, labels and words that files must not change."""

import csv
from pathlib import Path

import numpy as np

from heatsketch import io

MEASURES, UNITS = ("length", "mass", "time"), np.array([1.0, 30.0, 1e-3])
TEXT = ('"quoted a", b', "tab\there", "naïve 点", "", "two\nlines", "=1+1", "-3a", "\t=@", " b ")


def table_of(n=len(TEXT), d=3, source="made up", label="group", **extra):
    values = np.random.default_rng(0).standard_normal((n, d))
    words = np.array([TEXT[j % len(TEXT)] for j in range(n)], dtype=object)
    columns = {"id": np.arange(n) * 7, "group": words, **extra}
    return io.Table(values, tuple("abcdefgh"[:d]), columns, label, source)


def write_csv(path, X, names="abc", **columns):
    """Write other columns, and points after them, to a file."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        rows = zip(*columns.values(), *np.asarray(X).T.tolist(), strict=True)
        csv.writer(file).writerows([[*columns, *names], *rows])
    return path


def write_european(path, X, order=(0, 1, 2), gaps=(), gap="", ids=None, **extra):
    """Write points with ; between cells and decimal commas, in an order of the three columns."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["sample", *(MEASURES[j] for j in order), *extra])
        for i, row in enumerate(X.tolist()):
            cells = [gap if (i, j) in gaps else repr(row[j]).replace(".", ",") for j in order]
            name = f"s{i}" if ids is None else ids[i]
            writer.writerow([name, *cells, *(column[i] for column in extra.values())])
    return path
